"""Pictures of graphs of units (growing neural gas, SOINN) in two dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem.core.colours import GREY, block_colour
from ccmem.core.typing import FloatArray
from ccmem.plots._figure import memory_of, new_axes, without_frame

STEPS, PULL = 200, 0.1
"""Iterations of the layout, and the share of its distance to its neighbours that a unit moves in the first one."""


def graph(model: Any, X: Any = None, *, colours: Any = None, ax: Any = None, title: str | None = None) -> Any:
    """Draw the units of a graph and their edges; units of two columns stay at their coordinates.

    Parameters
    ----------
    model : fitted ``GrowingNeuralGas`` or ``SOINN``, or a classifier that holds one
    X : samples to draw as dots, for models of two columns, optional
    colours : one integer per unit, optional
        By default the connected component of the unit.
    ax, title : optional

    Returns
    -------
    matplotlib Axes
    """
    memory = memory_of(model)
    edges = np.asarray(memory.edges_, np.int64).reshape(-1, 2)
    prototypes = np.asarray(memory.prototypes_, np.float64)
    places = prototypes if prototypes.shape[1] == 2 else layout(prototypes, edges)
    groups = components(len(prototypes), edges) if colours is None else np.asarray(colours)
    ax = new_axes(ax, 6, 5.2)
    if X is not None and prototypes.shape[1] == 2:
        ax.plot(*np.asarray(X).T, ".", ms=2, color="#d0d7de", zorder=0)
    for a, b in edges:
        ax.plot(*places[[a, b]].T, color=GREY, lw=0.8, zorder=1)
    ax.scatter(*places.T, c=[block_colour(int(group)) for group in groups], s=22, zorder=2)
    ax.set_aspect("equal" if prototypes.shape[1] == 2 else "auto")
    return without_frame(ax, title)


def components(n_units: int, edges: Any) -> Any:
    """Return the connected component of every unit, numbered from the largest.

    >>> components(4, [[0, 2], [2, 3]]).tolist()
    [0, 1, 0, 0]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    pairs = np.asarray(edges, np.int64).reshape(-1, 2)
    table = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n_units, n_units))
    _, found = connected_components(table, directed=False)
    order = np.argsort(-np.bincount(found), kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank[found]


def layout(prototypes: FloatArray, edges: Any) -> FloatArray:
    """Place units in the plane: principal components first, then neighbours attract and all units repel each other."""
    centred = prototypes - prototypes.mean(axis=0)
    if len(centred) < 3:
        return np.column_stack([np.arange(len(centred), dtype=float), np.zeros(len(centred))])
    left, strength, _ = np.linalg.svd(centred, full_matrices=False)
    places = left[:, :2] * strength[:2]
    if places.shape[1] < 2:
        places = np.column_stack([places, np.zeros(len(places))])
    places /= places.std() or 1.0
    pairs = np.asarray(edges, np.int64).reshape(-1, 2)
    ideal = 1.0 / np.sqrt(len(places))
    for step in range(STEPS):
        apart = places[:, None] - places[None]
        squared = (apart**2).sum(axis=-1) + 1e-4
        force = (apart * (ideal**2 / squared)[..., None]).sum(axis=1)
        if len(pairs):
            pull = places[pairs[:, 1]] - places[pairs[:, 0]]
            np.add.at(force, pairs[:, 0], pull)
            np.add.at(force, pairs[:, 1], -pull)
        length = np.linalg.norm(force, axis=1, keepdims=True) + 1e-12
        places += force / length * np.minimum(length, 1.0) * PULL * (1 - step / STEPS)
    return np.asarray(places)
