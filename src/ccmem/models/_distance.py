"""What iWTA and iGMM share: a fixed number of units compared by p-norm distance, and where they start."""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem._typing import BoolArray, FloatArray, IntArray
from ccmem.base import CompetitiveMemory
from ccmem.kernels.competition import distance_powers, distances, lowest
from ccmem.kernels.jit import kernel_in_place
from ccmem.kernels.matching import in_slabs, nearest
from ccmem.kernels.rows import check_finite
from ccmem.kernels.update import copy_scaled, count_win
from ccmem.memory import UNITS, UnitState, new_units
from ccmem.parameters import Rule, array, choice, either, exactly, integer, number

HIGHEST_ORDER = 16.0
"""Of a distance with powers; beyond it, the largest difference (p = inf) is as good as all there is to a distance."""
LARGEST_TO_RAISE = 1e15
"""Differences of numbers up to this, to the highest power, and a great many of them added up, are still numbers."""

DISTANCE_RULES: dict[str, Rule] = {
    "n_units": integer(1),
    "p": either(number(1.0, HIGHEST_ORDER), exactly(np.inf)),
    "learning_rate": number(0.0, 1.0, open_below=True),
    "rate_decay": number(0.0, 1.0, open_below=True),
    "init": either(choice("first"), array()),
}


@kernel_in_place
def compete(state: UnitState, settings: Any, X: FloatArray, row: int) -> int:
    """The unit nearest to a row of ``X``, after all distances have been filled in to ``settings.h``.

    While units are missing, a row that equals none becomes the next one, with index ``counters[UNITS]`` as it was.
    """
    n = state.counters[UNITS]
    distance_powers(state.prototypes, n, X, row, settings.p, settings.h)
    unit = lowest(settings.h, n)
    if n == settings.n_units or (unit >= 0 and settings.h[unit] == 0.0):
        return unit
    copy_scaled(state.prototypes[n], X[row], 1.0)
    state.rates[n] = settings.learning_rate
    count_win(state.rates, state.wins, n, settings.rate_decay)
    state.counters[UNITS] = n + 1
    return n


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
            check_finite(state.prototypes)
            state.counters[UNITS] = self.n_units
        return state

    def _check(self, X: Any, reset: bool, finite: bool = True, missing: bool = True) -> FloatArray:
        rows = super()._check(X, reset, finite, missing)
        self._check_powers(rows)
        if not reset:
            self._check_powers(self._state.prototypes)
        return rows

    def _check_powers(self, numbers: FloatArray) -> None:
        """Raise if differences of these numbers could overflow when they are raised to the power of p."""
        if self.p not in (1.0, 2.0, np.inf) and (np.abs(numbers) > LARGEST_TO_RAISE).any():
            raise ValueError(
                f"{type(self).__name__}: numbers beyond {LARGEST_TO_RAISE:.0e} are too large for distances of order "
                f"p={self.p}; rescale the data, or take p=1, 2 or inf"
            )

    def _check_state(self, state: UnitState) -> None:
        if len(state.prototypes) != self.n_units:
            raise ValueError(f"the state holds {len(state.prototypes)} units, not n_units={self.n_units}")
        self._check_powers(state.prototypes)

    def _score(self, X: FloatArray, prototypes: FloatArray, out: FloatArray) -> None:
        p, work = float(self.p), len(X) * prototypes.size
        in_slabs(lambda s: distances(X[s], prototypes, p, out[s]), len(X), work)

    def _match(self, X: FloatArray, prototypes: FloatArray, competes: BoolArray, winners: IntArray) -> None:
        nearest(X, prototypes, competes, float(self.p), winners)
