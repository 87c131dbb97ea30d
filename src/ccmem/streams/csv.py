"""CSV: comma, semicolon or tab separated values under a line of column names, in UTF-8.

A value that begins with a quote goes on to the next lone quote and may hold delimiters and line ends; quotes elsewhere
are ordinary characters. A quote that is left open spoils its own line and no more: if its other half does not come
within ``LONGEST_QUOTED`` bytes of the line end, or is one that opens a later value, the line is a bad row and the next
line is the next row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

from ccmem._typing import IntArray
from ccmem.streams.lines import LOOKED_AT, Block, LineTable, Read, Records, is_number, line_ends
from ccmem.streams.tables import Batch, Columns, SourceError

LONGEST_QUOTED = 1 << 16
_AFTER_A_FAULT = 1 << 12
"""How many bytes are looked at first after a bad line: where there is one there may be many."""
_DELIMITERS = ",;\t"
_MISSING = ("", "NA", "N/A", "null", "NULL", "None")
"""What stands for a missing reading, beside NaN in any spelling."""
_OPEN_QUOTE = "a quote is opened and not closed"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_INSIDE_QUOTES = re.compile(rb'[^"]*+(?:""[^"]*+)*+')
_QUOTE, _NEWLINE, _RETURN = b'"\n\r'


class CSVTable(LineTable):
    """A CSV file or pipe."""

    def __init__(
        self, file: str, read: Read, seek: Callable[[int], Any] | None, close: Callable[[], Any], hold: bool = False
    ) -> None:
        super().__init__(file, read, seek, close, hold)
        self._delimiter = ","
        self._after_fault = False
        header = self._read_header()
        if header is None:
            return
        text = header.decode("latin-1")
        names = next((values for values, _ in split_records(text, self._delimiter)), [])
        try:
            self.columns = [utf8(name) for name in names]
        except UnicodeDecodeError as problem:
            raise SourceError(f"{file}: its column names are not UTF-8; save the file as UTF-8") from problem
        if not any(self.columns) or all(is_number(name) for name in self.columns):
            raise SourceError(f"{file}: its first line {text.strip()[:60]!r} has no column names; add a header line")
        self._body = self.offset
        for name, value in zip(self.columns, self._first_values(), strict=False):
            if is_number(value):
                self.numeric.append(name)
            elif not value and name:
                self.undecided.append(name)

    def _read_header(self) -> bytes | None:
        """The line of column names; None if it is not there yet."""
        while b"\n" not in self._pending and not self._finished:
            self._read_more()
        if self._pending.startswith(_BYTE_ORDER_MARK):
            self._restart(bytes(self._pending[3:]), 3)
        line = bytes(self._pending).partition(b"\n")[0].decode("latin-1")
        self._delimiter = max(_DELIMITERS, key=line.count)
        empty = self._finished and not self._pending
        first = self._block()
        if first is None:
            if empty:
                raise SourceError(f"{self._file} is empty; a CSV file begins with a line of column names")
            return None
        if first.fault is not None:
            raise SourceError(f"{self._file}: {first.fault} in its line of column names")
        ends, _ = record_ends(first.data, self._delimiter.encode())
        end = int(ends[0]) if ends.size else len(first.data)
        self._restart(first.data[end:] + bytes(self._pending), first.start + end)
        return first.data[:end]

    def _first_values(self) -> list[str]:
        """The first value of every column, of records that have one for each; waits for them, and leaves them unread.

        One record tells, if it has no gaps; a column that stays empty for ``LOOKED_AT`` records stays "".
        """
        seen = bytearray()
        start = self.offset
        found: list[str] = []
        count = 0
        while not (found and all(found)) and count < LOOKED_AT and (block := self._block()) is not None:
            seen += block.data
            for values, _ in split_records(block.data.decode("latin-1"), self._delimiter) if not block.fault else ():
                if len(values) == len(self.columns) and count < LOOKED_AT:
                    found = [old or new for old, new in zip(found or values, values, strict=True)]
                    count += 1
        self._restart(bytes(seen + self._pending), start)
        self.has_rows = bool(seen.strip())
        return found

    def _cut(self) -> tuple[int, str | None]:
        end, _ = super()._cut()
        if not end or b'"' not in self._pending:
            return end, None
        look = _AFTER_A_FAULT if self._after_fault else len(self._pending)
        while True:
            found, fault = self._cut_of(bytes(self._pending[:look]))
            if found or look >= len(self._pending):
                self._after_fault = fault is not None
                return found, fault
            look *= 2

    def _cut_of(self, data: bytes) -> tuple[int, str | None]:
        delimiter = self._delimiter.encode()
        end = data.rfind(b"\n") + 1
        if end and _quotes_are_plain(data[:end], delimiter):
            return end, None
        ends, opened = record_ends(data, delimiter)
        if ends.size:
            return int(ends[-1]), None
        if opened is not None and (line := data.find(b"\n", opened) + 1):
            given_up = len(data) - line > LONGEST_QUOTED or _closed_wrongly(data, opened)
            given_up = given_up or (self._finished and not self._hold and len(data) == len(self._pending))
            return (line, _OPEN_QUOTE) if given_up else (0, None)
        return 0, None

    def _fault_at_end(self) -> str | None:
        opened = record_ends(bytes(self._pending), self._delimiter.encode())[1]
        return None if opened is None else _OPEN_QUOTE

    def _parse_fast(self, block: Block, columns: Columns) -> Batch | None:
        try:
            import pyarrow as pa
            from pyarrow import csv as arrow_csv
        except ImportError:
            return None
        from ccmem.streams.arrow import from_table

        data = block.data
        if columns.label is not None and columns.text_labels is False:
            return None  # labels must be turned into numbers
        if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
            return None  # a lone one ends a line too
        wanted = list(columns.features) + ([columns.label] if columns.label is not None else [])
        types = {name: pa.float64() for name in columns.features}
        if columns.label is not None:
            types[columns.label] = pa.string()
        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(data),
                arrow_csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=self.columns),
                arrow_csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=b'"' in data),
                arrow_csv.ConvertOptions(
                    column_types=types,
                    include_columns=wanted,
                    null_values=[""],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=True,
                ),
            )
        except pa.ArrowException:
            return None
        ends, _ = record_ends(data, self._delimiter.encode())
        if not block.ended:
            ends = np.append(ends, len(data))
        lengths = np.diff(ends, prepend=0)
        blank = (lengths == 1) | ((lengths == 2) & (np.frombuffer(data, np.uint8)[ends - lengths] == _RETURN))
        ends = ends[~blank]
        return from_table(table, columns, block.start + ends) if len(ends) == table.num_rows else None

    def _parse_slowly(self, block: Block, columns: Columns) -> Batch:
        places = [self.columns.index(name) for name in columns.features]
        label_place = None if columns.label is None else self.columns.index(columns.label)
        records = Records(columns, block.start)
        if block.fault is not None:
            records.add(None, None, (None, block.fault), len(block.data))
            return records.batch()
        for record, end in split_records(block.data.decode("latin-1"), self._delimiter):
            if len(record) != len(self.columns):
                fault = f"has {len(record)} values under {len(self.columns)} column names"
                records.add(None, None, (None, fault), end)
                continue
            numbers: list[float] = []
            problem: tuple[str | None, str] | None = None
            for name, place in zip(columns.features, places, strict=True):
                value = record[place]
                numbers.append(float(value) if is_number(value) else np.nan)
                if value not in _MISSING and problem is None and not is_number(value):
                    problem = (name, f"{shown(value)} is not a number")
            label: Any = None
            if label_place is not None:
                try:
                    label = utf8(record[label_place]) or None
                except UnicodeDecodeError:
                    what = f"{shown(record[label_place])} is not UTF-8 text; save the file as UTF-8"
                    problem = problem or (columns.label, what)
                if columns.text_labels is False and label is not None and is_number(label):
                    label = float(label) if not label.lstrip("+-").isdigit() else int(label)
            records.add(numbers, label, problem, end)
        return records.batch()


def utf8(text: str) -> str:
    """Bytes that were read as Latin-1, one character each, as the UTF-8 they should be."""
    return text if text.isascii() else text.encode("latin-1").decode("utf-8")


def shown(text: str) -> str:
    """A value for a message."""
    return repr(text[:60].encode("latin-1").decode("utf-8", "replace"))


@cache
def _value_pattern(delimiter: str) -> re.Pattern[str]:
    """A value in quotes, or none; what follows it; and what ends it."""
    return re.compile(rf'(?:"([^"]*+(?:""[^"]*+)*+)"?)?([^{delimiter}\r\n]*+)({delimiter}|\r\n|\r|\n|\Z)')


def split_records(text: str, delimiter: str) -> Iterator[tuple[list[str], int]]:
    """The values of each record, and where it ends; empty lines are skipped.

    >>> list(split_records('1,"a, ""b"" c"\\n\\n2,5" pipe', ","))
    [(['1', 'a, "b" c'], 15), (['2', '5" pipe'], 25)]
    """
    pattern, position = _value_pattern(delimiter), 0
    values: list[str] = []
    while position < len(text) or values:
        start = position
        value = pattern.match(text, position)
        assert value is not None  # it matches nothing, too
        position = value.end()
        quoted, rest, separator = value.groups()
        values.append(rest if quoted is None else quoted.replace('""', '"') + rest)
        if separator != delimiter:
            if len(values) > 1 or value.end(2) > start:
                yield values, position
            values = []


@cache
def _opening_quote(delimiter: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"(?:\A|(?<=[\r\n" + delimiter + rb']))"')


def record_ends(data: bytes, delimiter: bytes) -> tuple[IntArray, int | None]:
    """Where records end at a line end, and where a quote stands that has no other half (where it may), if one does.

    >>> ends, opened = record_ends(b'1,"a\\nb"\\n2,"c\\n', b",")
    >>> ends.tolist(), opened
    ([8], 10)
    """
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == _NEWLINE).astype(np.int64) + 1
    if b'"' not in data or (data.endswith(b"\n") and _quotes_are_plain(data, delimiter)):
        return ends, None
    opening, position = _opening_quote(delimiter), 0
    ends_value = (b"", b"\n", b"\r", delimiter).__contains__
    spans: list[tuple[int, int]] = []
    opened: int | None = None
    while (quote := opening.search(data, position)) is not None:
        inside = _INSIDE_QUOTES.match(data, quote.end())
        assert inside is not None  # it matches nothing, too
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


def _closed_wrongly(data: bytes, opened: int) -> bool:
    """Whether the quote that :func:`record_ends` calls open is so for good: more cannot close it."""
    inside = _INSIDE_QUOTES.match(data, opened + 1)
    return inside is not None and inside.end() < len(data)


def _quotes_are_plain(data: bytes, delimiter: bytes) -> bool:
    """Whether ``data``, whole lines, has quotes only around values, or doubled inside, and no line end in any."""
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
