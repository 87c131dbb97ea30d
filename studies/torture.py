"""Torture: kills, threads, mutated checkpoints and full disks, as many as fit into the time; what was tried is counted.

    python -m studies.torture --minutes 3
    python -m studies.torture --minutes 240 --seed 7

Every trial is random and reproducible by its seed. The first one that fails stops the run and tells how to repeat it.
Mutated checkpoints are learned with, by kernels that check their bounds if NUMBA_BOUNDSCHECK=1 is set (`make torture`
does). A clock that jumps is simulated by setting the wall clock at random as far as the library can see.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import resource
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from ccmem import AdaptiveCCM, CheckpointError, ModalClassifier, OnlineMLP, load
from ccmem.cli import main as ccmem
from ccmem.streams.drift import drifting_sensors
from ccmem.streams.write import write_table

FORMATS = ("csv", "ndjson", "parquet", "arrow", "npy", "npz")
MODELS = {
    "adaptive": ["n_slots=3"],
    "ccm": ["n_slots=2", "vigilance=0.5", "commit_limit=5"],
    "wta": ["n_units=4"],
    "gmm": ["n_units=4"],
    "artc2a": ["max_units=10"],
    "mlp": ["hidden_sizes=(5,)"],
}
Trial = Callable[[random.Random, Path], None]


def in_child(command: list[str], prepare: Callable[[], Any] = lambda: None) -> int:
    """Run the command in a fork of this process; its wait status."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 1)
            os.dup2(null, 2)
            prepare()
            code = ccmem(command)
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1]


def learning(rng: random.Random, folder: Path) -> tuple[list[str], Path]:
    """A source, and the command that learns it."""
    kind, (model, settings) = rng.choice(FORMATS), rng.choice(list(MODELS.items()))
    stream = drifting_sensors(2000, 3, segment=300, seed=rng.randrange(1000))
    write_table(folder / f"s.{kind}", stream.names, stream.chunks())
    parameters = [word for setting in settings for word in ("--param", setting)]
    every = ["--every", str(rng.choice((50, 300, 1000))), "--scale", rng.choice(("none", "unit", "standard"))]
    words = ["learn", str(folder / f"s.{kind}"), "--label", "state", "--model", model, *parameters, *every]
    return [*words, "--events", str(folder / "e.jsonl"), "--checkpoint"], folder / f"s.{kind}"


def killed(rng: random.Random, folder: Path) -> None:
    """A run killed at random moments ends with the bytes of one that was not."""
    command, _ = learning(rng, folder)
    assert in_child([*command, str(folder / "m")]) == 0
    (folder / "m").rename(folder / "whole")
    (folder / "e.jsonl").rename(folder / "whole.jsonl")
    for _ in range(rng.randrange(1, 6)):
        seconds = rng.uniform(0.001, 0.3)
        in_child([*command, str(folder / "m")], lambda s=seconds: signal.setitimer(signal.ITIMER_PROF, s))
    assert in_child([*command, str(folder / "m")]) == 0
    assert (folder / "m").read_bytes() == (folder / "whole").read_bytes()
    assert (folder / "e.jsonl").read_bytes() == (folder / "whole.jsonl").read_bytes()


def full_disk(rng: random.Random, folder: Path) -> None:
    """A disk that is full at a random size leaves a checkpoint that goes on to the same end."""
    command, _ = learning(rng, folder)
    assert in_child([*command, str(folder / "m")]) == 0
    (folder / "m").rename(folder / "whole")
    (folder / "e.jsonl").unlink()
    limit = rng.randrange(100, 20_000)

    def prepare() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    in_child([*command, str(folder / "m")], prepare)
    if (folder / "m").exists():
        load(folder / "m")
    assert in_child([*command, str(folder / "m")]) == 0
    assert (folder / "m").read_bytes() == (folder / "whole").read_bytes()


def jumping_clock(rng: random.Random, folder: Path) -> None:
    """The wall clock jumps while a run goes on."""
    command, _ = learning(rng, folder)
    assert in_child([*command, str(folder / "m")]) == 0
    (folder / "m").rename(folder / "whole")
    (folder / "e.jsonl").unlink()

    def prepare() -> None:
        time.time = lambda: rng.uniform(0, 4e9)  # type: ignore[assignment]

    assert in_child([*command, str(folder / "m")], prepare) == 0
    assert (folder / "m").read_bytes() == (folder / "whole").read_bytes()


def threads(rng: random.Random, folder: Path) -> None:
    """Threads that teach, read and save one model leave what one thread would have."""
    X = np.random.default_rng(rng.randrange(1000)).random((50, 3))
    y = np.arange(50) % 3
    kind = rng.choice(
        (AdaptiveCCM, lambda: ModalClassifier(AdaptiveCCM(n_slots=3)), lambda: OnlineMLP((4,), random_state=0))
    )
    model, alone, problems = kind(), kind().partial_fit(X, y), []
    model.partial_fit(X, y)

    def attempt(task: Callable[[], Any]) -> None:
        try:
            for _ in range(10):
                task()
        except Exception as problem:
            problems.append(problem)

    def save() -> None:
        model.save(folder / "m")
        load(folder / "m")

    tasks = [lambda: model.partial_fit(X, y)] * 2 + [lambda: model.predict(X), save]
    running = [threading.Thread(target=attempt, args=(task,)) for task in tasks]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert not problems, problems
    for _ in range(20):
        alone.partial_fit(X, y)
    model.save(folder / "one")
    alone.save(folder / "other")
    assert (folder / "one").read_bytes() == (folder / "other").read_bytes()


def mutated(rng: random.Random, folder: Path) -> None:
    """A checkpoint with random changes is refused, or gives a model that works."""
    X = np.random.default_rng(0).random((60, 3))
    ModalClassifier(AdaptiveCCM(n_slots=3)).partial_fit(X, np.arange(60) % 2).save(folder / "m")
    good = (folder / "m").read_bytes()
    for _ in range(50):
        data = bytearray(good)
        for _ in range(rng.randrange(1, 6)):
            place = rng.randrange(len(data))
            how = rng.randrange(3)
            if how == 0:
                data[place] = rng.randrange(256)
            elif how == 1:
                del data[place : place + rng.randrange(1, 40)]
            else:
                data[place:place] = rng.randbytes(rng.randrange(1, 40))
        (folder / "m").write_bytes(bytes(data))
        with suppress(CheckpointError):
            load(folder / "m").partial_fit(X, np.arange(60) % 2).predict(X)


TRIALS: dict[str, Trial] = {f.__name__: f for f in (killed, full_disk, jumping_clock, threads, mutated)}


def main() -> int:
    """Try until the time is over; print how often."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trial", choices=TRIALS, help="only this kind")
    args = parser.parse_args()
    end, counts = time.monotonic() + 60 * args.minutes, Counter[str]()
    for number in itertools.count(args.seed):
        name = args.trial or list(TRIALS)[number % len(TRIALS)]
        with tempfile.TemporaryDirectory() as folder:
            try:
                TRIALS[name](random.Random(number), Path(folder))
            except Exception as problem:
                print(f"failed: --trial {name} --seed {number}: {problem!r}", file=sys.stderr)
                return 1
        counts[name] += 1
        if time.monotonic() > end:
            break
    print(json.dumps({"minutes": round(args.minutes, 1), **counts, "mutated_files": 50 * counts["mutated"]}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
