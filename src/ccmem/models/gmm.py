"""Incremental Gaussian mixture (iGMM): every unit moves, in proportion to its posterior.

For a sample x, prototypes M[i], precision g = 1 / variance and temperature T (paper, section 4.2):

    h[i] = ||x - M[i]||_p
    z[i] = exp(-g h[i] / T) / sum_j exp(-g h[j] / T)        posterior, soft winners
    M[i] <- M[i] + v[i] g z[i] (x - M[i])                   for all units

Source: A. Ororbia, "Continual Competitive Memory", 2021, equations 9 to 11. The printed denominator,
sum_j -g exp(h[j] / T), is a misprint, because the result is not a distribution. Choices of this implementation: a
posterior below the resolution of the data's float type counts as zero; a move never overshoots the sample; the nearest
unit is the winner, and only its rate decays. Ties go to the lowest index. All terms are divided by that of the nearest
unit, so the sum over j starts with 1, and terms below its resolution are not computed. Reference in plain numpy:
``tests/naive/gmm.py``.

>>> import numpy as np
>>> memory = IncrementalGMM(n_units=2, temperature=1.0, learning_rate=0.5)
>>> memory.partial_fit(np.array([[0.0], [4.0], [2.0]])).prototypes_      # 2 is as far from 0 as from 4
array([[0.5],
       [3.5]])
"""

from __future__ import annotations

import math
from typing import Any

from ccmem import ncl
from ccmem.kernels.competition import root
from ccmem.ncl.neighbourhoods import POSITIVE, resolution
from ccmem.ncl.rates import DECAY, decay

LEAVES_NO_TRACE = -36.8
"""Exponent below which exp is less than half the resolution of doubles at 1, so a sum >= 1 does not change."""


@ncl.neighbourhood(
    whole=True,
    parameters={
        "precision": ncl.Parameter(1.0, POSITIVE, about="1 / variance of every component (gamma in the paper)."),
        "temperature": ncl.Parameter(0.0285, POSITIVE, about="Softness of the posterior; the default is the paper's."),
    },
)
def posterior(state: Any, settings: Any, n: int, k: int) -> int:
    """Select all units, by exp(-precision h / temperature), normalised to sum 1, where h is a p-norm distance."""
    h, units, strengths, w = settings.h, settings.units, settings.strengths, settings.best[0]
    p, near, total, found, m = settings.p, root(settings.h[w], settings.p), 1.0, 0, 0
    far = (near - LEAVES_NO_TRACE * settings.temperature / settings.precision) * (1.0 + 1e-9)
    if p == 2.0:
        far *= far
    elif p != 1.0 and p != math.inf:
        far = far**p
    for i in range(n):  # without a branch, which would be mispredicted; beyond ``far`` a posterior is certainly 0
        units[found] = i
        found += h[i] <= far and i != w
    for j in range(found):
        strengths[j] = math.exp(-settings.precision * (root(h[units[j]], p) - near) / settings.temperature)
        total += strengths[j]
    units[found], strengths[found] = w, 1.0
    for j in range(found + 1):
        units[m], strengths[m] = units[j], strengths[j] / total
        m += strengths[m] >= resolution(state)
    return m


@ncl.rate(parameters=DECAY, hooks={"won": decay})
def decaying_by_precision(state: Any, settings: Any, unit: int) -> float:
    """Return the unit's decaying rate times the precision."""
    return float(state.rates[unit] * settings.precision)


class IncrementalGMM(ncl.Model):
    """Incremental Gaussian mixture: isotropic components of one fixed variance, all moved by their posterior.

    The paper uses 125 units. Only the rate of the nearest unit decays.
    """

    neighbourhood = posterior
    rate = decaying_by_precision
    update = ncl.STEPS
    parameters = ncl.SEEDED
