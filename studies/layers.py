"""Layers and readouts: other orders of tasks, controls, imbalance, few labels, a poor beginning, other data.

    KEPT=studies/evidence/layers
    ccmem reproduce mnist fashion-mnist notmnist --rows layers --protocols strict --out $KEPT
    ccmem reproduce mnist fashion-mnist notmnist --rows layers --protocols paper --trials 3 --out $KEPT/paper
    python -m studies.layers orders controls imbalance labels start calibration other       # any of them
    python -m studies.layers --report                                                       # tables and chart

``ccmem reproduce`` makes the tables of ten trials; this module makes all others, with one to three trials each. Only
these runs use the test part; settings were chosen on a sixth of the training part (studies/layers_tuning.py). Every
trial is stored in studies/evidence/layers/trials.json when it ends, so that an interrupted run can be resumed.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ccmem import AdaptiveCCM, DiscriminantClassifier, ModalClassifier, PatchLayer, Stack, datasets, experiments
from studies import layers_other

FOLDER = Path(__file__).parent / "evidence" / "layers"
SETS = ("mnist", "fashion-mnist", "notmnist")
TRIALS = 3
CHUNK = 512

OWN: dict[str, Callable[[int], Any]] = {
    "memory, its own metric": lambda seed: Stack(
        [PatchLayer(32, random_state=seed)],
        ModalClassifier(AdaptiveCCM(max_units=600, fair=False), n_winners=3, balanced=True),
    ),
    "pixels, no layer": lambda seed: DiscriminantClassifier(),
}
"""Controls in addition to the rows of ``ccmem reproduce``."""


def new(model: str, seed: int) -> Any:
    """Create a model by its name among the controls or the rows of ``ccmem reproduce``."""
    if model in OWN:
        return OWN[model](seed)
    (row,) = experiments.rows("mnist", [model], ["layers"])
    return row.build(np.empty((0, 0)), (), seed)


def orders(y: np.ndarray, name: str, seed: int) -> np.ndarray:
    """Return rows of the training part in stream order: tasks of two classes by default."""
    rng = np.random.default_rng([seed, 0])
    classes = np.unique(y)
    if name == "joint":
        return rng.permutation(len(y))
    if name == "reversed":
        classes = classes[::-1]
    elif name == "random":
        classes = rng.permutation(classes)
    size = 1 if name == "one class at a time" else 2
    tasks = [classes[k : k + size] for k in range(0, len(classes), size)]
    return np.concatenate([rng.permutation(np.flatnonzero(np.isin(y, task))) for task in tasks])


def teach(model: Any, X: np.ndarray, y: np.ndarray) -> Any:
    for start in range(0, len(X), CHUNK):
        model.partial_fit(X[start : start + CHUNK], y[start : start + CHUNK])
    return model


def task_accuracy(predicted: np.ndarray, y: np.ndarray) -> float:
    """Return the mean accuracy over the five tasks of two classes, as in the tables."""
    right = predicted == y
    return float(np.mean([right[y // 2 == task].mean() for task in range(5)]))


def accuracy(data: Any, model: str, seed: int, order: str = "standard") -> dict[str, Any]:
    rows = orders(data.y_train, order, seed)
    taught = teach(new(model, seed), data.X_train[rows], data.y_train[rows])
    return {
        "ACC": task_accuracy(taught.predict(data.X_test), data.y_test),
        "floats": int(taught.n_floats_),
        "working": int(taught.working_floats_),
    }


def imbalance(data: Any, model: str, seed: int) -> dict[str, Any]:
    """Keep one image in a hundred of each odd class."""
    rows = orders(data.y_train, "standard", seed)
    rare = data.y_train[rows] % 2 == 1
    keep = ~rare | (np.random.default_rng(seed).random(len(rows)) < 0.01)
    rows = rows[keep]
    taught = teach(new(model, seed), data.X_train[rows], data.y_train[rows])
    predicted = taught.predict(data.X_test)
    right, odd = predicted == data.y_test, data.y_test % 2 == 1
    return {
        "ACC": task_accuracy(predicted, data.y_test),
        "rare": float(right[odd].mean()),
        "frequent": float(right[~odd].mean()),
        "rare images": int((data.y_train[rows] % 2 == 1).sum()),
    }


def few_labels(data: Any, model: str, seed: int) -> dict[str, Any]:
    """Keep the label of one image in a hundred."""
    rows = orders(data.y_train, "standard", seed)
    labels = data.y_train[rows].astype(np.float64)
    labels[np.random.default_rng(seed).random(len(rows)) >= 0.01] = np.nan
    taught = teach(new(model, seed), data.X_train[rows], labels)
    return {"ACC": task_accuracy(taught.predict(data.X_test), data.y_test), "labels": int(np.isfinite(labels).sum())}


def poor_start(data: Any, model: str, seed: int, kind: str) -> dict[str, Any]:
    """Start the stream with 500 constant images of an extra class, or with 500 images of one class."""
    rows = orders(data.y_train, "standard", seed)
    X, y = data.X_train[rows], data.y_train[rows]
    if kind == "constant":
        level = np.random.default_rng(seed).random((500, 1), dtype=np.float32)
        X, y = np.vstack([np.repeat(level, X.shape[1], axis=1), X]), np.concatenate([np.full(500, 10), y])
    else:
        first = np.flatnonzero(y == 1)[:500]
        rest = np.setdiff1d(np.arange(len(y)), first, assume_unique=True)
        X, y = X[np.concatenate([first, rest])], y[np.concatenate([first, rest])]
    taught = teach(new(model, seed), X, y)
    found = {"ACC": task_accuracy(taught.predict(data.X_test), data.y_test)}
    if kind == "constant":
        found["constant images"] = float(np.mean(taught.predict(np.full((1, X.shape[1]), 0.37, np.float32)) == 10))
    return found


def calibration(data: Any, model: str, seed: int) -> dict[str, Any]:
    """Return the expected calibration error, in 15 bins of equal width, and the mean log loss."""
    rows = orders(data.y_train, "standard", seed)
    taught = teach(new(model, seed), data.X_train[rows], data.y_train[rows])
    p = taught.predict_proba(data.X_test)
    sure, right = p.max(axis=1), p.argmax(axis=1) == data.y_test
    bins = np.minimum((sure * 15).astype(int), 14)
    gaps = [abs(sure[bins == b].mean() - right[bins == b].mean()) * np.mean(bins == b) for b in np.unique(bins)]
    loss = float(-np.log(np.maximum(p[np.arange(len(p)), data.y_test], 1e-12)).mean())
    return {"ECE": float(sum(gaps)), "log loss": loss, "temperature": taught.last_.temperature_}


Run = tuple[str, str, str, Callable[..., Any], dict[str, Any]]
"""Part, data set, line, function, its arguments."""


def runs() -> Iterator[Run]:
    """Return all runs of a trial."""
    for name in SETS:
        for order in ("reversed", "random", "one class at a time", "joint"):
            for model in ("layers-1m", "layers-100k"):
                yield "orders", name, f"{order}, {model}", accuracy, {"model": model, "order": order}
        for model in OWN:
            yield "controls", name, model, accuracy, {"model": model}
        yield "imbalance", name, "layers", imbalance, {"model": "layers"}
        for model in ("layers", "layers-memory"):
            yield "labels", name, model, few_labels, {"model": model}
        for kind in ("constant", "one class"):
            yield "start", name, kind, poor_start, {"model": "layers", "kind": kind}
        yield "calibration", name, "layers", calibration, {"model": "layers"}
    for case in layers_other.CASES:
        for model in layers_other.MODELS:
            if model != "layers" or case.startswith("digits"):
                yield "other", case, model, layers_other.accuracy, {"model": model}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--minutes", type=float, default=1e9, help="begin nothing new after this long")
    parser.add_argument("--only", default="", help="lines whose name contains this")
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    path = FOLDER / "trials.json"
    kept = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    loaded: dict[str, Any] = {}
    began = time.monotonic()
    for seed in range(options.trials):
        for part, name, line, function, arguments in runs():
            if part not in options.parts or options.only not in line or time.monotonic() - began > 60 * options.minutes:
                continue
            done = kept.setdefault(part, {}).setdefault(line, {}).setdefault(name, {})
            if str(seed) in done:
                continue
            if name not in loaded:
                loaded[name] = datasets.load(name, download=False) if name in SETS else name
            done[str(seed)] = function(loaded[name], seed=seed, **arguments)
            path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
            print(part, name, line, seed, done[str(seed)], flush=True)
    if options.report:
        from studies.layers_report import report

        report()


if __name__ == "__main__":
    main()
