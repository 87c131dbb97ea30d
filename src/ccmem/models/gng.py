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
before step 1 and starts the new unit with the mean of the two errors; this is the rule of 1995. Reference in plain
numpy: ``tests/naive/gng.py``.

>>> import numpy as np
>>> model = GrowingNeuralGas(n_units=3, insert_every=3).fit(np.array([[0.0], [8.0], [1.0], [7.0], [2.0], [6.0]]))
>>> model.prototypes_.round(2).tolist(), model.edges_.tolist()
([[0.56], [7.44], [4.12]], [[0, 2], [1, 2]])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem import ncl
from ccmem.core.state import SEEN, UNITS
from ccmem.core.typing import FloatArray
from ccmem.kernels.competition import highest, lowest
from ccmem.kernels.graph import age, connect, degree, disconnect
from ccmem.kernels.jit import kernel_in_place
from ccmem.kernels.update import copy_scaled, hebbian_move
from ccmem.ncl import graph
from ccmem.ncl.rates import DECAY, UNIT_INTERVAL

SHARE = ncl.number(0.0, 1.0)


@kernel_in_place
def follow(state: Any, settings: Any, X: FloatArray, row: int, n: int, winner: int) -> bool:
    """Take steps 1, 3 and 5 but the removal of units, which edges[i, i] marks; True if units change after this row."""
    edges, h, second, due = state.edges, settings.h, settings.best[1], False
    state.rates[winner] *= settings.rate_decay
    if winner == n:
        return False
    for i in range(n):  # step 5 of the sample before
        state.errors[i] *= settings.error_decay
        state.utilities[i] *= settings.error_decay
    state.errors[winner] += h[winner]
    if n > 1:
        state.utilities[winner] += h[second] - h[winner]
        age(edges, winner, n)
        connect(edges, winner, second)
        for i in range(n):
            if edges[winner, i] > settings.max_age + 1:
                disconnect(edges, winner, i)
                if degree(edges, i, n) == 0:
                    edges[i, i], due = 1, True
        due |= (state.counters[SEEN] + 1) % settings.insert_every == 0 and n < settings.limit
        if settings.utility > 0.0:
            least = settings.utility * state.utilities[lowest(state.utilities, n)]
            due |= state.errors[highest(state.errors, n)] > least
    state.counters[graph.PENDING] = due
    return due


@ncl.neighbourhood(
    whole=True,
    parameters={
        **DECAY,
        "neighbour_rate": ncl.Parameter(0.006, SHARE, about="Fraction of the distance that a neighbour moves."),
        "insert_every": ncl.Parameter(100, ncl.integer(1), int, about="Number of samples between two new units."),
        "max_age": graph.MAX_AGE,
        "error_split": ncl.Parameter(0.5, SHARE, None, about="Factor of the errors next to a new unit."),
        "error_decay": ncl.Parameter(0.995, UNIT_INTERVAL, about="Factor of all errors at each sample."),
        "utility": ncl.Parameter(
            None,
            ncl.optional(ncl.number(0.0, open_below=True)),
            lambda k: float(k or 0.0),
            about="Ratio of the largest error to the least utility that removes a unit (k); None: never.",
        ),
    },
    state={**graph.EDGES, "errors": ncl.Array("unit"), "utilities": ncl.Array("unit")},
    hooks={"after": follow},
)
def linked(state: Any, settings: Any, n: int, k: int) -> int:
    """Select the winner by its rate, and its neighbours by ``neighbour_rate``."""
    units, strengths, winner, m = settings.units, settings.strengths, settings.best[0], 1
    units[0], strengths[0] = winner, state.rates[winner]
    for i in range(n):
        if state.edges[winner, i] > 0 and settings.neighbour_rate > 0.0:
            units[m], strengths[m] = i, settings.neighbour_rate
            m += 1
    return m


class GrowingNeuralGas(ncl.GraphModel, n_units=100, learning_rate=0.2):
    """Growing neural gas, with optional utility.

    ``edges_`` holds the pairs of connected units, ``edge_ages_`` their ages.
    """

    neighbourhood = linked
    update = ncl.STEPS

    def _restructure(self) -> None:
        """Remove units that lost their last edge, or the least useful one; take step 4."""
        self._remove(np.flatnonzero(self._state.edges.diagonal()))
        state, n = self._state, self.n_units_
        if self.utility and n > 2 and state.errors[:n].max() > self.utility * state.utilities[:n].min():
            self._remove([int(state.utilities[:n].argmin())])
        state, n = self._state, self.n_units_
        if state.counters[SEEN] % self.insert_every or not 1 < n < self.n_units:
            return
        q = int(state.errors[:n].argmax())
        f = int(np.where(state.edges[q, :n] > 0, state.errors[:n], -1.0).argmax())
        if state.edges[q, f] == 0:  # no neighbours: removals by utility may leave such a unit
            return
        copy_scaled(state.prototypes[n], state.prototypes[q], 1.0)
        hebbian_move(state.prototypes[n], state.prototypes[f], 0.5)
        state.errors[[q, f]] *= self.error_split
        state.errors[n], state.utilities[n] = state.errors[q], (state.utilities[q] + state.utilities[f]) / 2.0
        state.rates[n], state.wins[n] = self.learning_rate, 0
        disconnect(state.edges, q, f)
        connect(state.edges, q, n)
        connect(state.edges, f, n)
        state.counters[UNITS] = n + 1
