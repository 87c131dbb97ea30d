"""Adjusted SOINN: a graph that adds a unit wherever a sample is farther away than units are from each other.

For a sample x, the nearest unit a and the second nearest b, each with a threshold T: the distance to its farthest
neighbour in the graph or, without neighbours, to the nearest other unit:

    1. |x - M[a]| > T[a] or |x - M[b]| > T[b]:   x becomes a new unit, without edges
    2. otherwise a-b are connected by an edge of age 0, all edges of a age by 1, C[a] += 1,
       M[a] <- M[a] + (x - M[a]) / C[a];   M[i] <- M[i] + (x - M[i]) / (100 C[i]) for the neighbours i of a;
       edges of a older than ``max_age`` are removed
    3. every ``prune_every`` samples: remove units with C < mean C and no neighbour, or C < noise * mean C and one

The first two distinct samples start the graph. Once ``max_units`` is reached, every sample is learned by step 2. Ties
go to the lowest index; the last unit takes the index of a removed one. Source: F. Shen and O. Hasegawa, "A fast
nearest neighbor classifier based on self-organizing incremental neural network", 2008. Step 3 is the rule of the
authors' own code (fastSOINN), which spares a unit that wins often although it has no neighbour, and so never removes
all units; other public codes remove every unit without neighbours. Reference in plain numpy: ``tests/naive/soinn.py``.

>>> import numpy as np
>>> model = SOINN().fit(np.array([[0.0], [1.0], [0.5], [9.0], [9.5], [9.2]]))
>>> model.prototypes_.round(2).tolist(), model.edges_.tolist()
([[0.25], [1.0], [9.1], [9.5]], [[0, 1], [2, 3]])
"""

from __future__ import annotations

from typing import Any, ClassVar

from ccmem import ncl
from ccmem.core.state import JOURNALED, SEEN, UNITS
from ccmem.core.typing import FloatArray, IntArray
from ccmem.kernels.competition import distance_powers, find_winners
from ccmem.kernels.jit import kernel_in_place
from ccmem.kernels.update import copy_scaled
from ccmem.ncl import graph
from ccmem.ncl.graph import remove
from ccmem.ncl.growths import MAX_UNITS, local_threshold
from ccmem.ncl.updates import hebbian as update


@kernel_in_place
def remove_noise(state: Any, settings: Any) -> None:
    """Remove units with few neighbours, from the last to the first; degrees and mean are computed beforehand."""
    n, mean = state.counters[UNITS], 0.0
    for i in range(n):
        settings.units[i] = graph.degree(state.edges, i, n)
        mean += state.wins[i] / n
    for i in range(n - 1, -1, -1):
        degree = settings.units[i]
        if degree < 2 and state.wins[i] < (settings.noise if degree == 1 else 1.0) * mean:
            remove(state, i)


@ncl.loop(
    whole=True,
    gradual=True,
    parameters={
        "max_units": MAX_UNITS,
        "max_age": ncl.Parameter(50, ncl.integer(1), int),
        "prune_every": ncl.Parameter(100, ncl.integer(1), int),
        "noise": ncl.Parameter(1.0, ncl.number(0.0, open_above=True)),
    },
    state=graph.EDGES,
)
def learn(state: Any, settings: Any, X: FloatArray, winners: IntArray) -> int:
    counters, edges, h, best = state.counters, state.edges, settings.h, settings.best
    for r in range(X.shape[0]):
        n = counters[UNITS]
        full = n == state.prototypes.shape[0] and n < settings.limit
        if full or counters[JOURNALED] + 2 * n > state.journal.shape[0]:
            return r
        distance_powers(state.prototypes, n, X, r, 2.0, h)
        find_winners(h[:n], False, best[: min(n, 2)])
        a, b = best[0], best[1]
        is_new = n == 0 or (n == 1 and h[a] > 0.0)
        if n > 1:
            is_new = h[a] > local_threshold(state, n, a) or h[b] > local_threshold(state, n, b)
        if is_new and n < settings.limit:
            copy_scaled(state.prototypes[n], X[r], 1.0)
            state.wins[n], winners[r], counters[UNITS] = 1, n, n + 1
        else:
            winners[r] = a
            state.wins[a] += 1
            update(state, settings, a, X[r], 1.0 / state.wins[a])
            if n > 1:
                graph.connect(edges, a, b)
                graph.age(edges, a, n)
                for i in range(n):
                    if edges[a, i] > 0:
                        update(state, settings, i, X[r], 0.01 / state.wins[i])
                graph.prune(edges, a, n, settings.max_age)
        if (counters[SEEN] + 1) % settings.prune_every == 0:
            remove_noise(state, settings)  # before the row is counted: the journal dates a removal by its row
        counters[SEEN] += 1
    return X.shape[0]


class SOINN(ncl.GraphModel):
    """Adjusted self-organising incremental neural network.

    Parameters
    ----------
    max_units : int or None, default=None
        Bound on the number of units; None means no bound.
    max_age : int, default=50
        Largest age of an edge.
    prune_every : int, default=100
        Number of samples between two removals of noise (lambda).
    noise : float, default=1.0
        A unit with one neighbour is removed if it has fewer wins than this times the mean (c).

    Attributes
    ----------
    edges_ : array of shape (n_edges, 2), pairs of units that are connected; ``edge_ages_``: their ages.
    prototypes_, win_counts_, n_units_, n_samples_seen_
        The content of the memory; see :class:`ccmem.base.memory.CompetitiveMemory`.
    """

    loop = learn
    parameters: ClassVar[dict[str, ncl.Parameter]] = {}

    def __init__(
        self, max_units: int | None = None, *, max_age: int = 50, prune_every: int = 100, noise: float = 1.0
    ) -> None:
        self.max_units = max_units
        self.max_age = max_age
        self.prune_every = prune_every
        self.noise = noise
