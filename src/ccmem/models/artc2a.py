"""ART-C 2A: adaptive resonance with a bound on the number of units.

For a sample x, prototypes M[i] of unit length and vigilance rho (paper, algorithm 3):

    x' = x / (|x| + e),   h[i] = M[i] . x'
    resonance         if max h > rho:   M[i] <- (v[i] x' + (1 - v[i]) M[i]) / |...|,   v[i] <- decay * v[i]
    mismatch reset    otherwise:        x' becomes a new unit, with the first rate
    constraint reset  if units > bound: the two most similar units are replaced by their renormalised mean,
                                        and rho is reset

Source: A. Ororbia, "Continual Competitive Memory", 2021, after He, Tan, Tan, "Modified ART 2A growing network capable
of generating a fixed number of nodes", 2004. Reference in plain numpy: ``tests/naive/artc2a.py``. Ties go to the lowest
index (of pairs: to the lowest first unit, then the lowest second). The paper does not specify, and this implementation
defines: the merged unit keeps the smaller rate and the sum of both win counts; a zero vector has no direction and is
not learned. ``vigilance_reset`` defines the new rho: ``"input"``, the best match of the sample that caused the reset,
approaches the paper's table; ``"pair"``, the similarity of the merged pair, causes thousands of merges and does not.

>>> import numpy as np
>>> memory = ARTC2A(max_units=2, vigilance=0.9, learning_rate=1.0)
>>> memory.partial_fit(np.array([[5.0, 0.0], [0.0, 2.0], [3.0, 4.0]])).prototypes_.round(3)   # 2 and 3 are merged
array([[1.   , 0.   ],
       [0.316, 0.949]])
>>> memory.win_counts_.tolist(), round(memory.vigilance_, 3)      # 0.8: best match of (3, 4) before it was added
([1, 2], 0.8)
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ccmem import ncl
from ccmem.core.typing import FloatArray
from ccmem.kernels.competition import dots, highest, lowest
from ccmem.kernels.jit import kernel_in_place
from ccmem.kernels.update import hebbian_move, renormalise
from ccmem.ncl.competitions import SIMILARITY


@kernel_in_place
def closest_pair(prototypes: FloatArray, n: int, h: FloatArray) -> tuple[int, int, float]:
    """Return the two most similar of the first ``n`` units, and their similarity."""
    a, b, most = -1, -1, -np.inf
    for i in range(n - 1):
        dots(prototypes, i + 1, n, prototypes[i], h)
        near = highest(h, n - i - 1)
        if h[near] > most:
            a, b, most = i, i + 1 + near, h[near]
    return a, b, most


@kernel_in_place
def reset(state: Any, settings: Any, X: FloatArray, row: int, n: int, winner: int) -> bool:
    """Give a new unit the first rate; if there are too many units now, reset the vigilance and return True."""
    full = winner == n and n + 1 == settings.limit
    if winner == n:
        state.rates[n] = settings.learning_rate
    if full and settings.vigilance_reset:
        state.vigilance[0] = -settings.h[settings.best[0]]
    return full


@ncl.competition(
    whole=True,
    parameters={
        "vigilance": SIMILARITY,
        "vigilance_reset": ncl.Parameter(
            "input", ncl.choice("input", "pair"), lambda v: v == "input", about="New rho."
        ),
    },
    state={"vigilance": ncl.Array("one", fill=lambda model: model.vigilance)},
    hooks={"after": reset},
)
def resonant(state: Any, settings: Any, n: int) -> int:
    """Select the most similar unit if its similarity exceeds the current vigilance."""
    settings.best[0] = lowest(settings.h, n)
    return 1 if n > 0 and -settings.h[settings.best[0]] > state.vigilance[0] else 0


class ARTC2A(ncl.Model, max_units=125, vigilance=0.9, learning_rate=0.02):
    """ART-C 2A: samples that match no unit become units; the two closest units merge if there are too many.

    The defaults of the rates are the paper's for MNIST; it does not give the first vigilance.
    """

    activation = ncl.cosine
    competition = resonant
    update = ncl.renormalising
    growth = ncl.unmatched
    parameters: ClassVar[dict[str, ncl.Parameter]] = {"random_state": ncl.SEED}

    @property
    def vigilance_(self) -> float:
        """Current vigilance, after any constraint resets."""
        return float(self._started().vigilance[0])

    def _decide(self) -> bool:
        """Merge the closest pair if there is one unit too many."""
        state, n = self._state, self.n_units_
        if not self.max_units or n <= self.max_units:
            return False
        a, b, similarity = closest_pair(state.prototypes, n, np.empty(n))
        hebbian_move(state.prototypes[a], state.prototypes[b], 0.5)
        renormalise(state.prototypes[a], 0.0)
        state.rates[a] = min(state.rates[a], state.rates[b])
        state.wins[a] += state.wins[b]
        if self.vigilance_reset == "pair":
            state.vigilance[0] = similarity
        self._remove([b], into=a)
        return True

    def _limit(self) -> int:
        return self.max_units + 1 if self.max_units else super()._limit()  # one more until two are merged
