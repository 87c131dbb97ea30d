"""Experience replay: each sample is followed by some drawn from a reservoir of the stream.

The network takes one step of softmax and cross-entropy for the sample at hand and one for each of ``n_replayed`` rows
drawn from the reservoir as it was before (Chaudhry et al., "On tiny episodic memories in continual learning", 2019, at
batches of one). It is told nothing but labels.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> X, y = rng.normal(size=(400, 2)), np.arange(400) // 200
>>> X[y == 1] += 4                                              # first one class, then the other
>>> model = Replay((8,), n_replayed=2, learning_rate=0.05, max_floats=200, random_state=0).partial_fit(X, y)
>>> float(model.score(X, y)) > 0.9, model.n_floats_ <= 200
(True, True)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ccmem.core.parameters import Rule, integer, number
from ccmem.core.typing import FloatArray, IntArray
from ccmem.paper.rivals._base import Rival
from ccmem.paper.rivals._network import PAPER_SIZES, Network, n_weights
from ccmem.paper.rivals._store import Reservoir
from ccmem.readout._estimator import sizes_of_layers


class Replay(Rival):
    """A network that replays stored samples between new ones.

    Parameters
    ----------
    hidden_sizes : sequence of int, default=(110, 104)
    n_replayed : int, default=4
        How many stored samples follow a new one.
    learning_rate : float, default=0.01
    max_floats : int, default=400_000
        Budget: what the network leaves of it is for stored samples.
    random_state : int, Generator or None
        First weights, and which samples are kept and replayed.
    """

    _in_single: ClassVar[bool] = True
    _rules: ClassVar[dict[str, Rule]] = {
        "hidden_sizes": sizes_of_layers(0),
        "n_replayed": integer(0),
        "max_floats": integer(1),
        "learning_rate": number(0.0, open_below=True, open_above=True),
    }

    def __init__(
        self,
        hidden_sizes: Sequence[int] = PAPER_SIZES,
        *,
        n_replayed: int = 4,
        learning_rate: float = 0.01,
        max_floats: int = 400_000,
        random_state: Any = None,
    ) -> None:
        self.hidden_sizes = hidden_sizes
        self.n_replayed = n_replayed
        self.learning_rate = learning_rate
        self.max_floats = max_floats
        self.random_state = random_state

    def _need(self, n_features: int, n_classes: int) -> dict[str, int]:
        return {"network": n_weights(n_features, self.hidden_sizes, n_classes), "one sample": n_features + 1}

    def _held(self) -> dict[str, int]:
        return {"network": self._network.n_floats, "samples": self._store.n_floats}

    def _prepare(self, n_features: int, dtype: Any) -> None:
        seed = np.random.default_rng(self.random_state).integers(2**31, size=2).tolist()
        self._network = Network(n_features, self.hidden_sizes, 0, dtype, seed[0])
        self._store = Reservoir(self._room(n_features, 1), n_features, dtype, np.random.default_rng(seed[1]))

    def _room(self, n_features: int, n_classes: int) -> int:
        return (self.max_floats - n_weights(n_features, self.hidden_sizes, n_classes)) // (n_features + 1)

    def _grow(self, n_classes: int) -> None:
        self._network.grow(n_classes)
        self._store.shrink(self._room(self._store.X.shape[1], n_classes))

    def _learn(self, X: FloatArray, codes: IntArray) -> None:
        self._network.learn(*self._store.add(X, codes, self.n_replayed), self.learning_rate)

    def _answer(self, X: FloatArray) -> IntArray:
        return self._network.answer(X)
