"""What the benchmarks run on: Split MNIST if MNIST is at hand (``CCMEM_DATA``), otherwise rows of the same shape."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np

WIDTH, ROWS = 784, 60_000


def stream() -> tuple[str, np.ndarray, np.ndarray]:
    """Name, rows in the order of five tasks of two classes each, and a label for each: which class of its pair."""
    rng = np.random.default_rng(0)
    folder = Path(os.environ.get("CCMEM_DATA", "")) / "mnist"
    images, labels = folder / "train-images-idx3-ubyte.gz", folder / "train-labels-idx1-ubyte.gz"
    if images.is_file() and labels.is_file():
        X = np.frombuffer(gzip.decompress(images.read_bytes()), np.uint8, offset=16).reshape(-1, WIDTH)
        y = np.frombuffer(gzip.decompress(labels.read_bytes()), np.uint8, offset=8)
        order = np.lexsort((rng.random(len(y)), y // 2))  # task after task, mixed within
        return "Split MNIST", X[order].astype(np.float32) / np.float32(255), (y[order] % 2).astype(np.int64)
    return "random images of MNIST's shape", images_like(rng, ROWS), rng.integers(0, 2, ROWS)


def images_like(rng: np.random.Generator, n: int) -> np.ndarray:
    """Non-negative rows with a few leading directions, as images have."""
    strokes = rng.random((40, WIDTH), dtype=np.float32) ** 8
    mixtures = rng.random((n, 40), dtype=np.float32) ** 4
    return np.clip(mixtures @ strokes - np.float32(0.4), 0, 1)
