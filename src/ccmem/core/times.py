"""Times and durations in words: "5 Feb 2015 09:24", "3 h 20 min". Times are seconds since 1970, shown in UTC."""

from __future__ import annotations

import math
from datetime import UTC, datetime

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
EARLIEST, LATEST = -62_135_596_800.0, 253_402_300_799.0
"""Years 1 to 9999, the range of Python's dates."""


def format_time(seconds: float | None) -> str:
    """Return a time in words; seconds are shown if they are not 0. "-" means an unknown time.

    >>> format_time(1423128240.0), format_time(1423128245.5), format_time(None)
    ('5 Feb 2015 09:24', '5 Feb 2015 09:24:05', '-')
    """
    if seconds is None or not EARLIEST <= seconds <= LATEST:
        return "-"
    moment = datetime.fromtimestamp(math.floor(seconds), UTC)
    clock = f"{moment:%H:%M:%S}" if moment.second else f"{moment:%H:%M}"
    return f"{moment.day} {MONTHS[moment.month - 1]} {moment.year} {clock}"


def format_duration(seconds: float) -> str:
    """Return a duration in its two largest units.

    >>> [format_duration(s) for s in (0.02, 45, 600, 12_000, 190_800)]
    ['20 ms', '45 s', '10 min', '3 h 20 min', '2 d 5 h']
    """
    if seconds < 1.0:
        return f"{1000 * seconds:.3g} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    whole = round(seconds)
    for size, unit, smaller, part in ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size} {unit}" + (f" {rest} {part}" if rest else "")
    return f"{whole} s"
