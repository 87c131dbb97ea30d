"""Soak: learn a long stream and show that memory stays flat.

    python benchmarks/soak.py --rows 20000000

A file of a million rows of sensor data is learned over and over, as ``ccmem learn --again`` would, with checkpoints in
between. Prints the peak resident size at the start (when the first tenth has been learned: code compiled, buffers
filled, everything seen once) and at the end.

    python benchmarks/soak.py --rows 5000000 --restless

makes a stream that never comes to rest, a new direction every 300 rows for ever, and learns it with a bound on units.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ccmem import CCM, AdaptiveCCM, ModalClassifier
from ccmem.app.learner import Learner
from ccmem.io.streams.files import FileStream
from ccmem.io.streams.progress import Progress
from ccmem.io.streams.schema import Columns
from ccmem.io.streams.tables import Chunk


def peak_megabytes() -> float:
    """Return the peak resident size of this process in megabytes."""
    scale = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale / 2**20


def recurring(learner: Learner, folder: Path, rows: int) -> Iterator[dict[str, Progress]]:
    """Learn a million rows of sensor data from Parquet repeatedly; yield the progress after every chunk."""
    file = folder / "sensors.parquet"
    command = [sys.executable, "-m", "ccmem.cli", "generate", "drift", str(file), "--rows", "1000000"]
    subprocess.run(
        command, check=True, stdout=subprocess.DEVNULL
    )  # in a separate process, so that its memory is not counted
    while learner.rows < rows:
        source = FileStream(file, label="state", columns=learner.columns)
        for chunk in source.chunks_read_ahead(rows - learner.rows, 60.0):
            if chunk is not None and source.columns is not None:
                learner.learn(chunk, source.columns)
                yield source.progress


def restless(learner: Learner, rows: int) -> Iterator[dict[str, Progress]]:
    """Learn a new direction every 300 rows."""
    rng = np.random.default_rng(0)
    columns = Columns(tuple("abcdefgh"), None, np.dtype(np.float64), None)
    while learner.rows < rows:
        n = min(60_000, rows - learner.rows)
        X = np.repeat(rng.random((-(-n // 300), 8)), 300, axis=0)[:n] + rng.normal(0, 0.02, (n, 8))
        learner.learn(Chunk(X, None, "", np.arange(n), 0, n, None), columns)
        yield {}


def main() -> None:
    """Run the soak test and print the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--every", type=int, default=1_000_000, help="rows between checkpoints")
    parser.add_argument("--restless", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if args.restless:
            learner = Learner(AdaptiveCCM(max_units=200))
            run = restless(learner, args.rows)
        else:
            memory = CCM(n_slots=1, vigilance=0.85, commit_limit=10, recall_limit=15, random_state=0)
            learner = Learner(ModalClassifier(memory))
            run = recurring(learner, Path(folder), args.rows)
        start, saved, shown = time.perf_counter(), 0, 0
        for progress in run:
            if learner.rows - saved >= args.every or learner.rows == args.rows:
                learner.progress, saved = progress, learner.rows
                learner.save(Path(folder) / "memory.safetensors")
            if learner.rows * 10 // args.rows > shown:
                shown = learner.rows * 10 // args.rows
                print(f"peak resident size after {learner.rows:>11,} rows: {peak_megabytes():.1f} MiB", flush=True)
        seconds = time.perf_counter() - start
        memory_now: Any = learner.memory
        held = f"{memory_now.n_blocks_} blocks, {memory_now.n_units_} units, {len(memory_now.events_):,} events kept"
        print(f"{seconds:.1f} s, {learner.rows / seconds:,.0f} rows/s, a checkpoint every {args.every:,} rows; {held}")


if __name__ == "__main__":
    main()
