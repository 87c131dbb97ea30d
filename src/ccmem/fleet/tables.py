"""Keyed rows from Parquet files and text tables: pieces of a file and their content."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from ccmem.core.typing import FloatArray, IntArray
from ccmem.io.streams.arrow import ArrowTable, pyarrow
from ccmem.io.streams.errors import Faults, NothingToLearnError, SourceError, named
from ccmem.io.streams.records import CellFormat
from ccmem.io.streams.schema import SAMPLE_ROWS, Columns, Rules, choose_columns, read_times
from ccmem.io.streams.sources import expand, grows_by_lines, kind_of, open_table
from ccmem.io.streams.tables import Batch as Found
from ccmem.io.streams.tables import Table, check_batch

PIECE_ROWS = 1_000_000
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
    def texts(self) -> tuple[str, ...]:
        """Names of key, order and label."""
        return (self.key, self.order, *([self.label] if self.label is not None else []))


class Piece(NamedTuple):
    """A part of a file that is read at once."""

    file: str
    first: int
    """Number of rows before the piece."""
    last: int
    """Number of rows up to the end of the piece; bytes to read of a text table, which is one piece."""
    rows: int
    """Approximate number of rows."""


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
    columns = KeyedColumns(key, order, tuple(features or ()), label, dtype, "", "", "", ".", rules.missing)
    if features is not None and len({key, order, label, *features}) < 3 + len(features):
        raise SourceError("a column can be only one of key, order, label and feature, and only once")
    with named(file), closing(_open(file, complete_size(file), rules._replace(time=(order,)))) as table:
        _require(file, table.columns, columns)
        kinds = ("number", "counter") if isinstance(table, ArrowTable) else ("number",)
        chosen = [c.name for c in table.schema.columns if c.kind in kinds and c.name not in columns.texts]
        columns = columns._replace(features=columns.features or tuple(chosen))
        if not columns.features:
            if not isinstance(table, ArrowTable):
                choose_columns(table, file, None, key, None, False)  # raises, with reasons for every column
            raise SourceError(f"{file} has no numeric column to learn from beside key and order (--features)")
        return (_declared if isinstance(table, ArrowTable) else _inferred)(file, table, columns)


def _declared(file: str, table: Any, columns: KeyedColumns) -> KeyedColumns:
    """Return the columns with the declared types of key and order."""
    t = pyarrow().types
    key, order = table.types.field(columns.key).type, table.types.field(columns.order).type
    if t.is_dictionary(key):
        key = key.value_type
    if not (t.is_integer(key) or t.is_string(key) or t.is_large_string(key)):
        raise SourceError(f"{file}: the key {columns.key!r} is of type {key}; keys are whole numbers or text")
    if t.is_integer(order):
        kind = "int64"
    elif t.is_floating(order):
        kind = "float64"
    elif t.is_timestamp(order) or t.is_date(order):
        zone = getattr(order, "tz", None)
        kind = f"timestamp[ns, tz={zone}]" if zone else "timestamp[ns]"
    else:
        raise SourceError(f"{file}: the order {columns.order!r} is of type {order}; it must be numbers or timestamps")
    return columns._replace(key_type="int64" if t.is_integer(key) else "string", order_type=kind)


def _inferred(file: str, table: Table, columns: KeyedColumns) -> KeyedColumns:
    """Return the columns with types of key and order that fit the first rows of a text table."""
    wanted = Columns(columns.features, None, np.dtype(columns.dtype), None, cells=table.schema.cells)
    first = next(table.batches(wanted._replace(texts=columns.texts[:2]), 0, None), None)
    if first is None:
        raise NothingToLearnError(f"{file} has no rows yet; the first file of a fleet determines its columns")
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
    return columns._replace(key_type=key_type, order_type=kind, order_format=form, decimal=wanted.cells.decimal)


def find(sources: Sequence[str]) -> list[str]:
    """Return the files named by ``sources`` as absolute paths."""
    files = [os.path.abspath(file) for file in expand(list(sources), None)]  # noqa: PTH100
    for file in files:
        if kind_of(file) not in ("parquet", "csv"):
            raise SourceError(f"{file}: a fleet learns from Parquet and CSV files")
    return files


def _open(file: str, size: int, rules: Rules) -> Table:
    return open_table(file, None, True, rules, size)


def pieces_of(file: str, rows_before: int = 0, most: int = PIECE_ROWS) -> list[Piece]:
    """Divide the rows of a file after the first ``rows_before`` into pieces."""
    if kind_of(file) == "csv":
        size = complete_size(file)
        return [Piece(file, rows_before, size, max(size // _CSV_ROW_BYTES, 1))]
    from pyarrow import parquet

    with named(file):
        metadata = parquet.read_metadata(file)
    pieces, start, end = [], rows_before, 0
    for group in range(metadata.num_row_groups):
        end += metadata.row_group(group).num_rows
        if end > start and (end - start >= min(most, PIECE_ROWS) or end == metadata.num_rows):
            pieces.append(Piece(file, start, end, end - start))
            start = end
    return pieces


def complete_size(file: str) -> int:
    """Return the size of a text table up to its last line break; an unterminated line may be incomplete."""
    by_lines = grows_by_lines(file)
    with open(file, "rb") as handle:  # noqa: PTH123
        size = end = handle.seek(0, os.SEEK_END)
        while by_lines and end > 0:
            start = max(0, end - _ENDS)
            handle.seek(start)
            found = handle.read(end - start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            end = start
    return 0 if by_lines else size


def read(piece: Piece, columns: KeyedColumns, skip_bad: bool, missing: bool = False) -> Iterator[Batch]:
    """Read the rows of a piece."""
    if piece.last == 0:
        return
    cells, first = CellFormat(columns.decimal, columns.missing), piece.first
    wanted = Columns(columns.features, None, np.dtype(columns.dtype), None, cells=cells, texts=columns.texts)
    with named(piece.file), closing(_open(piece.file, piece.last, Rules(columns.decimal, columns.missing))) as table:
        _require(piece.file, table.columns, columns)
        for found in table.batches(wanted, first, None):
            yield _checked(found, columns, wanted, piece.file, first, skip_bad, missing)
            first += len(found.X)
            if isinstance(table, ArrowTable) and first >= piece.last:
                return


def _require(file: str, names: Sequence[str], columns: KeyedColumns) -> None:
    """Raise unless the file has all columns."""
    roles = zip(("key", "order", "label"), columns.texts, strict=False)
    for what, name in (*roles, *(("feature", name) for name in columns.features)):
        if name not in names:
            shown = ", ".join(map(repr, names[:20]))
            raise SourceError(f"{file} has no column {name!r} for the {what}; its columns are {shown}")


def arrow_type(name: str) -> Any:
    """Return the Arrow type for a type name of ``KeyedColumns``."""
    pa = pyarrow()
    if name.startswith("timestamp"):
        _, _, zone = name.removesuffix("]").partition("tz=")
        return pa.timestamp("ns", zone or None)
    return pa.type_for_alias(name)


def _array(column: Any) -> Any:
    """Return a column of texts, or of a Parquet file, as one Arrow array."""
    pa = pyarrow()
    if isinstance(column, list):
        return pa.array(column, pa.string())
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _order_of(column: Any, columns: KeyedColumns) -> Any:
    """Return the order of rows in its type."""
    pa = pyarrow()
    if columns.order_type != "int64" and pa.types.is_string(column.type):
        cells, form = CellFormat(columns.decimal, columns.missing), columns.order_format
        known = column.fill_null("").to_pylist()
        numbers = read_times([known], form, cells) * 1e6 if form else cells.numbers(known)[0]
        column = pa.array(np.rint(numbers) if form else numbers, from_pandas=True)
        column = column.cast(pa.int64()).cast(pa.timestamp("us")) if form else column
    return column.cast(arrow_type(columns.order_type))


def _checked(
    found: Found, columns: KeyedColumns, wanted: Columns, file: str, first: int, skip_bad: bool, missing: bool
) -> Batch:
    """Return the valid rows, with columns in kernel types; ``first`` rows of the file are before them."""
    pa = pyarrow()
    keys, order, *label = map(_array, found.texts)
    keys, order = keys.cast(pa.type_for_alias(columns.key_type)), _order_of(order, columns)
    no_key = keys.is_null().to_numpy(zero_copy_only=False)
    if columns.key_type == "string":
        no_key |= pa.compute.equal(keys.fill_null(""), "").to_numpy(zero_copy_only=False)
    kind = np.float64 if columns.order_type == "float64" else np.int64
    places = order.cast(pa.from_numpy_dtype(kind)).fill_null(0).to_numpy(zero_copy_only=False)
    no_order = order.is_null().to_numpy(zero_copy_only=False) | ~np.isfinite(places)
    faults: Faults = dict.fromkeys(np.flatnonzero(no_order), (columns.order, "the order is missing"))
    faults |= dict.fromkeys(np.flatnonzero(no_key), (columns.key, "the key is missing"))
    chunk, error = check_batch(
        found._replace(faults=faults | found.faults), wanted, file, first, skip_bad, missing=missing
    )
    if error is not None:
        raise error
    labels = label[0] if label else None
    if len(chunk.X) < len(found.X):
        good = pa.array(chunk.rows - first - 1)
        keys, places, labels = keys.take(good), places[chunk.rows - first - 1], label[0].take(good) if label else None
    return Batch(keys, places, chunk.X, labels, chunk.n_rows - len(chunk.X))
