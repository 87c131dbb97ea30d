"""Selection of the layer settings: strict accuracy on a sixth of the training part, after learning the rest.

    python -m studies.layers_tuning mnist fashion-mnist notmnist

The test part is not read. studies/evidence/layers/validation.txt lists the results from which the settings were chosen:
one stream per line, with the default seed unless another is given.
"""

from __future__ import annotations

import sys

import numpy as np

from ccmem import DiscriminantClassifier, PatchLayer, datasets
from ccmem.paper.experiments.protocol import Benchmark
from studies.layers import orders, task_accuracy

LAYERS: list[tuple[dict[str, object], tuple[int, ...]]] = [
    ({"n_units": 16, "patch_size": 5}, (20,)),
    ({"n_units": 28, "grid": 3, "patch_size": 5}, (20,)),
    ({"n_units": 28, "grid": 3}, (20,)),
    ({"n_units": 32}, (20, 30, 40)),
    ({"n_units": 32, "patch_size": 5}, (20, 30, 40)),
    ({"n_units": 44}, (20,)),
    ({"n_units": 44, "patch_size": 5}, (10, 20, 30, 40)),
    ({"n_units": 44, "patch_size": 5, "units": "random"}, (20,)),
    ({"n_units": 44, "patch_size": 5, "patches_per_image": 10}, (20,)),
    ({"n_units": 44, "patch_size": 6}, (20,)),
    ({"n_units": 48, "patch_size": 5}, (20,)),
    ({"n_units": 78, "grid": 3}, (20,)),
    ({"n_units": 78, "grid": 3, "patch_size": 5}, (20,)),
]
"""Layers, and the numbers of axes tried on each."""
RULES = [(own_share, ridge) for own_share in (0.3, 0.4, 0.5, 0.6, 0.7) for ridge in (0.01, 0.02, 0.04)]


def compare(name: str, seed: int = 0) -> None:
    held = Benchmark.validation(datasets.load(name, download=False))
    X, y = held.X[held.rows], held.y[held.rows]
    order = orders(y, "standard", seed)
    for parameters, numbers_of_axes in LAYERS:
        layer = PatchLayer(**parameters, random_state=seed).partial_fit(X[order[:200]])  # type: ignore[arg-type]
        parts = np.array_split(order, max(len(order) // 2000, 1))
        features, test = np.concatenate([layer.transform(X[part]) for part in parts]), layer.transform(held.X_test)
        for n_axes in numbers_of_axes:
            readout = DiscriminantClassifier(n_axes).partial_fit(features, y[order])
            for own_share, ridge in RULES:
                readout.set_params(own_share=own_share, ridge=ridge)
                right = task_accuracy(readout.predict(test), held.y_test)
                print(name, parameters, n_axes, own_share, ridge, f"{right:.4f}", flush=True)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        compare(name)
