"""Figures of docs/fleet.md: kills of every adapter, cost per key and per row, many keys, merging.

    python -m studies.fleet kills plain --kills 20
    python -m studies.fleet kills dask --kills 20
    python -m studies.fleet kills spark --kills 20 [--work DIR --minutes 8: in pieces]
    python -m studies.fleet cost
    python -m studies.fleet spark
    python -m studies.fleet scale --keys 10000
    python -m studies.fleet scale --keys 100000
    python -m studies.fleet merge --trials 5

Each writes a JSON file to studies/evidence/fleet.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from studies.fleet_kills import DRIVER, FEATURES, command, kills, table_of, write_rows
from studies.scale import commit

EVIDENCE = Path(__file__).parent / "evidence" / "fleet"


# Cost of Spark -----------------------------------------------------------------------------------------------------


def spark(args: argparse.Namespace) -> dict[str, Any]:
    """Measure the processor time of a micro-batch per key and per row, Java and Python together.

    Three runs: few keys, many keys, many keys with more rows. The difference of the first two gives the cost per key,
    the difference of the last two the cost per row.
    """
    batches, few, many = 4, args.keys // 8, args.keys
    used = [_spark_seconds(keys, rows, batches) for keys, rows in ((few, 10), (many, 10), (many, 50))]
    row = (used[2] - used[1]) / (batches * many * 40)
    look = (used[1] - used[0]) / (batches * (many - few)) - 10 * row
    return {
        "keys": [few, many, many],
        "rows_of_a_key_in_a_batch": [10, 10, 50],
        "batches": batches,
        "processor_s": [round(seconds, 2) for seconds in used],
        "look_ms": round(1e3 * look, 4),
        "row_us": round(1e6 * row, 3),
    }


def _spark_seconds(n_keys: int, rows_in_a_batch: int, batches: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        write_rows(work / "rows", n_keys, rows_in_a_batch * batches, batches)
        words = [str(DRIVER), str(work / "rows"), str(work / "events"), str(work / "checkpoint"), str(len(FEATURES))]
        with (work / "log").open("w") as log:
            child = subprocess.Popen(
                [sys.executable, *words], start_new_session=True, stdout=subprocess.DEVNULL, stderr=log
            )
            seconds, _ = _watched(child)
        assert child.returncode == 0, (work / "log").read_text()[-3000:]
    return seconds


def _watched(leader: subprocess.Popen[Any]) -> tuple[float, int]:
    """Return processor seconds of a process group until its leader ends, and peak memory of one process in KB (Linux).

    A process that ends is counted by its parent if the parent waits for it; the last 0.1 s are not counted.
    """
    most, peak = 0, 0
    while leader.poll() is None:
        ticks = 0
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                if int(fields[2]) == leader.pid:
                    ticks += sum(map(int, fields[11:15]))
                    lines = (folder / "status").read_text().splitlines()
                    peak = max(peak, *(int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)
            except OSError:
                continue
        most = max(most, ticks)
        time.sleep(0.1)
    return most / os.sysconf("SC_CLK_TCK"), peak


# Cost ---------------------------------------------------------------------------------------------------------------


def cost(args: argparse.Namespace) -> dict[str, Any]:
    """Measure processor time per key and per row, and bytes: medians over many repeats in one process."""
    from ccmem import AdaptiveCCM, from_bytes
    from ccmem.fleet import Recipe, Rows, step

    rng = np.random.default_rng(0)
    centres = rng.normal(size=(4, 8))
    X = np.concatenate([centres[i % 4] + 0.3 * rng.normal(size=(500, 8)) for i in range(6)])
    facts: dict[str, Any] = {}
    for dtype in (np.float32, np.float64):
        memory = AdaptiveCCM().partial_fit(X.astype(dtype))
        data = memory.to_bytes()
        again = from_bytes(data)
        facts[np.dtype(dtype).name] = {
            "blocks": memory.n_blocks_,
            "units": memory.n_units_,
            "bytes": len(data),
            "bytes_in_memory": sum(array.nbytes for array in again._state),
            "to_bytes_ms": _processor_ms(memory.to_bytes),
            "from_bytes_ms": _processor_ms(lambda data=data: from_bytes(data)),
        }
    recipe, rows = Recipe(), X.astype(np.float32)
    state, _ = step(1, None, Rows(np.arange(2500), rows[:2500]), recipe)
    one = _processor_ms(lambda: step(1, state, Rows(np.array([2500]), rows[2500:2501]), recipe))
    many = _processor_ms(lambda: step(1, state, Rows(np.arange(2500, 3000), rows[2500:]), recipe))
    facts["step_of_one_row_ms"] = one
    facts["step_of_500_rows_ms"] = many
    facts["row_us"] = (many - one) / 499 * 1000
    facts["state_bytes"] = len(state or b"")
    facts["new_key_of_200_rows_ms"] = _processor_ms(lambda: step(1, None, Rows(np.arange(200), rows[:200]), recipe))
    facts["plain_200_rows_ms"] = _processor_ms(lambda: AdaptiveCCM().partial_fit(rows[:200]))
    return facts


def _processor_ms(function: Any, repeats: int = 300) -> float:
    """Return the 10th percentile of the times, which is least affected by other load on the machine."""
    function()
    times = []
    for _ in range(repeats):
        start = time.thread_time()
        function()
        times.append(time.thread_time() - start)
    return round(float(np.quantile(times, 0.1)) * 1000, 4)


def scale(args: argparse.Namespace) -> dict[str, Any]:
    """Run many keys through the command with one and two workers, and through a plain loop over rows sorted by key.

    The loop runs over 2,000 of the keys.
    """
    import pyarrow as pa
    from pyarrow import parquet

    from ccmem import AdaptiveCCM

    n_rows, facts = 200, {"keys": args.keys, "rows": args.keys * 200}
    with tempfile.TemporaryDirectory() as folder:
        work = Path(args.scratch or folder)
        if (work / "facts.json").exists():
            facts = json.loads((work / "facts.json").read_text())
        (work / "rows").mkdir(parents=True, exist_ok=True)
        for start in range(
            0, args.keys, 10_000
        ):  # one file per 10,000 keys: the rows of a file are interleaved in time
            file = work / "rows" / f"{start:07d}.parquet"
            if not file.exists():
                table = table_of(min(10_000, args.keys - start), n_rows, seed=start)
                keys = table.column("machine").to_numpy() + start
                table = table.set_column(0, "machine", pa.array(keys))
                parquet.write_table(table, work / "new", row_group_size=250_000, use_dictionary=False)
                (work / "new").rename(file)
        sample = table_of(min(args.keys, 2000), n_rows).sort_by([("machine", "ascending"), ("time", "ascending")])
        X = np.stack([sample.column(name).to_numpy() for name in FEATURES], axis=1).reshape(-1, n_rows, len(FEATURES))
        AdaptiveCCM(n_slots=5).partial_fit(X[0])
        wall, processor = time.monotonic(), time.process_time()
        for rows in X:
            AdaptiveCCM(n_slots=5).partial_fit(rows)
        facts["plain_loop"] = _rates(len(X) * n_rows, time.monotonic() - wall, time.process_time() - processor)
        for shell in args.shells:
            store = work / "store"
            shutil.rmtree(store, ignore_errors=True)
            more = ["--dask", "local", "--workers", "2"] if shell == "dask" else ["--workers", shell]
            wall = time.monotonic()
            child = subprocess.Popen(
                command(work / "rows", store, *more), stdout=subprocess.PIPE, text=True, start_new_session=True
            )
            seconds, peak = _watched(child)
            wall = time.monotonic() - wall
            report = json.loads(child.communicate()[0])
            size = sum(file.stat().st_size for file in (store / "memories").iterdir())
            facts["dask, 2 workers" if shell == "dask" else f"{shell} workers"] = {
                **_rates(report["rows"], wall, seconds),
                "largest_process_mb": round(peak / 1024),
                "keys": report["keys"],
                "events": report["events"],
                "store_bytes_per_key": round(size / report["keys"]),
            }
            (work / "facts.json").write_text(json.dumps(facts))
            shutil.rmtree(store)
    return facts


def _rates(rows: int, wall: float, processor: float) -> dict[str, Any]:
    return {
        "wall_s": round(wall, 2),
        "processor_s": round(processor, 2),
        "rows_per_wall_s": round(rows / wall),
        "rows_per_processor_s": round(rows / processor),
    }


# Merging ------------------------------------------------------------------------------------------------------------


def merge(args: argparse.Namespace) -> dict[str, Any]:
    """Learn Split MNIST in quarters and merge them; compare strict ACC and blocks at 125 units with one stream.

    Quarters are every fourth row, so that each has all tasks in order, or contiguous segments of the stream.
    """
    import ccmem
    from ccmem import AdaptiveCCM, ModalClassifier
    from ccmem.paper.datasets import load
    from ccmem.paper.experiments.protocol import Benchmark

    benchmark = Benchmark.of(load("mnist", folder=args.data, pixels="unit"))
    found: dict[str, list[Any]] = {"one stream": [], "every fourth row": [], "stretches": []}
    for trial in range(args.trials):
        rows = benchmark.stream([trial, 0]).indices
        for name, shards in (
            ("one stream", [rows]),
            ("every fourth row", [rows[i::4] for i in range(4)]),
            ("stretches", np.array_split(rows, 4)),
        ):
            models = [ModalClassifier(AdaptiveCCM(max_units=125)) for _ in shards]
            for model, shard in zip(models, shards, strict=True):
                model.partial_fit(benchmark.X[shard], benchmark.y[shard])
            whole = ccmem.merge(models) if len(models) > 1 else models[0]
            right = whole.predict(benchmark.X_test) == benchmark.y_test
            accuracy = float(np.mean([right[part].mean() for part in benchmark.test_parts]))
            memory = whole.memory_
            found[name].append({"ACC": round(accuracy, 4), "blocks": memory.n_blocks_, "units": memory.n_units_})
    return {"trials": args.trials, **found}


def main() -> None:
    """Run one of the studies and store its figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    killing = parts.add_parser("kills")
    killing.add_argument("shell", choices=("plain", "dask", "spark"))
    killing.add_argument("--kills", type=int, default=20)
    killing.add_argument("--keys", type=int, default=60)
    killing.add_argument("--seed", type=int, default=0)
    killing.add_argument("--work", metavar="DIR", help="spark: where to keep what is needed to resume")
    killing.add_argument("--minutes", type=float, default=60.0, help="spark: pause after so many (with --work)")
    parts.add_parser("cost")
    parts.add_parser("spark").add_argument("--keys", type=int, default=4000)
    merging = parts.add_parser("merge")
    merging.add_argument("--trials", type=int, default=5)
    merging.add_argument("--data", metavar="DIR", help="folder with data sets (default: CCMEM_DATA)")
    scaling = parts.add_parser("scale")
    scaling.add_argument("--keys", type=int, default=100_000)
    scaling.add_argument("--shells", nargs="+", default=["1", "2"], help="numbers of workers, or dask")
    scaling.add_argument("--scratch", help="folder that keeps rows and figures, to run the shells one after the other")
    args = parser.parse_args()
    facts = {"kills": kills, "cost": cost, "spark": spark, "scale": scale, "merge": merge}[args.part](args)
    facts["commit"] = commit()
    facts["machine"] = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, Python {platform.python_version()}"
    EVIDENCE.mkdir(parents=True, exist_ok=True)
    more = {"kills": "shell", "scale": "keys"}.get(args.part)
    name = args.part if more is None else f"{args.part}-{getattr(args, more)}"
    (EVIDENCE / f"{name}.json").write_text(json.dumps(facts, indent=1) + "\n")
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
