"""Incremental winner-take-all (iWTA): the simplest competitive memory, online vector quantisation.

For a sample x and prototypes M[i] (paper, section 4.1):

    h[i] = ||x - M[i]||_p                   competition by distance
    w    = the K units with smallest h      distinct, nearest first, ties to the lowest index
    M[i] <- M[i] + v[i] (x - M[i])          for the winners only
    v[i] <- decay * v[i]                    per-unit rate (decay = 1 gives the paper's constant rate)

Source: A. Ororbia, "Continual Competitive Memory", 2021, equations 5 to 8. Left open there and chosen here: where
prototypes start (``init``); the p-norms are compared before their root is taken, which keeps the order.

>>> import numpy as np
>>> memory = IncrementalWTA(n_units=2, learning_rate=0.5)
>>> memory.partial_fit(np.array([[0.0, 0.0], [4.0, 0.0], [1.0, 0.0]])).prototypes_
array([[0.5, 0. ],
       [4. , 0. ]])
>>> memory.win_counts_.tolist(), memory.predict([[3.0, 1.0]]).tolist()
([2, 1], [1])
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from ccmem._typing import FloatArray, IntArray
from ccmem.kernels import plain
from ccmem.kernels.competition import find_winners
from ccmem.kernels.jit import kernel_in_place
from ccmem.kernels.update import count_win, hebbian_move
from ccmem.memory import SEEN, UNITS, UnitState
from ccmem.models._distance import DISTANCE_RULES, DistanceMemory, compete
from ccmem.parameters import Rule, integer


def naive(
    X: FloatArray,
    n_units: int,
    n_winners: int,
    p: float,
    learning_rate: float,
    rate_decay: float,
    init: FloatArray | None = None,
) -> dict[str, Any]:
    """The equations above, read aloud."""
    M = [] if init is None else [row.astype(X.dtype) for row in init]
    v, C, winners = [learning_rate] * len(M), [0] * len(M), []
    for x in X:
        h = [plain.distance_power(x, m, p) for m in M]
        if len(M) < n_units and (not h or min(h) > 0):
            winners.append(len(M))
            M.append(x.copy())
            v.append(learning_rate * rate_decay)
            C.append(1)
            continue
        w = sorted(range(len(M)), key=lambda i: (h[i], i))[:n_winners]
        for i in w:
            M[i] = plain.faded(M[i] + X.dtype.type(v[i]) * (x - M[i]))
            v[i] *= rate_decay
            C[i] += 1
        winners.append(w[0])
    return {"prototypes_": np.array(M), "learning_rates_": v, "win_counts_": C, "winners": winners}


class WTASettings(NamedTuple):
    n_units: int
    n_winners: int
    p: float
    learning_rate: float
    rate_decay: float
    h: FloatArray
    """Scratch: the distance to every unit,"""
    best: IntArray
    """and the winners of a sample."""


@kernel_in_place
def learn(state: UnitState, settings: WTASettings, X: FloatArray, winners: IntArray) -> int:
    for r in range(X.shape[0]):
        n = state.counters[UNITS]
        winners[r] = compete(state, settings, X, r)
        if winners[r] < n:
            w = settings.best[: min(n, settings.n_winners)]
            w[0] = winners[r]
            if w.shape[0] > 1:
                find_winners(settings.h[:n], False, w)
            for i in w:
                hebbian_move(state.prototypes[i], X[r], state.rates[i])
                count_win(state.rates, state.wins, i, settings.rate_decay)
        state.counters[SEEN] += 1
    return X.shape[0]


class IncrementalWTA(DistanceMemory):
    """Incremental winner-take-all: the nearest prototypes move towards every sample.

    Parameters
    ----------
    n_units : int, default=8
        How many prototypes. The paper's experiments use 125.
    n_winners : int, default=1
        How many of the nearest units move at each sample (K).
    p : float, default=2.0
        Order of the distance, from 1 to 16, or infinity.
    learning_rate : float, default=0.1
        Part of the way to the sample that a winner moves, at its first win. The paper does not say; constant rates of
        0.005 to 0.02 come near its tables, a rate of 0.35 with ``rate_decay=0.99`` does better.
    rate_decay : float, default=1.0
        What a unit's rate is multiplied with at each win.
    init : "first" or array of shape (n_units, n_features), default="first"
        Where the prototypes start: the first distinct samples of the stream as they arrive, or as given.
    random_state : ignored
        This model draws no random numbers; the parameter is there for symmetry.

    Attributes
    ----------
    prototypes_, win_counts_, learning_rates_, n_units_, n_samples_seen_
        What the memory holds; see :class:`ccmem.base.CompetitiveMemory`.
    """

    _rules: ClassVar[dict[str, Rule]] = {**DISTANCE_RULES, "n_winners": integer(1)}
    _learn_kernel = staticmethod(learn)

    def __init__(
        self,
        n_units: int = 8,
        *,
        n_winners: int = 1,
        p: float = 2.0,
        learning_rate: float = 0.1,
        rate_decay: float = 1.0,
        init: Any = "first",
        random_state: Any = None,
    ) -> None:
        self.n_units = n_units
        self.n_winners = n_winners
        self.p = p
        self.learning_rate = learning_rate
        self.rate_decay = rate_decay
        self.init = init
        self.random_state = random_state

    def _new_state(self, n_features: int, dtype: np.dtype[Any], rng: np.random.Generator) -> UnitState:
        if self.n_winners > self.n_units:
            raise ValueError(f"IncrementalWTA: n_winners={self.n_winners} cannot exceed n_units={self.n_units}")
        return super()._new_state(n_features, dtype, rng)

    def _settings(self) -> WTASettings:
        return WTASettings(
            int(self.n_units),
            int(self.n_winners),
            float(self.p),
            float(self.learning_rate),
            float(self.rate_decay),
            h=np.empty(self.n_units),
            best=np.empty(self.n_winners, np.int64),
        )
