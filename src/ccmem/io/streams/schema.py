"""Roles of columns, inferred from a sample of rows, and the choice of those to learn from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ccmem.core.typing import FloatArray
from ccmem.io.streams.errors import NothingToLearnError, SourceError
from ccmem.io.streams.records import CellFormat
from ccmem.io.streams.timestamps import (
    TIME_NAMES,
    is_clock,
    number_format,
    read_clock,
    read_numbers,
    read_texts,
    text_format,
)

SAMPLE_ROWS = 300
"""Number of rows from which the roles of the columns of a file are inferred."""
COUNTER_ROWS = 20
"""Number of rows over which a column must grow by one to count as a row counter, unless its name indicates one.

Also the number of rows from which a column of a whole chunk is said to grow."""
IDENTIFIER_ROWS = 100
"""Number of rows over which integers must grow to count as a running identifier, unless the name indicates one."""
NUMBER_SHARE = 0.8
"""Minimum fraction of non-missing cells that must be numbers for a numeric column; its other cells are bad values.

In a sample of fewer than ``COUNTER_ROWS`` rows, half of the cells are enough.
"""
NATIVE = "native"
"""Time format of columns whose type is a timestamp."""
_ID_NAMES = re.compile(
    r"(?i)^(|unnamed.*|#|(.*[^a-z])?(id|idx|index|row|rows|no|nr|num|lfd|seq|sequence|counter|record|serial|"
    r"nummer|number|zeile|sample|step|rownames?)\.?)$"
)
_SENSOR = re.compile(r"(?i).*(sensor|tag|variable|parameter|signal|metric|channel|kanal|measurement|point|name).*")
_VALUE = re.compile(r"(?i)(value|val|reading|wert|messwert|y)")
"""Names of columns of a table with one reading a row, called long format."""
CHUNK_BYTES = 4 << 20
"""Approximate bytes per chunk: large enough to make call overhead negligible, small enough for the cache."""


class Rules(NamedTuple):
    """User settings for the columns; None or empty values are inferred from the sample."""

    decimal: str | None = None
    missing: tuple[str, ...] = ()
    time: tuple[str, ...] = ()
    day_first: bool | None = None


class Column(NamedTuple):
    """One column of a table, as inferred from the sample."""

    name: str
    kind: str
    """``number``, ``time``, ``counter``, ``text`` or ``empty``."""
    why: str = ""
    """Reason for leaving the column out; empty for numbers."""
    example: str = ""
    missing: int = 0
    """Number of missing values in the sample."""
    low: float | None = None
    high: float | None = None
    two_valued: bool = False
    """True if all values are 0 or 1."""
    code: str = ""
    """A number far from all others that probably marks missing values, such as -9999."""


class Schema(NamedTuple):
    """All columns of a table, and the names of those that hold the time."""

    columns: list[Column]
    time: tuple[str, ...] = ()
    """Name of the time column, or names of a date column and a time-of-day column."""
    time_format: str = ""
    cells: CellFormat = CellFormat()
    rows: int = 0
    """Number of rows in the sample."""

    @property
    def numeric(self) -> list[str]:
        """Names of the columns to learn from."""
        return [column.name for column in self.columns if column.kind == "number"]


class Columns(NamedTuple):
    """Selection of the columns of a table, with their roles and types."""

    features: tuple[str, ...]
    label: str | None
    dtype: np.dtype[Any]
    text_labels: bool | None
    """True if labels are text, False if they are integers; None while no label has been seen."""
    time: tuple[str, ...] = ()
    """Name of the time column, or names of a date column and a time-of-day column."""
    time_format: str = ""
    cells: CellFormat = CellFormat()
    texts: tuple[str, ...] = ()
    """Columns of a text table that are returned as texts."""

    def knowing(self, labels: Any) -> Columns:
        """Return the selection with the kind of the labels filled in as soon as a label is known."""
        if self.text_labels is not None or labels is None:
            return self
        return self._replace(text_labels=labels.text)

    @property
    def rows_at_a_time(self) -> int:
        """Number of rows in a chunk of about ``CHUNK_BYTES``."""
        return int(min(max(CHUNK_BYTES // (len(self.features) * self.dtype.itemsize), 1), 65_536))


def infer(sample: Mapping[str, Any], rules: Rules, cells: CellFormat, european: bool = False) -> Schema:
    """Return the roles of the columns in ``sample``: name -> list of texts, or array of numbers or of times."""
    columns = {name: _describe(name, values, cells) for name, values in sample.items()}
    names, form = rules.time, ""
    if names:
        form = _format_of([sample[name] for name in names if name in sample], names[0], cells, rules, european) or ""
    else:
        for found in _candidates(columns, sample):
            form = _format_of([sample[name] for name in found], found[0], cells, rules, european) or ""
            if form:
                names = found
                break
    for name in columns:
        if name in names:
            columns[name] = columns[name]._replace(kind="time", why="the time")
        elif columns[name].kind == "text" and _format_of([sample[name]], name, cells, rules, european):
            columns[name] = columns[name]._replace(why="another time")
    rows = max((len(values) for values in sample.values()), default=0)
    return Schema(list(columns.values()), tuple(names), form, cells, rows)


def _describe(name: str, values: Any, cells: CellFormat) -> Column:
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        known = values[~np.isnat(values)]
        return Column(name, "text", "a date", str(known[0]) if known.size else "", len(values) - len(known))
    if isinstance(values, np.ndarray):
        return _describe_numbers(name, values, 0)
    markers = cells.markers
    filled = [cell for cell in values if cell.strip().lower() not in markers]
    absent = len(values) - len(filled)
    if not filled:
        return Column(name, "empty", f"empty in the first {len(values)} rows" if values else "no rows", "", absent)
    numbers, wrong = cells.numbers(filled)
    share = NUMBER_SHARE if len(filled) >= COUNTER_ROWS else 0.5
    if len(wrong) > (1 - share) * len(filled):
        example = filled[wrong[0]].strip()
        few = sorted({cell.strip() for cell in filled})
        why = "text" if len(few) > 3 or len(filled) < COUNTER_ROWS else f"text, {_listed(few)} in the first rows"
        if len(wrong) < len(filled):
            why = f"{len(wrong)} of {len(filled)} values are no numbers"
        return Column(name, "text", why, example[:40], absent)
    column = _describe_numbers(name, np.delete(numbers, wrong), absent + len(wrong), filled[0].strip()[:40])
    if column.code:  # as it is spelled in the file
        column = column._replace(code=filled[int(np.argmax(numbers == float(column.code)))].strip())
    return column


def such_as(why: str, example: str) -> str:
    """Return an example of a column's values, or nothing if the reason ``why`` quotes it already."""
    return f" (such as {example!r})" if why and example and repr(example) not in why else ""


def _listed(values: list[str]) -> str:
    return f"only {values[0]!r}" if len(values) == 1 else f"one of {', '.join(map(repr, values))}"


def _describe_numbers(name: str, values: FloatArray, absent: int, example: str = "") -> Column:
    values = np.asarray(values, np.float64)
    known = values[np.isfinite(values)]
    absent += len(values) - len(known)
    if not known.size:
        return Column(name, "empty", f"empty in the first {len(values)} rows", "", absent)
    example = example or f"{known[0]:.6g}"
    why = _running(name, known) if not absent else ""
    kind, binary = "counter" if why else "number", bool(np.isin(known, (0, 1)).all())
    return Column(name, kind, why, example, absent, float(known.min()), float(known.max()), binary, _code(known))


def _code(values: FloatArray) -> str:
    """Return a value that occurs repeatedly, is a common code for a missing reading, and lies far from all others.

    >>> _code(np.array([20.1, -9999, 20.4, -9999, 20.2])), _code(np.array([20.1, 99, 30.0, 99, 80.5]))
    ('-9999', '')
    """
    for value in (values.min(), values.max()):
        others = values[values != value]
        if f"{abs(value):g}".replace(".", "").strip("9") and abs(value) not in (32767, 32768, 65535):
            continue
        apart = np.abs(others - value).min(initial=np.inf)
        if abs(value) >= 99 and len(values) - len(others) > 1 and len(others) > 1 and apart > 3 * np.ptp(others):
            return f"{value:g}"
    return ""


def _running(name: str, values: FloatArray) -> str:
    """Return why a growing column is uninformative (a counter or an identifier); empty if it may be informative."""
    steps = np.diff(values)
    if len(values) < 3 or not (steps > 0).all():
        return ""
    whole, named = bool((values % 1 == 0).all()), _ID_NAMES.match(name) is not None
    if whole and (steps == 1).all() and (named or len(values) >= COUNTER_ROWS):
        return "a row counter"
    if TIME_NAMES.search(name) and (len(values) >= COUNTER_ROWS or named):
        return f"an elapsed time, in steps of {float(np.median(steps)):.4g}"
    if whole and (named or (len(values) >= IDENTIFIER_ROWS and (steps != steps[0]).any())):
        return "a running identifier"
    return ""


def _candidates(columns: Mapping[str, Column], sample: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return columns that may hold the time, likeliest first: texts with a time of day, dates, numbers."""
    texts = [name for name, column in columns.items() if column.kind == "text"]
    clocks = [name for name in texts if not isinstance(sample[name], np.ndarray) and _all(is_clock, sample[name])]
    others = [name for name in texts if name not in clocks]
    pairs = [(date, clock) for date in others[:1] for clock in clocks[:1]]
    full = [(name,) for name in others if isinstance(sample[name], np.ndarray) or any(":" in c for c in sample[name])]
    dates = [(name,) for name in others if (name,) not in full]
    numbers = [(name,) for name, column in columns.items() if column.kind in ("number", "counter")]
    numbers.sort(key=lambda found: TIME_NAMES.search(found[0]) is None)
    return [*full, *pairs, *dates, *numbers]


def _all(test: Any, cells: Sequence[str]) -> bool:
    return bool(cells) and all(test(cell) for cell in cells if cell.strip())


def _format_of(values: Sequence[Any], name: str, cells: CellFormat, rules: Rules, european: bool) -> str | None:
    """Return the format of a time in one or two columns; None if the columns hold no time."""
    if not values:
        return None
    first = values[0]
    if isinstance(first, np.ndarray):
        return NATIVE if first.dtype.kind == "M" else number_format(name, first.astype(np.float64))
    known = [cell for cell in first if cell.strip().lower() not in cells.markers]
    numbers, wrong = cells.numbers(known)
    if known and not wrong and len(values) == 1:
        packed = TIME_NAMES.search(name) and all(len(cell.strip()) == 8 for cell in known)
        return number_format(name, numbers) or ("ymd" if packed and text_format(known) == "ymd" else None)
    return text_format(known, rules.day_first, european or cells.decimal == ",")


def read_times(parts: Sequence[Any], form: str, cells: CellFormat) -> FloatArray:
    """Return the times of rows, in seconds since 1970, from the cells of one or two columns; NaN if unreadable."""
    first = parts[0]
    if form == NATIVE:
        stamps = np.asarray(first, "datetime64[us]")
        return np.where(np.isnat(stamps), np.nan, stamps.astype(np.int64) / 1e6)
    if form not in ("ymd", "dmy", "mdy"):
        numbers = first if isinstance(first, np.ndarray) else cells.numbers(first)[0]
        return read_numbers(numbers, form)
    times = read_texts(first, form)
    if len(parts) == 2:
        times = times + np.array([read_clock(cell) for cell in parts[1]], np.float64)
    return times


# Choice of the columns to learn from, the label and the time ----------------------------------------------------------


def choose_columns(
    table: Any, file: str, features: Sequence[str] | None, label: str | None, dtype: Any, label_may_miss: bool
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
    if len(X) < COUNTER_ROWS:
        return ()
    steps = np.diff(X.astype(np.float64), axis=0)
    return tuple(columns.features[place] for place in np.flatnonzero((steps > 0).all(axis=0)))


def check_columns(table: Any, file: str, columns: Columns) -> Columns:
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
