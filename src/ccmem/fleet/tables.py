"""Keyed rows from Parquet and CSV files: pieces of a file and their content."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from ccmem.core.typing import FloatArray, IntArray
from ccmem.io.streams.arrow import from_table, pyarrow, readable
from ccmem.io.streams.cells import CellFormat
from ccmem.io.streams.content import HEAD, encoding_of, recognise
from ccmem.io.streams.csv import CSVTable
from ccmem.io.streams.schema import SAMPLE_ROWS, Rules, read_times
from ccmem.io.streams.sources import expand, format_of
from ccmem.io.streams.tables import BadRowError, Columns, NothingToLearnError, SourceError, bad_values, choose_columns

PIECE_ROWS = 1_000_000
_BATCH_ROWS = 262_144
_CSV_ROW_BYTES = 40
"""Assumed bytes per CSV row, used to size a round."""
_ENDS = 65_536
_WHOLE = re.compile(r"-?(0|[1-9][0-9]*)")
"""Whole numbers; a key such as 007 is text."""


class KeyedColumns(NamedTuple):
    """Column roles and types: ``int64`` or ``string`` for keys, Arrow type names for orders."""

    key: str
    order: str
    features: tuple[str, ...]
    label: str | None
    dtype: str
    key_type: str
    order_type: str
    order_format: str = ""
    """Order of day, month and year if the order is a time in a CSV file; see :mod:`ccmem.io.streams.timestamps`."""
    decimal: str = "."
    missing: tuple[str, ...] = ()
    """Markers of a missing value in CSV files, in addition to the usual ones."""

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


class Found(NamedTuple):
    """Rows as they are in a file; keys, order and labels are Arrow arrays, with null where missing."""

    keys: Any
    order: Any
    X: FloatArray
    labels: Any
    faults: dict[int, tuple[str | None, str]]
    """Row -> column and description of a fault that NaN alone does not express."""


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
    rules: Rules = Rules(),  # noqa: B008
) -> KeyedColumns:
    """Choose the columns from the first file: the named features, or all numeric columns."""
    file = find(sources)[0]
    start = KeyedColumns(key, order, tuple(features or ()), label, dtype, "", "", "", ".", rules.missing)
    if features is not None and len({key, order, label, *features}) < 3 + len(features):
        raise SourceError("a column can be only one of key, order, label and feature, and only once")
    if kind_of(file) == "csv":
        with closing(_open_csv(file, complete_size(file), rules._replace(time=(order,)))) as table:
            _require(file, table.columns, start)
            chosen = _choose_csv(file, table, start)
    else:
        with readable(file):
            schema = _parquet().read_schema(file)
        _require(file, schema.names, start)
        chosen = _choose_parquet(file, schema, start)
    if not chosen.features:
        raise SourceError(f"{file} has no numeric column to learn from beside key and order; name some (--features)")
    return chosen


def _parquet() -> Any:
    pyarrow()
    from pyarrow import parquet

    return parquet


def _choose_parquet(file: str, schema: Any, columns: KeyedColumns) -> KeyedColumns:
    t = pyarrow().types
    numeric = [f.name for f in schema if t.is_integer(f.type) or t.is_floating(f.type) or t.is_decimal(f.type)]
    features = columns.features or tuple(n for n in numeric if n not in (columns.key, columns.order, columns.label))
    key_type, order_type = schema.field(columns.key).type, schema.field(columns.order).type
    if t.is_dictionary(key_type):
        key_type = key_type.value_type
    if not (t.is_integer(key_type) or t.is_string(key_type) or t.is_large_string(key_type)):
        raise SourceError(f"{file}: the key {columns.key!r} is of type {key_type}; keys are whole numbers or text")
    if t.is_integer(order_type):
        kind = "int64"
    elif t.is_floating(order_type):
        kind = "float64"
    elif t.is_timestamp(order_type) or t.is_date(order_type):
        zone = getattr(order_type, "tz", None)
        kind = f"timestamp[ns, tz={zone}]" if zone else "timestamp[ns]"
    else:
        raise SourceError(
            f"{file}: the order {columns.order!r} is of type {order_type}; it must be numbers or timestamps"
        )
    text = "int64" if t.is_integer(key_type) else "string"
    return columns._replace(features=features, key_type=text, order_type=kind)


def _choose_csv(file: str, table: CSVTable, columns: KeyedColumns) -> KeyedColumns:
    others = (columns.key, columns.order, columns.label)
    features = columns.features or tuple(name for name in table.schema.numeric if name not in others)
    if not features:
        choose_columns(table, file, None, columns.key, None, False)  # raises, with reasons for every column
    wanted = Columns(features, None, np.dtype(columns.dtype), None, cells=table.schema.cells, texts=others[:2])
    first = next(table.batches(wanted, 0, None), None)
    if first is None:
        raise NothingToLearnError(f"{file} has no rows yet; the first file of a fleet decides on its columns")
    keys, order = ([str(text) for text in islice(column, SAMPLE_ROWS) if text is not None] for column in first.texts)
    form = ""
    if all(map(_WHOLE.fullmatch, order)):
        kind = "int64"
    elif not wanted.cells.numbers(order)[1]:
        kind = "float64"
    elif table.schema.time_format:
        kind, form = "timestamp[ns]", table.schema.time_format
    else:
        raise SourceError(
            f"{file}: the order {columns.order!r} holds text, such as {order[0]!r}; it must be numbers or timestamps"
        )
    key_type = "int64" if all(map(_WHOLE.fullmatch, keys)) else "string"
    return columns._replace(
        features=features, key_type=key_type, order_type=kind, order_format=form, decimal=wanted.cells.decimal
    )


def find(sources: Sequence[str]) -> list[str]:
    """Return the files named by ``sources`` as absolute paths."""
    files = [os.path.abspath(file) for file in expand(list(sources), None)]  # noqa: PTH100
    for file in files:
        if kind_of(file) not in ("parquet", "csv"):
            raise SourceError(f"{file}: a fleet learns from Parquet and CSV files")
    return files


def kind_of(file: str) -> str:
    """Return the format of a file, recognised by its first bytes."""
    if file.endswith(".gz"):
        return format_of(file) or "csv"
    with open(file, "rb") as handle:  # noqa: PTH123
        return recognise(file, handle.read(HEAD), format_of(file))


def _open_csv(file: str, size: int, rules: Rules) -> CSVTable:
    """Open the first ``size`` bytes of a text table, which may have grown since, or a gzip file."""
    if file.endswith(".gz"):
        packed = gzip.open(file)  # noqa: SIM115
        return CSVTable(file, packed.read, None, packed.close, False, rules)
    handle, left = open(file, "rb"), size  # noqa: SIM115, PTH123

    def read(most: int) -> bytes:
        nonlocal left
        data = handle.read(min(most, left))
        left -= len(data)
        return data

    try:
        if encoding_of(handle.read(HEAD)) is not None:
            raise SourceError(f"{file} is UTF-16; save it as UTF-8 for a fleet")
        handle.seek(0)
        return CSVTable(file, read, None, handle.close, False, rules)
    except BaseException:
        handle.close()
        raise


def pieces_of(file: str, rows_before: int = 0, most: int = PIECE_ROWS) -> list[Piece]:
    """Divide a file into pieces; ``rows_before`` rows of a grown CSV file are skipped."""
    if kind_of(file) == "csv":
        size = complete_size(file)
        return [Piece(file, rows_before, size, max(size // _CSV_ROW_BYTES, 1), rows_before)]
    with readable(file, "is not a Parquet file that can be read"):
        metadata = _parquet().read_metadata(file)
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
    first_row = piece.first_row
    with readable(piece.file):
        for found in (_read_csv if kind_of(piece.file) == "csv" else _read_parquet)(piece, columns):
            yield _checked(found, columns, piece.file, first_row, skip_bad, missing)
            first_row += len(found.X)


def _read_parquet(piece: Piece, columns: KeyedColumns) -> Iterator[Found]:
    wanted = Columns(columns.features, None, np.dtype(columns.dtype), None)
    with _parquet().ParquetFile(piece.file, pre_buffer=False) as file:
        _require(piece.file, file.schema_arrow.names, columns)
        groups = list(range(piece.first, piece.last))
        for table in file.iter_batches(_BATCH_ROWS, groups, columns.wanted, use_threads=False):
            keys, order = table.column(columns.key), table.column(columns.order)
            if pyarrow().types.is_dictionary(keys.type):
                keys = keys.dictionary_decode()
            labels = None if columns.label is None else table.column(columns.label)
            yield Found(keys, order, from_table(table, wanted).X, labels, {})


def _read_csv(piece: Piece, columns: KeyedColumns) -> Iterator[Found]:
    if piece.last == 0:
        return
    pa, cells = pyarrow(), CellFormat(columns.decimal, columns.missing)
    texts = (columns.key, columns.order, *([columns.label] if columns.label is not None else []))
    wanted = Columns(columns.features, None, np.dtype(columns.dtype), None, cells=cells, texts=texts)
    with closing(_open_csv(piece.file, piece.last, Rules(columns.decimal, columns.missing))) as table:
        _require(piece.file, table.columns, columns)
        for batch in table.batches(wanted, piece.first, None):
            keys, order, *label = (
                column.combine_chunks() if isinstance(column, pa.ChunkedArray) else pa.array(column, pa.string())
                for column in batch.texts
            )
            if columns.order_type != "int64":
                known = ["" if text is None else text for text in order.to_pylist()]
                times = columns.order_format
                numbers = read_times([known], times, cells) if times else cells.numbers(known)[0]
                order = pa.array(np.rint(numbers * 1e6) if times else numbers, from_pandas=True)
                order = order.cast(pa.int64()).cast(pa.timestamp("us")) if times else order
            yield Found(keys, order, batch.X, label[0] if label else None, batch.faults)


def _require(file: str, names: Sequence[str], columns: KeyedColumns) -> None:
    """Raise unless the file has all columns."""
    roles = [("key", columns.key), ("order", columns.order), ("label", columns.label)]
    for what, name in [*roles, *(("feature", name) for name in columns.features)]:
        if name is not None and name not in names:
            shown = ", ".join(map(repr, names[:20]))
            raise SourceError(f"{file} has no column {name!r} for the {what}; its columns are {shown}")


def arrow_type(name: str) -> Any:
    """Return the Arrow type for a type name of ``KeyedColumns``."""
    pa = pyarrow()
    if name.startswith("timestamp"):
        _, _, zone = name.removesuffix("]").partition("tz=")
        return pa.timestamp("ns", zone or None)
    return pa.type_for_alias(name)


def _checked(found: Found, columns: KeyedColumns, file: str, first_row: int, skip_bad: bool, missing: bool) -> Batch:
    """Return the valid rows, with columns in kernel types."""
    pa = pyarrow()
    X, labels = found.X, found.labels
    keys = found.keys.cast(pa.type_for_alias(columns.key_type))
    order = found.order.cast(arrow_type(columns.order_type))
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
    bad[list(found.faults)] = True
    if not bad.any():
        return Batch(keys, places, X, labels, 0)
    if not skip_bad:
        row = int(bad.argmax())
        name: str | None
        if row in found.faults:
            name, what = found.faults[row]
        elif no_key[row] or no_order[row]:
            name, what = (columns.key, "the key is missing") if no_key[row] else (columns.order, "the order is missing")
        else:
            place = int(strange[row].argmax())
            name, what = columns.features[place], f"{X[row, place]} cannot be learned from"
        raise BadRowError(file, first_row + row + 1, name, what)
    good = np.flatnonzero(~bad)
    kept = pa.array(good)
    return Batch(keys.take(kept), places[good], X[good], None if labels is None else labels.take(kept), int(bad.sum()))
