"""Graph operations: edges between units, each with an age.

``state.edges`` is a symmetric table: 0 without an edge, otherwise 1 + its age.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem.core.locking import reading
from ccmem.core.state import UNITS
from ccmem.core.typing import IntArray
from ccmem.kernels.jit import kernel_in_place
from ccmem.ncl.activations import euclidean
from ccmem.ncl.model import Model
from ccmem.ncl.parts import Array

EDGES = {"edges": Array("pair", np.int32)}


class GraphModel(Model):
    """Base of models whose units are connected; their ``loop`` keeps the state ``EDGES``."""

    activation = euclidean

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

    def _check_state(self, state: Any) -> None:
        super()._check_state(state)
        n, edges = int(state.counters[UNITS]), state.edges
        if (edges < 0).any() or (edges != edges.T).any() or edges.diagonal().any() or edges[n:].any():
            raise ValueError(f"{type(self).__name__}: its edges are damaged")


@kernel_in_place
def connect(edges: IntArray, a: int, b: int) -> None:
    """Connect two units by an edge of age 0."""
    edges[a, b] = 1
    edges[b, a] = 1


@kernel_in_place
def disconnect(edges: IntArray, a: int, b: int) -> None:
    """Remove the edge between two units."""
    edges[a, b] = 0
    edges[b, a] = 0


@kernel_in_place
def age(edges: IntArray, unit: int, n: int) -> None:
    """Make all edges of a unit older by 1."""
    for i in range(n):
        if edges[unit, i] > 0:
            edges[unit, i] += 1
            edges[i, unit] += 1


@kernel_in_place
def prune(edges: IntArray, unit: int, n: int, oldest: int) -> None:
    """Remove the edges of a unit whose age exceeds ``oldest``."""
    for i in range(n):
        if edges[unit, i] > oldest + 1:
            disconnect(edges, unit, i)


@kernel_in_place
def degree(edges: IntArray, unit: int, n: int) -> int:
    """Return the number of edges of a unit."""
    found = 0
    for i in range(n):
        found += edges[unit, i] > 0
    return found


def remove(state: Any, unit: int) -> None:
    """Remove a unit and its edges; the last unit takes its index, in all arrays of the state.

    For loops only: a composition provides the function, from the arrays that the parts of the model declare.
    """
    raise NotImplementedError("ccmem.ncl.graph.remove works only inside of a loop")
