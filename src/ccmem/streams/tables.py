"""What every source comes down to: rows of numbers, perhaps with labels, each with its place in a file.

A reader hands over a :class:`Batch`, everything it found; :func:`check_batch` turns it into a :class:`Chunk`, which
holds good rows only, and says what is wrong with the first bad one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ccmem._codes import UNLABELED
from ccmem._typing import FloatArray, IntArray

CHUNK_BYTES = 4 << 20
"""About how much of a matrix is handed over at a time: large enough to forget the call, small enough for the cache."""
LEAST_ROWS = 20
"""Rows that tell whether a column only ever grows."""
_LARGEST = {np.dtype(np.float32): 1e15, np.dtype(np.float64): 1e150}
"""Beyond these a memory could not square and add the numbers."""


class SourceError(ValueError):
    """A source that cannot be read, or does not have what is asked of it."""


class BadRowError(SourceError):
    """A row that cannot be learned from; ``file``, ``row`` (from 1) and ``column`` say where it is."""

    def __init__(self, file: str, row: int, column: str | None, what: str, in_place: bool = True) -> None:
        self.file, self.row, self.column = file, row, column
        place = f"{file}, row {row}" + (f", column {column!r}" if column is not None else "")
        remedy = "fix it" if in_place else "write the file again without it under another name"
        super().__init__(f"{place}: {what}; {remedy}, or skip and count such rows (--on-bad-row skip)")


class Labels(NamedTuple):
    """Labels of some rows: each a place in ``values``, or UNLABELED."""

    codes: IntArray
    values: list[Any]
    """Distinct labels: all text, or all whole numbers."""

    def take(self, rows: Any) -> Labels:
        """The labels of some of the rows."""
        return Labels(self.codes[rows], self.values)

    @property
    def text(self) -> bool | None:
        """Whether they are text; None if all are missing."""
        known = self.codes[self.codes != UNLABELED]
        return isinstance(self.values[known[0]], str) if known.size else None

    def of_kind(self, text: bool) -> Labels:
        """The same without values of the other kind, which no row has."""
        places = [code for code, value in enumerate(self.values) if isinstance(value, str) == text]
        if len(places) == len(self.values):
            return self
        new = np.full(len(self.values) + 1, UNLABELED, np.int64)
        new[places] = np.arange(len(places))
        return Labels(new[self.codes], [self.values[place] for place in places])

    def array(self) -> Any:
        """One label a row, as ``partial_fit`` takes them: None marks a missing text, NaN a missing number."""
        missing = self.codes == UNLABELED
        if self.text is not False:
            return np.array([*self.values, None], object)[self.codes]
        numbers = np.array(self.values, np.int64)[np.where(missing, 0, self.codes)]
        return np.where(missing, np.nan, numbers) if missing.any() else numbers


class Batch(NamedTuple):
    """Rows as they stand in a file, good or bad."""

    X: FloatArray
    """NaN where a value is missing or no number."""
    labels: Labels | None
    faults: dict[int, tuple[str | None, str]]
    """Row of the batch -> column and what is wrong, where a reader knows better than NaN."""
    ends: IntArray | None = None
    """How many bytes of the file hold each row and all before it, for files that can be resumed in place."""

    def after(self, n_rows: int) -> Batch:
        """The batch without its first ``n_rows``."""
        if not n_rows:
            return self
        labels = None if self.labels is None else self.labels.take(slice(n_rows, None))
        faults = {row - n_rows: fault for row, fault in self.faults.items() if row >= n_rows}
        return Batch(self.X[n_rows:], labels, faults, None if self.ends is None else self.ends[n_rows:])


class Chunk(NamedTuple):
    """Good rows of one file, in order."""

    X: FloatArray
    labels: Labels | None
    file: str
    rows: IntArray
    """Number of every row in its file, from 1."""
    first: int
    """How many rows of the file come before the chunk."""
    n_rows: int
    """How many rows of the file it covers, bad ones included."""
    ends: IntArray | None
    """How many bytes of the file hold each covered row and all before it."""
    ended: bool = True
    """False for a last line that came without its end."""

    @property
    def y(self) -> Any:
        """Labels as ``partial_fit`` takes them, or None."""
        return None if self.labels is None else self.labels.array()

    def pieces(self, size: int) -> Iterator[Chunk]:
        """The chunk in parts of at most ``size`` good rows."""
        rest = self
        while len(rest.X) > size:
            part = rest.head(size)
            yield part
            labels = None if rest.labels is None else rest.labels.take(slice(size, None))
            ends = None if rest.ends is None else rest.ends[part.n_rows :]
            first, n_rows = rest.first + part.n_rows, rest.n_rows - part.n_rows
            rest = Chunk(rest.X[size:], labels, rest.file, rest.rows[size:], first, n_rows, ends, rest.ended)
        yield rest

    def head(self, n_rows: int) -> Chunk:
        """The first ``n_rows`` good rows, and the bad ones before them."""
        if n_rows >= len(self.X):
            return self
        labels = None if self.labels is None else self.labels.take(slice(n_rows))
        covered = int(self.rows[n_rows - 1]) - self.first if n_rows else 0
        ends = None if self.ends is None else self.ends[:covered]
        return Chunk(self.X[:n_rows], labels, self.file, self.rows[:n_rows], self.first, covered, ends)


class Columns(NamedTuple):
    """Which columns of a table are wanted, and as what."""

    features: tuple[str, ...]
    label: str | None
    dtype: np.dtype[Any]
    text_labels: bool | None
    """Whether labels are text or whole numbers; None while no label has been seen."""

    def knowing(self, labels: Labels | None) -> Columns:
        """The same, knowing the kind of labels as soon as there are any."""
        if self.text_labels is not None or labels is None:
            return self
        return self._replace(text_labels=labels.text)

    @property
    def rows_at_a_time(self) -> int:
        """How many rows make a chunk of convenient size."""
        return int(min(max(CHUNK_BYTES // (len(self.features) * self.dtype.itemsize), 1), 65_536))


class Table(Protocol):
    """An open source of rows with named columns."""

    columns: list[str]
    numeric: list[str]
    """The columns that could be features."""
    undecided: list[str]
    """Columns of which the first row does not tell whether they could."""
    single: set[str]
    """Those of them that lose nothing in float32."""
    open_ended: bool
    """Whether later rows may have other columns."""
    in_place: bool
    """Whether a row can be changed without writing the whole file anew."""

    def batches(self, columns: Columns, skip: int, anchor: tuple[int, int] | None) -> Iterator[Batch]:
        """The rows after the first ``skip``. ``anchor`` is a row number and the offset at which that row begins."""
        ...

    def close(self) -> None:
        """Let go of the file."""
        ...


def bad_values(X: FloatArray, missing: bool) -> Any:
    """Where values cannot be learned from: too large, infinite, or NaN; if readings may be missing, in rows of NaN."""
    largest = _LARGEST[X.dtype]
    if not X.size or (X.min() >= -largest and X.max() <= largest):  # false for NaN too
        return np.zeros(X.shape, np.bool_)
    if missing:
        absent = np.isnan(X)
        return (absent & absent.all(axis=1, keepdims=True)) | (np.abs(X) > largest)
    return ~(np.abs(X) <= largest)


def check_batch(
    batch: Batch, columns: Columns, file: str, first: int, skip_bad: bool, in_place: bool = True, missing: bool = False
) -> tuple[Chunk, BadRowError | None]:
    """The good rows of a batch. Unless bad ones are to be skipped, those before the first bad one, and the error.

    Readings may be ``missing`` from a good row, but not all of them.
    """
    X, labels = batch.X, batch.labels
    n_rows, strange = len(X), bad_values(X, missing)
    bad = strange.any(axis=1)
    bad[list(batch.faults)] = True
    if labels is not None:
        columns = columns.knowing(labels.take(~bad))  # the first good row with a label decides
        if columns.text_labels is not None:
            wrong = [code for code, value in enumerate(labels.values) if isinstance(value, str) != columns.text_labels]
            bad |= np.isin(labels.codes, wrong)
    if not bad.any():
        return Chunk(X, labels, file, np.arange(first + 1, first + n_rows + 1), first, n_rows, batch.ends), None
    error = None
    if not skip_bad:
        n_rows = int(bad.argmax())
        error = _explain(batch, columns, file, first, n_rows, strange[n_rows], in_place)
    good = np.flatnonzero(~bad[:n_rows])
    kept = None if labels is None else labels.take(good)
    if kept is not None and columns.text_labels is not None:
        kept = kept.of_kind(columns.text_labels)
    ends = None if batch.ends is None else batch.ends[:n_rows]
    return Chunk(X[good], kept, file, good + first + 1, first, n_rows, ends), error


def _explain(
    batch: Batch, columns: Columns, file: str, first: int, row: int, strange: Any, in_place: bool
) -> BadRowError:
    if row in batch.faults:
        return BadRowError(file, first + row + 1, *batch.faults[row], in_place)
    if strange.any():
        place = int(strange.argmax())
        column, value = columns.features[place], batch.X[row, place]
        what = "is missing or not a number" if np.isnan(value) else f"{value} is too large for {columns.dtype}"
        return BadRowError(file, first + row + 1, column, what, in_place)
    assert batch.labels is not None
    value = batch.labels.values[batch.labels.codes[row]]
    known, found = ("text", "a number") if columns.text_labels else ("whole numbers", "text")
    what = f"the label {value!r} is {found}, all before were {known}"
    return BadRowError(file, first + row + 1, columns.label, what, in_place)


def side_by_side(columns: Sequence[Any], n_rows: int, dtype: np.dtype[Any]) -> FloatArray:
    """Columns as a matrix, eight at a time and some rows at a time, so that what is written stays in the cache."""
    X: FloatArray = np.empty((n_rows, len(columns)), dtype)
    rows = 512 if len(columns) <= 256 else max(n_rows, 1)
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, n_rows, rows):
            stop = start + rows
            for i in range(0, len(columns), 8):
                X[start:stop, i : i + 8] = np.array([column[start:stop] for column in columns[i : i + 8]]).T
    return X


def code_labels(values: Sequence[Any]) -> tuple[Labels, dict[int, str]]:
    """Labels of Python values (None or NaN: missing), and which rows hold something that cannot be a label."""
    places: dict[Any, int] = {}
    codes = np.full(len(values), UNLABELED, np.int64)
    faults = {}
    for row, value in enumerate(values):
        try:
            label = as_label(value)
        except (ValueError, OverflowError):
            faults[row] = f"{value!r} cannot be a label: it must be text or a whole number"
            continue
        if label is not None:
            codes[row] = places.setdefault(label, len(places))
    return Labels(codes, list(places)), faults


def as_label(value: Any) -> str | int | None:
    """A label as text or whole number; None if it is missing."""
    if value is None or isinstance(value, str):
        if value and not value.isascii():
            value.encode()  # half a character (a lone surrogate) could be written nowhere
        return value or None
    if isinstance(value, float) and value != value:
        return None
    if isinstance(value, (bool, int, float, np.integer, np.floating, np.bool_)) and int(value) == value:
        if not -(2**63) < value < 2**63:
            raise OverflowError
        return int(value)
    raise ValueError


def choose_columns(
    table: Table,
    file: str,
    features: Sequence[str] | None,
    label: str | None,
    dtype: Any,
    label_may_miss: bool,
    missing: bool = False,
    time: str | None = None,
) -> Columns:
    """Fix the columns: the features named, or all numeric columns but the label and the ``time``.

    A column that is empty in the first rows is taken for a numeric one if readings may be ``missing``.
    """
    if label is not None and label not in table.columns and not label_may_miss:
        raise SourceError(f"{file} has no column {label!r} for the label; its columns are {_list(table.columns)}")
    if time is not None and time not in table.columns and not table.open_ended:
        raise SourceError(f"{file} has no column {time!r} for the time; its columns are {_list(table.columns)}")
    numeric = {*table.numeric, *(table.undecided if missing else ())} - {label, time}
    chosen = tuple(features) if features is not None else tuple(c for c in table.columns if c in numeric)
    undecided = [name for name in table.undecided if name not in (label, time)] if features is None else []
    if undecided and not missing:
        raise SourceError(
            f"{file}: column {_list(undecided)} is empty in the first rows, so that it cannot be told whether it holds "
            "numbers; name the columns to learn from with --features"
        )
    if not chosen:
        raise SourceError(f"{file} has no numeric column to learn from; its columns are {_list(table.columns)}")
    if len(set(chosen)) < len(chosen):
        raise SourceError(f"features {_list(chosen)} name a column twice")
    if label in chosen:
        raise SourceError(f"column {label!r} cannot be both a feature and the label")
    if dtype is None:
        dtype = np.float32 if set(chosen) <= table.single else np.float64
    return Columns(chosen, label, np.dtype(dtype), None)


def growing(X: FloatArray, columns: Columns) -> tuple[str, ...]:
    """Names of columns that grow with every row: times and row numbers, most likely."""
    if len(X) < LEAST_ROWS:
        return ()
    steps = np.diff(X.astype(np.float64), axis=0)
    return tuple(columns.features[place] for place in np.flatnonzero((steps > 0).all(axis=0)))


def check_columns(table: Table, file: str, columns: Columns) -> Columns:
    """Raise unless ``table`` has all the features; without the label column its rows simply have no labels."""
    if table.open_ended:
        return columns
    missing = [name for name in columns.features if name not in table.columns]
    if missing:
        raise SourceError(f"{file} has no column {_list(missing)}; its columns are {_list(table.columns)}")
    twice = [name for name in (*columns.features, columns.label) if name is not None and table.columns.count(name) > 1]
    if twice:
        raise SourceError(f"{file} has more than one column {_list(twice)}")
    return columns if columns.label in table.columns else columns._replace(label=None)


def _list(names: Sequence[str], most: int = 20) -> str:
    shown = ", ".join(map(repr, names[:most]))
    return shown + (f" and {len(names) - most} more" if len(names) > most else "") or "none"
