"""Bounded history of signals: lowest, highest and mean value per bin, recent bins finer than old ones.

The learning thread only copies a few rows of each chunk into a buffer. The page's thread empties the buffer and merges
bins, so learning never waits for the page.
"""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

import numpy as np

from ccmem.core.typing import FloatArray, IntArray

MOST_SIGNALS = 32
"""Columns whose signal is kept: the first of them, because keeping all of a wide table would slow learning down."""
LIVE_ROWS = 32
"""Rows kept of any chunk. Chunks of a live stream are shorter, so every row of a live stream is kept."""
SAMPLES = 8192
"""Rows kept of a stream that arrives in long chunks, each time its length doubles: an evenly spaced sample."""
BUFFER_ROWS = 32_768
"""Rows that wait for the thread of the page; further rows are not drawn."""
LEVEL_BINS = 2048
"""Bins of one width. When there are more, the older half is merged in pairs, so a bin is about as wide as 1/1000 of
its age."""


class Bins(NamedTuple):
    """Consecutive bins: first step, number of rows, and lowest, highest and mean value per column."""

    step: IntArray
    rows: FloatArray
    low: FloatArray
    high: FloatArray
    mean: FloatArray

    def part(self, start: int, stop: int | None, columns: list[int] | slice = slice(None)) -> Bins:
        """Return the bins of a range, reduced to some columns."""
        values = (array[start:stop][:, columns] for array in self[2:])
        return Bins(self.step[start:stop], self.rows[start:stop], *values)


class _Buffer:
    """Buffer of rows that the learning thread passes to the page's thread."""

    def __init__(self, n_columns: int) -> None:
        self.parts: list[range] = []
        """Steps of the rows, one range per chunk."""
        self.rows = np.empty((BUFFER_ROWS, n_columns))
        self.filled = 0


class Signals:
    """History of all columns of a stream, at decreasing resolution.

    >>> signals = Signals()
    >>> signals.observe(0, np.arange(8.0).reshape(-1, 1))
    >>> signals.gather()
    >>> signals.between(0, 8, most=2, columns=[0]).high.ravel().tolist()
    [3.0, 7.0]
    """

    def __init__(self) -> None:
        self._buffer = _Buffer(0)
        self._levels: list[Bins] = []

    def observe(self, first_step: int, rows: FloatArray) -> None:
        """Copy some rows of a learned chunk; runs in the learning thread."""
        n_columns, buffer = min(rows.shape[1], MOST_SIGNALS), self._buffer
        if buffer.rows.shape[1] != n_columns:
            self._buffer = buffer = _Buffer(n_columns)
        most = max(LIVE_ROWS, SAMPLES * len(rows) // (first_step + len(rows)))
        stride = 1 << (-(-len(rows) // most) - 1).bit_length()  # a power of two selects the same rows for any chunking
        begin = -first_step % stride
        some = rows[begin::stride, :n_columns]
        place, end = buffer.filled, buffer.filled + len(some)
        if end <= BUFFER_ROWS:
            buffer.rows[place:end] = some
            buffer.parts.append(range(first_step + begin, first_step + len(rows), stride))
            buffer.filled = end

    def gather(self) -> None:
        """Merge the buffered rows into the bins."""
        full = self._buffer
        if not full.filled:
            return
        self._buffer = _Buffer(full.rows.shape[1])  # a chunk being copied now is lost with the old buffer
        steps = np.fromiter(chain.from_iterable(full.parts), np.int64)[: full.filled]
        rows = full.rows[: len(steps)]
        newest = self._levels[0] if self._levels else None
        if newest is not None and (steps[0] <= newest.step[-1] or newest.low.shape[1] != rows.shape[1]):
            self._levels = []  # learning has restarted
        bins, number = Bins(steps, np.ones(len(rows)), rows, rows, rows), 0
        while len(bins.step):
            if number == len(self._levels):
                self._levels.append(bins.part(0, 0))
            bins = _joined([self._levels[number], bins])
            surplus = 2 * ((len(bins.step) - LEVEL_BINS // 2) // 2) if len(bins.step) > LEVEL_BINS else 0
            self._levels[number] = bins.part(surplus, None)
            bins = bins.part(0, surplus)
            bins, number = _merged(bins, np.arange(0, surplus, 2)), number + 1

    def between(self, start: int, stop: int, most: int, columns: list[int]) -> Bins:
        """Return at most ``most`` bins of some columns from step ``start`` to ``stop``."""
        levels = [level.part(0, None, columns) for level in reversed(self._levels)]
        if not levels:
            return Bins(np.empty(0, np.int64), np.empty(0), *[np.empty((0, len(columns)))] * 3)
        bins = _joined(levels)
        first, last = np.searchsorted(bins.step, [start + 1, stop]).tolist()  # includes the bin that contains ``start``
        bins = bins.part(max(0, first - 1), last)
        group = np.clip((bins.step - start) * most // max(1, stop - start), 0, most - 1)
        return _merged(bins, np.flatnonzero(np.diff(group, prepend=-1)))

    @property
    def n_columns(self) -> int:
        """Number of columns whose signal is kept."""
        return self._levels[0].low.shape[1] if self._levels else 0


def _joined(parts: list[Bins]) -> Bins:
    return Bins(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _merged(bins: Bins, starts: IntArray) -> Bins:
    """Merge the bins from each index in ``starts`` to the next; missing readings (NaN) do not count."""
    if not len(starts):
        return bins.part(0, 0)
    present = np.where(np.isnan(bins.mean), 0.0, bins.rows[:, None])
    total, rows = (np.add.reduceat(values, starts) for values in (np.nan_to_num(bins.mean) * present, present))
    mean = np.divide(total, rows, out=np.full_like(total, np.nan), where=rows > 0)
    low, high = np.fmin.reduceat(bins.low, starts), np.fmax.reduceat(bins.high, starts)
    return Bins(bins.step[starts], np.add.reduceat(bins.rows, starts), low, high, mean)
