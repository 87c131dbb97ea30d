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

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ccmem.base.validation import check_rows
from ccmem.core.labels import code_of
from ccmem.core.locking import learning, reading
from ccmem.core.typing import FloatArray, IntArray
from ccmem.readout._estimator import OnlineNetwork


def naive(
    X: FloatArray,
    codes: IntArray,
    W: list[FloatArray],
    b: list[FloatArray],
    activation: str,
    optimizer: str,
    learning_rate: float,
    momentum: float = 0.0,
    gates: list[list[FloatArray]] | None = None,
    n_announced: int = 0,
) -> list[FloatArray]:
    """Learn all rows by the equations above, updating ``W`` and ``b``; return each row's p before its update.

    ``gates`` holds, for every row, the gate vectors of all hidden layers. With gates, a weight moves only if both its
    ends are open, and the classes are those learned with the same gates.
    """
    phi: dict[str, Callable[[Any], Any]] = {
        "relu": lambda h: np.maximum(h, 0),
        "tanh": np.tanh,
        "sigmoid": lambda h: 1 / (1 + np.exp(-h)),
    }
    slope: dict[str, Callable[[Any], Any]] = {
        "relu": lambda z: (z > 0) * 1.0,
        "tanh": lambda z: 1 - z**2,
        "sigmoid": lambda z: z * (1 - z),
    }
    parameters = W + b
    v = [np.zeros_like(p) for p in parameters]
    s = [np.zeros_like(p) for p in parameters]
    answers = []
    learned: dict[bytes, set[int]] = {}
    steps: dict[bytes, int] = {}
    for r, (x, y) in enumerate(zip(X, codes, strict=True)):
        q = [np.ones(len(w)) for w in W[:-1]] if gates is None else gates[r]
        key = b"".join(g.tobytes() for g in q)
        learned[key] = learned.get(key, set(range(n_announced))) | {int(y)}
        classes = sorted(learned[key])
        z = [x]
        for w, c, g in zip(W[:-1], b[:-1], q, strict=True):
            z.append(g * phi[activation](w @ z[-1] + c))
        scores = (W[-1] @ z[-1] + b[-1])[classes]
        p = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
        answers.append(p)
        d = [np.zeros(len(b[-1]))]
        d[0][classes] = p
        d[0][y] -= 1
        for w, g, activity in zip(W[:0:-1], q[::-1], z[:0:-1], strict=True):
            d.insert(0, g * slope[activation](activity) * (w.T @ d[0]))
        gradients = [np.outer(delta, activity) for delta, activity in zip(d, z, strict=True)] + d
        ends = [np.ones(len(x)), *q, np.isin(np.arange(len(b[-1])), classes) * 1.0]
        may_move = [np.outer(to, by) for by, to in pairwise(ends)] + ends[1:]
        t = steps[key] = steps.get(key, 0) + 1
        for i, (parameter, gradient) in enumerate(zip(parameters, gradients, strict=True)):
            here = may_move[i] > 0
            if optimizer == "adam":
                v[i][here] = 0.9 * v[i][here] + 0.1 * gradient[here]
                s[i][here] = 0.999 * s[i][here] + 0.001 * gradient[here] ** 2
                rate = learning_rate / (1 - 0.9**t)
                parameter[here] -= rate * v[i][here] / (np.sqrt(s[i][here] / (1 - 0.999**t)) + 1e-8)
            else:
                v[i][here] = momentum * v[i][here] + gradient[here]
                parameter[here] -= learning_rate * v[i][here]
    return answers


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
        self.hidden_sizes = hidden_sizes
        self.activation = activation
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.unlabeled = unlabeled
        self.random_state = random_state

    @learning
    def learn_one(self, x: Any, y: Any = None) -> None:
        """Learn one sample if it has a label, without overhead if it needs no conversion."""
        row = self._check_one(x)
        if row is not None:
            code = code_of(self, y)
            if code is not None:
                self._check_settings()
                codes = np.array([self._state.class_rows[code] if code >= 0 else code])
                self._run(row, codes, np.zeros(1, np.int64))
                return
        labels = None if y is None else np.array([y], dtype=object if isinstance(y, str) else None)
        self.partial_fit(np.asarray(x).reshape(1, -1), labels)

    @reading
    def predict(self, X: Any) -> Any:
        """Return the most probable label of every row."""
        return self._best(self.predict_proba(X))

    @reading
    def predict_one(self, x: Any) -> Any:
        """Return the most probable label of one sample, without overhead if it needs no conversion."""
        self._require_classes()
        row = self._check_one(x)
        if row is None:
            return self.predict(np.asarray(x).reshape(1, -1))[0]
        return self._best(self._probabilities(row, np.zeros(1, np.int64)))[0]

    @reading
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the class probabilities of every row."""
        self._require_classes()
        rows = check_rows(self, X, self._state.parameters.dtype)
        return self._probabilities(rows, np.zeros(len(rows), np.int64))

    # ---------------------------------------------------------------------------------------------------------------

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
        if not (isinstance(x, np.ndarray) and self.__sklearn_is_fitted__()):
            return None
        if x.dtype != self._state.parameters.dtype or x.shape != (self._state.sizes[0],):
            return None
        if not (x.flags.c_contiguous and x.flags.writeable and np.abs(x).max() < 1e15):
            return None
        return x.reshape(1, -1)

    @reading
    def _export(self) -> dict[str, Any]:
        from ccmem.readout._saved import export_network

        names = {"feature_names_in_": self.feature_names_in_} if hasattr(self, "feature_names_in_") else {}
        return {**export_network(self), "n_features_in_": int(self.n_features_in_), **names}

    def _import(self, fields: dict[str, Any]) -> None:
        from ccmem.base.storage import check_names, check_vector
        from ccmem.readout._saved import import_network

        needed = ("state", "counters", "classes_", "n_features_in_")
        check_names("OnlineMLP", fields, needed, ("feature_names_in_",))
        if "feature_names_in_" in fields:
            check_vector("feature_names_in_", fields["feature_names_in_"], fields["n_features_in_"])
        import_network(self, fields, fields["n_features_in_"], least_blocks=1, n_open=[])
        self.__dict__.update({name: fields[name] for name in fields if name.endswith("_in_")})
