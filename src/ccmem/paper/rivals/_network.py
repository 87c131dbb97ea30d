"""The paper's network (784-110-104-classes by default) on the kernels of :mod:`ccmem.readout`.

Beside softmax and cross-entropy it can be taught targets between 0 and 1, one sigmoid for every class, as iCaRL has it:

    z_0 = x,   z_l = relu(W_l z_(l-1) + b_l),   s = W_out z_L + b_out
    d_out = sigmoid(s) - target,   d_l = [z_l > 0] * (W_(l+1)^T d_(l+1))
    W_l <- W_l - rate * d_l z_(l-1)^T,   b_l <- b_l - rate * d_l
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ccmem.core.typing import FloatArray, IntArray
from ccmem.kernels.jit import kernel
from ccmem.readout._kernels import activate, backward, forward, learn, list_members, open_gates, room_for
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


@kernel
def learn_targets(
    state: NetworkState, settings: NetworkSettings, X: FloatArray, targets: FloatArray, order: IntArray
) -> int:
    """Train on the rows of ``X`` in ``order``; return the number learned, fewer than all if the network diverged."""
    work = room_for(state, X)
    open_gates(state, 0, work)
    list_members(state, 0, work)
    for i in range(order.shape[0]):
        r = order[i]
        work.z[: X.shape[1]] = X[r]
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
        done = learn(self.state, self._settings(learning_rate), X, codes, np.zeros(len(X), np.int64))
        self._check(done, len(X), learning_rate)

    def learn_targets(self, X: FloatArray, targets: FloatArray, order: IntArray, learning_rate: float) -> None:
        """Take one sigmoid cross-entropy step per row in ``order``."""
        done = learn_targets(self.state, self._settings(learning_rate), X, targets, order)
        self._check(done, len(order), learning_rate)

    def _settings(self, learning_rate: float) -> NetworkSettings:
        return NetworkSettings(RELU, SGD, float(learning_rate), 0.0, 0)

    def _check(self, done: int, n_rows: int, learning_rate: float) -> None:
        if done < n_rows:
            raise ValueError(
                f"the network diverged at row {done}: its scores are not finite any more; call fit to start anew with "
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
