"""Missing readings outside kernels: room to count them, and similarities by the readings that are there."""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem.core.allocation import aligned_zeros
from ccmem.core.typing import FloatArray
from ccmem.models.adaptive import state as s


def expecting_gaps(state: Any) -> Any:
    """Return ``state`` with room for counts of missing readings."""
    if len(state.gaps):
        return state
    state = state._replace(gaps=aligned_zeros((s.N_GAPS, state.prototypes.shape[1]), np.float64))
    state.gaps[s.READINGS] = state.counters[s.ROWS]
    return state


def cosines_of(X: FloatArray, prototypes: FloatArray) -> FloatArray:
    """Return the similarity of every row to every unit by the readings that are there; 0 if there is none."""
    there = ~np.isnan(X)
    rows, units = np.where(there, X, 0.0).astype(np.float64), prototypes.astype(np.float64)
    lengths = np.sqrt((rows * rows).sum(axis=1))[:, np.newaxis] * np.sqrt(there.astype(np.float64) @ (units * units).T)
    return np.divide(rows @ units.T, lengths, out=np.zeros_like(lengths), where=lengths > 0.0)
