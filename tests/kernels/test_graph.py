"""Operations on the table of edges."""

from __future__ import annotations

import numpy as np

from ccmem.kernels import graph


def path() -> np.ndarray:
    """Return the edges 0 - 1 (age 0), 1 - 2 (age 3) of four units."""
    edges = np.zeros((4, 4), np.int32)
    graph.connect(edges, 1, 0)
    graph.connect(edges, 1, 2)
    edges[1, 2] = edges[2, 1] = 4
    return edges


def test_edges_of_a_unit_grow_older_and_are_removed() -> None:
    edges = path()
    graph.age(edges, 1, 4)
    assert edges.tolist() == [[0, 2, 0, 0], [2, 0, 5, 0], [0, 5, 0, 0], [0, 0, 0, 0]]
    graph.prune(edges, 1, 4, 4)  # age 4 is not above 4
    assert [graph.degree(edges, unit, 4) for unit in range(4)] == [1, 2, 1, 0]
    graph.prune(edges, 1, 4, 3)
    assert [graph.degree(edges, unit, 4) for unit in range(4)] == [1, 1, 0, 0]
    assert (edges == edges.T).all()
    graph.disconnect(edges, 0, 1)
    assert not edges.any()


def test_the_local_threshold_is_the_farthest_neighbour_or_the_nearest_unit() -> None:
    prototypes, edges = np.array([[0.0], [1.0], [3.0], [10.0]]), path()
    assert [graph.local_threshold(prototypes, edges, unit, 4) for unit in range(4)] == [1.0, 4.0, 4.0, 49.0]
    graph.connect(edges, 3, 0)
    assert [graph.local_threshold(prototypes, edges, unit, 4) for unit in range(4)] == [100.0, 4.0, 4.0, 100.0]
    assert graph.local_threshold(prototypes, np.zeros((4, 4), np.int32), 1, 4) == 1.0
    assert graph.local_threshold(prototypes, edges, 0, 1) == np.inf
