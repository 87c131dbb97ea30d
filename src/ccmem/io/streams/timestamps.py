"""Timestamps: recognising the format of a column from a sample, and reading it into seconds since 1970.

Times without a zone are taken as UTC; times with a zone are converted to UTC.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from typing import Any

import numpy as np

from ccmem.core.times import MONTHS, format_duration, format_time
from ccmem.core.typing import FloatArray

UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
"""Format of an epoch column -> seconds per unit."""
FORMATS = ("ymd", "dmy", "mdy", *UNITS, "excel")
"""Time formats: order of year, month and day in text; unit of a number since 1970; spreadsheet days since 1900."""
TIME_NAMES = re.compile(
    r"(?i)(^|[^a-z])(t|ts|date|datum|time|timestamp|datetime|zeit|zeitstempel|uhrzeit|utc|epoch|clock|when|"
    r"date_?time|time_?stamp|elapsed|seconds?|sec|millis|ms)([^a-z]|$)"
)
"""Pattern of usual time column names."""
_EARLIEST, _LATEST = 946_684_800.0, 4_102_444_800.0
"""Years 2000 and 2100 in seconds since 1970; only numbers between them are taken for epoch times."""
_EXCEL_EPOCH = 25_569
_EPOCH = date(1970, 1, 1).toordinal()
_DATE = (
    r"(?:(?P<a>\d{4}|\d{1,2})(?P<sep>[-/. ])(?P<b>\d{1,2}|[A-Za-zäÄ]{3,9}\.?)(?P=sep)(?P<c>\d{4}|\d{2})"
    r"|(?P<packed>\d{8}))"
)
_CLOCK = (
    r"(?P<hour>\d{1,2})[:.h](?P<minute>\d{2})(?:[:.](?P<second>\d{2})(?:[.,:](?P<part>\d{1,9}))?)?"
    r"(?:\s*(?P<half>[AaPp]\.?[Mm]\.?))?"
)
_ZONE = r"\s*(?P<zone>Z|UTC|GMT|[+-]\d{2}:?\d{2}|[+-]\d{2})?"
_STAMP = re.compile(rf"{_DATE}(?:[T ,;_-]+(?:{_CLOCK}|(?P<digits>\d{{6}})){_ZONE})?")
_CLOCK_ONLY = re.compile(rf"T?{_CLOCK}{_ZONE}")
_MONTHS = {name.lower(): number for number, name in enumerate(MONTHS, 1)} | {"mär": 3, "mai": 5, "okt": 10, "dez": 12}


def is_stamp(text: str) -> bool:
    """True if ``text`` looks like a date, with or without a time of day."""
    return _STAMP.fullmatch(text.strip()) is not None


def is_clock(text: str) -> bool:
    """True if ``text`` looks like a time of day."""
    match = _CLOCK_ONLY.fullmatch(text.strip())
    return match is not None and (":" in text or match["second"] is not None)


def text_format(cells: Sequence[str], day_first: bool | None = None, european: bool = False) -> str | None:
    """Return the format in which most of ``cells`` are times, None if there is none.

    If day and month are ambiguous, the order in which times never decrease wins, then ``european``.
    """
    matches = [match for cell in cells if (match := _STAMP.fullmatch(cell.strip())) is not None]
    if not cells or len(matches) < 0.9 * len(cells):
        return None
    if all(match["packed"] or len(match["a"]) == 4 for match in matches):
        return "ymd" if np.isfinite(read_texts(cells, "ymd")).mean() >= 0.9 else None
    if day_first is not None:
        return "dmy" if day_first else "mdy"
    times = {order: read_texts(cells, order) for order in ("dmy", "mdy")}
    shares = {order: float(np.isfinite(found).mean()) for order, found in times.items()}
    best = [order for order, share in shares.items() if share >= 0.9 and share > max(shares.values()) - 1e-9]
    if len(best) == 2:
        forward = [order for order in best if (np.diff(times[order]) >= 0).all()]
        best = forward if len(forward) == 1 else best
    if len(best) == 2:
        slash = any(match["sep"] == "/" for match in matches)
        best = ["dmy" if european or not slash else "mdy"]
    return best[0] if best else None


def number_format(name: str, values: FloatArray) -> str | None:
    """Return the unit in which ``values`` count since an epoch, None if they are not times.

    The values must lie between 2000 and 2100, and either grow throughout or belong to a column with a time name.
    """
    known = values[np.isfinite(values)]
    named, forward = TIME_NAMES.search(name) is not None, bool((np.diff(known) >= 0).all())
    if not known.size or not (named or (forward and known[0] < known[-1])):
        return None
    for unit, size in UNITS.items():
        if known.min() * size >= _EARLIEST and known.max() * size <= _LATEST:
            return unit
    if named and forward and known.min() >= 36_000 and known.max() <= 73_050 and (known % 1 > 0).any():
        return "excel"
    return None


def read_numbers(values: Any, unit: str) -> FloatArray:
    """Return times from numbers in ``unit``."""
    values = np.asarray(values, np.float64)
    return (values - _EXCEL_EPOCH) * 86_400 if unit == "excel" else values * UNITS[unit]


def read_texts(cells: Sequence[str], order: str) -> FloatArray:
    """Return times from texts; NaN for a text that is not a time.

    >>> read_texts(["05.02.2015 09:24", "2/5/15 9:24 AM", "2015-02-05T10:24:00+01:00"], "dmy").tolist()
    [1423128240.0, 1430558640.0, 1423128240.0]
    """
    if order == "ymd" and len({len(cell) for cell in cells}) == 1 and _is_iso(cells[0]):
        try:
            return np.array(cells, "datetime64[us]").astype(np.int64) / 1e6
        except ValueError:
            pass
    return np.array([read_text(cell, order) for cell in cells], np.float64)


def _is_iso(text: str) -> bool:
    """True if numpy parses ``text`` quickly and with the same result: a date, optionally a time, no zone."""
    return re.fullmatch(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)?", text) is not None


def read_text(text: str, order: str) -> float:
    """Return the time in a text, NaN if there is none."""
    match = _STAMP.fullmatch(text.strip())
    if match is None:
        return float("nan")
    if match["packed"]:
        parts = [match["packed"][:4], match["packed"][4:6], match["packed"][6:]]
    else:
        parts = [match["a"], match["b"], match["c"]]
    order = "ymd" if len(parts[0]) == 4 else "dmy" if parts[1][0].isalpha() else order
    year, month, day = (parts[order.index(letter)] for letter in "ymd")
    number = int(month) if month.isdigit() else _MONTHS.get(month[:3].lower(), 0)
    century = 0 if len(year) == 4 else 2000 if int(year) < 70 else 1900
    try:
        days = date(century + int(year), number, int(day)).toordinal() - _EPOCH
    except ValueError:  # no such day
        return float("nan")
    return 86_400.0 * days + _seconds(match)


def read_clock(text: str) -> float:
    """Return the seconds since midnight of a time of day, NaN if ``text`` is not one."""
    match = _CLOCK_ONLY.fullmatch(text.strip())
    return float("nan") if match is None else _seconds(match)


def _seconds(match: re.Match[str]) -> float:
    """Return the seconds since midnight, in UTC."""
    found = match.groupdict()
    packed = found.get("digits")
    parts = re.findall("..", packed) if packed else [found["hour"], found["minute"], found["second"]]
    hour, minute, second = (int(part or 0) for part in parts)
    if half := found.get("half"):
        hour = hour % 12 + (12 if half[0] in "Pp" else 0)
    if hour > 24 or minute > 59 or second > 60:
        return float("nan")
    seconds = 3600.0 * hour + 60.0 * minute + second + float(f"0.{found.get('part') or 0}")
    zone = found.get("zone") or "Z"
    if zone[0] in "+-":
        digits = zone[1:].replace(":", "").ljust(4, "0")
        seconds -= (1 if zone[0] == "+" else -1) * (3600 * int(digits[:2]) + 60 * int(digits[2:]))
    return seconds


# Regularity of the times of a stream: sampling interval, gaps, rows out of order -------------------------------------

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
