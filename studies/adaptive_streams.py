"""Data and streams of :mod:`studies.adaptive`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from ccmem import datasets
from ccmem.io.streams.splits import TaskStream, recurring_tasks, shuffled, split_by_class
from ccmem.paper.experiments.protocol import Benchmark

IMAGES = ("mnist", "fashion-mnist", "notmnist")
MADE = ("embeddings", "sensors")
STREAMS = ("five tasks", "recurring", "shuffled", "ten tasks", "blurred", "short tasks")
SHORT = 300
BLUR = 0.2
RETURNS = 3


def made(name: str) -> Any:
    """Synthetic data of ten classes: embeddings (256 columns, all in one cone) or standardised sensors (6 columns)."""
    rng = np.random.default_rng([256, MADE.index(name)])
    width, n_modes, spread = (256, 4, 1.0) if name == "embeddings" else (6, 2, 0.5)
    cone = rng.normal(size=width) * (2.0 if name == "embeddings" else 0.0)
    loadings = rng.normal(size=(width, width)) / np.arange(1, width + 1) ** 0.5  # a few directions carry most
    loadings /= np.sqrt((loadings**2).sum(axis=1, keepdims=True))
    centres = rng.normal(size=(10, 1, width)) * (0.6 if name == "embeddings" else 1.0)
    modes = centres + 0.5 * rng.normal(size=(10, n_modes, width))

    def draw(n: int) -> tuple[Any, Any]:
        y = rng.permutation(np.arange(n) % 10)
        noise = rng.normal(size=(n, width)) @ loadings.T * spread
        return (cone + modes[y, rng.integers(0, n_modes, n)] + noise).astype(np.float32), y

    (X, y), (X_test, y_test) = draw(20_000), draw(5_000)
    return SimpleNamespace(X_train=X, y_train=y, X_test=X_test, y_test=y_test)


def load(name: str, folder: str | None) -> Any:
    """Load a data set, with pixels in [0, 1]."""
    return made(name) if name in MADE else datasets.load(name, folder=folder)


def make_stream(kind: str, benchmark: Benchmark, seed: int) -> TaskStream:
    """Arrange the rows of a benchmark as one of STREAMS."""
    y, rng = benchmark.y[benchmark.rows], np.random.default_rng([seed, 7])
    rows, n_tasks = benchmark.rows, len(benchmark.tasks)
    if kind == "short tasks":
        parts = [rng.choice(rows[np.isin(y, task)], SHORT, replace=False) for task in benchmark.tasks]
        rows = np.sort(np.concatenate(parts))
        y = benchmark.y[rows]
    if kind == "recurring":
        stream = recurring_tasks(y, list(range(n_tasks)) * RETURNS, n_tasks, random_state=seed)
    elif kind == "shuffled":
        stream = shuffled(y, random_state=seed)
    else:
        stream = split_by_class(y, n_tasks, blur=BLUR if kind == "blurred" else 0.0, random_state=seed)
    return TaskStream(rows[stream.indices], stream.tasks, stream.visits, stream.change_points, stream.sample_tasks)


def beginnings(stream: TaskStream) -> list[int]:
    """Return the rows where tasks begin to mix; visits change mid-mix, so a detection in between is no false alarm."""
    edges = [0, *stream.change_points, len(stream)]
    shorter = [min(b - a, c - b) for a, b, c in zip(edges, edges[1:], edges[2:], strict=False)]
    return [change - int(BLUR * n / 2) for change, n in zip(stream.change_points, shorter, strict=True)]
