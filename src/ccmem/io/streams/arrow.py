"""Parquet files, Arrow files and streams, and frames with Arrow's C interface. Requires pyarrow."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from ccmem.core.codes import UNLABELED
from ccmem.core.typing import IntArray
from ccmem.io.streams.errors import Faults, SourceError, named
from ccmem.io.streams.records import CellFormat
from ccmem.io.streams.schema import SAMPLE_ROWS, Columns, Rules, Schema, infer, read_times
from ccmem.io.streams.tables import Batch, Labels, Table, code_labels, side_by_side


def pyarrow() -> Any:
    """Return the pyarrow package, or raise an error that says how to install it."""
    try:
        import pyarrow as pa
    except ImportError as problem:
        raise ImportError("Parquet and Arrow need pyarrow: pip install pyarrow") from problem
    return pa


class ArrowTable(Table):
    """Rows of Arrow record batches.

    ``batches_after(skip)`` yields record batches, the number of rows before each of them, and the number of
    bytes of the file up to its end (None: the whole file). It may leave out batches of the first ``skip`` rows.
    """

    def __init__(self, file: str, types: Any, batches_after: Any, close: Any, first: Any, rules: Rules) -> None:
        """Open record batches; ``first`` returns a record batch of sample rows, None if there are no rows."""
        self._file, self._batches_after, self.close, self._first, self._rules = file, batches_after, close, first, rules
        self.types = types
        """Declared names and types of the columns."""
        self.columns: list[str] = list(types.names)
        pa = pyarrow()
        learnable = [field for field in types if _is_learnable(pa, field.type)]
        self.single = {f.name for f in learnable if np.can_cast(f.type.to_pandas_dtype(), np.float32)}

    @cached_property
    def schema(self) -> Schema:
        """Roles of the columns; the declared types decide what is a number."""
        pa = pyarrow()
        sample: dict[str, Any] = {}
        with named(self._file):
            first = self._first()
            for name in self.columns:
                if self.columns.count(name) == 1:
                    none = pa.nulls(0, self.types.field(name).type)  # of any type, also those that pa.array cannot make
                    sample[name] = _plain(pa, none if first is None else first.column(name).slice(0, SAMPLE_ROWS))
        found = infer(sample, self._rules, CellFormat(missing=self._rules.missing))
        for i, column in enumerate(found.columns):
            kind = self.types.field(column.name).type
            learnable = _is_learnable(pa, kind)
            if column.kind in ("number", "counter") and not learnable:
                found.columns[i] = column._replace(kind="text", why=f"of type {kind}")
            elif column.kind == "empty" and learnable:
                found.columns[i] = column._replace(kind="number", why="")
        return found

    def batches(self, columns: Columns, skip: int, end: int | None) -> Iterator[Batch]:
        """Yield batches of rows."""
        pa = pyarrow()
        label = () if columns.label is None else (columns.label,)
        wanted = list(dict.fromkeys((*columns.features, *label, *columns.time, *columns.texts)))
        for name in columns.features:
            if not _is_numeric(pa, kind := self.types.field(name).type):
                raise SourceError(
                    f"{self._file}: column {name!r} is of type {kind}, not numeric; name the numeric columns with "
                    "--features"
                )
        at_a_time = columns.rows_at_a_time
        for batch, row, end in self._batches_after(skip, wanted, at_a_time):
            if row + batch.num_rows <= skip:
                continue
            batch = batch.select(wanted)
            batch.validate(full=True)  # lengths inside a file may be wrong
            for start in range(max(skip - row, 0), batch.num_rows, at_a_time):
                part = batch.slice(start, at_a_time)
                yield from_table(part, columns, None if end is None else np.full(part.num_rows, end, np.int64))


def from_table(table: Any, columns: Columns, ends: IntArray | None = None) -> Batch:
    """Return a batch from an Arrow table or record batch that has the wanted columns."""
    pa = pyarrow()
    arrays = []
    for name in columns.features:
        column = table.column(name)
        if pa.types.is_decimal(column.type) or pa.types.is_boolean(column.type):
            column = column.cast(pa.float64())
        arrays.append(column.to_numpy(zero_copy_only=False))
    labels = times = None
    faults: Faults = {}
    if columns.time:
        times = read_times(
            [_plain(pa, table.column(name)) for name in columns.time], columns.time_format, columns.cells
        )
    if columns.label is not None:
        labels, faults = _labels(pa, table.column(columns.label), columns.label)
    texts = [table.column(name) for name in columns.texts]
    return Batch(side_by_side(arrays, table.num_rows, columns.dtype), labels, faults, ends, times, texts)


def _plain(pa: Any, column: Any) -> Any:
    """Return a column as an array of numbers or of times (in UTC), or otherwise as a list of texts."""
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        moments = column.cast(pa.timestamp("us", getattr(kind, "tz", None)), safe=False)
        counts = moments.cast(pa.int64()).fill_null(np.iinfo(np.int64).min)
        return np.array(counts.to_numpy(zero_copy_only=False)).view("datetime64[us]")
    if _is_learnable(pa, kind):
        return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return ["" if value is None else str(value) for value in column.to_pylist()]


def _is_learnable(pa: Any, kind: Any) -> bool:
    return _is_numeric(pa, kind) and not pa.types.is_boolean(kind)


def _labels(pa: Any, column: Any, name: str) -> tuple[Labels, Faults]:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = column.chunk(0) if column.num_chunks else pa.array([], column.type)
    if pa.types.is_null(column.type):
        return Labels(np.full(len(column), UNLABELED, np.int64), []), {}
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    rows = column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return code_labels(column.dictionary.to_pylist(), name, rows)


def _is_numeric(pa: Any, kind: Any) -> bool:
    t = pa.types
    return bool(t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind) or t.is_boolean(kind))


def open_parquet(file: str, rules: Rules) -> ArrowTable:
    """Open a Parquet file, read by row group."""
    pyarrow()
    from pyarrow import parquet

    source = parquet.ParquetFile(file, memory_map=False, pre_buffer=False)

    def batches_after(skip: int, wanted: list[str], at_a_time: int) -> Iterator[tuple[Any, int, int | None]]:
        row = 0
        for group in range(source.num_row_groups):
            facts = source.metadata.row_group(group)
            if row + facts.num_rows <= skip:
                row += facts.num_rows
                continue
            for batch in source.iter_batches(at_a_time, row_groups=[group], columns=wanted, use_threads=False):
                yield batch, row, _end_of_group(facts)
                row += batch.num_rows

    def first() -> Any:
        return next(iter(source.iter_batches(SAMPLE_ROWS, use_threads=False)), None)

    return ArrowTable(file, source.schema_arrow, batches_after, source.close, first, rules)


def _end_of_group(facts: Any) -> int:
    """Return the offset at which the pages of a row group end in its file."""
    end = 0
    for i in range(facts.num_columns):
        column = facts.column(i)
        start = column.data_page_offset
        if column.has_dictionary_page and 0 < column.dictionary_page_offset < start:
            start = column.dictionary_page_offset
        end = max(end, start + column.total_compressed_size)
    return end


def open_ipc(file: str, rules: Rules, stream: Any = None) -> ArrowTable:
    """Open an Arrow IPC file (or Feather file) or an Arrow IPC stream; the first bytes decide which."""
    pa = pyarrow()
    if stream is not None:
        reader = pa.ipc.open_stream(stream)
        return _of_reader(file, reader.schema, reader, lambda: None, rules)
    handle = pa.OSFile(file, "r")  # not memory-mapped: truncating a mapped file kills the process
    is_file = handle.read(6) == b"ARROW1"
    handle.seek(0)
    reader = pa.ipc.open_file(handle) if is_file else pa.ipc.open_stream(handle)
    batches = map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader
    return _of_reader(file, reader.schema, batches, handle.close, rules)


def _of_reader(file: str, schema: Any, batches: Iterable[Any], close: Any, rules: Rules) -> ArrowTable:
    rest = iter(batches)
    first = next((batch for batch in rest if batch.num_rows), None)
    if first is not None:
        first.validate(full=True)  # lengths inside a file may be wrong

    def batches_after(skip: int, wanted: list[str], at_a_time: int) -> Iterator[tuple[Any, int, int | None]]:
        row = 0
        for batch in itertools.chain([] if first is None else [first], rest):
            yield batch, row, None
            row += batch.num_rows

    return ArrowTable(file, schema, batches_after, close, lambda: first, rules)


def open_frame(frame: Any) -> ArrowTable:
    """Open a pandas or polars frame, an Arrow table, or any object with Arrow's C stream or the dataframe interface."""
    pa = pyarrow()
    if hasattr(frame, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(frame)
        return _of_reader("the frame", reader.schema, reader, lambda: None, Rules())
    from pyarrow import interchange

    table = interchange.from_dataframe(frame)
    return _of_reader("the frame", table.schema, table.to_batches(), lambda: None, Rules())
