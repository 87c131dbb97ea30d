"""FlyModel: sparse random expansion, few winners, and synapses that only the current class may change.

After "Algorithmic insights on continual learning from fruit flies" (Shen, Dasgupta and Navlakha, 2021). Each of m cells
sums s inputs chosen at random; the l cells with the largest sums fire, all others are silent:

    h = P (x - mean of x),   z = top_l(h) scaled so that the largest is 1
    w_c <- w_c + rate * z * (1 - w_c)           for the class c of x; the weights of other classes do not change
    answer(x) = argmax_c w_c . z

The synapses of other classes are frozen, so a class is forgotten only as far as other classes use its cells. The bound
of 1 is ours and replaces a tiny learning rate; subtracting the mean of x is the paper's.

>>> import numpy as np
>>> X = np.eye(6).repeat(5, axis=0)
>>> model = FlyModel(n_inputs=2, n_active=4, max_floats=400, random_state=0).fit(X, np.arange(6).repeat(5))
>>> model.predict(np.eye(6)), model.n_floats_ <= 400
(array([0, 1, 2, 3, 4, 5]), True)
"""

from __future__ import annotations

import heapq
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from ccmem.core.parameters import Rule, integer, number
from ccmem.core.typing import FloatArray, IntArray
from ccmem.kernels.jit import kernel
from ccmem.paper.rivals._base import Rival
from ccmem.readout._vector import add_rows

TOGETHER = 32
"""Number of rows processed together."""


@kernel
def fire(X: FloatArray, inputs: IntArray, cells: IntArray, activity: FloatArray) -> None:
    """Return the cells with the largest sums for every row and their activity between 0 and 1.

    ``inputs`` are the columns that each cell sums. Rows are processed together, because looking up the connections of a
    cell takes longer than adding.
    """
    (n_cells, width), n_columns = inputs.shape, X.shape[1]
    columns, ones = np.zeros(n_columns * TOGETHER, X.dtype), np.ones(width, X.dtype)
    sums = np.empty((TOGETHER, n_cells), X.dtype)
    lowest, of_cell = np.zeros(TOGETHER, X.dtype), np.zeros(TOGETHER, X.dtype)
    for start in range(0, X.shape[0], TOGETHER):
        count = min(TOGETHER, X.shape[0] - start)
        for b in range(count):
            lowest[b] = -width * (X[start + b].sum() / n_columns)
            for i in range(n_columns):
                columns[i * TOGETHER + b] = X[start + b, i]
        for j in range(n_cells):
            of_cell[:] = lowest
            add_rows(of_cell, columns, inputs[j], ones, TOGETHER, width)
            for b in range(count):
                sums[b, j] = of_cell[b]
        for b in range(count):
            choose(sums[b], cells[start + b], activity[start + b])


@kernel
def choose(sums: FloatArray, cells: IntArray, activity: FloatArray) -> None:
    """Return the cells with the largest sums, the first of equal ones, and the sums relative to the largest."""
    best = [(sums[j], -j) for j in range(cells.shape[0])]  # a heap whose root is the worst cell
    heapq.heapify(best)
    for j in range(cells.shape[0], sums.shape[0]):
        if sums[j] > best[0][0]:
            heapq.heapreplace(best, (sums[j], -j))
    most = max(max(best)[0], sums.dtype.type(0.0))
    for k in range(cells.shape[0]):
        cells[k] = -best[k][1]
        activity[k] = best[k][0] / most if best[k][0] > 0.0 else 0.0


@kernel
def associate(weights: FloatArray, cells: IntArray, activity: FloatArray, codes: IntArray, rate: float) -> None:
    """Strengthen the synapses between active cells and the class of every row, in order."""
    for r in range(cells.shape[0]):
        row = weights[codes[r]]
        for k in range(cells.shape[1]):
            j = cells[r, k]
            row[j] += rate * activity[r, k] * (1.0 - row[j])


@kernel
def add_up(weights: FloatArray, cells: IntArray, activity: FloatArray, scores: FloatArray) -> None:
    """Compute the score of every class for every row."""
    for r in range(cells.shape[0]):
        for c in range(weights.shape[0]):
            total = 0.0
            for k in range(cells.shape[1]):
                total += weights[c, cells[r, k]] * activity[r, k]
            scores[r, c] = total


@dataclass(eq=False, repr=False)
class FlyModel(Rival):
    """Sparse random expansion with one weight for each cell and class."""

    n_inputs: int = 10
    """Number of columns that a cell sums."""
    _: KW_ONLY
    n_active: int = 64
    """Number of cells that fire."""
    learning_rate: float = 0.01
    max_cells: int = 20_000
    """Largest number of cells for any budget, because cells cost time."""
    max_floats: int = 100_000

    told: ClassVar[str] = "labels, number of classes"
    _in_single: ClassVar[bool] = True
    _rules: ClassVar[dict[str, Rule]] = {
        **dict.fromkeys(("n_inputs", "n_active", "max_cells", "max_floats"), integer(1)),
        "learning_rate": number(0.0, 1.0, open_below=True),
    }

    def _need(self, n_classes: int) -> dict[str, int]:
        return {f"{self.n_active} cells": self.n_active * (min(self.n_inputs, self.n_features_in_) + n_classes)}

    def _held(self) -> int:
        return self._inputs.size + self._weights.size

    def _prepare(self) -> None:
        self._width = min(self.n_inputs, self.n_features_in_)
        rng = np.random.default_rng(self.random_state)
        most = min(self.max_cells, self.max_floats // (self._width + 1))
        chosen = rng.random((most, self.n_features_in_)).argpartition(self._width - 1)[:, : self._width]
        self._inputs = np.sort(chosen, axis=1).astype(np.int64)
        self._weights = np.zeros((0, most), self._learn_type)

    def _grow(self, n_classes: int) -> None:
        """Drop the last cells to make room for more classes."""
        cells = min(len(self._inputs), self.max_floats // (self._width + n_classes))
        self._inputs = self._inputs[:cells].copy()
        self._weights = np.pad(self._weights[:, :cells], ((0, n_classes - len(self._weights)), (0, 0)))

    def _fire(self, X: FloatArray) -> tuple[IntArray, FloatArray]:
        n_active = min(self.n_active, len(self._inputs))
        cells, activity = np.empty((len(X), n_active), np.int64), np.empty((len(X), n_active), X.dtype)
        fire(X, self._inputs, cells, activity)
        return cells, activity

    def _learn(self, X: FloatArray, codes: IntArray) -> None:
        associate(self._weights, *self._fire(X), codes, self.learning_rate)

    def _answer(self, X: FloatArray) -> IntArray:
        scores = np.empty((len(X), len(self._weights)))
        add_up(self._weights, *self._fire(X), scores)
        return scores.argmax(axis=1)
