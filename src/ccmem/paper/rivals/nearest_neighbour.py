"""Nearest neighbours in a uniform sample of the stream: the simplest use of a budget.

>>> X = [[0.0], [1.0], [10.0], [11.0]]
>>> model = NearestNeighbour(max_floats=8).partial_fit(X, ["low", "low", "high", "high"])      # room for all four
>>> model.predict([[3.0], [7.0]]), model.n_floats_
(array(['low', 'high'], dtype=object), 8)
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ccmem.core.parameters import Rule, choice, integer
from ccmem.core.typing import FloatArray, IntArray
from ccmem.paper.rivals._base import Rival
from ccmem.paper.rivals._store import Reservoir
from ccmem.paper.rivals.nearest_mean import _unit


class NearestNeighbour(Rival):
    """k-nearest-neighbour classifier; the nearest neighbour breaks ties.

    Parameters
    ----------
    n_neighbours : int, default=1
    metric : "euclidean" or "cosine", default="euclidean"
    max_floats : int or None, default=100_000
        Budget: as many rows are stored as fit, each with its label.
    random_state : int, Generator or None
        Decides which rows are kept.
    """

    _rules: ClassVar[dict[str, Rule]] = {
        "n_neighbours": integer(1),
        "metric": choice("euclidean", "cosine"),
        "max_floats": integer(1),
    }

    def __init__(
        self, n_neighbours: int = 1, *, metric: str = "euclidean", max_floats: int = 100_000, random_state: Any = None
    ) -> None:
        self.n_neighbours = n_neighbours
        self.metric = metric
        self.max_floats = max_floats
        self.random_state = random_state

    def _prepare(self, n_features: int, dtype: Any) -> None:
        capacity = self.max_floats // (n_features + 1)
        self._store = Reservoir(capacity, n_features, dtype, np.random.default_rng(self.random_state))

    def _need(self, n_features: int, n_classes: int) -> dict[str, int]:
        return {"one row of every class": n_classes * (n_features + 1)}

    def _held(self) -> dict[str, int]:
        return {"rows": self._store.n_floats}

    def _learn(self, X: FloatArray, codes: IntArray) -> None:
        self._store.add(X, codes)

    def _answer(self, X: FloatArray) -> IntArray:
        held = len(self._store)
        points, codes = self._store.X[:held].astype(np.float64), self._store.codes[:held]
        rows = X.astype(np.float64)
        if self.metric == "cosine":
            rows, points = _unit(rows), _unit(points)
        distances = np.einsum("ij,ij->i", points, points) - 2 * (rows @ points.T)
        if self.n_neighbours == 1:
            return codes[distances.argmin(axis=1)]
        count = min(self.n_neighbours, held)
        near = np.argpartition(distances, count - 1, axis=1)[:, :count]
        order = np.argsort(np.take_along_axis(distances, near, axis=1), axis=1)
        near = codes[np.take_along_axis(near, order, axis=1)]
        votes = np.zeros((len(X), int(codes.max()) + 1))
        np.add.at(votes, (np.arange(len(X))[:, None], near), 1 + 1e-6 * np.arange(near.shape[1], 0, -1))
        return votes.argmax(axis=1)
