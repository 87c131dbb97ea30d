"""Rivals that train the paper's network on the stream or on stored samples: fine-tuning, replay, GDumb, joint.

>>> rng = np.random.default_rng(0)
>>> X, y = rng.normal(size=(400, 2)), np.arange(400) // 200
>>> X[y == 1] += 4                                              # first one class, then the other
>>> model = FineTuning((8,), learning_rate=0.05, random_state=0).partial_fit(X, y)
>>> float(model.score(X[y == 1], y[y == 1])), float(model.score(X[y == 0], y[y == 0])) < 0.9
(1.0, True)
>>> model = Replay((8,), n_replayed=2, learning_rate=0.05, max_floats=200, random_state=0).partial_fit(X, y)
>>> float(model.score(X, y)) > 0.9, model.n_floats_ <= 200
(True, True)
>>> model = GDumb((8,), n_epochs=20, max_floats=200, random_state=0).partial_fit(X, y)
>>> float(model.score(X, y)) > 0.9, model.n_floats_ <= 200
(True, True)
>>> model = Joint((8,), random_state=0).partial_fit(X[:200], y[:200]).partial_fit(X[200:], y[200:])
>>> float(model.score(X, y)) > 0.9, model.n_floats_
(True, 1242)
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from ccmem.core.parameters import Rule, integer
from ccmem.core.typing import FloatArray, IntArray
from ccmem.paper.rivals._network import Network, NetworkRival, TaskRival, n_weights
from ccmem.paper.rivals._store import BalancedStore, Reservoir

LAST_RATE = 0.01
"""Learning rate of the last epoch relative to the first."""


@dataclass(eq=False, repr=False)
class FineTuning(TaskRival):
    """Naive fine-tuning: train the network on the stream without any measure against forgetting (lower bound).

    Without ``task_ends`` every sample is learned once, in order; otherwise each completed task is learned in
    ``n_epochs`` shuffled epochs.
    """

    _: KW_ONLY
    n_epochs: int = 1
    learning_rate: float = 0.01

    told: ClassVar[str] = "labels"

    def _need(self, n_classes: int) -> dict[str, int]:
        if self.task_ends is None and self.n_epochs > 1:
            raise ValueError(
                f"FineTuning: n_epochs={self.n_epochs} is not possible without task_ends; it could not know when to "
                "begin the second"
            )
        return super()._need(n_classes)

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


@dataclass(eq=False, repr=False)
class Replay(NetworkRival):
    """Experience replay: each sample is followed by some drawn from a reservoir of the stream.

    The network takes one softmax cross-entropy step for the current sample and one for each of ``n_replayed`` rows
    drawn from the reservoir as it was before (Chaudhry et al., "On tiny episodic memories in continual learning", 2019,
    with batches of one). It receives nothing but labels.
    """

    _: KW_ONLY
    n_replayed: int = 4
    """Number of stored samples that follow a new one."""
    learning_rate: float = 0.01
    max_floats: int = 400_000

    _rules: ClassVar[dict[str, Rule]] = {"n_replayed": integer(0), "max_floats": integer(1)}

    def _need(self, n_classes: int) -> dict[str, int]:
        return {**super()._need(n_classes), "one sample": self.n_features_in_ + 1}

    def _held(self) -> int:
        return self._network.n_floats + self._store.n_floats

    def _prepare(self) -> None:
        seeds = np.random.default_rng(self.random_state).integers(2**31, size=2).tolist()
        self._network = Network(self.n_features_in_, self.hidden_sizes, 0, self._learn_type, seeds[0])
        rng = np.random.default_rng(seeds[1])
        self._store = Reservoir(self._room(1), self.n_features_in_, self._learn_type, rng)

    def _grow(self, n_classes: int) -> None:
        super()._grow(n_classes)
        self._store.shrink(self._room(n_classes))

    def _learn(self, X: FloatArray, codes: IntArray) -> None:
        self._network.learn(*self._store.add(X, codes, self.n_replayed), self.learning_rate)


@dataclass(eq=False, repr=False)
class _Retrained(NetworkRival):
    """Base class: stored samples, and a network trained on them from scratch at the first prediction after a change.

    The learning rate falls along half a cosine. The weights are counted, because predictions need them.
    """

    _: KW_ONLY
    n_epochs: int = 4
    """Passes over the stored samples."""

    _rules: ClassVar[dict[str, Rule]] = {"n_epochs": integer(1)}

    def _prepare(self) -> None:
        self._seeds = np.random.default_rng(self.random_state).integers(2**31, size=2).tolist()
        self._trained: list[Network] = []  # at most one; a list, because predict must not set attributes

    @abstractmethod
    def _stored(self) -> tuple[FloatArray, IntArray]:
        """Return the stored rows and their codes."""

    def _held(self) -> int:
        rows, codes = self._stored()
        return n_weights(self.n_features_in_, self.hidden_sizes, len(self._labels)) + rows.size + len(codes)

    def _answer(self, X: FloatArray) -> IntArray:
        if not self._trained:
            self._trained.append(self._train(*self._stored()))
        return self._trained[0].answer(X)

    def _train(self, X: FloatArray, codes: IntArray) -> Network:
        rng = np.random.default_rng(self._seeds[0])
        network = Network(X.shape[1], self.hidden_sizes, len(self._labels), X.dtype, rng)
        for epoch in range(self.n_epochs):
            part = (1 + math.cos(math.pi * epoch / max(1, self.n_epochs - 1))) / 2
            order = rng.permutation(len(X))
            network.learn(X[order], codes[order], self.learning_rate * (LAST_RATE + (1 - LAST_RATE) * part))
        return network


@dataclass(eq=False, repr=False)
class GDumb(_Retrained):
    """GDumb: store a balanced sample of the stream and train a network from scratch when asked to predict.

    After "GDumb: a simple approach that questions our progress in continual learning" (Prabhu, Torr and Dokania, 2020),
    with steps of one sample and without augmentation.
    """

    _: KW_ONLY
    n_epochs: int = 30
    max_floats: int = 400_000

    _rules: ClassVar[dict[str, Rule]] = {"max_floats": integer(1)}

    def _need(self, n_classes: int) -> dict[str, int]:
        return {**super()._need(n_classes), "one sample of every class": n_classes * (self.n_features_in_ + 1)}

    def _prepare(self) -> None:
        super()._prepare()
        rng = np.random.default_rng(self._seeds[1])
        self._store = BalancedStore(self._room(1), self.n_features_in_, self._learn_type, rng)

    def _stored(self) -> tuple[FloatArray, IntArray]:
        return self._store.rows()

    def _grow(self, n_classes: int) -> None:
        self._store.shrink(self._room(n_classes))
        self._trained = []

    def _learn(self, X: FloatArray, codes: IntArray) -> None:
        if self._store.add(X, codes):
            self._trained = []


@dataclass(eq=False, repr=False)
class Joint(_Retrained):
    """Joint training: store everything and train the same network on all of it, shuffled (upper bound).

    It stores the whole stream, so it is no rival within a budget (with one, it raises once it holds more). It shows
    what the network reaches if nothing has to be forgotten.
    """

    told: ClassVar[str] = "labels; holds all data"

    def _need(self, n_classes: int) -> dict[str, int]:
        held = len(self._rows) if self.__sklearn_is_fitted__() else 0
        return {**super()._need(n_classes), "all rows so far and one more": (held + 1) * (self.n_features_in_ + 1)}

    def _prepare(self) -> None:
        super()._prepare()
        self._rows, self._codes = np.zeros((0, self.n_features_in_), self._learn_type), np.zeros(0, np.int64)

    def _stored(self) -> tuple[FloatArray, IntArray]:
        return self._rows, self._codes

    def _grow(self, n_classes: int) -> None:
        """Do nothing: the network is created when it is trained."""

    def _learn(self, X: FloatArray, codes: IntArray) -> None:
        self._rows, self._codes = np.concatenate([self._rows, X]), np.concatenate([self._codes, codes])
        self._trained = []
