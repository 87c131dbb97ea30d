"""Output on terminals: progress in one line that is overwritten, safe text, and plurals."""

from __future__ import annotations

import sys
import time

LOG_SECONDS = 15.0
"""Interval between progress lines in a log, in seconds."""


class StatusLine:
    """A status line on stderr if it is a terminal and ``wanted``; with ``in_lines``, occasional lines elsewhere."""

    def __init__(self, wanted: bool = True, in_lines: bool = False) -> None:
        self.visible = wanted and sys.stderr.isatty()
        self._in_lines = in_lines and wanted and not self.visible
        self._logged = -LOG_SECONDS

    def show(self, text: str) -> None:
        """Replace the current text by ``text``."""
        if self.visible:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()
        elif self._in_lines and text and time.monotonic() - self._logged >= LOG_SECONDS:
            self._logged = time.monotonic()
            print(text, file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Erase the line."""
        self.show("")


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
