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

    :meth:`observe` runs in the thread that learns, after every chunk, and copies its last rows; :meth:`keep` is called
    for each event right after the chunk that brought it, and picks from that chunk and those copies.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[int, dict[str, Any]] = OrderedDict()
        self._tails: deque[FloatArray] = deque()
        self._held = 0
        self._first, self._next = 0, -1
        self._rows: FloatArray | None = None
        self._latest: FloatArray

    def observe(self, first_step: int, rows: FloatArray) -> None:
        """Note that ``rows``, the first of them at ``first_step``, have been learned."""
        if first_step != self._next:
            self._tails.clear()
            self._held = 0
        elif self._rows is not None:
            self._tails.append(self._latest)
            self._held += len(self._latest)
            while self._held - len(self._tails[0]) >= SPAN:
                self._held -= len(self._tails.popleft())
        self._first, self._next, self._rows = first_step, first_step + len(rows), rows
        self._latest = rows[-SPAN:].copy()  # the caller may write over his rows before the next chunk comes

    def keep(self, event: Event) -> None:
        """Keep rows around an event of the latest chunk."""
        if self._rows is None or not self._first <= event.step < self._next:
            return
        end = event.onset - MARGIN
        before, after = self._between(end - AROUND, end), self._between(event.step - AROUND, event.step)
        if len(before) and len(after):
            self._kept[event.step] = {"before": _plain(before), "after": _plain(after)}
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)

    def around(self, step: int) -> dict[str, Any] | None:
        """What was kept for the event at ``step``."""
        return self._kept.get(step)

    def _between(self, start: int, stop: int) -> FloatArray:
        assert self._rows is not None
        known = np.concatenate([*self._tails, self._rows[: max(0, stop - self._first)]])
        first = self._first - self._held
        return known[max(0, start - first) : max(0, stop - first), :MOST_COLUMNS].astype(np.float64).round(5)


def _plain(rows: FloatArray) -> list[list[float | None]]:
    """Rows for a page; a missing reading is None."""
    return [[None if value != value else value for value in row] for row in rows.tolist()]
