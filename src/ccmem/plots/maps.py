"""Maps (U-matrix, component planes, hits and labels) and graphs of units (growing neural gas, SOINN)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ccmem.core.colours import GREY, INK, block_colour
from ccmem.core.typing import FloatArray
from ccmem.metrics.maps import neighbours
from ccmem.plots._figure import memory_of, new_axes, new_figure, without_frame

STEPS, PULL = 200, 0.1
"""Iterations of the layout, and the share of its distance to its neighbours that a unit moves in the first one."""


def map(
    model: Any, show: Any = "u_matrix", X: Any = None, *, y: Any = None, ax: Any = None, title: str | None = None
) -> Any:
    """Draw one property of a map, a cell per unit.

    Parameters
    ----------
    model : fitted ``SelfOrganisingMap``, or a classifier that holds one
    show : "u_matrix", "hits", "labels", or a column by index or name, default="u_matrix"
        Mean distance of a unit to its neighbours; number of samples of ``X`` that a unit wins (without ``X``, its wins
        while learning); most frequent label in ``y`` of these samples; or one component of the prototypes.
    X : samples, optional
    y : labels of the samples, needed for "labels"
    ax, title : optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from ccmem import SelfOrganisingMap, plots
    >>> som = SelfOrganisingMap(4, 3, topology="hexagonal").fit(np.random.default_rng(0).random((300, 2)))
    >>> plots.map(som, "hits").get_title()
    'hits'
    """
    memory = memory_of(model)
    values, labels = _values(memory, show, X, y)
    places = np.asarray(memory.positions_)[: len(values)]
    hexagonal = memory.topology == "hexagonal"
    width, height = np.ptp(places, axis=0) + 1.0
    scale = min(0.9, 7.0 / max(width, height))
    ax = new_axes(ax, scale * width + (0 if labels else 1.2), scale * height + 0.5)
    _draw_cells(ax, places, values, hexagonal, colours=[block_colour(int(v)) for v in values] if labels else None)
    if labels:
        for place, value in zip(places, values, strict=True):
            if value >= 0:
                ax.text(*place, str(labels[int(value)]), ha="center", va="center", color="white", size=9)
    ax.set_aspect("equal")
    ax.set_xlim(places[:, 0].min() - 0.6, places[:, 0].max() + 0.6)
    ax.set_ylim(places[:, 1].max() + 0.7, places[:, 1].min() - 0.7)
    return without_frame(ax, str(show).replace("_", "-") if title is None else title, color=INK)


def component_planes(model: Any, columns: Any = None, *, title: str | None = None) -> Any:
    """Draw one map per component of the prototypes, at most 24; return the Figure."""
    memory = memory_of(model)
    names = list(getattr(memory, "feature_names_in_", range(memory.n_features_in_)))
    chosen = list(names if columns is None else columns)[:24]
    across = min(4, len(chosen))
    down = -(-len(chosen) // across)
    width, height = np.ptp(np.asarray(memory.positions_), axis=0) + 1.5
    figure = new_figure(2.8 * across, (2.1 * min(2.0, height / width) + 0.4) * down + (0.4 if title else 0))
    panels = figure.subplots(down, across, squeeze=False).ravel()
    for ax, column in zip(panels, chosen, strict=False):
        map(memory, column, ax=ax, title=str(column) if isinstance(column, str) else f"column {column}")
    for ax in panels[len(chosen) :]:
        ax.set_visible(False)
    if title:
        figure.suptitle(title)
    return figure


def _values(memory: Any, show: Any, X: Any, y: Any) -> tuple[FloatArray, list[Any]]:
    """Return the value of every unit, and the label names if the values are codes of labels."""
    prototypes = memory.prototypes_
    if not hasattr(memory, "positions_"):
        raise TypeError(f"{type(memory).__name__} is no map; give a SelfOrganisingMap")
    if show == "u_matrix":
        apart = np.linalg.norm(prototypes[:, None] - prototypes[None], axis=-1)
        linked = neighbours(memory)
        return np.asarray((apart * linked).sum(axis=1) / np.maximum(linked.sum(axis=1), 1), np.float64), []
    if show == "hits":
        won = memory.win_counts_ if X is None else np.bincount(memory.predict(X), minlength=len(prototypes))
        return np.asarray(won, np.float64), []
    if show == "labels":
        if X is None or y is None:
            raise ValueError("show='labels' needs the samples X and their labels y")
        classes, codes = np.unique(np.asarray(y), return_inverse=True)
        votes = np.zeros((len(prototypes), len(classes)))
        np.add.at(votes, (memory.predict(X), codes), 1)
        return np.where(votes.any(axis=1), votes.argmax(axis=1), -1).astype(float), [str(name) for name in classes]
    names = list(getattr(memory, "feature_names_in_", []))
    if isinstance(show, str) and show not in names:
        raise ValueError(f"show={show!r} is unknown; use 'u_matrix', 'hits', 'labels' or a column ({names or 'index'})")
    index = names.index(show) if isinstance(show, str) else int(show)
    return np.asarray(prototypes[:, index], np.float64), []


def _draw_cells(ax: Any, places: FloatArray, values: FloatArray, hexagonal: bool, colours: list[str] | None) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import RegularPolygon

    corners = 6 if hexagonal else 4
    radius = 1 / math.sqrt(3) if hexagonal else 1 / math.sqrt(2)
    turn = 0.0 if hexagonal else math.pi / 4
    cells = [RegularPolygon(tuple(place), corners, radius=radius, orientation=turn) for place in places]
    if colours is None:
        drawn = PatchCollection(cells, cmap="viridis", edgecolor="white", linewidth=0.6)
        drawn.set_array(values)
        ax.add_collection(drawn)
        ax.figure.colorbar(drawn, ax=ax, shrink=0.8)
    else:
        shown = [colour if value >= 0 else "#edf2f7" for colour, value in zip(colours, values, strict=True)]
        ax.add_collection(PatchCollection(cells, facecolor=shown, edgecolor="white", linewidth=0.6))


def graph(model: Any, X: Any = None, *, ax: Any = None, title: str | None = None) -> Any:
    """Draw the units of a graph and their edges, coloured by connected component.

    Units of two columns stay at their coordinates.

    Parameters
    ----------
    model : fitted ``GrowingNeuralGas`` or ``SOINN``, or a classifier that holds one
    X : samples to draw as dots, for models of two columns, optional
    ax, title : optional

    Returns
    -------
    matplotlib Axes
    """
    memory = memory_of(model)
    edges = np.asarray(memory.edges_, np.int64).reshape(-1, 2)
    prototypes = np.asarray(memory.prototypes_, np.float64)
    places = prototypes if prototypes.shape[1] == 2 else layout(prototypes, edges)
    groups = components(len(prototypes), edges)
    ax = new_axes(ax, 6, 5.2)
    if X is not None and prototypes.shape[1] == 2:
        ax.plot(*np.asarray(X).T, ".", ms=2, color="#d0d7de", zorder=0)
    for a, b in edges:
        ax.plot(*places[[a, b]].T, color=GREY, lw=0.8, zorder=1)
    ax.scatter(*places.T, c=[block_colour(int(group)) for group in groups], s=22, zorder=2)
    ax.set_aspect("equal", adjustable="datalim")
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
