"""All that a change of AdaptiveCCM's rule may move, in about a minute: for trying things out, not for the tables.

    python -m studies.at_a_glance --data FOLDER [--tssb FOLDER] [--part recordings controls plants ...]

FOLDER holds ``skab``, ``tep`` and the image sets. Plants are made up (coupled, quantised, in cycles, in any units); no
number was chosen by them, but they were looked at beside the rest.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ccmem import AdaptiveCCM, datasets
from ccmem.experiments.protocol import Benchmark
from ccmem.metrics import score_recording
from ccmem.metrics.events import EventScore, score_events
from ccmem.streams.drift import drifting_sensors

from .real_streams import data, parts

SEEDS = range(6)
PLANTS, QUIET = 200, 100
FAULT, BACK = 1500, 2300
KINDS = ("a shift", "noise", "a sensor that sticks", "a slope")
VISITS = (300, 1000)
TURNS = 3


def recordings(args: argparse.Namespace) -> None:
    """SKAB and Tennessee Eastman, and what is raised where nothing happens."""
    for name, runs, normal, warm_up in (
        ("SKAB", data.skab(args.data / "skab"), data.skab_normal(args.data / "skab"), data.WARM_UP),
        ("Tennessee Eastman", data.tep(args.data / "tep"), data.tep_normal(args.data / "tep"), 0),
    ):
        row = parts._recordings("", "", parts.memory, runs, warm_up, parts.PHASES)
        quiet = [parts.alarms(parts.memory, [X[phase:] for X in normal], warm_up) for phase in parts.PHASES]
        facts = ", ".join(f"{key} {row[key]:g}" for key in ("onsets", "returns", "false", "repeated", "median delay"))
        print(f"{name}: {facts}; alarms without a fault {quiet}", flush=True)
    for row in parts.one_stream(args.data):
        print(f"one stream, {row['order']}: {row['left']:g} faults leave, {row['recalled']:g} recalled", flush=True)


def controls(args: argparse.Namespace) -> None:
    """False alarms per 100,000 rows, six seeds, as rows and as windows."""
    found: dict[str, list[int]] = {}
    for seed in SEEDS:
        for name, X in data.controls(100_000, seed=seed):
            found.setdefault(name, []).append(len(parts.memory(X).steps))
            found.setdefault(f"{name}, windows", []).append(len(parts.signal_changes(X[:, 0])[0]))
            found.setdefault(f"{name}, windows of all columns", []).append(len(parts.signal_changes(X)[0]))
    print("controls:", {name: counts for name, counts in found.items() if any(counts)} or "none", flush=True)


def plant(seed: int, faulty: bool = True, n: int = 3000) -> Any:
    """A made-up plant: slow factors that columns share, a cycle, a quantised column, any units."""
    rng = np.random.default_rng([seed, 99])
    width, factors = int(rng.integers(4, 16)), int(rng.integers(1, 4))
    slowness = rng.uniform(0.5, 0.99, factors)
    hidden, steps = np.zeros((n, factors)), rng.normal(size=(n, factors))
    for t in range(1, n):
        hidden[t] = slowness * hidden[t - 1] + np.sqrt(1 - slowness**2) * steps[t]
    X = hidden @ rng.normal(size=(factors, width)) + rng.uniform(0.2, 1, width) * rng.normal(size=(n, width))
    cycle = 2 * np.pi * np.arange(n) / rng.uniform(30, 400) + rng.uniform(0, 6)
    X[:, rng.integers(0, width)] += rng.uniform(0.5, 3) * np.sin(cycle)
    X = X * 10 ** rng.uniform(-3, 3, width) + 10 ** rng.uniform(-1, 3, width) * rng.normal(size=width)
    if faulty:
        spread, part = X[:FAULT].std(axis=0), slice(FAULT, BACK)
        for c in rng.choice(width, int(rng.integers(1, 3)), replace=False):
            if KINDS[seed % 4] == "a shift":
                X[part, c] += rng.choice([-1, 1]) * rng.uniform(1.5, 4) * spread[c]
            elif KINDS[seed % 4] == "noise":
                level = X[part, c].mean()
                X[part, c] = level + (X[part, c] - level) * rng.choice([0.3, 2.5])
            elif KINDS[seed % 4] == "a sensor that sticks":
                X[part, c] = X[FAULT - 1, c]
            else:
                X[part, c] += np.linspace(0, 1, BACK - FAULT) ** 0.5 * rng.uniform(2, 5) * spread[c]
    coarse = rng.integers(0, width)
    grain = X[:, coarse].std() * rng.uniform(0.05, 0.8)
    X[:, coarse] = np.round(X[:, coarse] / grain) * grain
    return np.ascontiguousarray(X)


def plants(args: argparse.Namespace) -> None:
    """Made-up plants: two hundred with a fault each, a hundred without."""
    scores = [score_recording(parts.memory(plant(s)).steps, FAULT, BACK, warm_up=400) for s in range(PLANTS)]
    by_kind = {kind: sum(score.onset for score in scores[i::4]) for i, kind in enumerate(KINDS)}
    returns, false = sum(bool(score.returned) for score in scores), sum(score.false for score in scores)
    quiet = sum(len(parts.memory(plant(s, faulty=False)).steps) for s in range(QUIET))
    print(f"plants: {sum(by_kind.values())} of {PLANTS} faults {by_kind}, {returns} returns, {false} false", flush=True)
    print(f"  without a fault: {quiet} events in {QUIET} plants of 3,000 rows", flush=True)


def drift(args: argparse.Namespace) -> None:
    """The generator, eight seeds of 200,000 rows."""
    scores = []
    for seed in range(8):
        plan, model = drifting_sensors(200_000, seed=seed), AdaptiveCCM()
        for X, _ in plan.chunks():
            model.partial_fit(X)
        scores.append(score_events(model.events_, plan.starts[1:].tolist(), tasks=plan.visits.tolist()))
    print(f"drift generator: {_summed(scores)}", flush=True)


def segmented(args: argparse.Namespace) -> None:
    """Covering of the segmented signals that are at hand."""
    rows = parts.segmented(args.tssb or args.data)
    mean = statistics.fmean(row["covering"] for row in rows) if rows else float("nan")
    print(f"segmented signals: covering {mean:.3f} of {len(rows)} series", flush=True)


def images(args: argparse.Namespace) -> None:
    """Five tasks in turn, three times, 300 and 1,000 samples a visit."""
    for name in ("mnist", "fashion-mnist", "notmnist"):
        benchmark = Benchmark.of(datasets.load(name, folder=str(args.data)))
        y, tasks = benchmark.y[benchmark.rows], len(benchmark.tasks)
        for size in VISITS:
            scores, visits = [], list(range(tasks)) * TURNS
            for seed in range(args.trials):
                rng = np.random.default_rng([seed, 5])
                pools = [rng.permutation(benchmark.rows[np.isin(y, task)]) for task in benchmark.tasks]
                turns = [pools[v][i // tasks * size : (i // tasks + 1) * size] for i, v in enumerate(visits)]
                model = AdaptiveCCM().partial_fit(benchmark.X[np.concatenate(turns)])
                changes = [size * i for i in range(1, len(visits))]
                scores.append(score_events(model.events_, changes, tasks=visits))
            print(f"{name}, {size} a visit: {_summed(scores)}", flush=True)


def _summed(scores: list[EventScore]) -> str:
    missed, false = sum(score.missed for score in scores), sum(score.false_alarms for score in scores)
    right, returns = sum(score.right_recalls or 0 for score in scores), sum(score.returns or 0 for score in scores)
    changes = sum(score.changes for score in scores)
    return f"{missed} of {changes} changes missed, {false} false alarms, {right} of {returns} returns right"


PARTS: dict[str, Callable[[argparse.Namespace], None]] = {
    "recordings": recordings,
    "controls": controls,
    "plants": plants,
    "drift": drift,
    "segmented": segmented,
    "images": images,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("CCMEM_DATA"))
    parser.add_argument("--tssb", type=Path, help="folder of the segmented signals, if not that of --data")
    parser.add_argument("--trials", type=int, default=10, help="of images (default: 10)")
    parser.add_argument("--part", nargs="*", default=list(PARTS), choices=list(PARTS))
    args = parser.parse_args()
    if args.data is None:
        parser.error("say where the data are: --data FOLDER")
    args.data = Path(args.data)
    for part in args.part:
        PARTS[part](args)


if __name__ == "__main__":
    main()
