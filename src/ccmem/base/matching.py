"""Best matching units of many rows at once: a matrix product selects candidates, exact sums decide.

A matrix product (BLAS) is the fastest way to compare many rows with many units, but its rounding depends on the
processor and on which rows share a call. The product is therefore used only to rule units out: all units within a
proven error bound of the best are compared again with the sums of :mod:`ccmem.kernels.competition`. The winner is
bit-identical to that of the plain kernels for any slab, thread or BLAS library.

Slabs of rows are compared with tiles of units, so memory does not grow with rows times units. The slabs are distributed
over as many threads as the BLAS would use, and each product runs on a single thread: OMP_NUM_THREADS, joblib's limits
and threadpoolctl are obeyed.
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
from ccmem.kernels.competition import dot, squared_distance, unit_scale
from ccmem.kernels.jit import JIT_ENABLED, kernel
from ccmem.kernels.lanes import largest_sum

SLAB_ROWS = 512
TILE_UNITS = 2048
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


def in_slabs(job: Callable[[slice], None], n_rows: int, work: int) -> None:
    """Run ``job`` for every slab of rows; with enough ``work``, on as many threads as the BLAS may use."""
    slabs = [slice(start, min(start + SLAB_ROWS, n_rows)) for start in range(0, n_rows, SLAB_ROWS)]
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
    """
    units = np.flatnonzero(competes)
    if len(units) == 0:
        winners[:] = -1
        return
    rivals = prototypes if len(units) == len(prototypes) else prototypes[units]
    squares = np.einsum("ij,ij->i", rivals, rivals, dtype=np.float64)
    offsets = (-0.5 * squares if by_distance else np.zeros(len(rivals))).astype(X.dtype)
    longest = 1.001 * float(np.sqrt(squares.max()))
    tiles = [slice(start, start + TILE_UNITS) for start in range(0, len(rivals), TILE_UNITS)]
    single = len(tiles) == 1
    thread = threading.local()

    def job(slab: slice) -> None:
        rows, won = X[slab], winners[slab]
        check_finite(rows, slab.start)  # checked here, because reading the slab also loads it into the cache
        if not hasattr(thread, "products"):
            thread.products = np.empty(SLAB_ROWS * min(TILE_UNITS, len(rivals)), X.dtype)
        top, best = np.full(len(rows), -np.inf), np.full(len(rows), -np.inf)
        for tile in tiles:
            part = rivals[tile]
            products = thread.products[: len(rows) * len(part)].reshape(len(rows), len(part))
            np.matmul(rows, part.T, out=products)
            update_winners(
                products, offsets[tile], rows, rivals, tile.start, by_distance, epsilon, longest, single, top, best, won
            )
        if rivals is not prototypes:
            won[:] = units[won]

    in_slabs(job, len(X), len(X) * rivals.size)


@kernel
def update_winners(
    products: FloatArray,
    offsets: FloatArray,
    X: FloatArray,
    prototypes: FloatArray,
    first: int,
    by_distance: bool,
    epsilon: float,
    longest: float,
    only_tile: bool,
    top: FloatArray,
    best: FloatArray,
    winners: IntArray,
) -> None:
    """Update the winner of every row from its products with a tile of units.

    With u the rounding unit, n the width, |x| <= N and |m| <= M, a sum of n products in any order, fused or not, errs
    by at most n u N M (1 + small), and so does s by c = (n + n/32 + 16) u times N M (+ M^2 for distances). For
    similarity, the exact kernel's winner w therefore has s[w] >= max s - 2 c N M. For distance, its sums of squares d
    err by a relative e <= (n/32 + 16) u, so that d[w] <= d[i] (1 + 3 e) in exact numbers for every unit i, and with
    d = |x|^2 - 2 s this is s[w] >= max s - 2 c (N M + M^2) - 1.5 e d. ``slack`` is this margin; a
    tenth more covers all second-order terms.
    """
    n = X.shape[1]
    wide = X.itemsize == 8  # finfo would take a while to compile
    unit, tiny = 2.0**-53 if wide else 2.0**-24, 2.0**-1022 if wide else 2.0**-126
    sum_error, lane_error = (n + n / 32 + 16) * unit, (n / 32 + 16) * unit
    for r in range(X.shape[0]):
        x = X[r]
        row = products[r]
        highest = largest_sum(row, offsets)
        if highest > top[r]:
            top[r] = highest
        square = dot(x, x) * (1.0 + 2.0 * lane_error)
        length = np.sqrt(square)
        slack = 2.0 * sum_error * length * longest
        if by_distance:
            slack += 2.0 * sum_error * longest * longest
            slack += 1.5 * lane_error * (max(0.0, square - 2.0 * top[r]) + 2.0 * slack)
        cut = X.dtype.type(top[r] - 1.1 * slack - 8.0 * n * tiny)
        if highest < cut:
            continue
        if only_tile:
            found, places = 0, 0
            for i in range(row.shape[0]):  # no branch, so that LLVM vectorises the loop
                hit = row[i] + offsets[i] >= cut
                found += hit
                places += hit * i
            if found == 1:
                winners[r] = first + places
                continue
        scale = unit_scale(x, epsilon)
        for i in range(row.shape[0]):
            if row[i] + offsets[i] >= cut:
                if by_distance:
                    score = -squared_distance(x, prototypes[first + i])
                else:
                    score = dot(prototypes[first + i], x) * scale
                if score > best[r] or (score == best[r] and first + i < winners[r]):
                    best[r] = score
                    winners[r] = first + i
