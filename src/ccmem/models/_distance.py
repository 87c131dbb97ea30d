"""What iWTA and iGMM share: a fixed number of units compared by p-norm distance, and where they start."""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem._jit import kernel
from ccmem._typing import BoolArray, FloatArray, IntArray
from ccmem._validation import Rule, array, choice, either, integer, number
from ccmem.base import CompetitiveMemory
from ccmem.competition import distances
from ccmem.memory import UNITS, UnitState, new_units
from ccmem.prediction import in_slabs, nearest
from ccmem.update import count_win

DISTANCE_RULES: dict[str, Rule] = {
    "n_units": integer(1),
    "p": number(1.0),
    "learning_rate": number(0.0, 1.0, open_below=True),
    "rate_decay": number(0.0, 1.0, open_below=True),
    "init": either(choice("first"), array()),
}


@kernel
def open_unit(state: UnitState, settings: Any, x: FloatArray) -> int:
    """Let ``x`` become the next unit; return its index."""
    unit = state.counters[UNITS]
    state.prototypes[unit] = x
    state.rates[unit] = settings.learning_rate
    count_win(state.rates, state.wins, unit, settings.rate_decay)
    state.counters[UNITS] += 1
    return unit


class DistanceMemory(CompetitiveMemory):
    """A fixed number of units, each a point; ``init`` says where they start."""

    n_units: int
    p: float
    learning_rate: float
    init: Any
    _shape_parameters = ("n_units",)
    _by_distance = True

    def _new_state(self, n_features: int, dtype: np.dtype[Any], rng: np.random.Generator) -> UnitState:
        state = new_units(self.n_units, n_features, dtype, self.learning_rate)
        if not isinstance(self.init, str):
            given = np.asarray(self.init)
            if given.shape != (self.n_units, n_features) or not np.isfinite(given.astype(np.float64)).all():
                raise ValueError(
                    f"{type(self).__name__}: init has shape {given.shape}; it must hold finite prototypes of shape "
                    f"(n_units, n_features) = ({self.n_units}, {n_features})"
                )
            state.prototypes[:] = given
            state.counters[UNITS] = self.n_units
        return state

    def _check_state(self, state: UnitState) -> None:
        if len(state.prototypes) != self.n_units:
            raise ValueError(f"there is room for {len(state.prototypes)} units, not for n_units={self.n_units}")

    def _score(self, X: FloatArray, prototypes: FloatArray, out: FloatArray) -> None:
        p, work = float(self.p), len(X) * prototypes.size
        in_slabs(lambda s: distances(X[s], prototypes, p, out[s]), len(X), work)

    def _match(self, X: FloatArray, prototypes: FloatArray, competes: BoolArray, winners: IntArray) -> None:
        nearest(X, prototypes, competes, float(self.p), winners)
