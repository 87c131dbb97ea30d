"""NPY and NPZ files, and arrays in memory. Nothing is unpickled, and rows are read on demand.

A numeric table has the columns "0", "1", ...; a structured array has the names of its fields. An NPZ file holds one
such table and any number of vectors of equal length, each a column under its own name (a label, for example).
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import zipfile
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from ccmem.core.typing import FloatArray
from ccmem.io.streams.errors import Faults, SourceError, named
from ccmem.io.streams.records import CellFormat
from ccmem.io.streams.schema import SAMPLE_ROWS, Column, Columns, Rules, Schema, infer, read_times
from ccmem.io.streams.tables import Batch, Table, code_labels, side_by_side

Rows = Callable[[int, int], Any]
"""Function that returns the rows from a start index to a stop index; called with increasing indices."""
_LONGEST_HEADER = 1 << 16
_MOST_COLUMNS = 1_000_000


class ArrayTable(Table):
    """Arrays of equal length, used as adjacent columns of one table."""

    def __init__(
        self,
        file: str,
        parts: dict[str, tuple[tuple[int, ...], np.dtype[Any], Rows]],
        close: Any = lambda: None,
        first_byte: int | None = None,
        rules: Rules = Rules(),  # noqa: B008
    ) -> None:
        """Open arrays; ``first_byte`` is the offset of the rows in a file that holds nothing after them."""
        self._file, self._parts, self.close, self._rules = file, parts, close, rules
        self._first_byte, self.in_place = first_byte, first_byte is not None
        tables = [name for name, (shape, dtype, _) in parts.items() if len(shape) == 2 and dtype.names is None]
        lengths = {shape[0] if len(shape) in (1, 2) else -1 for shape, _, _ in parts.values()}
        if len(lengths) != 1 or -1 in lengths or len(tables) > 1:
            shapes = ", ".join(f"{name or 'array'} {shape}" for name, (shape, _, _) in parts.items())
            raise SourceError(
                f"{file} holds {shapes or 'nothing'}; expected one table (rows, columns) and vectors of as many rows"
            )
        self._n_rows = lengths.pop()
        if max(math.prod(shape[1:]) for shape, _, _ in parts.values()) > _MOST_COLUMNS:
            raise SourceError(f"{file} has more than {_MOST_COLUMNS:,} columns")
        self._part_of: dict[str, str] = {}
        self._numeric: list[str] = []
        self.single = set()
        for part, (shape, dtype, _) in parts.items():
            for name, column in _columns(part, np.empty((0, *shape[1:]), dtype)).items():
                if name in self._part_of:
                    raise SourceError(f"{file} has more than one column {name!r}")
                self._part_of[name] = part
                if column.dtype.kind in "fiu" and column.ndim == 1:
                    self._numeric.append(name)
                    if np.can_cast(column.dtype, np.float32):
                        self.single.add(name)
        self.columns = list(self._part_of)

    @cached_property
    def schema(self) -> Schema:
        """Roles of the columns. All columns of a plain numeric table are learned from, because they have no names."""
        if all(len(shape) == 2 and dtype.names is None for shape, dtype, _ in self._parts.values()):
            found = [Column(n, "number" if n in self._numeric else "text", "not numeric") for n in self.columns]
            return Schema(found)
        n_rows = min(SAMPLE_ROWS, self._n_rows)
        sample: dict[str, Any] = {}
        for part, (_, _, rows) in self._parts.items():
            for name, values in _columns(part, rows(0, n_rows)).items():
                if values.dtype.kind in "iufM" and values.ndim == 1:
                    sample[name] = values
                else:
                    sample[name] = self._texts(values, name) if values.ndim == 1 else ["(a vector)"]
        return infer(sample, self._rules, CellFormat())

    def batches(self, columns: Columns, skip: int, end: int | None) -> Iterator[Batch]:
        """Yield batches of rows."""
        for name in columns.features:
            if name not in self._numeric:
                raise SourceError(
                    f"{self._file}: column {name!r} is not numeric; name the numeric columns with --features"
                )
        wanted = [name for name in (*columns.features, columns.label, *columns.time) if name is not None]
        used = {self._part_of[name] for name in wanted}
        table = self._part_of[columns.features[0]]
        is_whole = list(columns.features) == [name for name in self.columns if self._part_of[name] == table]
        for start in range(skip, self._n_rows, columns.rows_at_a_time):
            stop = min(start + columns.rows_at_a_time, self._n_rows)
            read = {part: self._parts[part][2](start, stop) for part in used}
            X = None
            with np.errstate(over="ignore", invalid="ignore"):
                if is_whole and read[table].ndim == 2:  # every column, in order
                    X = np.ascontiguousarray(read.pop(table), columns.dtype)
            found = {name: column for part, values in read.items() for name, column in _columns(part, values).items()}
            if X is None:
                X = side_by_side([found[name] for name in columns.features], stop - start, columns.dtype)
            batch = self._batch(X, found, columns)
            if self._first_byte is not None:
                shape, dtype, _ = next(iter(self._parts.values()))
                size = dtype.itemsize * math.prod(shape[1:])
                batch = batch._replace(ends=self._first_byte + size * np.arange(start + 1, stop + 1))
            yield batch

    def _texts(self, values: Any, name: str) -> list[str]:
        self._check_text(values, name)
        return [str(_text(value)) for value in values.tolist()]

    def _check_text(self, values: Any, name: str) -> None:
        """Raise if a text array holds numbers that are not valid characters."""
        plain = (
            np.ascontiguousarray(values) if values.dtype.kind == "U" and values.dtype.itemsize else np.empty(0, "u4")
        )
        if plain.view(f"{plain.dtype.byteorder}u4").max(initial=0) > 0x10FFFF:
            raise SourceError(f"{self._file}: column {name!r} holds characters that do not exist: the file is damaged")

    def _batch(self, X: FloatArray, found: dict[str, Any], columns: Columns) -> Batch:
        labels = times = None
        faults: Faults = {}
        if columns.label is not None:
            raw = found[columns.label]
            if raw.dtype.kind not in "fiubUS" or raw.ndim != 1:
                raise SourceError(f"{self._file}: column {columns.label!r} of type {raw.dtype} cannot hold labels")
            self._check_text(raw, columns.label)
            values, codes = np.unique(raw, return_inverse=True)
            labels, faults = code_labels([_text(value) for value in values.tolist()], columns.label, codes)
        if columns.time:
            parts = [found[name] for name in columns.time]
            parts = [part if part.dtype.kind in "iufM" else self._texts(part, columns.time[0]) for part in parts]
            times = read_times(parts, columns.time_format, columns.cells)
        return Batch(X, labels, faults, times=times)


def _columns(part: str, values: Any) -> dict[str, Any]:
    """Return the columns of rows of an array by name."""
    if values.dtype.names is not None:
        return {name: values[name] for name in values.dtype.names}
    return {str(i): values[:, i] for i in range(values.shape[1])} if values.ndim == 2 else {part or "0": values}


def _text(value: Any) -> Any:
    """Return the text of UTF-8 bytes; any other value unchanged."""
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        return value


def open_npy(file: str, stream: Any, regular: bool, rules: Rules) -> ArrayTable:
    """Open an NPY file, or a pipe with its content, whose length is unknown."""
    length = os.fstat(stream.fileno()).st_size if regular else None
    shape, dtype, rows, first_byte = _stream(file, stream, length)
    return ArrayTable(file, {"": (shape, dtype, rows)}, stream.close, first_byte, rules)


def open_npz(file: str, rules: Rules) -> ArrayTable:
    """Open an NPZ file, compressed or not."""
    with contextlib.ExitStack() as handles:
        archive = handles.enter_context(zipfile.ZipFile(file))
        parts = {}
        for entry in archive.infolist():
            if entry.filename.endswith(".npy"):
                handle = handles.enter_context(archive.open(entry))
                shape, dtype, rows, _ = _stream(f"{file}, {entry.filename}", handle, entry.file_size)
                parts[entry.filename[:-4]] = shape, dtype, rows
        table = ArrayTable(file, parts, rules=rules)
        table.close = handles.pop_all().close
        return table


def open_array(array: Any) -> ArrayTable:
    """Open a numpy array, or any object that numpy converts to an array."""
    array = np.asarray(array)
    if array.ndim not in (1, 2) or (array.ndim == 1 and array.dtype.names is None):
        raise SourceError(f"the array has shape {array.shape}; expected (rows, columns)")
    return ArrayTable("the array", {"": (array.shape, array.dtype, lambda start, stop: array[start:stop])})


def _stream(file: str, handle: Any, length: int | None) -> tuple[tuple[int, ...], np.dtype[Any], Rows, int]:
    """Return the layout of the array in an NPY stream of ``length`` bytes.

    The result holds shape and type, a function that reads rows in order, and the offset of the first row.
    """
    try:
        start = handle.read(12)
        old = np.lib.format.read_magic(io.BytesIO(start)) == (1, 0)
        first_byte = 10 + int.from_bytes(start[8:10], "little") if old else 12 + int.from_bytes(start[8:12], "little")
        if first_byte > _LONGEST_HEADER:
            raise ValueError(f"a header of {first_byte} bytes")
        header = io.BytesIO(start + handle.read(max(first_byte - 12, 0)))
        header.seek(8)
        read_header = np.lib.format.read_array_header_1_0 if old else np.lib.format.read_array_header_2_0
        shape, column_order, dtype = read_header(header)
    except Exception as problem:  # numpy uses Python's parser, which raises many kinds of errors
        raise SourceError(f"{file} is not an NPY file that can be read: {str(problem)[:200]}") from problem
    if dtype.hasobject:
        raise SourceError(f"{file} holds Python objects, which are not loaded; save plain numbers or text instead")
    if column_order and len(shape) > 1:
        raise SourceError(f"{file} is stored column by column; save it with np.ascontiguousarray to read it row by row")
    size = dtype.itemsize * math.prod(shape[1:])
    if size == 0:
        raise SourceError(f"{file} holds an array of shape {shape} and type {dtype}: no values")
    if length is not None and first_byte + size * (shape[0] if shape else 1) > length:
        raise SourceError(f"{file} ends early: its header announces {shape[0] if shape else 1} rows")
    position = 0

    def read(n_rows: int) -> bytes:
        nonlocal position
        data: bytes = handle.read(n_rows * size)
        if len(data) < n_rows * size:
            raise SourceError(f"{file} ends early: its header announces {shape[0]} rows")
        position += n_rows
        return data

    def rows(start: int, stop: int) -> Any:
        nonlocal position
        with named(file):
            if start != position and handle.seekable():
                handle.seek((start - position) * size, 1)
                position = start
            while position < start:
                read(min(start - position, max((1 << 20) // size, 1)))
            return np.frombuffer(read(stop - start), dtype).reshape(stop - start, *shape[1:])

    return tuple(shape), dtype, rows, first_byte
