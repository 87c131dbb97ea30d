"""Graph operations: edges between units, in a symmetric table with 0 without an edge, otherwise 1 + its age."""

from __future__ import annotations

import numpy as np

from ccmem.core.typing import FloatArray, IntArray
from ccmem.kernels.competition import squared_distance
from ccmem.kernels.jit import kernel_in_place


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


@kernel_in_place
def local_threshold(prototypes: FloatArray, edges: IntArray, unit: int, n: int) -> float:
    """Return the squared distance of a unit to its farthest neighbour or, if it has none, to the nearest other unit.

    Growth by local threshold: a row that is farther away than that becomes a new unit.
    """
    farthest, closest = -1.0, np.inf
    for i in range(n):
        if edges[unit, i] > 0:
            farthest = max(farthest, squared_distance(prototypes[unit], prototypes[i]))
    if farthest >= 0.0:
        return farthest
    for i in range(n):
        if i != unit:
            closest = min(closest, squared_distance(prototypes[unit], prototypes[i]))
    return closest
