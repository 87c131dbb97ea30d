"""Pictures of maps: U-matrix, component planes, hits and labels on a rectangular or hexagonal grid."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ccmem.core.colours import INK, block_colour
from ccmem.core.typing import FloatArray
from ccmem.metrics.maps import neighbours
from ccmem.plots._figure import memory_of, new_axes, new_figure, without_frame


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
    figure = new_figure(2.6 * across, 2.4 * down + (0.4 if title else 0))
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
        raise ValueError(f"show={show!r} is unknown; say 'u_matrix', 'hits', 'labels' or a column ({names or 'index'})")
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
