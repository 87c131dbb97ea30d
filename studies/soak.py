"""A soak: `ccmem learn` on an endless pipe, stopped, killed and started again: is memory flat, do results drift?

    python -m studies.soak --minutes 60 --rate 2000

A pipe is fed with a made-up stream at a steady rate. Every so often the learner is ended, in turn by SIGTERM, SIGHUP,
SIGKILL and the end of the pipe, and a new one goes on: the feeder asks the checkpoint how many rows it has learned and
goes on with the next. In the end the same rows are learned in one piece, and both models are compared byte for byte.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ccmem.living.learner import Learner
from ccmem.streams.drift import drifting_sensors

ENDS = (signal.SIGTERM, signal.SIGHUP, signal.SIGKILL, None)
BLOCK = 200_000


def lines(first: int) -> Iterator[bytes]:
    """The endless stream from row ``first`` on: blocks of a made-up stream, each with a seed of its own."""
    for block in itertools.count(first // BLOCK):
        stream = drifting_sensors(BLOCK, 4, segment=5000, seed=block)
        rows = (row for X, y in stream.chunks() for row in zip(X.tolist(), y, strict=True))
        for x, state in itertools.islice(rows, first - block * BLOCK if block == first // BLOCK else 0, None):
            yield (",".join(map(repr, x)) + f",{state or ''}\n").encode()


def resident(process: int) -> int:
    """Resident size in KiB."""
    status = Path(f"/proc/{process}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))


def run(checkpoint: Path, rows: int, rate: int, seconds: float, end: signal.Signals | None) -> list[int]:
    """Feed a learner for some time, end it, and return its resident sizes in the second half."""
    command = [sys.executable, "-m", "ccmem.cli", "learn", "-", "--format", "csv", "--checkpoint", str(checkpoint)]
    options = ["--every", "20000", "--every-seconds", "5", "--quiet"]
    start = [] if rows else ["--label", "state"]
    sizes = []
    with subprocess.Popen([*command, *options, *start], stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(b"sensor_0,sensor_1,sensor_2,sensor_3,state\n")
        source, began = lines(rows), time.monotonic()
        while time.monotonic() - began < seconds:
            process.stdin.write(b"".join(itertools.islice(source, rate // 5)))
            process.stdin.flush()
            time.sleep(0.2)
            if time.monotonic() - began > seconds / 2:
                sizes.append(resident(process.pid))
        if end is not None:
            process.send_signal(end)
        else:
            process.stdin.close()
        try:
            process.wait(timeout=600)
        finally:
            process.stdin = None  # what it had not read is lost with it
    return sizes


def main() -> None:
    """Run the soak and print what it found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rate", type=int, default=2000, help="rows a second")
    parser.add_argument("--restart", type=float, default=90.0, help="seconds between restarts")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Path(folder) / "m.safetensors"
        began, sizes, restarts = time.monotonic(), [], 0
        for end in itertools.cycle(ENDS):
            left = args.minutes * 60 - (time.monotonic() - began)
            if left <= 0:
                break
            rows = Learner.load(checkpoint).rows if checkpoint.exists() else 0
            sizes.append(run(checkpoint, rows, args.rate, min(args.restart, left), end))
            restarts += 1
            peak = max(sizes[-1], default=0) / 1024
            print(f"{rows:>12,} rows before run {restarts}, peak {peak:.1f} MiB", flush=True)
        learner = Learner.load(checkpoint)
        whole = type(learner.model)(learner.model.memory)
        seen = 0
        while seen < learner.rows:
            part = list(itertools.islice(lines(seen), min(50_000, learner.rows - seen)))
            cells = [line.decode().rstrip("\n").split(",") for line in part]
            X = np.array([[float(value) for value in row[:4]] for row in cells])
            whole.partial_fit(X, np.array([row[4] or None for row in cells], object))
            seen += len(part)
        learner.model.memory_.__dict__.pop("feature_names_in_", None)
        learner.model.save(Path(folder) / "parts")
        whole.save(Path(folder) / "whole")
        same = (Path(folder) / "parts").read_bytes() == (Path(folder) / "whole").read_bytes()
        peaks = [max(run, default=0) / 1024 for run in sizes]
        middle = len(peaks) // 2
        facts = {
            "minutes": round((time.monotonic() - began) / 60, 1),
            "rows": learner.rows,
            "runs": restarts,
            "peak_mib_first_half": round(max(peaks[:middle], default=0.0), 1),
            "peak_mib_second_half": round(max(peaks[middle:], default=0.0), 1),
            "same_bytes_as_in_one_piece": same,
        }
        print(json.dumps(facts))
        os._exit(0 if same else 1)


if __name__ == "__main__":
    main()
