"""Parquet, Arrow files and streams, and every frame that speaks Arrow's C interface. Needs pyarrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ccmem._codes import UNLABELED
from ccmem._typing import IntArray
from ccmem.streams.tables import Batch, Columns, Labels, SourceError, code_labels, side_by_side


def pyarrow() -> Any:
    """The pyarrow package, or an error that says how to get it."""
    try:
        import pyarrow as pa
    except ImportError as problem:
        raise ImportError('Parquet and Arrow need pyarrow: pip install "ccmem[io]"') from problem
    return pa


class ArrowTable:
    """Rows of record batches. ``batches_after(skip)`` gives them, how many of the skipped rows they still hold, and
    how many bytes of the file hold them and all before them (None: the whole file)."""

    open_ended = in_place = False

    def __init__(self, file: str, schema: Any, batches_after: Any, close: Any = lambda: None) -> None:
        pa = pyarrow()
        self._file, self._batches_after, self.close = file, batches_after, close
        self.columns = list(schema.names)
        self.undecided: list[str] = []
        self.numeric = [
            field.name for field in schema if _is_numeric(pa, field.type) and not pa.types.is_boolean(field.type)
        ]
        small = (
            pa.types.is_float32,
            pa.types.is_float16,
            pa.types.is_int8,
            pa.types.is_uint8,
            pa.types.is_int16,
            pa.types.is_uint16,
        )
        self.single = {field.name for field in schema if any(is_small(field.type) for is_small in small)}
        self._schema = schema

    def batches(self, columns: Columns, skip: int, anchor: tuple[int, int] | None) -> Iterator[Batch]:
        """See :class:`~ccmem.streams.tables.Table`."""
        pa = pyarrow()
        wanted = [*columns.features] + ([columns.label] if columns.label is not None else [])
        for name in columns.features:
            if not _is_numeric(pa, self._schema.field(name).type):
                raise SourceError(
                    f"{self._file}: column {name!r} is of type {self._schema.field(name).type}, not numeric; name the "
                    "numeric columns with --features"
                )
        at_a_time = columns.rows_at_a_time
        try:
            for batch, surplus, end in self._batches_after(skip, wanted, at_a_time):
                batch = batch.select(wanted)
                batch.validate(full=True)  # a file may lie about the lengths inside
                for start in range(surplus, batch.num_rows, at_a_time):
                    part = batch.slice(start, at_a_time)
                    ends = None if end is None else np.full(part.num_rows, end, np.int64)
                    yield from_table(part, columns, ends)
        except (pa.ArrowException, NotImplementedError) as problem:
            raise SourceError(f"{self._file} cannot be read: {str(problem)[:300]}") from problem


def from_table(table: Any, columns: Columns, ends: IntArray | None = None) -> Batch:
    """A batch of an Arrow table or record batch that has the wanted columns."""
    pa = pyarrow()
    arrays = []
    for name in columns.features:
        column = table.column(name)
        if pa.types.is_decimal(column.type) or pa.types.is_boolean(column.type):
            column = column.cast(pa.float64())
        chunked = isinstance(column, pa.ChunkedArray)
        arrays.append(column.to_numpy() if chunked else column.to_numpy(zero_copy_only=False))
    X = side_by_side(arrays, table.num_rows, columns.dtype)
    if columns.label is None:
        return Batch(X, None, {}, ends)
    labels, faults = _labels(pa, table.column(columns.label))
    return Batch(X, labels, {row: (columns.label, what) for row, what in faults.items()}, ends)


def _labels(pa: Any, column: Any) -> tuple[Labels, dict[int, str]]:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = column.chunk(0) if column.num_chunks else pa.array([], column.type)
    if pa.types.is_null(column.type):
        return Labels(np.full(len(column), UNLABELED, np.int64), []), {}
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    raw = column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    values, wrong = code_labels(column.dictionary.to_pylist())
    places = np.append(values.codes, UNLABELED)
    faults = {}
    if wrong:
        faults = {int(row): wrong[int(raw[row])] for row in np.flatnonzero(np.isin(raw, list(wrong)))}
    return Labels(places[raw], values.values), faults


def _is_numeric(pa: Any, kind: Any) -> bool:
    t = pa.types
    return bool(t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind) or t.is_boolean(kind))


def open_parquet(file: str) -> ArrowTable:
    """A Parquet file, row group by row group."""
    pa = pyarrow()
    from pyarrow import parquet

    try:
        source = parquet.ParquetFile(file, memory_map=False, pre_buffer=False)
    except (pa.ArrowException, NotImplementedError) as problem:
        raise SourceError(f"{file} is not a Parquet file that can be read: {str(problem)[:300]}") from problem

    def batches_after(skip: int, wanted: list[str], at_a_time: int) -> Iterator[tuple[Any, int, int | None]]:
        for group in range(source.num_row_groups):
            facts = source.metadata.row_group(group)
            rows, end = facts.num_rows, _end_of_group(facts)
            if skip >= rows:
                skip -= rows
                continue
            for batch in source.iter_batches(at_a_time, row_groups=[group], columns=wanted, use_threads=False):
                surplus = min(skip, batch.num_rows)
                skip -= surplus
                if surplus < batch.num_rows:
                    yield batch, surplus, end

    return ArrowTable(file, source.schema_arrow, batches_after, source.close)


def _end_of_group(facts: Any) -> int:
    """Where the pages of a row group end in its file."""
    end = 0
    for i in range(facts.num_columns):
        column = facts.column(i)
        start = column.data_page_offset
        if column.has_dictionary_page and 0 < column.dictionary_page_offset < start:
            start = column.dictionary_page_offset
        end = max(end, start + column.total_compressed_size)
    return end


def open_ipc(file: str, stream: Any = None) -> ArrowTable:
    """An Arrow IPC file (or Feather), or an Arrow IPC stream: the file or ``stream`` says which."""
    pa = pyarrow()
    handle = stream
    try:
        if stream is None:
            handle = pa.OSFile(file, "r")  # not mapped: a file that is cut short would end the process
            if handle.read(6) == b"ARROW1":
                handle.seek(0)
                reader = pa.ipc.open_file(handle)
                indices = range(reader.num_record_batches)
                return _of_reader(file, reader.schema, (reader.get_batch(i) for i in indices), handle.close)
            handle.seek(0)
        reader = pa.ipc.open_stream(handle)
    except (pa.ArrowException, OSError) as problem:
        if isinstance(problem, FileNotFoundError):
            raise
        raise SourceError(f"{file} is not an Arrow file or stream that can be read: {str(problem)[:300]}") from problem
    return _of_reader(file, reader.schema, reader, handle.close if stream is None else lambda: None)


def _of_reader(file: str, schema: Any, batches: Iterable[Any], close: Any = lambda: None) -> ArrowTable:
    def batches_after(skip: int, wanted: list[str], at_a_time: int) -> Iterator[tuple[Any, int, int | None]]:
        for batch in batches:
            surplus = min(skip, batch.num_rows)
            skip -= surplus
            if surplus < batch.num_rows:
                yield batch, surplus, None

    return ArrowTable(file, schema, batches_after, close)


def open_frame(frame: Any) -> ArrowTable:
    """A pandas or polars frame, an Arrow table, or anything else with Arrow's C stream or the dataframe interface."""
    pa = pyarrow()
    if hasattr(frame, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(frame)
        return _of_reader("the frame", reader.schema, reader)
    from pyarrow import interchange

    table = interchange.from_dataframe(frame)
    return _of_reader("the frame", table.schema, table.to_batches())
