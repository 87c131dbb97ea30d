"""Incremental Gaussian mixture in plain numpy, from the equations in :mod:`ccmem.models.gmm`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ccmem.core.typing import FloatArray
from naive import plain
from naive.steps import Stepper


def naive(
    X: FloatArray,
    n_units: int,
    precision: float,
    temperature: float,
    p: float,
    learning_rate: float,
    rate_decay: float,
    step: str = "hebbian",
    beta_1: float = 0.9,
    beta_2: float = 0.999,
    init: FloatArray | None = None,
) -> dict[str, Any]:
    """Learn the rows of ``X`` in order; return the attributes of the model, and the winners."""
    M = [] if init is None else [row.astype(X.dtype) for row in init]
    v, C, winners = [learning_rate] * len(M), [0] * len(M), []
    stepper = Stepper(step, beta_1, beta_2)
    for x in X:
        powers = [plain.distance_power(x, m, p) for m in M]
        if len(M) < n_units and (not M or min(powers) > 0):
            winners.append(len(M))
            M.append(x.copy())
            v.append(learning_rate * rate_decay)
            C.append(1)
            continue
        w = powers.index(min(powers))
        h = [plain.distance(x, m, p) for m in M]
        z = [math.exp(-precision * (h[i] - h[w]) / temperature) for i in range(len(M))]
        total = z[w]
        for i in range(len(M)):
            total += z[i] if i != w else 0.0
        for i in range(len(M)):
            if z[i] / total >= np.finfo(X.dtype).eps:
                stepper.move(M, i, x, v[i] * precision * (z[i] / total))
        v[w] *= rate_decay
        C[w] += 1
        winners.append(w)
    return {"prototypes_": np.array(M), "learning_rates_": v, "win_counts_": C, "winners": winners}
