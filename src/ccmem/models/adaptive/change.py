"""How a memory notices that its stream changed: suspicion, confirmation, and what to do then.

The rules are told in :mod:`ccmem.models.adaptive.kernels`, the arithmetic in :mod:`ccmem.models.adaptive.signature`.
A state is what ``AdaptiveState`` has, settings what ``AdaptiveSettings`` has.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem._typing import FloatArray
from ccmem.kernels.competition import dot, squared_distance
from ccmem.kernels.jit import kernel_in_place
from ccmem.kernels.update import copy_scaled
from ccmem.memory import NEW_BLOCK, RECALL, UNITS, note
from ccmem.models._blocks import ALARM, BLOCKS, OWN_BLOCK, POINTER, BlockMemory
from ccmem.models.adaptive.merging import TO_FIND, UNKNOWN
from ccmem.models.adaptive.signature import (
    COUNT,
    DRIFT,
    FAST,
    N_STATISTICS,
    VARIANCE,
    WANDER,
    WEIGHT,
    absorb,
    certain,
    deviate,
    effective_dimensions,
    follow,
    inflation,
    limit,
    noise,
    observe,
    quantile,
    shift,
)

SIZE, BATCHES, AGAINST, LAST, FILLED = range(OWN_BLOCK, OWN_BLOCK + 5)
"""Own places in ``counters``: units of the block in use, full batches of a suspicion and how many are against, which
deviation is that of the sample learned last (0: none, else its row + 1), and samples of the batch that is being filled
without suspicion."""
OWN_COUNTERS = (*BlockMemory._own_counters, "size", "batches", "against", "last", "filled")
RECENT, REFERENCE, BATCH, CANDIDATE, DEVIATION = 0, 1, 2, 3, 4
"""Rows of ``vectors``; deviations take turns in two rows."""
N_VECTORS = DEVIATION + 2
RECENT_WEIGHT, SHARED_WEIGHT, REFERENCE_COUNT, REFERENCE_WEIGHT, REFERENCE_SHARED, BATCH_SHARE, SPREAD = range(7)
"""Places in ``scalars``. Samples weigh a in the recent mean, b in the signature, r in the reference: sum of a_i^2, sum
of a_i b_i; samples behind the reference, sum of r_i^2, sum of a_i r_i; sum of a_i over the batch being filled; and the
total variance around the candidate."""
N_SCALARS = 7


@kernel_in_place
def list_members(state: Any) -> None:
    """Gather the units of the block in use."""
    size = 0
    for unit in range(state.counters[UNITS]):
        if state.unit_blocks[unit] == state.counters[POINTER]:
            state.members[size] = unit
            size += 1
    state.counters[SIZE] = size


@kernel_in_place
def end_suspicion(state: Any, vector: int, weight: float, shared: float) -> None:
    """End a suspicion with a mean of the latest samples as the recent one."""
    counters, scalars = state.counters, state.scalars
    counters[ALARM] = counters[BATCHES] = counters[AGAINST] = counters[LAST] = counters[FILLED] = 0
    copy_scaled(state.vectors[RECENT], state.vectors[vector], 1.0)
    scalars[RECENT_WEIGHT] = weight
    scalars[SHARED_WEIGHT] = scalars[REFERENCE_SHARED] = shared
    scalars[BATCH_SHARE] = 0.0


@kernel_in_place
def use(state: Any, block: int, total: int, new: bool) -> None:
    """Go on with ``block``, the candidate, a mean of ``total`` samples, being what is known of it now."""
    counters, scalars = state.counters, state.scalars
    if block != counters[POINTER]:
        for k in range(counters[SIZE]):  # the block left has changed while it was in use
            state.partners[state.members[k]] = TO_FIND
        counters[POINTER] = block
        list_members(state)
    part = 1.0 / total
    end_suspicion(state, CANDIDATE, part, part if new else 0.0)
    copy_scaled(state.vectors[REFERENCE], state.vectors[CANDIDATE], 1.0)
    scalars[REFERENCE_COUNT] = total
    scalars[REFERENCE_WEIGHT] = scalars[REFERENCE_SHARED] = part


@kernel_in_place
def suspect(state: Any, settings: Any, x: FloatArray, scale: float) -> bool:
    """Whether, with ``x``, the recent mean has left its block; if not, signature and reference take ``x`` in."""
    counters, scalars, vectors = state.counters, state.scalars, state.vectors
    mean, statistics = state.means[counters[POINTER]], state.statistics[counters[POINTER]]
    gain = max(settings.recent_rate, min(1.0, 4.0 / (statistics[COUNT] + 1.0)))
    keep = 1.0 - gain
    follow(vectors[RECENT], x, scale, gain)
    scalars[RECENT_WEIGHT] = keep * keep * scalars[RECENT_WEIGHT] + gain * gain
    scalars[SHARED_WEIGHT] *= keep
    scalars[REFERENCE_SHARED] *= keep
    scalars[BATCH_SHARE] = keep * scalars[BATCH_SHARE] + gain
    if statistics[COUNT] >= settings.youngest and leaves(state, settings, mean, statistics):
        return True
    row = 1 if counters[LAST] == 1 else 0
    deviation = vectors[DEVIATION + row]
    deviate(mean, x, scale, deviation)
    product = dot(deviation, vectors[DEVIATION + 1 - row]) if counters[LAST] else np.nan
    rate = absorb(mean, statistics, deviation, product, settings.slowest_rate)
    scalars[SHARED_WEIGHT] = (1.0 - rate) * scalars[SHARED_WEIGHT] + rate * gain
    counters[LAST] = row + 1
    if counters[FILLED] == 0:
        vectors[BATCH] = 0.0
    counters[FILLED] += 1
    follow(vectors[BATCH], x, scale, 1.0 / counters[FILLED])
    if counters[FILLED] == settings.batch:
        update_reference(state, settings, statistics)
    return False


@kernel_in_place
def leaves(state: Any, settings: Any, mean: FloatArray, statistics: FloatArray) -> bool:
    """Whether the recent mean fits signature or reference no more; if it fits, learn how far they are apart."""
    scalars, vectors, z, z_wander = state.scalars, state.vectors, settings.z_suspect, settings.z_wander
    far = squared_distance(vectors[RECENT], mean)
    weight = scalars[RECENT_WEIGHT] - 2.0 * scalars[SHARED_WEIGHT] + statistics[WEIGHT]
    near = squared_distance(vectors[RECENT], vectors[REFERENCE])
    near_weight = scalars[RECENT_WEIGHT] - 2.0 * scalars[REFERENCE_SHARED] + scalars[REFERENCE_WEIGHT]
    if statistics[COUNT] >= settings.youngest * inflation(statistics) and (  # within its noise is within its limit
        (far > noise(statistics, weight) and far > limit(statistics, WANDER, weight, z, z_wander))
        or (near > noise(statistics, near_weight) and near > limit(statistics, DRIFT, near_weight, z, z_wander))
    ):
        return True
    rate = max(1.0 / (statistics[COUNT] + 1.0), settings.slowest_rate)
    observe(statistics, WANDER, far, weight, rate)
    observe(statistics, DRIFT, near, near_weight, rate)
    return False


@kernel_in_place
def update_reference(state: Any, settings: Any, statistics: FloatArray) -> None:
    """Let the reference take a full batch in, having learned how far batches are from it."""
    scalars, vectors, n = state.scalars, state.vectors, float(settings.batch)
    if scalars[REFERENCE_COUNT] > 0.0:
        distance = squared_distance(vectors[BATCH], vectors[REFERENCE])
        beyond = distance - noise(statistics, 1.0 / n + scalars[REFERENCE_WEIGHT])
        statistics[FAST] += max(n / statistics[COUNT], n * settings.slowest_rate) * (beyond - statistics[FAST])
    scalars[REFERENCE_COUNT] += n
    rate = max(n / scalars[REFERENCE_COUNT], n * settings.reference_rate)
    follow(vectors[REFERENCE], vectors[BATCH], 1.0, rate)
    scalars[REFERENCE_SHARED] = (1.0 - rate) * scalars[REFERENCE_SHARED] + rate / n * scalars[BATCH_SHARE]
    scalars[REFERENCE_WEIGHT] = (1.0 - rate) * (1.0 - rate) * scalars[REFERENCE_WEIGHT] + rate * rate / n
    scalars[BATCH_SHARE] = 0.0
    state.counters[FILLED] = 0


@kernel_in_place
def confirm(state: Any, settings: Any, x: FloatArray, scale: float) -> None:
    """Take a suspicious sample into its batch and the candidate; see what a full batch says."""
    counters, scalars, vectors = state.counters, state.scalars, state.vectors
    total = counters[ALARM]
    within = total - counters[BATCHES] * settings.batch
    if within == 1:
        vectors[BATCH] = 0.0
    follow(vectors[BATCH], x, scale, 1.0 / within)
    if total == 1:
        vectors[CANDIDATE] = 0.0
        scalars[SPREAD] = 0.0
    deviation, rate = vectors[DEVIATION], 1.0 / total
    deviate(vectors[CANDIDATE], x, scale, deviation)
    scalars[SPREAD] = (1.0 - rate) * (scalars[SPREAD] + rate * dot(deviation, deviation))
    shift(vectors[CANDIDATE], deviation, rate)
    counters[ALARM] = total + 1
    if within < settings.batch:
        return
    counters[BATCHES] += 1
    if strays(state, settings, settings.z_confirm, settings.z_wander):
        counters[AGAINST] += 1
    elif not strays(state, settings, 0.0, 0.0):
        counters[AGAINST] -= 1
    if counters[AGAINST] >= settings.least_batches:
        decide(state, settings, total)
    elif counters[AGAINST] <= 0 or counters[BATCHES] >= settings.most_batches:
        if counters[AGAINST] > 0:
            learn_wander(state, total)
        end_suspicion(state, BATCH, 1.0 / within, 0.0)


@kernel_in_place
def strays(state: Any, settings: Any, z: float, z_wander: float) -> bool:
    """Whether a full batch fits signature or reference of the block in use no more."""
    statistics, scalars, batch = state.statistics[state.counters[POINTER]], state.scalars, state.vectors[BATCH]
    part = 1.0 / settings.batch
    fast = certain(statistics, statistics[FAST] - max(0.0, statistics[DRIFT]), part)
    fast *= quantile(effective_dimensions(statistics), z)
    far = squared_distance(batch, state.means[state.counters[POINTER]])
    near = squared_distance(batch, state.vectors[REFERENCE])
    return far > fast + limit(statistics, WANDER, part + statistics[WEIGHT], z, z_wander) or near > fast + limit(
        statistics, DRIFT, part + scalars[REFERENCE_WEIGHT], z, z_wander
    )


@kernel_in_place
def learn_wander(state: Any, total: int) -> None:
    """Nothing came of a suspicion that lasted: so far does the block wander."""
    statistics, candidate = state.statistics[state.counters[POINTER]], state.vectors[CANDIDATE]
    rate = total / (statistics[COUNT] + total)
    far = squared_distance(candidate, state.means[state.counters[POINTER]])
    near = squared_distance(candidate, state.vectors[REFERENCE])
    observe(statistics, WANDER, far, 1.0 / total + statistics[WEIGHT], rate)
    observe(statistics, DRIFT, near, 1.0 / total + state.scalars[REFERENCE_WEIGHT], rate)


@kernel_in_place
def misfit(state: Any, settings: Any, block: int, total: int, z: float) -> float:
    """How far the candidate is from a block's signature; above 1 if it is not from there."""
    statistics = state.statistics[block]
    distance = squared_distance(state.vectors[CANDIDATE], state.means[block])
    return distance / limit(statistics, WANDER, 1.0 / total + statistics[WEIGHT], z, settings.z_wander)


@kernel_in_place
def clearly_nearest(state: Any, settings: Any, block: int) -> bool:
    """Whether the candidate is so much nearer to ``block`` than all other blocks are that it must be the same."""
    nearest = np.inf
    for other in range(state.counters[BLOCKS]):
        if other != block:
            nearest = min(nearest, squared_distance(state.means[block], state.means[other]))
    return squared_distance(state.vectors[CANDIDATE], state.means[block]) < settings.clearly_nearest * nearest


@kernel_in_place
def decide(state: Any, settings: Any, total: int) -> None:
    """A change is certain: begin a new block, recall an old one, or wait for more."""
    counters = state.counters
    pointer, blocks, last = counters[POINTER], counters[BLOCKS], counters[BATCHES] >= settings.most_batches
    best: Any = np.int64(UNKNOWN)  # not a plain -1, for which functions would be compiled
    least = np.inf
    for block in range(blocks):
        if block != pointer:
            ratio = misfit(state, settings, block, total, settings.z_new)
            if ratio < least:
                best, least = block, ratio
    if last and least <= 1.0:
        least = misfit(state, settings, best, total, settings.z_wander)
    moved = least > 1.0 and best != UNKNOWN and clearly_nearest(state, settings, best)
    if least > 1.0 and not moved:
        if settings.max_units == 0 or blocks < settings.max_units:
            note(counters, state.journal, NEW_BLOCK, pointer, blocks, total)
            counters[BLOCKS] += 1
            best = blocks
        elif best == UNKNOWN or misfit(state, settings, pointer, total, settings.z_new) <= least:
            best = pointer
        else:
            note(counters, state.journal, RECALL, pointer, best, total)
        begin(state, best, pointer, total)
        use(state, best, total, True)
    elif last or (
        counters[BATCHES] >= settings.recall_batches
        and (moved or misfit(state, settings, best, total, settings.z_recall) <= 1.0)
    ):
        statistics = state.statistics[best]
        distance = squared_distance(state.vectors[CANDIDATE], state.means[best])
        if moved and distance > statistics[WANDER]:
            statistics[WANDER] = distance
            statistics[WANDER + 1] = 3.0 * distance * distance  # as of one dimension
        note(counters, state.journal, RECALL, pointer, best, total)
        use(state, best, total, False)


@kernel_in_place
def begin(state: Any, block: int, before: int, total: int) -> None:
    """Let the candidate be the signature of ``block``, to wander as the block before did until it has shown how."""
    copy_scaled(state.means[block], state.vectors[CANDIDATE], 1.0)
    statistics = state.statistics[block]
    for k in range(N_STATISTICS):
        statistics[k] = state.statistics[before, k] if k >= WANDER else 0.0
    statistics[COUNT], statistics[VARIANCE], statistics[WEIGHT] = total, state.scalars[SPREAD], 1.0 / total
