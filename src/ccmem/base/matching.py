"""Best matching units of many rows at once: a matrix product selects candidates, exact sums decide.

A matrix product (BLAS) is the fastest way to compare many rows with many units, but its rounding depends on the
processor and on which rows share a call. The product is therefore used only to rule units out: all units within a
proven error bound of the best are compared again with the sums of :mod:`ccmem.kernels.competition`. The winner is
bit-identical to that of the plain kernels for any slab, thread or BLAS library.

Rows are compared in slabs, so memory does not grow with their number. The slabs are distributed over as many threads as
the BLAS would use, and each product runs on a single thread: OMP_NUM_THREADS, joblib's limits and threadpoolctl are
obeyed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np

from ccmem.base.validation import check_finite
from ccmem.core.typing import BoolArray, FloatArray, IntArray
from ccmem.kernels import competition
from ccmem.kernels.jit import JIT_ENABLED

SLAB_ROWS = 512
MOST_PRODUCTS = 1 << 20
"""Largest size of a matrix product; a slab has fewer rows if there are many units."""
WORTH_A_PRODUCT = 1 << 20
"""Minimum number of multiplications for a matrix product; smaller problems use the plain kernel."""
WORTH_A_THREAD = 1 << 25


def most_similar(X: FloatArray, prototypes: FloatArray, competes: BoolArray, epsilon: float, winners: IntArray) -> None:
    """Find winners like :func:`ccmem.kernels.competition.most_similar`, in slabs; raise for non-finite rows."""
    if _is_small(X, prototypes):
        check_finite(X)
        competition.most_similar(X, prototypes, competes, epsilon, winners)
    else:
        _match(X, prototypes, competes, False, epsilon, winners)


def nearest(X: FloatArray, prototypes: FloatArray, competes: BoolArray, p: float, winners: IntArray) -> None:
    """Find winners like :func:`ccmem.kernels.competition.nearest`, in slabs; only p = 2 uses matrix products."""
    if p == 2.0 and not _is_small(X, prototypes):
        _match(X, prototypes, competes, True, 0.0, winners)
    else:
        check_finite(X)
        work = len(X) * prototypes.size
        in_slabs(lambda s: competition.nearest(X[s], prototypes, competes, p, winners[s]), len(X), work)


def in_slabs(job: Callable[[slice], None], n_rows: int, work: int, rows_at_once: int | None = None) -> None:
    """Run ``job`` for every slab of rows; with enough ``work``, on as many threads as the BLAS may use."""
    size = rows_at_once or SLAB_ROWS
    slabs = [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]
    if work < WORTH_A_THREAD or not JIT_ENABLED:
        for slab in slabs:
            job(slab)
        return
    with _BLAS.on_one_thread() as n_threads:
        n_threads = min(n_threads, len(slabs))
        if n_threads == 1:
            for slab in slabs:
                job(slab)
        else:
            with ThreadPoolExecutor(n_threads) as pool:
                for _ in pool.map(job, slabs):  # raises the exception of a failed job
                    pass


class _Blas:
    """Limit of the BLAS to one thread while any caller is active; only the first caller may use more threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._controller: Any = None
        self._limit: Any = None

    @contextmanager
    def on_one_thread(self) -> Iterator[int]:
        """Limit the BLAS to one thread inside the block; yield the number of threads that the caller may use."""
        with self._lock:
            self._users += 1
            n_threads = self._hold() if self._users == 1 else 1
        try:
            yield n_threads
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self._limit.restore_original_limits()

    def _hold(self) -> int:
        if self._controller is None:
            from threadpoolctl import ThreadpoolController

            self._controller = ThreadpoolController()
        known = [library["num_threads"] for library in self._controller.select(user_api="blas").info()]
        self._limit = self._controller.limit(limits=1, user_api="blas")
        affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return min([affinity, *known])


_BLAS = _Blas()
blas_on_one_thread = _BLAS.on_one_thread


# The bound --------------------------------------------------------------------------------------------------------


def _is_small(X: FloatArray, prototypes: FloatArray) -> bool:
    """True if a matrix product does not pay off, or the rows are so wide that the error bounds would not hold."""
    if len(X) < 8 or len(X) * prototypes.size < WORTH_A_PRODUCT or not JIT_ENABLED:
        return True
    return bool(X.shape[1] * np.finfo(X.dtype).eps > 0.01)


def _match(
    X: FloatArray, prototypes: FloatArray, competes: BoolArray, by_distance: bool, epsilon: float, winners: IntArray
) -> None:
    """Find the winner of every row with matrix products.

    For units m and a row x, the product gives s[i] = x . m[i] (- |m[i]|^2 / 2 for distances); the largest s[i] wins.
    With u the rounding unit, n the width, |x| <= N and |m| <= M, a sum of n products in any order, fused or not, errs
    by at most n u N M (1 + small), and so does s by c = (n + n/32 + 16) u times N M (+ M^2 for distances). For
    similarity, the exact kernel's winner w therefore has s[w] >= max s - 2 c N M. For distance, its sums of squares d
    err by a relative e <= (n/32 + 16) u, so that d[w] <= d[i] (1 + 3 e) in exact numbers for every unit i, and with
    d = |x|^2 - 2 s this is s[w] >= max s - 2 c (N M + M^2) - 1.5 e d. ``slack`` is this margin; a
    tenth more covers all second-order terms.
    """
    units = np.flatnonzero(competes)
    if len(units) == 0:
        winners[:] = -1
        return
    rivals = prototypes if len(units) == len(prototypes) else prototypes[units]
    squares = np.einsum("ij,ij->i", rivals, rivals, dtype=np.float64)
    offsets = (0.5 * squares).astype(X.dtype)
    longest = 1.001 * float(np.sqrt(squares.max()))
    n, limits = X.shape[1], np.finfo(X.dtype)
    sum_error, lane_error = (n + n / 32 + 16) * 0.5 * float(limits.eps), (n / 32 + 16) * 0.5 * float(limits.eps)

    def job(slab: slice) -> None:
        rows, won = X[slab], winners[slab]
        check_finite(rows, slab.start)  # checked here, because reading the slab also loads it into the cache
        products = rows @ rivals.T
        if by_distance:
            products -= offsets
        won[:] = products.argmax(axis=1)
        top = products[np.arange(len(rows)), won].astype(np.float64)
        square = np.einsum("ij,ij->i", rows, rows).astype(np.float64) * (1.0 + 2.0 * sum_error)
        slack = 2.0 * sum_error * longest * np.sqrt(square)
        if by_distance:
            slack += 2.0 * sum_error * longest * longest
            slack += 1.5 * lane_error * (np.maximum(square - 2.0 * top, 0.0) + 2.0 * slack)
        cut = (top - 1.1 * slack - 8.0 * n * float(limits.tiny)).astype(X.dtype)
        possible = products >= cut[:, np.newaxis]
        unsure = np.flatnonzero(np.count_nonzero(possible, axis=1) > 1)
        if len(unsure):
            some = np.flatnonzero(possible[unsure].any(axis=0))
            won[unsure] = some[_exact(rows[unsure], rivals[some], by_distance, epsilon)]
        won[:] = units[won]

    rows_at_once = max(1, min(SLAB_ROWS, MOST_PRODUCTS // len(rivals)))
    in_slabs(job, len(X), len(X) * rivals.size, rows_at_once)


def _exact(X: FloatArray, prototypes: FloatArray, by_distance: bool, epsilon: float) -> IntArray:
    """Return the winner of every row by the sums of the kernels."""
    winners, competes = np.empty(len(X), np.int64), np.ones(len(prototypes), np.bool_)
    if by_distance:
        competition.nearest(X, prototypes, competes, 2.0, winners)
    else:
        competition.most_similar(X, prototypes, competes, epsilon, winners)
    return winners
