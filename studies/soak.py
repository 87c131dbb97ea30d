"""A soak: `ccmem learn` on an endless pipe, stopped, killed and started again: is memory flat, do results drift?

    python -m studies.soak --minutes 60 --rate 1000 --out studies/evidence/reliability/soak.json

A pipe is fed with a made-up stream at a steady rate. Again and again the learner is ended, in turn by SIGTERM, SIGKILL,
SIGHUP and the end of the pipe, after short runs and long ones (a leak needs a long one to show), and a new one goes on:
the feeder asks the checkpoint how many rows it has learned and goes on with the next. In the end the same rows go
through a learner in one piece: both models must be the same bytes, both files of events the same events.

A soak that is interrupted goes on where it stopped when the same command is given again, as long as the code is the
same: what it has so far is kept in a folder named after both, and removed at the end.
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
from ccmem.living.learner import Learner
from ccmem.persistence.atomic import BusyError, locked
from ccmem.streams.drift import drifting_sensors

ENDS: dict[signal.Signals | None, int] = {signal.SIGTERM: 143, signal.SIGKILL: -9, signal.SIGHUP: 129, None: 0}
"""How a learner is ended (None: the pipe ends), and with which code it should."""
SHARES = (0.1, 0.1, 0.2, 1.0, 0.1)
"""How long it runs, in turn, as a share of the longest run; five and the four ends above have no common factor."""
HEADER = b"sensor_0,sensor_1,sensor_2,sensor_3,state\n"
BLOCK = 200_000


def lines(first: int) -> Iterator[bytes]:
    """The endless stream from row ``first`` on: blocks of a made-up stream, each with a seed of its own."""
    for block in itertools.count(first // BLOCK):
        stream = drifting_sensors(BLOCK, 4, segment=5000, seed=block)
        rows = (row for X, y in stream.chunks() for row in zip(X.tolist(), y, strict=True))
        for x, state in itertools.islice(rows, first - block * BLOCK if block == first // BLOCK else 0, None):
            yield (",".join(map(repr, x)) + f",{state or ''}\n").encode()


def resident(process: int) -> float:
    """Resident size in MiB."""
    status = Path(f"/proc/{process}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024


def learner(folder: Path, begun: bool) -> subprocess.Popen[bytes]:
    """A learner that reads from a pipe of ours."""
    files = ["--checkpoint", str(folder / "m.safetensors"), "--events", str(folder / "e.jsonl")]
    options = ["--every", "20000", "--every-seconds", "5", "--quiet", *([] if begun else ["--label", "state"])]
    command = [sys.executable, "-m", "ccmem.cli", "learn", "-", "--format", "csv", *files, *options]
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(HEADER)
    return process


def run(folder: Path, rows: int, rate: int, seconds: float, end: signal.Signals | None) -> list[float]:
    """Feed a learner for some time, end it, and return its resident sizes, one a second."""
    process, source, sizes = learner(folder, rows > 0), lines(rows), []
    with process:
        assert process.stdin is not None
        process.stdin.write(b"".join(itertools.islice(source, 5000)))  # more than a pipe holds: it is reading by now
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
        process.stdin = None  # what it had not read is lost with it
    if code != ENDS[end]:
        raise SystemExit(f"ended with {code} instead of {ENDS[end]}")
    return sizes


def digest_of_code() -> str:
    """Of the library, so that a soak is of one state of it."""
    digest = hashlib.sha256()
    for file in sorted(Path(ccmem.__file__).parent.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


@contextlib.contextmanager
def last_learner_ended(checkpoint: Path) -> Iterator[None]:
    """Wait for the learner of a soak that was killed: it ends with its pipe."""
    while True:
        try:
            with locked(checkpoint):
                yield
                return
        except BusyError:
            time.sleep(1.0)


def same_in_one_piece(folder: Path) -> bool:
    """Whether a learner that is never stopped makes the same model and the same events of the same rows."""
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
        told = [json.loads(line) for line in (place / "e.jsonl").open()]
        events.append([{**event, "row": None} for event in told])  # rows are counted anew in every pipe
    return models[0] == models[1] and events[0] == events[1]


def main() -> int:
    """Run the soak and print what it found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rate", type=int, default=2000, help="rows a second")
    parser.add_argument("--longest", type=float, default=600.0, help="seconds of the longest run (default 600)")
    parser.add_argument("--out", metavar="FILE", help="also write what was found to FILE")
    args = parser.parse_args()
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup a learner would rightly go on after it
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
