"""A signal as windows: what a memory needs to notice a change of period, waveform or correlation, not only of level.

:class:`WindowLayer` goes before a memory. Rows of one or many channels go in as they come; whenever a window is full,
one row of features comes out (see :mod:`ccmem.layers._signal`), and the window moves on by ``hop`` rows.

>>> import numpy as np
>>> from ccmem import WindowLayer
>>> time = 2 * np.pi * np.arange(3000) / 40
>>> hum = np.where(np.arange(3000) < 1500, np.sin(time), np.sign(np.sin(time)))  # a sine becomes a square wave
>>> front = WindowLayer()
>>> features = front.push(hum)
>>> front.window_, front.hop_, features.shape  # two periods
(80, 2, (1461, 10))
>>> soon, late, changed = features[50], features[500], features[1000]
>>> bool(abs(late - soon).max() < 1e-9), bool(abs(changed - soon).max() > 1)
(True, True)
>>> front.rows_of(1000)  # the rows that window 1000 is made of: the first, and the last
(2000, 2079)
"""

from __future__ import annotations

import itertools
from typing import Any, ClassVar, Self

import numpy as np

from ccmem._sklearn import BaseEstimator, NotFittedError, TransformerMixin
from ccmem._typing import FloatArray
from ccmem.estimator import SavedEstimator
from ccmem.guard import learning, reading
from ccmem.kernels.rows import check_rows
from ccmem.layers._signal import BAND_EDGES, N_MOMENTS, PAIRED, bands, choose_period, describe, n_together, waves
from ccmem.memory import Event, aligned, check_size
from ccmem.parameters import Rule, check_parameters, choice, either, integer, optional

LOOKS = (256, 512, 1024)
"""Rows after which a period is looked for; the last decides."""
_PERIODS = 2
_HOPS = 32
_NAMES = ("level", "spread", "skewness", "peakedness")
_WITH = ("others", "others either way", "its nearest")


class WindowLayer(SavedEstimator, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Features of the last rows of a signal, whenever a window is full: of each channel, and of channels together.

    Parameters
    ----------
    window : "auto" or int >= 8, default="auto"
        Rows in a window. "auto" waits for up to 1,024 rows (256 if the signal repeats clearly) and takes two of its
        periods, or 100 rows where there is no period.
    hop : int or None, default=None
        Rows from one window to the next, at most a window; None means a 32nd of it, so that windows overlap and a
        change shows soon, and an outlier is gone again after two batches of a memory. What learns from them has to bear
        with neighbours that are alike, as ``AdaptiveCCM`` does.

    Attributes
    ----------
    window_, hop_ : int, once they are known.
    n_windows_ : int, how many windows have come out.
    n_samples_seen_ : int, how many rows have gone in.

    Notes
    -----
    Kept between chunks are the rows of one window (while "auto" looks for a period, up to 1,024), so that a stream may
    be cut anywhere: the windows are the same, to the last bit.

    Up to 8 channels have a feature for every pair of them. Of more, each has three that tell how much it goes with the
    others, so which two go together is not seen, and channels more than 64 columns apart are not compared.
    """

    _rules: ClassVar[dict[str, Rule]] = {"window": either(choice("auto"), integer(8)), "hop": optional(integer(1))}

    n_features_in_: int
    _rows: FloatArray

    def __init__(self, window: str | int = "auto", *, hop: int | None = None) -> None:
        self.window = window
        self.hop = hop

    # Streaming -----------------------------------------------------------------------------------------------------

    @learning
    def push(self, X: Any) -> FloatArray:
        """Take the next rows of the signal; return the features of every window that they completed."""
        began = self.__sklearn_is_fitted__()
        if began:
            self._check_settings()
        else:
            check_parameters("WindowLayer", self._rules, vars(self))
        rows = check_rows(self, _as_columns(X), np.float64 if began else None).astype(np.float64, copy=False)
        if not began:
            self._begin()
        before = len(self._rows)
        self.n_samples_seen_ += len(rows)
        self._rows = np.concatenate([self._rows, rows])
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
        """As :meth:`push`, for who does not want the features."""
        self.push(X)
        return self

    @learning
    def fit(self, X: Any, y: Any = None) -> Self:
        """Forget everything, then take the rows of ``X``; find the length of a window from what there is."""
        fresh = type(self)(**self.get_params())
        fresh.push(X)
        if fresh.window_ is None:
            fresh._set_window(_PERIODS * (choose_period(fresh._rows, last=True) or 0))
        self.__dict__.pop("feature_names_in_", None)
        self.__dict__.update((name, value) for name, value in vars(fresh).items() if name != "_guard")
        return self

    @reading
    def transform(self, X: Any) -> FloatArray:
        """Features of all whole windows of ``X``, a recording of its own: the stream and its place stay as they are."""
        self._require_window()
        rows = check_rows(self, _as_columns(X), np.float64)
        return self._describe(rows)

    @reading
    def rows_of(self, step: int) -> tuple[int, int]:
        """First and last row of the signal, from 0, in window ``step``.

        Window steps are what the events of a memory behind the layer count: an event at ``step`` came with the last
        of these rows, and what it tells of began no earlier than the first if it is the first such window.
        """
        self._require_window()
        if step < 0:
            raise ValueError(f"step={step}: windows are counted from 0")
        return step * self.hop_, step * self.hop_ + self.window_ - 1

    @reading
    def event_in_rows(self, event: Event) -> Event:
        """An event of a memory behind the layer, counted in rows of the signal instead of windows.

        It came with the last row of its window; what it tells of began within the first window that was new.
        """
        step, (first, last) = self.rows_of(event.step)[1], self.rows_of(event.onset)
        middle, half = (first + last) // 2, (last - first + 1) // 2
        return event._replace(step=step, count=step - middle + 1, uncertainty=event.uncertainty * self.hop_ + half)

    # How long a window is --------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        self.n_samples_seen_ = self.n_windows_ = 0
        self.window_: Any = None
        self.hop_: Any = None
        self._rows = np.empty((0, self.n_features_in_))
        self._began_with = (self.window, self.hop)
        if self.window != "auto":
            self._set_window(int(self.window))

    def _look(self, before: int) -> None:
        """Look for a period where one is due; each look sees the first so many rows, however they came."""
        for n in LOOKS:
            if before < n <= len(self._rows):
                period = choose_period(self._rows[:n], last=n == LOOKS[-1])
                if period is not None:
                    self._set_window(_PERIODS * period)
                    return

    def _set_window(self, window: int) -> None:
        self.window_ = max(8, window)
        self.hop_ = min(self.window_, int(self.hop)) if self.hop is not None else max(1, self.window_ // _HOPS)
        check_size(16 * self.window_ * BAND_EDGES[-1], f"windows of {self.window_:,} rows")
        self._edges = bands(self.window_)
        self._table = waves(self.window_)

    def _describe(self, rows: FloatArray) -> FloatArray:
        n = max(0, (len(rows) - self.window_) // self.hop_ + 1)
        features = np.empty((n, self._n_features_out))
        describe(rows, self.window_, self.hop_, self._table, self._edges, features)
        return features

    @property
    @reading
    def frozen_(self) -> bool:
        """Whether the length of a window is known; it does not change any more."""
        return self.__sklearn_is_fitted__() and self.window_ is not None

    @property
    def _n_features_out(self) -> int:
        self._require_window()
        return self.n_features_in_ * (N_MOMENTS + len(self._edges) - 1) + n_together(self.n_features_in_)

    @reading
    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names of the features: channel and what of it, such as ``x0 spread``, ``x0 3-4 turns`` or ``x0 with x1``."""
        self._require_window()
        known = getattr(self, "feature_names_in_", [f"x{i}" for i in range(self.n_features_in_)])
        channels = known if input_features is None else input_features
        edges = self._edges.tolist()
        turns = [f"{a}-{b - 1} turns" if b - a > 1 else f"{a} turns" for a, b in itertools.pairwise(edges)]
        alone = [f"{channel} {what}" for channel in channels for what in (*_NAMES, *turns)]
        if len(channels) <= PAIRED:
            together = [f"{a} with {b}" for a, b in itertools.combinations(channels, 2)]
        else:
            together = [f"{channel} with {whom}" for channel in channels for whom in _WITH]
        return np.array(alone + together, object)

    @property
    @reading
    def n_floats_(self) -> int:
        """How many numbers are kept: rows that wait for their window to be full, and tables of waves."""
        return int(self._rows.size + (0 if self.window_ is None else self._table.size))

    # Keeping ---------------------------------------------------------------------------------------------------------

    @reading
    def _export(self) -> dict[str, Any]:
        self._check_settings()
        names = {"feature_names_in_": self.feature_names_in_} if hasattr(self, "feature_names_in_") else {}
        return {
            "rows": self._rows,
            "window_": self.window_,
            "seen": self.n_samples_seen_,
            "windows": self.n_windows_,
            "n_features_in_": int(self.n_features_in_),
            **names,
        }

    def _import(self, fields: dict[str, Any]) -> None:
        from ccmem.persistence.memories import check_names, check_vector

        check_parameters("WindowLayer", self._rules, vars(self))
        needed = ("rows", "window_", "seen", "windows", "n_features_in_")
        check_names("WindowLayer", fields, needed, ("feature_names_in_",))
        rows, window, n_features = fields["rows"], fields["window_"], fields["n_features_in_"]
        counts = (fields["seen"], fields["windows"])
        if not all(type(n) is int and 0 <= n < 2**62 for n in (*counts, n_features)) or n_features < 1:
            raise ValueError("WindowLayer: its counters are damaged")
        if not (isinstance(rows, np.ndarray) and rows.dtype == np.float64 and rows.shape[1:] == (n_features,)):
            raise ValueError(f"WindowLayer: the rows that wait are not an array of float64 with {n_features} columns")
        if not np.isfinite(rows).all():
            raise ValueError("WindowLayer: the rows that wait hold NaN or infinity")
        if not (window is None or (type(window) is int and 8 <= window <= max(8, 2 * LOOKS[-1], self._given() or 0))):
            raise ValueError(f"WindowLayer: a window of {window!r} rows is not possible")
        if self._given() not in (None, window):
            raise ValueError(f"WindowLayer: its window of {window!r} rows is not that of its parameters")
        if "feature_names_in_" in fields:
            check_vector("feature_names_in_", fields["feature_names_in_"], n_features)
            self.feature_names_in_ = fields["feature_names_in_"]
        self.n_features_in_ = n_features
        self._begin()
        self.n_samples_seen_, self.n_windows_ = counts
        self._rows = rows
        most = LOOKS[-1] - 1
        if window is not None:
            self._set_window(window)
            most = max(most, self.window_ - 1)
        if len(rows) > most or counts[0] != counts[1] * (self.hop_ or 0) + len(rows):
            raise ValueError("WindowLayer: the rows that wait do not fit its counters")

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for name in ("_rows", "_table", "_edges"):  # unpickled arrays may be read-only maps of a file
            if name in state:
                setattr(self, name, aligned(state[name]))

    def _given(self) -> int | None:
        return None if self.window == "auto" else int(self.window)

    def _check_settings(self) -> None:
        if (self.window, self.hop) != self._began_with:
            raise ValueError(
                "WindowLayer: window and hop cannot change once learning has begun; call fit to start anew"
            )

    def _require_window(self) -> None:
        if not self.__sklearn_is_fitted__() or self.window_ is None:
            raise NotFittedError(
                "This WindowLayer does not know how long a window is yet: it needs more rows, or window=N"
            )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_rows")


def _as_columns(X: Any) -> Any:
    """A plain sequence of numbers is a signal of one channel."""
    return np.asarray(X)[:, np.newaxis] if not hasattr(X, "columns") and np.ndim(X) == 1 and len(X) else X
