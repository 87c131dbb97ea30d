"""Readouts on data other than large images: small digits, features of a network, windows of signals.

    python -m studies.layers other

Classes arrive two at a time, in one pass. "readout" is a DiscriminantClassifier on the raw columns, "units" a memory
with votes (five winners), "layers" the readout on a PatchLayer. All use their defaults. In two of the cases a label
covers several unlike groups, for which one mean and a few axes per class are not enough.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits

from ccmem import AdaptiveCCM, DiscriminantClassifier, ModalClassifier, PatchLayer, Stack, WindowLayer

CASES = ("digits", "digits, odd or even", "network", "network, 8 kinds a label", "windows")
PERIOD = 32


class Streamed(NamedTuple):
    """Rows in stream order, and test rows."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def stream(name: str, seed: int) -> Streamed:
    rng = np.random.default_rng(seed)
    X, kinds, y = {"digits": digits, "network": network, "windows": windows}[name.partition(",")[0]](name, rng)
    order = rng.permutation(len(X))
    test, train = np.split(order, [len(X) // 3])
    train = train[np.argsort(kinds[train] // 2, kind="stable")]
    return Streamed(X[train], y[train], X[test], y[test])


def digits(name: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Load 1,797 images of 8 x 8 pixels."""
    X, y = load_digits(return_X_y=True)
    return X.astype(np.float32), y, y % 2 if "odd" in name else y


def network(name: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Simulate network features of 80 kinds of objects: 128 rectified sums of random pixel sums.

    The kinds differ in 24 hidden variables and vary in all of them. Each kind is a class, or eight kinds share one.
    """
    kinds = rng.permutation(np.repeat(np.arange(80), 100))
    hidden = rng.normal(size=(80, 24))[kinds] + rng.normal(size=(len(kinds), 24)) * rng.uniform(0.2, 1.0, 24)
    for n in (256, 128):
        hidden = np.maximum(hidden @ rng.normal(size=(hidden.shape[1], n)) * np.sqrt(2 / hidden.shape[1]), 0)
    return hidden.astype(np.float32), kinds, rng.permutation(80)[kinds] % 10 if "kinds" in name else kinds


def windows(name: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features of a WindowLayer: two seconds each of six kinds of hum, with random phase, loudness and noise."""
    time = 2 * np.pi * np.arange(2 * PERIOD) / PERIOD
    layer = WindowLayer(2 * PERIOD, hop=2 * PERIOD)
    kinds = rng.permutation(np.repeat(np.arange(6), 300))
    turns = time * rng.uniform(0.8, 1.25, (len(kinds), 1)) + rng.uniform(0, 2 * np.pi, (len(kinds), 1))
    waves = [np.sin, lambda t: np.sign(np.sin(t)), lambda t: t / np.pi % 2 - 1, lambda t: np.abs(np.sin(t)) * 2 - 1]
    waves += [lambda t: np.sin(t) ** 5, lambda t: (np.sin(t) + np.sin(3 * t)) / 1.4]
    signals = np.array([waves[kind](t) for kind, t in zip(kinds, turns, strict=True)])
    signals *= rng.uniform(0.5, 2.0, (len(kinds), 1))
    signals += rng.normal(size=signals.shape) * rng.uniform(0.1, 0.6, (len(kinds), 1))
    features = layer.fit(signals[0]).transform(signals.ravel())
    return features.astype(np.float32), kinds, kinds


MODELS = {
    "readout": lambda seed: DiscriminantClassifier(),
    "units": lambda seed: ModalClassifier(AdaptiveCCM(), n_winners=5),
    "layers": lambda seed: Stack([PatchLayer(grid=3, random_state=seed)], DiscriminantClassifier()),
}


def accuracy(name: str, model: str, seed: int) -> dict[str, Any]:
    data = stream(name, seed)
    taught = MODELS[model](seed).partial_fit(data.X, data.y)
    return {"ACC": float(np.mean(taught.predict(data.X_test) == data.y_test)), "floats": int(taught.n_floats_)}
