"""Common representation of all sources: rows of numbers, optional labels, and the position of each row in a file.

A reader returns a :class:`Batch` with everything it found; :func:`check_batch` converts it to a :class:`Chunk` of good
rows and describes the fault of the first bad row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ccmem.core.codes import UNLABELED
from ccmem.core.typing import LARGEST, FloatArray, IntArray
from ccmem.io.streams.errors import NOT_UTF8, BadRowError, Faults, named, shown
from ccmem.io.streams.schema import Columns, Schema


class Labels(NamedTuple):
    """Labels of some rows: each an index into ``values``, or UNLABELED."""

    codes: IntArray
    values: list[Any]
    """Distinct labels: all text, or all integers."""

    def take(self, rows: Any) -> Labels:
        """Return the labels of a selection of rows."""
        return Labels(self.codes[rows], self.values)

    @property
    def text(self) -> bool | None:
        """True if the labels are text, False if they are integers; None if all are missing."""
        known = self.codes[self.codes != UNLABELED]
        return isinstance(self.values[known[0]], str) if known.size else None

    def of_kind(self, text: bool) -> Labels:
        """Return equal labels without the values of the other kind, which no row uses."""
        places = [code for code, value in enumerate(self.values) if isinstance(value, str) == text]
        if len(places) == len(self.values):
            return self
        new = np.full(len(self.values) + 1, UNLABELED, np.int64)
        new[places] = np.arange(len(places))
        return Labels(new[self.codes], [self.values[place] for place in places])

    def array(self) -> Any:
        """Return one label per row as ``partial_fit`` accepts: None for a missing text, NaN for a missing number."""
        missing = self.codes == UNLABELED
        if self.text is not False:
            return np.array([*self.values, None], object)[self.codes]
        numbers = np.array(self.values, np.int64)[np.where(missing, 0, self.codes)]
        return np.where(missing, np.nan, numbers) if missing.any() else numbers


class Batch(NamedTuple):
    """Rows read from a file, good or bad."""

    X: FloatArray
    """Values; NaN where a value is missing or not a number."""
    labels: Labels | None
    faults: Faults
    ends: IntArray | None = None
    """Number of file bytes up to the end of each row, for files that can be resumed in place."""
    times: FloatArray | None = None
    """Time of each row in seconds since 1970; NaN if missing. None without a time column."""
    texts: Sequence[Any] = ()
    """Cells of the columns that are wanted as texts, one Arrow array or list for each; None where missing."""

    def after(self, n_rows: int) -> Batch:
        """Return the batch without its first ``n_rows``."""
        if not n_rows:
            return self
        return Batch(
            self.X[n_rows:],
            None if self.labels is None else self.labels.take(slice(n_rows, None)),
            {row - n_rows: fault for row, fault in self.faults.items() if row >= n_rows},
            None if self.ends is None else self.ends[n_rows:],
            None if self.times is None else self.times[n_rows:],
            [column[n_rows:] for column in self.texts],
        )


class Chunk(NamedTuple):
    """Good rows of one file, in order."""

    X: FloatArray
    labels: Labels | None
    file: str
    rows: IntArray
    """Number of every row in its file, from 1."""
    first: int
    """Number of rows of the file before the chunk."""
    n_rows: int
    """Number of rows of the file that the chunk covers, including bad rows."""
    ends: IntArray | None
    """Number of file bytes up to the end of each covered row."""
    ended: bool = True
    """False for a last line without a line end."""
    times: FloatArray | None = None
    """Time of every good row in seconds since 1970, NaN if missing; None without a time column."""

    @property
    def y(self) -> Any:
        """Labels in the format of ``partial_fit``, or None."""
        return None if self.labels is None else self.labels.array()

    def pieces(self, size: int) -> Iterator[Chunk]:
        """Yield the chunk in parts of at most ``size`` good rows."""
        return (self._part(start, start + size) for start in range(0, max(len(self.X), 1), size))

    def head(self, n_rows: int) -> Chunk:
        """Return the first ``n_rows`` good rows, with the bad rows before them."""
        return self._part(0, n_rows)

    def _part(self, start: int, stop: int) -> Chunk:
        """Return some good rows with the bad rows before each of them, and those behind the last good row of all."""
        is_last, good = stop >= len(self.X), slice(start, stop)
        begin = int(self.rows[start - 1]) - self.first if start else 0
        end = self.n_rows if is_last else int(self.rows[stop - 1]) - self.first if stop else 0
        return self._replace(
            X=self.X[good],
            labels=None if self.labels is None else self.labels.take(good),
            rows=self.rows[good],
            first=self.first + begin,
            n_rows=end - begin,
            ends=None if self.ends is None else self.ends[begin:end],
            ended=self.ended if is_last else True,
            times=None if self.times is None else self.times[good],
        )


class Table:
    """An open source of rows with named columns; the base of all readers."""

    columns: list[str]
    single: set[str]
    """Columns that float32 represents exactly."""
    open_ended = False
    """True if later rows may have other columns."""
    in_place = False
    """True if a row can be edited without rewriting the whole file."""
    text_labels: bool | None = None
    """Kind of the labels, as in :class:`Columns`; set as soon as a label is known."""
    has_rows = True
    ended = True
    """False if the last row returned was a line without a line end."""
    held_back = held_lines = 0
    """Number of trailing bytes left for later after everything has been read, and of complete lines among them."""
    end: int | None = None
    """Number of bytes of the file up to the end of the last row returned, if it is known."""
    close: Callable[[], Any]

    @property
    def schema(self) -> Schema:
        """Roles of the columns, from a sample of rows."""
        raise NotImplementedError

    def batches(self, columns: Columns, skip: int, end: int | None) -> Iterator[Batch]:
        """Yield the rows after the first ``skip``, which end at the offset ``end`` if it is known."""
        raise NotImplementedError


def bad_values(X: FloatArray, missing: bool) -> Any:
    """Return a mask of bad values: too large, infinite or NaN; with ``missing``, NaN only in rows of all NaN."""
    largest = LARGEST[X.dtype]
    if not X.size or (X.min() >= -largest and X.max() <= largest):  # also false for NaN
        return np.zeros(X.shape, np.bool_)
    if missing:
        absent = np.isnan(X)
        return (absent & absent.all(axis=1, keepdims=True)) | (np.abs(X) > largest)
    return ~(np.abs(X) <= largest)


def check_batch(
    batch: Batch, columns: Columns, file: str, first: int, skip_bad: bool, in_place: bool = True, missing: bool = False
) -> tuple[Chunk, BadRowError | None]:
    """Return the good rows of a batch, and the error for the first bad row unless bad rows are to be skipped.

    With an error, only the rows before the bad row are returned. With ``missing``, a good row may lack some
    readings, but not all.
    """
    X, labels = batch.X, batch.labels
    n_rows, strange = len(X), bad_values(X, missing)
    bad = strange.any(axis=1)
    bad[list(batch.faults)] = True
    if labels is not None:
        columns = columns.knowing(labels.take(~bad))  # the first labelled good row decides
        if columns.text_labels is not None:
            wrong = [code for code, value in enumerate(labels.values) if isinstance(value, str) != columns.text_labels]
            bad |= np.isin(labels.codes, wrong)
    error = None
    good: Any = slice(n_rows)
    if bad.any():
        if not skip_bad:
            n_rows = int(bad.argmax())
            error = _explain(batch, columns, file, first, n_rows, strange[n_rows], in_place)
        good = np.flatnonzero(~bad[:n_rows])
    kept = None if labels is None else labels.take(good)
    if kept is not None and columns.text_labels is not None:
        kept = kept.of_kind(columns.text_labels)
    rows = np.arange(first + 1, first + n_rows + 1)[good]
    ends = None if batch.ends is None else batch.ends[:n_rows]
    times = None if batch.times is None else batch.times[good]
    return Chunk(X[good], kept, file, rows, first, n_rows, ends, times=times), error


def good_rows(
    table: Table,
    columns: Columns,
    file: str,
    first: int = 0,
    end: int | None = None,
    skip_bad: bool = False,
    missing: bool = False,
) -> Iterator[Chunk]:
    """Yield the good rows of a table after the ``first``; raise at a bad row unless bad rows are to be skipped."""
    batches = table.batches(columns, first, end)
    while True:
        with named(file):
            batch = next(batches, None)
        if batch is None:
            return
        chunk, error = check_batch(batch, columns, file, first, skip_bad, table.in_place, missing)
        columns = columns.knowing(chunk.labels)
        table.text_labels = columns.text_labels
        first += chunk.n_rows
        yield chunk._replace(ended=table.ended)
        if error is not None:
            raise error


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
    """Return columns as a matrix."""
    X: FloatArray = np.empty((n_rows, len(columns)), dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        for place, column in enumerate(columns):
            X[:, place] = column
    return X


def code_labels(
    values: Sequence[Any], column: str | None = None, rows: IntArray | None = None
) -> tuple[Labels, Faults]:
    """Return labels coded from Python values (None or NaN: missing), and the faults of rows with invalid labels.

    ``rows``: index into ``values`` of the label of each row, -1 if it is missing; by default one value per row.
    """
    places: dict[Any, int] = {}
    codes = np.full(len(values) + 1, UNLABELED, np.int64)
    faults = {}
    for i, value in enumerate(values):
        try:
            label = as_label(value)
        except UnicodeEncodeError:
            faults[i] = column, f"{shown(str(value))} {NOT_UTF8}"
        except (ValueError, OverflowError):
            faults[i] = column, f"{value!r} cannot be a label: it must be text or a whole number"
        else:
            if label is not None:
                codes[i] = places.setdefault(label, len(places))
    if rows is None:
        return Labels(codes[:-1], list(places)), faults
    wrong = np.flatnonzero(np.isin(rows, list(faults))).tolist() if faults else []
    return Labels(codes[rows], list(places)), {row: faults[int(rows[row])] for row in wrong}


def as_label(value: Any) -> str | int | None:
    """Return a label as text or integer; None if it is missing."""
    if value is None or isinstance(value, str):
        if value and not value.isascii():
            value.encode()  # a lone surrogate could not be written to any file
        return value or None
    if isinstance(value, float) and value != value:
        return None
    if isinstance(value, (bool, int, float, np.integer, np.floating, np.bool_)) and int(value) == value:
        if not -(2**63) < value < 2**63:
            raise OverflowError
        return int(value)
    raise ValueError
