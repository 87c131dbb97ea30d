"""The paper's network (784-110-104-classes) on the kernels of :mod:`ccmem.readout`, and the base of rivals with one.

Beside softmax cross-entropy the network can learn targets between 0 and 1, one sigmoid per class, as iCaRL does:

    z_0 = x,   z_l = relu(W_l z_(l-1) + b_l),   s = W_out z_L + b_out
    d_out = sigmoid(s) - target,   d_l = [z_l > 0] * (W_(l+1)^T d_(l+1))
    W_l <- W_l - rate * d_l z_(l-1)^T,   b_l <- b_l - rate * d_l
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from ccmem.core.locking import learning
from ccmem.core.parameters import Rule, array, integer, number, optional
from ccmem.core.sklearn import NotFittedError
from ccmem.core.typing import FloatArray, IntArray
from ccmem.kernels.jit import kernel_in_place
from ccmem.paper.rivals._base import Rival
from ccmem.readout._estimator import sizes_of_layers
from ccmem.readout._kernels import Work, backward, forward, learn, list_members, open_gates, work_of
from ccmem.readout._vector import activate, copy
from ccmem.readout.network import (
    RELU,
    SGD,
    SIGMOID,
    NetworkSettings,
    NetworkState,
    new_network,
    new_seed,
    unpack,
    with_classes,
)

PAPER_SIZES = (110, 104)


@kernel_in_place
def learn_targets(
    state: NetworkState, settings: NetworkSettings, X: FloatArray, targets: FloatArray, order: IntArray, work: Work
) -> int:
    """Train on the rows of ``X`` in ``order``; return the number learned, fewer than all if the network diverged."""
    open_gates(state, 0, work)
    list_members(state, 0, work)
    for i in range(order.shape[0]):
        r = order[i]
        copy(X[r], work.z)
        forward(state, settings.activation, 0, work)
        for k in range(work.counts[-1]):
            if not np.isfinite(work.scores[k]):
                return i
            work.scores[k] = activate(SIGMOID, work.scores[k]) - targets[r, work.members[k]]
        state.steps[0] += 1
        backward(state, settings, 0, work)
    return order.shape[0]


def n_weights(n_features: int, hidden_sizes: Sequence[int], n_classes: int) -> int:
    """Return the number of weights and biases of a network."""
    sizes = [n_features, *hidden_sizes, n_classes]
    return sum((n_in + 1) * n_out for n_in, n_out in pairwise(sizes))


class Network:
    """Weights with training methods; classes are numbered from 0 and may be added."""

    def __init__(
        self, n_features: int, hidden_sizes: Sequence[int], n_classes: int, dtype: Any, random_state: Any
    ) -> None:
        sizes = np.array([n_features, *hidden_sizes], np.int64)
        self._bounds = [math.sqrt(6.0 / inputs) for inputs in sizes.tolist()]
        self.state = new_network(sizes, self._bounds, SGD, dtype, new_seed(random_state), False, 0)
        self.grow(n_classes)

    def grow(self, n_classes: int) -> None:
        """Add output units up to ``n_classes``."""
        if n_classes > len(self.state.class_rows):
            self.state = with_classes(self.state, np.arange(n_classes), self._bounds[-1], SGD)
            self.state.membership[:] = True

    @property
    def n_classes(self) -> int:
        return len(self.state.class_rows)

    @property
    def n_floats(self) -> int:
        return sum(layer.size for layer in unpack(self.state))

    def learn(self, X: FloatArray, codes: IntArray, learning_rate: float) -> None:
        """Take one softmax cross-entropy step per row, in order."""
        self._run(learn, X, codes, np.zeros(len(X), np.int64), learning_rate)

    def learn_targets(self, X: FloatArray, targets: FloatArray, order: IntArray, learning_rate: float) -> None:
        """Take one sigmoid cross-entropy step per row in ``order``."""
        self._run(learn_targets, X, targets, order, learning_rate)

    def _run(self, compiled: Any, X: FloatArray, wanted: Any, steps: IntArray, learning_rate: float) -> None:
        settings = NetworkSettings(RELU, SGD, float(learning_rate), 0.0, 0)
        done = compiled(self.state, settings, X, wanted, steps, work_of(self.state))
        if done < len(steps):
            raise ValueError(
                f"the network diverged at row {done}: its scores are not finite any more; call fit to start again with "
                f"scaled data or a learning_rate below {learning_rate!r}"
            )

    def features(self, X: FloatArray) -> FloatArray:
        """Return the activations of the last hidden layer."""
        *hidden, _ = unpack(self.state)
        for layer in hidden:
            X = np.maximum(X @ layer[:, :-1].T + layer[:, -1], 0)
        return X

    def scores(self, X: FloatArray) -> FloatArray:
        """Return the logit of every class."""
        output = unpack(self.state)[-1]
        return self.features(X) @ output[:, :-1].T + output[:, -1]

    def answer(self, X: FloatArray) -> IntArray:
        """Return the class with the highest logit."""
        return self.scores(X).argmax(axis=1)


@dataclass(eq=False, repr=False)
class NetworkRival(Rival):
    """Base class: a rival with the paper's network; the rest of its budget holds samples."""

    hidden_sizes: Sequence[int] = PAPER_SIZES
    _: KW_ONLY
    learning_rate: float = 0.02

    _in_single: ClassVar[bool] = True
    _rules: ClassVar[dict[str, Rule]] = {
        "hidden_sizes": sizes_of_layers(0),
        "learning_rate": number(0.0, open_below=True, open_above=True),
    }

    def _need(self, n_classes: int) -> dict[str, int]:
        return {"network": n_weights(self.n_features_in_, self.hidden_sizes, n_classes)}

    def _grow(self, n_classes: int) -> None:
        self._network.grow(n_classes)

    def _answer(self, X: FloatArray) -> IntArray:
        codes: IntArray = self._network.answer(X)
        return codes

    def _room(self, n_classes: int, n_reserved: int = 0) -> int:
        """Return the number of labelled rows that fit into the budget beside the network and ``n_reserved`` floats."""
        assert self.max_floats is not None
        used = n_weights(self.n_features_in_, self.hidden_sizes, n_classes) + n_reserved
        return (self.max_floats - used) // (self.n_features_in_ + 1)


@dataclass(eq=False, repr=False)
class TaskRival(NetworkRival):
    """A network that makes several passes over each task and needs to know where the task ends.

    Rows of the current task are held until then. They are not counted, because the published methods do not count them
    either.
    """

    task_ends: Sequence[int] | None = None
    """Number of samples, counted from the first, after which each task ends; None if ``end_task`` is called instead."""
    n_epochs: int = 4
    """Passes over a task."""

    told: ClassVar[str] = "labels, task boundaries"
    _rules: ClassVar[dict[str, Rule]] = {"task_ends": optional(array()), "n_epochs": integer(1)}

    @abstractmethod
    def _learn_task(self, X: FloatArray, codes: IntArray) -> None:
        """Learn a whole task."""

    def _prepare(self) -> None:
        self._seen, self._n_tasks = 0, 0
        self._waiting: list[tuple[FloatArray, IntArray]] = []
        self._rng = np.random.default_rng(self.random_state)
        self._network = Network(self.n_features_in_, self.hidden_sizes, 0, self._learn_type, self._rng)

    def _learn(self, X: FloatArray, codes: IntArray) -> None:
        ends = [end - self._seen for end in self.task_ends or () if self._seen < end <= self._seen + len(X)]
        for rows, row_codes in zip(np.split(X, ends), np.split(codes, ends), strict=True):
            if len(rows):
                self._waiting.append((rows.copy(), row_codes))
            self._seen += len(rows)
            if ends and self._seen in (self.task_ends or ()):
                self.end_task()

    @learning
    def end_task(self) -> Self:
        """End the current task and learn it; for callers that do not know ``task_ends`` in advance."""
        self._require_start()
        if self._waiting:
            X, codes = map(np.concatenate, zip(*self._waiting, strict=True))
            self._waiting = []
            self._learn_task(X, codes)
            self._n_tasks += 1
        return self

    def _last_task_ends(self) -> None:
        self.end_task()

    def predict(self, X: Any) -> Any:
        """Return the label of every row according to the completed tasks."""
        self._require_start()
        if not self._n_tasks:
            raise NotFittedError(
                f"This {type(self).__name__} learns when a task ends, and none has ended yet; name task_ends or call "
                "end_task"
            )
        return super().predict(X)
