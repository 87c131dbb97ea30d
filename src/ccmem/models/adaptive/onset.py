"""Where a change began: how much of each of the latest batches is new already.

R is the reference before the change, g the mean of the latest two batches, which are new for sure. The features that
moved at least half as far as the one that moved furthest, in deviations s of a batch, say of an earlier batch f how
much of it is new:

    p = sum (f - R) (g - R) / s^2  /  sum (g - R)^2 / s^2,  cut off at 0 and 1

Walking back from the latest batch, a batch adds p b rows until p is so small that it may be chance. A batch that
follows one which was itself not all new is on a slope, and adds what that one lacked as well. The uncertainty is two
deviations of p, and as far as the oldest batch that is partly new reaches back: a change that came at once within it
looks like one that crept in. Beyond the ring of batches only the evidence tells how long ago the change began.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem.kernels.jit import kernel_in_place
from ccmem.models._blocks import POINTER
from ccmem.models.adaptive.columns import (
    ERROR,
    LATEST,
    N_KNOWN,
    N_RUNNING,
    N_SLOT,
    NOISE,
    REFERENCE,
    RING,
    ROWS,
    RUNNING,
    STAYED,
    TINY,
    latest,
)

SURE = 2
"""Latest batches that are new for sure."""
LEAST_PART = 0.1
CHANCE = 1.5
"""Deviations of p that may be chance."""
SMALLEST, LARGEST = 1e-200, 1e200
"""Squared shifts below are those of silent columns, above those of numbers too large."""


@kernel_in_place
def variance_of(state: Any, feature: int) -> float:
    """s^2 of a feature (its column, plus d for spreads)."""
    d = state.ring.shape[1]
    kind, j = feature // d, feature % d
    known, now = state.columns[state.counters[POINTER]], state.counters[LATEST]
    error = latest(state.ring, now, 2 + kind, j, SURE)
    usual = state.readings[RUNNING + N_RUNNING * kind + ERROR, j]
    return max(max(usual, known[N_KNOWN * kind + NOISE, j]), max(error, TINY))


@kernel_in_place
def shift_of(state: Any, feature: int) -> float:
    """g - R of a feature."""
    d = state.ring.shape[1]
    kind, j = feature // d, feature % d
    before = state.readings[RUNNING + N_RUNNING * kind + REFERENCE, j]
    return latest(state.ring, state.counters[LATEST], kind, j, SURE) - before


@kernel_in_place
def part_new(state: Any, least: float, back: int) -> float:
    """p of the batch that many back, by features whose squared shift is at least ``least`` variances."""
    d, above, below = state.ring.shape[1], 0.0, 0.0
    for feature in range(2 * d):
        kind, j = feature // d, feature % d
        shift, variance = shift_of(state, feature), variance_of(state, feature)
        if shift * shift / variance >= least:
            before = state.readings[RUNNING + N_RUNNING * kind + REFERENCE, j]
            f = state.ring[N_SLOT * ((state.counters[LATEST] + RING - back) % RING) + kind, j]
            above += (f - before) * shift / variance
            below += shift * shift / variance
    part = above / below
    return min(part, 1.0) if part > 0.0 else 0.0  # nor NaN, where numbers are too large


@kernel_in_place
def rows_since_change(state: Any, settings: Any, evidence: int) -> tuple[int, int]:
    """Rows since a change that is noticed now began, and how far that may be off; ``evidence``: rows that showed it."""
    counters, batch = state.counters, settings.batch
    batches, most = min(RING, counters[STAYED]), settings.most_batches * batch
    told, furthest = min(evidence, most), 0.0
    if batches > SURE:
        for feature in range(2 * state.ring.shape[1]):
            furthest = max(furthest, shift_of(state, feature) ** 2 / variance_of(state, feature))
    if not SMALLEST < furthest < LARGEST:
        return told, told // 2 + batch
    deviation = 1.0 / np.sqrt(furthest)
    least = min(0.5, max(LEAST_PART, CHANCE * deviation))
    rows, newer, part = float(SURE * batch + counters[ROWS]), 1.0, 1.0
    reach = rows
    for back in range(SURE, batches):
        part = part_new(state, 0.25 * furthest, back)
        if part < least:
            rows += part * batch
            break
        rows += min(1.0, part + 1.0 - newer) * batch
        reach += batch
        newer = part
    off = 1.0 + 2.0 * batch * deviation + max(0.0, reach - rows)
    if part >= 0.5:  # older than the ring
        off += max(float(batch), told - rows)
        rows = max(rows, float(told))
    elif part >= least:
        off += batch
    return int(np.rint(rows)), int(np.ceil(off))
