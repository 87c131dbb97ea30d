"""Text tables: values separated by commas, semicolons, tabs, bars or spaces, with or without a line of names.

The table is opened in two steps: its dialect (:mod:`~ccmem.io.streams.dialect`), then the roles of its columns
(:mod:`~ccmem.io.streams.schema`). An unclosed quote invalidates only its line: if the closing quote does not follow
within ``LONGEST_QUOTED`` bytes of the line end, or is a quote that opens a later value, the line is a bad row and the
next line is the next row.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from itertools import islice, pairwise
from typing import Any

import numpy as np

from ccmem.core.typing import IntArray
from ccmem.io.streams import lines, records
from ccmem.io.streams.dialect import COMMENTS, SHOWN_LINES, Dialect, lay_out, sniff_delimiter
from ccmem.io.streams.errors import NOT_UTF8, Faults, SourceError, shown
from ccmem.io.streams.lines import Block, LineTable
from ccmem.io.streams.records import (
    WHITESPACE,
    CellFormat,
    closed_wrongly,
    decimal_sign,
    groups_thousands,
    is_number,
    is_ordinary,
    quotes_are_plain,
    record_ends,
    split_records,
)
from ccmem.io.streams.schema import SAMPLE_ROWS, Columns, infer, read_times
from ccmem.io.streams.tables import Batch, Labels, code_labels

_AFTER_A_FAULT = 1 << 12
"""Bytes examined first after a bad line; few, because bad lines often come in groups."""
_OPEN_QUOTE = "a quote is opened and not closed"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_RETURN = ord("\r")
_WINDOWS = "".join(bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in range(256))
"""Characters of Windows-1252, whose five undefined bytes stay distinct: different labels must not become equal."""


class CSVTable(LineTable):
    """A CSV file or pipe."""

    dialect: Dialect | None = None
    _delimiter = ","
    _is_utf8 = True
    _after_fault = False

    def _open(self) -> None:
        rules = self._rules
        if not self._begin():
            return
        sample, held = self._sample()
        self._restart(held + bytes(self._pending), self._body)
        self.has_rows = bool(held.strip())
        by_column = {name: [values[i] for values in sample] for i, name in enumerate(self.columns)}
        decimal = rules.decimal or decimal_sign([cell for values in sample for cell in values], self._delimiter)
        if rules.decimal is None and self._delimiter != "," and any(map(groups_thousands, by_column.values())):
            decimal = ","
        self.schema = infer(by_column, rules, CellFormat(decimal, rules.missing), self._delimiter == ";")

    # Opening -------------------------------------------------------------------------------------------------------

    def _begin(self) -> bool:
        """Read the dialect and the names; return False if the line of names has not arrived yet."""
        self._read_first_lines()
        if not self._pending and self._finished:
            raise SourceError(f"{self._file} is empty; there is nothing to learn from")
        lines_read = bytes(self._pending).splitlines(keepends=True)
        whole = [line for line in lines_read if line.endswith((b"\n", b"\r"))] if self._hold else lines_read
        if not any(line.strip() for line in whole):
            return False
        self._is_utf8 = _is_utf8(b"".join(whole[: 4 * SAMPLE_ROWS]))
        self._delimiter = sniff_delimiter(list(map(self._decode, whole[:SHOWN_LINES])))
        first = self._block()
        if first is None:
            return False
        if first.fault is not None:
            raise SourceError(f"{self._file}: {first.fault} in its line of column names")
        head = self._decode(b"\n".join(first.data.split(b"\n", SHOWN_LINES)[:SHOWN_LINES]))
        self.dialect = lay_out(head, self._delimiter, self._rules.decimal)
        self.columns = self.dialect.names
        skip = self._n_bytes(head[: self.dialect.skip])
        self._body = first.start + skip
        self._restart(first.data[skip:] + bytes(self._pending), self._body)
        return True

    def _read_first_lines(self) -> None:
        """Read the first lines; convert all line ends to line feeds."""
        while not (self._finished or _returns_end_lines(self._pending)):
            if len(self._pending) >= lines.BLOCK and b"\n" in self._pending:
                break
            self._read_more()
        if _returns_end_lines(self._pending):
            read = self._read
            self._read = lambda most: read(most).replace(b"\r", b"\n")
            self._restart(bytes(self._pending).replace(b"\r", b"\n"), self.offset)
        if self._pending.startswith(_BYTE_ORDER_MARK):
            self._restart(bytes(self._pending[3:]), 3)
        while self._pending.startswith((b"\n", b"\r")):  # empty lines above the names
            self._restart(bytes(self._pending[1:]), self.offset + 1)

    def _sample(self) -> tuple[list[list[str]], bytes]:
        """Return the first records with one cell per column, and all bytes read to find them."""
        seen = bytearray()
        found: list[list[str]] = []
        while len(found) < SAMPLE_ROWS and (block := self._block()) is not None:
            seen += block.data
            if block.fault is None:
                heading = self.dialect.heading if self.dialect is not None else ()
                whole = (values for values in self._records(block.data)[0] if len(values) == len(self.columns))
                whole = (values for values in whole if tuple(map(str.strip, values)) != heading)
                found += islice(whole, SAMPLE_ROWS - len(found))
        return found, bytes(seen)

    # Cutting -------------------------------------------------------------------------------------------------------

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
        if end and quotes_are_plain(data[:end], delimiter):
            return end, None
        ends, opened = record_ends(data, delimiter)
        if ends.size:
            return int(ends[-1]), None
        if opened is not None and (line := data.find(b"\n", opened) + 1):
            given_up = len(data) - line > records.LONGEST_QUOTED or closed_wrongly(data, opened)
            given_up = given_up or (self._finished and not self._hold and len(data) == len(self._pending))
            return (line, _OPEN_QUOTE) if given_up else (0, None)
        return 0, None

    def _fault_at_end(self) -> str | None:
        opened = record_ends(bytes(self._pending), self._delimiter.encode())[1]
        return None if opened is None else _OPEN_QUOTE

    # Parsing -------------------------------------------------------------------------------------------------------

    def _parse_fast(self, block: Block, columns: Columns) -> Batch | None:
        try:
            import pyarrow as pa
            from pyarrow import csv as arrow_csv
        except ImportError:
            return None
        from ccmem.io.streams.arrow import from_table

        data = block.data
        if self._delimiter == WHITESPACE or (columns.label is not None and columns.text_labels is False):
            return None  # runs of spaces, or labels that must be converted to numbers
        if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
            return None  # a lone carriage return also ends a line
        if data.startswith(_BYTE_ORDER_MARK):
            return None  # pyarrow would drop it: whether the row is read must not depend on where a block begins
        texts = [*columns.time, *columns.texts, *([columns.label] if columns.label is not None else [])]
        types = {name: pa.float64() for name in columns.features} | {name: pa.string() for name in texts}
        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(data),
                arrow_csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=self.columns),
                arrow_csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=b'"' in data),
                arrow_csv.ConvertOptions(
                    column_types=types,
                    include_columns=[*columns.features, *dict.fromkeys(texts)],
                    null_values=columns.cells.spellings,
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=True,
                    decimal_point=columns.cells.decimal,
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
        if len(ends) != table.num_rows:
            return None
        return from_table(table, columns, block.start + ends)

    def _parse_slowly(self, block: Block, columns: Columns) -> Batch:
        """Parse column by column, converting every number once."""
        width = len(self.columns)
        if block.fault is not None:
            found, ends = [[""] * width], np.array([len(block.data)])
            faults: Faults = {0: (None, block.fault)}
        else:
            found, ends = self._rows(block.data, columns)
            faults = {}
        if not set(map(len, found)) <= {width}:
            for row, values in enumerate(found):
                if len(values) != width:
                    faults[row] = (None, f"has {len(values)} values under {width} column names")
                    found[row] = [""] * width
        by_column: Sequence[Sequence[str]] = list(zip(*found, strict=True)) if found else [()] * width
        cells = {name: by_column[i] for i, name in enumerate(self.columns)}
        X = np.empty((len(found), len(columns.features)), columns.dtype)
        ordinary = is_ordinary(block.data)
        with np.errstate(over="ignore"):
            for place, name in enumerate(columns.features):
                X[:, place], wrong = columns.cells.numbers(cells[name], ordinary)
                for row in wrong:
                    faults.setdefault(row, (name, f"{shown(cells[name][row])} is not a number"))
        labels = times = None
        if columns.label is not None:
            labels, wrong_labels = _labels(cells[columns.label], columns)
            faults = wrong_labels | faults
        if columns.time:
            times = read_times([cells[name] for name in columns.time], columns.time_format, columns.cells)
        texts = [_known_texts(name, cells[name], columns, faults) for name in columns.texts]
        return Batch(X, labels, faults, block.start + ends, times, texts)

    def _rows(self, data: bytes, columns: Columns) -> tuple[list[list[str]], IntArray]:
        """Return the records of ``data`` without comments and repeated lines of names."""
        found, ends = self._records(data)
        heading = () if self.dialect is None else self.dialect.heading
        if all(mark.isascii() and mark.encode() not in data for mark in (*COMMENTS, *filter(None, heading[:1]))):
            return found, ends
        numeric = self.columns[0] in columns.features
        kept = [
            place
            for place, values in enumerate(found)
            if not (values[0].startswith(COMMENTS) and (numeric or len(values) != len(self.columns)))
            and tuple(map(str.strip, values)) != heading
        ]
        return [found[place] for place in kept], ends[kept]

    def _records(self, data: bytes) -> tuple[list[list[str]], IntArray]:
        """Return the values of every record in ``data``, and the end offsets of the records."""
        text = self._decode(data)
        found, ends = split_records(text, self._delimiter)
        if len(text) < len(data):  # offsets count bytes
            sizes = [self._n_bytes(text[a:b]) for a, b in pairwise([0, *ends.tolist()])]
            ends = np.cumsum(np.array(sizes, np.int64))
        return found, ends

    def _decode(self, data: bytes) -> str:
        """Return the text of ``data``; a byte that is not UTF-8 becomes a lone surrogate, which no label may hold."""
        if self._is_utf8:
            return data.decode("utf-8", "surrogateescape")
        return codecs.charmap_decode(data, "strict", _WINDOWS)[0]

    def _n_bytes(self, text: str) -> int:
        """Return the length of ``text`` in the file."""
        return len(text.encode("utf-8", "surrogateescape")) if self._is_utf8 else len(text)


def _labels(cells: Sequence[str], columns: Columns) -> tuple[Labels, Faults]:
    known: dict[str, Any] = dict.fromkeys(columns.cells.spellings)
    for cell in set(cells) - known.keys():
        if columns.text_labels is False and is_number(cell):
            known[cell] = int(cell) if cell.lstrip("+-").isdigit() else float(cell)
        else:
            known[cell] = cell
    return code_labels([known[cell] for cell in cells], columns.label)


def _known_texts(name: str, cells: Sequence[str], columns: Columns, faults: Faults) -> list[str | None]:
    found: list[str | None] = [None if cell.strip().lower() in columns.cells.markers else cell for cell in cells]
    for row, cell in enumerate(cells):
        if not (cell.isascii() or _is_utf8(cell.encode("utf-8", "surrogateescape"))):
            faults.setdefault(row, (name, f"{shown(cell)} {NOT_UTF8}"))
            found[row] = None
    return found


def _returns_end_lines(data: bytes | bytearray) -> bool:
    """True if the first line ends with a lone carriage return, as written by old loggers."""
    first = data.find(b"\r")
    return 0 <= first < len(data) - 1 and data[first + 1 : first + 2] != b"\n" and data.find(b"\n", 0, first) < 0


def _is_utf8(data: bytes) -> bool:
    """True if ``data`` is valid UTF-8; other text is taken for Windows-1252."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
