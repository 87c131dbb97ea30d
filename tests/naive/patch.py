"""The equations of :mod:`ccmem.layers.patch`, one patch at a time, in double precision."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def _patches(image: Any, side: int) -> Any:
    """Return every patch, channel after channel, minus its mean; shape (rows of places, columns of places, numbers)."""
    planes = np.moveaxis(np.atleast_3d(image).astype(np.float64), 2, 0)
    planes = planes - planes.mean(axis=(1, 2), keepdims=True)
    windows = np.lib.stride_tricks.sliding_window_view(planes, (side, side), axis=(1, 2))
    patches = np.moveaxis(windows, 0, 2).reshape(*windows.shape[1:3], -1)
    return patches - patches.mean(axis=2, keepdims=True)


def learn(images: Any, units: Any, side: int, per_image: int) -> tuple[Any, list[int]]:
    """Return units and wins after learning some images, starting from ``units``."""
    d, wins = list(units.astype(np.float64)), [0] * len(units)
    M, learned = len(d), 0
    for image in images:
        X = _patches(image, side).reshape(-1, len(d[0]))
        contrast = (X**2).sum(axis=1)
        step = next(s for s in range(max(int(0.618 * len(X)), 1), 2 * len(X) + 2) if math.gcd(s, len(X)) == 1)
        places = [k * step % len(X) for k in range(len(X))]
        for place in [p for p in places if contrast[p] > contrast.mean()][:per_image]:
            x = X[place] / np.sqrt(contrast[place])
            if learned < M and all(d[j] @ x < 0.9 for j in range(learned)):
                d[learned], wins[learned] = x, 1
                learned += 1
                continue
            j = max(range(learned), key=lambda j: (d[j] @ x - 0.02 * (M * wins[j] / sum(wins) - 1), -j))
            wins[j] += 1
            d[j] = d[j] + (x - d[j]) / wins[j]
            d[j] /= np.linalg.norm(d[j])
    return np.array(d), wins


def features(image: Any, units: Any, side: int, grid: int, softening: float) -> Any:
    """Return the features of one image."""
    X = _patches(image, side)
    contrast = (X**2).sum(axis=2)
    f = np.zeros((len(units), grid, grid))
    high, wide = contrast.shape

    def share(place: int, cell: int, n: int) -> float:
        centre = min(max((place + 0.5) * grid / n - 0.5, 0), grid - 1)
        return max(0.0, 1 - abs(centre - cell))

    for y in range(high):
        for x in range(wide):
            s = units @ X[y, x] / np.sqrt(contrast[y, x] + softening * contrast.mean())
            a = np.maximum(s - np.sort(s)[-4], 0)
            for row in range(grid):
                for column in range(grid):
                    f[:, row, column] += a * share(y, row, high) * share(x, column, wide)
    f = f.ravel() ** 0.375
    return f / (np.linalg.norm(f) or 1.0)
