"""Records of a text table with quoted values: splitting text into values and finding the ends of records.

A value that begins with a quote extends to the next single quote character and may hold delimiters and line ends;
quotes elsewhere are ordinary characters.
"""

from __future__ import annotations

import csv
import io
import re
from functools import cache

import numpy as np

from ccmem.core.typing import IntArray
from ccmem.io.streams.lines import LONGEST_LINE, line_ends

LONGEST_QUOTED = 1 << 16
"""Maximum number of bytes after a line end within which an open quote must be closed."""
WHITESPACE = " "
"""Delimiter that represents any run of spaces and tabs."""
_INSIDE_QUOTES = re.compile(rb'[^"]*+(?:""[^"]*+)*+')
_QUOTE, _NEWLINE, _RETURN = b'"\n\r'
csv.field_size_limit(LONGEST_LINE)  # Python's limit of 128 KiB is short for a text; it holds for the whole process


def split_records(text: str, delimiter: str) -> tuple[list[list[str]], IntArray]:
    """Return the values and the end offset of each record; empty lines are skipped.

    >>> values, ends = split_records('1,"a, ""b"" c"\\n\\n2,5" pipe', ",")
    >>> values, ends.tolist()
    ([['1', 'a, "b" c'], ['2', '5" pipe']], [15, 25])
    """
    whole = list(io.StringIO(text, newline=""))  # a lone carriage return ends a line, too
    ends = np.cumsum(np.fromiter(map(len, whole), np.int64, len(whole)))
    if delimiter == WHITESPACE:
        whole = [line.replace("\t", " ").strip(" ") for line in whole]
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
