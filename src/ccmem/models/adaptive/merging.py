"""Bounded memory: which two units to merge when there is one too many.

Two units of one block with w_i and w_j wins cost w_i w_j / (w_i + w_j) * (1 - M[i].M[j]) to merge (Ward's criterion:
what the samples behind them lose in similarity). Where label votes are known, pairs with the same majority label come
first. Only blocks with more than their share of the bound give up units, so that no task's knowledge is wiped out. Ties
go to the lowest first unit, then to the lowest second.

A unit's cheapest partner is remembered until one of the two changes: blocks give up units while they wait, and a
waiting block changes only by its own merges.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem._typing import BoolArray, IntArray
from ccmem.kernels.competition import dot
from ccmem.kernels.jit import kernel_in_place
from ccmem.kernels.update import copy_scaled, hebbian_move, renormalise
from ccmem.memory import MERGE, MOVE, UNITS, note

UNKNOWN = -1
"""A majority label that is not known."""
TO_FIND = 0
"""A partner that has to be searched; one that is known is kept as its index + 1."""
OTHER_LABEL = 2.0**100
"""What the cost of a pair with different labels is multiplied with: last of all, order kept, nothing rounded."""


@kernel_in_place
def majority(votes: IntArray, unit: int) -> int:
    """The label that ``unit`` learned most often, or UNKNOWN."""
    best, most = UNKNOWN, 0
    for label in range(votes.shape[1]):  # numpy's argmax takes a second longer to compile
        if votes[unit, label] > most:
            best, most = label, votes[unit, label]
    return best


@kernel_in_place
def merge_cost(state: Any, votes: IntArray, a: int, b: int) -> float:
    """What it costs to merge two units."""
    w_a, w_b = float(state.wins[a]), float(state.wins[b])
    cost = w_a * w_b / (w_a + w_b) * max(0.0, 1.0 - dot(state.prototypes[a], state.prototypes[b]))
    label_a, label_b = majority(votes, a), majority(votes, b)
    if label_a != UNKNOWN and label_b != UNKNOWN and label_a != label_b:
        cost *= OTHER_LABEL
    return cost


@kernel_in_place
def find_partner(state: Any, votes: IntArray, unit: int) -> None:
    """Search the unit of the same block that is cheapest to merge ``unit`` with."""
    best, least = -1, np.inf
    for other in range(state.counters[UNITS]):
        if other != unit and state.unit_blocks[other] == state.unit_blocks[unit]:
            cost = merge_cost(state, votes, unit, other)
            if cost < least:
                best, least = other, cost
    state.partners[unit], state.costs[unit] = best + 1, least


@kernel_in_place
def merge_cheapest(state: Any, votes: IntArray, gives: BoolArray) -> tuple[int, int]:
    """Merge the cheapest pair within the blocks that give; the last unit moves into the gap. Return (gone, moved)."""
    a: Any = np.int64(-1)  # a plain -1 would have functions compiled for it
    least = np.inf
    for unit in range(state.counters[UNITS]):
        if gives[state.unit_blocks[unit]]:
            if state.partners[unit] == TO_FIND:
                find_partner(state, votes, unit)
            if state.costs[unit] < least:
                a, least = unit, state.costs[unit]
    b = state.partners[a] - 1
    combine(state, votes, a, b)
    last = state.counters[UNITS] - 1
    note(state.counters, state.journal, MERGE, b, a, state.wins[a])
    if b != last:
        replace(state, votes, b, last)
        note(state.counters, state.journal, MOVE, last, b, state.wins[b])
    state.counters[UNITS] = last
    mend_partners(state, votes, a, b, last)
    return b, last


@kernel_in_place
def combine(state: Any, votes: IntArray, a: int, b: int) -> None:
    """Let ``a`` become the mean of two units, weighted by wins, with the votes of both and the smaller rate."""
    total = state.wins[a] + state.wins[b]
    hebbian_move(state.prototypes[a], state.prototypes[b], state.wins[b] / total)
    renormalise(state.prototypes[a], 0.0)
    state.rates[a] = min(state.rates[a], state.rates[b])
    state.wins[a] = total
    state.errors[a] = 0.0
    for label in range(votes.shape[1]):
        votes[a, label] += votes[b, label]
        votes[b, label] = 0


@kernel_in_place
def replace(state: Any, votes: IntArray, gap: int, last: int) -> None:
    """Move unit ``last`` into the gap."""
    copy_scaled(state.prototypes[gap], state.prototypes[last], 1.0)
    state.rates[gap] = state.rates[last]
    state.wins[gap] = state.wins[last]
    state.errors[gap] = state.errors[last]
    state.unit_blocks[gap] = state.unit_blocks[last]
    state.partners[gap], state.costs[gap] = state.partners[last], state.costs[last]
    for label in range(votes.shape[1]):
        votes[gap, label], votes[last, label] = votes[last, label], 0


@kernel_in_place
def mend_partners(state: Any, votes: IntArray, merged: int, gap: int, last: int) -> None:
    """Bring remembered partners up to date after a merge: forget what changed, offer the changed units to the rest."""
    state.partners[merged] = TO_FIND
    for unit in range(state.counters[UNITS]):
        partner = state.partners[unit] - 1
        if partner in (merged, gap, last):
            state.partners[unit] = TO_FIND
        elif state.partners[unit] != TO_FIND and state.unit_blocks[unit] == state.unit_blocks[merged]:
            cost = merge_cost(state, votes, unit, merged)
            if cost < state.costs[unit] or (cost == state.costs[unit] and merged < partner):
                state.partners[unit], state.costs[unit] = merged + 1, cost
    if gap == last:
        return
    for unit in range(state.counters[UNITS]):  # what has moved to a lower index wins ties that it used to lose
        known = state.partners[unit] > gap + 1 and state.unit_blocks[unit] == state.unit_blocks[gap]
        if known and unit != gap and merge_cost(state, votes, unit, gap) == state.costs[unit]:
            state.partners[unit] = gap + 1
