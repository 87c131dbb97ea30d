"""Incremental Gaussian mixture (iGMM): every unit moves, in proportion to its posterior.

For a sample x, prototypes M[i], precision g = 1 / variance and temperature T (paper, section 4.2):

    h[i] = ||x - M[i]||_p
    z[i] = exp(-g h[i] / T) / sum_j exp(-g h[j] / T)        posterior, soft winners
    M[i] <- M[i] + v[i] g z[i] (x - M[i])                   for all units

Source: A. Ororbia, "Continual Competitive Memory", 2021, equations 9 to 11. The printed denominator,
sum_j -g exp(h[j] / T), is a misprint: it is no distribution. Chosen here: a posterior below the resolution of the
data's float type counts as zero; a move never overshoots the sample; the nearest unit is the one that "wins", and its
rate alone decays. Ties go to the lowest index. The sum over j begins with the nearest unit, whose term is 1 once all
are divided by it, so that terms below the resolution of that sum need not be computed to leave it as it is.

>>> import numpy as np
>>> memory = IncrementalGMM(n_units=2, temperature=1.0, learning_rate=0.5)
>>> memory.partial_fit(np.array([[0.0], [4.0], [2.0]])).prototypes_      # 2 is as far from 0 as from 4
array([[0.5],
       [3.5]])
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ccmem._typing import FloatArray, IntArray
from ccmem.kernels import plain
from ccmem.kernels.competition import root
from ccmem.kernels.jit import kernel_in_place
from ccmem.kernels.update import count_win, hebbian_move
from ccmem.memory import SEEN, UNITS, UnitState
from ccmem.models._distance import DISTANCE_RULES, DistanceMemory, compete
from ccmem.parameters import Rule, number


def naive(
    X: FloatArray,
    n_units: int,
    precision: float,
    temperature: float,
    p: float,
    learning_rate: float,
    rate_decay: float,
    init: FloatArray | None = None,
) -> dict[str, Any]:
    """The equations above, read aloud."""
    M = [] if init is None else [row.astype(X.dtype) for row in init]
    v, C, winners = [learning_rate] * len(M), [0] * len(M), []
    for x in X:
        powers = [plain.distance_power(x, m, p) for m in M]
        if len(M) < n_units and (not M or min(powers) > 0):
            winners.append(len(M))
            M.append(x.copy())
            v.append(learning_rate * rate_decay)
            C.append(1)
            continue
        w = powers.index(min(powers))
        h = [plain.distance(x, m, p) for m in M]
        z = [math.exp(-precision * (h[i] - h[w]) / temperature) for i in range(len(M))]
        total = z[w]
        for i in range(len(M)):
            total += z[i] if i != w else 0.0
        for i in range(len(M)):
            if z[i] / total >= np.finfo(X.dtype).eps:
                M[i] = plain.faded(M[i] + X.dtype.type(min(1.0, v[i] * precision * (z[i] / total))) * (x - M[i]))
        v[w] *= rate_decay
        C[w] += 1
        winners.append(w)
    return {"prototypes_": np.array(M), "learning_rates_": v, "win_counts_": C, "winners": winners}


class GMMSettings(NamedTuple):
    n_units: int
    precision: float
    temperature: float
    p: float
    learning_rate: float
    rate_decay: float
    h: FloatArray
    """Scratch: the distance to every unit,"""
    near: IntArray
    """and the units whose posterior may count."""


LEAVES_NO_TRACE = -36.8
"""exp of less is below half the resolution of doubles at 1: added to a sum of 1 or more, it changes nothing."""


@kernel_in_place
def far_power(settings: GMMSettings, nearest: float) -> float:
    """A distance before its root beyond which a unit surely leaves no trace."""
    far = (nearest - LEAVES_NO_TRACE * settings.temperature / settings.precision) * (1.0 + 1e-9)
    if settings.p == 2.0:
        return far * far
    return far if settings.p == 1.0 or settings.p == np.inf else far**settings.p


@kernel_in_place
def learn(state: UnitState, settings: GMMSettings, X: FloatArray, winners: IntArray) -> int:
    h, near = settings.h, settings.near
    resolution = 2.0**-23 if state.prototypes.itemsize == 4 else 2.0**-52  # np.finfo takes long to compile
    for r in range(X.shape[0]):
        n = state.counters[UNITS]
        w = compete(state, settings, X, r)
        if w < n:
            nearest = root(h[w], settings.p)
            far, found = far_power(settings, nearest), 0
            for i in range(n):  # without a branch: nobody can predict it
                near[found] = i
                found += h[i] <= far and i != w
            total = 1.0
            for i in near[:found]:
                h[i] = math.exp(-settings.precision * (root(h[i], settings.p) - nearest) / settings.temperature)
                total += h[i]
            near[found], h[w] = w, 1.0
            for i in near[: found + 1]:
                if h[i] / total >= resolution:
                    move = state.rates[i] * settings.precision * (h[i] / total)
                    hebbian_move(state.prototypes[i], X[r], min(1.0, move))
            count_win(state.rates, state.wins, w, settings.rate_decay)
        winners[r] = w
        state.counters[SEEN] += 1
    return X.shape[0]


class IncrementalGMM(DistanceMemory):
    """Incremental Gaussian mixture: isotropic components of one fixed variance, all moved by their posterior.

    Parameters
    ----------
    n_units : int, default=8
        How many components. The paper's experiments use 125.
    precision : float, default=1.0
        1 / variance of every component (gamma in the paper).
    temperature : float, default=0.0285
        How soft the posterior is; the paper's value. The smaller, the nearer to winner-take-all.
    p : float, default=2.0
        Order of the distance, from 1 to 16, or infinity.
    learning_rate : float, default=0.1
        Part of the way to the sample that a unit with posterior 1 moves, before its first win.
    rate_decay : float, default=1.0
        What the nearest unit's rate is multiplied with at each sample.
    init : "first" or array of shape (n_units, n_features), default="first"
        Where the prototypes start: the first distinct samples of the stream as they arrive, or as given.
    random_state : ignored
        This model draws no random numbers; the parameter is there for symmetry.

    Attributes
    ----------
    prototypes_, win_counts_, learning_rates_, n_units_, n_samples_seen_
        What the memory holds; see :class:`ccmem.base.CompetitiveMemory`.
    """

    _rules: ClassVar[dict[str, Rule]] = {
        **DISTANCE_RULES,
        "precision": number(0.0, open_below=True, open_above=True),
        "temperature": number(0.0, open_below=True, open_above=True),
    }
    _learn_kernel = staticmethod(learn)

    def __init__(
        self,
        n_units: int = 8,
        *,
        precision: float = 1.0,
        temperature: float = 0.0285,
        p: float = 2.0,
        learning_rate: float = 0.1,
        rate_decay: float = 1.0,
        init: Any = "first",
        random_state: Any = None,
    ) -> None:
        self.n_units = n_units
        self.precision = precision
        self.temperature = temperature
        self.p = p
        self.learning_rate = learning_rate
        self.rate_decay = rate_decay
        self.init = init
        self.random_state = random_state

    def _settings(self) -> GMMSettings:
        return GMMSettings(
            int(self.n_units),
            float(self.precision),
            float(self.temperature),
            float(self.p),
            float(self.learning_rate),
            float(self.rate_decay),
            h=np.empty(self.n_units),
            near=np.empty(self.n_units, np.int64),
        )
