"""Once per alarm, in numpy: which block explains the batches since the alarm, where the change began, what follows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ccmem.core.allocation import grown
from ccmem.core.codes import EVIDENCE_UNIT, NEW_BLOCK, RECALL
from ccmem.core.state import JOURNALED, SEEN, UNITS
from ccmem.core.typing import FloatArray
from ccmem.models.adaptive import state as s
from ccmem.models.adaptive.fit import (
    SAME_LEVEL,
    deviation,
    drift_of,
    drift_scales,
    errors,
    fits_nearest,
    latest,
    noise,
    silent_columns,
)
from ccmem.models.adaptive.start import choose_coordinates, report_columns, start_columns

MOST_EVIDENCE = 50.0
"""Cap on reported evidence, in multiples of the threshold."""


def decide(state: Any, settings: Any) -> Any:
    """Take the decision that the kernel requests in ``counters[STATUS]``; return the state, grown if necessary."""
    status = int(state.counters[s.STATUS])
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if status == s.STARTING:
            start_columns(state, settings)
        elif status == s.LOSING:
            state = report_columns(state, settings)
        elif status == s.CHOOSING:
            choose_coordinates(state, settings)
        elif status == s.RETURNING:
            _return(state, settings)
        else:
            if status == s.ALARMED:
                state.counters[s.BEGAN], state.counters[s.UNCERTAIN] = _onset(state, settings)
            if state.counters[s.FRESH] >= settings.decide_after:
                state = _explain(state, settings)
    return state


def _explain(state: Any, settings: Any) -> Any:
    """Find the block that explains the batches since the alarm, or begin one, or wait; return the state, as grown."""
    fresh, own, threshold = int(state.counters[s.FRESH]), int(state.counters[s.POINTER]), state.scalars[s.THRESHOLD]
    batches = latest(state, min(fresh, s.RING))
    found, new_level = fits_nearest(state, settings, batches, own)
    best = int(np.argmin(found))
    is_new = found[best] > threshold or (best != own and new_level(best) > threshold)
    is_full = bool(settings.max_units and state.counters[s.BLOCKS] >= settings.max_units)
    if best == own and (found[own] <= 0.0 or is_full):
        enter(state, settings, own, batches)
    elif (is_new and not is_full) or (best == own and fresh >= s.RING):
        state = _found(state, settings, batches)
    elif fresh >= s.RING or (found[best] <= 0.0 and fresh > settings.decide_after):
        _note(state, settings, RECALL, best)
        enter(state, settings, best, batches)
    return state


def enter(state: Any, settings: Any, block: int, batches: FloatArray) -> None:
    """Continue with a block: the reference lies between its level and the batches (James-Stein)."""
    counters, n = state.counters, len(batches)
    level, error, _ = s.block_values(state, block)
    scales, age = drift_scales(state, settings), max(float(state.ages[block]), 1.0)
    one, away = noise(state, settings, block), deviation(batches[:, :2], level)
    z2 = away**2 / (drift_of(scales, n) * one + np.maximum(scales[0], 1.0) * one / age)
    known, mean = error[0] >= 0.0, level + away
    average = float(np.minimum(z2[:, known], SAME_LEVEL).mean()) if known.any() else 0.0
    share = max(0.0, 1.0 - 1.0 / max(average, 1e-9))
    silent = silent_columns(state, n * settings.batch)
    reference = np.where(z2 > SAME_LEVEL, mean, level + share * away)
    reference = np.where(silent & known, level, np.where(known, reference, mean))
    _rebase(state, reference, n, settings.batch)
    active = known & ~silent
    error += np.where(active, (errors(settings, batches) - error) * n / (n + age), 0.0)
    counters[s.AGE] = max(1, int(n + (1.0 - share) * min(age, settings.reference_span)))
    # a false alarm's batches are dropped
    counters[s.KEPT] = counters[s.WAITING] = n if block != counters[s.POINTER] else 0
    _use(state, settings, block)


def _found(state: Any, settings: Any, batches: FloatArray) -> Any:
    """Begin a new block with the batches since the alarm; a block that is still young starts again instead."""
    counters, n = state.counters, len(batches)
    block = int(counters[s.POINTER])
    if state.ages[block] + counters[s.WAITING] >= s.RING:
        block = int(counters[s.BLOCKS])
        if block == len(state.blocks):
            more = block + max(block // 4, 1)
            state = state._replace(blocks=grown(state.blocks, more), ages=grown(state.ages, more))
        _note(state, settings, NEW_BLOCK, block)
        counters[s.BLOCKS] += 1
    mean = batches[:, :2].mean(axis=0)
    level, error, sway = s.block_values(state, block)
    level[:], error[:], sway[:] = mean, errors(settings, batches), batches[:, :2].var(axis=0)
    state.ages[block] = n
    if len(state.gaps):
        silent = state.gaps[s.GAP] >= n * settings.batch
        level[:, silent], error[:, silent], sway[:, silent] = 0.0, -1.0, 0.0
    _rebase(state, mean, n, settings.batch)
    counters[s.AGE], counters[s.KEPT], counters[s.WAITING] = n, n, 0
    _use(state, settings, block)
    return state


def _rebase(state: Any, reference: FloatArray, n: int, batch: int) -> None:
    """Move the reference, and with it the sums of readings that wait, which are deviations from it."""
    stream = state.stream
    if len(state.gaps):  # batches that a silent column repeats must be of this block
        stream[s.SUM] += state.gaps[s.READINGS] * (stream[s.REFERENCE] - reference[0])
        batches, silent = latest(state, n), state.gaps[s.GAP] >= n * batch
        for age in range(s.RING):
            slot = stream[s.BATCHES : s.COLUMN_ROWS].reshape(s.RING, 3, -1)[(state.counters[s.LATEST] - age) % s.RING]
            slot[:] = batches[age % n]
            slot[:2, silent] = reference[:, silent]
    stream[s.REFERENCE : s.ONE] = reference


def _use(state: Any, settings: Any, block: int) -> None:
    """Make a block the one in use, and end the alarm."""
    counters = state.counters
    counters[s.POINTER], counters[s.ALARM], counters[s.FRESH], counters[s.WINDOW] = block, 0, 0, 0
    counters[s.WATCHED] = min(counters[s.WATCHED], int(settings.young))
    # calibrated by other blocks, whose columns may depend less on each other
    calibrated = state.scalars[s.COUNT : s.COUNT + s.WINDOWS]
    np.minimum(calibrated, 0.5 * settings.young, out=calibrated)
    if len(state.gaps):
        counters[s.KEPT] = counters[s.WAITING] = 0
    list_members(state)
    find_others(state, settings)


def find_others(state: Any, settings: Any) -> None:
    """Find the largest variance of every column in any block but the one in use; others do not change meanwhile."""
    blocks, largest = state.blocks[: state.counters[s.BLOCKS]], state.scratch[s.OTHERS]
    variance = np.where(blocks[:, s.NOISE] >= 0.0, settings.batch * blocks[:, s.NOISE] + blocks[:, s.SWAY], 0.0)
    variance[state.counters[s.POINTER]] = 0.0
    variance.max(axis=0, out=largest)


def list_members(state: Any) -> None:
    """List the units of the block in use."""
    counters = state.counters
    members = np.flatnonzero(state.unit_blocks[: counters[UNITS]] == counters[s.POINTER])
    state.members[: len(members)] = members
    counters[s.SIZE] = len(members)


def _return(state: Any, settings: Any) -> None:
    """Recall a stored block if the latest batches fit one: a return takes half the evidence of an alarm.

    What the block in use has learned of the return must not remain in its sway.
    """
    own, batches = int(state.counters[s.POINTER]), latest(state, s.RING)
    found, _ = fits_nearest(state, settings, batches, own)
    found[own] = math.inf
    best = int(np.argmin(found))
    if found[best] > 0.0:
        return
    _, _, sway = s.block_values(state, own)
    np.minimum(sway, np.maximum(drift_scales(state, settings)[0], 1.0) * noise(state, settings, own), out=sway)
    state.counters[s.BEGAN] = max(0, state.counters[SEEN] - s.RING * settings.batch)
    state.counters[s.UNCERTAIN] = s.RING * settings.batch // 2
    _note(state, settings, RECALL, best)
    enter(state, settings, best, batches)


def _onset(state: Any, settings: Any) -> tuple[int, int]:
    """Return the first row of the change and the uncertainty of that, by the feature that has moved furthest.

    The batch before the first that is wholly new lies part of the way: so large is the part of its rows that are new.
    """
    n, counters = int(state.counters[s.WINDOW]), state.counters
    batches, reference = latest(state, s.RING)[:, :2], state.stream[s.REFERENCE : s.ONE]
    one = noise(state, settings, int(counters[s.POINTER]))
    mean = batches[: max(n - 1, 1)].mean(axis=0)
    z = np.abs(mean - reference) / np.sqrt(np.maximum(one, errors(settings, latest(state, max(n - 1, 1)))))
    f, j = np.unravel_index(int(np.nanargmax(z)), z.shape)
    shift = mean[f, j] - reference[f, j]
    parts = (batches[:, f, j] - reference[f, j]) / (shift if shift else 1.0)
    whole = max(n - 1, 1)
    while whole < min(s.RING, int(counters[s.KEPT])) - 1 and parts[whole] > 0.75:
        whole += 1
    part = min(max(float(parts[whole]), 0.0), 1.0) if whole < s.RING else 0.0
    rows = settings.batch * (whole + part)
    uncertain = settings.batch * min(3.0 / max(float(z[f, j]), 0.5), 4.0) + settings.batch / 8.0
    seen = int(counters[SEEN])
    return max(0, seen - round(rows)), max(2, math.ceil(uncertain))


def _note(state: Any, settings: Any, kind: int, block: int) -> None:
    """Write a change to ``block`` into the journal: step, onset, uncertainty and evidence."""
    counters = state.counters
    seen = int(counters[SEEN])
    evidence = min(float(state.scalars[s.EVIDENCE] / max(state.scalars[s.THRESHOLD], 1.0)), MOST_EVIDENCE)
    line = state.journal[counters[JOURNALED]]
    line[:] = kind, seen - 1, counters[s.POINTER], block, seen - counters[s.BEGAN], counters[s.UNCERTAIN], 0
    line[6] = round(EVIDENCE_UNIT * max(evidence, 0.0))
    counters[JOURNALED] += 1
