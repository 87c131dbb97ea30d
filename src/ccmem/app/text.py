"""Text for terminals: safe to print, with plurals."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return ``text`` with control characters escaped: names and labels come from files, and terminals execute them.

    >>> printable("a\\x1b[2Jb")
    'a\\\\x1b[2Jb'
    """
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def counted(number: int, word: str) -> str:
    """Return a number with its noun, which ends in s unless the number is 1.

    >>> counted(1, "row"), counted(2_000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{number:,} {word}{'s' * (number != 1)}"
