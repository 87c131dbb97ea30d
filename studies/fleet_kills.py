"""Repeated kills of the fleet adapters; the results are compared with a loop over keys.

Run by ``python -m studies.fleet kills plain|dask|spark``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

DRIVER = Path(__file__).parents[1] / "tests" / "fleet" / "spark_driver.py"
FEATURES = [f"x{i}" for i in range(8)]


def table_of(n_keys: int, n_rows: int, seed: int = 0) -> Any:
    """Rows of all keys, interleaved in time; every key alternates between two states."""
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    key, moment = np.tile(np.arange(n_keys), n_rows), np.repeat(np.arange(n_rows), n_keys)
    centres = rng.normal(size=(n_keys, 2, len(FEATURES))).astype(np.float32)
    X = centres[key, moment // 120 % 2] + rng.normal(0, 0.3, (len(key), len(FEATURES))).astype(np.float32)
    columns = {name: X[:, i] for i, name in enumerate(FEATURES)}
    return pa.table({"machine": pa.array(key.astype(np.int64)), "time": pa.array(moment.astype(np.int64)), **columns})


def write_rows(folder: Path, n_keys: int, n_rows: int, files: int) -> None:
    """Write the rows as Parquet files, in time order."""
    from pyarrow import parquet

    folder.mkdir(parents=True, exist_ok=True)
    table = table_of(n_keys, n_rows)
    each = -(-n_rows // files) * n_keys
    for i in range(files):
        name = folder / f"rows-{i:03d}.parquet"
        parquet.write_table(table.slice(i * each, each), name, row_group_size=250_000, use_dictionary=False)
        os.utime(name, (1_000_000_000 + i, 1_000_000_000 + i))


def command(rows: Path, store: Path, *more: str) -> list[str]:
    """Return the command line of ``ccmem fleet learn``."""
    fixed = ["--key", "machine", "--order", "time", "--param", "n_slots=5", "--json"]
    return [sys.executable, "-m", "ccmem.cli", "fleet", "learn", str(rows), "--store", str(store), *fixed, *more]


def content(store: Path) -> tuple[dict[Any, bytes], list[tuple[Any, ...]]]:
    """Return states by key, and sorted events."""
    from pyarrow import parquet

    from ccmem.fleet.store import Store

    opened = Store(store)
    states = {key: state for bucket in range(opened.buckets) for key, state in opened.states(bucket)}
    events = parquet.read_table(store / "events").to_pylist()
    return states, sorted(tuple(event.values()) for event in events)


def plain(rows: Path) -> tuple[dict[Any, bytes], list[tuple[Any, ...]]]:
    """Compute states and events with a loop over keys."""
    from pyarrow import parquet

    from ccmem import AdaptiveCCM
    from ccmem.fleet import Recipe, Rows, step

    table = parquet.read_table(rows).sort_by([("machine", "ascending"), ("time", "ascending")])
    keys, order = table.column("machine").to_numpy(), table.column("time").to_numpy()
    X = np.stack([table.column(name).to_numpy() for name in FEATURES], axis=1)
    states, events = {}, []
    for part in np.split(np.arange(len(keys)), np.flatnonzero(np.diff(keys)) + 1):
        key = int(keys[part[0]])
        state, happened = step(key, None, Rows(order[part], X[part]), Recipe(AdaptiveCCM(n_slots=5)))
        assert state is not None
        states[key] = state
        events += [tuple(event) for event in happened]
    return states, sorted(events)


def kill_plain(rows: Path, work: Path, kills: int, rng: random.Random) -> dict[str, Any]:
    """Kill the command with SIGKILL, mostly during a round. Its workers must end without help."""
    store, done, attempts, midway = work / "store", 0, 0, 0

    def under_way() -> bool:
        manifest = store / "manifest.json"
        return manifest.exists() and json.loads(manifest.read_text())["current"] is not None

    while True:
        attempts += 1
        call = command(rows, store, "--workers", "2", "--round-rows", "20000", "--buckets", "16")
        child = subprocess.Popen(call, stdout=subprocess.DEVNULL, start_new_session=True)
        if done < kills:
            if done % 5:
                while child.poll() is None and not under_way():
                    time.sleep(0.01)
            deadline = time.monotonic() + rng.uniform(0.0, 5.0)
            while child.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
            if child.poll() is None:
                child.kill()
                child.wait()
                done += 1
                midway += under_way()
                continue
        child.wait()
        assert child.returncode == 0, child.returncode
        equal = content(store) == plain(rows)
        if done >= kills or not equal:
            return {"kills": done, "in_the_midst_of_a_round": midway, "attempts": attempts, "equal": equal}
        shutil.rmtree(store)


def kill_dask(rows: Path, work: Path, kills: int, rng: random.Random) -> dict[str, Any]:
    """Kill workers of a local cluster with SIGKILL while it learns."""
    from ccmem import AdaptiveCCM
    from ccmem.fleet import Recipe, local, tables
    from ccmem.fleet.dask import client, map_on
    from ccmem.fleet.store import Store

    done, runs, wanted, equal = 0, 0, plain(rows), True
    with client("local", 2) as connected:
        while done < kills:
            runs += 1
            store = work / f"store-{runs}"
            columns = tables.choose([str(rows)], "machine", "time", None)
            made = Store.create(store, Recipe(AdaptiveCCM(n_slots=5)), columns, 16)
            over = threading.Event()
            dead: set[int] = set()

            def murder(over: threading.Event = over, dead: set[int] = dead) -> None:
                nonlocal done
                while done < kills and not over.wait(rng.uniform(0.05, 1.0)):
                    known = connected.scheduler_info(n_workers=-1)["workers"]  # only workers that have started
                    nannies = [n for n in connected.cluster.workers.values() if n.worker_address in known]
                    pids = [nanny.pid for nanny in nannies if nanny.pid and nanny.pid not in dead]
                    if pids:
                        victim = rng.choice(pids)
                        dead.add(victim)
                        os.kill(victim, signal.SIGKILL)
                        done += 1

            thread = threading.Thread(target=murder)
            thread.start()
            try:
                local.learn(made, [str(rows)], lambda tasks: map_on(connected, local.perform, tasks))
            finally:
                over.set()
                thread.join()
            equal = equal and content(store) == wanted
            shutil.rmtree(store)
    return {"kills": done, "runs": runs, "equal": equal}


def kill_spark(rows: Path, work: Path, kills: int, rng: random.Random, minutes: float) -> dict[str, Any]:
    """Kill the driver with SIGKILL, including Java: before and after events are in place, and at random moments.

    Stops after the given minutes and reports its progress; call it again with the same folder to continue.
    """
    from pyarrow import parquet

    progress, until = work / "progress.json", time.monotonic() + 60.0 * minutes
    totals: dict[str, Any] = {"when": dict.fromkeys(MOMENTS, 0), "failures": 0, "runs": 0, "equal": True}
    if progress.exists():
        totals = json.loads(progress.read_text())
    while True:
        done, run = sum(totals["when"].values()), work / f"run-{totals['runs']}"
        if time.monotonic() > until:
            print(f"{done} of {kills} kills so far; the same command resumes", file=sys.stderr)
            return {"kills": done, **totals, "ended": False, **_so_far(rows, run)}
        run.mkdir(exist_ok=True)
        moment = list(MOMENTS)[done % len(MOMENTS)] if done < kills else None
        words = [
            str(DRIVER),
            str(rows),
            str(run / "events"),
            str(run / "checkpoint"),
            "8",
            *MOMENTS.get(str(moment), []),
        ]
        with (run / "states.txt").open("w") as output, (run / "log.txt").open("w") as log:
            child = subprocess.Popen([sys.executable, *words], start_new_session=True, stdout=output, stderr=log)
            try:
                child.wait(rng.uniform(5, 40) if moment == RANDOM else None)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        if child.returncode == 0:  # it reached the end: of the kills, or before one
            lines = [line.split() for line in (run / "states.txt").read_text().splitlines()]
            states = {int(key): bytes.fromhex(state) for key, state in lines}
            parts = [parquet.read_table(part) for part in sorted((run / "events").glob("batch-*"))]
            events = sorted(tuple(row.values()) for part in parts for row in part.to_pylist())
            totals["runs"] += 1
            totals["equal"] = totals["equal"] and (states, events) == plain(rows)
        elif child.returncode == -signal.SIGKILL:
            assert moment is not None, "killed by someone else"
            totals["when"][moment] += 1
            print(f"{done + 1} kills", file=sys.stderr, flush=True)
        else:  # on a busy machine Spark gives up on a Python worker after ten seconds
            totals["failures"] += 1
            assert totals["failures"] < 20, (run / "log.txt").read_text()[-3000:]
        progress.write_text(json.dumps(totals))
        if child.returncode == 0 and (done >= kills or not totals["equal"]):
            return {"kills": done, **totals, "ended": True, "batches": len(parts), "events": len(events)}


def _so_far(rows: Path, run: Path) -> dict[str, Any]:
    """True if the events written so far are those of a loop over the rows of their batches."""
    from pyarrow import parquet

    parts = sorted((run / "events").glob("batch-*"))
    events = sorted(tuple(row.values()) for part in parts for row in parquet.read_table(part).to_pylist())
    with tempfile.TemporaryDirectory() as folder:
        for file in sorted(rows.iterdir())[: len(parts)]:  # one file is one batch
            shutil.copy(file, folder)
        equal = not parts or events == plain(Path(folder))[1]
    return {"batches": len(parts), "events": len(events), "events_equal": equal}


RANDOM = "at a random moment"
MOMENTS = {
    "before the events of the next batch": ["before", "1"],
    "between the events and the commit of the next batch": ["after", "1"],
    "between the events and the commit of the second batch from there": ["after", "2"],
    RANDOM: [],
}
"""Moments at which a driver is killed, with the arguments that make it kill itself at that moment."""


def kills(args: argparse.Namespace) -> dict[str, Any]:
    """Kill an adapter many times and compare the result with a loop over keys, byte by byte."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(args.work or folder)
        if not (work / "rows").exists():
            write_rows(work / "rows", args.keys, 360, 12 if args.shell == "spark" else 3)
        if args.shell == "spark":
            seed = args.seed + int(time.time())  # random moments, also in a resumed run
            facts = kill_spark(work / "rows", work, args.kills, random.Random(seed), args.minutes)
        else:
            shell = {"plain": kill_plain, "dask": kill_dask}[args.shell]
            facts = shell(work / "rows", work, args.kills, random.Random(args.seed))
    return {"shell": args.shell, "keys": args.keys, "rows": args.keys * 360, **facts}
