"""Times of the steps of a stream, in bounded space."""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem.core.typing import FloatArray

RECENT = 1024
"""Number of latest steps whose times are kept exactly."""
GRID = 1024
"""Half the maximum number of evenly spaced steps whose times are kept over the whole stream."""


class Clock:
    """Times of the steps of a stream: exact for recent steps, interpolated for older ones.

    :meth:`expect` announces the times of a chunk and :meth:`advance` stores them step by step. The time of an event
    therefore depends only on the steps up to the event, and not on the division of the stream into chunks.

    >>> clock = Clock()
    >>> clock.expect(0, np.arange(5000.0) * 60)
    >>> clock.advance(5000)
    >>> clock.at(4999), clock.at(1), clock.at(5000)
    (299940.0, 60.0, None)
    """

    def __init__(self) -> None:
        self.steps = 0
        self._width = 1
        self._grid: FloatArray = np.empty(0)
        self._recent: FloatArray = np.empty(0)
        self._coming: FloatArray = np.empty(0)

    def expect(self, first_step: int, times: FloatArray) -> None:
        """Announce the times of the steps from ``first_step`` on; earlier unannounced steps have no time."""
        self._coming = np.empty(0)
        self.advance(first_step)
        self._coming = times

    def advance(self, steps: int) -> None:
        """Store the announced times of all steps before ``steps``."""
        count = steps - self.steps
        if count <= 0:
            return
        times, self._coming = self._coming[:count], self._coming[count:]
        if len(times) < count:
            times = np.concatenate([times, np.full(count - len(times), np.nan)])
        self._grid = np.concatenate([self._grid, times[-self.steps % self._width :: self._width]])
        while len(self._grid) > 2 * GRID:
            self._grid, self._width = self._grid[::2].copy(), 2 * self._width
        self._recent = np.concatenate([self._recent, times[-RECENT:]])[-RECENT:]
        self.steps = steps

    def at(self, step: int) -> float | None:
        """Return the time of a step, None if it is unknown."""
        if not 0 <= step < self.steps:
            return None
        if (place := step - self.steps + len(self._recent)) >= 0:
            found = float(self._recent[place])
        else:
            low, rest = divmod(step, self._width)
            start = float(self._grid[low])
            after = min((low + 1) * self._width, self.steps - len(self._recent))
            stop = float(self._grid[low + 1]) if after == (low + 1) * self._width else float(self._recent[0])
            found = start + (stop - start) * rest / (after - low * self._width)
        return None if found != found else found

    def export(self) -> dict[str, Any]:
        """Return the state of the clock, in types that a checkpoint can hold."""
        return {"steps": self.steps, "width": self._width, "grid": self._grid, "recent": self._recent}

    @classmethod
    def of(cls, fields: Any) -> Clock:
        """Return the clock described by :meth:`export`; raise ValueError if the description is invalid."""
        clock = cls()
        steps, width, grid, recent = (fields[name] for name in ("steps", "width", "grid", "recent"))
        whole = type(steps) is int and 0 <= steps < 2**62 and type(width) is int and 0 < width < 2**62
        arrays = all(isinstance(a, np.ndarray) and a.dtype == np.float64 and a.ndim == 1 for a in (grid, recent))
        if not (whole and arrays and len(grid) == -(-steps // width) and len(recent) == min(steps, RECENT)):
            raise ValueError("its times are damaged")
        clock.steps, clock._width, clock._grid, clock._recent = steps, width, grid.copy(), recent.copy()
        return clock
