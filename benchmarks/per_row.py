"""Latency of the usual stream loop, one prediction and one update per row, compared with River's models.

    python -m benchmarks.per_row [--rows 2000] [--rounds 5] [--json FILE]

Every model learns the same 1,000 rows first, then loops over the same rows in turn with all others; a figure is the
median over rounds of the processor time per row, and the ratio to River's Gaussian naive Bayes within a round. Eight
columns and three classes; the last lines have 21 columns and 40 classes. River's models take dictionaries, ours arrays;
``river:`` marks ours behind their adapter, with dictionaries.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core; must be set before numpy loads

import numpy as np

import ccmem
from benchmarks.timing import Subject, ratio, spread, take_turns
from ccmem.base.memory import CompetitiveMemory

WARM = 1000
MODELS: dict[str, Callable[[], Any]] = {
    "CCM": lambda: ccmem.CCM(random_state=0),
    "AdaptiveCCM": lambda: ccmem.AdaptiveCCM(),
    "ModalClassifier(AdaptiveCCM())": lambda: ccmem.ModalClassifier(ccmem.AdaptiveCCM()),
    "DiscriminantClassifier()": lambda: ccmem.DiscriminantClassifier(),
}
CLASSIFIERS = ("ModalClassifier(AdaptiveCCM())", "DiscriminantClassifier()")


def rows(n: int, n_columns: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of Gaussian classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(n_classes, size=n)
    return 2.0 * rng.normal(size=(n_classes, n_columns))[y] + rng.normal(size=(n, n_columns)), y


def river_models() -> dict[str, Callable[[], Any]]:
    """Return River's classifiers by name."""
    from river import forest, linear_model, naive_bayes, preprocessing, tree

    return {
        "Gaussian naive Bayes": naive_bayes.GaussianNB,
        "softmax regression, scaled": lambda: preprocessing.StandardScaler() | linear_model.SoftmaxRegression(),
        "Hoeffding tree": tree.HoeffdingTreeClassifier,
        "Hoeffding adaptive tree": lambda: tree.HoeffdingAdaptiveTreeClassifier(seed=0),
        "adaptive random forest": lambda: forest.ARFClassifier(seed=0),
    }


def one_by_one(model: Any, inputs: list[Any], y: list[Any]) -> Any:
    """Prepare a loop of ``predict_one`` and ``learn_one``; memories are given no label."""
    labelled = not isinstance(model, CompetitiveMemory)
    for x, label in zip(inputs[:WARM], y[:WARM], strict=True):
        model.learn_one(x, label) if labelled else model.learn_one(x)

    def prepare() -> Callable[[], None]:
        fresh = copy.deepcopy(model)

        def loop() -> None:
            for x, label in zip(inputs[WARM:], y[WARM:], strict=True):
                fresh.predict_one(x)
                fresh.learn_one(x, label) if labelled else fresh.learn_one(x)

        return loop

    return prepare


def in_chunks_of_one(model: Any, X: np.ndarray, y: list[Any]) -> Any:
    """Prepare a loop of ``predict`` and ``partial_fit``, each with one row."""
    model.partial_fit(X[:WARM], y[:WARM])

    def prepare() -> Callable[[], None]:
        fresh = copy.deepcopy(model)

        def loop() -> None:
            for i in range(WARM, len(X)):
                fresh.predict(X[i : i + 1])
                fresh.partial_fit(X[i : i + 1], y[i : i + 1])

        return loop

    return prepare


def subjects(n: int) -> list[Subject]:
    """Return all loops, each with one model."""
    from ccmem.river import MemoryClassifier

    found = []
    X, codes = rows(WARM + n, 8, 3)
    y, dicts = codes.tolist(), [dict(enumerate(x.tolist())) for x in X]
    for name, make in MODELS.items():
        found.append(Subject(name, n, one_by_one(make(), list(X), y)))
    for name in CLASSIFIERS:
        found.append(Subject(f"{name}, predict + partial_fit", n, in_chunks_of_one(MODELS[name](), X, y)))
        found.append(Subject(f"river: {name}", n, one_by_one(MemoryClassifier(MODELS[name]()), dicts, y)))
    for name, make in river_models().items():
        found.append(Subject(name, n, one_by_one(make(), dicts, y)))
    X, codes = rows(WARM + n, 21, 40)
    y, dicts = codes.tolist(), [dict(enumerate(x.tolist())) for x in X]
    wide = "DiscriminantClassifier()"
    found.append(Subject(f"{wide}, 21 columns, 40 classes", n, one_by_one(MODELS[wide](), list(X), y)))
    name = "Gaussian naive Bayes"
    few = n // 10  # far slower (a thousand times) than with three classes and eight columns
    slow = one_by_one(river_models()[name](), dicts[: WARM + few], y[: WARM + few])
    found.append(Subject(f"{name}, 21 columns, 40 classes", few, slow))
    return found


def main() -> None:
    """Time all loops in turn and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    times = take_turns(subjects(options.rows), options.rounds)
    base = times["Gaussian naive Bayes"]
    figures = {name: {"seconds": spread(t), "times_naive_bayes": ratio(t, base)} for name, t in times.items()}
    print("| model | us per row | times Gaussian naive Bayes |\n|---|---|---|")
    for name, figure in figures.items():
        print(f"| {name} | {figure['seconds']['median'] * 1e6:.0f} | {figure['times_naive_bayes']['median']:.2f} |")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
