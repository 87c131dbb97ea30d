"""Windows of batches: their trimmed mean, and what its variance is expected to be. Compiled."""

from __future__ import annotations

import math

import numpy as np

from ccmem.core.typing import FloatArray
from ccmem.kernels.jit import kernel_apart, kernel_in_place
from ccmem.models.adaptive import state as s
from ccmem.models.adaptive.state import Feature, Work

MOST_CORRELATED = 0.95
"""Cap on lag-1 correlations: a random walk would leave no degrees of freedom."""
TIE = 1.0 - 2.0**-20
"""Ratio of two deviations above which they are equal up to rounding."""


@kernel_in_place
def work_of(scratch: FloatArray) -> Work:
    """Return names for rows of ``scratch``."""
    return Work(
        scratch[0], scratch[1], scratch[2], scratch[3], scratch[4], scratch[5], scratch[6], scratch[7], scratch[8],
        scratch[9], scratch[10], scratch[11],
    )  # fmt: skip


@kernel_in_place
def feature_of(stream: FloatArray, block: FloatArray, f: int) -> Feature:
    """Return names for rows of a feature: 0 for means, 1 for spreads."""
    return Feature(
        stream[s.REFERENCE + f], stream[s.ONE + f], stream[s.FOUR + f], stream[s.PRODUCT + f], stream[s.POWER + f],
        stream[s.RESIDUAL + f], block[s.LEVEL + f], block[s.NOISE + f], block[s.SWAY + f],
    )  # fmt: skip


@kernel_apart
def clear(m: int, w: Work) -> None:
    """Begin a window of no batches."""
    for j in range(m):
        w.total[j] = w.error[j] = 0.0
        w.low[j] = w.lower[j] = np.inf
        w.high[j] = w.higher[j] = -np.inf


@kernel_apart
def extend(
    m: int, begin: int, w: Work, values: FloatArray, errors: FloatArray, level: FloatArray, squared: float
) -> None:
    """Add a batch to a window: its deviation from a level, its error variance, and the two extremes on each side.

    The error variance of a mean is the square of the spread times ``squared``; that of a spread is known (0).
    """
    for j in range(m):
        k = np.uint64(begin + j)
        x = values[k] - level[k]
        w.high[j] = max(w.high[j], min(w.higher[j], x))
        w.higher[j] = max(w.higher[j], x)
        w.low[j] = min(w.low[j], max(w.lower[j], x))
        w.lower[j] = min(w.lower[j], x)
        w.total[j] += x
        w.error[j] += errors[k] * errors[k] * squared if squared > 0.0 else errors[k]


@kernel_in_place
def trimming(total: float, low: float, lower: float, high: float, higher: float) -> float:
    """Return what a sum of deviations gains if the second furthest replaces the furthest.

    If the two lie on different sides, 0 replaces the furthest: a single batch never makes a change. If both extremes
    are equally far, as in periodic columns, the sum nearer to 0 is taken: rounding must not decide.
    """
    down = (high if high > 0.0 and high >= -TIE * lower else 0.0) - higher
    up = (low if low < 0.0 and -low >= TIE * higher else 0.0) - lower
    balance, tie = higher + lower, (1.0 - TIE) * (higher - lower)
    above = abs(total + down) <= abs(total + up) if abs(balance) <= tie else balance > 0.0
    return down if above else up


@kernel_in_place
def drift_scale(i: int, one: float, four: float, t: float, prior: float) -> float:
    """Return the drift scale of 2^i batches, a power law through those of one and four, shrunk towards ``prior``.

    That of eight batches does not exceed that of four. None falls faster than that of white noise: where batches
    alternate, trimming undoes their cancellation.
    """
    white, scale = 1.0 / (1 << i), one if i == 0 else four
    if i == 1:
        scale = math.sqrt(one * four)
    elif i == 3:
        scale *= max(0.5, min(1.0, math.sqrt(four / max(one, s.TINY))))
    return max(t * max(scale, one * white) + (1.0 - t) * prior, white)


@kernel_in_place
def independent(residual: float, one: float, t: float) -> float:
    """Return the share of independent ones among squares whose lag-1 correlation is c: (1 - c) / (1 + c)."""
    left = min(max(residual, 0.0) * t / max(one, 0.01), MOST_CORRELATED)
    return (1.0 - left) / (1.0 + left)
