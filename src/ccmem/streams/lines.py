"""CSV and NDJSON, from a file or a pipe: blocks of whole lines, each learned as soon as it has arrived.

pyarrow parses a block where it is installed and finds nothing wrong; otherwise the block is parsed line by line in
Python, which defines what is right and knows which row and column is not. Both give the same values.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ccmem.streams.tables import Batch, Columns, Labels, SourceError, code_labels

BLOCK = 1 << 20
LONGEST_LINE = 64 << 20

Read = Callable[[int], bytes]
"""Some bytes, at most so many, as soon as there are any; none at the end."""


class LineTable:
    """What CSV and NDJSON share: cutting a stream of bytes after whole records."""

    columns: list[str]
    numeric: list[str]
    single: set[str]
    open_ended = False
    quoted = False
    """Whether line ends inside quotes belong to a value."""

    def __init__(self, file: str, read: Read, seek: Callable[[int], Any] | None, close: Callable[[], Any]) -> None:
        self._file, self._read, self._seek, self.close = file, read, seek, close
        self.single = set()
        self._pending = b""
        self.offset = 0  # of the first byte not yet handed over
        self._body = 0
        self._ended = False

    def batches(self, columns: Columns, skip: int, anchor: tuple[int, int] | None) -> Iterator[Batch]:
        """See :class:`~ccmem.streams.tables.Table`."""
        row = 0
        if self._seek is not None and anchor is not None and self._body <= anchor[1] and anchor[0] <= skip:
            row = anchor[0]
            self._seek(anchor[1])
            self._pending, self.offset, self._ended = b"", anchor[1], False
        while True:
            start = self.offset
            block = self._block()
            if block is None:
                return
            batch = self._parse(block, columns)
            columns = columns.knowing(batch.labels)
            n_rows = len(batch.X)
            if row + n_rows > skip:
                cut = max(skip - row, 0)
                if cut:
                    labels = None if batch.labels is None else batch.labels.take(slice(cut, None))
                    faults = {r - cut: fault for r, fault in batch.faults.items() if r >= cut}
                    batch = Batch(batch.X[cut:], labels, faults)
                yield batch if cut else batch._replace(offset=start)
            row += n_rows

    def _block(self, most: int = BLOCK) -> bytes | None:
        """The next whole records that are at hand, at least one; None at the end."""
        while True:
            if self._ended:
                block, self._pending = self._pending, b""
                self.offset += len(block)
                return block or None
            end = self._last_end(self._pending)
            if end:
                block, self._pending = self._pending[:end], self._pending[end:]
                self.offset += end
                return block
            if len(self._pending) > LONGEST_LINE:
                raise SourceError(
                    f"{self._file}: a record is longer than {LONGEST_LINE >> 20} MiB; is a quote left open, or is this "
                    "not a text file?"
                )
            more = self._read(most)
            self._pending += more
            self._ended = not more

    def _last_end(self, data: bytes) -> int:
        """Where the last whole record of ``data`` ends; 0 if none does."""
        end = data.rfind(b"\n") + 1
        if not self.quoted or not end or b'"' not in data:
            return end
        characters = np.frombuffer(data, np.uint8)
        open_quotes = np.cumsum(characters == ord('"')) % 2
        ends = np.flatnonzero((characters == ord("\n")) & (open_quotes == 0))
        return int(ends[-1]) + 1 if ends.size else 0

    def _parse(self, block: bytes, columns: Columns) -> Batch:
        batch = self._parse_fast(block, columns)
        return batch if batch is not None else self._parse_slowly(block, columns)

    def _parse_fast(self, block: bytes, columns: Columns) -> Batch | None:
        raise NotImplementedError

    def _parse_slowly(self, block: bytes, columns: Columns) -> Batch:
        raise NotImplementedError


class CSVTable(LineTable):
    """Comma, semicolon or tab separated values under a line of column names."""

    quoted = True

    def __init__(self, file: str, read: Read, seek: Callable[[int], Any] | None, close: Callable[[], Any]) -> None:
        super().__init__(file, read, seek, close)
        first = self._block()
        if first is None:
            raise SourceError(f"{file} is empty; a CSV file begins with a line of column names")
        end = self._header_end(first)
        header, rest = first[:end], first[end:]
        self._pending, self.offset, self._body = rest + self._pending, end, end
        text = header.decode("utf-8-sig", "replace")
        self._delimiter = max(",;\t", key=text.count)
        self.columns = next(csv.reader(io.StringIO(text, newline=""), delimiter=self._delimiter), [])
        if not any(self.columns) or all(_is_number(name) for name in self.columns):
            raise SourceError(f"{file}: its first line {text.strip()[:60]!r} has no column names; add a header line")
        record = next(
            csv.reader(io.StringIO(rest.decode("utf-8", "replace"), newline=""), delimiter=self._delimiter), []
        )
        self.numeric = [name for name, value in zip(self.columns, record, strict=False) if _is_number(value)]

    def _header_end(self, block: bytes) -> int:
        position = block.find(b"\n") + 1
        while position and block[:position].count(b'"') % 2:
            position = block.find(b"\n", position) + 1
        return position or len(block)

    def _parse_fast(self, block: bytes, columns: Columns) -> Batch | None:
        try:
            import pyarrow as pa
            from pyarrow import csv as arrow_csv
        except ImportError:
            return None
        from ccmem.streams.arrow import from_table

        wanted = list(columns.features) + ([columns.label] if columns.label is not None else [])
        types = {name: pa.float64() for name in columns.features}
        if columns.label is not None:
            types[columns.label] = pa.string()
        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(block),
                arrow_csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=self.columns),
                arrow_csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=b'"' in block),
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
        if columns.label is not None and columns.text_labels is False:
            return None  # labels must be turned into numbers
        return from_table(table, columns)

    def _parse_slowly(self, block: bytes, columns: Columns) -> Batch:
        places = [self.columns.index(name) for name in columns.features]
        label_place = None if columns.label is None else self.columns.index(columns.label)
        rows: list[list[float]] = []
        labels: list[Any] = []
        faults: dict[int, tuple[str | None, str]] = {}
        reader = csv.reader(io.StringIO(block.decode("utf-8", "replace"), newline=""), delimiter=self._delimiter)
        while True:
            row, numbers = len(rows), [np.nan] * len(places)
            label: Any = None
            try:
                record = next(reader, None)
            except csv.Error as problem:
                record = []
                faults[row] = (None, str(problem))
            if record is None:
                break
            if not record and row not in faults:
                continue  # an empty line
            if row not in faults and len(record) != len(self.columns):
                faults[row] = (None, f"has {len(record)} values under {len(self.columns)} column names")
            if row not in faults:
                for i, place in enumerate(places):
                    if _is_number(record[place]):
                        numbers[i] = float(record[place])
                    elif record[place]:
                        faults[row] = (columns.features[i], f"{record[place][:60]!r} is not a number")
                        break
                if label_place is not None:
                    label = record[label_place] or None
                    if columns.text_labels is False and label is not None and _is_number(label):
                        label = float(label) if not label.lstrip("+-").isdigit() else int(label)
            rows.append(numbers)
            labels.append(label)
        return _batch(rows, labels, faults, columns)


class NDJSONTable(LineTable):
    """One JSON object a line."""

    open_ended = True

    def __init__(self, file: str, read: Read, seek: Callable[[int], Any] | None, close: Callable[[], Any]) -> None:
        super().__init__(file, read, seek, close)
        first = self._block()
        if first is None:
            raise SourceError(f"{file} is empty; an NDJSON file holds one JSON object a line")
        self._pending, self.offset = first + self._pending, 0
        record: Any = None
        for line in first.splitlines():
            if line.strip():
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError):
                    continue
                if isinstance(record, dict):
                    break
        if not isinstance(record, dict):
            raise SourceError(f"{file} holds no JSON object in its first lines; NDJSON has one a line")
        self.columns = list(record)
        self.numeric = [name for name, v in record.items() if isinstance(v, (int, float)) and not isinstance(v, bool)]

    def _parse_fast(self, block: bytes, columns: Columns) -> Batch | None:
        try:
            import pyarrow as pa
            from pyarrow import json as arrow_json
        except ImportError:
            return None
        from ccmem.streams.arrow import from_table

        if columns.label is not None and columns.text_labels is None:
            return None
        fields = [(name, pa.float64()) for name in columns.features]
        if columns.label is not None:
            fields.append((columns.label, pa.string() if columns.text_labels else pa.int64()))
        try:
            table = arrow_json.read_json(
                pa.BufferReader(block),
                arrow_json.ReadOptions(use_threads=False, block_size=len(block) + 1),
                arrow_json.ParseOptions(explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore"),
            )
        except pa.ArrowException:
            return None
        # an object over two lines and two on one line would cancel out, so every line end must stand between objects
        ends = block.strip().count(b"\n")
        plain = ends == block.count(b"}\n{") + block.count(b"}\r\n{")
        return from_table(table, columns) if plain and table.num_rows == ends + 1 else None

    def _parse_slowly(self, block: bytes, columns: Columns) -> Batch:
        rows: list[list[float]] = []
        labels: list[Any] = []
        faults: dict[int, tuple[str | None, str]] = {}
        for line in block.split(b"\n"):
            if not line.strip():
                continue
            row, numbers, label = len(rows), [np.nan] * len(columns.features), None
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as problem:
                record = None
                faults[row] = (None, f"is not JSON ({str(problem)[:80]})")
            if isinstance(record, dict):
                for i, name in enumerate(columns.features):
                    value = record.get(name)
                    try:
                        if isinstance(value, bool) or not isinstance(value, (int, float)):
                            raise ValueError
                        numbers[i] = float(value)
                    except (ValueError, OverflowError):
                        shown = f"{str(value)[:60]!r} is not a number" if value is not None else "is missing"
                        faults[row] = (name, shown)
                        break
                label = None if columns.label is None else record.get(columns.label)
            elif row not in faults:
                faults[row] = (None, "is not a JSON object")
            rows.append(numbers)
            labels.append(label)
        return _batch(rows, labels, faults, columns)


def _batch(rows: list[list[float]], labels: list[Any], faults: dict[int, Any], columns: Columns) -> Batch:
    coded: Labels | None = None
    if columns.label is not None:
        coded, wrong = code_labels(labels)
        for row, what in wrong.items():
            faults.setdefault(row, (columns.label, what))
    X = np.array(rows, np.float64).reshape(len(rows), len(columns.features))
    with np.errstate(over="ignore"):
        return Batch(X.astype(columns.dtype, copy=False), coded, faults)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text
