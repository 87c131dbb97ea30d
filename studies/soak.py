"""Soak test: `ccmem learn` on an endless pipe, repeatedly ended and restarted; checks memory use and results.

    python -m studies.soak --minutes 60 --rate 1000 --out studies/evidence/reliability/soak.json

A generated stream is written to a pipe at a steady rate. The learner is ended in turn by SIGTERM, SIGKILL, SIGHUP and
the end of the pipe, after short and long runs (a leak shows only in a long one). A new learner then continues: the
feeder reads the number of learned rows from the checkpoint and sends the next row. At the end an uninterrupted learner
gets the same rows: both models must have the same bytes, and both events files the same events.

Run the same command again to continue an interrupted soak, as long as the code is unchanged. Intermediate results are
kept in a folder named after the command and the code, which is removed at the end.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import itertools
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ccmem
from ccmem.app.learner import Learner
from ccmem.io.persistence.atomic import BusyError, locked
from ccmem.io.streams.drift import drifting_sensors

ENDS: dict[signal.Signals | None, int] = {signal.SIGTERM: 143, signal.SIGKILL: -9, signal.SIGHUP: 129, None: 0}
"""Ways to end a learner (None: the pipe ends), with the expected exit code."""
SHARES = (0.1, 0.1, 0.2, 1.0, 0.1)
"""Run times as fractions of the longest run, in turn; five has no common factor with the four ways to end above."""
HEADER = b"sensor_0,sensor_1,sensor_2,sensor_3,state\n"
BLOCK = 200_000


def lines(first: int) -> Iterator[bytes]:
    """Yield the endless stream from row ``first`` on: generated blocks, each with a separate seed."""
    for block in itertools.count(first // BLOCK):
        stream = drifting_sensors(BLOCK, 4, segment=5000, seed=block)
        rows = (row for X, y in stream.chunks() for row in zip(X.tolist(), y, strict=True))
        for x, state in itertools.islice(rows, first - block * BLOCK if block == first // BLOCK else 0, None):
            yield (",".join(map(repr, x)) + f",{state or ''}\n").encode()


def resident(process: int) -> float:
    """Return the resident size in MiB."""
    status = Path(f"/proc/{process}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024


def learner(folder: Path, begun: bool) -> subprocess.Popen[bytes]:
    """Start a learner that reads from a pipe."""
    files = ["--checkpoint", str(folder / "m.safetensors"), "--events", str(folder / "e.jsonl")]
    options = ["--every", "20000", "--every-seconds", "5", "--quiet", *([] if begun else ["--label", "state"])]
    command = [sys.executable, "-m", "ccmem.cli", "learn", "-", "--format", "csv", *files, *options]
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(HEADER)
    return process


def run(folder: Path, rows: int, rate: int, seconds: float, end: signal.Signals | None) -> list[float]:
    """Feed a learner for some time, end it, and return its resident sizes, one per second."""
    process, source, sizes = learner(folder, rows > 0), lines(rows), []
    with process:
        assert process.stdin is not None
        process.stdin.write(
            b"".join(itertools.islice(source, 5000))
        )  # more than a pipe holds, so the learner is reading by now
        process.stdin.flush()
        began = time.monotonic()
        for tick in itertools.count(1):
            if time.monotonic() - began >= seconds:
                break
            process.stdin.write(b"".join(itertools.islice(source, rate // 5)))
            process.stdin.flush()
            if tick % 5 == 0:
                sizes.append(resident(process.pid))
            time.sleep(max(0.0, began + tick / 5 - time.monotonic()))
        if end is None:
            process.stdin.close()
        else:
            process.send_signal(end)
        code = process.wait(timeout=1800)
        process.stdin = None  # unread rows are lost with the process
    if code != ENDS[end]:
        raise SystemExit(f"ended with {code} instead of {ENDS[end]}")
    return sizes


def digest_of_code() -> str:
    """Digest of the library, so that a soak tests a single version."""
    digest = hashlib.sha256()
    for file in sorted(Path(ccmem.__file__).parent.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


@contextlib.contextmanager
def last_learner_ended(checkpoint: Path) -> Iterator[None]:
    """Wait for the learner of a killed soak; it ends with its pipe."""
    while True:
        try:
            with locked(checkpoint):
                yield
                return
        except BusyError:
            time.sleep(1.0)


def same_in_one_piece(folder: Path) -> bool:
    """True if an uninterrupted learner produces the same model and the same events from the same rows."""
    rows = Learner.load(folder / "m.safetensors").rows
    shutil.rmtree(folder / "whole", ignore_errors=True)
    (folder / "whole").mkdir()
    with learner(folder / "whole", False) as process:
        assert process.stdin is not None
        source = itertools.islice(lines(0), rows)
        while part := b"".join(itertools.islice(source, 5000)):
            process.stdin.write(part)
        process.stdin.close()
        if process.wait() != 0:
            return False
    models, events = [], []
    for place in (folder, folder / "whole"):
        models.append(Learner.load(place / "m.safetensors").model.to_bytes())
        found = [json.loads(line) for line in (place / "e.jsonl").open()]
        events.append([{**event, "row": None} for event in found])  # row numbers restart in every pipe
    return models[0] == models[1] and events[0] == events[1]


def main() -> int:
    """Run the soak and print the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rate", type=int, default=2000, help="rows a second")
    parser.add_argument("--longest", type=float, default=600.0, help="seconds of the longest run (default 600)")
    parser.add_argument("--out", metavar="FILE", help="also write what was found to FILE")
    args = parser.parse_args()
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup a learner would ignore SIGHUP
    folder = Path(tempfile.gettempdir()) / f"ccmem-soak-{args.rate}-{digest_of_code()}"
    folder.mkdir(exist_ok=True)
    record, checkpoint = folder / "runs.jsonl", folder / "m.safetensors"
    with locked(record):
        runs: list[dict[str, Any]] = [json.loads(line) for line in record.open()] if record.exists() else []
        for number in itertools.count(len(runs)):
            left = args.minutes * 60 - sum(run["seconds"] for run in runs)
            if left < 1:
                break
            end, share = list(ENDS)[number % len(ENDS)], SHARES[number % len(SHARES)]
            with last_learner_ended(checkpoint):
                rows = Learner.load(checkpoint).rows if checkpoint.exists() else 0
            began = time.monotonic()
            sizes = run(folder, rows, args.rate, min(args.longest * share, left), end)
            later = sizes[len(sizes) // 4 :] or [0.0]
            facts = {"from_row": rows, "seconds": round(time.monotonic() - began, 1)}
            facts |= {"ended_by": end.name if end else "end of pipe"}
            runs.append({**facts, "mib_after_a_quarter": round(later[0], 1), "mib_most_since": round(max(later), 1)})
            with record.open("a") as file:
                print(json.dumps(runs[-1]), file=file)
            print(json.dumps(runs[-1]), flush=True)
        minutes = sum(run["seconds"] for run in runs) / 60
        events = sum(1 for _ in (folder / "e.jsonl").open())
        same = same_in_one_piece(folder)
        rows = Learner.load(checkpoint).rows
    shutil.rmtree(folder)
    found = {"minutes": round(minutes, 1), "rows": rows, "runs": len(runs), "events": events}
    found |= {"same_model_and_events_as_in_one_piece": same, "each_run": runs}
    print(json.dumps(found, indent=1))
    if args.out:
        Path(args.out).write_text(json.dumps(found, indent=1) + "\n")
    return 0 if same else 1


if __name__ == "__main__":
    raise SystemExit(main())
