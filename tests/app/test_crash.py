"""Runs killed at any moment and restarted end like uninterrupted ones: bit for bit, event for event."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ccmem.io.streams.drift import drifting_sensors
from ccmem.io.streams.write import write_table

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs fork and signals")

# One process imports and compiles once, then forks a child for every attempt, which ends itself by SIGKILL after a
# random number of calls of Python and C functions: between any two steps, however fast or busy the machine is.
KILLER = """
import json, os, random, signal, sys
from ccmem.cli import main

warm_up, command, kills, seed = sys.argv[1], sys.argv[2:-2], int(sys.argv[-2]), int(sys.argv[-1])
assert main(json.loads(warm_up)) == 0

def attempt(most):
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        code, calls = 1, 0

        def count(frame, event, argument):
            nonlocal calls
            calls += 1
            if calls == most:
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            sys.setprofile(count)
            code = main(command)
            sys.setprofile(None)
            os.write(theirs, str(calls).encode())
        finally:
            os._exit(code)
    os.close(theirs)
    status = os.waitpid(child, 0)[1]
    with os.fdopen(ours, "rb") as told:
        return status, int(told.read() or 0)

status, whole = attempt(None)                           # how many calls a run takes without being killed
assert status == 0
for name in sys.stdin.read().split():
    os.replace(name, name + ".whole")
rng, killed = random.Random(seed), 0
while killed < kills:
    status, _ = attempt(rng.randrange(1, whole // 7))   # so that it takes more than seven to get through
    if not os.WIFSIGNALED(status):
        break
    killed += 1
else:
    status, _ = attempt(None)
assert status == 0, status
print(json.dumps({"killed": killed}))
"""


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_killed_at_random_moments_and_restarted_nothing_is_lost_or_learned_twice(tmp_path: Path, kind: str) -> None:
    rows = 24_000
    for part in range(3):
        stream = drifting_sensors(rows // 3, 4, segment=700, seed=part)
        write_table(tmp_path / f"part{part}.{kind}", stream.names, stream.chunks())
    bad = tmp_path / "part1.csv"
    if kind == "csv":  # some invalid rows in the middle, to be skipped
        lines = bad.read_text().splitlines()
        lines[4000:4000] = ["1,2", "a,b,c,d,e"]
        bad.write_text("\n".join(lines) + "\n")
    checkpoint, events = tmp_path / "m.safetensors", tmp_path / "e.jsonl"
    options = [
        "--label",
        "state",
        "--scale",
        "standard",
        "--model",
        "ccm",
        "--param",
        "n_slots=2",
        "--param",
        "vigilance=0.5",
        "--param",
        "commit_limit=5",
        "--param",
        "recall_limit=8",
    ]
    command = [
        "learn",
        str(tmp_path / f"part*.{kind}"),
        "--checkpoint",
        str(checkpoint),
        "--events",
        str(events),
        "--every",
        "300",
        "--on-bad-row",
        "skip",
        *options,
    ]
    warm_up = ["learn", str(tmp_path / f"part0.{kind}"), "--quiet", *options]
    done = subprocess.run(
        [sys.executable, "-c", KILLER, json.dumps(warm_up), *command, "12", "1"],
        input=f"{checkpoint} {events}",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["killed"] > 7
    assert checkpoint.read_bytes() == Path(f"{checkpoint}.whole").read_bytes()
    assert events.read_bytes() == Path(f"{events}.whole").read_bytes()
    assert len(events.read_text().splitlines()) > 10
    left = {file.name for file in tmp_path.iterdir()} - {f"part{i}.{kind}" for i in range(3)}
    assert left == {"m.safetensors", "e.jsonl", "m.safetensors.whole", "e.jsonl.whole"}  # no lock, no temporary file
    from ccmem.app.learner import Learner

    learner = Learner.load(checkpoint)
    assert learner.rows == rows
    assert learner.bad_rows == (2 if kind == "csv" else 0)
    assert learner.memory is not None
    assert learner.memory.n_samples_seen_ == rows
