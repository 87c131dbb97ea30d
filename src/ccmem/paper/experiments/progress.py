"""Progress of a run and an estimate of the remaining time; each row of a table has its own cost."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence

from ccmem.core.terminal import StatusLine
from ccmem.core.times import format_duration

_WIDTH = 30


class Progress:
    """A bar with the time left, estimated row by row.

    A trial to come is taken to last as long as the latest of its row; before a row has one, as the mean of the others.
    How many run at a time is seen from what has been done so far.

    Parameters
    ----------
    rows : name of the row of every trial to come
    clock : seconds, for tests
    """

    def __init__(self, rows: Sequence[str], clock: Callable[[], float] = time.monotonic) -> None:
        self.total, self.done = len(rows), 0
        self._clock = clock
        self._to_come = Counter(rows)
        self._seconds: dict[str, float] = {}
        self._work = 0.0
        self._line = StatusLine(in_lines=True)
        self._began = self._changed = clock()

    def finished(self, row: str, seconds: float) -> None:
        """Record that a trial of ``row`` took ``seconds``."""
        self.done += 1
        self._to_come[row] -= 1
        self._seconds[row] = seconds
        self._work += seconds
        self._changed = self._clock()

    def left(self) -> float | None:
        """Return the estimated seconds remaining, or None before the first trial has finished."""
        if not self._seconds:
            return None
        mean = sum(self._seconds.values()) / len(self._seconds)
        work = sum(self._seconds.get(row, mean) * count for row, count in self._to_come.items())
        at_a_time = max(1.0, self._work / max(self._changed - self._began, 1e-9))
        return max(0.0, work / at_a_time - (self._clock() - self._changed))

    def show(self) -> None:
        """Redraw the bar."""
        part, left = self.done / self.total, self.left()
        rest = (
            "estimating the time left"
            if left is None
            else f"about {format_duration(5.0 * max(1, math.ceil(left / 5)))} left"
        )
        passed = _clock(self._clock() - self._began)
        self._line.show(f"[{'#' * int(_WIDTH * part):<{_WIDTH}}] {self.done}/{self.total} trials, {passed}, {rest}")

    def close(self) -> None:
        """Erase the bar."""
        self._line.clear()


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
