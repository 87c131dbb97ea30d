"""Once per alarm, in numpy: which block explains the batches since the alarm, where the change began, and what follows.

The batches since the alarm are held against every block by :func:`ccmem.models.adaptive.windows.compare`:
the block in use at its reference, a waiting block at its level. A block fits if its evidence is not positive; it does
not fit if its evidence exceeds the threshold of an alarm.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ccmem.core.allocation import grown
from ccmem.core.codes import EVIDENCE_UNIT, NEW_BLOCK, RECALL
from ccmem.core.state import JOURNALED, SEEN, UNITS
from ccmem.core.typing import BoolArray, FloatArray
from ccmem.models.adaptive import state as s
from ccmem.models.adaptive.start import choose_coordinates, report_columns, start_columns
from ccmem.models.adaptive.windows import TIE, compare

NewLevel = Callable[[int], float]
"""Evidence for a new level against that of a block, as a function of the block."""

MOST_EVIDENCE = 50.0
"""Cap on reported evidence, in multiples of the threshold."""
MOST_COMPARED = 64
"""Number of blocks that are compared if there are more than twice as many: comparing all would take most of the time.
"""
_MOST_APART = 1e6
"""Cap on the squared z-score of one feature in the rank of a block, so that one feature does not decide alone."""
_SAME_LEVEL = 9.0
"""Squared z-score beyond which a feature of a recalled block starts at its new level instead of a shrunken one."""


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
    fresh, own = int(state.counters[s.FRESH]), int(state.counters[s.POINTER])
    batches = latest(state, min(fresh, s.RING))
    found, new = fits_nearest(state, settings, batches, own)
    best = int(np.argmin(found))
    is_new = found[best] > settings.threshold or (best != own and new(best) > settings.threshold)
    is_full = bool(settings.max_units and state.counters[s.BLOCKS] >= settings.max_units)
    if best == own and (found[own] <= 0.0 or is_full):
        enter(state, settings, own, batches)
    elif (is_new and not is_full) or (best == own and fresh >= s.RING):
        state = _found(state, settings, batches)
    elif fresh >= s.RING or (found[best] <= 0.0 and fresh >= settings.recall_after):
        _note(state, settings, RECALL, best)
        enter(state, settings, best, batches)
    return state


def latest(state: Any, n: int) -> FloatArray:
    """Return the latest ``n`` batches, newest first: mean, spread and error of the spread of every column."""
    ring = state.stream[s.BATCHES : s.COLUMN_ROWS].reshape(s.RING, 3, -1)
    batches: FloatArray = ring[(int(state.counters[s.LATEST]) - np.arange(n)) % s.RING]
    return batches


def errors(batches: FloatArray, settings: Any) -> FloatArray:
    """Return the mean error variance of one batch, of means and of spreads."""
    return np.stack([(batches[:, 1] ** 2).mean(axis=0) / settings.batch, batches[:, 2].mean(axis=0)])


def drift_scales(state: Any, settings: Any) -> FloatArray:
    """Return the drift scale of every feature and window, shrunk towards the expected: (2, windows, columns)."""
    n = float(state.counters[s.WATCHED])
    share, white = n / (n + settings.prior_count), 0.5 ** np.arange(s.WINDOWS)[:, None]
    measured = state.stream[s.DRIFT : s.DRIFT + 2 * s.MEASURED].reshape(2, s.MEASURED, -1)
    ratio = np.clip(measured[:, 2:] / np.maximum(measured[:, 1:2], s.TINY), 0.5, 1.0)
    learned = np.maximum(np.concatenate([measured, ratio * measured[:, 2:]], axis=1), white * measured[:, :1])
    return np.maximum(share * learned + (1.0 - share) * np.array(settings.expected)[:, :, None], white)


def _window(n: int) -> int:
    """Return the index of the longest window of at most ``n`` batches."""
    return min(n.bit_length() - 1, s.WINDOWS - 1)


def _drift_of(drift: FloatArray, n: int) -> FloatArray:
    """Return the drift scale of the mean of ``n`` batches, between those of the windows around it."""
    i = _window(n)
    scale: FloatArray = drift[:, i] * (1 << i) / n
    return np.maximum(scale, drift[:, min(i + 1, s.WINDOWS - 1)])


def noise(state: Any, settings: Any, block: int) -> FloatArray:
    """Return the error variance of one batch in a block, with that of rounding; shape (2, columns)."""
    level, error, _ = s.block_values(state, block)
    return np.maximum(error, 0.0) + settings.rounding * level**2 + s.TINY


def silent_columns(state: Any, rows: int) -> BoolArray:
    """Return which columns have had no reading for so many rows."""
    return state.gaps[s.GAP] >= rows if len(state.gaps) else np.zeros(state.stream.shape[1], np.bool_)


def fits_nearest(state: Any, settings: Any, batches: FloatArray, own: int = -1) -> tuple[FloatArray, NewLevel]:
    """Return the results of :func:`fits`, with infinity for blocks that are too far away to be compared.

    Blocks are ranked by the mean squared z-score of a window, with a variance that is easy to compute and at least that
    of the comparison up to the error of a level.
    """
    blocks, n = int(state.counters[s.BLOCKS]), len(batches)
    if blocks <= 2 * MOST_COMPARED:
        return fits(state, settings, batches, own)
    window = np.median(batches[:, :2], axis=0)  # an outlying batch decides nothing
    known, ranks = ~silent_columns(state, n * settings.batch), np.empty(blocks)
    drift, error = _drift_of(drift_scales(state, settings), n), errors(batches, settings) / n + s.TINY
    for begin in range(0, blocks, MOST_COMPARED):
        part = slice(begin, min(begin + MOST_COMPARED, blocks))
        level, noise, sway = (state.blocks[part, row : row + 2] for row in (s.LEVEL, s.NOISE, s.SWAY))
        z2 = (window - level) ** 2 / np.maximum(drift * (noise + settings.rounding * level**2) + sway, error)
        there = (noise[:, :1] >= 0.0) & known
        ranks[part] = np.minimum(z2, _MOST_APART).sum(axis=(1, 2), where=there) / np.maximum(there.sum(axis=(1, 2)), 1)
    ranks[state.counters[s.POINTER]] = -1.0
    some = np.sort(np.argpartition(ranks, MOST_COMPARED)[:MOST_COMPARED])
    few = state._replace(blocks=state.blocks[some], ages=state.ages[some], counters=state.counters.copy())
    few.counters[s.BLOCKS] = len(some)
    found = np.full(blocks, math.inf)
    found[some], new = fits(few, settings, batches, own if own < 0 else int(np.searchsorted(some, own)))
    return found, lambda block: new(int(np.searchsorted(some, block)))


def fits(state: Any, settings: Any, batches: FloatArray, own: int = -1) -> tuple[FloatArray, NewLevel]:
    """Return two kinds of evidence that batches do not belong to a block.

    First, for every block, that of a shift (:func:`ccmem.models.adaptive.windows.compare`); block ``own`` is at the
    reference. Second, a function of a block: the evidence for a new level, which a block of large sway cannot escape.
    """
    blocks, watched = int(state.counters[s.BLOCKS]), float(state.counters[s.WATCHED])
    found, z2, variance = np.empty(blocks), *np.empty((2, blocks, 2, batches.shape[2]))
    stored, ages = state.blocks[:blocks], state.ages[:blocks]
    silent = silent_columns(state, len(batches) * settings.batch)
    compare(
        found, z2, variance, batches, stored, ages, own, watched, silent, state.stream, state.scalars, state.scratch,
        settings,
    )  # fmt: skip

    def new(block: int) -> float:
        levels = stored[:, s.LEVEL : s.LEVEL + 2]
        if own >= 0:
            levels = levels.copy()
            levels[own] = state.stream[s.REFERENCE : s.REFERENCE + 2]
        nu = settings.prior_count + min(max(float(ages[block]), 1.0), watched)
        ratio = _new_level(batches[:, :2].mean(axis=0), levels, variance, block, nu)
        return float(np.where(z2[block] < 0.0, 0.0, ratio).sum())

    return found, new


def _new_level(mean: FloatArray, levels: FloatArray, variance: FloatArray, block: int, nu: float) -> FloatArray:
    """Return the log likelihood ratio of a new level against that of a block, per feature.

    The predictive density of a block is Student's t; a new level is drawn from the normal distribution of the levels of
    all blocks. A block that varies as much as these levels explains nothing.
    """
    total, own = levels.var(axis=0) + variance.mean(axis=0), variance[block]
    away = np.minimum((mean - levels.mean(axis=0)) ** 2 / total, _SAME_LEVEL)
    known = np.log(own / total) + (nu + 1.0) * np.log1p((mean - levels[block]) ** 2 / (own * nu))
    ratio: FloatArray = 0.5 * (known - away)
    return ratio


def _trimmed(batches: FloatArray, levels: FloatArray) -> FloatArray:
    """Return the mean of a window, trimmed as :func:`ccmem.models.adaptive.windows.trimming` does.

    Where both extremes are equally far and both sums are equally near to 0, it is the mean as it is.
    """
    away = np.sort(batches - levels, axis=0)
    total, lower, low, high, higher = away.sum(axis=0), away[0], away[1], away[-2], away[-1]
    down = np.where((high > 0.0) & (high >= -TIE * lower), high, 0.0) - higher
    up = np.where((low < 0.0) & (-low >= TIE * higher), low, 0.0) - lower
    balance, tie = higher + lower, (1.0 - TIE) * (higher - lower)
    balance = np.where(abs(balance) <= tie, abs(total + up) - abs(total + down), balance)
    gain = np.where(abs(balance) <= tie, 0.5 * (down + up), np.where(balance > 0.0, down, up))
    mean: FloatArray = batches.mean(axis=0) + gain / len(batches)
    return mean


def enter(state: Any, settings: Any, block: int, batches: FloatArray) -> None:
    """Continue with a block: the reference lies between its level and the batches (James-Stein)."""
    counters, stream, n = state.counters, state.stream, len(batches)
    level, error, _ = s.block_values(state, block)
    drift, age = drift_scales(state, settings), max(float(state.ages[block]), 1.0)
    one, mean = noise(state, settings, block), _trimmed(batches[:, :2], level)
    z2 = (mean - level) ** 2 / (_drift_of(drift, n) * one + np.maximum(drift[:, 0], 1.0) * one / age)
    known = error[0] >= 0.0
    average = float(np.minimum(z2[:, known], _SAME_LEVEL).mean()) if known.any() else 0.0
    share = max(0.0, 1.0 - 1.0 / max(average, 1e-9))
    silent = silent_columns(state, n * settings.batch)
    reference = np.where(z2 > _SAME_LEVEL, mean, level + share * (mean - level))
    reference = np.where(silent & known, level, np.where(known, reference, mean))
    _rebase(state, reference, n, settings.batch)
    active = known & ~silent
    error += np.where(active, (errors(batches, settings) - error) * n / (n + age), 0.0)
    stream[s.HOME : s.HOME + 2] = np.where(known, level, mean)
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
    level[:], error[:] = mean, errors(batches, settings)
    sway[:] = ((batches[:, :2] - mean) ** 2).mean(axis=0)
    state.ages[block] = n
    if len(state.gaps):
        silent = state.gaps[s.GAP] >= n * settings.batch
        level[:, silent], error[:, silent], sway[:, silent] = 0.0, -1.0, 0.0
    _rebase(state, mean, n, settings.batch)
    state.stream[s.HOME : s.HOME + 2] = mean
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
    stream[s.REFERENCE : s.REFERENCE + 2] = reference


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

    The block in use has learned some of what follows the return; it returns to the level that it had when young.
    """
    own, batches = int(state.counters[s.POINTER]), latest(state, s.RING)
    found, _ = fits_nearest(state, settings, batches, own)
    found[own] = math.inf
    best = int(np.argmin(found))
    if found[best] > 0.0:
        return
    level, _, sway = s.block_values(state, own)
    level[:] = state.stream[s.HOME : s.HOME + 2]
    np.minimum(sway, np.maximum(drift_scales(state, settings)[:, 0], 1.0) * noise(state, settings, own), out=sway)
    state.counters[s.BEGAN] = max(0, state.counters[SEEN] - s.RING * settings.batch)
    state.counters[s.UNCERTAIN] = s.RING * settings.batch // 2
    _note(state, settings, RECALL, best)
    enter(state, settings, best, batches)


def _onset(state: Any, settings: Any) -> tuple[int, int]:
    """Return the first row of the change and the uncertainty of that, by the feature that has moved furthest.

    The batch before the first that is wholly new lies part of the way: so large is the part of its rows that are new.
    """
    n, counters = int(state.counters[s.WINDOW]), state.counters
    batches = latest(state, s.RING)[:, :2]
    reference = state.stream[s.REFERENCE : s.REFERENCE + 2]
    one = noise(state, settings, int(counters[s.POINTER]))
    mean = batches[: max(n - 1, 1)].mean(axis=0)
    z = np.abs(mean - reference) / np.sqrt(np.maximum(one, errors(latest(state, max(n - 1, 1)), settings)))
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
    evidence = min(float(state.scalars[s.EVIDENCE]) / settings.threshold, MOST_EVIDENCE)
    line = state.journal[counters[JOURNALED]]
    line[:] = kind, seen - 1, counters[s.POINTER], block, seen - counters[s.BEGAN], counters[s.UNCERTAIN], 0
    line[6] = round(EVIDENCE_UNIT * max(evidence, 0.0))
    counters[JOURNALED] += 1
