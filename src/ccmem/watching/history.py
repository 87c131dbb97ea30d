"""What a page remembers of a stream, in bounded space: the alarm over time, and rows around events."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Any

import numpy as np

from ccmem._typing import FloatArray
from ccmem.memory import Event

MOST_BUCKETS = 1024
MOST_COLUMNS = 1024
AROUND = 6
"""Rows that are kept from before the onset of an event, and as many from before it was noticed."""
MARGIN = 40
"""How far before the estimated onset the former lie, so that they are from before the change for sure."""
SPAN = 320
"""How far back from a chunk the onset of an event may lie for its rows to be kept."""
EVERY = 8
"""Of the rows that lie so far back, every so many are held."""
MOST_KEPT = 200
"""Events whose rows are kept."""


class AlarmTrace:
    """The highest alarm of every stretch of a stream; stretches double in length when there would be too many.

    >>> trace = AlarmTrace(most=4)
    >>> for step, alarm in [(0, 1), (1, 5), (2, 2), (3, 0), (4, 7)]:
    ...     trace.add(step, alarm)
    >>> trace.width, trace.peaks
    (2, [5, 2, 7])
    """

    def __init__(self, most: int = MOST_BUCKETS) -> None:
        self.width = 1
        self.peaks: list[int] = []
        self._most = most

    def add(self, step: int, alarm: int) -> None:
        """Take in the alarm at a step."""
        while step // self.width >= self._most:
            ends = [*self.peaks, 0]
            self.peaks = [max(ends[i], ends[i + 1]) for i in range(0, len(self.peaks), 2)]
            self.width *= 2
        place = step // self.width
        self.peaks += [0] * (place + 1 - len(self.peaks))
        self.peaks[place] = max(self.peaks[place], alarm)


class RowsAround:
    """Rows from just before a change and just before it was noticed.

    :meth:`observe` runs in the thread that learns, after every chunk, and copies a few of its last rows (the caller may
    write over his); :meth:`keep` is called for each event right after the chunk that brought it, and picks from that
    chunk and those copies. From before a change every eighth row is taken: to copy all of them would cost learning more
    than everything else that a page does.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[int, dict[str, Any]] = OrderedDict()
        self._far, self._near = _Tail(EVERY, SPAN // EVERY), _Tail(1, AROUND)
        self._first, self._next = 0, -1
        self._rows: FloatArray | None = None

    def observe(self, first_step: int, rows: FloatArray) -> None:
        """Note that ``rows``, the first of them at ``first_step``, have been learned."""
        for tail in (self._far, self._near):
            tail.add(first_step, rows, follows=first_step == self._next)
        self._first, self._next, self._rows = first_step, first_step + len(rows), rows

    def keep(self, event: Event) -> None:
        """Keep rows around an event of the latest chunk."""
        if self._rows is None or not self._first <= event.step < self._next:
            return
        before = self._far.last(event.onset - MARGIN, self._first, self._rows)
        after = self._near.last(event.step, self._first, self._rows)
        if before and after:
            self._kept[event.step] = {"before": _plain(before), "after": _plain(after)}
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)

    def around(self, step: int) -> dict[str, Any] | None:
        """What was kept for the event at ``step``."""
        return self._kept.get(step)


class _Tail:
    """The latest rows whose step is a multiple of ``every``: copies of those from before the latest chunk."""

    def __init__(self, every: int, most: int) -> None:
        self._every, self._most, self._held = every, most, 0
        self._earlier: deque[tuple[int, FloatArray]] = deque()
        self._latest: tuple[int, FloatArray] | None = None

    def add(self, first_step: int, rows: FloatArray, follows: bool) -> None:
        """Take in a chunk, which follows on the one before or begins anew."""
        if not follows:
            self._earlier.clear()
            self._held = 0
        elif self._latest is not None:
            self._earlier.append(self._latest)
            self._held += len(self._latest[1])
            while self._held - len(self._earlier[0][1]) >= self._most:
                self._held -= len(self._earlier.popleft()[1])
        places = range(-first_step % self._every, len(rows), self._every)[-self._most :]
        copied = rows[places.start : places.stop : places.step].copy() if places else None
        self._latest = None if copied is None else (first_step + places.start, copied)

    def last(self, stop: int, first_step: int, rows: FloatArray) -> list[FloatArray]:
        """Up to ``AROUND`` rows from before step ``stop``, of the latest chunk and of those before it."""
        here = range(-first_step % self._every, max(0, min(stop - first_step, len(rows))), self._every)[-AROUND:]
        found = [rows[place] for place in here]
        for step, part in reversed(self._earlier):
            if len(found) >= AROUND:
                break
            found = [*part[: max(0, -(-(stop - step) // self._every))], *found]
        return found[-AROUND:]


def _plain(rows: list[FloatArray]) -> list[list[float | None]]:
    """Rows for a page; a missing reading is None."""
    plain = np.asarray(rows)[:, :MOST_COLUMNS].astype(np.float64).round(5).tolist()
    return [[None if value != value else value for value in row] for row in plain]
