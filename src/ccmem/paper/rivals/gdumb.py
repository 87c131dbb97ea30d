"""GDumb: store a balanced sample of the stream and train a network from scratch when asked to predict.

After "GDumb: a simple approach that questions our progress in continual learning" (Prabhu, Torr and Dokania, 2020): a
greedy sampler that keeps classes even, then several epochs with a rate that falls along half a cosine. Steps are of
one sample here, and there is no augmentation. The weights are counted though they are made anew at every first question
after a change: without them nothing could be answered.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> X, y = rng.normal(size=(400, 2)), np.arange(400) // 200
>>> X[y == 1] += 4
>>> model = GDumb((8,), n_epochs=20, max_floats=200, random_state=0).partial_fit(X, y)
>>> float(model.score(X, y)) > 0.9, model.n_floats_ <= 200
(True, True)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ccmem.core.parameters import Rule, integer, number
from ccmem.core.typing import FloatArray, IntArray
from ccmem.paper.rivals._base import Rival
from ccmem.paper.rivals._network import PAPER_SIZES, Network, n_weights
from ccmem.paper.rivals._store import BalancedStore
from ccmem.readout._estimator import sizes_of_layers

LAST_RATE = 0.01
"""Learning rate of the last epoch relative to the first."""


def trained(
    X: FloatArray,
    codes: IntArray,
    hidden_sizes: Sequence[int],
    n_classes: int,
    n_epochs: int,
    learning_rate: float,
    seed: int,
) -> Network:
    """Train a network from scratch, reshuffling every epoch, with a half-cosine learning-rate schedule."""
    rng = np.random.default_rng(seed)
    network = Network(X.shape[1], hidden_sizes, n_classes, X.dtype, rng)
    for epoch in range(n_epochs):
        part = (1 + math.cos(math.pi * epoch / max(1, n_epochs - 1))) / 2
        order = rng.permutation(len(X))
        network.learn(X[order], codes[order], learning_rate * (LAST_RATE + (1 - LAST_RATE) * part))
    return network


class GDumb(Rival):
    """A balanced store and a network trained only on it.

    Parameters
    ----------
    hidden_sizes : sequence of int, default=(110, 104)
    n_epochs : int, default=30
        How often training goes over the store.
    learning_rate : float, default=0.02
        That of the first epoch.
    max_floats : int, default=400_000
        Budget: what the network leaves of it is for stored samples.
    random_state : int, Generator or None
    """

    _in_single: ClassVar[bool] = True
    _rules: ClassVar[dict[str, Rule]] = {
        "hidden_sizes": sizes_of_layers(0),
        "n_epochs": integer(1),
        "max_floats": integer(1),
        "learning_rate": number(0.0, open_below=True, open_above=True),
    }

    def __init__(
        self,
        hidden_sizes: Sequence[int] = PAPER_SIZES,
        *,
        n_epochs: int = 30,
        learning_rate: float = 0.02,
        max_floats: int = 400_000,
        random_state: Any = None,
    ) -> None:
        self.hidden_sizes = hidden_sizes
        self.n_epochs = n_epochs
        self.learning_rate = learning_rate
        self.max_floats = max_floats
        self.random_state = random_state

    def _need(self, n_features: int, n_classes: int) -> dict[str, int]:
        return {
            "network": n_weights(n_features, self.hidden_sizes, n_classes),
            "one sample of every class": n_classes * (n_features + 1),
        }

    def _held(self) -> dict[str, int]:
        n_features = self._store.X.shape[1]
        return {"network": n_weights(n_features, self.hidden_sizes, len(self._labels)), "samples": self._store.n_floats}

    def _prepare(self, n_features: int, dtype: Any) -> None:
        self._seed, seed = np.random.default_rng(self.random_state).integers(2**31, size=2).tolist()
        capacity = self._room(n_features, 1)
        self._store = BalancedStore(capacity, n_features, dtype, np.random.default_rng(seed))
        self._trained: list[Network] = []

    def _room(self, n_features: int, n_classes: int) -> int:
        return (self.max_floats - n_weights(n_features, self.hidden_sizes, n_classes)) // (n_features + 1)

    def _grow(self, n_classes: int) -> None:
        self._store.shrink(self._room(self._store.X.shape[1], n_classes))
        self._trained = []

    def _learn(self, X: FloatArray, codes: IntArray) -> None:
        if self._store.add(X, codes):
            self._trained = []

    def _answer(self, X: FloatArray) -> IntArray:
        if not self._trained:
            held = len(self._store)
            self._trained.append(
                trained(
                    self._store.X[:held],
                    self._store.codes[:held],
                    self.hidden_sizes,
                    len(self._labels),
                    self.n_epochs,
                    self.learning_rate,
                    self._seed,
                )
            )
        return self._trained[0].answer(X)
