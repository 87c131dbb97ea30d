"""From rows to batches: the sums of a batch being filled, and the features of a full one.

What is done with the features is told in :mod:`ccmem.models.adaptive.columns`.
"""

from __future__ import annotations

import numpy as np

from ccmem._typing import FloatArray
from ccmem.kernels.competition import dot
from ccmem.kernels.jit import kernel_apart, kernel_in_place
from ccmem.models.adaptive.columns import (
    BEFORE,
    DIRECTION,
    FOURTHS,
    N_SLOT,
    REFERENCE,
    ROUNDING,
    RUNNING,
    SQUARES,
    SUM,
    TINY,
)


@kernel_in_place
def read(readings: FloatArray, X: FloatArray, begins: bool, anew: bool) -> None:
    """Take rows into the batch being filled, which ``begins`` with them; ``anew``: nothing is known of the stream yet.

    Sums are the same however many rows come at a time; four at a time, sums are fetched a quarter as often.
    """
    reference, before = readings[RUNNING + REFERENCE], readings[BEFORE]
    sums = readings[SUM], readings[SQUARES], readings[FOURTHS], readings[DIRECTION]
    if begins:
        for row in range(SUM, BEFORE):
            readings[row] = 0.0
        readings[DIRECTION] = 0.0
        if anew:
            for j in range(before.shape[0]):
                reference[j] = before[j] = X[0, j]
    r = 0
    while r + 8 <= X.shape[0]:
        a, b, c, d = X[r], X[r + 1], X[r + 2], X[r + 3]
        e, f, g, h = X[r + 4], X[r + 5], X[r + 6], X[r + 7]
        scales = scale_of(a), scale_of(b), scale_of(c), scale_of(d), scale_of(e), scale_of(f), scale_of(g), scale_of(h)
        add_eight(*sums, before, reference, a, b, c, d, e, f, g, h, *scales)
        r += 8
    while r < X.shape[0]:
        add_one(*sums, before, reference, X[r], scale_of(X[r]))
        r += 1


@kernel_in_place
def scale_of(x: FloatArray) -> float:
    """1 / |x|; 0 for a zero vector."""
    squared = dot(x, x)
    return 1.0 / np.sqrt(squared) if squared > 0.0 else 0.0


@kernel_in_place
def with_value(
    total: float,
    squares: float,
    fourths: float,
    direction: float,
    before: float,
    value: float,
    level: float,
    scale: float,
) -> tuple[float, float, float, float, float]:
    """The sums of a column with one more value, which is then the one before."""
    step = (value - before) * (value - before)
    return total + (value - level), squares + step, fourths + step * step, direction + scale * value, value


@kernel_apart
def add_one(
    total: FloatArray,
    squares: FloatArray,
    fourths: FloatArray,
    direction: FloatArray,
    before: FloatArray,
    reference: FloatArray,
    a: FloatArray,
    scale: float,
) -> None:
    """Add a row to the sums of a batch."""
    for j in range(a.shape[0]):
        sums = total[j], squares[j], fourths[j], direction[j], before[j]
        total[j], squares[j], fourths[j], direction[j], before[j] = with_value(
            *sums, np.float64(a[j]), reference[j], scale
        )


@kernel_apart
def add_eight(
    total: FloatArray,
    squares: FloatArray,
    fourths: FloatArray,
    direction: FloatArray,
    before: FloatArray,
    reference: FloatArray,
    a: FloatArray,
    b: FloatArray,
    c: FloatArray,
    d: FloatArray,
    e: FloatArray,
    f: FloatArray,
    g: FloatArray,
    h: FloatArray,
    scale_a: float,
    scale_b: float,
    scale_c: float,
    scale_d: float,
    scale_e: float,
    scale_f: float,
    scale_g: float,
    scale_h: float,
) -> None:
    """The same with eight rows."""
    for j in range(a.shape[0]):
        level = reference[j]
        sums = total[j], squares[j], fourths[j], direction[j], before[j]
        sums = with_value(*sums, np.float64(a[j]), level, scale_a)
        sums = with_value(*sums, np.float64(b[j]), level, scale_b)
        sums = with_value(*sums, np.float64(c[j]), level, scale_c)
        sums = with_value(*sums, np.float64(d[j]), level, scale_d)
        sums = with_value(*sums, np.float64(e[j]), level, scale_e)
        sums = with_value(*sums, np.float64(f[j]), level, scale_f)
        sums = with_value(*sums, np.float64(g[j]), level, scale_g)
        sums = with_value(*sums, np.float64(h[j]), level, scale_h)
        total[j], squares[j], fourths[j], direction[j], before[j] = sums


@kernel_in_place
def mean_and_spread(
    total: float, squares: float, fourths: float, reference: float, n: float
) -> tuple[float, float, float, float]:
    """Mean and spread of n readings, and the errors of both."""
    mean = reference + total / n
    variance = min(squares / (2.0 * n), 1e300)
    share = 0.5 / n
    if variance > 0.0:
        steps = 4.0 * n * n * variance * variance / max(fourths, TINY)  # that count; an outlier makes two
        tails = (1.0 - steps / n) / (4.0 * max(steps - 2.0, 0.01))
        share = min(tails, 1.0) if tails > share else share
    rounding = ROUNDING * mean * (ROUNDING * mean)
    return mean, np.sqrt(variance), variance / n + rounding, variance * share + rounding


@kernel_in_place
def close(readings: FloatArray, ring: FloatArray, slot: int, n: float) -> None:
    """Put the full batch into a slot of the ring."""
    first = N_SLOT * slot
    for j in range(ring.shape[1]):
        ring[first, j], ring[first + 1, j], ring[first + 2, j], ring[first + 3, j] = mean_and_spread(
            readings[SUM, j], readings[SQUARES, j], readings[FOURTHS, j], readings[RUNNING + REFERENCE, j], n
        )
        ring[first + 4, j] = readings[DIRECTION, j] / n
