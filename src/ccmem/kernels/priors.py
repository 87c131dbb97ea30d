"""Class priors of the discriminant: equal, or frequencies among all or the latest rows; compiled."""

from __future__ import annotations

import math

import numpy as np

from ccmem.core.typing import FloatArray, IntArray
from ccmem.kernels.jit import kernel_in_place

EQUAL, STREAM, PREVIOUS, COUNTS, AUTO = range(5)
"""Class priors: uniform; recent frequencies; recent frequencies after the previous label; all frequencies; uniform or
all frequencies, by the number of latest rows that each predicts."""
LEAD_FADE = 0.998
"""Decay factor per row of the lead of frequencies over uniform priors, a memory of about 500 rows."""
MOST_LEAD = 20.0
"""Largest lead, in rows, so that a change of frequencies is followed within a few dozen rows."""
LEAST_RUN = 1e-3
"""Smallest probability, for independent labels, of a run of equal labels that counts for that lead: where classes come
one after the other, the latest class alone must not decide."""
PRIOR_FADE = 0.998
"""Decay factor per row of the counts behind class priors, a memory of about 500 rows."""
PSEUDO_COUNT = 20.0
"""Rows added to every class before frequencies among all rows become priors: few rows say little about them."""


@kernel_in_place
def log_prior(mode: int, count: int, recent: float) -> float:
    """Return the log prior of a class, up to a constant, from its rows and its decayed number of recent rows."""
    if count == 0:
        return -np.inf
    if mode == COUNTS:
        return math.log(count + PSEUDO_COUNT)
    return math.log(recent + 0.5) if STREAM <= mode <= PREVIOUS else 0.0


@kernel_in_place
def relate(p: FloatArray, counts: IntArray, out: FloatArray) -> None:
    """Set ``out`` to the ratio of probabilities with class frequencies as priors to those with equal priors."""
    total = 0.0
    for c in range(p.shape[0]):
        out[c] = counts[c] + PSEUDO_COUNT
        total += p[c] * out[c]
    for c in range(p.shape[0]):
        out[c] = out[c] / total if total > 0.0 else 1.0


@kernel_in_place
def next_lead(lead: float, own: int, sums: FloatArray) -> float:
    """Return the lead after a row of class ``own``, given forecasts with equal priors (row 1) and frequencies (2)."""
    equal = frequent = 0
    for c in range(sums.shape[1]):
        equal = c if sums[1, c] > sums[1, equal] else equal
        frequent = c if sums[2, c] > sums[2, frequent] else frequent
    return min(max(LEAD_FADE * lead + (frequent == own) - (equal == own), -MOST_LEAD), MOST_LEAD)
