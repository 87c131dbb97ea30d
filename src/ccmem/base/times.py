"""Times of rows passed in Python: the time index of a frame, a time column of a polars frame, or an argument."""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem.core.times import EARLIEST, LATEST
from ccmem.core.typing import FloatArray


def split_times(X: Any, times: Any = None) -> tuple[Any, FloatArray | None]:
    """Return ``X`` without a time column, and the times of its rows in seconds since 1970; None if there are none.

    ``times`` takes precedence over the time index of a pandas frame and over the only time column of a polars frame,
    which has no index.
    """
    X, column = drop_time_column(X)
    times = column if times is None else times
    if times is None and getattr(getattr(X, "index", None), "inferred_type", "") in ("datetime64", "datetime"):
        times = X.index
    return X, None if times is None else as_seconds(times, len(X) if hasattr(X, "__len__") else None)


def drop_time_column(X: Any) -> tuple[Any, Any]:
    """Return a polars frame without its only time column, and that column; any other value unchanged, and None."""
    if type(X).__module__.partition(".")[0] != "polars" or not hasattr(X, "get_column"):
        return X, None
    named = [name for name, kind in X.schema.items() if str(kind).startswith(("Date", "Datetime"))]
    return (X.drop(named), X.get_column(named[0])) if len(named) == 1 else (X, None)


def as_seconds(times: Any, n_rows: int | None) -> FloatArray:
    """Return times in seconds since 1970: numbers are already seconds, dates without a zone are UTC.

    >>> as_seconds(["2015-02-05 09:24", "2015-02-05T09:25:00+00:00"], 2).tolist()
    [1423128240.0, 1423128300.0]
    """
    if getattr(times, "tz", None) is not None:  # a pandas index with a zone
        times = times.tz_convert("UTC").tz_localize(None)
    array = times.to_numpy() if hasattr(times, "to_numpy") else np.asarray(times)
    if array.ndim != 1 or (n_rows is not None and len(array) != n_rows):
        raise ValueError(f"times has shape {array.shape} for {n_rows} rows; give one time per row")
    if array.dtype.kind in "iuf":
        return _checked(array.astype(np.float64))
    if array.dtype.kind in "OU":
        array = np.array([_moment(value) for value in array.tolist()], "datetime64[us]")
    if array.dtype.kind != "M":
        raise ValueError(f"times of type {array.dtype} are neither dates nor seconds since 1970")
    stamps = array.astype("datetime64[us]")
    return np.where(np.isnat(stamps), np.nan, stamps.astype(np.int64) / 1e6)


def _checked(seconds: FloatArray) -> FloatArray:
    """Return seconds since 1970; raise if one lies outside the years 1 to 9999, which no date can show."""
    beyond = (seconds < EARLIEST) | (seconds > LATEST)
    if beyond.any():
        row = int(beyond.argmax())
        raise ValueError(
            f"times: {seconds[row]:g} at row {row} lies outside the years 1 to 9999 if it counts seconds since 1970; "
            "divide milliseconds by 1e3 and nanoseconds by 1e9, or pass dates"
        )
    return seconds


def _moment(value: Any) -> Any:
    """Return one time in the form that numpy parses, in UTC and without a zone."""
    from datetime import UTC, datetime

    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError as problem:
            raise ValueError(f"times: {value!r} is not a time; write it as 2015-02-05 09:24") from problem
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    try:
        return np.datetime64(value, "us")
    except (ValueError, TypeError) as problem:
        raise ValueError(f"times: {value!r} is not a time") from problem
