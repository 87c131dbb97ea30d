"""Streaming linear discriminant analysis: class means and one shared covariance, exact at any time.

Per class c the number n_c and mean m_c; S, the sum over all rows of (x - m_c)(x - m_c)^T. A chunk with k rows of class
c, mean m' and scatter S' about it, adds  S' + n_c k / (n_c + k) (m_c - m')(m_c - m')^T  to S. With shrinkage a:

    C = (1 - a) S / n + a trace(S / n) / d I
    answer(x) = argmax_c  m_c^T C^-1 x - m_c^T C^-1 m_c / 2 + log(n_c / n)

The same as scikit-learn's ``LinearDiscriminantAnalysis(solver="lsqr", shrinkage=a)`` on all rows at once. Deep SLDA
(Hayes and Kanan, 2020) is this on features of a frozen network, without the priors. S is symmetric: only its upper
triangle is kept.

>>> X = [[0.0, 0.0], [0.0, 2.0], [1.0, 0.0], [1.0, 2.0]]
>>> model = StreamingLDA(shrinkage=0.1).partial_fit(X, [0, 0, 1, 1])      # tall and narrow: only the width matters
>>> model.predict([[0.4, 9.0], [0.6, -9.0]]), model.n_floats_
(array([0, 1]), 9)
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ccmem.core.parameters import Rule, number
from ccmem.core.typing import FloatArray, IntArray
from ccmem.paper.rivals._base import Rival
from ccmem.paper.rivals.nearest_mean import ClassSums


class StreamingLDA(Rival):
    """Linear discriminant analysis, one chunk at a time.

    Parameters
    ----------
    shrinkage : float in (0, 1], default=0.1
        Part of the covariance that is replaced by the same variance in all directions.
    max_floats : int or None, default=None
        Budget; it needs half a square of the columns, whatever the budget.
    """

    _rules: ClassVar[dict[str, Rule]] = {"shrinkage": number(0.0, 1.0, open_below=True)}

    def __init__(self, shrinkage: float = 0.1, *, max_floats: int | None = None, random_state: Any = None) -> None:
        self.shrinkage = shrinkage
        self.max_floats = max_floats
        self.random_state = random_state

    def _prepare(self, n_features: int, dtype: Any) -> None:
        self._sums = ClassSums(n_features)
        self._scatter = np.zeros(n_features * (n_features + 1) // 2)
        self._rule: list[tuple[FloatArray, FloatArray]] = []

    def _need(self, n_features: int, n_classes: int) -> dict[str, int]:
        return {"means": n_classes * n_features, "counts": n_classes, "covariance": n_features * (n_features + 1) // 2}

    def _held(self) -> dict[str, int]:
        return {"means": self._sums.sums.size, "counts": self._sums.counts.size, "covariance": self._scatter.size}

    def _grow(self, n_classes: int) -> None:
        self._sums.grow(n_classes)
        self._rule = []

    def _learn(self, X: FloatArray, codes: IntArray) -> None:
        rows = X.astype(np.float64)
        self._rule = []
        more = np.zeros((X.shape[1], X.shape[1]))
        for code in np.unique(codes):
            mine = rows[codes == code]
            mean = mine.mean(axis=0)
            centred = mine - mean
            more += centred.T @ centred
            known = self._sums.counts[code]
            if known:
                gap = self._sums.sums[code] / known - mean
                more += known * len(mine) / (known + len(mine)) * np.outer(gap, gap)
        self._scatter += more[np.triu_indices(X.shape[1])]
        self._sums.add(X, codes)

    def _answer(self, X: FloatArray) -> IntArray:
        if not self._rule:  # rebuilt from the stored sums, and not counted
            self._rule.append(self._solve())
        weights, biases = self._rule[0]
        return np.argmax(X @ weights.T + biases, axis=1)

    def _solve(self) -> tuple[FloatArray, FloatArray]:
        n_features = self._sums.sums.shape[1]
        counts = self._sums.counts
        covariance = np.zeros((n_features, n_features))
        covariance[np.triu_indices(n_features)] = self._scatter / counts.sum()
        covariance += np.triu(covariance, 1).T
        ridge = np.trace(covariance) / n_features
        covariance = (1 - self.shrinkage) * covariance + self.shrinkage * ridge * np.eye(n_features)
        means = self._sums.means
        weights = np.linalg.lstsq(covariance, means.T)[0].T
        with np.errstate(divide="ignore"):
            biases = np.log(counts / counts.sum()) - 0.5 * np.einsum("ij,ij->i", means, weights)
        return weights, biases
