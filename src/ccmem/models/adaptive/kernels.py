"""What :class:`ccmem.AdaptiveCCM` does with every sample: a slot learns it, opens for it, or makes room for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem._typing import FloatArray, IntArray
from ccmem.base import REJECTED
from ccmem.kernels.competition import dot, dots
from ccmem.kernels.jit import kernel, kernel_in_place
from ccmem.kernels.update import copy_scaled, renormalising_move
from ccmem.memory import JOURNALED, SEEN, UNITS
from ccmem.models._blocks import ALARM, BLOCKS, POINTER
from ccmem.models.adaptive.batches import read, scale_of
from ccmem.models.adaptive.change import confirm, suspect
from ccmem.models.adaptive.columns import DOUBT, FRESH, PARTIAL, REFERENCE_AGE, ROWS
from ccmem.models.adaptive.decision import SIZE, is_asking, judge, list_members
from ccmem.models.adaptive.merging import TO_FIND, UNKNOWN, majority, merge_cheapest
from ccmem.models.adaptive.missing import all_there, fill, read_some
from ccmem.models.adaptive.signature import VARIANCE
from ccmem.models.adaptive.state import AdaptiveSettings, AdaptiveState


@kernel_in_place
def refuses(votes: IntArray, unit: int, label: int) -> bool:
    """Whether more than three quarters of the labels that ``unit`` learned are one other than ``label``."""
    most, total = majority(votes, unit), 0
    for other in range(votes.shape[1]):
        total += votes[unit, other]
    return most != UNKNOWN and most != label and 4 * votes[unit, most] > 3 * total


@kernel_in_place
def accepts(votes: IntArray | None, unit: int, label: int, refusing: bool) -> bool:
    """Whether ``unit`` may learn a sample with this label."""
    if votes is None:
        return True
    return not (refusing and label != UNKNOWN and refuses(votes, unit, label))


@kernel_in_place
def match_members(state: AdaptiveState, x: FloatArray, h: FloatArray) -> None:
    """Products of ``x`` with the units of the block in use; several at a time where they follow each other."""
    size, members = state.counters[SIZE], state.members
    if size > 0 and members[size - 1] - members[0] == size - 1:
        dots(state.prototypes, members[0], members[0] + size, x, h)
    else:
        for k in range(size):
            h[k] = dot(state.prototypes[members[k]], x)


@kernel_in_place
def place(
    state: AdaptiveState,
    settings: AdaptiveSettings,
    x: FloatArray,
    scale: float,
    label: int,
    votes: IntArray | None,
    refusing: bool,
    h: FloatArray,
) -> int:
    """Let a slot of the block in use learn ``x``, a new one if need be; return it. ``h`` is scratch.

    Without ``votes`` there is neither a label nor a bound, and what is for these is not even compiled.
    """
    counters = state.counters
    best: Any = np.int64(REJECTED)  # not a plain -1, for which functions would be compiled
    nearest, match, nearest_match = best, -np.inf, -np.inf
    match_members(state, x, h)
    for k in range(counters[SIZE]):
        unit, similarity = state.members[k], h[k] * scale
        if similarity > nearest_match:
            nearest, nearest_match = unit, similarity
        if similarity > match and accepts(votes, unit, label, refusing):
            best, match = unit, similarity
    refused = best == REJECTED
    if refused:
        best, match = nearest, nearest_match
    if may_open(state, settings, best, match, refused):
        unit = open_slot(state, settings, best, x, scale)
    else:
        unit = best
        if settings.max_units > 0:  # without a bound nothing asks for them, and a state is smaller without
            state.errors[best] += 1.0 - match
        renormalising_move(state.prototypes[best], x, scale, state.rates[best], 0.0)
    state.wins[unit] += 1
    state.rates[unit] = state.rates[unit] / (1.0 + 0.5 * state.rates[unit])
    if votes is not None:
        if label != UNKNOWN:
            votes[unit, label] += 1
        if settings.max_units > 0 and counters[UNITS] > settings.max_units:
            merge_to_bound(state, settings, votes)
    return unit


@kernel_in_place
def may_open(state: AdaptiveState, settings: AdaptiveSettings, best: int, match: float, refused: bool) -> bool:
    """Whether a sample with this best match gets a slot of its own."""
    counters, bound = state.counters, settings.max_units
    size, variance = counters[SIZE], state.statistics[counters[POINTER], VARIANCE]
    if bound > 0 and counters[UNITS] == bound:
        if size >= max(1, bound // counters[BLOCKS]):
            return False
    elif bound == 0 and size >= settings.n_slots:
        return False
    if refused:
        return True
    far = 1.0 - match > settings.spacing * variance + 1e-6  # nearer than that may be rounding
    return far and (size < settings.n_slots or state.errors[best] > settings.growth * variance)


@kernel_in_place
def open_slot(state: AdaptiveState, settings: AdaptiveSettings, best: int, x: FloatArray, scale: float) -> int:
    """Let ``x`` become a unit of the block in use, relieving the one it was nearest to."""
    counters = state.counters
    unit = counters[UNITS]
    copy_scaled(state.prototypes[unit], x, scale)
    state.rates[unit] = settings.learning_rate
    state.wins[unit] = 0
    state.unit_blocks[unit] = counters[POINTER]
    if settings.max_units > 0:  # without a bound there are neither
        if best != REJECTED:
            state.errors[best] = 0.0
        state.errors[unit] = 0.0
        state.partners[unit] = TO_FIND
    state.members[counters[SIZE]] = unit
    counters[UNITS] += 1
    counters[SIZE] += 1
    return unit


@kernel
def merge_to_bound(state: AdaptiveState, settings: AdaptiveSettings, votes: IntArray) -> None:
    """Merge the cheapest pair of a block with more than its share of the bound."""
    blocks = state.counters[BLOCKS]
    sizes = np.zeros(blocks, np.int64)
    for unit in range(state.counters[UNITS]):
        sizes[state.unit_blocks[unit]] += 1
    merge_cheapest(state, votes, sizes > max(1, settings.max_units // blocks))
    list_members(state)


@kernel_in_place
def learn_rows(
    state: AdaptiveState,
    settings: AdaptiveSettings,
    X: FloatArray,
    winners: IntArray,
    labels: IntArray,
    votes: IntArray | None,
    refusing: bool,
    gaps: bool | None,
    h: FloatArray,
) -> int:
    """Learn rows in order, up to the first that asks about a change or finds no more space; return how many.

    With ``gaps`` None readings cannot be missing (up to the first that is), and what is for these is not even compiled.
    """
    counters: Any = state.counters
    lines = 2  # that one row may add to the journal
    if gaps is not None and state.missing.shape[0] > 0:
        lines += X.shape[1]
    unread: Any = np.int64(0)  # rows of the running batch from here on are not read yet
    r: Any = np.int64(0)
    asking = is_asking(state)
    while r < X.shape[0] and not asking:
        if counters[UNITS] == state.prototypes.shape[0] or counters[JOURNALED] + lines > state.journal.shape[0]:
            break
        x, heard = X[r], True
        scale = scale_of(x)
        if scale == 0.0 and not all_there(x):
            if gaps is None or state.missing.shape[0] == 0:
                break
            x, heard = state.filled[0], fill(state.readings, x, state.filled[0])
            scale = scale_of(x)
        winners[r] = REJECTED
        if gaps is not None and state.missing.shape[0] > 0:
            read_some(state.readings, state.missing, X[r], x, scale, counters[ROWS] == 0, counters[REFERENCE_AGE] == 0)
            unread = r + 1
        counters[ROWS] += 1
        if counters[ROWS] == settings.batch:
            catch_up(state, X, unread, r + 1)
            unread = r + 1
            asking = judge(state, settings, gaps)
        if scale > 0.0 and heard and not asking:
            if counters[ALARM] > 0:
                asking = confirm(state, settings, x, scale)
            elif suspect(state, settings, x, scale):
                counters[ALARM] = 1
                counters[FRESH], counters[PARTIAL] = 0, min(1, counters[ROWS])
            elif counters[DOUBT] == 0:
                label = labels[r] if labels.shape[0] else UNKNOWN
                winners[r] = place(state, settings, x, scale, label, votes, refusing, h)
        counters[SEEN] += 1
        r += 1
    catch_up(state, X, unread, r)
    return r


@kernel_in_place
def catch_up(state: AdaptiveState, X: FloatArray, start: int, stop: int) -> None:
    """Read the rows of the batch being filled that were not yet."""
    if start < stop:
        begins = state.counters[ROWS] == stop - start
        read(state.readings, X[start:stop], begins, state.counters[REFERENCE_AGE] == 0)


@kernel
def learn_labelled(
    state: AdaptiveState,
    settings: AdaptiveSettings,
    X: FloatArray,
    winners: IntArray,
    labels: IntArray,
    votes: IntArray,
    refusing: bool,
) -> int:
    """As :func:`learn`, counting ``votes`` on the way: merges go by them, and slots may be ``refusing``."""
    h = np.empty(state.prototypes.shape[0])
    return learn_rows(state, settings, X, winners, labels, votes, refusing, True, h)


@kernel
def learn_bounded(state: AdaptiveState, settings: AdaptiveSettings, X: FloatArray, winners: IntArray) -> int:
    """As :func:`learn`, merging units where there would be more than ``max_units``."""
    votes, h = np.empty((0, 0), np.int64), np.empty(state.prototypes.shape[0])
    return learn_rows(state, settings, X, winners, winners[:0], votes, False, True, h)


@kernel_in_place
def learn(state: AdaptiveState, settings: AdaptiveSettings, X: FloatArray, winners: IntArray) -> int:
    """Learn rows in order, none with gaps; labels play no part, and there is no bound (``costs`` serve as scratch)."""
    return learn_rows(state, settings, X, winners, winners[:0], None, False, None, state.costs)


@kernel_in_place
def learn_with_gaps(state: AdaptiveState, settings: AdaptiveSettings, X: FloatArray, winners: IntArray) -> int:
    """As :func:`learn`, where readings may be missing."""
    return learn_rows(state, settings, X, winners, winners[:0], None, False, True, state.costs)
