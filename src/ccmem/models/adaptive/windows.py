"""Windows of batches: their mean, what its variance is expected to be, and how blocks explain them. Compiled."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ccmem.core.typing import BoolArray, FloatArray
from ccmem.kernels.jit import kernel_apart, kernel_in_place
from ccmem.models.adaptive import state as s
from ccmem.models.adaptive.evidence import MOST, at_rest, bayes_factors, combined, totals
from ccmem.models.adaptive.state import Feature, Work

MOST_CORRELATED = 0.95
"""Cap on lag-1 correlations: a random walk would leave no degrees of freedom."""
TIE = 1.0 - 2.0**-20
"""Ratio of two deviations above which they are equal up to rounding."""
_MOST_APART = 1e6
"""Cap on the squared z-score of one feature in the distance of a block, so that one feature does not decide alone."""


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
    drift = s.DRIFT + s.MEASURED * f
    return Feature(
        stream[s.REFERENCE + f], stream[drift], stream[drift + 1], stream[drift + 2], stream[s.PRODUCT + f],
        stream[s.POWER + f], stream[s.RESIDUAL + f], block[s.LEVEL + f], block[s.NOISE + f], block[s.SWAY + f],
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
    """Add a batch to a window: its deviation from a level, its error variance, and the two extremes on each side."""
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
def drift_scale(i: int, one: float, two: float, four: float, t: float, prior: float) -> float:
    """Return the drift scale of 2^i batches, shrunk towards ``prior``; that of eight continues the last doubling.

    It never falls faster than that of white noise: where batches alternate, trimming undoes their cancellation.
    """
    white = 1.0 / (1 << i)
    scale = one if i == 0 else two if i == 1 else four
    if i == s.MEASURED:
        scale = max(0.5, min(1.0, four / max(two, s.TINY))) * four
    return max(t * max(scale, one * white) + (1.0 - t) * prior, white)


@kernel_in_place
def independent(residual: float, one: float, t: float) -> float:
    """Return the share of independent ones among squares whose lag-1 correlation is c: (1 - c) / (1 + c)."""
    left = min(max(residual, 0.0) * t / max(one, 0.01), MOST_CORRELATED)
    return (1.0 - left) / (1.0 + left)


@kernel_apart
def scale_drift(
    first: FloatArray, drift: FloatArray, x: Feature, t: float, n: int, i: int,
    prior: tuple[float, float, float, float],
) -> None:  # fmt: skip
    """Set the drift scales of one batch, at least 1, and of n batches: between those of the windows around n."""
    share, after = float(1 << i) / n, min(i + 1, s.WINDOWS - 1)
    for j in range(first.shape[0]):
        first[j] = max(drift_scale(0, x.one[j], x.two[j], x.four[j], t, prior[0]), 1.0)
        inner = drift_scale(i, x.one[j], x.two[j], x.four[j], t, prior[i])
        outer = drift_scale(after, x.one[j], x.two[j], x.four[j], t, prior[after])
        drift[j] = max(inner * share, outer)


@kernel_apart
def weigh_block(
    z2: FloatArray, variance: FloatArray, w: Work, first: FloatArray, drift: FloatArray, level: FloatArray,
    reference: FloatArray, noise: FloatArray, sway: FloatArray, n: float, age: float, rounding: float,
) -> None:  # fmt: skip
    """Convert sums of a window into squared z-scores against the reference, given level, noise and sway of a block."""
    sure = 1.0 + 3.0 / math.sqrt(age)
    for j in range(z2.shape[0]):
        unit = max(noise[j], 0.0) + rounding * level[j] * level[j] + s.TINY
        one, at = first[j] * unit, reference[j]
        variance[j] = max(drift[j] * unit + one / age + max(sway[j] - one * sure, 0.0), w.error[j] / (n * n))
        mean = w.total[j] / n - at
        mean += trimming(mean * n, w.low[j] - at, w.lower[j] - at, w.high[j] - at, w.higher[j] - at) / n
        z2[j] = min(mean * mean / variance[j], MOST)


@kernel_in_place
def mean_distance(means: FloatArray, spreads: FloatArray, noise: FloatArray, silent: BoolArray) -> float:
    """Return the mean squared z-score of features; set it to -1 for columns without readings, which say nothing."""
    total, n_known = 0.0, 0
    for j in range(means.shape[0]):
        if silent[j] or noise[j] < 0.0:
            means[j] = spreads[j] = -1.0
        else:
            total += min(means[j], _MOST_APART) + min(spreads[j], _MOST_APART)
            n_known += 2
    return total / max(n_known, 1)


@kernel_in_place
def compare(
    found: FloatArray, z2: FloatArray, variance: FloatArray, batches: FloatArray, blocks: FloatArray, ages: FloatArray,
    own: int, watched: float, silent: BoolArray, stream: FloatArray, scalars: FloatArray, scratch: FloatArray,
    settings: Any,
) -> None:  # fmt: skip
    """Set evidence that batches do not belong to a block, squared z-scores of features and their variance, per block.

    Block ``own`` is at the reference. A stored block may have moved since its last use, by a fraction of the squared
    distance to the nearest other block.
    """
    n, columns, t, i = batches.shape[0], batches.shape[2], watched / (watched + settings.prior_count), 0
    while i < s.WINDOWS - 1 and 2 << i <= n:
        i += 1
    w = work_of(scratch)
    first, drift, zero = w.weight, w.power, w.unit
    for j in range(columns):
        zero[j] = 0.0
    for f in range(2):
        scale_drift(first, drift, feature_of(stream, blocks[0], f), t, n, i, settings.expected[f])
        clear(columns, w)
        for k in range(n):
            extend(columns, 0, w, batches[k, f], batches[k, f + 1], zero, (1.0 - f) / settings.batch)
        for k in range(blocks.shape[0]):
            level, age = blocks[k, s.LEVEL + f], max(ages[k], 1.0)
            at = stream[s.REFERENCE + f] if k == own else level
            weigh_block(
                z2[k, f], variance[k, f], w, first, drift, level, at, blocks[k, s.NOISE + f], blocks[k, s.SWAY + f],
                float(n), age, settings.rounding,
            )  # fmt: skip
    closest, near, next_near = 0, np.inf, np.inf
    for k in range(blocks.shape[0]):
        apart = mean_distance(z2[k, 0], z2[k, 1], blocks[k, s.NOISE], silent)
        if apart < near:
            closest, near, next_near = k, apart, near
        else:
            next_near = min(next_near, apart)
    features = 2.0 * columns
    mean, deviation = at_rest(scalars, i, settings.mixture_prior * features)
    for k in range(blocks.shape[0]):
        other = next_near if k == closest else near
        moved = 1.0 + (settings.moved * other if k != own and other < np.inf else 0.0)
        every = mixture = 0.0
        for f in range(2):
            for j in range(columns):
                z2[k, f, j] /= moved
                variance[k, f, j] *= moved
                share = independent(stream[s.RESIDUAL + f, j], stream[s.DRIFT + s.MEASURED * f, j], t)
                w.nu[j] = settings.prior_count + min(max(ages[k], 1.0), watched) * share
            bayes_factors(columns, 0, w.factors, z2[k, f], w.nu, z2[k, f], settings.prior_scale)
            some, product = totals(columns, w.factors, z2[k, f], w.nu, 1.0 / math.sqrt(features), settings.prior_scale)
            every += some
            mixture += product
        found[k] = combined(
            max(every, s.TINY), mixture, features, mean, deviation, scalars[s.COUNT], settings.mixture_scale
        )  # fmt: skip
