"""Base and parts of models whose units are connected; operations on edges are in :mod:`ccmem.kernels.graph`.

A hook ``after`` of a part that sets ``state.counters[PENDING]`` and returns True makes
:meth:`GraphModel._restructure` run after the row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem.core.locking import reading
from ccmem.core.parameters import integer
from ccmem.core.state import OWN, UNITS
from ccmem.core.typing import IntArray
from ccmem.kernels.competition import find_winners
from ccmem.ncl.activations import euclidean
from ccmem.ncl.model import Model
from ccmem.ncl.parts import Array, Parameter, competition, growth, rate

PENDING = OWN
EDGES = {"edges": Array("pair", np.int32)}
MAX_AGE = Parameter(50, integer(1), int, about="Largest age of an edge.")


@competition(whole=True)
def nearest_pair(state: Any, settings: Any, n: int) -> int:
    """Select the nearest unit; ``best[1]`` is the second nearest, if there are two."""
    find_winners(settings.h[:n], False, settings.best[: min(n, 2)])
    return min(n, 1)


@growth(whole=True)
def first_pair(state: Any, settings: Any, n: int, k: int) -> bool:
    """True for the first two distinct rows."""
    return n < min(2, settings.limit) and (n == 0 or settings.h[0] > 0.0)


@rate
def by_strength(state: Any, settings: Any, unit: int) -> float:
    """Return 1: a unit moves by the strength that the neighbourhood gave it."""
    return 1.0


class GraphModel(Model):
    """Base of models whose units are connected; a part keeps the state ``EDGES``."""

    activation = euclidean
    competition = nearest_pair
    rate = by_strength
    growth = first_pair
    _own_counters = ("pending",)

    @property
    @reading
    def edges_(self) -> IntArray:
        """Pairs of connected units, an array of shape (n_edges, 2) with the lower index first."""
        return np.argwhere(np.triu(self._started().edges[: self.n_units_, : self.n_units_]))

    @property
    @reading
    def edge_ages_(self) -> IntArray:
        """Age of every edge in ``edges_``."""
        pairs = self.edges_
        return self._started().edges[pairs[:, 0], pairs[:, 1]].astype(np.int64) - 1

    def _restructure(self) -> None:
        """Remove and insert units; called after a row whose ``after`` set ``PENDING``."""

    def _decide(self) -> bool:
        pending = bool(self._state.counters[PENDING])
        if pending:
            self._state.counters[PENDING] = 0
            self._restructure()
        return pending

    def _check_state(self, state: Any) -> None:
        super()._check_state(state)
        n, edges = int(state.counters[UNITS]), state.edges
        if (edges < 0).any() or (edges != edges.T).any() or edges.diagonal().any() or edges[n:].any():
            raise ValueError(f"{type(self).__name__}: its edges are damaged")
