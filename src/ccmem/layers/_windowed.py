"""Base of the layers that turn the rows of a signal into features of overlapping windows.

A subclass decides how long a window is (``_look``, ``_finish_looking``) and describes windows (``_describe``). The base
class keeps the rows of the next window between chunks, so that a stream may be cut anywhere.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from ccmem.base.estimator import SavedEstimator
from ccmem.base.validation import check_rows
from ccmem.core.allocation import aligned
from ccmem.core.events import Event
from ccmem.core.locking import learning, reading
from ccmem.core.parameters import Rule, check_parameters, choice, either, integer, optional
from ccmem.core.sklearn import BaseEstimator, NotFittedError, TransformerMixin
from ccmem.core.typing import FloatArray

PERIODS = 2
"""Periods in a window whose length is "auto"."""
HOPS = 32
"""Windows that start within the length of one window, unless ``hop`` says otherwise."""
_COMMON = ("rows", "window_", "seen", "windows", "n_features_in_")
"""Fields of a checkpoint that every windowed layer has."""


class WindowedLayer(SavedEstimator, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Features of the last rows of a signal, one row of features whenever a window is full."""

    _rules: ClassVar[dict[str, Rule]] = {"window": either(choice("auto"), integer(8)), "hop": optional(integer(1))}
    _shape_parameters: ClassVar[tuple[str, ...]] = ("window", "hop")
    _takes_missing: ClassVar[bool] = False
    """True if rows may hold NaN for a missing reading."""
    _begun = "_rows"

    window: str | int
    hop: int | None
    n_features_in_: int
    _rows: FloatArray

    # Streaming -----------------------------------------------------------------------------------------------------

    @learning
    def push(self, X: Any) -> FloatArray:
        """Take the next rows of the signal; return the features of every window that they completed."""
        began = self.__sklearn_is_fitted__()
        self._check_settings()
        rows = check_rows(self, _as_columns(X), np.float64 if began else None, missing=self._takes_missing)
        rows = rows.astype(np.float64, copy=False)
        if not began:
            self._begin()
        before = len(self._rows)
        self.n_samples_seen_ += len(rows)
        self._rows = np.concatenate([self._rows, self._prepare(rows)])
        if self.window_ is None:
            self._look(before)
            if self.window_ is None:
                return np.empty((0, 0))
        features = self._describe(self._rows)
        self.n_windows_ += len(features)
        self._rows = self._rows[len(features) * self.hop_ :].copy()
        return features

    @learning
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Take the next rows of the signal, as :meth:`push` does, without returning features."""
        self.push(X)
        return self

    @learning
    def fit(self, X: Any, y: Any = None) -> Self:
        """Reset, then take the rows of ``X``; choose the window length from these rows."""
        with self._anew():
            self.push(X)
            if self.window_ is None:
                self._finish_looking()
        return self

    @reading
    def transform(self, X: Any) -> FloatArray:
        """Return the features of all whole windows of ``X``, a separate recording; the stream is not affected."""
        self._require_window()
        rows = check_rows(self, _as_columns(X), np.float64, missing=self._takes_missing)
        return self._describe(self._prepare_recording(rows))

    @reading
    def rows_of(self, step: int) -> tuple[int, int]:
        """Return the first and last row of the signal, from 0, in window ``step``.

        The events of a memory behind the layer count windows. An event at ``step`` was triggered by the last of these
        rows. Its change began no earlier than the first row, if this window is the first that contains the change.
        """
        self._require_window()
        if step < 0:
            raise ValueError(f"step={step}: windows are counted from 0")
        return step * self.hop_, step * self.hop_ + self.window_ - 1

    @reading
    def event_in_rows(self, event: Event) -> Event:
        """Return an event of a memory behind the layer, with steps counted in rows of the signal instead of windows.

        The step is the last row of the event's window; the onset lies within the first window that contains the change.
        """
        step, (first, last) = self.rows_of(event.step)[1], self.rows_of(event.onset)
        middle, half = (first + last) // 2, (last - first + 1) // 2
        return event._replace(step=step, count=step - middle + 1, uncertainty=event.uncertainty * self.hop_ + half)

    @reading
    def labels_of_windows(self, codes: Any) -> Any:
        """Return a label code for every complete window of a recording, from one code per row: 0, 1, ... or -1 (none).

        The label of a window is the label of more than half of its labelled rows, or -1 if there is none.
        """
        self._require_window()
        codes = np.asarray(codes)
        n = max(0, (len(codes) - self.window_) // self.hop_ + 1)
        found, most, labelled = np.full(n, -1), np.zeros(n, int), np.zeros(n, int)
        starts = np.arange(n) * self.hop_
        for code in np.unique(codes[codes >= 0]):
            sums = np.concatenate([[0], np.cumsum(codes == code)])
            counts = sums[starts + self.window_] - sums[starts]
            found[counts > most] = code
            most = np.maximum(most, counts)
            labelled += counts
        found[2 * most <= labelled] = -1
        return found

    @reading
    def set_overlap(self, model: Any) -> None:
        """Set ``overlap`` of the memory in ``model`` to the number of windows that share rows, if any.

        Call it before the memory learns the first window.
        """
        self._require_window()
        memory = getattr(model, "memory_", getattr(model, "memory", model))
        if hasattr(memory, "overlap"):
            memory.overlap = max(1, self.window_ // self.hop_)

    # Reading ---------------------------------------------------------------------------------------------------------

    @property
    @reading
    def overlap_(self) -> int:
        """Rows that a window shares with the next one.

        Windows up to ``overlap_ // hop_`` steps apart share rows, so their features are correlated even if the rows
        are independent: the mean of n successive windows varies like that of about n ``hop_`` / ``window_`` of them.
        """
        self._require_window()
        return int(self.window_ - self.hop_)

    @property
    @reading
    def frozen_(self) -> bool:
        """True if the window length is known; it does not change afterwards."""
        return self.__sklearn_is_fitted__() and self.window_ is not None

    # Subclasses ------------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        self.n_samples_seen_ = self.n_windows_ = 0
        self.window_: Any = None
        self.hop_: Any = None
        self._rows = np.empty((0, self.n_features_in_))
        self._began_with = self._shape()

    def _look(self, before: int) -> None:
        """Choose the window length if there are enough rows; ``before`` rows have been examined already."""
        raise NotImplementedError

    def _finish_looking(self) -> None:
        """Choose the window length from the available rows."""
        raise NotImplementedError

    def _describe(self, rows: FloatArray) -> FloatArray:
        """Return the features of all complete windows of prepared rows."""
        raise NotImplementedError

    def _prepare(self, rows: FloatArray) -> FloatArray:
        """Return the next rows of the stream in the form in which they are stored."""
        return rows

    def _prepare_recording(self, rows: FloatArray) -> FloatArray:
        """Return the rows of a separate recording in the form in which rows of the stream are stored."""
        return rows

    def _set_window(self, window: int) -> None:
        self.window_ = max(8, window)
        self.hop_ = min(self.window_, int(self.hop)) if self.hop is not None else max(1, self.window_ // HOPS)

    # Checkpoints ------------------------------------------------------------------------------------------------------

    def _export_learned(self) -> dict[str, Any]:
        """Return the checkpoint fields that are specific to this kind of layer."""
        return {}

    def _import_learned(self, fields: dict[str, Any]) -> None:
        """Validate and restore the fields of :meth:`_export_learned`; the window is already known."""

    _most_waiting: ClassVar[int]
    """Largest number of rows that are buffered while the window length is unknown."""

    @reading
    def _export(self) -> dict[str, Any]:
        self._check_settings()
        return {
            "rows": self._rows,
            "window_": self.window_,
            "seen": self.n_samples_seen_,
            "windows": self.n_windows_,
            **self._export_columns(),
            **({} if self.window_ is None else self._export_learned()),
        }

    def _import(self, fields: dict[str, Any]) -> None:
        from ccmem.base.storage import check_names

        owner = type(self).__name__
        check_parameters(owner, self._rules, vars(self))
        if not isinstance(fields, dict) or not set(_COMMON) <= set(fields):
            check_names(owner, fields, _COMMON)
        rows, window, n_features = fields["rows"], fields["window_"], fields["n_features_in_"]
        counts = (fields["seen"], fields["windows"])
        if not all(type(n) is int and 0 <= n < 2**62 for n in counts):
            raise ValueError(f"{owner}: its counters are damaged")
        given = None if self.window == "auto" else int(self.window)
        longest = max(8, 2 * self._most_waiting, given or 0)
        if not (window is None or (type(window) is int and 8 <= window <= longest)):
            raise ValueError(f"{owner}: a window of {window!r} rows is not possible")
        if window is not None and given not in (None, window):
            raise ValueError(f"{owner}: its window of {window!r} rows is not that of its parameters")
        self._import_columns(fields)
        self._begin()
        if window is not None and self.window_ is None:
            self._set_window(window)
        if window != self.window_:
            raise ValueError(f"{owner}: its window of {window!r} rows is not that of its parameters")
        learned = {name: fields[name] for name in fields if name not in (*_COMMON, "feature_names_in_")}
        check_names(owner, learned, self._learned_names if window is not None else ())
        if window is not None:
            self._import_learned(learned)
        kind = self._rows.dtype
        if not (isinstance(rows, np.ndarray) and rows.dtype == kind and rows.shape[1:] == (n_features,)):
            raise ValueError(f"{owner}: the buffered rows are not an array of {kind} with {n_features} columns")
        if np.isinf(rows).any() or (np.isnan(rows).any() and (window is not None or not self._takes_missing)):
            raise ValueError(f"{owner}: the buffered rows hold NaN or infinity")
        most = self._most_waiting - 1 if window is None else max(self._most_waiting, self.window_) - 1
        if len(rows) > most or counts[0] != counts[1] * (self.hop_ or 0) + len(rows):
            raise ValueError(f"{owner}: the buffered rows do not fit its counters")
        self.n_samples_seen_, self.n_windows_ = counts
        self._rows = rows

    _learned_names: ClassVar[tuple[str, ...]] = ()
    """Names of the fields of :meth:`_export_learned`."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for name, value in list(state.items()):  # unpickled arrays may be read-only memory maps
            if name.startswith("_") and isinstance(value, np.ndarray):
                setattr(self, name, aligned(value))

    def _require_window(self) -> None:
        if not self.__sklearn_is_fitted__() or self.window_ is None:
            raise NotFittedError(
                f"This {type(self).__name__} has not chosen the length of a window yet: it needs more rows, or window=N"
            )


def _as_columns(X: Any) -> Any:
    """Return a plain sequence of numbers as a signal of one channel, anything else unchanged."""
    return np.asarray(X)[:, np.newaxis] if not hasattr(X, "columns") and np.ndim(X) == 1 and len(X) else X
