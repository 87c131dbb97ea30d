"""Self-organising map, from the equations in :mod:`ccmem.models.som`."""

from __future__ import annotations

import math

from naive import units


def place(i, columns, topology):
    row, column = divmod(i, columns)
    return (column + row % 2 / 2, row * math.sqrt(0.75)) if topology == "hexagonal" else (column, row)


def naive(
    X, rows, columns, topology, schedule, learning_rate, rate_decay, sigma, horizon, elasticity, p, step, beta_1, beta_2
):
    n_units, span = rows * columns, [0.0]

    def gap(i, w):
        a, b = place(i, columns, topology), place(w, columns, topology)
        return (a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1])

    def strengths(t, h, w):
        if schedule == "fading":
            width = sigma / (1.0 + 2.0 * t / horizon)
            fading = [math.exp(-gap(i, w) / (2.0 * width * width)) for i in range(len(h))]
            return [s if s >= least else 0.0 for s in fading]
        span[0] = max(span[0], *h)
        corner = place(n_units - 1, columns, topology)
        reach = elasticity * elasticity * h[w] / max(span[0], 1e-300)
        reach *= max(1.0, corner[0] * corner[0] + corner[1] * corner[1])
        if reach == 0:
            return [0.0] * len(h)
        return [math.sqrt(h[i] / span[0]) * math.exp(-gap(i, w) / reach) for i in range(len(h))]

    least = 2.0**-23 if X.itemsize == 4 else 2.0**-52
    if schedule == "elastic":
        return units.learn(X, n_units, p, learning_rate, rate_decay, step, beta_1, beta_2, strengths)
    return units.learn(X, n_units, p, learning_rate, rate_decay, step, beta_1, beta_2, strengths, fade=horizon)
