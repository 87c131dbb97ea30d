"""ART-C 2A in plain numpy, from the rules in :mod:`ccmem.models.artc2a`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem.core.codes import REJECTED
from ccmem.core.typing import FloatArray
from naive import plain


def naive(
    X: FloatArray,
    max_units: int | None,
    vigilance: float,
    learning_rate: float,
    rate_decay: float,
    vigilance_reset: str,
    epsilon: float = 1e-5,
) -> dict[str, Any]:
    """Learn the rows of ``X`` in order; return the attributes of the model, and the winners."""
    M: list[FloatArray] = []
    v: list[float] = []
    C: list[int] = []
    rho, winners = vigilance, []
    for x in X:
        if not x.any():
            winners.append(REJECTED)
            continue
        scale = plain.unit_scale(x, epsilon)
        h = [plain.dot(m, x) * scale for m in M]
        i = h.index(max(h)) if h else -1
        if h and h[i] > rho:
            keep, gain = X.dtype.type(1.0 - v[i]), X.dtype.type(v[i] * scale)
            M[i] = plain.renormalised(keep * M[i] + gain * x, 0.0)
            v[i] *= rate_decay
            C[i] += 1
            winners.append(i)
            continue
        winners.append(len(M))
        M.append(X.dtype.type(scale) * x)
        v.append(learning_rate)
        C.append(1)
        if max_units is not None and len(M) > max_units:
            pairs = [(-plain.dot(M[a], M[b]), a, b) for a in range(len(M)) for b in range(a + 1, len(M))]
            negative, a, b = min(pairs)
            M[a] = plain.renormalised(M[a] + X.dtype.type(0.5) * (M[b] - M[a]), 0.0)
            v[a], C[a] = min(v[a], v[b]), C[a] + C[b]
            M[b], v[b], C[b] = M[-1], v[-1], C[-1]
            del M[-1], v[-1], C[-1]
            rho = max(h) if vigilance_reset == "input" else -negative
    return {"prototypes_": np.array(M), "learning_rates_": v, "win_counts_": C, "winners": winners, "vigilance_": rho}
