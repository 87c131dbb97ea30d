"""Slots: competition inside the block in use, and merging where ``max_units`` bounds the memory. Compiled.

The slot that is least dissimilar to a row wins; with ``fair``, dissimilarity times wins decides (frequency-sensitive
competition), so that slots get similar shares of the rows. Two units of one block with w_i and w_j wins cost
w_i w_j / (w_i + w_j) times their dissimilarity to merge (Ward's criterion).
Where votes are known, pairs with the same majority label come first. Only blocks with more than their share of the
bound give up units. Ties go to the lowest first unit, then to the lowest second.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem.core.codes import MERGE, MOVE, REJECTED
from ccmem.core.state import SEEN, UNITS
from ccmem.core.typing import FloatArray, IntArray
from ccmem.kernels.competition import dot, dots_and_square
from ccmem.kernels.jit import kernel_in_place, kernel_inlined
from ccmem.kernels.journal import note
from ccmem.kernels.update import copy_scaled, hebbian_move, renormalise, renormalising_move
from ccmem.models.adaptive import state as s
from ccmem.models.adaptive.coordinates import COLUMNS, INVERSE, dissimilarity, squared_apart

UNKNOWN = -1
"""A label that is not known."""
OTHER_LABEL = 2.0**100
"""Factor on the cost of merging units of different labels: these come last, in the same order, without rounding."""
_ROUNDING = 1e-6


@kernel_in_place
def scale_of(squared: float) -> float:
    """Return 1 / |x|, given |x|^2; 0 for a zero vector."""
    return 1.0 / np.sqrt(squared) if squared > 0.0 else 0.0


@kernel_in_place
def majority(votes: IntArray, unit: int) -> int:
    """Return the label that ``unit`` learned most often, or UNKNOWN."""
    best, most = UNKNOWN, 0
    for label in range(votes.shape[1]):
        if votes[unit, label] > most:
            best, most = label, votes[unit, label]
    return best


@kernel_in_place
def refuses(votes: IntArray, unit: int, label: int) -> bool:
    """True if more than three quarters of the labels that ``unit`` learned are one other than ``label``."""
    most, total = majority(votes, unit), 0
    for other in range(votes.shape[1]):
        total += votes[unit, other]
    return most != UNKNOWN and most != label and 4 * votes[unit, most] > 3 * total


@kernel_in_place
def accepts(votes: IntArray | None, unit: int, label: int, refusing: bool) -> bool:
    """True if ``unit`` may learn a sample with this label."""
    if votes is None:
        return True
    return not (refusing and label != UNKNOWN and refuses(votes, unit, label))


@kernel_in_place
def match_row(
    X: FloatArray, row: int, prototypes: FloatArray, counters: IntArray, members: IntArray, scores: FloatArray
) -> tuple[float, bool]:
    """Return 1 / |x| of a row; True if ``scores`` were computed in the same pass, as for contiguous units."""
    size = counters[s.SIZE]
    competes = counters[s.COORDINATES] != COLUMNS and counters[s.ALARM] == 0 and counters[s.DOUBT] == 0
    if not competes or size == 0 or members[size - 1] - members[0] != size - 1:
        return scale_of(dot(X[row], X[row])), False
    first, backwards = members[0], counters[SEEN] % 2 == 1
    return scale_of(dots_and_square(prototypes, first, first + size, X, row, backwards, scores)), True


@kernel_in_place
def match_members(
    x: FloatArray, scale: float, matched: bool, prototypes: FloatArray, counters: IntArray, members: IntArray,
    scores: FloatArray, inverse: FloatArray,
) -> float:  # fmt: skip
    """Complete ``scores``: similarities of a row and the units of the block in use; return that of equal vectors."""
    size = counters[s.SIZE]
    if counters[s.COORDINATES] == COLUMNS:
        for k in range(size):
            scores[k] = -0.5 * squared_apart(inverse, prototypes[members[k]], x)
        return 0.0
    for k in range(size):
        scores[k] = (scores[k] if matched else dot(prototypes[members[k]], x)) * scale
    return 1.0


@kernel_inlined
def place(
    state: Any, settings: Any, x: FloatArray, scale: float, matched: bool, label: int, votes: IntArray | None,
    refusing: bool,
) -> int:  # fmt: skip
    """Let a slot of the block in use learn ``x``, a new one if need be; return its index.

    ``matched``: ``scores`` are known up to ``scale``. Without ``votes`` there is neither a label nor a bound, and the
    code for both is not compiled.
    """
    counters = state.counters
    best: Any = np.int64(REJECTED)  # not a plain -1, for which functions would be compiled again
    closest, nearest, match, nearest_match, rank = best, best, -np.inf, -np.inf, -np.inf
    inverse = state.columns[INVERSE]
    equal = match_members(x, scale, matched, state.prototypes, counters, state.members, state.scores, inverse)
    for k in range(counters[s.SIZE]):
        unit, similarity = state.members[k], state.scores[k]
        if similarity > nearest_match:
            nearest, nearest_match = unit, similarity
        own_rank = (similarity - equal) * state.wins[unit] if settings.fair else similarity
        if (own_rank > rank or similarity > match) and accepts(votes, unit, label, refusing):
            if similarity > match:
                closest, match = unit, similarity
            if own_rank > rank:
                best, rank = unit, own_rank
    refused = best == REJECTED
    if refused:
        best, match = nearest, nearest_match
    unit = best
    if may_open(counters, state.wins, state.scalars[s.SCATTER], settings, closest, equal - match, refused):
        unit = open_slot(state, settings, x, scale)
    elif counters[s.COORDINATES] == COLUMNS:
        hebbian_move(state.prototypes[best], x, state.rates[best])
    else:
        renormalising_move(state.prototypes[best], x, scale, state.rates[best], 0.0)
    state.wins[unit] += 1
    state.rates[unit] = rate_after(settings.learning_rate, state.wins[unit])
    if votes is not None:
        if label != UNKNOWN:
            votes[unit, label] += 1
        if settings.max_units > 0 and counters[UNITS] > settings.max_units:
            merge_cheapest(state, settings, votes, max(1, settings.max_units // counters[s.BLOCKS]))
            list_members(state)
    return unit


@kernel_in_place
def rate_after(learning_rate: float, wins: int) -> float:
    """Return the rate of a unit after its wins: it moves to the mean of its samples, its start weighing 2 / rate."""
    return 1.0 / (1.0 / learning_rate + 0.5 * wins)


@kernel_in_place
def may_open(
    counters: IntArray, wins: IntArray, scatter: float, settings: Any, closest: int, far: float, refused: bool
) -> bool:
    """True if a sample this ``far`` from the closest unit gets a slot of its own."""
    bound, size = settings.max_units, counters[s.SIZE]
    if bound > 0 and counters[UNITS] == bound:
        if size >= max(1, bound // counters[s.BLOCKS]):
            return False
    elif bound == 0 and size >= settings.n_slots:
        return False
    if refused:
        return True
    if far <= settings.spacing * scatter + _ROUNDING:
        return False
    return size < settings.n_slots or wins[closest] * far > settings.growth * scatter


@kernel_in_place
def open_slot(state: Any, settings: Any, x: FloatArray, scale: float) -> int:
    """Let ``x`` become a unit of the block in use."""
    counters = state.counters
    unit = counters[UNITS]
    copy_scaled(state.prototypes[unit], x, 1.0 if counters[s.COORDINATES] == COLUMNS else scale)
    state.rates[unit] = settings.learning_rate
    state.wins[unit] = 0
    state.unit_blocks[unit] = counters[s.POINTER]
    state.members[counters[s.SIZE]] = unit
    counters[UNITS] += 1
    counters[s.SIZE] += 1
    return unit


@kernel_in_place
def list_members(state: Any) -> None:
    """List the units of the block in use."""
    counters = state.counters
    counters[s.SIZE] = 0
    for unit in range(counters[UNITS]):
        if state.unit_blocks[unit] == counters[s.POINTER]:
            state.members[counters[s.SIZE]] = unit
            counters[s.SIZE] += 1


@kernel_in_place
def merge_cost(state: Any, votes: IntArray, a: int, b: int) -> float:
    """Return the cost of merging two units."""
    w_a, w_b = float(state.wins[a]), float(state.wins[b])
    cost = w_a * w_b / max(w_a + w_b, 1.0) * dissimilarity(state, a, b)
    label_a, label_b = majority(votes, a), majority(votes, b)
    if label_a != UNKNOWN and label_b != UNKNOWN and label_a != label_b:
        cost *= OTHER_LABEL
    return cost


@kernel_in_place
def merge_cheapest(state: Any, settings: Any, votes: IntArray, share: int) -> None:
    """Merge the cheapest pair within the blocks of more than ``share`` units; the last unit moves into the gap."""
    units = state.counters[UNITS]
    a: Any = np.int64(0)
    b: Any = np.int64(0)
    least = np.inf
    for i in range(units):
        size = 0
        for j in range(units):
            size += state.unit_blocks[j] == state.unit_blocks[i]
        if size <= share:
            continue
        for j in range(i + 1, units):
            if state.unit_blocks[j] == state.unit_blocks[i]:
                cost = merge_cost(state, votes, i, j)
                if cost < least:
                    a, b, least = i, j, cost
    combine(state, settings, votes, a, b)
    last = units - 1
    note(state.counters, state.journal, MERGE, b, a, state.wins[a])
    if b != last:
        replace(state, votes, b, last)
        note(state.counters, state.journal, MOVE, last, b, state.wins[b])
    state.counters[UNITS] = last


@kernel_in_place
def combine(state: Any, settings: Any, votes: IntArray, a: int, b: int) -> None:
    """Let ``a`` become the mean of two units, weighted by wins, with the votes of both."""
    total = state.wins[a] + state.wins[b]
    hebbian_move(state.prototypes[a], state.prototypes[b], state.wins[b] / max(total, 1))
    if state.counters[s.COORDINATES] != COLUMNS:
        renormalise(state.prototypes[a], 0.0)
    state.wins[a] = total
    state.rates[a] = rate_after(settings.learning_rate, total)
    for label in range(votes.shape[1]):
        votes[a, label] += votes[b, label]
        votes[b, label] = 0


@kernel_in_place
def replace(state: Any, votes: IntArray, gap: int, last: int) -> None:
    """Move unit ``last`` into the gap."""
    copy_scaled(state.prototypes[gap], state.prototypes[last], 1.0)
    state.rates[gap], state.wins[gap] = state.rates[last], state.wins[last]
    state.unit_blocks[gap] = state.unit_blocks[last]
    for label in range(votes.shape[1]):
        votes[gap, label], votes[last, label] = votes[last, label], 0
