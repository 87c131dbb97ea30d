"""Experiments behind docs/adaptive.md: ``AdaptiveCCM()`` on all streams, bounds and speed.

    python -m studies.adaptive --data FOLDER --part streams dependent bounds speed --out results/adaptive

FOLDER holds the image sets (mnist, fashion-mnist, notmnist; without it they are fetched). Every part writes one JSON
file; ``--tables`` prints all of them as Markdown, ``--plots`` draws them. Finished parts are not repeated.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import groupby, product
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from ccmem import CCM, AdaptiveCCM, IncrementalWTA, ModalClassifier, experiments
from ccmem.io.streams.drift import drifting_sensors
from ccmem.io.streams.splits import TaskStream
from ccmem.metrics.events import EventScore, score_events
from ccmem.models._blocks import BlockMemory
from ccmem.paper.experiments.protocol import Benchmark
from ccmem.paper.experiments.tuning import candidates
from studies import adaptive_report
from studies.adaptive_streams import IMAGES, MADE, STREAMS, beginnings, load, make_stream

# Models ------------------------------------------------------------------------------------------------------------


def adaptive(label_use: str = "readout", **parameters: Any) -> Any:
    """The model of this page; it draws no random numbers."""
    return ModalClassifier(AdaptiveCCM(**parameters), label_use=label_use)


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
        "AdaptiveCCM": lambda *_: adaptive(),
        "AdaptiveCCM, at most 125 units": lambda *_: adaptive(max_units=125),
        "AdaptiveCCM, slots refuse labels": lambda *_: adaptive(label_use="guide"),
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
    tasks, after, seconds = range(len(benchmark.tasks)), [], 0.0
    model.set_params(n_winners=1)  # the default depends on the memory; both columns are of all models
    for visit, chunks in groupby(stream, lambda chunk: chunk.visit):
        for chunk in chunks:
            X, y = benchmark.X[chunk.indices], benchmark.y[chunk.indices]
            began = time.perf_counter()
            model.partial_fit(X, y)
            seconds += time.perf_counter() - began
            if model.memory_.n_units_ > limit:  # a memory that grows at every visit also becomes slow
                raise TooLarge
        if retention:
            after.append(accuracies(model, benchmark, [stream.visits[visit]]))
    last, memory = accuracies(model, benchmark, tasks), model.memory_
    record: dict[str, Any] = {"units": memory.n_units_, "seconds": round(seconds, 3), "samples": len(stream)}
    for protocol in ("strict", "paper"):
        record[f"{protocol} ACC"] = float(np.mean(last[protocol]))
        if len(after) == len(tasks):
            lost = [last[protocol][task] - after[task][protocol][0] for task in tasks[:-1]]
            record[f"{protocol} BWT"] = float(np.mean(lost))
    model.set_params(n_winners=5)
    record["strict ACC of 5 winners"] = float(np.mean(accuracies(model, benchmark, tasks)["strict"]))
    record["floats"] = memory.n_units_ * memory.n_features_in_
    if isinstance(memory, AdaptiveCCM):  # the numbers stored beside the prototypes: for the stream, and for each block
        state = memory._state
        record["floats"] += state.stream.size + state.scalars.size + memory.n_blocks_ * state.blocks[0].size
    if isinstance(memory, BlockMemory):
        score = score_events(memory.events_, changes or stream.change_points, tasks=stream.visits)
        record |= {"blocks": memory.n_blocks_, **detection(score), "delays": list(score.delays)}
    return record


def detection(score: EventScore) -> dict[str, Any]:
    """Return the counts of a score as JSON values."""
    return {
        "changes": score.changes,
        "missed": score.missed,
        "false alarms": score.false_alarms,
        "returns": score.returns,
        "right recalls": score.right_recalls,
    }


def accuracies(model: Any, benchmark: Benchmark, tasks: Iterable[int]) -> dict[str, list[float]]:
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
    for vigilance, alarm_limit in product((0.7, 0.75, 0.8, 0.85, 0.9, 0.94), (10, 20, 40)):
        model = fixed(vigilance=vigilance, alarm_limit=alarm_limit)
        record = trial(model, benchmark, make_stream("five tasks", benchmark, 0), retention=False)
        chosen = {"vigilance": vigilance, "alarm_limit": alarm_limit}
        found.append(chosen | {"ACC": record["strict ACC"], "units": record["units"], "fits": record["units"] <= 150})
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


Save = Callable[[], None]


def streams_part(args: argparse.Namespace, found: dict[str, Any], save: Save) -> None:
    """Run all models on all streams of all data sets."""
    for name in args.sets:
        data = load(name, args.data)
        entry = found.setdefault(name, {})
        if "fixed" not in entry:
            entry["fixed"] = tune_fixed(name, args.data)
        if "tuned" not in entry:
            entry["tuned"] = tuned_rows(name, args.data)
            save()
        tuned = {title: tried[0]["parameters"] for title, tried in entry["tuned"].items()}
        for kind in args.streams:
            benchmark = Benchmark.of(data, 10 if kind == "ten tasks" else 5)
            for title, make in models(tuned).items():
                if not args.rows or title.split(",")[0] in args.rows:
                    records = entry.setdefault(kind, {}).setdefault(title, [])
                    seeds = list(range(len(records), args.trials))
                    records += over_cores(partial(one_of_streams, kind, benchmark, make), seeds)
                    save()
            print(f"{name}, {kind}: done", flush=True)


def one_of_streams(kind: str, benchmark: Benchmark, make: Make, seed: int) -> dict[str, Any]:
    """Return the record of one trial of a model on one kind of stream."""
    stream = make_stream(kind, benchmark, seed)
    changes = beginnings(stream) if kind == "blurred" else None
    return trial(make(seed, benchmark), benchmark, stream, kind in ("five tasks", "ten tasks"), changes=changes)


def bounds_part(args: argparse.Namespace, found: dict[str, Any], save: Save) -> None:
    """Measure the cost of each bound, on ordered and shuffled streams."""
    ways = (("five tasks", "readout"), ("five tasks", "merge"), ("five tasks", "guide"), ("shuffled", "readout"))
    for name in (name for name in IMAGES if name in args.sets):
        benchmark = Benchmark.of(load(name, args.data))
        for bound, (kind, label_use) in product((25, 50, 125, 250, 500, 1000, 2000), ways):
            records = found.setdefault(f"{name} {kind} {label_use}", {}).setdefault(str(bound), [])
            seeds = list(range(len(records), args.trials))
            records += over_cores(partial(one_of_bounds, kind, benchmark, label_use, bound), seeds)
            save()
        print(f"{name}: bounds done", flush=True)


def one_of_bounds(kind: str, benchmark: Benchmark, label_use: str, bound: int, seed: int) -> dict[str, Any]:
    """Return the record of one trial with a bound."""
    model = adaptive(label_use, max_units=bound)
    return trial(model, benchmark, make_stream(kind, benchmark, seed), retention=False)


def dependent_part(args: argparse.Namespace, found: dict[str, Any], save: Save) -> None:
    """Run dependent samples: sensors with a cycle and a drift, and images in file order."""

    def sensors(seed: int) -> dict[str, Any]:
        plan = drifting_sensors(200_000, seed=seed)
        memory = AdaptiveCCM()
        for rows, _ in plan.chunks():
            memory.partial_fit(rows)
        score = score_events(memory.events_, [row for row, _ in plan.changes], tasks=plan.visits.tolist())
        counts = {"blocks": memory.n_blocks_, "states": len(plan.levels), **detection(score)}
        return counts | {"median delay": float(np.median(score.delays))}

    found["drifting sensors, seeds 0 to 7"] = over_cores(sensors, list(range(8)))
    for name in IMAGES:
        memory = AdaptiveCCM().fit(load(name, args.data).X_train)
        found[f"{name} in file order"] = {
            "blocks": memory.n_blocks_,
            "events": len(memory.events_),
            "part learned": round(float(memory.win_counts_.sum()) / memory.n_samples_seen_, 4),
        }
    save()


def speed_part(args: argparse.Namespace, found: dict[str, Any], save: Save) -> None:
    """Measure the processor time of learning against the paper's CCM, alternating; keep the best of several runs."""
    benchmark = Benchmark.of(load("mnist", args.data))
    X = benchmark.X[make_stream("five tasks", benchmark, 0).indices]
    best: dict[str, float] = {}
    for _ in range(9):
        for title, model in (("AdaptiveCCM", adaptive()), ("fixed", fixed())):
            began = time.process_time()
            model.memory.partial_fit(X)
            best[title] = min(best.get(title, np.inf), time.process_time() - began)
    found |= {title: {"microseconds a sample": round(1e6 * s / len(X), 3)} for title, s in best.items()}
    save()


PARTS = {"streams": streams_part, "dependent": dependent_part, "bounds": bounds_part, "speed": speed_part}


def main() -> None:
    """Run the requested parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", metavar="FOLDER", help="folder of the image sets")
    parser.add_argument("--part", nargs="*", default=list(PARTS), choices=list(PARTS), help="what to run")
    parser.add_argument("--trials", type=int, default=10, help="trials of every row (default: 10)")
    parser.add_argument(
        "--sets", nargs="*", default=[*IMAGES, *MADE], help="data sets of streams and bounds (default: all)"
    )
    parser.add_argument(
        "--streams", nargs="*", default=STREAMS, choices=STREAMS, help="kinds of streams (default: all)"
    )
    parser.add_argument("--rows", nargs="*", help="rows of the streams: AdaptiveCCM, fixed, iWTA (default: all)")
    parser.add_argument("--out", type=Path, default=Path("results/adaptive"))
    parser.add_argument("--tables", action="store_true", help="only print tables of what there is")
    parser.add_argument("--plots", action="store_true", help="only draw what there is, into docs/_static")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    kept = {part: args.out / f"{part}.json" for part in PARTS}
    results = {part: json.loads(path.read_text()) for part, path in kept.items() if path.is_file()}
    if args.tables:
        print(adaptive_report.tables(results))
    if args.plots:
        adaptive_report.draw(results)
    for part in () if args.tables or args.plots else args.part:
        found = results.get(part, {})
        PARTS[part](args, found, lambda: kept[part].write_text(json.dumps(found, separators=(",", ":")) + "\n"))  # noqa: B023


if __name__ == "__main__":
    main()
