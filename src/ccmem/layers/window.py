"""Features of sliding windows, with which a memory detects changes of period, waveform, correlation and level.

Put :class:`WindowLayer` before a memory. It takes rows of one or many channels as they arrive. Whenever a window is
full, it returns one row of features (see :mod:`ccmem.layers._signal`), and the window advances by ``hop`` rows.

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
from typing import Any

import numpy as np

from ccmem.core.allocation import check_size
from ccmem.core.locking import reading
from ccmem.core.typing import FloatArray
from ccmem.layers._signal import BAND_EDGES, N_MOMENTS, PAIRED, bands, choose_period, describe, n_together, waves
from ccmem.layers._windowed import PERIODS, WindowedLayer

LOOKS = (256, 512, 1024)
"""Numbers of rows after which the layer searches for a period; the last search decides."""
_NAMES = ("level", "spread", "skewness", "kurtosis")
_WITH = ("others", "others either way", "its nearest")


class WindowLayer(WindowedLayer):
    """Features of sliding windows of a signal: of each channel, and of the relations between channels.

    Parameters
    ----------
    window : "auto" or int >= 8, default="auto"
        Number of rows in a window. "auto" buffers up to 1,024 rows (256 if the signal is clearly periodic) and uses two
        periods, or 100 rows if there is no period.
    hop : int or None, default=None
        Number of rows from one window to the next, at most a window. None means 1/32 of a window: windows overlap, so a
        change is visible early, and an outlier has left the windows after two batches of a memory. The model behind the
        layer must tolerate correlated neighbours, as ``AdaptiveCCM`` does.

    Attributes
    ----------
    window_, hop_ : int, once they are known.
    overlap_ : int, rows that a window shares with the next one.
    n_windows_ : int, number of windows returned.
    n_samples_seen_ : int, number of rows seen.

    Notes
    -----
    The rows of one window are kept between chunks (up to 1,024 while "auto" searches for a period), so that a stream
    may be cut anywhere: the features are equal bit for bit.

    Up to 8 channels have a feature for every pair. With more channels, each has three features of its correlations with
    the others: these do not identify correlated pairs, and channels more than 64 columns apart are not compared.
    """

    def __init__(self, window: str | int = "auto", *, hop: int | None = None) -> None:
        self.window = window
        self.hop = hop

    # Window length ----------------------------------------------------------------------------------------------------

    _most_waiting = LOOKS[-1]

    def _begin(self) -> None:
        super()._begin()
        if self.window != "auto":
            self._set_window(int(self.window))

    def _look(self, before: int) -> None:
        """Search for a period when a search is due; each search sees the same first rows for any chunking."""
        for n in LOOKS:
            if before < n <= len(self._rows):
                period = choose_period(self._rows[:n], last=n == LOOKS[-1])
                if period is not None:
                    self._set_window(PERIODS * period)
                    return

    def _finish_looking(self) -> None:
        self._set_window(PERIODS * (choose_period(self._rows, last=True) or 0))

    def _set_window(self, window: int) -> None:
        super()._set_window(window)
        check_size(16 * self.window_ * BAND_EDGES[-1], f"windows of {self.window_:,} rows")
        self._edges = bands(self.window_)
        self._table = waves(self.window_)

    def _describe(self, rows: FloatArray) -> FloatArray:
        n = max(0, (len(rows) - self.window_) // self.hop_ + 1)
        features = np.empty((n, self._n_features_out))
        describe(rows, self.window_, self.hop_, self._table, self._edges, features)
        return features

    @property
    def _n_features_out(self) -> int:
        self._require_window()
        return self.n_features_in_ * (N_MOMENTS + len(self._edges) - 1) + n_together(self.n_features_in_)

    @reading
    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the feature names: channel and statistic, such as ``x0 spread``, ``x0 3-4 cycles``, ``x0 with x1``."""
        self._require_window()
        known = getattr(self, "feature_names_in_", [f"x{i}" for i in range(self.n_features_in_)])
        channels = known if input_features is None else input_features
        edges = self._edges.tolist()
        cycles = [f"{a}-{b - 1} cycles" if b - a > 1 else f"{a} cycles" for a, b in itertools.pairwise(edges)]
        alone = [f"{channel} {what}" for channel in channels for what in (*_NAMES, *cycles)]
        if len(channels) <= PAIRED:
            together = [f"{a} with {b}" for a, b in itertools.combinations(channels, 2)]
        else:
            together = [f"{channel} with {whom}" for channel in channels for whom in _WITH]
        return np.array(alone + together, object)

    @property
    @reading
    def n_floats_(self) -> int:
        """Number of floats kept: rows buffered for the next window, and tables of waves."""
        return int(self._rows.size + (0 if self.window_ is None else self._table.size))
