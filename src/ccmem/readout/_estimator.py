"""Common base of the online networks as scikit-learn classifiers: parameters, labels, new classes, attributes."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from ccmem.base.classifier import CountingClassifier
from ccmem.core.locking import learning, reading
from ccmem.core.parameters import Rule, choice, integer, number
from ccmem.core.typing import FloatArray, IntArray
from ccmem.readout._kernels import learn, predict_rows, work_of
from ccmem.readout.network import (
    ACTIVATIONS,
    MOMENTUM,
    OPTIMIZERS,
    NetworkSettings,
    NetworkState,
    hidden_shape,
    new_network,
    new_seed,
    unpack,
    with_classes,
)


def sizes_of_layers(least_layers: int) -> Rule:
    """Return ``value`` as a tuple of integers, one per hidden layer."""

    whole, _ = integer(1)

    def fits(v: Any) -> bool:
        return isinstance(v, Sequence) and not isinstance(v, str) and len(v) >= least_layers and all(map(whole, v))

    return fits, f"a sequence of at least {least_layers} whole numbers >= 1, such as (110, 104)"


class OnlineNetwork(CountingClassifier):
    """Base of the online networks: one update per sample, one compiled call per chunk."""

    _rules: ClassVar[dict[str, Rule]] = {
        "hidden_sizes": sizes_of_layers(0),
        "activation": choice(*ACTIVATIONS),
        "optimizer": choice(*OPTIMIZERS),
        "learning_rate": number(0.0, open_below=True, open_above=True),
        "momentum": number(0.0, 1.0, open_above=True),
    }
    _shape_parameters: ClassVar[tuple[str, ...]] = ("hidden_sizes", "activation", "optimizer", "momentum")
    _state: NetworkState
    hidden_sizes: Sequence[int]
    activation: str
    optimizer: str
    learning_rate: float
    momentum: float
    random_state: Any

    @learning
    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> Self:
        """Learn the rows of ``X`` in order; the result does not depend on chunk boundaries.

        A row with a missing label (None, NaN, or the value of ``unlabeled``) does not change the network. A new class
        takes part from its first sample on (with gates: in the block that learned it). Classes listed in ``classes``
        take part in all blocks from this call on.
        """
        self._teach_safely(X, y, classes)
        self._notify()
        return self

    def _new_network(self, n_features: int, dtype: Any, gated: bool) -> NetworkState:
        sizes = np.array([n_features, *self.hidden_sizes], np.int64)
        seed = new_seed(self.random_state)
        return new_network(
            sizes, self._bounds(n_features), self._optimizer(), dtype, seed, gated, 2 * (self._undo() > 0)
        )

    def _bounds(self, n_features: int) -> list[float]:
        """Return the largest absolute initial weight of each layer, the output layer last."""
        gain = 6.0 if self.activation == "relu" else 3.0
        return [math.sqrt(gain / inputs) for inputs in self._fan_ins(n_features)]

    def _fan_ins(self, n_features: int) -> list[int]:
        """Return the number of inputs per unit of each layer, the output layer last."""
        return [n_features, *self.hidden_sizes]

    def _optimizer(self) -> int:
        if self.optimizer == "sgd" and self.momentum > 0:
            return MOMENTUM
        return OPTIMIZERS.index(self.optimizer)

    def _settings(self) -> NetworkSettings:
        return NetworkSettings(
            ACTIVATIONS.index(self.activation),
            self._optimizer(),
            float(self.learning_rate),
            float(self.momentum),
            self._undo(),
        )

    def _undo(self) -> int:
        """Return the minimum number of samples that are undone when the memory leaves a block."""
        return 0

    def _encode(self, y: Any, n_rows: int, classes: Any) -> tuple[IntArray, Any, IntArray, IntArray]:
        """Return the output unit of every label, the sorted classes, their output units, and those of announced ones.

        Output units are numbered in order of appearance: known classes first, then announced classes, then new labels
        by row.
        """
        codes, all_classes = self._codes(y, n_rows, classes)
        rows = np.full(len(all_classes), -1, np.int64)
        if self.__sklearn_is_fitted__():
            rows[np.searchsorted(all_classes, self.classes_)] = self._state.class_rows
        announced = np.asarray(all_classes[:0] if classes is None else classes).astype(all_classes.dtype)
        places = np.searchsorted(all_classes, announced)
        known = codes >= 0
        present, first = np.unique(codes[known], return_index=True)
        for c in [*np.sort(places), *present[np.argsort(first)]]:
            if rows[c] < 0:
                rows[c] = rows.max() + 1
        codes[known] = rows[codes[known]]
        return codes, all_classes, rows, rows[places]

    def _output_unit(self, code: int) -> IntArray:
        """Return the output unit of one label, or the code of a missing one."""
        return np.array([self._state.class_rows[code] if code >= 0 else code])

    def _grow(self, state: NetworkState, rows: IntArray, announced: IntArray) -> NetworkState:
        if len(rows) > len(state.class_rows):
            state = with_classes(state, rows, self._bounds(int(state.sizes[0]))[-1], self._optimizer())
        state.membership[:, announced] = state.kept_membership[:, announced] = True
        return state

    def _run(self, rows: FloatArray, codes: IntArray, blocks: IntArray, first_row: int = 0) -> None:
        done = learn(self._state, self._settings(), rows, codes, blocks, work_of(self._state))
        if done < len(rows):
            raise ValueError(
                f"{type(self).__name__} diverged at row {first_row + done}: its scores are not finite any more; "
                f"call fit to start again with scaled data or a learning_rate below {self.learning_rate!r}"
            )

    @learning
    def _widen(self, n_features: int) -> None:
        """Add columns with weight 0; outputs do not change for samples that are 0 in the new columns."""
        before, gated = self._state.sizes, self._state.gates.shape[2] > 0
        sizes, by_unit = before.copy(), gated or len(before) == 1
        sizes[0] = n_features
        n_inputs = int(before[0])
        first = (len(self._state.class_rows), n_inputs + 1) if len(sizes) == 1 else hidden_shape(before, 0, gated)

        def wider(flat: FloatArray) -> FloatArray:
            if not flat.size:
                return flat
            layer, rest = np.split(flat, [first[0] * first[1]])
            new = [n_inputs] * (n_features - n_inputs)  # inserted before the biases
            return np.concatenate([np.insert(layer.reshape(first), new, 0, axis=int(by_unit)).ravel(), rest])

        parameters, velocity, power = (wider(flat) for flat in self._state[:3])
        kept = np.array([wider(flat) for flat in self._state.kept], parameters.dtype).reshape(
            len(self._state.kept), len(parameters)
        )
        self._state = self._state._replace(
            parameters=parameters, velocity=velocity, power=power, kept=kept, sizes=sizes
        )

    # Reading -----------------------------------------------------------------------------------------------------

    @abstractmethod
    def _check(self, X: Any) -> FloatArray:
        """Return ``X`` as validated rows; raise unless labels have been learned."""

    @abstractmethod
    def _route(self, rows: FloatArray) -> IntArray:
        """Return the block that predicts each row: that of its best matching slot, 0 without a memory."""

    @reading
    def predict(self, X: Any) -> Any:
        """Return the most probable label of every row, each row routed separately."""
        return self._best(self.predict_proba(X))

    @reading
    def predict_one(self, x: Any) -> Any:
        """Return the most probable label of one sample, without overhead if it needs no conversion."""
        self._require_labels()
        row = self._check_one(x)
        if row is None:
            return self.predict(np.asarray(x).reshape(1, -1))[0]
        return self._best(self._probabilities(row, self._route(row)))[0]

    @reading
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the class probabilities of every row, each row routed separately."""
        rows = self._check(X)
        return self._probabilities(rows, self._route(rows))

    def _require_labels(self) -> None:
        self._require_start()
        self._require_label(len(self.classes_) > 0)

    def _probabilities(self, rows: FloatArray, blocks: IntArray) -> FloatArray:
        self._require_labels()
        state, out = self._state, np.zeros((len(rows), len(self.classes_)))
        kind, columns = ACTIVATIONS.index(self.activation), np.argsort(state.class_rows)
        if predict_rows(state, kind, rows, blocks, columns, out, work_of(state)) < len(rows):
            raise ValueError(
                f"{type(self).__name__} has diverged: its scores are not finite; call fit to start again with scaled "
                f"data or a learning_rate below {self.learning_rate!r}"
            )
        return out

    def _best(self, probabilities: FloatArray) -> Any:
        return self.classes_[probabilities.argmax(axis=1)]

    @property
    @reading
    def coefs_(self) -> list[FloatArray]:
        """Weights of every layer, shape (inputs, units), as in scikit-learn's MLPClassifier; copies."""
        return [layer[:, :-1].T.copy() for layer in self._layers()]

    @property
    @reading
    def intercepts_(self) -> list[FloatArray]:
        """Biases of every layer; copies."""
        return [layer[:, -1].copy() for layer in self._layers()]

    def _layers(self) -> list[FloatArray]:
        self._require_start()
        *hidden, output = unpack(self._state)
        return [*hidden, output[self._state.class_rows]]
