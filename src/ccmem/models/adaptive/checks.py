"""Plausibility of a state that was read from a file: kernels index by its numbers."""

from __future__ import annotations

import numpy as np

from ccmem.core.state import UNITS
from ccmem.models.adaptive.coordinates import DIRECTIONS, INVERSE
from ccmem.models.adaptive.state import (
    AGE,
    ALARM,
    BLOCKS,
    COORDINATES,
    FRESH,
    KEPT,
    LATEST,
    POINTER,
    RING,
    ROWS,
    SIZE,
    STATUS,
    WAITING,
    WATCHED,
    AdaptiveState,
)


def check_state(state: AdaptiveState, n_slots: int, bound: int | None, batch: int) -> None:
    """Raise ValueError unless ``state``, of the right layout, could result from learning."""
    counters = state.counters.tolist()  # plain numbers are quicker to compare
    units, blocks, rows = counters[UNITS], counters[BLOCKS], len(state.blocks)
    if not 1 <= blocks <= rows or not 0 <= counters[POINTER] < blocks or len(state.ages) != rows:
        raise ValueError(f"block {counters[POINTER]} of {blocks} is in use, with space for {rows}")
    if bound is not None and units > bound:
        raise ValueError(f"{units} units do not fit max_units={bound}")
    if units and state.unit_blocks[:units].max() >= blocks:
        raise ValueError("some units belong to a block that does not exist")
    sizes = np.bincount(state.unit_blocks[:units], minlength=blocks)
    if bound is None and sizes.max() > n_slots:
        raise ValueError(f"some block has more than n_slots={n_slots} units")
    if counters[SIZE] != sizes[counters[POINTER]]:
        raise ValueError(f"block {counters[POINTER]} has {sizes[counters[POINTER]]} units, not {counters[SIZE]}")
    slots = max(counters[place] for place in (LATEST, KEPT, WAITING)) <= RING and counters[LATEST] < RING
    if counters[ROWS] >= batch or not slots or counters[STATUS]:
        raise ValueError("its counters are damaged")
    if counters[WAITING] > counters[KEPT] or (counters[FRESH] and not counters[ALARM]):
        raise ValueError("its counters are damaged")
    if state.ages.min() < 0 or (counters[WATCHED] and not counters[AGE]):
        raise ValueError("its blocks have impossible ages")
    if state.gaps.size and state.gaps[:4].min() < 0:
        raise ValueError("its counts of missing readings are damaged")
    if counters[COORDINATES] > DIRECTIONS or state.columns[INVERSE].min() < 0:
        raise ValueError("its coordinates are damaged")
