"""Rivals without a network: nearest class mean, nearest neighbours, linear discriminant analysis."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from ccmem.core.parameters import Rule, choice, integer, number
from ccmem.core.typing import FloatArray, IntArray
from ccmem.paper.rivals._base import Rival
from ccmem.paper.rivals._store import Reservoir

_METRIC = choice("euclidean", "cosine")


class _ClassSums(Rival):
    """Base class: sum and number of rows of every class, in double precision."""

    def _prepare(self) -> None:
        self._sums, self._counts = np.zeros((0, self.n_features_in_)), np.zeros(0)

    def _need(self, n_classes: int) -> dict[str, int]:
        return {"means": n_classes * self.n_features_in_, "counts": n_classes}

    def _grow(self, n_classes: int) -> None:
        more = n_classes - len(self._counts)
        self._sums, self._counts = np.pad(self._sums, ((0, more), (0, 0))), np.pad(self._counts, (0, more))

    def _learn(self, X: FloatArray, codes: IntArray) -> None:
        for code in np.unique(codes):
            mine = codes == code
            self._sums[code] += X[mine].sum(axis=0, dtype=np.float64)
            self._counts[code] += mine.sum()

    def _means(self) -> FloatArray:
        """Return one mean per class; zeros for a class that was announced but never seen."""
        return self._sums / np.maximum(self._counts, 1)[:, None]


@dataclass(eq=False, repr=False)
class NearestMean(_ClassSums):
    """Nearest class mean: predict the class with the nearest mean.

        m_c = mean of the rows of class c,   answer(x) = argmin_c ||x - m_c||

    It cannot forget, and has nothing to tune. Equal to scikit-learn's ``NearestCentroid``, one chunk at a time. It
    holds one row and one number per class; ``means_`` are in the order of ``classes_``.

    >>> model = NearestMean().partial_fit([[0.0, 0.0], [4.0, 4.0], [2.0, 0.0]], ["a", "b", "a"])
    >>> model.means_
    array([[1., 0.],
           [4., 4.]])
    >>> model.predict([[2.0, 1.0]]), model.n_floats_
    (array(['a'], dtype=object), 6)
    """

    metric: str = "euclidean"
    """Distance to a mean: "euclidean", or "cosine" to compare directions only."""

    _rules: ClassVar[dict[str, Rule]] = {"metric": _METRIC}

    @property
    def means_(self) -> FloatArray:
        self._require_start()
        return self._means()[self._by_class()]

    def _answer(self, X: FloatArray) -> IntArray:
        came = np.flatnonzero(self._counts)
        return came[_distances(X, self._means()[came], self.metric).argmin(axis=1)]


def _distances(X: FloatArray, points: FloatArray, metric: str) -> FloatArray:
    """Return the squared distance of every row to every point, up to a constant per row."""
    rows, points = X.astype(np.float64), points.astype(np.float64)
    if metric == "cosine":
        rows, points = unit_length(rows), unit_length(points)
    return np.einsum("ij,ij->i", points, points) - 2 * (rows @ points.T)


def unit_length(X: FloatArray) -> FloatArray:
    """Return every row divided by its length; rows of zeros are unchanged."""
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(lengths > 0, lengths, 1)


@dataclass(eq=False, repr=False)
class NearestNeighbour(Rival):
    """Nearest neighbours in a uniform sample of the stream, as large as the budget allows; the nearest breaks ties.

    >>> X = [[0.0], [1.0], [10.0], [11.0]]
    >>> model = NearestNeighbour(max_floats=8).partial_fit(X, ["low", "low", "high", "high"])      # room for all four
    >>> model.predict([[3.0], [7.0]]), model.n_floats_
    (array(['low', 'high'], dtype=object), 8)
    """

    n_neighbours: int = 1
    _: KW_ONLY
    metric: str = "euclidean"
    max_floats: int = 100_000

    _rules: ClassVar[dict[str, Rule]] = {"n_neighbours": integer(1), "metric": _METRIC, "max_floats": integer(1)}

    def _prepare(self) -> None:
        capacity = self.max_floats // (self.n_features_in_ + 1)
        rng = np.random.default_rng(self.random_state)
        self._store = Reservoir(capacity, self.n_features_in_, self._learn_type, rng)

    def _need(self, n_classes: int) -> dict[str, int]:
        return {"one row of every class": n_classes * (self.n_features_in_ + 1)}

    def _held(self) -> int:
        return self._store.n_floats

    def _learn(self, X: FloatArray, codes: IntArray) -> None:
        self._store.add(X, codes)

    def _answer(self, X: FloatArray) -> IntArray:
        points, codes = self._store.rows()
        distances = _distances(X, points, self.metric)
        if self.n_neighbours == 1:
            return codes[distances.argmin(axis=1)]
        count = min(self.n_neighbours, len(points))
        near = np.argpartition(distances, count - 1, axis=1)[:, :count]
        order = np.argsort(np.take_along_axis(distances, near, axis=1), axis=1)
        near = codes[np.take_along_axis(near, order, axis=1)]
        votes = np.zeros((len(X), int(codes.max()) + 1))
        np.add.at(votes, (np.arange(len(X))[:, None], near), 1 + 1e-6 * np.arange(near.shape[1], 0, -1))
        return votes.argmax(axis=1)


@dataclass(eq=False, repr=False)
class StreamingLDA(_ClassSums):
    """Streaming linear discriminant analysis: class means and one shared covariance, exact at any time.

    Per class c the number n_c and mean m_c; S, the sum over all rows of (x - m_c)(x - m_c)^T. A chunk with k rows of
    class c, mean m' and scatter S' about it, adds  S' + n_c k / (n_c + k) (m_c - m')(m_c - m')^T  to S. With
    shrinkage a:

        C = (1 - a) S / n + a trace(S / n) / d I
        answer(x) = argmax_c  m_c^T C^-1 x - m_c^T C^-1 m_c / 2 + log(n_c / n)

    The result equals scikit-learn's ``LinearDiscriminantAnalysis(solver="lsqr", shrinkage=a)`` on all rows at once.
    Deep SLDA (Hayes and Kanan, 2020) is this method on features of a frozen network, without the priors. S is
    symmetric, so only its upper triangle is stored.

    >>> X = [[0.0, 0.0], [0.0, 2.0], [1.0, 0.0], [1.0, 2.0]]
    >>> model = StreamingLDA(shrinkage=0.1).partial_fit(X, [0, 0, 1, 1])      # tall and narrow: only the width matters
    >>> model.predict([[0.4, 9.0], [0.6, -9.0]]), model.n_floats_
    (array([0, 1]), 9)
    """

    shrinkage: float = 0.1
    """Weight of the isotropic part of the covariance, in (0, 1]."""

    _rules: ClassVar[dict[str, Rule]] = {"shrinkage": number(0.0, 1.0, open_below=True)}

    def _prepare(self) -> None:
        super()._prepare()
        self._scatter = np.zeros(self.n_features_in_ * (self.n_features_in_ + 1) // 2)

    def _need(self, n_classes: int) -> dict[str, int]:
        return {**super()._need(n_classes), "covariance": self.n_features_in_ * (self.n_features_in_ + 1) // 2}

    def _learn(self, X: FloatArray, codes: IntArray) -> None:
        rows = X.astype(np.float64)
        self._rule: list[FloatArray] = []  # weights and biases for predictions: computed from the sums, not counted
        more = np.zeros((X.shape[1], X.shape[1]))
        for code in np.unique(codes):
            mine = rows[codes == code]
            mean = mine.mean(axis=0)
            centred = mine - mean
            more += centred.T @ centred
            known = self._counts[code]
            if known:
                gap = self._sums[code] / known - mean
                more += known * len(mine) / (known + len(mine)) * np.outer(gap, gap)
        self._scatter += more[np.triu_indices(X.shape[1])]
        super()._learn(X, codes)

    def _answer(self, X: FloatArray) -> IntArray:
        if not self._rule:
            self._rule.extend(self._solve())
        weights, biases = self._rule
        return np.argmax(X @ weights.T + biases, axis=1)

    def _solve(self) -> tuple[FloatArray, FloatArray]:
        n_features = self.n_features_in_
        counts, means = self._counts, self._means()
        covariance = np.zeros((n_features, n_features))
        covariance[np.triu_indices(n_features)] = self._scatter / counts.sum()
        covariance += np.triu(covariance, 1).T
        ridge = np.trace(covariance) / n_features
        covariance = (1 - self.shrinkage) * covariance + self.shrinkage * ridge * np.eye(n_features)
        weights = np.linalg.lstsq(covariance, means.T)[0].T
        with np.errstate(divide="ignore"):
            biases = np.log(counts / counts.sum()) - 0.5 * np.einsum("ij,ij->i", means, weights)
        return weights, biases
