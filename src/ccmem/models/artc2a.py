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

from typing import Any, ClassVar, NamedTuple

import numpy as np

from ccmem.base.memory import REJECTED, CompetitiveMemory
from ccmem.core.allocation import grown
from ccmem.core.codes import MERGE, MOVE
from ccmem.core.parameters import Rule, choice, integer, number, optional
from ccmem.core.state import JOURNALED, SEEN, UNITS, new_units
from ccmem.core.typing import BoolArray, FloatArray, IntArray
from ccmem.kernels.competition import dots, dots_and_square, highest
from ccmem.kernels.jit import kernel_in_place
from ccmem.kernels.journal import note
from ccmem.kernels.update import copy_scaled, count_win, hebbian_move, renormalise, renormalising_move

_FIRST_ROOM = 64
"""First capacity of a memory without bound; it doubles whenever it is full."""


class ARTState(NamedTuple):
    prototypes: FloatArray
    rates: FloatArray
    wins: IntArray
    counters: IntArray
    journal: IntArray
    vigilance: FloatArray
    """Vigilance rho, an array of one number."""
    pair_similarity: FloatArray
    """Similarity of units a < b at [a, b], valid while neither is marked in ``moved`` (empty without a bound)."""
    neighbours: IntArray
    """For every unit a, the most similar unit with a higher index, valid while neither is marked in ``moved``."""
    moved: BoolArray


class ARTSettings(NamedTuple):
    max_units: int
    learning_rate: float
    rate_decay: float
    reset_to_input: bool
    epsilon: float
    h: FloatArray
    """Scratch space: similarity to every unit."""
    changed: IntArray
    """Scratch space: indices of changed units."""


@kernel_in_place
def closest_pair(state: ARTState, settings: ARTSettings) -> tuple[int, int, float]:
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
def merge_closest(state: ARTState, settings: ARTSettings) -> float:
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
    state.moved[a] = True
    state.moved[b] = True
    state.counters[UNITS] = last
    return similarity


@kernel_in_place
def learn(state: ARTState, settings: ARTSettings, X: FloatArray, winners: IntArray) -> int:
    counters, bounded, h = state.counters, settings.max_units > 0, settings.h
    for r in range(X.shape[0]):
        x, n = X[r], counters[UNITS]
        if n == state.prototypes.shape[0] or counters[JOURNALED] + 2 > state.journal.shape[0]:
            return r
        squared_length = dots_and_square(state.prototypes, 0, n, X, r, counters[SEEN] % 2 == 1, h)
        if squared_length == 0.0:
            winners[r] = REJECTED
            counters[SEEN] += 1
            continue
        scale = 1.0 / (np.sqrt(squared_length) + settings.epsilon)
        for i in range(n):
            h[i] *= scale
        best = highest(h, n)
        best_match = h[best] if n > 0 else -np.inf
        if best_match > state.vigilance[0]:
            renormalising_move(state.prototypes[best], x, scale, state.rates[best], 0.0)
            count_win(state.rates, state.wins, best, settings.rate_decay)
        else:
            best = n
            copy_scaled(state.prototypes[n], x, scale)
            state.rates[n] = settings.learning_rate
            state.wins[n] = 1
            counters[UNITS] = n + 1
            if bounded and n + 1 > settings.max_units:
                state.moved[n] = True
                similarity = merge_closest(state, settings)
                state.vigilance[0] = best_match if settings.reset_to_input else similarity
        if bounded:
            state.moved[best] = True
        winners[r] = best
        counters[SEEN] += 1
    return X.shape[0]


class ARTC2A(CompetitiveMemory):
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

    _rules: ClassVar[dict[str, Rule]] = {
        "max_units": optional(integer(1)),
        "vigilance": number(-1.0, 1.0),
        "learning_rate": number(0.0, 1.0, open_below=True),
        "rate_decay": number(0.0, 1.0, open_below=True),
        "vigilance_reset": choice("input", "pair"),
    }
    _shape_parameters = ("max_units",)
    _state_type = ARTState
    _derived = ("pair_similarity", "neighbours", "moved")
    _learn_kernel = staticmethod(learn)

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
        self.max_units = max_units
        self.vigilance = vigilance
        self.learning_rate = learning_rate
        self.rate_decay = rate_decay
        self.vigilance_reset = vigilance_reset
        self.random_state = random_state

    @property
    def vigilance_(self) -> float:
        """Current vigilance, after any constraint resets."""
        self._started()
        return float(self._state.vigilance[0])

    def _new_state(self, n_features: int, dtype: np.dtype[Any], rng: np.random.Generator) -> ARTState:
        capacity = _FIRST_ROOM if self.max_units is None else self.max_units + 1
        units = new_units(capacity, n_features, dtype, self.learning_rate)
        return ARTState(
            *units, vigilance=np.array([self.vigilance], np.float64), **self._derive(units.prototypes, units.wins)
        )

    def _derive(self, prototypes: FloatArray, wins: IntArray) -> dict[str, Any]:
        pairs = 0 if self.max_units is None else len(prototypes)
        return {
            "pair_similarity": np.zeros((pairs, pairs)),
            "neighbours": np.zeros(pairs, np.int64),
            "moved": np.ones(pairs, np.bool_),
        }

    def _layout(self, capacity: int, n_features: int, dtype: np.dtype[Any]) -> dict[str, Any]:
        return {**super()._layout(capacity, n_features, dtype), "vigilance": ((1,), np.float64)}

    def _check_state(self, state: ARTState) -> None:
        fits = state.counters[UNITS] <= (self.max_units or 0) == len(state.prototypes) - 1
        if not (fits if self.max_units is not None else len(state.prototypes) % _FIRST_ROOM == 0):
            raise ValueError(f"{state.counters[UNITS]} units do not fit max_units={self.max_units}")

    def _grow(self, row: FloatArray) -> None:
        state = self._state
        if state.counters[UNITS] == len(state.prototypes):
            rows = 2 * len(state.prototypes)
            self._state = state._replace(
                prototypes=grown(state.prototypes, rows), rates=grown(state.rates, rows), wins=grown(state.wins, rows)
            )

    def _settings(self) -> ARTSettings:
        return ARTSettings(
            int(self.max_units or 0),
            float(self.learning_rate),
            float(self.rate_decay),
            self.vigilance_reset == "input",
            self._epsilon,
            h=np.empty(len(self._state.prototypes)),
            changed=np.empty(len(self._state.prototypes), np.int64),
        )
