"""Growing neural gas (GNG): a graph of units that grows where the error is largest.

For a sample x, the nearest unit a and the second nearest b:

    1. all edges of a age by 1;  error[a] += |x - M[a]|^2
    2. M[a] <- M[a] + v[a] (x - M[a]);   M[i] <- M[i] + neighbour_rate (x - M[i]) for the neighbours i of a
    3. connect a-b by an edge of age 0; remove edges older than ``max_age``, and units that lose their last edge
    4. every ``insert_every`` samples: q = argmax error, f = its neighbour of largest error; a new unit halfway between
       q and f takes the place of their edge; error[q], error[f] *= error_split; the new unit gets error[q]
    5. all errors *= error_decay

v[i] is the learning rate, times ``rate_decay`` per win: 1 is the printed model, in which all units move to the latest
task; below 1, units keep earlier tasks. With ``utility`` k (GNG-U): U[a] += |x - M[b]|^2 - |x - M[a]|^2, which decays
at the rate of the errors, and the unit of least U is removed if max error > k min U. The first two distinct samples
start the graph. Ties go to the lowest index; the last unit takes the index of a removed one.

Sources: B. Fritzke, "A growing neural gas network learns topologies", 1995 (order of steps and default settings), and
"A self-organizing network that can follow non-stationary distributions", 1997. Fritzke's survey of 1997 connects a-b
before step 1 and starts the new unit with the mean of the two errors; this is the rule of 1995. Reference in plain numpy: ``tests/naive/gng.py``.

>>> import numpy as np
>>> model = GrowingNeuralGas(n_units=3, insert_every=3).fit(np.array([[0.0], [8.0], [1.0], [7.0], [2.0], [6.0]]))
>>> model.prototypes_.round(2).tolist(), model.edges_.tolist()
([[0.56], [7.44], [4.12]], [[0, 2], [1, 2]])
"""

from __future__ import annotations

from typing import Any

from ccmem import ncl
from ccmem.core.state import JOURNALED, SEEN, UNITS
from ccmem.core.typing import FloatArray, IntArray
from ccmem.kernels.competition import distance_powers, find_winners
from ccmem.kernels.jit import kernel_in_place
from ccmem.kernels.update import copy_scaled, hebbian_move
from ccmem.ncl import graph
from ccmem.ncl.graph import remove
from ccmem.ncl.growths import largest
from ccmem.ncl.rates import DECAY, UNIT_INTERVAL
from ccmem.ncl.updates import hebbian as update

SHARE = ncl.number(0.0, 1.0)


@kernel_in_place
def insert(state: Any, settings: Any, n: int) -> None:
    """Add a unit between the unit of largest error and its neighbour of largest error."""
    q, f = largest(state.errors, n), -1
    for i in range(n):
        if state.edges[q, i] > 0 and (f < 0 or state.errors[i] > state.errors[f]):
            f = i
    if f < 0:  # a unit without neighbours: removals by utility may leave one
        return
    copy_scaled(state.prototypes[n], state.prototypes[q], 1.0)
    hebbian_move(state.prototypes[n], state.prototypes[f], 0.5)
    state.errors[q] *= settings.error_split
    state.errors[f] *= settings.error_split
    state.errors[n], state.utilities[n] = state.errors[q], (state.utilities[q] + state.utilities[f]) / 2.0
    state.rates[n], state.wins[n] = settings.learning_rate, 0
    graph.disconnect(state.edges, q, f)
    graph.connect(state.edges, q, n)
    graph.connect(state.edges, f, n)
    state.counters[UNITS] = n + 1


@kernel_in_place
def remove_pruned(state: Any, settings: Any, a: int) -> None:
    """Remove the old edges of unit ``a``, and units without edges.

    Units are visited from the last to the first, so that the unit that moves into the place of a removed one has been
    visited already.
    """
    n = state.counters[UNITS]
    for i in range(n - 1, -1, -1):
        if state.edges[a, i] > settings.max_age + 1:
            graph.disconnect(state.edges, a, i)
            if graph.degree(state.edges, i, n) == 0:
                n -= 1
                remove(state, i)
                a = i if a == n else a


@kernel_in_place
def remove_useless(state: Any, settings: Any) -> None:
    """Remove the unit of least utility if the largest error exceeds it by the factor ``utility``."""
    n, least = state.counters[UNITS], 0
    for i in range(1, n):
        if state.utilities[i] < state.utilities[least]:
            least = i
    if n > 2 and state.errors[largest(state.errors, n)] > settings.utility * state.utilities[least]:
        remove(state, least)


@ncl.loop(
    whole=True,
    parameters={
        **DECAY,
        "neighbour_rate": ncl.Parameter(0.006, SHARE),
        "insert_every": ncl.Parameter(100, ncl.integer(1), int),
        "max_age": ncl.Parameter(50, ncl.integer(1), int),
        "error_split": ncl.Parameter(0.5, SHARE),
        "error_decay": ncl.Parameter(0.995, UNIT_INTERVAL),
        "utility": ncl.Parameter(None, ncl.optional(ncl.number(0.0, open_below=True)), lambda k: float(k or 0.0)),
    },
    state={**graph.EDGES, "errors": ncl.Array("unit"), "utilities": ncl.Array("unit")},
)
def learn(state: Any, settings: Any, X: FloatArray, winners: IntArray) -> int:
    counters, edges, h, best = state.counters, state.edges, settings.h, settings.best
    for r in range(X.shape[0]):
        n = counters[UNITS]
        if counters[JOURNALED] + 2 * n + 2 > state.journal.shape[0]:
            return r
        distance_powers(state.prototypes, n, X, r, 2.0, h)
        find_winners(h[:n], False, best[: min(n, 2)])
        a, b = best[0], best[1]
        if n < min(2, settings.limit) and (n == 0 or h[a] > 0.0):
            copy_scaled(state.prototypes[n], X[r], 1.0)
            state.wins[n], winners[r] = 1, n
            state.rates[n] = settings.learning_rate * settings.rate_decay
            counters[UNITS], counters[SEEN] = n + 1, counters[SEEN] + 1
            continue
        graph.age(edges, a, n)
        state.errors[a] += h[a]
        update(state, settings, a, X[r], state.rates[a])
        for i in range(n):
            if edges[a, i] > 0 and settings.neighbour_rate > 0.0:
                update(state, settings, i, X[r], settings.neighbour_rate)
        state.rates[a] *= settings.rate_decay
        state.wins[a] += 1
        winners[r] = a
        if n > 1:
            state.utilities[a] += h[b] - h[a]
            graph.connect(edges, a, b)
            remove_pruned(state, settings, a)
            if settings.utility > 0.0:
                remove_useless(state, settings)
        counters[SEEN] += 1
        n = counters[UNITS]
        if counters[SEEN] % settings.insert_every == 0 and 1 < n < settings.limit:
            insert(state, settings, n)
            n = counters[UNITS]
        for i in range(n):
            state.errors[i] *= settings.error_decay
            state.utilities[i] *= settings.error_decay
    return X.shape[0]


class GrowingNeuralGas(ncl.GraphModel):
    """Growing neural gas, with optional utility.

    Parameters
    ----------
    n_units : int, default=100
        Largest number of units.
    learning_rate, neighbour_rate : float, default=0.2, 0.006
        Fraction of the distance to the sample that the nearest unit moves at its first win, and that its neighbours
        move.
    rate_decay : float, default=1.0
        Factor of a unit's rate at each win.
    insert_every : int, default=100
        Number of samples between two new units.
    max_age : int, default=50
        Largest age of an edge.
    error_split, error_decay : float, default=0.5, 0.995
        Factor of the errors next to a new unit, and of all errors at each sample.
    utility : float or None, default=None
        Ratio of the largest error to the least utility above which the least useful unit is removed (k); None: never.
    step : "hebbian", "adam" or "rmsprop", default="hebbian"
        Update of a unit; see :class:`ccmem.IncrementalWTA`.
    beta_1, beta_2 : float, default=0.9, 0.999
        Memory of the moments of Adam and RMSprop.

    Attributes
    ----------
    edges_ : array of shape (n_edges, 2), pairs of units that are connected; ``edge_ages_``: their ages.
    prototypes_, win_counts_, learning_rates_, n_units_, n_samples_seen_
        The content of the memory; see :class:`ccmem.base.memory.CompetitiveMemory`.
    """

    update = ncl.STEPS
    loop = learn

    def __init__(
        self,
        n_units: int = 100,
        *,
        learning_rate: float = 0.2,
        neighbour_rate: float = 0.006,
        rate_decay: float = 1.0,
        insert_every: int = 100,
        max_age: int = 50,
        error_split: float = 0.5,
        error_decay: float = 0.995,
        utility: float | None = None,
        step: str = "hebbian",
        beta_1: float = 0.9,
        beta_2: float = 0.999,
    ) -> None:
        self.n_units = n_units
        self.learning_rate = learning_rate
        self.neighbour_rate = neighbour_rate
        self.rate_decay = rate_decay
        self.insert_every = insert_every
        self.max_age = max_age
        self.error_split = error_split
        self.error_decay = error_decay
        self.utility = utility
        self.step = step
        self.beta_1 = beta_1
        self.beta_2 = beta_2
