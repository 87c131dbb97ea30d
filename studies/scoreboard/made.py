"""Synthetic streams with a fixed seed: controls, planted changes, plants with a fault, slow returns.

Seeds below 1,000 are for development; those from ``RESERVED`` on are for verification only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.signal import lfilter

RESERVED = 1000
"""First seed of the verification range; no setting may be chosen by its results."""
FAULT, BACK = 1500, 2300
"""Rows at which the fault of a plant begins and ends."""
KINDS = ("shift", "noise", "stuck", "slope")
"""Kind of fault of plant ``seed``: ``KINDS[seed % 4]``."""
PLANTED = slice(2000, 3000)
LEFT, RETURN = 1500, 2500
"""Rows at which the fault of a slow return begins, and begins to fade."""


def autoregressive(weight: float, noise: Any) -> Any:
    """Return the process x_t = weight x_(t-1) + noise_t."""
    return lfilter([1.0], [1.0, -weight], noise, axis=0)


def controls(n_rows: int, seed: int, n_columns: int = 8) -> Iterator[tuple[str, Any]]:
    """Generate streams without a change."""
    rng = np.random.default_rng(seed)
    shape, decades = (n_rows, n_columns), 10.0 ** np.linspace(-3, 3, n_columns)
    yield "iid", rng.normal(size=shape)
    yield "t3", rng.standard_t(3, size=shape)
    yield "exponential", rng.exponential(size=shape)
    yield "AR .95", autoregressive(0.95, rng.normal(size=shape))
    yield "AR .99", autoregressive(0.99, rng.normal(size=shape))
    yield "random walk", np.cumsum(rng.normal(size=shape), axis=0)
    periods = np.geomspace(50, 7000, n_columns)
    angles = 2 * np.pi * np.arange(n_rows)[:, None] / periods + np.arange(n_columns)
    yield "periodic", np.sin(angles) + 0.1 * rng.normal(size=shape)
    yield "six decades", decades * (5 + rng.normal(size=shape))


def planted(seed: int) -> Iterator[tuple[str, Any]]:
    """Generate 4,000 rows for each kind of change, from row 2,000 to 3,000 unless the name says otherwise."""
    rng = np.random.default_rng(seed)
    changed, angle = PLANTED, 2 * np.pi * np.arange(4000) / 40

    def noise(n_columns: int = 8) -> Any:
        return rng.normal(size=(4000, n_columns))

    X = noise(50)
    X[changed, 7] += 2
    yield "one column of 50, two deviations", X
    X = noise()
    X[changed, 3] += 2
    yield "one column of 8 over six decades, two deviations", 10.0 ** np.linspace(-3, 3, 8) * (5 + X)
    X = noise()
    X[changed] *= 1.5
    yield "every spread times 1.5", X
    X = noise()
    X[:, 0] += 4 * np.clip((np.arange(4000) - 2000) / 1000, 0, 1)
    yield "one column drifts by four deviations in 1,000 rows, and stays", X
    for rows in (20, 60):
        X = noise()
        X[2000 : 2000 + rows, 0] += 4
        yield f"one column by four deviations, for {rows} rows", X
    x = np.sin(angle) + 0.1 * rng.normal(size=4000)
    x[changed] += (np.sqrt(0.5) * np.sign(np.sin(angle)) - np.sin(angle))[changed]
    yield "waveform: a sine becomes a square wave of its spread", x[:, None]
    x = np.sin(angle) + 0.1 * rng.normal(size=4000)
    x[changed] += (np.sin(1.25 * angle) - np.sin(angle))[changed]
    yield "period: 40 becomes 32", x[:, None]
    for n_columns in (2, 8, 50):
        X = noise(n_columns)
        X[changed, 1] = 0.9 * X[changed, 0] + np.sqrt(1 - 0.81) * X[changed, 1]
        yield f"correlation: two columns of {n_columns}, .9", X


def slow_return(seed: int, weight: float, deviations: float, over: int) -> Any:
    """Generate four autoregressive columns; the second moves at row LEFT and is back ``over`` rows after RETURN."""
    X = autoregressive(weight, np.sqrt(1 - weight**2) * np.random.default_rng(seed).normal(size=(4000, 4)))
    X[LEFT:RETURN, 1] += deviations
    X[RETURN : RETURN + over, 1] += np.linspace(deviations, 0, over)
    return X


def plant(seed: int, faulty: bool = True, n: int = 3000) -> Any:
    """Generate a plant: slow factors shared by columns, a cycle, a quantised column, columns in arbitrary units."""
    rng = np.random.default_rng([seed, 99])
    width, factors = int(rng.integers(4, 16)), int(rng.integers(1, 4))
    slowness = rng.uniform(0.5, 0.99, factors)
    hidden, steps = np.zeros((n, factors)), rng.normal(size=(n, factors))
    for t in range(1, n):
        hidden[t] = slowness * hidden[t - 1] + np.sqrt(1 - slowness**2) * steps[t]
    X = hidden @ rng.normal(size=(factors, width)) + rng.uniform(0.2, 1, width) * rng.normal(size=(n, width))
    cycle = 2 * np.pi * np.arange(n) / rng.uniform(30, 400) + rng.uniform(0, 6)
    X[:, rng.integers(0, width)] += rng.uniform(0.5, 3) * np.sin(cycle)
    X = X * 10 ** rng.uniform(-3, 3, width) + 10 ** rng.uniform(-1, 3, width) * rng.normal(size=width)
    if faulty:
        spread, part = X[:FAULT].std(axis=0), slice(FAULT, BACK)
        for c in rng.choice(width, int(rng.integers(1, 3)), replace=False):
            if KINDS[seed % 4] == "shift":
                X[part, c] += rng.choice([-1, 1]) * rng.uniform(1.5, 4) * spread[c]
            elif KINDS[seed % 4] == "noise":
                level = X[part, c].mean()
                X[part, c] = level + (X[part, c] - level) * rng.choice([0.3, 2.5])
            elif KINDS[seed % 4] == "stuck":
                X[part, c] = X[FAULT - 1, c]
            else:
                X[part, c] += np.linspace(0, 1, BACK - FAULT) ** 0.5 * rng.uniform(2, 5) * spread[c]
    coarse = rng.integers(0, width)
    grain = X[:, coarse].std() * rng.uniform(0.05, 0.8)
    X[:, coarse] = np.round(X[:, coarse] / grain) * grain
    return np.ascontiguousarray(X)
