"""Incremental winner-take-all in plain numpy, from the equations in :mod:`ccmem.models.wta`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem.core.typing import FloatArray
from naive import plain
from naive.steps import Stepper


def naive(
    X: FloatArray,
    n_units: int,
    n_winners: int,
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
        h = [plain.distance_power(x, m, p) for m in M]
        if len(M) < n_units and (not h or min(h) > 0):
            winners.append(len(M))
            M.append(x.copy())
            v.append(learning_rate * rate_decay)
            C.append(1)
            continue
        w = sorted(range(len(M)), key=lambda i: (h[i], i))[:n_winners]
        for i in w:
            stepper.move(M, i, x, v[i])
            v[i] *= rate_decay
            C[i] += 1
        winners.append(w[0])
    return {"prototypes_": np.array(M), "learning_rates_": v, "win_counts_": C, "winners": winners}
