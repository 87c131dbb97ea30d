"""Shared loop of most references: units start at the first distinct samples and move by strengths."""

from __future__ import annotations

import numpy as np

from naive import plain
from naive.steps import Stepper


def learn(X, n_units, p, learning_rate, rate_decay, step, beta_1, beta_2, strengths, winner=None, after=None, **more):
    """Learn the rows of ``X``. ``strengths(t, h, w)`` gives the strength of every unit, ``winner(h, C)`` the winner.

    Strengths below ``least`` count as 0; ``fade``: the horizon over which rates fade.
    """
    least, fade = more.get("least", np.finfo(X.dtype).eps), more.get("fade")
    M = []
    v, C, winners = [], [], []
    stepper = Stepper(step, beta_1, beta_2)
    for t, x in enumerate(X):
        h = [plain.distance_power(x, m, p) for m in M]
        if len(M) < n_units and (not h or min(h) > 0):
            w = len(M)
            M.append(x.copy())
            v.append(learning_rate * rate_decay)
            C.append(1)
        else:
            w = winner(h, C) if winner else h.index(min(h))
            for i, strength in enumerate(strengths(t, h, w)):
                if strength > 0 and strength >= least:
                    stepper.move(M, i, x, strength * (v[i] / (1.0 + 2.0 * t / fade) if fade else v[i]))
            v[w] *= rate_decay
            C[w] += 1
        if after:
            after(h)
        winners.append(w)
    return {"prototypes_": np.array(M), "learning_rates_": v, "win_counts_": C, "winners": winners}
