"""Merging of units where ``max_units`` bounds the memory. Numpy, once per merge.

Two units of one block with w_i and w_j wins cost w_i w_j / (w_i + w_j) times their dissimilarity to merge (Ward's
criterion). Where votes are known, pairs with the same majority label come first. Only blocks with more than their share
of the bound give up units. Ties go to the lowest first unit, then to the lowest second.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem.base.normalised import INVERSE, squared_apart
from ccmem.core.codes import MERGE, MOVE
from ccmem.core.state import JOURNALED, SEEN, UNITS
from ccmem.core.typing import FloatArray, IntArray
from ccmem.kernels.competition import dot
from ccmem.kernels.jit import kernel_in_place
from ccmem.kernels.update import hebbian_move, renormalise
from ccmem.models.adaptive import state as s
from ccmem.models.adaptive.cold import list_members
from ccmem.models.adaptive.slots import UNKNOWN

OTHER_LABEL = 2.0**100
"""Factor on the cost of merging units of different labels: these come last, in the same order, without rounding."""


def merge_cheapest(state: Any, settings: Any, votes: IntArray, share: int) -> None:
    """Merge the cheapest pair within the blocks of more than ``share`` units; the last unit moves into the gap."""
    counters, last = state.counters, int(state.counters[UNITS]) - 1
    blocks, learned = state.unit_blocks[: last + 1], votes[: last + 1]
    able = np.bincount(blocks)[blocks] > share
    labels = np.full(last + 1, UNKNOWN)
    if learned.size:
        labels = np.where(learned.any(axis=1), learned.argmax(axis=1), UNKNOWN)
    by_distance = bool(counters[s.COORDINATES] == s.COLUMNS)
    a, b = cheapest_pair(state.prototypes, state.wins, blocks, labels, able, by_distance, state.columns[INVERSE])
    total = state.wins[a] + state.wins[b]
    hebbian_move(state.prototypes[a], state.prototypes[b], state.wins[b] / max(total, 1))
    if not by_distance:
        renormalise(state.prototypes[a], 0.0)
    state.wins[a], state.rates[a] = total, 1.0 / (1.0 / settings.learning_rate + 0.5 * total)
    if learned.size:
        votes[a] += votes[b]
    _note(state, MERGE, b, a)
    if b != last:
        for array in (state.prototypes, state.rates, state.wins, state.unit_blocks, votes):
            array[b : b + 1] = array[last : last + 1]
        _note(state, MOVE, last, b)
    votes[last : last + 1] = 0
    counters[UNITS] = last
    list_members(state)


def _note(state: Any, kind: int, origin: int, target: int) -> None:
    line = state.journal[state.counters[JOURNALED]]
    line[:] = kind, state.counters[SEEN] - 1, origin, target, state.wins[target], 0, 0
    state.counters[JOURNALED] += 1


@kernel_in_place
def cheapest_pair(
    prototypes: FloatArray, wins: IntArray, blocks: IntArray, labels: IntArray, able: Any, by_distance: bool,
    inverse: FloatArray,
) -> tuple[int, int]:  # fmt: skip
    """Return the pair of units of a block that costs least to merge."""
    least, a, b = np.inf, 0, 0
    for i in range(blocks.shape[0]):
        for j in range(i + 1, blocks.shape[0]):
            if not able[i] or blocks[i] != blocks[j]:
                continue
            w_i, w_j = float(wins[i]), float(wins[j])
            if by_distance:
                far = 0.5 * squared_apart(inverse, prototypes[i], prototypes[j])
            else:
                far = max(0.0, 1.0 - dot(prototypes[i], prototypes[j]))
            cost = w_i * w_j / max(w_i + w_j, 1.0) * far
            if labels[i] != labels[j] and labels[i] != UNKNOWN and labels[j] != UNKNOWN:
                cost *= OTHER_LABEL
            if cost < least:
                a, b, least = i, j, cost
    return a, b
