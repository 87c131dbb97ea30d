"""The arithmetic limit: bare loops with the dot products and row updates of a model, and nothing else.

The work is counted by a run of the model, sample by sample. For models that compare directions, the length of x is one
more dot product, and a row update ends with normalisation, which takes the dot product of the row with itself. Three
loops do this work as fast as numba allows (plain loops over one row or four rows at a time, and ccmem's lane sums, all
with flags that permit reordering and fused multiply-add, which ccmem does without), on aligned rows. The fastest is the
limit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np

FLAGS = {"reassoc", "nsz", "contract", "arcp"}


class Work(NamedTuple):
    """Operations that a stream required of a model."""

    first: np.ndarray
    """First row that every sample was compared with."""
    count: np.ndarray
    """Number of consecutive rows it was compared with."""
    extra: np.ndarray
    """Further dot products: with other blocks after a miss, or among units at a merge."""
    updates: np.ndarray
    """Indices of changed rows, sample after sample."""
    ends: np.ndarray
    """End of each sample's rows in ``updates``."""


def count_work(memory: Any, X: np.ndarray) -> Work:
    """Let ``memory`` learn ``X`` row by row and count the work."""
    first, count, extra, updates, ends = [], [], [], [], []
    touched: set[int] = set()
    kind = type(memory).__name__
    for x in X:
        before, units = memory.prototypes_, memory.n_units_
        pointer = memory.task_pointer_ if kind == "CCM" else 0
        first.append(pointer * memory.n_slots if kind == "CCM" else 0)
        count.append(memory.n_slots if kind == "CCM" else units)
        able = memory.win_counts_ > 0
        won = memory.learn_one(x)
        after, beside = memory.prototypes_, 0
        rows = min(len(before), len(after))
        changed = np.flatnonzero((before[:rows] != after[:rows]).any(axis=1)).tolist()
        changed += range(rows, len(after)) if kind != "CCM" else []
        if kind == "CCM" and won < 0:
            waiting = able & (np.arange(units) // memory.n_slots != pointer)
            matches = np.flatnonzero(waiting & (before @ x > memory.vigilance * np.linalg.norm(x)))
            beside = int(waiting[: matches[0] + 1].sum() if len(matches) else waiting.sum())
        if kind == "ARTC2A":
            touched.update(changed)
            if won == units and units == memory.max_units:  # a new unit, and two were merged
                beside, touched = len(touched) * units, set(changed)
        extra.append(beside)
        updates += changed
        ends.append(len(updates))
    return Work(*(np.array(part, np.int64) for part in (first, count, extra, updates, ends)))


def on_cache_lines(array: np.ndarray) -> np.ndarray:
    buffer = np.zeros(array.nbytes + 64, np.uint8)
    start = -buffer.ctypes.data % 64
    copy = buffer[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


@numba.njit(nogil=True, fastmath=FLAGS)
def _product(a, b):  # type: ignore[no-untyped-def]
    total = np.float32(0)
    for j in range(a.shape[0]):
        total += a[j] * b[j]
    return total


@numba.njit(nogil=True, fastmath=FLAGS)
def _square(a, b):  # type: ignore[no-untyped-def]
    total = np.float32(0)
    for j in range(a.shape[0]):
        total += (a[j] - b[j]) * (a[j] - b[j])
    return total


@numba.njit(nogil=True, fastmath=FLAGS)
def _products_4(m, i, x):  # type: ignore[no-untyped-def]
    a = b = c = d = np.float32(0)
    m0, m1, m2, m3 = m[i], m[i + 1], m[i + 2], m[i + 3]
    for j in range(x.shape[0]):
        a += m0[j] * x[j]
        b += m1[j] * x[j]
        c += m2[j] * x[j]
        d += m3[j] * x[j]
    return max(max(a, b), max(c, d))


@numba.njit(nogil=True, fastmath=FLAGS)
def _squares_4(m, i, x):  # type: ignore[no-untyped-def]
    a = b = c = d = np.float32(0)
    m0, m1, m2, m3 = m[i], m[i + 1], m[i + 2], m[i + 3]
    for j in range(x.shape[0]):
        a += (m0[j] - x[j]) * (m0[j] - x[j])
        b += (m1[j] - x[j]) * (m1[j] - x[j])
        c += (m2[j] - x[j]) * (m2[j] - x[j])
        d += (m3[j] - x[j]) * (m3[j] - x[j])
    return max(max(a, b), max(c, d))


def _loop(compare: Any, by_distance: bool) -> Any:
    @numba.njit(nogil=True, fastmath=FLAGS)
    def loop(X, M, first, count, extra, updates, ends, rate):  # type: ignore[no-untyped-def]
        total, done = 0.0, 0
        rate = np.float32(rate)
        keep = np.float32(1) - rate
        for r in range(X.shape[0]):
            x = X[r]
            total += compare(M, first[r], first[r] + count[r], x, not by_distance)
            left = extra[r]
            while left > 0:
                total += compare(M, 0, min(left, M.shape[0]), x, False)
                left -= M.shape[0]
            for k in range(done, ends[r]):
                m = M[updates[k]]
                if by_distance:
                    for j in range(x.shape[0]):
                        m[j] += rate * (x[j] - m[j])
                else:
                    squares = np.float32(0)
                    for j in range(x.shape[0]):
                        m[j] = keep * m[j] + rate * x[j]
                        squares += m[j] * m[j]
                    shrink = np.float32(1) / np.sqrt(squares)
                    for j in range(x.shape[0]):
                        m[j] *= shrink
            done = ends[r]
        return total

    return loop


def bare_loops(by_distance: bool) -> dict[str, Callable[..., float]]:
    """Return the three implementations."""
    one, four = (_square, _squares_4) if by_distance else (_product, _products_4)

    @numba.njit(nogil=True, fastmath=FLAGS)
    def singly(M, first, stop, x, with_length):  # type: ignore[no-untyped-def]
        total = one(x, x) if with_length else 0.0
        for i in range(first, stop):
            total = max(total, one(M[i], x))
        return total

    @numba.njit(nogil=True, fastmath=FLAGS)
    def by_fours(M, first, stop, x, with_length):  # type: ignore[no-untyped-def]
        total, i = one(x, x) if with_length else 0.0, first
        while i + 4 <= stop:
            total = max(total, four(M, i, x))
            i += 4
        while i < stop:
            total = max(total, one(M[i], x))
            i += 1
        return total

    loops = {"flags": _loop(singly, by_distance), "flags, 4 rows": _loop(by_fours, by_distance)}
    try:
        from ccmem.kernels import lanes as _lanes
    except ImportError:  # an older version of ccmem
        return loops
    term = _lanes.SQUARE if by_distance else _lanes.PRODUCT
    pair, rows, n = _lanes.pair_sum(*term), _lanes.row_sums(*term), _lanes.ROWS
    rows_and_x = _lanes.row_sums(*term, with_x=True)

    @numba.njit(nogil=True, fastmath=FLAGS)
    def in_lanes(M, first, stop, x, with_length):  # type: ignore[no-untyped-def]
        total, i = 0.0, first
        if with_length and i + n <= stop:  # computed with the first pass, as in the models
            for value in rows_and_x(M, i, x):
                total = max(total, value)
            i += n
        while i + n <= stop:
            for value in rows(M, i, x):
                total = max(total, value)
            i += n
        while i < stop:
            total = max(total, pair(M[i], x))
            i += 1
        return total

    return {**loops, "lanes": _loop(in_lanes, by_distance)}
