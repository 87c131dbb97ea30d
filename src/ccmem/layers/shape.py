"""Learned shapes of a signal: units that compete for every short subsequence, pooled over windows.

Channels are standardised by their mean m and standard deviation s over the first rows. A subsequence x starts at every
row, on every scale (``spans``, as fractions of a window). It has at most 16 points; each point is the mean of the rows
up to the next point. Learning uses the subsequences of the first rows, minus their mean and scaled to unit length:

    the first subsequences with d[j].x < 0.9 for all units j so far become units; then 0.95, 0.98, a pass for each
    j    = argmax of d[j].x - 0.02 (M wins[j] / sum of wins - 1)        frequent winners are slightly handicapped
    d[j] <- d[j] + (x - d[j]) / wins[j], at unit length

Then the units stay fixed. Features of a window, for every group of channels and scale:

    s[j]  = d[j].x / sqrt(g |x - mean(x)|^2 + q)         g = 1, q = 0.05 Q with ``gain="free"``; g = 0, q = Q otherwise
    a[j]  = s[j] - (4th largest s) for the three winners, else 0
    f[j]  = sqrt(mean of a[j] + 0.01) - 0.1              mean over the last places of the window, half a window of them

With ``window="auto"``, half a window is a period, so the features of a periodic signal do not depend on the phase. The
addend keeps units that rarely win quiet. Q is the mean of |x - mean(x)|^2 over the first rows. The features of the
units are followed by the level (mean - m) / s and the energy ln(variance / s^2 + 0.0001) / 2 of every channel and, for
up to eight channels, by Fisher's z of the correlation of every pair. Units without samples are fixed smooth curves, so
that a channel that is constant at first can still have shape features later.

>>> import numpy as np
>>> from ccmem import ShapeLayer
>>> time = 2 * np.pi * np.arange(3000) / 40
>>> hum = np.where(np.arange(3000) < 1500, np.sin(time), np.sign(np.sin(time)))  # a sine becomes a square wave
>>> front = ShapeLayer()
>>> features = front.push(hum)
>>> front.window_, front.hop_, features.shape
(80, 2, (1461, 50))
>>> soon, late, changed = features[50], features[490], features[1010]  # 22 and 48 periods apart
>>> bool(abs(late - soon).max() < 1e-3), bool(abs(changed - soon).max() > 0.2)
(True, True)
"""

from __future__ import annotations

import itertools
import math
from typing import Any, ClassVar

import numpy as np

from ccmem.core.allocation import aligned, check_size
from ccmem.core.locking import reading
from ccmem.core.parameters import Rule, choice, integer, number
from ccmem.core.typing import FloatArray, IntArray
from ccmem.layers._shapes import (
    Group,
    describe_channels,
    describe_scale,
    held,
    learn_shapes,
    mean_square,
    new_room,
    smooth_shapes,
)
from ccmem.layers._signal import LEAST_SPREAD, PAIRED, STILL, choose_period, n_together
from ccmem.layers._vectors import WINNERS
from ccmem.layers._windowed import HOPS, PERIODS, WindowedLayer

FEWEST_POINTS, MOST_POINTS = 4, 16
"""Points of a subsequence; longer subsequences are averaged down to 16 points."""
_SIMILAR = (0.9, 0.95, 0.98)
"""Similarity below which a subsequence becomes a unit, one pass over the first rows for each."""
_TOGETHER = 1024
"""Number of windows described per call, so that working memory does not grow with the length of a chunk."""
_SPAN = number(0.0, 0.5, open_below=True)
"""Valid spans; half of a window is left for places."""


class ShapeLayer(WindowedLayer):
    """Learned waveforms of a signal: activity of each unit in a window, level and energy of each channel.

    Parameters
    ----------
    window : "auto" or int >= 8, default="auto"
        Number of rows in a window. "auto" uses two periods of the first ``learning_rows`` rows, or 100 rows if there is
        no period.
    hop : int or None, default=None
        Number of rows from one window to the next, at most a window; None means 1/32 of a window.
    n_units : int, default=16
        Units per group of channels and scale, at least 4.
    spans : tuple of numbers in (0, 0.5], default=(0.125, 0.25, 0.5)
        Lengths of the subsequences as fractions of a window, one per scale.
    channels : "each" or "together", default="each"
        "each" learns units for every channel alone, "together" learns subsequences of all channels at once.
    gain : "free" or "kept", default="free"
        "free" makes activations independent of the amplitude; "kept" makes them proportional to it.
    learning_rows : int, default=1024
        Number of rows to learn scales, window and units from, at least a window. There are no features before that.

    Attributes
    ----------
    window_, hop_ : int, once they are known.
    overlap_ : int, rows that a window shares with the next one.
    shapes_ : list of arrays (groups, n_units, channels of a group, points), one per scale; copies.
    n_windows_ : int, number of windows returned.
    n_samples_seen_ : int, number of rows seen.
    n_floats_ : int, number of floats kept.

    Notes
    -----
    A missing reading (NaN) is replaced by the last reading of its channel, or by the channel's mean if there was none.
    A channel that is constant has activations 0 and energy ln(0.0001) / 2. Rows are counted, not seconds: resample a
    recording whose sampling rate varies, otherwise a new rate looks like a change of period.

    The rows of one window are kept between chunks (while learning, ``learning_rows``), so that a stream may be cut
    anywhere: the features are equal bit for bit.
    """

    _rules: ClassVar[dict[str, Rule]] = {
        **WindowedLayer._rules,
        "n_units": integer(WINNERS + 1),
        "channels": choice("each", "together"),
        "gain": choice("free", "kept"),
        "learning_rows": integer(1),
    }
    _shape_parameters = ("window", "hop", "n_units", "spans", "channels", "gain", "learning_rows")
    _takes_missing = True
    _learned_names = ("levels", "spreads", "latest", "squares", "wins", "units")

    _levels: FloatArray
    _spreads: FloatArray
    _latest: Any
    """Last reading of each channel, scaled; it replaces missing readings."""
    _squares: FloatArray
    """Mean squared length Q of every scale and group."""
    _units: list[FloatArray]
    _wins: IntArray

    def __init__(
        self,
        window: str | int = "auto",
        *,
        hop: int | None = None,
        n_units: int = 16,
        spans: tuple[float, ...] = (0.125, 0.25, 0.5),
        channels: str = "each",
        gain: str = "free",
        learning_rows: int = 1024,
    ) -> None:
        self._assign(locals())

    # Learning --------------------------------------------------------------------------------------------------------

    @property
    def _most_waiting(self) -> int:  # type: ignore[override]
        return max(int(self.learning_rows), 0 if self.window == "auto" else int(self.window))

    def _check_settings(self) -> None:
        super()._check_settings()
        spans = self.spans
        if not (isinstance(spans, (tuple, list)) and spans and all(_SPAN[0](span) for span in spans)):
            raise ValueError(f"ShapeLayer: spans={spans!r} is not possible; it must be a tuple of numbers in (0, 0.5]")

    def _begin(self) -> None:
        super()._begin()
        self._latest = None

    def _look(self, before: int) -> None:
        if len(self._rows) >= self._most_waiting:
            self._learn(self._most_waiting)

    def _finish_looking(self) -> None:
        self._learn(len(self._rows))

    def _learn(self, n: int) -> None:
        """Learn scales, window and units from the first ``n`` rows, then scale all buffered rows."""
        first = self._rows[:n]
        known = ~np.isnan(first)
        counts = np.maximum(known.sum(axis=0), 1)
        levels = np.where(known, first, 0.0).sum(axis=0) / counts
        spreads = np.sqrt((np.where(known, first - levels, 0.0) ** 2).sum(axis=0) / counts)
        still = spreads <= STILL * np.abs(levels) + LEAST_SPREAD
        self._levels, self._spreads = levels, np.where(still, 1.0, spreads)
        self._latest = np.zeros(self.n_features_in_, np.float32)
        self._rows = self._prepare(self._rows)
        period = choose_period(self._rows[:n].astype(np.float64), last=True)
        self._set_window(PERIODS * (period or 0) if self.window == "auto" else int(self.window))
        for scale, (taps, dilation) in enumerate(self._scales):
            room = new_room(self._group_size, taps, dilation, int(self.n_units))
            for g in range(self._n_groups):
                group = Group(self._units[scale][g], self._wins[scale, g], np.zeros(2, np.int64))
                place = g * self._group_size
                self._squares[scale, g] = mean_square(self._rows[:n], place, taps, dilation, room)
                for similar in _SIMILAR:
                    learn_shapes(group, self._rows[:n], place, taps, dilation, similar, room)

    def _set_window(self, window: int) -> None:
        super()._set_window(window)
        self._scales = list(dict.fromkeys(_points(float(span) * self.window_) for span in self.spans))
        n_units, size, n_groups = int(self.n_units), self._group_size, self._n_groups
        check_size(4 * n_units * self.n_features_in_ * MOST_POINTS * len(self._scales), f"{n_units:,} units")
        self._units = [aligned(np.stack([smooth_shapes(n_units, size, n)] * n_groups)) for n, _ in self._scales]
        self._wins = np.zeros((len(self._scales), n_groups, n_units), np.int64)
        self._squares = np.zeros((len(self._scales), n_groups))

    def _prepare(self, rows: FloatArray) -> FloatArray:
        if self._latest is None:
            return rows
        scaled, self._latest = held(self._scaled(rows), self._latest)
        return scaled

    def _prepare_recording(self, rows: FloatArray) -> FloatArray:
        return held(self._scaled(rows), np.zeros_like(self._latest))[0]

    def _scaled(self, rows: FloatArray) -> FloatArray:
        return ((rows - self._levels) / self._spreads).astype(np.float32)

    # Describing ------------------------------------------------------------------------------------------------------

    def _describe(self, rows: FloatArray) -> FloatArray:
        n = max(0, (len(rows) - self.window_) // self.hop_ + 1)
        out = np.empty((n, self._n_features_out), np.float32)
        for start in range(0, n, _TOGETHER):
            part = out[start : start + _TOGETHER]
            first = start * self.hop_
            self._describe_part(rows[first : first + (len(part) - 1) * self.hop_ + self.window_], part)
        return out

    def _describe_part(self, rows: FloatArray, out: FloatArray) -> None:
        """Write the features of every window of ``rows`` to ``out``."""
        n_units, width = int(self.n_units), self._n_groups * int(self.n_units)
        block, n_blocks, last = self._places()
        step = self.hop_ // block
        before = (len(out) - 1) * step
        for scale, (taps, dilation) in enumerate(self._scales):
            describe_scale(
                rows[self.window_ - n_blocks * block - taps * dilation + 1 :],
                self._units[scale],
                self._squares[scale],
                (taps, dilation, step, block, last, self.gain == "free"),
                new_room(self._group_size, taps, dilation, n_units),
                np.empty((before + n_blocks, n_units), np.float32),
                scale * width,
                out,
            )
        n_blocks, columns = self.window_ // block, 2 * self.n_features_in_ + self._n_pairs
        room = np.empty((before + n_blocks, columns)), np.empty((len(out), columns))
        describe_channels(rows, (block, n_blocks, step), *room, out)

    def _places(self) -> tuple[int, int, float]:
        """Return places per block, blocks per window, and the weight of the last block: half a window of places."""
        block = max(size for size in range(1, max(1, self.window_ // HOPS) + 1) if self.hop_ % size == 0)
        longest = max(taps * dilation for taps, dilation in self._scales)
        half = self.window_ // 2
        n_blocks = min(-(-half // block), (self.window_ - longest + 1) // block)
        return block, n_blocks, min(1.0, half / block - n_blocks + 1)

    # Reading ---------------------------------------------------------------------------------------------------------

    @property
    def _group_size(self) -> int:
        return 1 if self.channels == "each" else self.n_features_in_

    @property
    def _n_groups(self) -> int:
        return self.n_features_in_ // self._group_size

    @property
    def _n_pairs(self) -> int:
        return n_together(self.n_features_in_) if self.n_features_in_ <= PAIRED else 0

    @property
    def _n_features_out(self) -> int:
        self._require_window()
        shapes = len(self._scales) * self._n_groups * int(self.n_units)
        return shapes + 2 * self.n_features_in_ + self._n_pairs

    @property
    @reading
    def shapes_(self) -> list[FloatArray]:
        """Units of every scale, of shape (groups, n_units, channels of a group, points); copies."""
        self._require_window()
        return [units.reshape(*units.shape[:2], self._group_size, -1).copy() for units in self._units]

    @property
    @reading
    def win_counts_(self) -> IntArray:
        """Subsequences that each unit has learned from, by scale and group; a copy. 0 for the fixed curves."""
        self._require_window()
        return self._wins.copy()

    @reading
    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the feature names, such as ``x0 shape 3 of 12 rows``, ``x0 level`` and ``x0 energy``."""
        self._require_window()
        known = getattr(self, "feature_names_in_", [f"x{i}" for i in range(self.n_features_in_)])
        channels = known if input_features is None else input_features
        groups = channels if self.channels == "each" else ["all"]
        shapes = [
            f"{group} shape {unit} of {taps * dilation} rows"
            for taps, dilation in self._scales
            for group in groups
            for unit in range(int(self.n_units))
        ]
        alone = [f"{channel} {what}" for channel in channels for what in ("level", "energy")]
        pairs = [f"{a} with {b}" for a, b in itertools.combinations(channels, 2)] if self._n_pairs else []
        return np.array([*shapes, *alone, *pairs], object)

    @property
    @reading
    def n_floats_(self) -> int:
        """Number of floats kept: buffered rows, units and their statistics."""
        learned = self._export_learned().values() if self.window_ is not None else ()
        return int(self._rows.size + sum(array.size for array in learned))

    # Checkpoints ------------------------------------------------------------------------------------------------------

    def _export_learned(self) -> dict[str, Any]:
        learned = {name: getattr(self, f"_{name}") for name in self._learned_names}
        return {**learned, "units": np.concatenate([units.ravel() for units in self._units])}

    def _import_learned(self, fields: dict[str, Any]) -> None:
        from ccmem.base.storage import check_array

        n = (self.n_features_in_,)
        sizes = [units.size for units in self._units]
        expected = (
            *((n, np.float64), (n, np.float64), (n, np.float32), (self._squares.shape, np.float64)),
            *((self._wins.shape, np.int64), ((sum(sizes),), np.float32)),
        )
        for name, (shape, kind) in zip(self._learned_names, expected, strict=True):
            array = fields[name]
            check_array("ShapeLayer", name, array, shape, kind)
            if not np.isfinite(array).all() or (name in ("squares", "wins") and array.min() < 0):
                raise ValueError(f"ShapeLayer: {name} is damaged")
        if fields["spreads"].min() <= 0:
            raise ValueError("ShapeLayer: spreads is damaged")
        parts = np.split(fields["units"], np.cumsum(sizes)[:-1])
        units = [part.reshape(own.shape) for part, own in zip(parts, self._units, strict=True)]
        if any(np.abs(np.linalg.norm(part, axis=2) - 1).max() > 1e-3 for part in units):
            raise ValueError("ShapeLayer: its units are not of unit length")
        self._units = [aligned(part) for part in units]
        for name in self._learned_names[:-1]:
            setattr(self, f"_{name}", aligned(fields[name]))
        self._rows = self._rows.astype(np.float32)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_units" in state:
            self._units = [aligned(units) for units in state["_units"]]


def _points(span: float) -> tuple[int, int]:
    """Return the number of points of a subsequence of ``span`` rows, and the number of rows between points."""
    dilation = max(1, math.ceil(span / MOST_POINTS))
    return max(FEWEST_POINTS, int(span / dilation)), dilation
