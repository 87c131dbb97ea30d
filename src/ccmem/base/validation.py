"""Validation of rows: a bad value raises an error that names the value, its place and the remedy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Any

import numpy as np

from ccmem.base.times import drop_time_column
from ccmem.core.sklearn import validate_data
from ccmem.core.typing import LARGEST, FloatArray
from ccmem.core.undo import attributes_kept_on_error
from ccmem.kernels.rows import first_suspect


def check_finite(X: FloatArray, first_row: int = 0, missing: bool = False) -> None:
    """Raise if ``X`` holds infinity or numbers beyond ``LARGEST``, naming the first such place.

    NaN also raises, unless ``missing`` allows missing readings.
    """
    largest = LARGEST[X.dtype]
    row = first_suspect(X)
    # NaN makes both comparisons false
    if row == len(X) or (X[row:].min() >= -largest and X[row:].max() <= largest):
        return
    if missing:
        fine = ~(np.abs(X[row:]) > largest)
        if fine.all():
            return
        row, column = np.argwhere(~fine)[0] + (row, 0)
    else:
        row, column = np.argwhere(~(np.abs(X) <= largest))[0]
    value = X[row, column]
    if np.isfinite(value):
        trouble, remedy = f"is too large for {X.dtype}", "rescale the data first"
    elif np.isnan(value):
        trouble = "cannot be learned from"
        remedy = "drop or impute rows with NaN first, or learn with AdaptiveCCM, which takes it as a missing reading"
    else:
        trouble, remedy = "cannot be learned from", "drop or impute rows with inf first"
    raise ValueError(
        f"Input X contains {'NaN' if np.isnan(value) else value} at row {first_row + row}, column {column}, "
        f"which {trouble}; {remedy}"
    )


def check_rows(estimator: Any, X: Any, dtype: Any, finite: bool = True, missing: bool = False) -> FloatArray:
    """Return ``X`` as a contiguous float32 or float64 array; an error leaves ``estimator`` unchanged.

    ``finite`` False defers the check of the values to the next reader. With ``missing``, NaN is a missing reading.
    ``dtype`` None marks the first data of an estimator, which fixes the number and the names of the columns.
    """
    reset = dtype is None
    if not reset and _needs_no_conversion(estimator, X, dtype):
        if finite:
            check_finite(X, missing=missing)
        return X
    X, _ = drop_time_column(X)
    _refuse_nothing(X)
    _refuse_times(X)
    if isinstance(X, np.ma.MaskedArray):  # masked values would be used as readings
        X = np.ma.filled(X.astype(np.result_type(X.dtype, np.float32)), np.nan)
    with attributes_kept_on_error(estimator):  # scikit-learn sets those for the columns
        try:
            checked: FloatArray = validate_data(
                estimator,
                X,
                reset=reset,
                dtype=[np.float64, np.float32] if reset else dtype,
                order="C",
                ensure_all_finite=False,
                ensure_min_samples=1,
            )
        except ValueError as problem:
            if (text := _text_in(X)) is None or "could not convert" not in str(problem):
                raise
            raise ValueError(text) from problem
        except OverflowError as problem:  # an integer of hundreds of digits
            raise ValueError("Input X contains a number too large for a float; rescale the data first") from problem
        if checked.shape[1] != (said := vars(estimator).get("n_features_in_", 0)):
            raise ValueError(
                f"Input X says it has {said} columns and converts to an array of {checked.shape[1]}; give np.asarray(X)"
            )
        if not checked.flags.writeable:
            checked = _as_writeable(checked)
        if finite:
            check_finite(checked, missing=missing)
    return checked


def _refuse_nothing(X: Any) -> None:
    """Raise if ``X`` is no table; messages of scikit-learn and numpy would not say so."""
    if X is None:
        raise ValueError("X is None; expected an array or frame of shape (rows, columns)")
    is_lazy = hasattr(X, "collect_schema") and not hasattr(X, "get_column")  # polars
    if is_lazy or (isinstance(X, (Mapping, Set, Iterator)) and not hasattr(X, "tocsr")):
        raise TypeError(
            f"X is a {type(X).__name__}; expected an array or frame of shape (rows, columns): list(X), a data frame of "
            "a dict, collect() of a lazy frame"
        )
    if hasattr(X, "to_frame") and len(getattr(X, "shape", ())) == 1:
        raise ValueError(f"X is a {type(X).__name__}; expected 2D data: X.to_frame() is a table of one column")
    if isinstance(X, (list, tuple)) and not len(X):
        raise ValueError("X is empty: found array with 0 sample(s); expected at least one row")


def _text_in(X: Any) -> str | None:
    """Return a description of the first text in ``X``, with its column and row; None if there is no text."""
    try:
        named = [(str(name), np.asarray(X[name], object)) for name in X.columns]
    except (AttributeError, TypeError, ValueError, KeyError):
        table = np.asarray(X, object)
        if table.ndim != 2:
            return None
        named = [(str(place), table[:, place]) for place in range(table.shape[1])]
    for name, values in named:
        for row, value in enumerate(values.tolist()):
            if isinstance(value, (str, bytes)):
                try:
                    float(value)
                except ValueError:
                    return (
                        f"Input X: could not convert string to float: column {name!r}, row {row} holds {value!r}; "
                        "leave the column out, or turn it into numbers"
                    )
    return None


def one_row(x: Any) -> Any:
    """Return one sample as a table of one row; raise for a sample with names."""
    if isinstance(x, Mapping):
        raise TypeError(
            "a sample is one row of numbers, not a dict; ccmem.river has memories that learn from dicts, or pass "
            "list(x.values())"
        )
    if x is None:
        raise TypeError("a sample is one row of numbers, not None")
    return np.asarray(x).reshape(1, -1)


def _refuse_times(X: Any) -> None:
    """Raise if ``X`` holds dates or durations, which numpy would convert to counts of an arbitrary unit."""
    kinds = [getattr(X, "dtype", None)] if not hasattr(X, "dtypes") else list(X.dtypes)
    times = any(
        getattr(kind, "kind", "") in ("M", "m") or str(kind).startswith(("Date", "Duration", "period"))
        for kind in kinds
    )
    if not times and (isinstance(X, (list, tuple)) or any(getattr(kind, "kind", "") == "O" for kind in kinds)):
        times = any(isinstance(value, (np.datetime64, np.timedelta64)) for value in np.asarray(X, object).flat)
    if times:
        raise ValueError(
            "Input X contains dates or durations, which have no natural unit; convert them to numbers first "
            "(such as seconds since the start), or leave them out"
        )


def plain_row(x: Any, dtype: Any, width: int) -> FloatArray | None:
    """Return one sample as a table of one row, without a copy, if kernels take it as it is; otherwise None."""
    if type(x) is not np.ndarray or x.dtype != dtype or x.shape != (width,) or not x.flags.carray:
        return None
    row = x[np.newaxis]
    return row if first_suspect(row) == 1 else None


def _needs_no_conversion(estimator: Any, X: Any, dtype: Any) -> bool:
    """True if ``X`` needs no conversion and has no fault, so that scikit-learn's slow validation can be skipped."""
    if type(X) is not np.ndarray or X.ndim != 2 or X.dtype != dtype or not X.flags.carray:
        return False
    known = vars(estimator)
    return len(X) > 0 and X.shape[1] == known.get("n_features_in_") and "feature_names_in_" not in known


def _as_writeable(X: FloatArray) -> FloatArray:
    """Return a writeable view of ``X``: kernels never write to it, and a read-only type would compile them again."""

    window = type("Window", (), {"owner": X})()
    window.__array_interface__ = {**X.__array_interface__, "data": (X.__array_interface__["data"][0], False)}
    return np.asarray(window)
