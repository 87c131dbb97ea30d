"""NDJSON: one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from ccmem.streams.lines import LOOKED_AT, Block, LineTable, Read, Records, line_ends
from ccmem.streams.tables import Batch, Columns, SourceError


class NDJSONTable(LineTable):
    """An NDJSON file or pipe."""

    open_ended = True

    def __init__(
        self, file: str, read: Read, seek: Callable[[int], Any] | None, close: Callable[[], Any], hold: bool = False
    ) -> None:
        super().__init__(file, read, seek, close, hold)
        seen = b""
        first: dict[str, Any] = {}
        count = 0
        while (not first or None in first.values()) and count < LOOKED_AT and (block := self._block()) is not None:
            seen += block.data
            for record in filter(None, map(_object_in, block.data.split(b"\n"))):
                if count < LOOKED_AT:
                    first = {name: record.get(name) if old is None else old for name, old in (first or record).items()}
                    count += 1
        if not seen and not (hold and self._pending):
            raise SourceError(f"{file} is empty; an NDJSON file holds one JSON object a line")
        if not first and seen.strip():
            raise SourceError(f"{file} holds no JSON object in its first lines; NDJSON has one a line")
        self._restart(seen + bytes(self._pending), 0)
        self.has_rows = bool(first)
        self.columns = list(first)
        for name, value in first.items():
            if value is None:
                self.undecided.append(name)
            elif isinstance(value, (int, float)) and not isinstance(value, bool):
                self.numeric.append(name)

    def _parse_fast(self, block: Block, columns: Columns) -> Batch | None:
        try:
            import pyarrow as pa
            from pyarrow import json as arrow_json
        except ImportError:
            return None
        from ccmem.streams.arrow import from_table

        data = block.data
        if columns.label is not None and columns.text_labels is None:
            return None
        # an object over two lines and two on one line would cancel out, so every line end must stand between objects
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
        except (pa.ArrowException, UnicodeEncodeError):  # a name may hold half a character
            return None
        if table.num_rows != n_rows:
            return None
        return from_table(table, columns, block.start + line_ends(data)[:n_rows])

    def _parse_slowly(self, block: Block, columns: Columns) -> Batch:
        records = Records(columns, block.start)
        start = 0
        for end in line_ends(block.data).tolist():
            line, start = block.data[start:end], end
            if not line.strip():
                continue
            try:
                record = json.loads(line, object_pairs_hook=_named_once)
            except (ValueError, RecursionError) as problem:
                records.add(None, None, (None, f"is not JSON ({str(problem)[:80]})"), end)
                continue
            if not isinstance(record, dict):
                records.add(None, None, (None, "is not a JSON object"), end)
                continue
            numbers = [_number(record.get(name)) for name in columns.features]
            wrong = next(
                (
                    name
                    for name, n in zip(columns.features, numbers, strict=True)
                    if n is None and record.get(name) is not None
                ),
                None,
            )
            fault = None if wrong is None else (wrong, _complaint(record.get(wrong)))
            label = None if columns.label is None else record.get(columns.label)
            records.add([np.nan if n is None else n for n in numbers], label, fault, end)
        return records.batch()


def _object_in(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line, object_pairs_hook=_named_once) if line.strip() else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose names differ: of two values under one name nobody knows which is meant."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("it names a value twice")
    return found


def _number(value: Any) -> float | None:
    """A JSON number as a float; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _complaint(value: Any) -> str:
    try:
        return f"{str(value)[:60]!r} is not a number"
    except ValueError:  # too many digits to print
        return "is not a number that fits"
