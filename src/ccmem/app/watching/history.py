"""Bounded history of a page: evidence over time, visits of blocks, rows around events, and signals.

Of a signal, the lowest, highest and mean value per bin are kept; recent bins are finer than old ones. The learning
thread only copies a few rows of each chunk into a buffer. The page's thread empties the buffer and merges bins, so
learning never waits for the page.
"""

from __future__ import annotations

from collections import deque
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ccmem.core.events import Event
from ccmem.core.typing import FloatArray, IntArray
from ccmem.models._blocks import EVENT_HISTORY

MOST_BUCKETS = 1024
MOST_COLUMNS = 1024
AROUND = 6
"""Rows kept from before the onset of an event, and from before the row at which it was noticed."""
MARGIN = 40
"""Rows between the estimated onset and the rows kept from before it, because the estimate may be late."""
SPAN = 320
"""Largest distance in rows from the start of a chunk back to an onset whose rows can be kept."""
EVERY = 8
"""Stride of the rows held from earlier chunks; holding all of them would slow learning down."""
MOST_KEPT = 200
"""Largest number of events whose rows are kept."""
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


class PeakTrace:
    """Highest evidence per bin of a stream; bins double in width when their number exceeds the maximum.

    >>> trace = PeakTrace(most=4)
    >>> for step, evidence in [(0, 0.1), (1, 0.5), (2, 0.2), (3, 0.0), (4, 0.7)]:
    ...     trace.add(step, evidence)
    >>> trace.width, trace.peaks
    (2, [0.5, 0.2, 0.7])
    """

    def __init__(self, most: int = MOST_BUCKETS) -> None:
        self.width = 1
        self.peaks: list[float] = []
        self._most = most

    def add(self, step: int, evidence: float) -> None:
        """Add the evidence at a step."""
        while step // self.width >= self._most:
            ends = [*self.peaks, 0.0]
            self.peaks = [max(ends[i], ends[i + 1]) for i in range(0, len(self.peaks), 2)]
            self.width *= 2
        place = step // self.width
        self.peaks += [0.0] * (place + 1 - len(self.peaks))
        self.peaks[place] = max(self.peaks[place], round(evidence, 3))


class Visits:
    """Onset, latest use and ended visits of each block, for the ``most`` blocks used most recently."""

    def __init__(self, most: int = EVENT_HISTORY) -> None:
        self._blocks: dict[int, dict[str, Any]] = {}  # in the order of use
        self._most = most
        self.since = 0
        """Onset of the current visit."""

    def use(self, block: int, step: int, onset: int = 0) -> None:
        """Record that ``block`` is in use at a step; a block that is new began at ``onset``."""
        dates = self._blocks.pop(block, {**self.of(-1), "born": onset})
        self._blocks[block] = {**dates, "used": max(dates["used"], step)}
        if len(self._blocks) > self._most:
            del self._blocks[next(iter(self._blocks))]

    def turn(self, event: Event) -> None:
        """Record a change of block: the visit of the block before ended at the onset of the event."""
        self.use(event.from_block, event.step)
        left, onset = self._blocks[event.from_block], max(event.onset, self.since)
        left["visits"] += 1
        left["in_use"] += onset - self.since
        left["last"] = [self.since, onset]
        self.use(event.to_block, event.step, event.onset)
        self.since = onset

    def of(self, block: int) -> dict[str, Any]:
        """Return onset and latest use of a block, ended visits, their rows, and first and last row of the latest."""
        return self._blocks.get(block, {"born": 0, "used": 0, "visits": 0, "in_use": 0, "last": None})

    def latest(self, most: int) -> list[int]:
        """Return the blocks used most recently."""
        return list(self._blocks)[-most:]


_Row = tuple[int, FloatArray]
"""Step of a row, and a copy of it."""


class RowsAround:
    """Rows from just before a change and just before it was noticed.

    :meth:`observe` runs in the learning thread after every chunk and copies a few of the chunk's last rows, because the
    caller may overwrite the array. :meth:`keep` is called for each event right after its chunk, and picks from the
    chunk and the copies.
    """

    def __init__(self) -> None:
        self._kept: dict[int, dict[str, Any]] = {}
        self._far: deque[_Row] = deque(maxlen=SPAN // EVERY)
        self._near: deque[_Row] = deque(maxlen=AROUND)
        self._earlier: tuple[list[_Row], list[_Row]] = ([], [])
        self._first, self._next = 0, -1
        self._rows: FloatArray | None = None

    def observe(self, first_step: int, rows: FloatArray) -> None:
        """Record that ``rows`` have been learned, the first of them at step ``first_step``."""
        if first_step != self._next:  # a chunk that does not follow the previous one restarts the history
            self._far.clear()
            self._near.clear()
        self._earlier = list(self._far), list(self._near)
        for held, every in ((self._far, EVERY), (self._near, 1)):
            places = range(-first_step % every, len(rows), every)[-(held.maxlen or 0) :]
            held.extend((first_step + place, rows[place].copy()) for place in places)
        self._first, self._next, self._rows = first_step, first_step + len(rows), rows

    def keep(self, event: Event) -> None:
        """Keep rows around an event of the latest chunk."""
        if self._rows is None or not self._first <= event.step < self._next:
            return
        far, near = self._earlier
        before, after = self._last(far, event.onset - MARGIN, EVERY), self._last(near, event.step, 1)
        if before and after:
            self._kept[event.step] = {"before": _plain(before), "after": _plain(after)}
            while len(self._kept) > MOST_KEPT:
                del self._kept[next(iter(self._kept))]

    def _last(self, earlier: list[_Row], stop: int, every: int) -> list[FloatArray]:
        """Return up to ``AROUND`` rows from before step ``stop``, from the latest chunk and earlier ones."""
        assert self._rows is not None
        here = range(-self._first % every, max(0, min(stop - self._first, len(self._rows))), every)
        return [*(row for step, row in earlier if step < stop), *(self._rows[i] for i in here[-AROUND:])][-AROUND:]

    def around(self, step: int) -> dict[str, Any] | None:
        """Return the rows kept for the event at ``step``, None if there are none."""
        return self._kept.get(step)


def _plain(rows: list[FloatArray]) -> list[list[float | None]]:
    """Return rows as lists; a missing reading is None."""
    plain = np.asarray(rows)[:, :MOST_COLUMNS].astype(np.float64).round(5).tolist()
    return [[None if value != value else value for value in row] for row in plain]


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
