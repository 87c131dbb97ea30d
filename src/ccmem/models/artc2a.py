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
from ccmem.core.codes import MERGE, MOVE
from ccmem.core.state import JOURNALED, UNITS
from ccmem.kernels.competition import dots, lowest
from ccmem.kernels.jit import kernel_in_place
from ccmem.kernels.journal import note
from ccmem.kernels.update import copy_scaled, hebbian_move, renormalise
from ccmem.ncl.growths import MAX_UNITS
from ccmem.ncl.rates import DECAY


@kernel_in_place
def closest_pair(state: Any, settings: Any) -> tuple[int, int, float]:
    """Return the two most similar units; recompute only similarities of units that moved since the last call."""
    n, similarity, neighbours, moved = state.counters[UNITS], state.pair_similarity, state.neighbours, state.moved
    h, changed, n_changed = settings.h, settings.changed, 0
    for u in range(n):  # numpy's flatnonzero adds four seconds of compile time
        if moved[u]:
            changed[n_changed] = u
            n_changed += 1
    for u in changed[:n_changed]:
        dots(state.prototypes, 0, n, state.prototypes[u], h)
        for b in range(u):
            similarity[b, u] = h[b]
        for b in range(u + 1, n):
            similarity[u, b] = h[b]
    first, most = -1, -np.inf
    for a in range(n - 1):
        near = neighbours[a]
        if moved[a] or not a < near < n or moved[near]:
            near = a + 1
            for b in range(a + 2, n):
                if similarity[a, b] > similarity[a, near]:
                    near = b
        else:
            for u in changed[:n_changed]:
                if u > a:
                    closer = similarity[a, u] - similarity[a, near]
                    if closer > 0.0 or (closer == 0.0 and u < near):
                        near = u
        neighbours[a] = near
        if similarity[a, near] > most:
            first, most = a, similarity[a, near]
    for u in changed[:n_changed]:
        moved[u] = False
    return first, neighbours[first], most


@kernel_in_place
def merge_closest(state: Any, settings: Any) -> float:
    """Merge the two most similar units, move the last unit into the gap, and return the pair's similarity."""
    a, b, similarity = closest_pair(state, settings)
    last = state.counters[UNITS] - 1
    hebbian_move(state.prototypes[a], state.prototypes[b], 0.5)
    renormalise(state.prototypes[a], 0.0)
    state.rates[a] = min(state.rates[a], state.rates[b])
    state.wins[a] += state.wins[b]
    note(state.counters, state.journal, MERGE, b, a, state.wins[a])
    if b != last:
        copy_scaled(state.prototypes[b], state.prototypes[last], 1.0)
        state.rates[b] = state.rates[last]
        state.wins[b] = state.wins[last]
        note(state.counters, state.journal, MOVE, last, b, state.wins[b])
    state.wins[last] = 0
    state.moved[a] = True
    state.moved[b] = True
    state.counters[UNITS] = last
    return similarity


@kernel_in_place
def reset(state: Any, settings: Any, n: int, winner: int) -> bool:
    """Mark the unit that moved and apply the constraint reset; return True if the journal is full."""
    best = settings.best[0]
    match = -settings.h[best] if n > 0 else -np.inf
    if winner == n:
        state.rates[n] = settings.learning_rate
        if n + 1 == settings.limit:
            state.moved[n] = True
            similarity = merge_closest(state, settings)
            state.vigilance[0] = match if settings.vigilance_reset else similarity
    if winner >= 0 and state.moved.shape[0] > 0:
        state.moved[winner] = True
    return state.counters[JOURNALED] + 2 > state.journal.shape[0]


def _if_bounded(rank: int) -> Any:
    """Return the shape of an array with ``rank`` axes of units, which is empty without a bound."""
    return lambda model, capacity: (capacity if model.max_units else 0,) * rank


@ncl.competition(
    whole=True,
    parameters={
        **DECAY,
        "vigilance": ncl.Parameter(0.9, ncl.number(-1.0, 1.0)),
        "vigilance_reset": ncl.Parameter("input", ncl.choice("input", "pair"), lambda value: value == "input"),
    },
    state={
        "vigilance": ncl.Array("one"),
        "pair_similarity": ncl.Array(_if_bounded(2), stored=False),  # of units a < b at [a, b]
        "neighbours": ncl.Array(_if_bounded(1), np.int64, stored=False),  # of a: the most similar unit b > a
        "moved": ncl.Array(_if_bounded(1), np.bool_, fill=1, stored=False),  # units whose entries above are invalid
    },
    scratch={"changed": ncl.per_unit(np.int64)},
    hooks={"after": reset},
)
def resonant(state: Any, settings: Any, n: int) -> int:
    """Select the most similar unit if its similarity exceeds the current vigilance."""
    settings.best[0] = lowest(settings.h, n)
    return 1 if n > 0 and -settings.h[settings.best[0]] > state.vigilance[0] and settings.scale[0] > 0.0 else 0


@ncl.growth(whole=True, gradual=True, parameters={"max_units": MAX_UNITS})
def mismatched(state: Any, settings: Any, n: int, k: int) -> bool:
    """True if no unit won, unless the row is a zero vector, which has no direction."""
    return k == 0 and settings.scale[0] > 0.0


class ARTC2A(ncl.Model):
    """ART-C 2A: samples that match no unit become units; the two closest units merge if there are too many.

    Parameters
    ----------
    max_units : int or None, default=125
        Bound on the number of units (C_theta in the paper); None means no bound.
    vigilance : float, default=0.9
        Similarity that a unit must exceed to learn a sample (rho); constraint resets lower it. The paper does not give
        the initial value.
    learning_rate : float, default=0.02
        Fraction of the distance to the sample that a unit moves at its first resonance (the paper's value for MNIST).
    rate_decay : float, default=1.0
        Factor of a unit's rate at each resonance (the paper's value for MNIST).
    vigilance_reset : "input" or "pair", default="input"
        Vigilance after a constraint reset: the best match of the sample that caused it, or the similarity of the merged
        pair. "input" approaches the paper's table.
    random_state : ignored
        This model draws no random numbers; the parameter exists for symmetry.

    Attributes
    ----------
    vigilance_ : float
        Current vigilance.
    prototypes_, win_counts_, learning_rates_, n_units_, n_samples_seen_
        The content of the memory; see :class:`ccmem.base.memory.CompetitiveMemory`. A merge renumbers at most two
        units.
    """

    activation = ncl.cosine
    competition = resonant
    update = ncl.renormalising
    growth = mismatched
    parameters: ClassVar[dict[str, ncl.Parameter]] = {}

    def __init__(
        self,
        max_units: int | None = 125,
        *,
        vigilance: float = 0.9,
        learning_rate: float = 0.02,
        rate_decay: float = 1.0,
        vigilance_reset: str = "input",
        random_state: Any = None,
    ) -> None:
        self._assign(locals())

    @property
    def vigilance_(self) -> float:
        """Current vigilance, after any constraint resets."""
        self._started()
        return float(self._state.vigilance[0])

    def _limit(self) -> int:
        return self.max_units + 1 if self.max_units else super()._limit()  # one more until two are merged

    def _empty_state(self, capacity: int, n_features: int, dtype: Any) -> Any:
        state = super()._empty_state(capacity, n_features, dtype)
        state.vigilance[0] = self.vigilance
        return state
