"""Plausibility of a state that was read from a file: kernels index by its numbers."""

from __future__ import annotations

import numpy as np

from ccmem.base.normalised import INVERSE
from ccmem.core.state import UNITS
from ccmem.models.adaptive import state as s
from ccmem.models.adaptive.state import AdaptiveState


def check_state(state: AdaptiveState, n_slots: int, bound: int | None, batch: int) -> None:
    """Raise ValueError unless ``state``, of the right layout, could result from learning."""
    counters = state.counters.tolist()  # plain numbers are quicker to compare
    units, blocks, rows = counters[UNITS], counters[s.BLOCKS], len(state.blocks)
    if not 1 <= blocks <= rows or not 0 <= counters[s.POINTER] < blocks or len(state.ages) != rows:
        raise ValueError(f"block {counters[s.POINTER]} of {blocks} is in use, with space for {rows}")
    if bound is not None and units > bound:
        raise ValueError(f"{units} units do not fit max_units={bound}")
    if units and state.unit_blocks[:units].max() >= blocks:
        raise ValueError("some units belong to a block that does not exist")
    sizes = np.bincount(state.unit_blocks[:units], minlength=blocks)
    if bound is None and sizes.max() > n_slots:
        raise ValueError(f"some block has more than n_slots={n_slots} units")
    if counters[s.SIZE] != sizes[counters[s.POINTER]]:
        raise ValueError(f"block {counters[s.POINTER]} has {sizes[counters[s.POINTER]]} units, not {counters[s.SIZE]}")
    slots = max(counters[place] for place in (s.LATEST, s.KEPT, s.WAITING)) <= s.RING and counters[s.LATEST] < s.RING
    if counters[s.ROWS] >= batch or not slots or counters[s.STATUS]:
        raise ValueError("its counters are damaged")
    if counters[s.WAITING] > counters[s.KEPT] or (counters[s.FRESH] and not counters[s.ALARM]):
        raise ValueError("its counters are damaged")
    if state.ages.min() < 0 or (counters[s.WATCHED] and not counters[s.AGE]):
        raise ValueError("its blocks have impossible ages")
    if state.gaps.size and state.gaps[:4].min() < 0:
        raise ValueError("its counts of missing readings are damaged")
    if counters[s.COORDINATES] > s.DIRECTIONS or state.columns[INVERSE].min() < 0:
        raise ValueError("its coordinates are damaged")
