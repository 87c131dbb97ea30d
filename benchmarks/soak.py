"""Soak: learn a long stream and show that memory stays flat.

    python benchmarks/soak.py --rows 20000000

A file of a million rows of sensor data is learned over and over, as ``ccmem learn --again`` would, with checkpoints in
between. Prints the peak resident size at the start (when the first tenth has been learned: code compiled, buffers
filled, everything seen once) and at the end.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ccmem import CCM, ModalClassifier
from ccmem.learner import Learner
from ccmem.streams.files import FileStream


def peak_megabytes() -> float:
    """Peak resident size of this process."""
    scale = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale / 2**20


def main() -> None:
    """Run the soak and print what it found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--file-rows", type=int, default=1_000_000)
    parser.add_argument("--every", type=int, default=1_000_000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file, checkpoint = Path(folder) / "sensors.parquet", Path(folder) / "memory.safetensors"
        command = [sys.executable, "-m", "ccmem.cli", "generate", "drift", str(file), "--rows", str(args.file_rows)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # apart, so that its memory is not counted
        memory = CCM(n_slots=1, vigilance=0.85, commit_limit=10, recall_limit=15, random_state=0)
        learner = Learner(ModalClassifier(memory))
        start, unsaved, told = time.perf_counter(), 0, 0
        while learner.rows < args.rows:
            source = FileStream(file, label="state", columns=learner.columns)
            for chunk in source.chunks_read_ahead(args.rows - learner.rows, 60.0):
                if chunk is None:
                    continue
                assert source.columns is not None
                learner.learn(chunk, source.columns)
                unsaved += len(chunk.X)
                if unsaved >= args.every or learner.rows == args.rows:
                    learner.progress = source.progress
                    learner.save(checkpoint)
                    unsaved = 0
                if learner.rows // (args.rows // 10) > told:
                    told = learner.rows // (args.rows // 10)
                    print(f"peak resident size after {learner.rows:>11,} rows: {peak_megabytes():.1f} MiB", flush=True)
        seconds = time.perf_counter() - start
        assert learner.memory is not None
        print(f"{seconds:.1f} s, {learner.rows / seconds:,.0f} rows/s with a checkpoint every {args.every:,} rows; "
              f"{learner.memory.n_units_} units, {len(learner.memory._history):,} events kept")  # fmt: skip


if __name__ == "__main__":
    main()
