"""Joint training: store everything and train the same network on all of it, shuffled (upper bound).

No rival within a budget: what it holds is the whole stream. It shows what the network could do if nothing had to be
forgotten.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> X, y = rng.normal(size=(400, 2)), np.arange(400) // 200
>>> X[y == 1] += 4
>>> model = Joint((8,), random_state=0).partial_fit(X[:200], y[:200]).partial_fit(X[200:], y[200:])
>>> float(model.score(X, y)) > 0.9, model.n_floats_
(True, 1242)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ccmem.core.parameters import Rule, integer, number
from ccmem.core.typing import FloatArray, IntArray
from ccmem.paper.rivals._base import Rival
from ccmem.paper.rivals._network import PAPER_SIZES, Network, n_weights
from ccmem.paper.rivals.gdumb import trained
from ccmem.readout._estimator import sizes_of_layers


class Joint(Rival):
    """Shuffled training on all samples seen, in several epochs.

    Parameters
    ----------
    hidden_sizes : sequence of int, default=(110, 104)
    n_epochs : int, default=4
    learning_rate : float, default=0.02
        That of the first epoch; it falls along half a cosine.
    max_floats : int or None, default=None
        No budget by default; with one, it raises as soon as it holds more.
    random_state : int, Generator or None
    """

    told: ClassVar[str] = "labels; holds all data"
    _in_single: ClassVar[bool] = True
    _rules: ClassVar[dict[str, Rule]] = {
        "hidden_sizes": sizes_of_layers(0),
        "n_epochs": integer(1),
        "learning_rate": number(0.0, open_below=True, open_above=True),
    }

    def __init__(
        self,
        hidden_sizes: Sequence[int] = PAPER_SIZES,
        *,
        n_epochs: int = 4,
        learning_rate: float = 0.02,
        max_floats: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.hidden_sizes = hidden_sizes
        self.n_epochs = n_epochs
        self.learning_rate = learning_rate
        self.max_floats = max_floats
        self.random_state = random_state

    def _need(self, n_features: int, n_classes: int) -> dict[str, int]:
        held = sum(len(rows) for rows, _ in self._chunks) if self.__sklearn_is_fitted__() else 0
        return {
            "network": n_weights(n_features, self.hidden_sizes, n_classes),
            "all rows so far and one more": (held + 1) * (n_features + 1),
        }

    def _held(self) -> dict[str, int]:
        return {
            "network": n_weights(self.n_features_in_, self.hidden_sizes, len(self._labels)),
            "samples": sum(rows.size + len(rows) for rows, _ in self._chunks),
        }

    def _prepare(self, n_features: int, dtype: Any) -> None:
        self._seed = int(np.random.default_rng(self.random_state).integers(2**31))
        self._chunks: list[tuple[FloatArray, IntArray]] = []
        self._trained: list[Network] = []

    def _learn(self, X: FloatArray, codes: IntArray) -> None:
        self._chunks.append((X.copy(), codes))
        self._trained = []

    def _answer(self, X: FloatArray) -> IntArray:
        if not self._trained:
            rows = np.concatenate([rows for rows, _ in self._chunks])
            codes = np.concatenate([codes for _, codes in self._chunks])
            self._trained.append(
                trained(
                    rows, codes, self.hidden_sizes, len(self._labels), self.n_epochs, self.learning_rate, self._seed
                )
            )
        return self._trained[0].answer(X)
