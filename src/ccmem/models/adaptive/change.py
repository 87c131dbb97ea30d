"""How a memory notices that its stream changed: suspicion, confirmation, and what to do then.

docs/adaptive_rule.md tells the rules, the arithmetic is in :mod:`ccmem.models.adaptive.signature`.
A state is what ``AdaptiveState`` has, settings what ``AdaptiveSettings`` has.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem._typing import FloatArray
from ccmem.kernels.competition import dot, squared_distance
from ccmem.kernels.jit import kernel_in_place
from ccmem.models._blocks import ALARM, POINTER
from ccmem.models.adaptive.columns import PRIOR, WATCHED
from ccmem.models.adaptive.decision import (
    AGAINST,
    BATCH,
    BATCH_SHARE,
    BATCHES,
    CANDIDATE,
    CERTAIN,
    DEVIATION,
    FILLED,
    LAST,
    MOST_EVIDENCE,
    RECENT,
    RECENT_WEIGHT,
    REFERENCE,
    REFERENCE_COUNT,
    REFERENCE_SHARED,
    REFERENCE_WEIGHT,
    SHARED_WEIGHT,
    SPREAD,
    ask,
    end_suspicion,
    evidence_for_change,
)
from ccmem.models.adaptive.merging import UNKNOWN
from ccmem.models.adaptive.signature import (
    COUNT,
    DRIFT,
    FAST,
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
def confirm(state: Any, settings: Any, x: FloatArray, scale: float) -> bool:
    """Take a suspicious sample into its batch and the candidate; whether a full batch makes it ask about a change."""
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
        return False
    counters[BATCHES] += 1
    if counters[CERTAIN]:
        ask(state, UNKNOWN, total)
        return True
    if strays(state, settings, settings.z_confirm, settings.z_wander):
        counters[AGAINST] += 1
    elif not strays(state, settings, 0.0, 0.0):
        counters[AGAINST] -= 1
    speaks = state.scalars[MOST_EVIDENCE] >= evidence_for_change(state, settings)
    speaks = speaks or counters[WATCHED] < PRIOR  # too young for columns to speak: a change within the first 100 rows
    if counters[AGAINST] >= settings.least_batches and speaks:
        ask(state, UNKNOWN, total)
        return True
    if counters[AGAINST] <= 0 or counters[BATCHES] >= settings.most_batches:
        if counters[AGAINST] > 0:
            learn_wander(state, total)
        end_suspicion(state, BATCH, 1.0 / within, 0.0)
    return False


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
