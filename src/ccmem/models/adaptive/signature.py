"""Signatures: what the inputs of a block look like on average, and when they stop looking like it.

A signature is the running mean m of the unit-norm inputs u of a block, their total variance s = E|u - m|^2, and two
moments of p = (u_t - m).(u_t-1 - m), the product of consecutive deviations. If samples are independent, E p^2 is the
trace of the squared covariance, so that nu = s^2 / E p^2 is the effective number of dimensions the data varies in; if
they are not, it comes out smaller, which only raises the limits, and c = E p / s is their correlation. A mean w of some
samples differs from m by noise of

    E|w - m|^2 = s V,   V = (1 + c) / (1 - c) * sum_i (a_i - b_i)^2,

where a_i and b_i are the weights that sample i has in w and in m. The sum is exact, kept by recursion whatever the
rates are, so that it may be trusted from the first few dozen samples on.

Data that comes in runs, cycles or drifts moves by more than its noise. How much more is learned: W is the mean of
|w - m|^2 - s V over all means w that were found to fit, as far as it is certain (less one and a half standard errors),
and the variance of the same gives the number of dimensions nu_W of what they did (one, as long as there is little to
tell by). A mean fits if

    |w - m|^2 <= s V q(nu, z) + W q(nu_W, z_W),

q being the quantiles of chi2(nu) / nu (by Wilson and Hilferty's cube): for independent samples W is next to nothing and
the limit that of the noise. Nothing depends on the scale of the data.
"""

from __future__ import annotations

import numpy as np

from ccmem._typing import FloatArray
from ccmem.kernels.competition import dot
from ccmem.kernels.jit import kernel_in_place

COUNT, VARIANCE, WEIGHT, PAIRS, PRODUCT, SQUARE, WANDER, DRIFT, FAST = 0, 1, 2, 3, 4, 5, 6, 8, 10
"""Columns of the statistics of a block: samples, s, sum of b_i^2, pairs, E p, E p^2; W and the mean square behind it,
of recent means around the signature (WANDER) and around a reference that follows (DRIFT); W of batches (FAST)."""
N_STATISTICS = 11

PRIOR_PAIRS = 8.0
PRIOR_DIMENSIONS = 2.0
"""Few dimensions mean high limits; so much is assumed until the pairs seen say otherwise."""
PRIOR_MEANS = 8.0
"""Recent means that a wander of one dimension counts for, until those seen say otherwise."""
SPAN = 100.0
"""Samples that a recent mean stands for."""
MOST_CORRELATION = 0.9
LEAST_VARIANCE = 1e-12
"""Below this, differences between unit vectors are rounding."""


@kernel_in_place
def effective_dimensions(statistics: FloatArray) -> float:
    """nu: how many equal directions would vary as much as this data does."""
    variance, pairs = max(statistics[VARIANCE], LEAST_VARIANCE), statistics[PAIRS]
    share = pairs * statistics[SQUARE] / (variance * variance) + PRIOR_PAIRS / PRIOR_DIMENSIONS
    share /= pairs + PRIOR_PAIRS
    return 1.0 / min(max(share, 1e-6), 1.0)


@kernel_in_place
def inflation(statistics: FloatArray) -> float:
    """(1 + c) / (1 - c): how much more the mean of correlated samples varies; never below 1."""
    variance, pairs = max(statistics[VARIANCE], LEAST_VARIANCE), statistics[PAIRS]
    correlation = statistics[PRODUCT] / variance * pairs / (pairs + PRIOR_PAIRS)
    correlation = min(max(correlation, 0.0), MOST_CORRELATION)
    return (1.0 + correlation) / (1.0 - correlation)


@kernel_in_place
def quantile(dimensions: float, z: float) -> float:
    """Quantile of chi2(nu) / nu at a standard normal quantile z (Wilson and Hilferty, 1931)."""
    spread = 2.0 / (9.0 * dimensions)
    root = 1.0 - spread + z * np.sqrt(spread)
    return root * root * root


@kernel_in_place
def noise(statistics: FloatArray, weight: float) -> float:
    """s V: the squared distance to expect between means if nothing moved; ``weight`` is the sum of (a_i - b_i)^2."""
    variance = max(statistics[VARIANCE] / max(1.0 - statistics[WEIGHT], 0.5), LEAST_VARIANCE)
    return variance * min(1.0, inflation(statistics) * weight)


@kernel_in_place
def certain(statistics: FloatArray, wander: float, weight: float) -> float:
    """A learned W without one and a half standard errors, the means behind it having this ``weight``."""
    error = np.sqrt(2.0 / (effective_dimensions(statistics) * (1.0 + statistics[COUNT] * weight)))
    return max(0.0, wander - 1.5 * error * noise(statistics, weight))


@kernel_in_place
def reach(statistics: FloatArray, which: int, z: float) -> float:
    """W q(nu_W, z), W being that in the column ``which``."""
    mean, means = statistics[which], statistics[COUNT] / SPAN
    wander = certain(statistics, mean, 1.0 / SPAN)
    if wander == 0.0:
        return 0.0
    whole = mean + noise(statistics, 1.0 / SPAN)
    share = means * max(0.0, statistics[which + 1] - mean * mean) / (2.0 * whole * whole) + PRIOR_MEANS
    share /= means + PRIOR_MEANS
    return wander * quantile(1.0 / min(max(share, 1e-6), 1.0), z)


@kernel_in_place
def limit(statistics: FloatArray, which: int, weight: float, z: float, z_wander: float) -> float:
    """The squared distance up to which a mean fits."""
    at_rest = noise(statistics, weight) * quantile(effective_dimensions(statistics), z)
    return at_rest + reach(statistics, which, z_wander)


@kernel_in_place
def observe(statistics: FloatArray, which: int, distance: float, weight: float, rate: float) -> None:
    """Learn W from a squared distance that fitted."""
    beyond = distance - noise(statistics, weight)
    statistics[which] += rate * (beyond - statistics[which])
    statistics[which + 1] += rate * (beyond * beyond - statistics[which + 1])


@kernel_in_place
def follow(mean: FloatArray, x: FloatArray, scale: float, rate: float) -> None:
    """mean <- mean + rate * (scale * x - mean)"""
    factor, step = mean.dtype.type(scale), mean.dtype.type(rate)
    for i in range(mean.shape[0]):
        mean[i] = mean[i] + step * (factor * x[i] - mean[i])


@kernel_in_place
def deviate(mean: FloatArray, x: FloatArray, scale: float, deviation: FloatArray) -> None:
    """deviation <- scale * x - mean"""
    factor = mean.dtype.type(scale)
    for i in range(mean.shape[0]):
        deviation[i] = factor * x[i] - mean[i]


@kernel_in_place
def shift(mean: FloatArray, deviation: FloatArray, rate: float) -> None:
    """mean <- mean + rate * deviation"""
    step = mean.dtype.type(rate)
    for i in range(mean.shape[0]):
        mean[i] = mean[i] + step * deviation[i]


@kernel_in_place
def absorb(mean: FloatArray, statistics: FloatArray, deviation: FloatArray, product: float, slowest: float) -> float:
    """Take a sample, given by its deviation from ``mean``, into the signature; return its weight there.

    ``product`` is that with the deviation of the sample before, NaN if there is none.
    """
    statistics[COUNT] += 1.0
    rate = max(1.0 / statistics[COUNT], slowest)
    statistics[VARIANCE] = (1.0 - rate) * (statistics[VARIANCE] + rate * dot(deviation, deviation))
    statistics[WEIGHT] = (1.0 - rate) * (1.0 - rate) * statistics[WEIGHT] + rate * rate
    if product == product:  # not NaN
        statistics[PAIRS] += 1.0
        pair_rate = max(1.0 / statistics[PAIRS], slowest)
        statistics[PRODUCT] += pair_rate * (product - statistics[PRODUCT])
        statistics[SQUARE] += pair_rate * (product * product - statistics[SQUARE])
    shift(mean, deviation, rate)
    return rate
