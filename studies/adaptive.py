"""Experiments behind docs/adaptive.md: ``AdaptiveCCM()`` on all streams, bounds, parameters and speed.

    python studies/adaptive.py --data FOLDER --part streams dependent bounds parameters speed --out results/adaptive

FOLDER holds the image sets (mnist, fashion-mnist, notmnist; without it they are fetched). Every part writes one JSON
file; ``--tables`` prints all of them as Markdown, ``--plots`` draws them. Finished parts are not repeated.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import joblib
import numpy as np

from ccmem import CCM, AdaptiveCCM, IncrementalWTA, ModalClassifier, datasets, experiments
from ccmem.io.streams.drift import drifting_sensors
from ccmem.io.streams.splits import TaskStream, recurring_tasks, shuffled, split_by_class
from ccmem.metrics.events import score_events
from ccmem.models._blocks import BlockMemory
from ccmem.paper.experiments.protocol import Benchmark
from ccmem.paper.experiments.tuning import candidates

IMAGES = ("mnist", "fashion-mnist", "notmnist")
MADE = ("embeddings", "sensors")
STREAMS = ("five tasks", "recurring", "shuffled", "ten tasks", "blurred", "short tasks")
SHORT = 300
BLUR = 0.2
RETURNS = 3


# Data --------------------------------------------------------------------------------------------------------------


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
    return TaskStream(
        rows[stream.indices], stream.labelled, stream.tasks, stream.visits, stream.change_points, stream.sample_tasks
    )


def beginnings(stream: TaskStream) -> list[int]:
    """Return the rows where tasks begin to mix; visits change mid-mix, so a detection in between is no false alarm."""
    edges = [0, *stream.change_points, len(stream)]
    shorter = [min(b - a, c - b) for a, b, c in zip(edges, edges[1:], edges[2:], strict=False)]
    return [change - int(BLUR * n / 2) for change, n in zip(stream.change_points, shorter, strict=True)]


# Models ------------------------------------------------------------------------------------------------------------


def signature(
    seed: int = 0, tuning: dict[str, Any] | None = None, label_use: str = "readout", **parameters: Any
) -> Any:
    """The model of this page."""
    changed = {"_constants": AdaptiveCCM._constants._replace(**tuning or {})}
    return ModalClassifier(type("AdaptiveCCM", (AdaptiveCCM,), changed)(**parameters), label_use=label_use)


def fixed(seed: int = 0, **parameters: Any) -> Any:
    """CCM with fixed thresholds, by default those of the paper for MNIST."""
    return ModalClassifier(CCM(random_state=seed, **parameters))


def wta(seed: int, benchmark: Benchmark, **parameters: Any) -> Any:
    """iWTA initialised with random samples of all classes, which no real stream provides."""
    rows = np.random.default_rng([seed, 1]).choice(benchmark.rows, 125, replace=False)
    return ModalClassifier(IncrementalWTA(125, init=benchmark.X[rows], **parameters))


Make = Callable[[int, Benchmark], Any]


def models(tuned: dict[str, dict[str, Any]]) -> dict[str, Make]:
    """Return the rows of the tables: name -> factory for a trial. ``tuned`` holds the settings from :func:`tune`."""
    return {
        "signature": lambda seed, _: signature(seed),
        "signature, at most 125 units": lambda seed, _: signature(seed, max_units=125),
        "signature, slots refuse labels": lambda seed, _: signature(seed, label_use="guide"),
        "fixed, paper's": lambda seed, _: fixed(seed),
        "fixed, tuned": lambda seed, _: fixed(seed, **tuned["fixed"]),
        "iWTA, tuned": lambda seed, benchmark: wta(seed, benchmark, **tuned["iWTA"]),
    }


# Trials ------------------------------------------------------------------------------------------------------------


class TooLarge(Exception):  # noqa: N818 - not an error
    """Raised when a memory has more units than allowed."""


def trial(
    model: Any,
    benchmark: Benchmark,
    stream: TaskStream,
    retention: bool = True,
    limit: float = np.inf,
    changes: list[int] | None = None,
) -> dict[str, Any]:
    """Learn a stream; return detection scores, accuracies and cost.

    ``changes``: rows at which changes begin, if they differ from the visits of the stream.
    """
    tasks = len(benchmark.tasks)
    diagonal, last = {}, {}
    visits = [list(chunks) for chunks in _by_visit(stream)]
    seconds = 0.0
    for visit, chunks in enumerate(visits):
        for chunk in chunks:
            X, y = benchmark.X[chunk.indices], benchmark.y[chunk.indices]
            began = time.perf_counter()
            model.partial_fit(X, y)
            seconds += time.perf_counter() - began
            if model.memory_.n_units_ > limit:  # a memory that grows at every visit also becomes slow
                raise TooLarge
        if retention and visit < len(visits) - 1:
            diagonal[visit] = accuracies(model, benchmark, [stream.visits[visit]])
    last = accuracies(model, benchmark, range(tasks))
    memory = model.memory_
    record: dict[str, Any] = {"units": memory.n_units_, "seconds": round(seconds, 3), "samples": len(stream)}
    for protocol in ("strict", "paper"):
        record[f"{protocol} ACC"] = float(np.mean(last[protocol]))
        if retention and len(visits) == tasks:
            lost = [last[protocol][t] - diagonal[t][protocol][0] for t in range(tasks - 1)]
            record[f"{protocol} BWT"] = float(np.mean(lost))
    model.set_params(n_winners=5)
    record["strict ACC of 5 winners"] = float(np.mean(accuracies(model, benchmark, range(tasks))["strict"]))
    model.set_params(n_winners=1)
    record["floats"] = memory.n_units_ * memory.n_features_in_
    if isinstance(memory, BlockMemory):
        score = score_events(memory.events_, changes or stream.change_points, tasks=stream.visits)
        record |= {
            "blocks": memory.n_blocks_,
            "changes": score.changes,
            "missed": score.missed,
            "false alarms": score.false_alarms,
            "delays": list(score.delays),
            "returns": score.returns,
            "right recalls": score.right_recalls,
            "floats": record["floats"] + (_around(memory) if isinstance(memory, AdaptiveCCM) else 0),
        }
    return record


def _around(memory: AdaptiveCCM) -> int:
    """Return the numbers stored beside the prototypes: for the stream, and for each block."""
    state = memory._state
    return state.stream.size + state.scalars.size + memory.n_blocks_ * state.blocks[0].size


def _by_visit(stream: TaskStream) -> Any:
    chunks: list[Any] = []
    for chunk in stream:
        if chunks and chunk.visit != chunks[-1].visit:
            yield chunks
            chunks = []
        chunks.append(chunk)
    yield chunks


def accuracies(model: Any, benchmark: Benchmark, tasks: Any) -> dict[str, list[float]]:
    """Return the accuracy on each task under both protocols."""
    found: dict[str, list[float]] = {"strict": [], "paper": []}
    for task in tasks:
        part = benchmark.test_parts[task]
        true = benchmark.y_test[part]
        votes = model.predict_votes(benchmark.X_test[part])
        found["strict"].append(float(np.mean(model.classes_[votes.argmax(axis=1)] == true)))
        shared = np.eye(benchmark.width)[benchmark.places[model.classes_]]
        found["paper"].append(float(np.mean((votes @ shared).argmax(axis=1) == benchmark.places[true])))
    return found


# Parts -------------------------------------------------------------------------------------------------------------


def tune_fixed(name: str, folder: str | None) -> list[dict[str, Any]]:
    """Search fixed thresholds on a validation split: strict ACC over vigilance and alarm limit."""
    benchmark = Benchmark.validation(load(name, folder))
    found = []
    for vigilance in (0.7, 0.75, 0.8, 0.85, 0.9, 0.94):
        for alarm_limit in (10, 20, 40):
            model = fixed(vigilance=vigilance, alarm_limit=alarm_limit)
            record = trial(model, benchmark, make_stream("five tasks", benchmark, 0), retention=False)
            fits = record["units"] <= 150
            found.append(
                {
                    "vigilance": vigilance,
                    "alarm_limit": alarm_limit,
                    "ACC": record["strict ACC"],
                    "units": record["units"],
                    "fits": fits,
                }
            )
    return found


def tune(benchmark: Benchmark, make: Callable[..., Any], space: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """Try 24 random settings on a validation split and the best four on two more streams; sort by strict ACC."""

    def score(parameters: dict[str, Any], seed: int) -> float:
        stream = make_stream("five tasks", benchmark, seed)
        try:
            return trial(make(seed, **parameters), benchmark, stream, retention=False, limit=150)["strict ACC"]
        except TooLarge:
            return 0.0

    tried = [{"parameters": picked, "scores": []} for picked in candidates(space, 24, seed=0)]
    for n_kept, seeds in ((len(tried), [0]), (4, [1, 2])):
        tried.sort(key=lambda entry: -np.mean(entry["scores"] or [0]))
        jobs = [(entry, seed) for entry in tried[:n_kept] for seed in seeds]
        results = over_cores(lambda job: score(job[0]["parameters"], job[1]), jobs)
        for (entry, _), result in zip(jobs, results, strict=True):
            entry["scores"].append(round(result, 4))
    return sorted(tried, key=lambda entry: (-len(entry["scores"]), -np.mean(entry["scores"])))


def tuned_rows(name: str, folder: str | None) -> dict[str, list[dict[str, Any]]]:
    """Tune the rows that are compared with AdaptiveCCM."""
    benchmark = Benchmark.validation(load(name, folder))
    search = experiments.settings()["search"]
    rates = {key: search["iwta"][key] for key in ("learning_rate", "rate_decay")}
    return {
        "fixed": tune(benchmark, fixed, search["ccm"]),
        "iWTA": tune(benchmark, lambda seed, **parameters: wta(seed, benchmark, **parameters), rates),
    }


def over_cores(job: Callable[[Any], Any], inputs: list[Any]) -> list[Any]:
    """Run ``job`` on every input on all cores; kernels release the GIL."""
    with ThreadPoolExecutor(joblib.cpu_count()) as pool:
        return list(pool.map(job, inputs))


def streams_part(args: argparse.Namespace, save: Callable[[Any], None], old: dict[str, Any]) -> None:
    """Run all models on all streams of all data sets."""
    found = old
    for name in args.sets:
        data = load(name, args.data)
        entry = found.setdefault(name, {})
        if "fixed" not in entry:
            entry["fixed"] = tune_fixed(name, args.data)
        if "tuned" not in entry:
            entry["tuned"] = tuned_rows(name, args.data)
            save(found)
        tuned = {title: tried[0]["parameters"] for title, tried in entry["tuned"].items()}
        for kind in args.streams:
            benchmark = Benchmark.of(data, 10 if kind == "ten tasks" else 5)
            retention = kind in ("five tasks", "ten tasks")
            for title, make in models(tuned).items():
                if args.rows and title.split(",")[0] not in args.rows:
                    continue
                records = entry.setdefault(kind, {}).setdefault(title, [])

                def one(seed: int, make: Make = make, benchmark: Benchmark = benchmark, kind: str = kind) -> Any:
                    stream = make_stream(kind, benchmark, seed)
                    changes = beginnings(stream) if kind == "blurred" else None
                    return trial(make(seed, benchmark), benchmark, stream, retention, changes=changes)  # noqa: B023

                records += over_cores(one, list(range(len(records), args.trials)))
                save(found)
            print(f"{name}, {kind}: done", flush=True)


def bounds_part(args: argparse.Namespace, save: Callable[[Any], None], old: dict[str, Any]) -> None:
    """Measure the cost of each bound, on ordered and shuffled streams."""
    found = old
    for name in IMAGES:
        benchmark = Benchmark.of(load(name, args.data))
        for bound in (25, 50, 125, 250, 500, 1000, 2000):
            for kind in ("five tasks", "shuffled"):
                for label_use in ("readout", "merge", "guide") if kind == "five tasks" else ("readout",):
                    records = found.setdefault(f"{name} {kind} {label_use}", {}).setdefault(str(bound), [])

                    def one(
                        seed: int,
                        kind: str = kind,
                        label_use: str = label_use,
                        bound: int = bound,
                        benchmark: Benchmark = benchmark,
                    ) -> Any:
                        model = signature(seed, label_use=label_use, max_units=bound)
                        return trial(model, benchmark, make_stream(kind, benchmark, seed), retention=False)

                    records += over_cores(one, list(range(len(records), min(args.trials, 10 if bound <= 500 else 2))))
                    save(found)
        print(f"{name}: bounds done", flush=True)


def dependent_part(args: argparse.Namespace, save: Callable[[Any], None], old: dict[str, Any]) -> None:
    """Run dependent samples: sensors with a cycle and a drift, and images in file order."""
    found = old

    def sensors(seed: int) -> dict[str, Any]:
        plan = drifting_sensors(200_000, seed=seed)
        memory = AdaptiveCCM()
        for rows, _ in plan.chunks():
            memory.partial_fit(rows)
        score = score_events(memory.events_, [row for row, _ in plan.changes], tasks=plan.visits.tolist())
        return {
            "blocks": memory.n_blocks_,
            "states": len(plan.levels),
            "changes": score.changes,
            "missed": score.missed,
            "false alarms": score.false_alarms,
            "returns": score.returns,
            "right recalls": score.right_recalls,
            "median delay": float(np.median(score.delays)),
        }

    found["drifting sensors, seeds 0 to 7"] = over_cores(sensors, list(range(8)))
    for name in IMAGES:
        memory = AdaptiveCCM().fit(load(name, args.data).X_train)
        found[f"{name} in file order"] = {
            "blocks": memory.n_blocks_,
            "events": len(memory.events_),
            "part learned": round(float(memory.win_counts_.sum()) / memory.n_samples_seen_, 4),
        }
    save(found)


SWEEPS: dict[str, tuple[float, ...]] = {
    "false_alarm_every": (1e3, 1e4, 1e5, 1e6, 1e8, 1e10),
    "n_slots": (5, 10, 25, 50, 100),
    "learning_rate": (0.1, 0.2, 0.35, 0.5, 1.0),
    "prior_scale": (10.0, 25.0, 50.0, 100.0, 200.0),
    "reference_span": (16.0, 32.0, 64.0, 128.0, 256.0),
    "batch": (8, 16, 32, 64),
    "spacing": (0.0, 0.1, 0.25, 0.5, 0.75),
}


def parameters_part(args: argparse.Namespace, save: Callable[[Any], None], old: dict[str, Any]) -> None:
    """Vary one parameter at a time on validation splits: ACC, missed changes, false alarms, delay."""
    found = old
    for name in ("mnist", "fashion-mnist", "digits"):
        benchmark = Benchmark.validation(load(name, args.data))
        for parameter, values in SWEEPS.items():
            public = parameter in ("false_alarm_every", "n_slots", "learning_rate")
            for value in values:
                for kind in ("recurring", "short tasks") if name != "digits" else ("five tasks",):
                    if f"{name} {kind}" in found.get(parameter, {}).get(str(value), {}):
                        continue
                    records = []
                    for seed in range(2 if name == "digits" or kind == "short tasks" else 1):
                        chosen = {parameter: int(value) if parameter in ("batch", "n_slots") else value}
                        model = signature(seed, **chosen) if public else signature(seed, tuning=chosen)
                        stream = make_stream(kind, benchmark, seed)
                        records.append(trial(model, benchmark, stream, retention=False))
                    found.setdefault(parameter, {}).setdefault(str(value), {})[f"{name} {kind}"] = records
                    save(found)
        print(f"{name}: parameters done", flush=True)


def speed_part(args: argparse.Namespace, save: Callable[[Any], None], old: dict[str, Any]) -> None:
    """Measure the processor time of learning against the paper's CCM, alternating; keep the best of several runs."""
    benchmark = Benchmark.of(load("mnist", args.data))
    rows = make_stream("five tasks", benchmark, 0).indices
    X = benchmark.X[rows]
    best: dict[str, float] = {}
    for _ in range(9):
        for title, model in (("signature", signature()), ("fixed", fixed())):
            began = time.process_time()
            model.memory.partial_fit(X)
            best[title] = min(best.get(title, np.inf), time.process_time() - began)
    save({title: {"microseconds a sample": round(1e6 * s / len(X), 3)} for title, s in best.items()})


PARTS = {
    "streams": streams_part,
    "dependent": dependent_part,
    "bounds": bounds_part,
    "parameters": parameters_part,
    "speed": speed_part,
}


def main() -> None:
    """Run the requested parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", metavar="FOLDER", help="folder of the image sets")
    parser.add_argument("--part", nargs="*", default=list(PARTS), choices=list(PARTS), help="what to run")
    parser.add_argument("--trials", type=int, default=10, help="trials of every row (default: 10)")
    parser.add_argument("--sets", nargs="*", default=[*IMAGES, *MADE], help="data sets of the streams (default: all)")
    parser.add_argument(
        "--streams", nargs="*", default=STREAMS, choices=STREAMS, help="kinds of streams (default: all)"
    )
    parser.add_argument("--rows", nargs="*", help="rows of the streams: signature, fixed, iWTA (default: all)")
    parser.add_argument("--out", type=Path, default=Path("results/adaptive"))
    parser.add_argument("--tables", action="store_true", help="only print tables of what there is")
    parser.add_argument("--plots", action="store_true", help="only draw what there is, into docs/_static")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    if args.tables or args.plots:
        import adaptive_report

        results = {
            part: json.loads((args.out / f"{part}.json").read_text())
            for part in PARTS
            if (args.out / f"{part}.json").is_file()
        }
        if args.tables:
            print(adaptive_report.tables(results))
        if args.plots:
            adaptive_report.draw(results)
        return
    for part in args.part:
        path = args.out / f"{part}.json"

        def save(content: Any, path: Path = path) -> None:
            path.write_text(json.dumps(content, separators=(",", ":")) + "\n")

        PARTS[part](args, save, json.loads(path.read_text()) if path.is_file() else {})


if __name__ == "__main__":
    main()
