"""Cells of a text table: missing-value markers, and numbers with a decimal point or comma and grouped digits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from ccmem.core.typing import FloatArray

MISSING = ("", "NA", "N/A", "#N/A", "null", "None", "nan", "-", "?")
"""Markers of a missing value, compared without case and surrounding spaces."""
_NUMBER = {
    decimal: re.compile(
        rf"[+-]?(?:\d+|[1-9]\d{{0,2}}(?:{group}\d{{3}})+|(?={point}\d))(?:{point}\d*)?(?:[eE][+-]?\d+)?", re.ASCII
    )
    for decimal, point, group in ((".", r"\.", r"[,' ]"), (",", ",", r"[.' ]"))
}
"""Decimal sign -> pattern of numbers written with it. Thousands may be grouped, but not after a leading zero."""
_TYPESET = str.maketrans("\xa0\u2009\u202f\u2019\u2212", "    -")
"""Group separators and the minus sign of typesetters -> their plain form."""
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(?:\.\d{3})*|0?", re.ASCII)
LEAST_GROUPED = 40
"""Number of values with three digits after a point that must not be decimals; by chance, a tenth would end in 0."""


class CellFormat(NamedTuple):
    """Notation of the cells of a table: decimal sign and missing-value markers."""

    decimal: str = "."
    missing: tuple[str, ...] = ()
    """Markers of a missing value in addition to ``MISSING``."""

    @property
    def markers(self) -> frozenset[str]:
        """All markers, in lower case."""
        return _lower_case(self.missing)

    @property
    def spellings(self) -> list[str]:
        """Markers in their common capitalisations, for a parser that compares exactly."""
        return sorted({form for m in (*MISSING, *self.missing) for form in (m, m.lower(), m.upper(), m.capitalize())})

    def number(self, text: str) -> float | None:
        """Return the number in a cell, NaN for a missing value, None for any other text.

        >>> [CellFormat(",").number(text) for text in ("1.234,5", " 7 ", "on", "n/a")]
        [1234.5, 7.0, None, nan]
        """
        text = _plain(text)
        if self.decimal == "." and is_number(text):
            return float(text)
        if text.lower() in self.markers:
            return float("nan")
        if _NUMBER[self.decimal].fullmatch(text):
            plain = re.sub(r"[' .]" if self.decimal == "," else r"[' ,]", "", text)
            return float(plain.replace(",", "."))
        return None

    def numbers(self, cells: Sequence[str], ordinary: bool = False) -> tuple[FloatArray, list[int]]:
        """Return the numbers in ``cells`` (NaN for other cells), and the indices of cells that hold text.

        ``ordinary``: no cell holds an underscore or a non-ASCII character, both of which ``float`` would accept.

        >>> CellFormat().numbers(["1.5", "NA", "off"])
        (array([1.5, nan, nan]), [2])
        """
        if self.decimal == ".":
            try:
                found = np.fromiter(map(float, cells), np.float64, len(cells))
            except ValueError:
                pass
            else:
                if ordinary or is_ordinary("".join(cells)):
                    return found, []
        read = {cell: self.number(cell) for cell in set(cells)}
        wrong = [place for place, cell in enumerate(cells) if read[cell] is None]
        return np.array([read[cell] for cell in cells], np.float64), wrong


@cache
def _lower_case(missing: tuple[str, ...]) -> frozenset[str]:
    return frozenset(marker.strip().lower() for marker in (*MISSING, *missing))


def _plain(text: str) -> str:
    """Return the text of a cell without surrounding spaces, and with plain group separators and minus signs.

    >>> _plain(" \u22121\u202f234,5 ")
    '-1 234,5'
    """
    return (text if text.isascii() else text.translate(_TYPESET)).strip()


def is_ordinary(text: str | bytes) -> bool:
    """True if ``float`` accepts only plain numbers in ``text``: it would also accept 1_000 and non-ASCII digits."""
    return text.isascii() and (b"_" not in text if isinstance(text, bytes) else "_" not in text)


def is_number(text: str) -> bool:
    """True if ``text`` is a number in common notation."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text and text.isascii()


def decimal_sign(cells: Sequence[str], delimiter: str) -> str:
    """Return the decimal sign used in a sample of cells.

    Numbers that are valid with only one sign decide: "1,5" and "0,123" need a comma, "1.5" a point. If all numbers are
    like "21,345", which may be grouped digits, a semicolon between the cells indicates that commas are decimal.

    >>> decimal_sign(["1.234", "7,5"], ";"), decimal_sign(["1,234", "7.5"], ",")
    (',', '.')
    """
    votes = {".": 0, ",": 0}
    unclear = 0
    for text in map(_plain, cells):
        point, comma = (_NUMBER[sign].fullmatch(text) is not None for sign in ".,")
        if point != comma:
            votes["." if point else ","] += 1
        elif point and "," in text:
            unclear += 1
    if votes["."] == votes[","]:
        return "," if unclear and delimiter == ";" else "."
    return max(votes, key=votes.__getitem__)


def groups_thousands(cells: Sequence[str]) -> bool:
    """True if the points in a column of whole numbers group thousands: "850" beside "1.200", never "1.2".

    >>> groups_thousands(["850", *["1.200"] * 40]), groups_thousands(["1.25", *["1.200"] * 40])
    (True, False)
    """
    with_points = sum(1 for cell in cells if "." in cell)
    return LEAST_GROUPED <= with_points < len(cells) and all(_GROUPED.fullmatch(cell.strip()) for cell in cells)
