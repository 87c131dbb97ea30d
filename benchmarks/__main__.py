"""``python -m benchmarks``: run everything, print the summary, write JSON and a chart.

python -m benchmarks                 everything (some minutes), into results/
python -m benchmarks --quick         the same with fewer rounds and smaller memories
python -m benchmarks --write         and the figures into benchmarks/RESULTS.md
python -m benchmarks --only learning,peers      parts that results/bench.json already has stay as they are
"""

from __future__ import annotations

import argparse
import copy
import datetime
import json
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core; must be set before numpy loads

import numpy as np

import ccmem
from benchmarks import data, growth, limit, report, rivals, startup
from benchmarks.timing import Subject, ratio, spread, take_turns
from ccmem import registry

MODELS: dict[str, Callable[[], Any]] = {
    "CCM": lambda: ccmem.CCM(random_state=0),
    "IncrementalWTA": lambda: ccmem.IncrementalWTA(125, learning_rate=0.02),
    "IncrementalGMM": lambda: ccmem.IncrementalGMM(125, learning_rate=0.02),
    "ARTC2A": lambda: ccmem.ARTC2A(125),
}
BY_DISTANCE = ("IncrementalWTA", "IncrementalGMM")
PARTS = ("learning", "peers", "prediction", "growth", "startup")
HERE = Path(__file__).parent


def learning(X: np.ndarray, rounds: int, n: int) -> dict[str, Any]:
    """Time every model on one stream, beside a bare loop and the same step in numpy."""
    warm, chunk = X[:20_000], X[20_000 : 20_000 + n]
    work, subjects = {}, []
    for name, make in MODELS.items():
        memory = make().partial_fit(warm)
        work[name] = limit.count_work(copy.deepcopy(memory), chunk)

        def learn(memory: Any = memory) -> Any:
            fresh = copy.deepcopy(memory)
            return lambda: fresh.partial_fit(chunk)

        def one_by_one(memory: Any = memory) -> Any:
            fresh = copy.deepcopy(memory)
            return lambda: [fresh.learn_one(x) for x in chunk]

        def kernel_alone(memory: Any = memory) -> Any:
            fresh, winners = copy.deepcopy(memory), np.empty(n, np.int64)
            return lambda: fresh._learn_kernel(fresh._state, fresh._settings(), chunk, winners)

        subjects += [Subject(name, n, learn), Subject(f"{name}.learn_one", n, one_by_one)]
        subjects.append(Subject(f"{name}, kernel", n, kernel_alone))
        for how, loop in limit.bare_loops(name in BY_DISTANCE).items():

            def bare(memory: Any = memory, loop: Any = loop, name: str = name) -> Any:
                M = limit.on_cache_lines(memory._state.prototypes)
                return lambda: loop(chunk, M, *work[name], 1e-4)  # small enough to avoid subnormal numbers

            subjects.append(Subject(f"{name}, bare loop ({how})", n, bare))
        few = min(n, 300)
        subjects.append(Subject(f"{name}, numpy", few, rivals.in_numpy(memory, chunk[:few])))
    times = take_turns(subjects, rounds)
    result = {}
    for name in MODELS:
        loops = {key: values for key, values in times.items() if key.startswith(f"{name}, bare")}
        fastest = min(loops, key=lambda key: float(np.median(loops[key])))
        w = work[name]
        result[name] = {
            "seconds": spread(times[name]),
            "learn_one_seconds": spread(times[f"{name}.learn_one"]),
            "limit_seconds": spread(times[fastest]),
            "limit": fastest.partition("(")[2][:-1],
            "numpy_seconds": spread(times[f"{name}, numpy"]),
            "kernel_times_the_limit": ratio(times[f"{name}, kernel"], times[fastest]),
            "times_the_limit": ratio(times[name], times[fastest]),
            "faster_than_numpy": ratio(times[f"{name}, numpy"], times[name]),
            "dots_per_sample": float((w.count + w.extra).mean()) + (name not in BY_DISTANCE),
            "updates_per_sample": len(w.updates) / n,
        }
    return result


def peers(X: np.ndarray, y: np.ndarray, rounds: int, quick: bool) -> dict[str, Any]:
    """Time peers at batch 1, in turn with CCM (and PyTorch with OnlineMLP)."""

    def learner(memory: Any) -> Any:
        memory.partial_fit(X[:20_000])

        def learn() -> Any:
            fresh = copy.deepcopy(memory)
            return lambda: fresh.partial_fit(X[20_000:30_000])

        return learn

    own = {"CCM": MODELS["CCM"](), "AdaptiveCCM": ccmem.AdaptiveCCM()}
    subjects = list(rivals.peers(X, y, 125, quick))
    mlp = rivals.online_mlp(X, y)
    ours = [Subject(name, 10_000, learner(memory)) for name, memory in own.items()]
    times = take_turns([*subjects, *ours, *([mlp] if mlp else [])], rounds)
    result = {name: {"seconds": spread(values)} for name, values in times.items()}
    for subject in subjects:
        rival = times.get("OnlineMLP" if subject.name == "PyTorch MLP" else "CCM")
        if rival is not None:
            result[subject.name]["ccmem_is_faster_by"] = ratio(times[subject.name], rival)
    return result


def prediction(X: np.ndarray, rounds: int) -> dict[str, Any]:
    """Time prediction with 125 units beside one matrix product of the same shape."""
    subjects, result = [], {}
    for name, make in MODELS.items():
        memory = make().partial_fit(X[:20_000])
        subjects.append(Subject(name, len(X), lambda memory=memory: lambda: memory.predict(X)))  # type: ignore[misc]
        result[name] = {"units": memory.n_units_}
    M = MODELS["IncrementalWTA"]().partial_fit(X[:2000]).prototypes_
    out = np.empty((len(X), len(M)), np.float32)
    subjects.append(Subject("sgemm", len(X), lambda: lambda: np.matmul(X, M.T, out=out)))
    times = take_turns(subjects, rounds)
    for name in MODELS:
        result[name] |= {"seconds": spread(times[name]), "times_sgemm": ratio(times[name], times["sgemm"])}
    return {**result, "sgemm": {"units": 125, "seconds": spread(times["sgemm"])}}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds, smaller memories")
    parser.add_argument("--write", action="store_true", help="write benchmarks/RESULTS.md")
    parser.add_argument("--only", default=",".join(PARTS), metavar="PARTS", help=f"some of: {', '.join(PARTS)}")
    parser.add_argument("--json", type=Path, default=Path("results/bench.json"), metavar="FILE")
    options = parser.parse_args()
    parts = options.only.split(",")
    if not set(parts) <= set(PARTS):
        parser.error(f"--only {options.only}: the parts are {', '.join(PARTS)}")
    rounds = 3 if options.quick else 15
    name, X, y = data.stream()
    measured_before = set(PARTS) - set(parts) if options.json.is_file() else set()
    kept = json.loads(options.json.read_text()) if measured_before else {}
    figures: dict[str, Any] = {
        **{part: kept[part] for part in PARTS if part in measured_before & set(kept)},
        "data": name,
        "machine": f"{report.processor()}, {os.cpu_count()} cores, {platform.system()}",
        "versions": {"python": platform.python_version(), "numpy": np.__version__, "ccmem": ccmem.__version__},
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "command": "python -m benchmarks" + (" --quick" if options.quick else ""),
    }
    if "learning" in parts:
        print("learning ...", flush=True)
        figures["learning"] = learning(X, rounds, 2000 if options.quick else 10_000)
    if "peers" in parts:
        print("peers ...", flush=True)
        figures["peers"] = peers(X, y, 2 if options.quick else 5, options.quick)
    if "prediction" in parts:
        print("prediction ...", flush=True)
        figures["prediction"] = prediction(X, 2 if options.quick else 7)
    if "growth" in parts:
        print("growth ...", flush=True)
        rng = np.random.default_rng(0)
        sizes = [1, 10, 100, 1000] if options.quick else [1, 10, 100, 1000, 10_000]
        figures["growth"] = {"blocks": growth.by_blocks(sizes, rounds, rng), **growth.by_shape(rounds, rng)}
    if "startup" in parts:
        print("startup ...", flush=True)
        figures["startup"] = {
            "imports": startup.imports(3 if options.quick else 7),
            "uses": startup.uses(registry.MEMORIES),
            "peak_megabytes": startup.peak_memory(list(MODELS), 6_000 if options.quick else 60_000),
        }
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(figures, indent=1) + "\n")
    before = json.loads((HERE / "before.json").read_text()) if (HERE / "before.json").is_file() else {}
    text = report.summary(figures, before)
    print(text)
    print(f"\nall figures: {options.json}")
    chart = report.chart(figures, options.json.with_suffix(".png"))
    print(f"chart: {chart}" if chart else "no chart: it needs learning, growth, and pip install 'ccmem[plot]'")
    if options.write:
        (HERE / "RESULTS.md").write_text(report.document(figures, before))
        print(f"written: {HERE / 'RESULTS.md'}")


if __name__ == "__main__":
    main()
