"""Naive fine-tuning: train the network on the stream without any measure against forgetting (lower bound).

Without ``task_ends`` (and ``end_task``) every sample is learned once, in order; otherwise each completed task is
learned in ``n_epochs`` shuffled epochs.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> X, y = rng.normal(size=(400, 2)), np.arange(400) // 200
>>> X[y == 1] += 4
>>> model = FineTuning((8,), learning_rate=0.05, random_state=0).partial_fit(X, y)
>>> float(model.score(X[y == 1], y[y == 1])), float(model.score(X[y == 0], y[y == 0])) < 0.9
(1.0, True)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ccmem.core.parameters import Rule, integer
from ccmem.core.typing import FloatArray, IntArray
from ccmem.paper.rivals._base import TaskRival
from ccmem.paper.rivals._network import PAPER_SIZES, Network, n_weights
from ccmem.readout._estimator import sizes_of_layers


class FineTuning(TaskRival):
    """The network alone.

    Parameters
    ----------
    hidden_sizes : sequence of int, default=(110, 104)
    task_ends : sequence of int or None, default=None
        After how many samples, counted from the first, each task ends; None: tasks are unknown, one pass.
    n_epochs : int, default=1
        How often a task is gone over; more than 1 needs ``task_ends``.
    learning_rate : float, default=0.01
    max_floats : int or None, default=None
        Budget; it needs its weights, whatever the budget.
    random_state : int, Generator or None
    """

    told: ClassVar[str] = "labels"
    _in_single: ClassVar[bool] = True
    _rules: ClassVar[dict[str, Rule]] = {"hidden_sizes": sizes_of_layers(0), "n_epochs": integer(1)}

    def __init__(
        self,
        hidden_sizes: Sequence[int] = PAPER_SIZES,
        *,
        task_ends: Sequence[int] | None = None,
        n_epochs: int = 1,
        learning_rate: float = 0.01,
        max_floats: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.hidden_sizes = hidden_sizes
        self.task_ends = task_ends
        self.n_epochs = n_epochs
        self.learning_rate = learning_rate
        self.max_floats = max_floats
        self.random_state = random_state

    def _need(self, n_features: int, n_classes: int) -> dict[str, int]:
        if self.task_ends is None and self.n_epochs > 1:
            raise ValueError(
                f"FineTuning: n_epochs={self.n_epochs} is not possible without task_ends; it could not know when to "
                "begin the second"
            )
        return {"network": n_weights(n_features, self.hidden_sizes, n_classes)}

    def _held(self) -> dict[str, int]:
        return {"network": self._network.n_floats}

    def _prepare(self, n_features: int, dtype: Any) -> None:
        super()._prepare(n_features, dtype)
        self._rng = np.random.default_rng(self.random_state)
        self._network = Network(n_features, self.hidden_sizes, 0, dtype, self._rng)

    def _grow(self, n_classes: int) -> None:
        self._network.grow(n_classes)

    def _learn(self, X: FloatArray, codes: IntArray) -> None:
        if self.task_ends is None:
            self._network.learn(X, codes, self.learning_rate)
            self._n_tasks = 1
        else:
            super()._learn(X, codes)

    def _learn_task(self, X: FloatArray, codes: IntArray) -> None:
        for _ in range(self.n_epochs):
            order = self._rng.permutation(len(X))
            self._network.learn(X[order], codes[order], self.learning_rate)

    def _answer(self, X: FloatArray) -> IntArray:
        return self._network.answer(X)
