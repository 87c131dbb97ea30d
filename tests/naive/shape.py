"""The equations of :mod:`ccmem.layers.shape`, one subsequence at a time, in double precision."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np


def prepare(X: Any, levels: Any, spreads: Any) -> Any:
    """Rows in units of the first rows; a missing reading is replaced by the one before it, or by the mean."""
    rows, latest = [], np.zeros(X.shape[1])
    for x in X:
        scaled = (x - levels) / spreads
        latest = np.where(np.isnan(scaled), latest, scaled)
        rows.append(latest)
    return np.array(rows, np.float32).astype(np.float64).reshape(-1, X.shape[1])


def subsequences(rows: Any, taps: int, dilation: int) -> Any:
    """Subsequence at every place, channel after channel, each channel less its mean."""
    found = []
    for start in range(len(rows) - taps * dilation + 1):
        parts = [rows[start + k * dilation : start + (k + 1) * dilation].mean(axis=0) for k in range(taps)]
        points = np.array(parts)
        found.append((points - points.mean(axis=0)).T.ravel())
    return np.array(found)


def learn(X: Any, units: Any) -> tuple[Any, list[int]]:
    """Units and wins after learning the subsequences ``X``; ``units`` are those that are there at first."""
    d, wins, M, learned = list(units.astype(np.float64)), [0] * len(units), len(units), 0
    for similar, x in itertools.product((0.9, 0.95, 0.98), X):
        if x @ x <= 1e-6:
            continue
        x = x / np.linalg.norm(x)
        if learned < M and all(d[j] @ x < similar for j in range(learned)):
            d[learned], wins[learned] = x, 1
            learned += 1
            continue
        j = max(range(learned), key=lambda j: (d[j] @ x - 0.02 * (M * wins[j] / sum(wins) - 1), -j))
        wins[j] += 1
        d[j] = d[j] + (x - d[j]) / wins[j]
        d[j] /= np.linalg.norm(d[j])
    return np.array(d), wins


def activations(X: Any, units: Any, square: float, gain: str) -> Any:
    """Activation of every unit (columns) at every place (rows)."""
    found = []
    for x in X:
        length = np.sqrt(x @ x + 0.05 * square + 1e-6) if gain == "free" else np.sqrt(square + 1e-6)
        s = units @ x / length
        found.append(np.maximum(s - np.sort(s)[-4], 0))
    return np.array(found)


def features(rows: Any, layer: Any) -> Any:
    """Features of all windows of prepared rows, with the units of ``layer``."""
    W, hop = layer.window_, layer.hop_
    block = max(b for b in range(1, max(1, W // 32) + 1) if hop % b == 0)
    longest = max(taps * dilation for taps, dilation in layer._scales)
    n_blocks = min(math.ceil(W // 2 / block), (W - longest + 1) // block)
    weights = np.repeat(1.0, n_blocks * block)
    weights[-block:] = min(1.0, W // 2 / block - n_blocks + 1)
    size = rows.shape[1] if layer.channels == "together" else 1
    groups = [rows[:, c : c + size] for c in range(0, rows.shape[1], size)]
    found = []
    for start in range(0, len(rows) - W + 1, hop):
        f: list[float] = []
        for scale, (taps, dilation) in enumerate(layer._scales):
            for g, group in enumerate(groups):
                X = subsequences(group[start : start + W], taps, dilation)
                a = activations(X, layer._units[scale][g], layer._squares[scale, g], layer.gain)
                means = weights @ a[-len(weights) :] / weights.sum()
                f += (np.sqrt(means + 0.01) - 0.1).tolist()
        window = rows[start : start + W // block * block]
        variances = window.var(axis=0) + 1e-4
        for level, variance in zip(window.mean(axis=0), variances, strict=True):
            f += [level, np.log(variance) / 2]
        if rows.shape[1] <= 8:
            covariances = np.cov(window.T, bias=True).reshape(len(variances), -1)
            for i, j in zip(*np.triu_indices(len(variances), 1), strict=True):
                r = covariances[i, j] / np.sqrt(variances[i] * variances[j])
                f.append(np.log((1 + r + 1e-3) / (1 - r + 1e-3)) / 2)
        found.append(f)
    return np.array(found)
