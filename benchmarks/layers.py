"""Speed of a stack of layers, beside the bare arithmetic and a PyTorch convolution of the same shape.

    python -m benchmarks.layers [--rounds 7] [--json FILE]

One core, processor time, images of 28 x 28, 40 units on patches of 4 x 4 (the default) and of 5 x 5. "bare arithmetic"
is what has to be multiplied and nothing else, as one matrix product of the BLAS on patches that are laid out for it:
625 places x 16 numbers x units for the features (576 x 25), and for learning half of d x d more. PyTorch's line is
conv2d alone: no winners, no pooling, no learning.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core; must be set before numpy loads

import numpy as np

from benchmarks.timing import Subject, spread, take_turns
from ccmem import DiscriminantClassifier, PatchLayer, Stack

IMAGES = 2048


def images() -> tuple[np.ndarray, np.ndarray]:
    """Return strokes on a dark background; timing does not depend on the content."""
    rng = np.random.default_rng(0)
    X = np.zeros((IMAGES, 28, 28), np.float32)
    for image in X:
        for _ in range(3):
            y, x = rng.integers(4, 20, 2)
            image[y : y + rng.integers(1, 8), x : x + rng.integers(1, 8)] = rng.random()
    return X.reshape(IMAGES, 784), rng.integers(10, size=IMAGES)


N_UNITS = 40


def subjects(patch_size: int) -> list[Subject]:
    X, y = images()
    layers = [PatchLayer(N_UNITS, patch_size=patch_size, random_state=0)]
    taught = Stack(layers, DiscriminantClassifier()).partial_fit(X, y)
    layer, readout = taught.layers_[0], taught.last_
    features = layer.transform(X)
    taught.predict(X[:64])
    D = np.ascontiguousarray(layer._state.units)
    places = (29 - patch_size) ** 2
    patches = np.random.default_rng(0).random((D.shape[1], places), dtype=np.float32)
    answers = np.empty((N_UNITS, places), np.float32)
    half = features[:32]

    pairs = np.arange(IMAGES) * 5 // IMAGES * 2 + y % 2  # as in a stream of tasks

    def product() -> None:
        for _ in range(IMAGES):
            np.dot(D, patches, out=answers)

    def learning() -> None:
        product()
        for _ in range(IMAGES // 64):  # 32 rows are half the work of 64, because the matrix is symmetric
            half.T @ half

    def one_by_one() -> None:
        for x, label in zip(X[:512], y[:512], strict=True):
            taught.learn_one(x, label)

    return [
        Subject("encode", IMAGES, lambda: lambda: layer.transform(X)),
        Subject("encode and learn", IMAGES, lambda: lambda: taught.partial_fit(X, y)),
        Subject("encode and learn, two classes at a time", IMAGES, lambda: lambda: taught.partial_fit(X, pairs)),
        Subject("encode and learn, one by one", 512, lambda: one_by_one),
        Subject("predict", IMAGES, lambda: lambda: taught.predict(X)),
        Subject("readout alone, learn", IMAGES, lambda: lambda: readout.partial_fit(features, y)),
        Subject("bare arithmetic of encoding", IMAGES, lambda: product),
        Subject("bare arithmetic of encoding and learning", IMAGES, lambda: learning),
        *torch_subjects(patch_size, X),
    ]


def torch_subjects(side: int, X: np.ndarray) -> list[Subject]:
    try:
        import torch
    except ImportError:
        return []
    torch.set_num_threads(1)
    weights = torch.randn(N_UNITS, 1, side, side)
    batch = torch.from_numpy(X).reshape(-1, 1, 28, 28)

    def convolve(size: int) -> Any:
        def run() -> None:
            with torch.no_grad():
                for start in range(0, IMAGES, size):
                    torch.nn.functional.conv2d(batch[start : start + size], weights)

        return lambda: run

    return [Subject(f"PyTorch conv2d, batch {size}", IMAGES, convolve(size)) for size in (1, 256)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    kept = {}
    for side in (4, 5):
        seconds = take_turns(subjects(side), options.rounds)
        bare = {"encode": "bare arithmetic of encoding", "encode and learn": "bare arithmetic of encoding and learning"}
        lines = {}
        for name, values in seconds.items():
            facts = {"images_per_second": 1 / spread(values)["median"], "best": 1 / float(values.min())}
            if name in bare:
                facts["times_bare"] = float(np.median(values / seconds[bare[name]]))
            lines[name] = facts
            ratio = f", {facts['times_bare']:.1f} times the bare arithmetic" if "times_bare" in facts else ""
            print(f"{side} x {side}  {name:42} {facts['images_per_second']:9,.0f} images/s{ratio}", flush=True)
        kept[f"{side} x {side}"] = lines
    if options.json:
        options.json.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
