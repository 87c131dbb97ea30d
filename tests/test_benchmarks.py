"""Benchmarks still run on the models they measure; tests do not check speed."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
import benchmarks


def test_every_benchmark_can_be_imported():
    for module in pkgutil.iter_modules(benchmarks.__path__):
        if module.name != "__main__":
            importlib.import_module(f"benchmarks.{module.name}")
    assert importlib.import_module("benchmarks.__main__").PARTS


def test_a_memory_of_many_blocks_is_one_that_could_have_been_learned():
    growth = importlib.import_module("benchmarks.growth")
    rng = np.random.default_rng(0)
    memory = growth.memory_of(3, 5, 40, "scattered", rng)
    rows = growth.close_to(memory._state.prototypes, 20, rng)
    product = growth.predicting(memory, rows)[1].prepare()
    np.testing.assert_array_equal(memory.predict(rows), product())
    assert memory.partial_fit(growth.staying(memory, 30, rng)).n_blocks_ == 3
