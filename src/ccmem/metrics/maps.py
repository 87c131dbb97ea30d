"""Quality of maps and graphs: quantisation error and topographic error, computed in chunks."""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem.core.typing import BoolArray, FloatArray
from ccmem.kernels.competition import distances

ROWS_AT_ONCE = 4096
"""Rows per chunk; bounds the distance matrix to ROWS_AT_ONCE x units."""
DIAGONAL = 1.42
"""Distance on a rectangular grid up to which units count as neighbours, diagonals included (as in MiniSom)."""


def quantisation_error(model: Any, X: Any) -> float:
    """Return the mean distance of the samples to their nearest prototype, in the model's own norm.

    >>> from ccmem import IncrementalWTA
    >>> model = IncrementalWTA(n_units=2).fit([[0.0], [4.0]])
    >>> quantisation_error(model, [[1.0], [4.0]])
    0.5
    """
    total, rows = 0.0, _rows(X)
    for start in range(0, len(rows), ROWS_AT_ONCE):
        total += float(_distances(model, rows[start : start + ROWS_AT_ONCE]).min(axis=1).sum())
    return total / len(rows)


def topographic_error(model: Any, X: Any) -> float:
    """Return the share of samples whose two nearest units are not neighbours on the map or in the graph.

    ``model`` has ``positions_`` (a map) or ``edges_`` (a graph). On a rectangular map diagonal units are neighbours.
    """
    linked, rows = neighbours(model), _rows(X)
    if len(linked) < 2:
        raise ValueError(f"the topographic error needs at least two units; this model has {len(linked)}")
    wrong = 0
    for start in range(0, len(rows), ROWS_AT_ONCE):
        found = _distances(model, rows[start : start + ROWS_AT_ONCE])
        first, second = np.argsort(found, axis=1, kind="stable")[:, :2].T
        wrong += int((~linked[first, second]).sum())
    return wrong / len(rows)


def neighbours(model: Any) -> BoolArray:
    """Return the symmetric matrix that is True where two units are neighbours."""
    n = len(model.prototypes_)
    if hasattr(model, "edges_"):
        linked = np.zeros((n, n), np.bool_)
        linked[tuple(np.asarray(model.edges_, np.int64).reshape(-1, 2).T)] = True
        return np.asarray(linked | linked.T)
    if not hasattr(model, "positions_"):
        raise TypeError(f"{type(model).__name__} has neither positions_ nor edges_; give a map or a graph of units")
    places = np.asarray(model.positions_)[:n]
    apart = np.linalg.norm(places[:, None] - places[None], axis=-1)
    reach = 1.01 if getattr(model, "topology", "") == "hexagonal" else DIAGONAL
    return np.asarray((apart <= reach) & (apart > 0), np.bool_)


def _rows(X: Any) -> FloatArray:
    rows = np.asarray(X, np.float64)
    if rows.ndim != 2 or len(rows) == 0:
        raise ValueError(f"X has shape {rows.shape}; give at least one sample, as rows")
    return rows


def _distances(model: Any, rows: FloatArray) -> FloatArray:
    prototypes = np.ascontiguousarray(model.prototypes_, np.float64)
    if rows.shape[1] != prototypes.shape[1]:
        raise ValueError(f"X has {rows.shape[1]} columns, but the model learned {prototypes.shape[1]}")
    out = np.empty((len(rows), len(prototypes)))
    distances(np.ascontiguousarray(rows), prototypes, float(getattr(model, "p", 2.0)), out)
    return out
