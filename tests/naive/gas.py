"""Neural gas, from the equations in :mod:`ccmem.models.gas`."""

from __future__ import annotations

import math

from naive import units


def naive(X, n_units, reach, final_reach, learning_rate, final_rate, rate_decay, horizon, p, step, beta_1, beta_2):
    least = 2.0**-23 if X.itemsize == 4 else 2.0**-52

    def strengths(t, h, w):
        part = min(1.0, t / horizon)
        now = reach * (final_reach / reach) ** part
        first, fall = (final_rate / learning_rate) ** part, math.exp(-1.0 / now)
        result = [0.0] * len(h)
        for rank, i in enumerate(sorted(range(len(h)), key=lambda i: (h[i], i))):
            if rank < int(-now * math.log(least)) + 1:
                result[i] = first
            first *= fall
        return result

    return units.learn(X, n_units, p, learning_rate, rate_decay, step, beta_1, beta_2, strengths, least=0.0)
