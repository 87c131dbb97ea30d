"""State shared by every model, as NamedTuples of arrays that numba accepts whole.

The first five fields of a model's state are those of :class:`UnitState`; more may follow. Everything that changes while
learning is in these arrays (scalars in ``counters``), so one loop over fields copies, compares or saves a memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ccmem.core.allocation import aligned_zeros, check_size
from ccmem.core.typing import FloatArray, IntArray

SEEN, UNITS, JOURNALED = 0, 1, 2
"""Indices into ``counters`` shared by all models; a model's own counters start at ``OWN``."""
OWN = 3

JOURNAL_COLUMNS = 7
FIRST_JOURNAL_LINES, MOST_JOURNAL_LINES = 4, 256
"""Initial and largest length of the journal, in lines. It grows on demand: most memories of a fleet write few lines."""


class UnitState(NamedTuple):
    """Prototypes and per-unit statistics; rows beyond ``counters[UNITS]`` are spare capacity."""

    prototypes: FloatArray
    rates: FloatArray
    wins: IntArray
    counters: IntArray
    journal: IntArray
    """Lines (kind, step, from, to, count, uncertainty, evidence) written since Python last read the journal."""


def new_units(capacity: int, n_features: int, dtype: np.dtype[Any], learning_rate: float, n_own: int = 0) -> UnitState:
    """Allocate arrays for ``capacity`` unused units and ``n_own`` model-specific counters."""
    check_size(capacity * (n_features * np.dtype(dtype).itemsize + 16), f"{capacity:,} units of {n_features} features")
    return UnitState(
        prototypes=aligned_zeros((capacity, n_features), dtype),
        rates=np.full(capacity, learning_rate, np.float64),
        wins=np.zeros(capacity, np.int64),
        counters=np.zeros(OWN + n_own, np.int64),
        journal=np.zeros((FIRST_JOURNAL_LINES, JOURNAL_COLUMNS), np.int64),
    )
