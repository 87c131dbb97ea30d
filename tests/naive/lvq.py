"""LVQ1 (T. Kohonen, 1990) and GLVQ (A. Sato and K. Yamada, 1995), written from their papers."""

from __future__ import annotations

import numpy as np

from naive import plain
from naive.steps import Stepper


def naive(X, y, units_per_class, rule, learning_rate, rate_decay, gain, p, step, beta_1, beta_2):
    M, labels, v, C, winners = [], [], [], [], []
    stepper = Stepper(step, beta_1, beta_2)
    for x, label in zip(X, y, strict=True):
        h = [plain.distance_power(x, m, p) for m in M]
        own = [i for i in range(len(M)) if labels[i] == label]
        if len(own) < units_per_class and all(h[i] > 0 for i in own):
            winners.append(len(M))
            M.append(x.copy())
            labels.append(label)
            v.append(learning_rate * rate_decay)
            C.append(1)
            continue
        w = min(range(len(M)) if rule == "lvq1" else own, key=lambda i: (h[i], i))
        moves = {w: 1.0 if labels[w] == label else -1.0}
        if rule == "glvq":
            other = min((i for i in range(len(M)) if labels[i] != label), key=lambda i: (h[i], i), default=None)
            total = h[w] + (h[other] if other is not None else 0.0)
            moves = {}
            if other is not None and total > 0:
                moves[w] = min(1.0, gain * h[other] / (total * total))
                moves[other] = -min(1.0, gain * h[w] / (total * total))
        for i, strength in moves.items():
            stepper.move(M, i, x, strength * v[i])
        v[w] *= rate_decay
        C[w] += 1
        winners.append(w)
    return {"prototypes_": np.array(M), "learning_rates_": v, "win_counts_": C, "winners": winners, "labels": labels}
