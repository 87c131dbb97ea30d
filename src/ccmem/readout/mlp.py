"""Multilayer perceptron that learns one sample at a time.

For a sample x with label y, weights W_l, biases b_l and activation phi (paper, section 3.2):

    z_0 = x,   h_l = W_l z_(l-1) + b_l,   z_l = phi(h_l)         hidden layers
    p = softmax(W_out z_L + b_out)                               over the classes that were learned or announced
    d_out = p - onehot(y),   d_l = phi'(h_l) * (W_(l+1)^T d_(l+1))
    W_l <- W_l - rate * d_l z_(l-1)^T,   b_l <- b_l - rate * d_l

With momentum m the gradient g of a weight is replaced by v <- m v + g. Adam follows Kingma and Ba (2015) with
beta = (0.9, 0.999) and epsilon = 1e-8. Initial weights are uniform within sqrt(6 / inputs) for ReLU (He et al., 2015),
otherwise within sqrt(3 / inputs); initial biases are 0. The paper does not specify its initial weights.

>>> import numpy as np
>>> net = OnlineMLP(hidden_sizes=(), learning_rate=1.0, random_state=0)      # no hidden layer: logistic regression
>>> net = net.partial_fit([[0.0], [1.0]] * 200, ["no", "yes"] * 200)
>>> net.predict([[0.2], [0.9]])
array(['no', 'yes'], dtype=object)
>>> net.partial_fit([[5.0], [5.0]], ["maybe", None]).classes_          # a new class, and a sample without label
array(['maybe', 'no', 'yes'], dtype=object)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ccmem.base.storage import check_names
from ccmem.base.validation import check_rows, plain_row
from ccmem.core.locking import learning, reading
from ccmem.core.typing import FloatArray, IntArray
from ccmem.readout._estimator import OnlineNetwork
from ccmem.readout._saved import export_network, import_network


class OnlineMLP(OnlineNetwork):
    """Multilayer perceptron for streams: one update per sample, new classes at any time, one compiled call per chunk.

    Parameters
    ----------
    hidden_sizes : sequence of int, default=(110, 104)
        Number of units of every hidden layer; the default is the paper's, an empty sequence means no hidden layer.
    activation : "relu", "tanh" or "sigmoid", default="relu"
        Activation of the hidden layers; the output is a softmax trained by cross-entropy.
    optimizer : "sgd" or "adam", default="sgd"
        Optimizer. Plain SGD is by far the fastest, because it touches only the weights of active inputs.
    learning_rate : float, default=0.01
        Learning rate; the paper's tables need 0.001.
    momentum : float, default=0.0
        For "sgd" only: fraction of the previous step that is added to the next.
    unlabeled : label or None, default=None
        A value of ``y`` that also means "no label", besides None and NaN.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the initial weights.

    Attributes
    ----------
    classes_ : array of the labels seen so far, sorted.
    coefs_, intercepts_ : weights and biases of every layer, as in scikit-learn's MLPClassifier; copies.
    n_samples_seen_, n_samples_taught_ : number of samples seen, and of samples with a label.
    """

    def __init__(
        self,
        hidden_sizes: Sequence[int] = (110, 104),
        *,
        activation: str = "relu",
        optimizer: str = "sgd",
        learning_rate: float = 0.01,
        momentum: float = 0.0,
        unlabeled: Any = None,
        random_state: Any = None,
    ) -> None:
        self._assign(locals())

    @learning
    def learn_one(self, x: Any, y: Any = None) -> None:
        """Learn one sample if it has a label, without overhead if it needs no conversion."""
        self._learn_one(x, y)

    def _learn_row(self, row: FloatArray, code: int) -> None:
        self._check_unchanged()
        self._run(row, self._output_unit(code), np.zeros(1, np.int64))

    # ---------------------------------------------------------------------------------------------------------------

    def _check(self, X: Any) -> FloatArray:
        self._require_labels()
        return check_rows(self, X, self._state.parameters.dtype)

    def _route(self, rows: FloatArray) -> IntArray:
        return np.zeros(len(rows), np.int64)

    @learning
    def _widen(self, n_features: int) -> None:
        super()._widen(n_features)
        self.n_features_in_ = n_features

    def _teach(self, X: Any, y: Any, classes: Any) -> IntArray:
        self._check_settings()
        first = not self.__sklearn_is_fitted__()
        rows = check_rows(self, X, None if first else self._state.parameters.dtype)
        codes, all_classes, class_rows, announced = self._encode(y, len(rows), classes)
        state = self._new_network(rows.shape[1], rows.dtype, gated=False) if first else self._state
        self._state = self._grow(state, class_rows, announced)
        self.classes_, self._began_with = all_classes, self._shape()
        blocks = np.zeros(len(rows), np.int64)
        self._run(rows, codes, blocks)
        return blocks

    def _check_one(self, x: Any) -> FloatArray | None:
        """Return ``x`` as a row without copying, or None if it needs conversion."""
        if not self.__sklearn_is_fitted__():
            return None
        return plain_row(x, self._state.parameters.dtype, int(self._state.sizes[0]))

    @reading
    def _export(self) -> dict[str, Any]:
        return {**export_network(self), **self._export_columns()}

    def _import(self, fields: dict[str, Any]) -> None:
        check_names("OnlineMLP", fields, ("state", "counters", "classes_", "n_features_in_"), ("feature_names_in_",))
        self._import_columns(fields)
        import_network(self, fields, fields["n_features_in_"], least_blocks=1, n_open=[])
