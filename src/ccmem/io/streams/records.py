"""Records of text tables with quoted values, and their cells: numbers, or markers of missing values.

A value that begins with a quote extends to the next single quote character and may hold delimiters and line ends;
quotes elsewhere are ordinary characters.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from ccmem.core.typing import FloatArray, IntArray

LONGEST_LINE = 64 << 20
"""Longest line in bytes."""
LONGEST_QUOTED = 1 << 16
"""Maximum number of bytes after a line end within which an open quote must be closed."""
WHITESPACE = " "
"""Delimiter that represents any run of spaces and tabs."""
_INSIDE_QUOTES = re.compile(rb'[^"]*+(?:""[^"]*+)*+')
_QUOTE, _NEWLINE, _RETURN = b'"\n\r'
csv.field_size_limit(max(LONGEST_LINE, csv.field_size_limit()))  # of the process; 128 KiB are too short for a text


def split_records(text: str, delimiter: str) -> tuple[list[list[str]], IntArray]:
    """Return the values and the end offset of each record; empty lines are skipped.

    >>> values, ends = split_records('1,"a, ""b"" c"\\n\\n2,5" pipe', ",")
    >>> values, ends.tolist()
    ([['1', 'a, "b" c'], ['2', '5" pipe']], [15, 25])
    """
    whole = list(io.StringIO(text, newline=""))  # a lone carriage return ends a line, too
    ends = np.cumsum(np.fromiter(map(len, whole), np.int64, len(whole)))
    if delimiter == WHITESPACE:
        whole = [line.replace("\t", " ").strip() + "\n" for line in whole]
    reader = csv.reader(whole, delimiter=delimiter, skipinitialspace=delimiter == WHITESPACE)
    if '"' not in text:
        found = list(reader)
        return (found, ends) if all(found) else (list(filter(None, found)), ends[list(map(bool, found))])
    places, found = [], []
    for values in reader:
        if values:
            found.append(values)
            places.append(reader.line_num - 1)
    return found, ends[places]


@cache
def _opening_quote(delimiter: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"(?:\A|(?<=[\r\n" + re.escape(delimiter) + rb']))"')


def record_ends(data: bytes, delimiter: bytes) -> tuple[IntArray, int | None]:
    """Return the line ends at which records end, and the offset of an unclosed quote or None.

    >>> ends, opened = record_ends(b'1,"a\\nb"\\n2,"c\\n', b",")
    >>> ends.tolist(), opened
    ([8], 10)
    """
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == _NEWLINE).astype(np.int64) + 1
    if b'"' not in data or (data.endswith(b"\n") and quotes_are_plain(data, delimiter)):
        return ends, None
    opening, position = _opening_quote(delimiter), 0
    ends_value = (b"", b"\n", b"\r", delimiter).__contains__
    spans: list[tuple[int, int]] = []
    opened: int | None = None
    while (quote := opening.search(data, position)) is not None:
        inside = _INSIDE_QUOTES.match(data, quote.end())
        assert inside is not None  # the pattern also matches the empty string
        line = data.find(b"\n", quote.end(), inside.end())
        other_half = inside.end() - line - 1 <= LONGEST_QUOTED and ends_value(data[inside.end() + 1 : inside.end() + 2])
        if inside.end() == len(data) or (line >= 0 and not other_half):
            opened = quote.start()
            ends = ends[ends <= opened]
            break
        if line >= 0:
            spans.append((quote.start(), inside.end()))
        position = inside.end() + 1
    if spans:
        starts, stops = np.array(spans).T
        within = np.searchsorted(starts, ends - 1) - 1
        ends = ends[(within < 0) | (stops[within] < ends - 1)]
    return ends, opened


def closed_wrongly(data: bytes, opened: int) -> bool:
    """True if more data cannot close the quote that :func:`record_ends` reports as open."""
    inside = _INSIDE_QUOTES.match(data, opened + 1)
    return inside is not None and inside.end() < len(data)


def quotes_are_plain(data: bytes, delimiter: bytes) -> bool:
    """True if the complete lines in ``data`` have quotes only around values or doubled inside, never a line end."""
    characters = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(characters == _QUOTE)
    if quotes.size % 2:
        return False
    opening, closing = quotes[::2], quotes[1::2]
    outside = np.zeros(256, np.bool_)
    outside[[_QUOTE, _NEWLINE, _RETURN, delimiter[0]]] = True
    before = np.where(opening == 0, _NEWLINE, characters[opening - 1])
    if not (outside[before].all() and outside[characters[np.minimum(closing + 1, len(data) - 1)]].all()):
        return False
    lines = line_ends(data) - 1
    return bool((np.searchsorted(opening, lines) == np.searchsorted(closing, lines)).all())


def line_ends(data: bytes) -> IntArray:
    """Return the end offset of every line of ``data``; the last line may lack a line end."""
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n")).astype(np.int64) + 1
    return ends if data.endswith(b"\n") else np.append(ends, len(data))


# Cells: missing-value markers, and numbers with a decimal point or comma and grouped digits ---------------------------

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
