"""NDJSON: one JSON object per line."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from typing import Any

import numpy as np

from ccmem.io.streams.errors import Faults, SourceError
from ccmem.io.streams.lines import Block, LineTable
from ccmem.io.streams.records import CellFormat, line_ends
from ccmem.io.streams.schema import SAMPLE_ROWS, Columns, infer, read_times
from ccmem.io.streams.tables import Batch, code_labels
from ccmem.io.streams.timestamps import UNITS


class NDJSONTable(LineTable):
    """An NDJSON file or pipe."""

    open_ended = True

    def _open(self) -> None:
        seen = b""
        found: list[dict[str, Any]] = []
        while len(found) < SAMPLE_ROWS and (block := self._block()) is not None:
            seen += block.data
            records = (_read(line)[0] for line in block.data.split(b"\n"))
            whole = (record for record in records if record and _TWICE not in record.values())
            found += itertools.islice(whole, SAMPLE_ROWS - len(found))
        if not seen and not (self._hold and self._pending):
            raise SourceError(f"{self._file} is empty; an NDJSON file holds one JSON object per line")
        if not found and seen.strip():
            raise SourceError(f"{self._file} holds no JSON object in its first lines; NDJSON has one per line")
        self._restart(seen + bytes(self._pending), 0)
        self.has_rows = bool(found)
        self.columns = list(dict.fromkeys(name for record in found for name in record))
        sample = {name: _sampled([record.get(name) for record in found]) for name in self.columns}
        self.schema = infer(sample, self._rules, CellFormat(missing=self._rules.missing))

    def _parse_fast(self, block: Block, columns: Columns) -> Batch | None:
        try:
            import pyarrow as pa
            from pyarrow import json as arrow_json
        except ImportError:
            return None
        from ccmem.io.streams.arrow import from_table

        data = block.data
        if columns.time or (columns.label is not None and columns.text_labels is None):
            return None
        # one object on two lines and two on one line would cancel out, so every line end must lie between objects
        n_rows = data.strip().count(b"\n") + 1
        if data[:1].isspace() or n_rows != data.count(b"}\n{") + data.count(b"}\r\n{") + 1:
            return None
        fields = [(name, pa.float64()) for name in columns.features]
        if columns.label is not None:
            fields.append((columns.label, pa.string() if columns.text_labels else pa.int64()))
        try:
            table = arrow_json.read_json(
                pa.BufferReader(data),
                arrow_json.ReadOptions(use_threads=False, block_size=len(data) + 1),
                arrow_json.ParseOptions(explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore"),
            )
        except (pa.ArrowException, UnicodeEncodeError):  # a name may hold a lone surrogate
            return None
        if table.num_rows != n_rows:
            return None
        return from_table(table, columns, block.start + line_ends(data)[:n_rows])

    def _parse_slowly(self, block: Block, columns: Columns) -> Batch:
        found: list[dict[str, Any]] = []
        ends: list[int] = []
        faults: Faults = {}
        start = 0
        for end in line_ends(block.data).tolist():
            line, start = block.data[start:end], end
            if line.strip():
                record, fault = _read(line)
                if fault:
                    faults[len(found)] = None, fault
                found.append(record)
                ends.append(block.start + end)
        markers = columns.cells.markers
        X = np.empty((len(found), len(columns.features)), columns.dtype)
        with np.errstate(over="ignore"):
            for place, name in enumerate(columns.features):
                values = [record.get(name) for record in found]
                numbers = [_number(value) for value in values]
                X[:, place] = np.array(numbers, np.float64)  # None becomes NaN
                for row, (value, number) in enumerate(zip(values, numbers, strict=True)):
                    missing = value is None or (isinstance(value, str) and value.strip().lower() in markers)
                    if number is None and not missing:
                        faults.setdefault(row, (name, _complaint(value)))
        labels = times = None
        if columns.label is not None:
            absent = frozenset(columns.cells.spellings)
            values = [record.get(columns.label) for record in found]
            values = [None if isinstance(v, str) and v in absent else v for v in values]
            labels, wrong = code_labels(values, columns.label)
            faults = wrong | faults
        if columns.time:
            parts: list[Any] = [[record.get(name) for record in found] for name in columns.time]
            if columns.time_format in UNITS:
                numbers = [value if isinstance(value, (int, float)) else None for value in parts[0]]
                parts = [np.array(numbers, np.float64)]
            else:
                parts = [["" if value is None else str(value) for value in part] for part in parts]
            times = read_times(parts, columns.time_format, columns.cells)
        return Batch(X, labels, faults, np.array(ends, np.int64), times)


class _Twice:
    def __repr__(self) -> str:
        return "a value named twice"


_TWICE = _Twice()
"""Sentinel value of a name that occurs twice in an object.

Only learned columns are checked for it, because pyarrow, which reads most blocks, ignores other names.
"""


def _read(line: bytes) -> tuple[dict[str, Any], str]:
    """Return the object in a line and an empty text, or an empty object and the fault of the line."""
    try:
        record = json.loads(line, object_pairs_hook=_noting_doubles)
    except (ValueError, RecursionError) as problem:
        return {}, f"is not JSON ({str(problem)[:80]})"
    return (record, "") if isinstance(record, dict) else ({}, "is not a JSON object")


def _noting_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        times = Counter(name for name, _ in pairs)
        found.update({name: _TWICE for name, n in times.items() if n > 1})
    return found


def _sampled(values: list[Any]) -> Any:
    """Return the values of a column as an array if they are numbers, otherwise as texts."""
    numbers = [_number(value) for value in values]
    texts = sum(isinstance(value, str) for value in values)
    strange = sum(value is not None for value in values) - texts - sum(number is not None for number in numbers)
    if not strange and texts <= 0.2 * len(values) and any(number is not None for number in numbers):
        return np.array(numbers, np.float64)  # None becomes NaN
    return ["" if value is None else value if isinstance(value, str) else f"{value!r} (JSON)" for value in values]


def _number(value: Any) -> float | None:
    """Return a JSON number as a float; None for any other value."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _complaint(value: Any) -> str:
    if value is _TWICE:
        return "is named twice"
    try:
        return f"{str(value)[:60]!r} is not a number"
    except ValueError:  # too many digits to print
        return "is not a number that fits"
