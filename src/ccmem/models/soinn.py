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

import numpy as np

from ccmem import ncl
from ccmem.core.state import SEEN
from ccmem.core.typing import FloatArray
from ccmem.kernels.graph import age, connect, local_threshold, prune
from ccmem.kernels.jit import kernel_in_place
from ccmem.ncl import graph
from ccmem.ncl.growths import MAX_UNITS


@kernel_in_place
def follow(state: Any, settings: Any, X: FloatArray, row: int, n: int, winner: int) -> bool:
    """Remove the winner's old edges; return True if step 3 is due."""
    if winner < n:
        prune(state.edges, winner, n, settings.max_age)
    state.counters[graph.PENDING] = (state.counters[SEEN] + 1) % settings.prune_every == 0
    return state.counters[graph.PENDING] > 0


@ncl.neighbourhood(
    whole=True,
    parameters={
        "max_age": graph.MAX_AGE,
        "prune_every": ncl.Parameter(100, ncl.integer(1), int, about="Samples between two removals of noise (lambda)."),
        "noise": ncl.Parameter(
            1.0, ncl.number(0.0, open_above=True), None, about="Removal of units with one neighbour, as in step 3 (c)."
        ),
    },
    state=graph.EDGES,
    hooks={"after": follow},
)
def linked(state: Any, settings: Any, n: int, k: int) -> int:
    """Connect the two nearest units; select the winner and its neighbours."""
    best, units, strengths, m = settings.best, settings.units, settings.strengths, 1
    units[0], strengths[0] = best[0], 1.0 / (state.wins[best[0]] + 1)
    if n > 1:
        connect(state.edges, best[0], best[1])
        age(state.edges, best[0], n)
    for i in range(n):
        if state.edges[best[0], i] > 0:
            units[m], strengths[m] = i, 0.01 / state.wins[i]
            m += 1
    return m


@ncl.growth(whole=True, gradual=True, parameters={"max_units": MAX_UNITS})
def far(state: Any, settings: Any, n: int, k: int) -> bool:
    """True for rows beyond the threshold of one of the two nearest units, and for the first two distinct rows."""
    h, M, edges = settings.h, state.prototypes, state.edges
    if n < 2 or n >= settings.limit:
        return n < settings.limit and (n == 0 or h[0] > 0.0)
    a, b = settings.best[0], settings.best[1]
    return h[a] > local_threshold(M, edges, a, n) or h[b] > local_threshold(M, edges, b, n)


class SOINN(ncl.GraphModel):
    """Adjusted self-organising incremental neural network.

    ``edges_`` holds the pairs of connected units, ``edge_ages_`` their ages.
    """

    neighbourhood = linked
    growth = far
    parameters: ClassVar[dict[str, ncl.Parameter]] = {}

    def _restructure(self) -> None:
        n, state = self.n_units_, self._state
        degrees, wins = (state.edges[:n, :n] > 0).sum(axis=1), state.wins[:n]
        limits = np.where(degrees == 1, self.noise, 1.0) * wins.mean()
        self._remove(np.flatnonzero((degrees < 2) & (wins < limits)).tolist())
