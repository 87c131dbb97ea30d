"""Stream classification compared with River's models: accuracy, kappa, time and size, test then train, row by row.

    python -m studies.tables --data FOLDER --out studies/evidence/tables

FOLDER (or the environment variable CCMEM_DATA) may hold ``tables/elec2-first-half.csv.gz``. The other streams are all
those with one label per row that River and scikit-learn ship or generate without a download. scikit-learn's tables have
no order, so they are shuffled with seed 0 and read once; of Shuttle the first 10,000 rows are read. Every model has its
default settings. Columns are raw, except for River's softmax regression and nearest neighbours, which get a
running StandardScaler as River's documentation advises. The length of the running spread was chosen on the
electricity stream; exponent and number of winners of the memory were chosen with the other streams in view.
Streams whose names end in "held out" took no part in any choice but one: equal priors, which had lost on five of the
seven, are no longer the default. How the default chooses between them and class frequencies was chosen on the other
streams, out of 16 settings. Categories are numbered in order of
appearance, rows with gaps are left out. Some come from wheels that need not be installed, only unpacked on the path:
``pip install --no-deps --target FOLDER palmerpenguins statsmodels vega_datasets``.
A row is predicted, then its label is learned. Time is processor time per row, prediction and update together.
--only runs some models again and keeps the other rows of the table.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import importlib.util
import json
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from river import datasets, dummy, forest, linear_model, naive_bayes, neighbors, preprocessing, tree
from river.datasets import synth
from sklearn import datasets as sklearn_datasets

import ccmem

ROWS = 5_000
"""Number of rows of the streams that River generates."""
Rows = list[tuple[dict[Any, float], Any]]


def electricity(folder: Path | None) -> Rows | None:
    """Return the first half of the electricity stream, or None if no copy is found."""
    file = folder / "tables" / "elec2-first-half.csv.gz" if folder else None
    if file is None or not file.exists():
        return None
    with gzip.open(file, "rt") as lines:
        return [({k: float(v) for k, v in row.items() if k != "class"}, row["class"]) for row in csv.DictReader(lines)]


def _shuffled(name: str) -> Rows:
    data = getattr(sklearn_datasets, f"load_{name}")()
    order = np.random.default_rng(0).permutation(len(data.target))
    return [(dict(enumerate(data.data[i].tolist())), int(data.target[i])) for i in order]


def _numeric(stream: Iterable[tuple[dict[str, Any], Any]], rows: int | None = None) -> Rows:
    found = []
    for i, (x, y) in enumerate(stream):
        if i == rows:
            break
        found.append(({name: float(value) for name, value in x.items()}, y))
    return found


def _packaged(package: str, file: str, label: Callable[[dict[str, str]], str], *left_out: str, ordered: bool) -> Any:
    """Return the loader of a table in a package: None without the package; shuffled unless the rows are ``ordered``."""

    def load(_: Path | None) -> Rows | None:
        found = importlib.util.find_spec(package)
        if found is None or found.origin is None:
            return None
        with (Path(found.origin).parent / file).open(newline="") as lines:
            table = [row for row in csv.DictReader(lines) if "NA" not in row.values()]
        return _coded([({k: v for k, v in row.items() if k not in left_out}, label(row)) for row in table], ordered)

    return load


def _first(rows: Rows | None) -> Rows | None:
    return rows[:ROWS] if rows else None


def _coded(table: list[tuple[dict[str, Any], Any]], ordered: bool) -> Rows:
    """Return rows of numbers: columns with text become codes in order of appearance."""
    codes: dict[str, dict[Any, float]] = {name: {} for name in table[0][0]}
    for name, known in codes.items():
        values = [x[name] for x, _ in table]
        try:
            list(map(float, values))
        except ValueError:
            known.update((value, float(code)) for code, value in enumerate(dict.fromkeys(values)))
    rows = [({k: codes[k][v] if codes[k] else float(v) for k, v in x.items()}, y) for x, y in table]
    order = range(len(rows)) if ordered else np.random.default_rng(0).permutation(len(rows))
    return [rows[i] for i in order]


def _diabetes(_: Path | None) -> Rows:
    data = sklearn_datasets.load_diabetes(scaled=False)
    above = data.target > np.median(data.target)
    return _coded([(dict(enumerate(x.tolist())), bool(y)) for x, y in zip(data.data, above, strict=True)], False)


def _drifting(stream: Any, drift_stream: Any) -> Any:
    return synth.ConceptDriftStream(stream, drift_stream, seed=0, position=ROWS // 2, width=500)


STREAMS: dict[str, Callable[[Path | None], Rows | None]] = {
    "electricity": electricity,
    "phishing": lambda _: _numeric(datasets.Phishing()),
    "bananas": lambda _: _numeric(datasets.Bananas()),
    "image segments": lambda _: _numeric(datasets.ImageSegments()),
    "shuttle": lambda _: _numeric(datasets.Shuttle(), 2 * ROWS),
    "digits": lambda _: _shuffled("digits"),
    "breast cancer": lambda _: _shuffled("breast_cancer"),
    "wine": lambda _: _shuffled("wine"),
    "iris": lambda _: _shuffled("iris"),
    "SEA, drift": lambda _: _numeric(_drifting(synth.SEA(0, seed=0), synth.SEA(2, seed=1)), ROWS),
    "hyperplane": lambda _: _numeric(synth.Hyperplane(seed=0, n_features=8, n_drift_features=4, mag_change=0.01), ROWS),
    "random RBF, drift": lambda _: _numeric(synth.RandomRBFDrift(0, 0, change_speed=0.001, n_classes=4), ROWS),
    "random RBF": lambda _: _numeric(synth.RandomRBF(0, 0, n_classes=4), ROWS),
    "random tree": lambda _: _numeric(synth.RandomTree(0, 0), ROWS),
    "Agrawal, drift": lambda _: _numeric(_drifting(synth.Agrawal(0, seed=0), synth.Agrawal(2, seed=1)), ROWS),
    "mixed, drift": lambda _: _numeric(_drifting(synth.Mixed(0, seed=0), synth.Mixed(1, seed=1)), ROWS),
    "sine, drift": lambda _: _numeric(_drifting(synth.Sine(0, seed=0), synth.Sine(2, seed=1)), ROWS),
    "STAGGER, drift": lambda _: _numeric(_drifting(synth.STAGGER(0, seed=0), synth.STAGGER(2, seed=1)), ROWS),
    "anomalous sine": lambda _: _numeric(synth.AnomalySine(seed=0), ROWS),
    "waveform": lambda _: _numeric(synth.Waveform(seed=0), ROWS),
    "LED": lambda _: _numeric(synth.LED(seed=0, noise_percentage=0.1), ROWS),
    "solar flares, held out": lambda _: _coded([(x, y["c-class-flares"] > 0) for x, y in datasets.SolarFlare()], False),
    "yeast, held out": lambda _: _coded([(x, y["Class1"]) for x, y in datasets.Yeast()], False),
    "diabetes, held out": _diabetes,
    "penguins, held out": _packaged(
        "palmerpenguins", "data/penguins.csv", lambda row: row["species"], "species", "year", ordered=False
    ),
    "affairs, held out": _packaged(
        "statsmodels", "datasets/fair/fair.csv", lambda row: str(float(row["affairs"]) > 0), "affairs", ordered=False
    ),
    "doctor visits, held out": lambda folder: _first(
        _packaged(
            "statsmodels", "datasets/randhie/randhie.csv", lambda row: str(row["mdvis"] != "0"), "mdvis", ordered=False
        )(folder)
    ),
    "Seattle weather, held out": _packaged(
        "vega_datasets", "_data/seattle-weather.csv", lambda row: row["weather"], "weather", "date", ordered=True
    ),
    "LED, drift": lambda _: _numeric(synth.LEDDrift(seed=0, n_drift_features=4), ROWS),
}


def _scaled(model: Any) -> Any:
    return preprocessing.StandardScaler() | model


OURS: dict[str, Callable[[], Any]] = {
    "ModalClassifier(AdaptiveCCM())": lambda: ccmem.ModalClassifier(ccmem.AdaptiveCCM()),
    "ModalClassifier(AdaptiveCCM(), vote_span=32)": lambda: ccmem.ModalClassifier(ccmem.AdaptiveCCM(), vote_span=32),
    "DiscriminantClassifier()": lambda: ccmem.DiscriminantClassifier(),
    "DiscriminantClassifier(priors='all')": lambda: ccmem.DiscriminantClassifier(priors="all"),
    "DiscriminantClassifier(priors='equal')": lambda: ccmem.DiscriminantClassifier(priors="equal"),
    "DiscriminantClassifier(priors='stream')": lambda: ccmem.DiscriminantClassifier(priors="stream"),
    "DiscriminantClassifier(autoregressive=True)": lambda: ccmem.DiscriminantClassifier(autoregressive=True),
    "Gated(estimator=HoeffdingTree)": lambda: ccmem.Gated(estimator=tree.HoeffdingTreeClassifier()),
}
RIVER: dict[str, Callable[[], Any]] = {
    "adaptive random forest": lambda: forest.ARFClassifier(seed=0),
    "Hoeffding adaptive tree": lambda: tree.HoeffdingAdaptiveTreeClassifier(seed=0),
    "Hoeffding tree": lambda: tree.HoeffdingTreeClassifier(),
    "k nearest neighbours": lambda: _scaled(neighbors.KNNClassifier()),
    "Gaussian naive Bayes": lambda: naive_bayes.GaussianNB(),
    "softmax regression": lambda: _scaled(linear_model.SoftmaxRegression()),
    "NoChange (label before)": lambda: dummy.NoChangeClassifier(),
    "majority class": lambda: dummy.PriorClassifier(),
}
MODELS = {**OURS, **RIVER}
USES_LABELS = ("NoChange (label before)", "DiscriminantClassifier(autoregressive=True)")
"""Models that use previous labels and are therefore not compared with the others."""


def run(name: str, rows: Rows) -> dict[str, Any]:
    """Predict, then learn, every row."""
    arrays = name in OURS  # ours take arrays, River's take dictionaries
    model = MODELS[name]()
    inputs: list[Any] = [np.array(list(x.values())) for x, _ in rows] if arrays else [x for x, _ in rows]
    if arrays:  # compile before timing
        _loop(MODELS[name](), inputs[:50], rows[:50], arrays)
    began = time.process_time()
    answers = _loop(model, inputs, rows, arrays)
    seconds = time.process_time() - began
    truth = [y for _, y in rows]
    right = np.array([a == y for a, y in zip(answers, truth, strict=True)])
    chance = sum(answers.count(label) / len(rows) * truth.count(label) / len(rows) for label in set(truth))
    accuracy = float(right.mean())
    return {
        "model": name,
        "accuracy": round(accuracy, 4),
        "kappa": round((accuracy - chance) / (1 - chance), 4) if chance < 1 else 0.0,
        "microseconds per row": round(seconds / len(rows) * 1e6, 1),
        "floats": _floats(model),
    }


def _loop(model: Any, inputs: list[Any], rows: Rows, arrays: bool) -> list[Any]:
    answers: list[Any] = []
    for i, (x, (_, y)) in enumerate(zip(inputs, rows, strict=True)):
        answers.append(model.predict_one(x) if i or not arrays else None)  # ours raise before the first label
        model.learn_one(x, y)
    return answers


def _floats(model: Any) -> int:
    """Return the number of floats a model keeps; for River's models, and trees per block, bytes in use divided by 8."""
    if hasattr(model, "estimators_"):
        return int(model.memory_.n_floats_ + sum(m._raw_memory_usage for m in model.estimators_.values()) // 8)
    if hasattr(model, "n_floats_"):
        return int(model.n_floats_)
    return int(model._raw_memory_usage // 8)


def markdown(tables: dict[str, dict[str, Any]]) -> str:
    """Return one table per stream, best accuracy first, our models in bold."""
    parts = []
    for stream, table in tables.items():
        lines = [
            f"## {stream}: {table['rows']} rows, {table['columns']} columns, {table['classes']} classes",
            "",
            "| model | accuracy | kappa | us per row | floats |",
            "|---|---|---|---|---|",
        ]
        for row in sorted(table["models"], key=lambda row: -row["accuracy"]):
            name = f"**{row['model']}**" if row["model"] in OURS else row["model"]
            note = " (uses labels before)" if row["model"] in USES_LABELS else ""
            lines.append(
                f"| {name}{note} | {row['accuracy']:.3f} | {row['kappa']:.3f} | {row['microseconds per row']:.0f} | "
                f"{row['floats']:,} |"
            )
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Run the streams and models, write evidence and tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("CCMEM_DATA"))
    parser.add_argument("--out", type=Path, default=Path("studies/evidence/tables"))
    parser.add_argument("--stream", nargs="*", default=list(STREAMS), choices=list(STREAMS))
    parser.add_argument("--only", nargs="*", default=list(MODELS), choices=list(MODELS), metavar="MODEL")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / "tables.json"
    tables: dict[str, Any] = json.loads(file.read_text())["streams"] if file.exists() else {}
    for stream in options.stream:
        rows = STREAMS[stream](Path(options.data) if options.data else None)
        if rows is None:
            print(f"{stream}: no copy at hand; name its folder with --data")
            continue
        known = {row["model"]: row for row in tables.get(stream, {}).get("models", [])}
        for name in options.only:
            if name == "DiscriminantClassifier(autoregressive=True)" and len(rows[0][0]) > 32:
                continue  # it needs forgetting, which needs few columns
            known[name] = run(name, rows)
            print(stream, known[name], flush=True)
        tables[stream] = {
            "rows": len(rows),
            "columns": len(rows[0][0]),
            "classes": len({y for _, y in rows}),
            "models": [known[name] for name in MODELS if name in known],
        }
        ordered = {name: tables[name] for name in STREAMS if name in tables}
        file.write_text(json.dumps({"ccmem": ccmem.__version__, "streams": ordered}, indent=1) + "\n")
        (options.out / "tables.md").write_text(markdown(ordered))


if __name__ == "__main__":
    main()
