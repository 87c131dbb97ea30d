"""Layers and readouts on image streams: accuracy by floats, orders of tasks, imbalance, few labels, a poor beginning.

    python -m studies.layers accuracy controls orders imbalance labels start calibration other   # any of them
    python -m studies.layers --report                                                 # tables, from what is kept

Test accuracy is looked at here only; settings were chosen on a sixth of the training part (``--validation`` repeats
that). Every trial is kept as it ends in studies/evidence/layers, so that a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ccmem import AdaptiveCCM, DiscriminantClassifier, ModalClassifier, PatchLayer, Stack, datasets
from ccmem.experiments.protocol import Benchmark
from studies import layers_other

FOLDER = Path(__file__).parent / "evidence" / "layers"
SETS = ("mnist", "fashion-mnist", "notmnist")
CHUNK = 512

OWN_1M = {"mnist": (38, 5, 30), "notmnist": (32, 4, 40)}
"""Units, side of a patch and axes of the 1M line where other values did better on held-out training images."""

MODELS: dict[str, Callable[[int], Any]] = {
    "100k": lambda seed: Stack([PatchLayer(28, grid=3, random_state=seed)], DiscriminantClassifier(buffer_rows=32)),
    "default": lambda seed: Stack([PatchLayer(random_state=seed)], DiscriminantClassifier()),
    "1M": lambda seed: Stack([PatchLayer(42, random_state=seed)], DiscriminantClassifier()),
    "memory": lambda seed: Stack(
        [PatchLayer(random_state=seed)], ModalClassifier(AdaptiveCCM(max_units=470), n_winners=5, metric="shared")
    ),
    "memory, own metric": lambda seed: Stack(
        [PatchLayer(random_state=seed)], ModalClassifier(AdaptiveCCM(max_units=470), n_winners=5)
    ),
    "random units": lambda seed: Stack([PatchLayer(units="random", random_state=seed)], DiscriminantClassifier()),
    "pixels": lambda seed: DiscriminantClassifier(),
}


def orders(y: np.ndarray, name: str, seed: int) -> np.ndarray:
    """Rows of the training part in the order of a stream: tasks of two classes unless it says otherwise."""
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
    """Mean over the five tasks of two classes, as in the tables."""
    right = predicted == y
    return float(np.mean([right[y // 2 == task].mean() for task in range(5)]))


def floats(model: Any) -> dict[str, int]:
    return {"floats": int(model.n_floats_), "working": int(getattr(model, "working_floats_", 0))}


def accuracy(data: Any, model: str, seed: int, order: str = "standard") -> dict[str, Any]:
    rows = orders(data.y_train, order, seed)
    fresh = MODELS[model](seed)
    if model == "1M" and data.name in OWN_1M:
        n_units, side, n_axes = OWN_1M[data.name]
        layer = PatchLayer(n_units, patch_size=side, random_state=seed)
        fresh = Stack([layer], DiscriminantClassifier(n_axes, buffer_rows=32))
    taught = teach(fresh, data.X_train[rows], data.y_train[rows])
    found = {"ACC": task_accuracy(taught.predict(data.X_test), data.y_test), **floats(taught)}
    memory = getattr(getattr(taught, "last_", None), "memory_", None)
    if memory is not None:
        found |= {"blocks": int(memory.n_blocks_), "units": int(memory.n_units_)}
    return found


def imbalance(data: Any, model: str, seed: int) -> dict[str, Any]:
    """Odd classes keep one image in a hundred."""
    rows = orders(data.y_train, "standard", seed)
    rare = data.y_train[rows] % 2 == 1
    keep = ~rare | (np.random.default_rng(seed).random(len(rows)) < 0.01)
    rows = rows[keep]
    taught = teach(MODELS[model](seed), data.X_train[rows], data.y_train[rows])
    right = taught.predict(data.X_test) == data.y_test
    odd = data.y_test % 2 == 1
    return {
        "ACC": task_accuracy(taught.predict(data.X_test), data.y_test),
        "rare": float(right[odd].mean()),
        "frequent": float(right[~odd].mean()),
        "rare images": int((data.y_train[rows] % 2 == 1).sum()),
    }


def few_labels(data: Any, model: str, seed: int) -> dict[str, Any]:
    """One image in a hundred has a label."""
    rows = orders(data.y_train, "standard", seed)
    labels = data.y_train[rows].astype(np.float64)
    labels[np.random.default_rng(seed).random(len(rows)) >= 0.01] = np.nan
    taught = teach(MODELS[model](seed), data.X_train[rows], labels)
    return {"ACC": task_accuracy(taught.predict(data.X_test), data.y_test), "labels": int(np.isfinite(labels).sum())}


def poor_start(data: Any, model: str, seed: int, kind: str) -> dict[str, Any]:
    """Before the stream: 500 constant images of a class of their own, or 500 images of one class."""
    rows = orders(data.y_train, "standard", seed)
    X, y = data.X_train[rows], data.y_train[rows]
    if kind == "constant":
        level = np.random.default_rng(seed).random((500, 1), dtype=np.float32)
        X, y = np.vstack([np.repeat(level, X.shape[1], axis=1), X]), np.concatenate([np.full(500, 10), y])
    else:
        first = np.flatnonzero(y == 1)[:500]
        rest = np.setdiff1d(np.arange(len(y)), first, assume_unique=True)
        X, y = X[np.concatenate([first, rest])], y[np.concatenate([first, rest])]
    taught = teach(MODELS[model](seed), X, y)
    found = {"ACC": task_accuracy(taught.predict(data.X_test), data.y_test)}
    if kind == "constant":
        found["constant images"] = float(np.mean(taught.predict(np.full((1, X.shape[1]), 0.37, np.float32)) == 10))
    return found


def calibration(data: Any, model: str, seed: int) -> dict[str, Any]:
    rows = orders(data.y_train, "standard", seed)
    taught = teach(MODELS[model](seed), data.X_train[rows], data.y_train[rows])
    p = taught.predict_proba(data.X_test)
    sure, right = p.max(axis=1), p.argmax(axis=1) == data.y_test
    bins = np.minimum((sure * 15).astype(int), 14)
    gaps = [abs(sure[bins == b].mean() - right[bins == b].mean()) * np.mean(bins == b) for b in np.unique(bins)]
    loss = float(-np.log(np.maximum(p[np.arange(len(p)), data.y_test], 1e-12)).mean())
    return {"ECE": float(sum(gaps)), "log loss": loss, "temperature": taught.last_.temperature_}


def runs(parts: list[str], trials: int) -> Iterator[tuple[str, str, str, int, Callable[..., Any], dict[str, Any]]]:
    """What there is to run: part, data set, line, seed, function, its arguments."""
    for seed in range(trials):
        for name in SETS:
            if "accuracy" in parts:
                for model in ("100k", "1M", "memory"):
                    yield "accuracy", name, model, seed, accuracy, {"model": model}
            if "controls" in parts and seed < 3:
                for model in ("default", "random units", "memory, own metric", "pixels"):
                    yield "accuracy", name, model, seed, accuracy, {"model": model}
            if "orders" in parts and seed < 3:
                for order in ("reversed", "random", "one class at a time", "joint"):
                    yield "orders", name, order, seed, accuracy, {"model": "default", "order": order}
            if "imbalance" in parts and seed < 3:
                yield "imbalance", name, "default", seed, imbalance, {"model": "default"}
            if "labels" in parts and seed < 3:
                for model in ("default", "memory"):
                    yield "labels", name, model, seed, few_labels, {"model": model}
            if "start" in parts and seed < 3:
                for kind in ("constant", "one class"):
                    yield "start", name, kind, seed, poor_start, {"model": "default", "kind": kind}
            if "calibration" in parts and seed < 3:
                yield "calibration", name, "default", seed, calibration, {"model": "default"}
        for case in layers_other.CASES if "other" in parts else ():
            for model in layers_other.MODELS:
                if model != "layers" or case.startswith("digits"):
                    yield "other", case, model, seed, layers_other.accuracy, {"model": model}


def load(name: str, validation: bool) -> Any:
    """A data set, or the name of a case of the other study, which has no other form."""
    if name not in SETS:
        return name
    data = datasets.load(name, download=False)
    if not validation:
        return data
    held = Benchmark.validation(data)
    kept = {"X_train": data.X_train[held.rows], "y_train": data.y_train[held.rows]}
    return type("Validation", (), {"name": name, **kept, "X_test": held.X_test, "y_test": held.y_test})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--validation", action="store_true", help="test on a sixth of the training part")
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    path = FOLDER / ("validation.json" if options.validation else "trials.json")
    kept = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    loaded: dict[str, Any] = {}
    for part, name, line, seed, function, arguments in runs(options.parts, options.trials):
        done = kept.setdefault(part, {}).setdefault(line, {}).setdefault(name, {})
        if (name in SETS and name not in options.sets) or str(seed) in done:
            continue
        if name not in loaded:
            loaded[name] = load(name, options.validation)
        done[str(seed)] = function(loaded[name], seed=seed, **arguments)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        print(part, name, line, seed, done[str(seed)], flush=True)
    if options.report:
        report(kept)


TITLES = {
    "accuracy": "Strict accuracy after the last task, five tasks of two classes, one pass",
    "orders": "The default in other orders (joint: all classes shuffled)",
    "imbalance": "Odd classes keep one image in a hundred",
    "labels": "One image in a hundred has a label",
    "start": "500 constant images, or 500 of one class, before the stream",
    "calibration": "Probabilities of the default",
    "other": "Other data, defaults: small digits, features of a network, windows of signals",
}
WHOLE = ("floats", "working", "units", "blocks", "labels", "rare images")


def report(kept: dict[str, Any]) -> None:
    """Write tables.md (mean and deviation over trials) and chart.svg beside the trials, from what there is."""
    text = ["# Layers", "", "`python -m studies.layers --report`, from `studies/evidence/layers/trials.json`."]
    for part, lines in kept.items():
        every = [trial for sets in lines.values() for trials in sets.values() for trial in trials.values()]
        measures = list(dict.fromkeys(measure for trial in every for measure in trial))
        if not measures:
            continue
        columns = layers_other.CASES if part == "other" else SETS
        text += ["", f"## {TITLES[part]}", "", f"| | | {' | '.join(columns)} | trials |"]
        text += ["|---|---|" + "---:|" * (len(columns) + 1)]
        for line, sets in lines.items():
            for measure in measures:
                cells, counts = [], []
                for name in columns:
                    values = [trial[measure] for trial in sets.get(name, {}).values() if measure in trial]
                    counts.append(len(values))
                    form = "{:,.0f}" if measure in WHOLE else "{:.4f} ± {:.4f}" if len(values) > 1 else "{:.4f}"
                    cells.append(form.format(np.mean(values), np.std(values)) if values else "")
                if any(counts):
                    text.append(f"| {line} | {measure} | {' | '.join(cells)} | {', '.join(map(str, counts))} |")
    text += ["", "![Strict accuracy against floats kept](chart.svg)"]
    (FOLDER / "tables.md").write_text("\n".join(text) + "\n", encoding="utf-8")
    chart(kept["accuracy"])


def chart(lines: dict[str, Any]) -> None:
    """Accuracy against floats kept, one panel a data set."""
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(SETS), figsize=(11, 3.2), layout="constrained")
    for panel, name in zip(panels, SETS, strict=True):
        for line, sets in lines.items():
            trials = list(sets.get(name, {}).values())
            if trials:
                kept, right = (np.mean([trial[key] for trial in trials]) for key in ("floats", "ACC"))
                panel.plot(kept, right, "o")
                panel.annotate(line, (kept, right), textcoords="offset points", xytext=(6, 3), fontsize=8)
        panel.set(title=name, xscale="log", xlabel="floats kept", xlim=(5e4, 2e6))
    panels[0].set_ylabel("strict accuracy")
    figure.savefig(FOLDER / "chart.svg", metadata={"Date": None})
    pyplot.close(figure)


if __name__ == "__main__":
    main()
