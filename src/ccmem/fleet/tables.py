"""Keyed rows from Parquet and CSV files: pieces of a file and their content."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ccmem.core.typing import FloatArray, IntArray
from ccmem.io.streams.arrow import from_table, pyarrow
from ccmem.io.streams.sources import expand, format_of
from ccmem.io.streams.tables import BadRowError, Columns, SourceError, bad_values

PIECE_ROWS = 1_000_000
_BATCH_ROWS = 262_144
_CSV_ROW_BYTES = 40
"""Assumed bytes per CSV row, used to size a round."""
_ENDS = 65_536


class KeyedColumns(NamedTuple):
    """Column roles and types: ``int64`` or ``string`` for keys, Arrow type names for orders."""

    key: str
    order: str
    features: tuple[str, ...]
    label: str | None
    dtype: str
    key_type: str
    order_type: str

    @property
    def wanted(self) -> list[str]:
        """Return the names of all columns that are read."""
        return [self.key, self.order, *self.features, *([self.label] if self.label is not None else [])]


class Piece(NamedTuple):
    """A part of a file that is read at once."""

    file: str
    first: int
    """First row group; rows to skip in a CSV file."""
    last: int
    """Row group after the last; bytes to read of a CSV file."""
    rows: int
    """Approximate number of rows."""
    first_row: int


class Batch(NamedTuple):
    """Valid rows of several keys."""

    keys: Any
    """Arrow array of int64 or string."""
    order: IntArray | FloatArray
    X: FloatArray
    labels: Any
    """Arrow array, or None."""
    bad: int


def choose(
    sources: Sequence[str],
    key: str,
    order: str,
    features: Sequence[str] | None,
    label: str | None = None,
    dtype: str = "float32",
) -> KeyedColumns:
    """Choose the columns from the first file: the named features, or all numeric columns."""
    pa = pyarrow()
    file = find(sources)[0]
    schema = _schema(file)
    for what, name in (("key", key), ("order", order), ("label", label), *(("feature", f) for f in features or ())):
        if name is not None and name not in schema.names:
            names = ", ".join(map(repr, schema.names[:20]))
            raise SourceError(f"{file} has no column {name!r} for the {what}; its columns are {names}")
    t = pa.types
    if features is None:
        numeric = [f.name for f in schema if t.is_integer(f.type) or t.is_floating(f.type) or t.is_decimal(f.type)]
        features = [name for name in numeric if name not in (key, order, label)]
    if not features:
        raise SourceError(f"{file} has no numeric column to learn from beside key and order; name some (--features)")
    if len({key, order, label, *features}) < 3 + len(features):
        raise SourceError("a column can be only one of key, order, label and feature, and only once")
    key_type = schema.field(key).type
    if t.is_dictionary(key_type):
        key_type = key_type.value_type
    if not (t.is_integer(key_type) or t.is_string(key_type) or t.is_large_string(key_type)):
        raise SourceError(f"{file}: the key {key!r} is of type {key_type}; keys are whole numbers or text")
    order_type = schema.field(order).type
    if t.is_integer(order_type):
        kind = "int64"
    elif t.is_floating(order_type):
        kind = "float64"
    elif t.is_timestamp(order_type) or t.is_date(order_type):
        zone = getattr(order_type, "tz", None)
        kind = f"timestamp[ns, tz={zone}]" if zone else "timestamp[ns]"
    else:
        raise SourceError(f"{file}: the order {order!r} is of type {order_type}; it must be numbers or timestamps")
    return KeyedColumns(
        key, order, tuple(features), label, dtype, "int64" if t.is_integer(key_type) else "string", kind
    )


def find(sources: Sequence[str]) -> list[str]:
    """Return the files named by ``sources`` as absolute paths."""
    files = [os.path.abspath(file) for file in expand(list(sources), None)]  # noqa: PTH100
    for file in files:
        if format_of(file) not in ("parquet", "csv"):
            raise SourceError(f"{file}: a fleet learns from Parquet and CSV files")
    return files


def _schema(file: str) -> Any:
    pa = pyarrow()
    try:
        if format_of(file) == "parquet":
            from pyarrow import parquet

            return parquet.read_schema(file)
        from pyarrow import csv

        with csv.open_csv(_csv(file, complete_size(file))) as reader:
            return reader.schema
    except pa.ArrowException as problem:
        raise SourceError(f"{file} cannot be read: {str(problem)[:300]}") from problem


def pieces_of(file: str, rows_before: int = 0, most: int = PIECE_ROWS) -> list[Piece]:
    """Divide a file into pieces; ``rows_before`` rows of a grown CSV file are skipped."""
    if format_of(file) == "csv":
        size = complete_size(file)
        return [Piece(file, rows_before, size, max(size // _CSV_ROW_BYTES, 1), rows_before)]
    from pyarrow import parquet

    try:
        metadata = parquet.read_metadata(file)
    except pyarrow().ArrowException as problem:
        raise SourceError(f"{file} is not a Parquet file that can be read: {str(problem)[:300]}") from problem
    pieces, first, rows, start = [], 0, 0, 0
    for group in range(metadata.num_row_groups):
        rows += metadata.row_group(group).num_rows
        if rows >= min(most, PIECE_ROWS) or group == metadata.num_row_groups - 1:
            pieces.append(Piece(file, first, group + 1, rows, start))
            first, start, rows = group + 1, start + rows, 0
    return pieces


def complete_size(file: str) -> int:
    """Return the size of a CSV file up to its last line break; an unterminated line may be incomplete."""
    with open(file, "rb") as handle:  # noqa: PTH123
        size = end = handle.seek(0, os.SEEK_END)
        if file.endswith(".gz"):
            return size
        while end > 0:
            start = max(0, end - _ENDS)
            handle.seek(start)
            found = handle.read(end - start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            end = start
    return 0


def fingerprint(file: str, size: int) -> str:
    """Return a digest of the first and last bytes of a file, up to ``size``."""
    with open(file, "rb") as handle:  # noqa: PTH123
        digest = hashlib.sha256(handle.read(min(size, _ENDS)))
        handle.seek(max(0, size - _ENDS))
        digest.update(handle.read(min(size, _ENDS)))
    return digest.hexdigest()[:32]


def read(piece: Piece, columns: KeyedColumns, skip_bad: bool, missing: bool = False) -> Iterator[Batch]:
    """Read the rows of a piece."""
    pa = pyarrow()
    first_row = piece.first_row
    try:
        for table in _batches(piece, columns):
            yield _checked(table, columns, piece.file, first_row, skip_bad, missing)
            first_row += table.num_rows
    except (pa.ArrowException, KeyError) as problem:
        raise SourceError(f"{piece.file} cannot be read: {str(problem)[:300]}") from problem


def _batches(piece: Piece, columns: KeyedColumns) -> Iterator[Any]:
    pa = pyarrow()
    if format_of(piece.file) == "parquet":
        from pyarrow import parquet

        with parquet.ParquetFile(piece.file, pre_buffer=False) as file:
            _require(piece.file, file.schema_arrow.names, columns)
            groups = list(range(piece.first, piece.last))
            yield from file.iter_batches(_BATCH_ROWS, groups, columns.wanted, use_threads=False)
        return
    from pyarrow import csv

    if piece.last == 0:
        return
    types = {name: pa.type_for_alias(columns.dtype) for name in columns.features}
    types[columns.key] = pa.type_for_alias(columns.key_type)
    types[columns.order] = arrow_type(columns.order_type)
    _require(piece.file, _schema(piece.file).names, columns)
    with csv.open_csv(
        _csv(piece.file, piece.last),
        csv.ReadOptions(use_threads=False, block_size=8 << 20, skip_rows_after_names=piece.first),
        convert_options=csv.ConvertOptions(include_columns=columns.wanted, column_types=types),
    ) as reader:
        yield from reader


def _csv(file: str, size: int) -> Any:
    return file if file.endswith(".gz") else pyarrow().PythonFile(_Head(file, size), "r")


class _Head(io.RawIOBase):
    """The first bytes of a file, as a file object."""

    def __init__(self, file: str, size: int) -> None:
        self._file, self._left = open(file, "rb"), size  # noqa: SIM115, PTH123

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(data)
        return data

    def close(self) -> None:
        self._file.close()
        super().close()


def _require(file: str, names: Sequence[str], columns: KeyedColumns) -> None:
    missing = [name for name in columns.wanted if name not in names]
    if missing:
        shown = ", ".join(map(repr, names[:20]))
        raise SourceError(f"{file} has no column {', '.join(map(repr, missing))}; its columns are {shown}")


def arrow_type(name: str) -> Any:
    """Return the Arrow type for a type name of ``KeyedColumns``."""
    pa = pyarrow()
    if name.startswith("timestamp"):
        _, _, zone = name.removesuffix("]").partition("tz=")
        return pa.timestamp("ns", zone or None)
    return pa.type_for_alias(name)


def _checked(table: Any, columns: KeyedColumns, file: str, first_row: int, skip_bad: bool, missing: bool) -> Batch:
    """Return the valid rows of an Arrow batch, with columns in kernel types."""
    pa = pyarrow()
    keys = _column(table, columns.key)
    if pa.types.is_dictionary(keys.type):
        keys = keys.dictionary_decode()
    keys = keys.cast(pa.type_for_alias(columns.key_type))
    order = _column(table, columns.order).cast(arrow_type(columns.order_type))
    wanted = Columns(columns.features, None, np.dtype(columns.dtype), None)
    X = from_table(table, wanted).X
    strange = bad_values(X, missing)
    no_key = keys.is_null().to_numpy(zero_copy_only=False)
    if columns.key_type == "string":
        no_key |= pa.compute.equal(keys.fill_null(""), "").to_numpy(zero_copy_only=False)
    no_order = order.is_null().to_numpy(zero_copy_only=False)
    kind = np.float64 if columns.order_type == "float64" else np.int64
    if kind is np.int64:
        order = order.cast(pa.int64())
    places = order.fill_null(0).to_numpy(zero_copy_only=False).astype(kind, copy=False)
    if kind is np.float64:
        no_order |= ~np.isfinite(places)
    bad = no_key | no_order | strange.any(axis=1)
    labels = None if columns.label is None else _column(table, columns.label)
    if not bad.any():
        return Batch(keys, places, X, labels, 0)
    if not skip_bad:
        row = int(bad.argmax())
        if no_key[row] or no_order[row]:
            name, what = (columns.key, "the key is missing") if no_key[row] else (columns.order, "the order is missing")
        else:
            place = int(strange[row].argmax())
            name, what = columns.features[place], f"{X[row, place]} cannot be learned from"
        raise BadRowError(file, first_row + row + 1, name, what)
    good = np.flatnonzero(~bad)
    kept = pa.array(good)
    return Batch(keys.take(kept), places[good], X[good], None if labels is None else labels.take(kept), int(bad.sum()))


def _column(table: Any, name: str) -> Any:
    column = table.column(name)
    return column.combine_chunks() if hasattr(column, "combine_chunks") else column
