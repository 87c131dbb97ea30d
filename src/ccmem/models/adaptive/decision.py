"""What a memory does when its stream has changed, and how its columns bring that about.

docs/adaptive_rule.md tells the rules. A state is what ``AdaptiveState`` has, settings what
``AdaptiveSettings`` has.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem.kernels.competition import dot, squared_distance
from ccmem.kernels.jit import kernel_in_place
from ccmem.kernels.update import copy_scaled
from ccmem.memory import EVIDENCE_UNIT, JOURNALED, NEW_BLOCK, QUESTION, RECALL, SEEN, UNITS, note
from ccmem.models._blocks import ALARM, BLOCKS, OWN_BLOCK, POINTER, BlockMemory
from ccmem.models.adaptive.batches import close
from ccmem.models.adaptive.columns import (
    DOUBT,
    FRESH,
    INHERITED,
    LATEST,
    N_KNOWN,
    N_RUNNING,
    N_SLOT,
    PARTIAL,
    REFERENCE_AGE,
    RING,
    ROWS,
    RUNNING,
    STAYED,
    SWAY,
    WATCHED,
    departure,
    in_doubt,
    latest,
    least_evidence,
    longest_run,
    settle,
    squared_quantile,
    start,
    weigh,
)
from ccmem.models.adaptive.merging import TO_FIND, UNKNOWN
from ccmem.models.adaptive.missing import close_some, forget_waiting, hear, next_heard, tally
from ccmem.models.adaptive.onset import rows_since_change
from ccmem.models.adaptive.signature import COUNT, N_STATISTICS, VARIANCE, WANDER, WEIGHT, limit
from ccmem.models.adaptive.waiting import better_by, column_distance, column_misfit, gather, go_home, go_on, move_home

SIZE, BATCHES, AGAINST, LAST, FILLED, CERTAIN, LEAD = range(OWN_BLOCK, OWN_BLOCK + 7)
"""Own places in ``counters``: units of the block in use, full batches of a suspicion and how many are against, which
deviation is that of the sample learned last (0: none, else its row + 1), and samples of the batch that is being filled
without suspicion; whether a column has made the change certain, and how many rows before the
candidate it began to."""
BEGAN, OFF = range(OWN_BLOCK + 15, OWN_BLOCK + 17)
"""Where a change began as the batches told that first showed it, and how far that may be off (0: there is none)."""
OWN_COUNTERS = (
    *BlockMemory._own_counters,
    *["size", "batches", "against", "last", "filled", "certain", "lead"],
    *["rows", "latest", "fresh", "stayed", "reference_age", "doubt", "partial", "watched", "began", "off"],
)
RECENT, REFERENCE, BATCH, CANDIDATE, DEVIATION = 0, 1, 2, 3, 4
"""Rows of ``vectors``; deviations take turns in two rows."""
N_VECTORS = DEVIATION + 2
(
    RECENT_WEIGHT,
    SHARED_WEIGHT,
    REFERENCE_COUNT,
    REFERENCE_WEIGHT,
    REFERENCE_SHARED,
    BATCH_SHARE,
    SPREAD,
    MOST_EVIDENCE,
) = range(8)
"""Places in ``scalars``. Samples weigh a in the recent mean, b in the signature, r in the reference: sum of a_i^2, sum
of a_i b_i; samples behind the reference, sum of r_i^2, sum of a_i r_i; sum of a_i over the batch being filled; and the
total variance around the candidate; the most evidence that a column had with the latest batch."""
N_SCALARS = 8
MOST_TOLD = 50.0
"""Evidence beyond so many times what a change takes is told as that."""


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
    counters[ALARM] = counters[BATCHES] = counters[AGAINST] = counters[CERTAIN] = counters[LEAD] = 0
    counters[LAST] = counters[FILLED] = counters[OFF] = 0
    copy_scaled(state.vectors[RECENT], state.vectors[vector], 1.0)
    scalars[RECENT_WEIGHT] = weight
    scalars[SHARED_WEIGHT] = scalars[REFERENCE_SHARED] = shared
    scalars[BATCH_SHARE] = 0.0


@kernel_in_place
def forget_direction(state: Any) -> None:
    """Begin anew with directions, in the block in use."""
    counters, pointer = state.counters, state.counters[POINTER]
    state.means[pointer] = 0.0
    state.statistics[pointer] = 0.0
    for row in range(N_VECTORS):
        state.vectors[row] = 0.0
    for place in range(MOST_EVIDENCE):
        state.scalars[place] = 0.0
    counters[ALARM] = counters[BATCHES] = counters[AGAINST] = counters[LEAD] = counters[LAST] = counters[FILLED] = 0
    counters[OFF] = 0


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
def evidence_for_change(state: Any, settings: Any) -> float:
    """h"""
    return least_evidence(settings.false_alarm_every, settings.batch, state.ring.shape[1])


@kernel_in_place
def reference_span(settings: Any) -> float:
    """Batches that a reference, and the home of a block, is the mean of."""
    return 1.0 / (settings.batch * settings.reference_rate)


@kernel_in_place
def use_columns(state: Any, settings: Any, block: int, before: int, n: int, new: bool) -> None:
    """Go on with ``block``, the latest n batches being what is known of its columns now."""
    counters = state.counters
    counters[ROWS] = counters[DOUBT] = counters[FRESH] = counters[PARTIAL] = 0
    counters[STAYED] = counters[REFERENCE_AGE] = n
    forget_waiting(state.missing)
    if new:
        counters[WATCHED] = min(counters[WATCHED], np.int64(INHERITED))
        state.ages[block] = n
    else:  # levels that a block knows are not learned anew from a few batches
        counters[REFERENCE_AGE] = max(n, np.int64(min(state.ages[block], reference_span(settings))))
    if n > 0:
        last = N_SLOT * counters[LATEST]
        gather(state.guess, state.ring, counters[LATEST], n)
        known, old, batch = state.columns[block], state.columns[before], state.ring[last : last + N_SLOT]
        go_on(known, old, state.readings, state.guess, batch, n, new)


@kernel_in_place
def use(state: Any, settings: Any, block: int, total: int, new: bool) -> None:
    """Go on with ``block``, the candidate, a mean of ``total`` samples, being what is known of it now."""
    counters, scalars = state.counters, state.scalars
    use_columns(state, settings, block, counters[POINTER], min(counters[FRESH], RING), new)
    if block != counters[POINTER]:
        if state.partners.shape[0] > 0:
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
def begin(state: Any, block: int, before: int, total: int) -> None:
    """Let the candidate be the signature of ``block``, to wander as the block before did until it has shown how."""
    copy_scaled(state.means[block], state.vectors[CANDIDATE], 1.0)
    statistics = state.statistics[block]
    for k in range(N_STATISTICS):
        statistics[k] = state.statistics[before, k] if k >= WANDER else 0.0
    statistics[COUNT], statistics[VARIANCE], statistics[WEIGHT] = total, state.scalars[SPREAD], 1.0 / total


@kernel_in_place
def candidate_of_batches(state: Any, settings: Any, n: int) -> None:
    """Let the candidate be the mean direction of the latest n batches."""
    counters, candidate = state.counters, state.vectors[CANDIDATE]
    for j in range(candidate.shape[0]):
        candidate[j] = latest(state.ring, counters[LATEST], N_SLOT - 1, j, n)
    state.scalars[SPREAD] = max(0.0, 1.0 - dot(candidate, candidate))  # directions have unit length
    counters[FRESH] = counters[BATCHES] = n
    counters[ALARM] = n * settings.batch + 1


@kernel_in_place
def has_moved(state: Any, settings: Any, block: int, by_column: float) -> bool:
    """Whether the candidate, that does not fit ``block``, is so much nearer to it than all others that it has moved."""
    known, now, nearest = state.columns[block], state.columns[state.counters[POINTER]], np.inf
    for other in range(state.counters[BLOCKS]):
        if other != block and state.ages[other] > 0.0:
            there = state.columns[other]
            nearest = min(nearest, column_distance(known, now, state.readings, there, there[SWAY:], N_KNOWN))
    far = column_distance(known, now, state.readings, state.guess, state.guess[2:], 1)
    if state.counters[FRESH] > 0 and far < settings.clearly_nearest * nearest:
        return True
    return by_column <= 1.0 and clearly_nearest(state, settings, block)


@kernel_in_place
def thousandths(state: Any, settings: Any) -> int:
    """The evidence for a change, by the column or the direction that is surest: 1,000 is what it takes."""
    by_column = state.scalars[MOST_EVIDENCE] / evidence_for_change(state, settings)
    total = max(state.counters[ALARM] - 1, 1)
    by_direction = misfit(state, settings, state.counters[POINTER], total, settings.z_new)
    return int(np.rint(EVIDENCE_UNIT * min(max(max(by_column, by_direction), 1.0), MOST_TOLD)))


@kernel_in_place
def see_onset(state: Any, settings: Any, evidence: int) -> None:
    """Keep where a change began, unless it is known: batches that are waited for tell ever less of it."""
    counters = state.counters
    if counters[OFF] == 0:
        rows, off = rows_since_change(state, settings, evidence)
        counters[BEGAN], counters[OFF] = counters[SEEN] + 1 - rows, off


@kernel_in_place
def tell(state: Any, settings: Any, kind: int, block: int) -> None:
    """Note a change to ``block``, where it began, and how sure it is."""
    counters, sure = state.counters, thousandths(state, settings)
    rows = counters[SEEN] + 1 - counters[BEGAN]
    note(counters, state.journal, kind, counters[POINTER], block, rows, counters[OFF], sure)


@kernel_in_place
def decide(state: Any, settings: Any, total: int) -> None:
    """A change is certain: begin a new block, recall an old one, or wait for more."""
    counters = state.counters
    pointer, blocks, last = counters[POINTER], counters[BLOCKS], counters[BATCHES] >= settings.most_batches
    n, bound = min(counters[FRESH], RING), squared_quantile(evidence_for_change(state, settings))
    see_onset(state, settings, total + counters[LEAD])
    if n > 0:
        gather(state.guess, state.ring, counters[LATEST], n)
    best: Any = np.int64(UNKNOWN)  # not a plain -1, for which functions would be compiled
    least, by_column = np.inf, 0.0
    for block in range(blocks):
        if block != pointer:
            column = column_misfit(state.columns[block], state.readings, state.guess, state.ages[block], n, bound)
            ratio = max(column, misfit(state, settings, block, total, settings.z_new))
            if ratio < least:
                best, least, by_column = block, ratio, column
    if last and least <= 1.0:
        least = max(by_column, misfit(state, settings, best, total, settings.z_wander))
    moved = least > 1.0 and best != UNKNOWN and has_moved(state, settings, best, by_column)
    if least > 1.0 and not moved:
        if settings.max_units == 0 or blocks < settings.max_units:
            tell(state, settings, NEW_BLOCK, blocks)
            counters[BLOCKS] += 1
            best = blocks
        elif best == UNKNOWN or misfit(state, settings, pointer, total, settings.z_new) <= least:
            best = pointer
        else:
            tell(state, settings, RECALL, best)
        begin(state, best, pointer, total)
        use(state, settings, best, total, True)
    elif last or (
        counters[BATCHES] >= (settings.least_batches + 1 if counters[CERTAIN] else settings.recall_batches)
        and (moved or max(by_column, misfit(state, settings, best, total, settings.z_recall)) <= 1.0)
    ):
        statistics = state.statistics[best]
        distance = squared_distance(state.vectors[CANDIDATE], state.means[best])
        if moved and distance > statistics[WANDER]:
            statistics[WANDER] = distance
            statistics[WANDER + 1] = 3.0 * distance * distance  # as of one dimension
        tell(state, settings, RECALL, best)
        use(state, settings, best, total, False)


@kernel_in_place
def race(state: Any, settings: Any, h: float, at_home: bool) -> bool:
    """Whether a waiting block explains a certain shift so much better that it has returned; then ask for it.

    ``at_home``: no shift is certain, but the block in use may have followed a return that came little by little. It is
    held to the levels that it began with, and if one has returned, to these it goes back.
    """
    counters = state.counters
    n: Any = np.int64(RING)
    if not at_home:
        n = min(min(counters[STAYED], RING), longest_run(state.readings, state.ring, counters[LATEST], h))
    pointer, age, watched = counters[POINTER], float(counters[REFERENCE_AGE]), float(counters[WATCHED])
    gather(state.guess, state.ring, counters[LATEST], n)
    best: Any = np.int64(UNKNOWN)
    now, most, bound = state.columns[pointer], h, squared_quantile(h)
    for block in range(counters[BLOCKS]):
        known, batches = state.columns[block], state.ages[block]
        if block != pointer and batches > 0.0:
            gain = better_by(known, now, state.readings, state.guess, batches, watched, age, n, h, at_home)
            if gain > most and column_misfit(known, state.readings, state.guess, batches, n, bound) <= 1.0:
                best, most = block, gain
    if best == UNKNOWN:
        return False
    candidate_of_batches(state, settings, n)
    total = n * settings.batch
    if misfit(state, settings, best, total, settings.z_new) > 1.0:
        counters[ALARM] = counters[BATCHES] = 0
        return False
    if at_home:
        go_home(now)
        state.ages[pointer] = min(state.ages[pointer], reference_span(settings))
    ask(state, best, total)
    return True


@kernel_in_place
def ask(state: Any, block: int, total: int) -> None:
    """Ask what to do: the candidate, of ``total`` samples, is that of a change (to ``block``, unless UNKNOWN)."""
    note(state.counters, state.journal, QUESTION, state.counters[POINTER], block, total)


@kernel_in_place
def is_asking(state: Any) -> bool:
    """Whether a question has not been answered yet."""
    lines = state.counters[JOURNALED]
    return lines > 0 and state.journal[lines - 1, 0] == QUESTION


@kernel_in_place
def answer(state: Any, settings: Any) -> None:
    """Do what a change asks for. A kernel of its own, compiled at the first change: it is as large as all the rest."""
    counters = state.counters
    counters[JOURNALED] -= 1
    question = state.journal[counters[JOURNALED]]
    block, total = question[3], question[4]
    counters[SEEN] -= 1  # the change is noticed at the row that asked
    if block == UNKNOWN:
        decide(state, settings, total)
    else:
        see_onset(state, settings, total)
        tell(state, settings, RECALL, block)
        use(state, settings, block, total, False)
    counters[SEEN] += 1


@kernel_in_place
def judge(state: Any, settings: Any, gaps: bool | None) -> bool:
    """See what the columns say of a full batch; whether that is a change, about which they ask.

    With ``gaps`` None no reading was ever missing.
    """
    counters, pointer, readings, ring = state.counters, state.counters[POINTER], state.readings, state.ring
    slot = (counters[LATEST] + 1) % RING
    if gaps is not None and state.missing.shape[0] > 0:
        close_some(readings, state.missing, ring, slot, float(settings.batch))
        tally(state, settings)
    else:
        close(readings, ring, slot, float(settings.batch))
    counters[LATEST], counters[ROWS] = slot, 0
    counters[FRESH] += 1 - counters[PARTIAL]
    counters[PARTIAL] = 0
    counters[STAYED] += 1
    if counters[CERTAIN]:
        return False
    known, batch = state.columns[pointer], ring[N_SLOT * slot : N_SLOT * slot + N_SLOT]
    if counters[REFERENCE_AGE] == 0 or state.ages[pointer] == 0.0:
        start(known, readings, batch, state.ages[pointer] == 0.0)
        counters[REFERENCE_AGE], state.ages[pointer] = 1, max(state.ages[pointer], 1.0)
        return False
    watched = float(counters[WATCHED])
    h, most = evidence_for_change(state, settings), 0.0
    learns = counters[ALARM] == 0 or counters[BATCHES] >= settings.least_batches
    slowest, reference_age = settings.batch * settings.slowest_rate, float(counters[REFERENCE_AGE])
    now_and_then = counters[STAYED] % settings.most_batches == 0
    first, last = 0, batch.shape[1]
    if gaps is not None and state.missing.shape[0] > 0:
        first, last = next_heard(known, batch, 0)
    while first < last:
        for kind in range(2):
            evidence = weigh(
                known[N_KNOWN * kind : N_KNOWN * kind + N_KNOWN],
                readings[RUNNING + N_RUNNING * kind : RUNNING + N_RUNNING * kind + N_RUNNING],
                batch[kind],
                batch[2 + kind],
                state.ages[pointer],
                watched,
                reference_age,
                slowest,
                settings.batch * settings.reference_rate,
                h,
                learns,
                first,
                last,
            )
            most = max(most, evidence)
        first = last
        if gaps is not None and state.missing.shape[0] > 0:
            first, last = next_heard(known, batch, last)
    if gaps is not None and state.missing.shape[0] > 0 and hear(known, readings, batch, learns):
        forget_direction(state)
    if learns:
        counters[REFERENCE_AGE] += 1
        state.ages[pointer] += 1.0
        counters[WATCHED] += 1
        watched += 1.0
        if state.ages[pointer] <= reference_span(settings):
            move_home(known, 0.0)
        elif now_and_then:
            move_home(known, 1.0 - settings.most_batches * slowest)
    state.scalars[MOST_EVIDENCE] = most
    counters[DOUBT] = 0
    if 3.0 * most >= 2.0 * h and in_doubt(known, readings, ring, slot, watched, reference_age, h):
        counters[DOUBT] = 1
    if most < h:
        return now_and_then and counters[ALARM] == 0 and counters[BLOCKS] > 1 and race(state, settings, h, True)
    feature, n, run = departure(known, readings, ring, slot, watched, reference_age, h)
    if feature >= 0:
        counters[AGAINST], counters[CERTAIN] = settings.least_batches, 1
        counters[LEAD] = (run - n) * settings.batch
        candidate_of_batches(state, settings, n)
        ask(state, UNKNOWN, n * settings.batch)
        return True
    if counters[ALARM] == 0 and counters[BLOCKS] > 1 and race(state, settings, h, False):
        return True
    settle(known, readings, ring, slot, watched, slowest, h, settings.most_batches)
    return False
