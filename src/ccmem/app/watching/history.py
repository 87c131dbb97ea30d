"""Bounded history of a page: evidence over time, visits of blocks, and rows around events."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from ccmem.core.events import Event
from ccmem.core.typing import FloatArray

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
    """Visits of each block: number of visits, total rows, and the latest visit."""

    def __init__(self) -> None:
        self._ended: dict[int, tuple[int, int, int, int]] = {}
        self.since = 0
        """Onset of the current visit."""

    def leave(self, block: int, onset: int) -> None:
        """Record that ``block`` was in use from ``since`` to ``onset``, where another block began."""
        onset = max(onset, self.since)
        number, rows, *_ = self._ended.get(block, (0, 0))
        self._ended[block] = number + 1, rows + onset - self.since, self.since, onset
        self.since = onset

    def of(self, block: int) -> dict[str, Any]:
        """Return the number of ended visits of a block, their rows, and first and last row of the latest of them."""
        number, rows, *last = self._ended.get(block, (0, 0))
        return {"visits": number, "in_use": rows, "last": last or None}


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
