"""CCM in plain numpy, from the algorithm in :mod:`ccmem.models.ccm`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem.core.codes import REJECTED
from ccmem.core.events import Event
from ccmem.core.typing import FloatArray
from naive import plain


def naive(
    X: FloatArray,
    first_blocks: list[FloatArray],
    vigilance: float,
    recall_vigilance: float,
    alarm_limit: int,
    recall_limit: int,
    commit_limit: int,
    learning_rate: float,
    rate_decay: float,
    counters: str,
    fair: bool = False,
    epsilon: float = 1e-5,
) -> dict[str, Any]:
    """Learn the rows of ``X`` in order; ``first_blocks`` are the random slots, one array per block to be made."""
    n_slots = len(first_blocks[0])
    M, v, C = [first_blocks[0].copy()], [[learning_rate] * n_slots], [[0] * n_slots]
    t, a, r = 0, 0, [0]
    winners, events = [], []
    for step, x in enumerate(X):
        scale = plain.unit_scale(x, epsilon)
        h = [plain.dot(m, x) * scale for m in M[t]]
        order = sorted(range(n_slots), key=lambda i: (-h[i], i))
        if fair:
            matching = [i for i in range(n_slots) if h[i] > vigilance]
            order = sorted(matching, key=lambda i: ((1.0 - h[i]) * C[t][i], i)) + order
        for i in order:
            if h[i] > vigilance or C[t][i] <= commit_limit:
                keep, gain = X.dtype.type(1.0 - v[t][i]), X.dtype.type(v[t][i] * scale)
                M[t][i] = plain.renormalised(keep * M[t][i] + gain * x, epsilon)
                v[t][i] *= rate_decay
                C[t][i] += 1
                winners.append(t * n_slots + i)
                if counters == "consecutive":
                    a, r = 0, [0] * len(M)
                break
        else:
            winners.append(REJECTED)
            a += 1
            for m in range(len(M)):
                used = [j for j in range(n_slots) if C[m][j] > 0]
                if m != t and any(plain.dot(M[m][j], x) * scale > recall_vigilance for j in used):
                    r[m] += 1
                    break
            if max(r) > recall_limit:
                events.append(Event("recall", step, t, r.index(max(r)), max(r), a - max(r) + 1))
                t = r.index(max(r))
                a, r = 0, [0] * len(M)
            elif a > alarm_limit:
                events.append(Event("new_block", step, t, len(M), a, 1))
                t = len(M)
                M.append(first_blocks[t].copy())
                v.append([learning_rate] * n_slots)
                C.append([0] * n_slots)
                a, r = 0, [0] * len(M)
    return {
        "prototypes_": np.concatenate(M),
        "learning_rates_": np.concatenate(v),
        "win_counts_": np.concatenate(C),
        "winners": winners,
        "n_blocks_": len(M),
        "task_pointer_": t,
        "alarm_": a,
        "recall_counts_": r,
        "events_": events,
    }
