"""Choice of the columns of a table: those to learn from, the label and the time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ccmem.core.typing import FloatArray
from ccmem.io.streams.errors import NothingToLearnError, SourceError
from ccmem.io.streams.schema import Column, Schema, such_as
from ccmem.io.streams.tables import Columns, Table

LEAST_ROWS = 20
"""Minimum number of rows from which to decide that a column only grows."""
_SENSOR = re.compile(r"(?i).*(sensor|tag|variable|parameter|signal|metric|channel|kanal|measurement|point|name).*")
_VALUE = re.compile(r"(?i)(value|val|reading|wert|messwert|y)")
"""Names of columns of a table with one reading a row, called long format."""


def choose_columns(
    table: Table, file: str, features: Sequence[str] | None, label: str | None, dtype: Any, label_may_miss: bool
) -> Columns:
    """Return the columns to read: the named features, or all numeric columns except the label and the time."""
    if label is not None and label not in table.columns and not label_may_miss:
        raise SourceError(f"{file} has no column {label!r} for the label; its columns are {_list(table.columns)}")
    schema = table.schema
    if absent := [name for name in schema.time if name not in table.columns and not table.open_ended]:
        raise SourceError(f"{file} has no column {_list(absent)} for the time; its columns are {_list(table.columns)}")
    chosen = tuple(features) if features is not None else tuple(name for name in schema.numeric if name != label)
    if features is None:
        _check_enough(file, chosen, excluded(schema, label))
    if len(set(chosen)) < len(chosen):
        raise SourceError(f"features {_list(chosen)} name a column twice")
    if label in chosen:
        raise SourceError(f"column {label!r} cannot be both a feature and the label")
    if dtype is None:
        dtype = np.float32 if set(chosen) <= table.single else np.float64
    time = schema.time if schema.time_format and not set(schema.time) & set(chosen) else ()
    return Columns(chosen, label, np.dtype(dtype), None, time, schema.time_format if time else "", schema.cells)


def excluded(schema: Schema, label: str | None = None) -> list[Column]:
    """Return the columns that are not learned from unless the user names them."""
    return [column for column in schema.columns if column.kind != "number" and column.name != label]


def _check_enough(file: str, chosen: Sequence[str], left_out: Sequence[Column]) -> None:
    """Raise if there is nothing to learn from, or a single column that looks like several misread ones."""
    unread = [column for column in left_out if column.kind == "text" and column.why not in ("another time", "a date")]
    sensors = [column.name for column in unread if _SENSOR.fullmatch(column.name)]
    if len(chosen) == 1 and sensors and _VALUE.fullmatch(chosen[0]):
        raise NothingToLearnError(
            f"{file} has one reading a row: the values of {sensors[0]!r} share the column {chosen[0]!r}. Write one "
            f"column for each of them (in pandas: frame.pivot), learn one memory for each (ccmem fleet learn --key "
            f"{sensors[0]}), or learn them all together with --features {chosen[0]}"
        )
    if not chosen:
        what = "has no column of numbers to learn from"
    elif len(chosen) == 1 and len(unread) >= 2 and len(left_out) >= 3:
        what = f"would be learned from one column, {chosen[0]!r}, out of {len(left_out) + 1}"
    else:
        return
    reasons = "".join(f"\n  {reason_for(column)}" for column in left_out[:20])
    raise NothingToLearnError(
        f"{file} {what}:{reasons}\nsee 'ccmem look {file}'; name columns with --features, the decimal sign with "
        "--decimal, markers of missing values with --missing"
    )


def reason_for(column: Column) -> str:
    """Return the reason for leaving a column out, with an example of its values."""
    return f"{column.name}: {column.why}{such_as(column.why, column.example)}"


def growing(X: FloatArray, columns: Columns) -> tuple[str, ...]:
    """Return the names of columns that grow with every row: most likely times and row numbers."""
    if len(X) < LEAST_ROWS:
        return ()
    steps = np.diff(X.astype(np.float64), axis=0)
    return tuple(columns.features[place] for place in np.flatnonzero((steps > 0).all(axis=0)))


def check_columns(table: Table, file: str, columns: Columns) -> Columns:
    """Raise unless ``table`` has all features; a missing label column is allowed and leaves rows unlabelled."""
    if table.open_ended:
        return columns
    missing = [name for name in columns.features if name not in table.columns]
    if missing:
        raise SourceError(f"{file} has no column {_list(missing)}; its columns are {_list(table.columns)}")
    twice = [name for name in (*columns.features, columns.label) if name is not None and table.columns.count(name) > 1]
    if twice:
        raise SourceError(f"{file} has more than one column {_list(twice)}")
    if not set(columns.time) <= set(table.columns):
        columns = columns._replace(time=())
    return columns if columns.label in table.columns else columns._replace(label=None)


def _list(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:20])) + (f" and {len(names) - 20} more" if len(names) > 20 else "") or "none"
