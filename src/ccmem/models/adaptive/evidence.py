"""The statistic: evidence that a window of batches does not belong to a level.

Feature by feature, a Bayes factor: Student's t with and without a shift of unknown size. Over features, the larger of
the mean of the Bayes factors (an e-value under any dependence between columns; sensitive to a single column) and Xie
and Siegmund's mixture (weak shifts in many columns), the latter calibrated by its values at rest.
"""

from __future__ import annotations

import math

import numpy as np

from ccmem.core.typing import FloatArray
from ccmem.kernels.jit import kernel_apart, kernel_in_place
from ccmem.models.adaptive import state as s

LARGEST = 60.0
"""Cap on the log evidence of one feature, so that sums stay finite."""
MOST = 1e12
"""Cap on a squared z-score: infinity / infinity would give NaN."""
_PRIOR_COUNT = 4.0
"""Observations that the prior variance of the mixture is worth."""
_UNKNOWN = -1.0


@kernel_in_place
def bayes_factor(z2: float, nu: float, prior_scale: float) -> float:
    """Return the Bayes factor of a shift for a squared z-score with ``nu`` degrees of freedom."""
    ratio = (nu + z2) / (nu + z2 / (1.0 + prior_scale))
    return math.exp(min(0.5 * (nu + 1.0) * math.log(ratio) - 0.5 * math.log(1.0 + prior_scale), LARGEST))


@kernel_apart
def bayes_factors(
    m: int, begin: int, out: FloatArray, z2: FloatArray, nu: FloatArray, noise: FloatArray, prior_scale: float
) -> None:
    """Fill ``out`` with Bayes factors by series whose relative error is below 1e-6; -1 where the series do not hold.

    Logarithm and exponential of the C library would take longer than all the rest of the rule. A column without
    readings (negative ``noise``) has the factor 1.
    """
    inverse, half = 1.0 / (1.0 + prior_scale), 0.5 * math.log(1.0 + prior_scale)
    for j in range(m):
        x = z2[j] * (1.0 - inverse) / (2.0 * nu[j] + z2[j] * (1.0 + inverse))
        q = x * x
        evidence = (nu[j] + 1.0) * x * (1.0 + q * (1.0 / 3.0 + q * (0.2 + q * (1.0 / 7.0 + q / 9.0)))) - half
        y = 0.125 * evidence
        power = 1.0 + y * (1.0 + y * (0.5 + y * (1.0 / 6.0 + y * (1.0 / 24.0 + y * (1.0 / 120.0 + y / 720.0)))))
        power *= power
        power *= power
        factor = power * power if max(5.0 * x, abs(evidence) - 1.0) < 1.0 else _UNKNOWN
        out[j] = factor if noise[np.uint64(begin + j)] >= 0.0 else 1.0


@kernel_in_place
def totals(
    m: int, factors: FloatArray, z2: FloatArray, nu: FloatArray, share: float, prior_scale: float
) -> tuple[float, float]:
    """Return sum and log mixture of Bayes factors; ``share`` is that of columns expected to change."""
    rest, total, mixture, product = 1.0 - share, 0.0, 0.0, 1.0
    for j in range(m):
        if factors[j] < 0.0:
            factors[j] = bayes_factor(z2[j], nu[j], prior_scale)
    last = m - m % 4
    for j in range(0, last, 4):  # four at a time: a single chain of products would wait for each
        a, b, c, d = factors[j], factors[j + 1], factors[j + 2], factors[j + 3]
        total += (a + b) + (c + d)
        product *= ((rest + share * a) * (rest + share * b)) * ((rest + share * c) * (rest + share * d))
        if product > 1e150 or product < 1e-250:
            mixture += math.log(product)
            product = 1.0
    for j in range(last, m):
        total += factors[j]
        product *= rest + share * factors[j]
    return total, mixture + math.log(product)


@kernel_in_place
def at_rest(scalars: FloatArray, window: int, prior: float) -> tuple[float, float]:
    """Return mean and standard deviation of the mixture at rest: the larger of those of one batch and of a window."""
    mean, most = scalars[s.MEAN], 0.0
    if scalars[s.COUNT + window] > 0.0:
        mean = max(mean, scalars[s.MEAN + window])
    for i in (0, window):
        n = scalars[s.COUNT + i]
        most = max(most, (n * scalars[s.VARIANCE + i] + _PRIOR_COUNT * prior) / (n + _PRIOR_COUNT))
    return mean, math.sqrt(most)


@kernel_in_place
def combined(
    total: float, mixture: float, features: float, mean: float, deviation: float, n: float, scale: float
) -> float:
    """Return the evidence of all features: ``total`` of the Bayes factors, and the log ``mixture``.

    Mean and deviation of the mixture at rest are known from ``n`` batches.
    """
    x, k = (mixture - mean) / max(1.0, scale * deviation), 0.5 * n + 2.0
    calibrated = k * math.log(1.0 + x / k) if x > 0.0 else x
    return max(math.log(total / features), calibrated)
