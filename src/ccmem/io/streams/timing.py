"""Regularity of the times of a stream: sampling interval, gaps, rows out of order."""

from __future__ import annotations

import numpy as np

from ccmem.core.times import format_duration, format_time
from ccmem.core.typing import FloatArray

GAP = 5.0
"""Minimum length of a gap, in sampling intervals without a row."""


class Timing:
    """Sampling interval, gaps and rows out of order of the times seen so far.

    >>> timing = Timing()
    >>> timing.add(np.array([0.0, 60.0, 120.0, 4000.0, 3990.0]))
    >>> timing.interval, timing.gaps, timing.out_of_order
    (60.0, 1, 1)
    """

    def __init__(self) -> None:
        self.first: float | None = None
        self.last: float | None = None
        self.interval: float | None = None
        """Median time between rows of the first chunk, in seconds."""
        self.gaps = 0
        self.longest: tuple[float, float] | None = None
        """Longest gap: its length in seconds, and its start time."""
        self.out_of_order = 0
        self.unreadable = 0

    def add(self, times: FloatArray) -> None:
        """Add the times of the next rows."""
        known = times[np.isfinite(times)]
        self.unreadable += len(times) - len(known)
        if not known.size:
            return
        if self.first is None:
            self.first = float(known[0])
        if self.last is not None:
            known = np.concatenate(([self.last], known))
        steps = np.diff(known)
        if self.interval is None and (forward := steps[steps > 0]).size:
            self.interval = float(np.median(forward))
        self.out_of_order += int((steps < 0).sum())
        if self.interval is not None:
            wide = np.flatnonzero(steps > GAP * self.interval)
            self.gaps += len(wide)
            for place in wide:
                if self.longest is None or steps[place] > self.longest[0]:
                    self.longest = float(steps[place]), float(known[place])
        self.last = float(known[-1])

    def lines(self) -> list[str]:
        """Return a report of interval, gaps and disorder, one sentence per line."""
        if self.first is None or self.last is None:
            return []
        span = f"from {format_time(self.first)} to {format_time(self.last)}"
        every = f", a row every {format_duration(self.interval)}" if self.interval else ""
        found = [f"{span} ({format_duration(abs(self.last - self.first))}){every}"]
        if self.longest is not None:
            gaps = "1 gap" if self.gaps == 1 else f"{self.gaps:,} gaps"
            longest = f"{format_duration(self.longest[0])} from {format_time(self.longest[1])}"
            found.append(f"{gaps} of more than {GAP:g} intervals, the longest {longest}")
        if self.last < self.first:
            found.append("the last row is earlier than the first: sort the rows by time, oldest first")
        elif self.out_of_order:
            found.append(f"{self.out_of_order:,} row{'s' * (self.out_of_order != 1)} earlier than the row before")
        if self.unreadable:
            found.append(f"{self.unreadable:,} row{'s' * (self.unreadable != 1)} without a readable time")
        return found
