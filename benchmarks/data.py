"""Benchmark data: Split MNIST if it is available (``CCMEM_DATA``), otherwise synthetic rows of the same shape."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np

WIDTH, ROWS = 784, 60_000


def stream() -> tuple[str, np.ndarray, np.ndarray]:
    """Return a name, rows in the order of five two-class tasks, and each row's class within its pair."""
    rng = np.random.default_rng(0)
    folder = Path(os.environ.get("CCMEM_DATA", "")) / "mnist"
    images, labels = folder / "train-images-idx3-ubyte.gz", folder / "train-labels-idx1-ubyte.gz"
    if images.is_file() and labels.is_file():
        X = np.frombuffer(gzip.decompress(images.read_bytes()), np.uint8, offset=16).reshape(-1, WIDTH)
        y = np.frombuffer(gzip.decompress(labels.read_bytes()), np.uint8, offset=8)
        order = np.lexsort((rng.random(len(y)), y // 2))  # task by task, shuffled within
        return "Split MNIST", X[order].astype(np.float32) / np.float32(255), (y[order] % 2).astype(np.int64)
    return "random images of MNIST's shape", images_like(rng, ROWS), rng.integers(0, 2, ROWS)


def images_like(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return non-negative rows with a few leading directions, like images."""
    strokes = rng.random((40, WIDTH), dtype=np.float32) ** 8
    mixtures = rng.random((n, 40), dtype=np.float32) ** 4
    return np.clip(mixtures @ strokes - np.float32(0.4), 0, 1)
