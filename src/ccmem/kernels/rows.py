"""Rows on their way to a kernel: checked once; a bad value gets an error that names it, its place and the remedy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ccmem._sklearn import validate_data
from ccmem._typing import FloatArray
from ccmem.kernels.competition import dot
from ccmem.kernels.jit import kernel_in_place
from ccmem.kernels.lanes import prefetch_row

_LARGEST = {np.dtype(np.float32): 1e15, np.dtype(np.float64): 1e150}
"""Beyond these, squares and sums of them could overflow."""
SURELY_SMALL = 0.99e30
"""A vector whose squares add up to less holds no number beyond 1e15, and neither NaN nor infinity."""


_FETCH_AHEAD = 4096
"""How many numbers before they are needed a look at all of them asks for them."""


@kernel_in_place
def sum_of_squares(x: FloatArray) -> float:
    """Squared length of one vector: the quickest look at all its numbers."""
    return dot(x, x)


@kernel_in_place
def _first_suspect(X: FloatArray) -> int:
    """The first row whose numbers are not surely small."""
    ahead = 1 + _FETCH_AHEAD // X.shape[1]
    for r in range(X.shape[0]):
        prefetch_row(X, r + ahead, 0, X.shape[1])
        if not dot(X[r], X[r]) < SURELY_SMALL:  # also if it is NaN
            return r
    return X.shape[0]


def check_finite(X: FloatArray, first_row: int = 0, missing: bool = False) -> None:
    """Raise if ``X`` holds infinity or numbers too large to be squared, naming the first such place.

    So does NaN, unless readings may be ``missing``.
    """
    largest = _LARGEST[X.dtype]
    row = _first_suspect(X)
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


@contextmanager
def columns_kept_on_error(estimator: Any) -> Iterator[None]:
    """Take back what scikit-learn's validation notes about the columns if the data turns out to be bad after all."""
    names = ("n_features_in_", "feature_names_in_")
    known = {name: vars(estimator)[name] for name in names if name in vars(estimator)}
    try:
        yield
    except BaseException:
        for name in names:
            vars(estimator).pop(name, None)
        vars(estimator).update(known)
        raise


def check_rows(estimator: Any, X: Any, dtype: Any, finite: bool = True, missing: bool = False) -> FloatArray:
    """``X`` as a contiguous float32 or float64 array; nothing about ``estimator`` is changed if it is bad.

    ``finite`` False leaves the look at every value to whoever reads them next. Readings may be ``missing``: NaN.
    ``dtype`` None means the first data an estimator sees: it fixes the number and the names of the columns.
    """
    reset = dtype is None
    if not reset and _is_just_right(estimator, X, dtype):
        if finite:
            check_finite(X, missing=missing)
        return X
    _refuse_times(X)
    if isinstance(X, np.ma.MaskedArray):  # what is masked would be taken for a reading
        X = np.ma.filled(X.astype(np.result_type(X.dtype, np.float32)), np.nan)
    with columns_kept_on_error(estimator):
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
        except OverflowError as problem:  # a whole number of hundreds of digits
            raise ValueError("Input X contains a number too large for a float; rescale the data first") from problem
        if not checked.flags.writeable:
            checked = _as_writeable(checked)
        if finite:
            check_finite(checked, missing=missing)
    return checked


def _refuse_times(X: Any) -> None:
    """Raise if ``X`` holds dates or durations, which numpy would turn into counts of whatever their unit is."""
    kinds = [getattr(X, "dtype", None)] if not hasattr(X, "dtypes") else list(X.dtypes)
    times = any(
        getattr(kind, "kind", "") in ("M", "m") or str(kind).startswith(("Date", "Duration", "period"))
        for kind in kinds
    )
    if not times and (isinstance(X, (list, tuple)) or any(getattr(kind, "kind", "") == "O" for kind in kinds)):
        times = any(isinstance(value, (np.datetime64, np.timedelta64)) for value in np.asarray(X, object).flat)
    if times:
        raise ValueError(
            "Input X contains dates or durations, which have no scale of their own; turn them into numbers first "
            "(seconds since a start, say), or leave them out"
        )


def _is_just_right(estimator: Any, X: Any, dtype: Any) -> bool:
    """Whether there is nothing to convert and nothing to complain about: scikit-learn takes long to say so."""
    if type(X) is not np.ndarray or X.ndim != 2 or X.dtype != dtype or not X.flags.carray:
        return False
    known = vars(estimator)
    return len(X) > 0 and X.shape[1] == known.get("n_features_in_") and "feature_names_in_" not in known


def _as_writeable(X: FloatArray) -> FloatArray:
    """The same memory under a writeable flag: kernels never write to X, and would be compiled twice otherwise."""

    window = type("Window", (), {"owner": X})()
    window.__array_interface__ = {**X.__array_interface__, "data": (X.__array_interface__["data"][0], False)}
    return np.asarray(window)
