"""Slots: competition inside the block in use. Compiled.

The slot that is least dissimilar to a row wins; with ``fair``, dissimilarity times wins decides (frequency-sensitive
competition), so that slots get similar shares of the rows. Dissimilarity is half the squared distance in normalised
columns (:mod:`ccmem.base.normalised`), or 1 - cosine where directions are compared.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem.base.normalised import INVERSE, squared_apart
from ccmem.core.codes import REJECTED
from ccmem.core.state import SEEN, UNITS
from ccmem.core.typing import FloatArray, IntArray
from ccmem.kernels.competition import dot, dots_and_square
from ccmem.kernels.jit import kernel_in_place, kernel_inlined
from ccmem.kernels.update import copy_scaled, hebbian_move, renormalising_move
from ccmem.models.adaptive import state as s

UNKNOWN = -1
"""A label that is not known."""
_ROUNDING = 1e-6


@kernel_in_place
def scale_of(squared: float) -> float:
    """Return 1 / |x|, given |x|^2; 0 for a zero vector."""
    return 1.0 / np.sqrt(squared) if squared > 0.0 else 0.0


@kernel_in_place
def refuses(votes: IntArray | None, unit: int, label: int) -> bool:
    """True if more than three quarters of the labels that ``unit`` learned are one other than ``label``."""
    if votes is None:
        return False
    best, most, total = UNKNOWN, 0, 0
    for other in range(votes.shape[1]):
        total += votes[unit, other]
        if votes[unit, other] > most:
            best, most = other, votes[unit, other]
    return best not in (UNKNOWN, label) and 4 * most > 3 * total


@kernel_in_place
def match_row(
    X: FloatArray, row: int, prototypes: FloatArray, counters: IntArray, members: IntArray, scores: FloatArray
) -> tuple[float, bool]:
    """Return 1 / |x| of a row; True if ``scores`` were computed in the same pass, as for contiguous units."""
    size = counters[s.SIZE]
    competes = counters[s.COORDINATES] != s.COLUMNS and counters[s.ALARM] == 0 and counters[s.DOUBT] == 0
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
    if counters[s.COORDINATES] == s.COLUMNS:
        for k in range(counters[s.SIZE]):
            scores[k] = -0.5 * squared_apart(inverse, prototypes[members[k]], x)
        return 0.0
    for k in range(counters[s.SIZE]):
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
    counters, wins = state.counters, state.wins
    best: Any = np.int64(REJECTED)  # not a plain -1, for which functions would be compiled again
    closest, nearest, match, nearest_match, rank = best, best, -np.inf, -np.inf, -np.inf
    inverse = state.stream[s.COLUMN_ROWS + INVERSE]
    equal = match_members(x, scale, matched, state.prototypes, counters, state.members, state.scores, inverse)
    for k in range(counters[s.SIZE]):
        unit, similarity = state.members[k], state.scores[k]
        if similarity > nearest_match:
            nearest, nearest_match = unit, similarity
        own_rank = (similarity - equal) * wins[unit] if settings.fair else similarity
        if own_rank > rank or similarity > match:
            if refusing and label != UNKNOWN and refuses(votes, unit, label):
                continue
            if similarity > match:
                closest, match = unit, similarity
            if own_rank > rank:
                best, rank = unit, own_rank
    refused = best == REJECTED
    if refused:
        best, match = nearest, nearest_match
    unit = best
    if may_open(counters, wins, state.scalars[s.SCATTER], settings, closest, equal - match, refused):
        unit = counters[UNITS]
        copy_scaled(state.prototypes[unit], x, 1.0 if counters[s.COORDINATES] == s.COLUMNS else scale)
        wins[unit], state.unit_blocks[unit] = 0, counters[s.POINTER]
        state.members[counters[s.SIZE]] = unit
        counters[UNITS] += 1
        counters[s.SIZE] += 1
    elif counters[s.COORDINATES] == s.COLUMNS:
        hebbian_move(state.prototypes[best], x, state.rates[best])
    else:
        renormalising_move(state.prototypes[best], x, scale, state.rates[best], 0.0)
    wins[unit] += 1
    state.rates[unit] = rate_after(settings.learning_rate, wins[unit])
    if votes is not None:
        if label != UNKNOWN:
            votes[unit, label] += 1
        if settings.max_units > 0 and counters[UNITS] > settings.max_units:
            counters[s.STATUS] = s.FULL
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
