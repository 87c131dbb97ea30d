"""Nearest class mean: predict the class with the nearest mean.

    m_c = mean of the rows of class c,   answer(x) = argmin_c ||x - m_c||

It cannot forget, and has nothing to tune. Equal to scikit-learn's ``NearestCentroid``, one chunk at a time.

>>> model = NearestMean().partial_fit([[0.0, 0.0], [4.0, 4.0], [2.0, 0.0]], ["a", "b", "a"])
>>> model.means_
array([[1., 0.],
       [4., 4.]])
>>> model.predict([[2.0, 1.0]]), model.n_floats_
(array(['a'], dtype=object), 6)
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ccmem.core.parameters import Rule, choice
from ccmem.core.typing import FloatArray, IntArray
from ccmem.paper.rivals._base import Rival


class ClassSums:
    """Sum and number of rows of every class, in double precision."""

    def __init__(self, n_features: int) -> None:
        self.sums = np.zeros((0, n_features))
        self.counts = np.zeros(0)

    def grow(self, n_classes: int) -> None:
        more = n_classes - len(self.counts)
        self.sums = np.pad(self.sums, ((0, more), (0, 0)))
        self.counts = np.pad(self.counts, (0, more))

    def add(self, X: FloatArray, codes: IntArray) -> None:
        for code in np.unique(codes):
            mine = codes == code
            self.sums[code] += X[mine].sum(axis=0, dtype=np.float64)
            self.counts[code] += mine.sum()

    @property
    def means(self) -> FloatArray:
        """Return one mean per class; zeros for a class that was announced but never seen."""
        return self.sums / np.maximum(self.counts, 1)[:, None]


class NearestMean(Rival):
    """Nearest-class-mean classifier.

    Parameters
    ----------
    metric : "euclidean" or "cosine", default="euclidean"
        What "nearest" means; with "cosine" rows and means are compared by their direction only.
    max_floats : int or None, default=None
        Budget; it needs one row and one number a class, whatever the budget.

    Attributes
    ----------
    means_ : array of shape (classes, columns), in the order of ``classes_``.
    """

    _rules: ClassVar[dict[str, Rule]] = {"metric": choice("euclidean", "cosine")}

    def __init__(self, metric: str = "euclidean", *, max_floats: int | None = None, random_state: Any = None) -> None:
        self.metric = metric
        self.max_floats = max_floats
        self.random_state = random_state

    @property
    def means_(self) -> FloatArray:
        self._require_start()
        return self._sums.means[np.argsort(np.array(self._labels))]

    def _prepare(self, n_features: int, dtype: Any) -> None:
        self._sums = ClassSums(n_features)

    def _need(self, n_features: int, n_classes: int) -> dict[str, int]:
        return {"means": n_classes * n_features, "counts": n_classes}

    def _held(self) -> dict[str, int]:
        return {"means": self._sums.sums.size, "counts": self._sums.counts.size}

    def _grow(self, n_classes: int) -> None:
        self._sums.grow(n_classes)

    def _learn(self, X: FloatArray, codes: IntArray) -> None:
        self._sums.add(X, codes)

    def _answer(self, X: FloatArray) -> IntArray:
        means, came = self._sums.means, np.flatnonzero(self._sums.counts)
        return came[nearest(X, means[came], self.metric)]


def nearest(X: FloatArray, points: FloatArray, metric: str) -> IntArray:
    """Return the nearest point to every row; ties go to the first."""
    rows = np.asarray(X, np.float64)
    if metric == "cosine":
        rows, points = _unit(rows), _unit(points)
    squares = np.einsum("ij,ij->i", points, points)
    return np.argmin(squares - 2 * (rows @ points.T), axis=1)


def _unit(X: FloatArray) -> FloatArray:
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(lengths > 0, lengths, 1)
