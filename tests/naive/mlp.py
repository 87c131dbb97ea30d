"""Reference of the networks: the equations of ccmem.readout.mlp, one after the other, with or without gates."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from ccmem.core.typing import FloatArray, IntArray


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
