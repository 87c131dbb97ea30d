"""Torture: random kills, threads, mutated checkpoints and full disks within a time limit; all trials are counted.

    python -m studies.torture --minutes 3
    python -m studies.torture --minutes 240 --seed 7

Every trial is random and reproducible by its seed. The first failure stops the run and prints the command that repeats
it. Models from mutated checkpoints learn with kernels that check array bounds if NUMBA_BOUNDSCHECK=1 is set (`make
torture` sets it). Jumps of the wall clock are simulated within the library.
"""

from __future__ import annotations

import argparse
import copy
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
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ccmem import (
    ARTC2A,
    CCM,
    AdaptiveCCM,
    CheckpointError,
    DiscriminantClassifier,
    GatedMLP,
    IncrementalGMM,
    IncrementalWTA,
    ModalClassifier,
    OnlineMLP,
    PatchLayer,
    Stack,
    from_bytes,
    load,
)
from ccmem.cli import main as ccmem
from ccmem.io.streams.drift import drifting_sensors
from ccmem.io.streams.write import write_table

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
from forgery import forge

FORMATS = ("csv", "ndjson", "parquet", "arrow", "npy", "npz")
LEARNED: dict[str, list[str]] = {
    "adaptive": ["n_slots=3"],
    "adaptive, bounded": ["n_slots=3", "max_units=8"],
    "adaptive, windows": ["n_slots=3"],
    "ccm": ["n_slots=2", "vigilance=0.5", "commit_limit=5", "alarm_limit=10", "recall_limit=8"],
    "wta": ["n_units=4"],
    "gmm": ["n_units=4"],
    "artc2a": ["max_units=10"],
    "mlp": ["hidden_sizes=(5,)"],
    "gated": ["hidden_sizes=(5,)", "gated_units=2"],
    "discriminant": ["n_axes=1"],
}
"""Models of `ccmem learn`: value of --model (up to a comma), and parameters."""
BLOCKY = {"n_slots": 2, "alarm_limit": 3, "recall_limit": 2, "commit_limit": 1, "random_state": 0}
MODELS: dict[str, Callable[[], Any]] = {
    "adaptive": lambda: ModalClassifier(AdaptiveCCM(n_slots=3)),
    "adaptive, merge": lambda: ModalClassifier(AdaptiveCCM(n_slots=3, max_units=6), label_use="merge"),
    "adaptive, guide": lambda: ModalClassifier(AdaptiveCCM(n_slots=3), label_use="guide", n_winners=2),
    "ccm": lambda: ModalClassifier(CCM(**BLOCKY), metric="shared"),
    "wta": lambda: ModalClassifier(IncrementalWTA(4, random_state=0)),
    "gmm": lambda: ModalClassifier(IncrementalGMM(4, random_state=0)),
    "artc2a": lambda: ModalClassifier(ARTC2A(5, random_state=0)),
    "mlp": lambda: OnlineMLP((4,), random_state=0),
    "gated": lambda: GatedMLP(CCM(**BLOCKY), hidden_sizes=(6,), gated_units=2, random_state=0),
    "discriminant": lambda: DiscriminantClassifier(n_axes=2),
    "stack": lambda: Stack([PatchLayer(4, patch_size=2, grid=1, random_state=0)], DiscriminantClassifier(n_axes=1)),
}
"""Models tried in Python, on images of 4 x 4."""
COUNTS = Counter[str]()
"""Number of trials of each kind."""
Trial = Callable[[random.Random, Path], None]


def in_child(command: list[str], prepare: Callable[[], Any] = lambda: None) -> int:
    """Run the command in a fork of this process; return its wait status."""
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


def learning(rng: random.Random, folder: Path) -> list[str]:
    """Return the command that learns a source of some format with some model."""
    kind, (model, settings) = rng.choice(FORMATS), rng.choice(list(LEARNED.items()))
    stream = drifting_sensors(2000, 3, segment=300, seed=rng.randrange(1000))
    write_table(folder / f"s.{kind}", stream.names, stream.chunks())
    parameters = [word for setting in settings for word in ("--param", setting)]
    names = ",".join("012" if kind == "npz" else stream.names)  # columns of an array have no names
    label = ["--features", names, "--window", "20"] if "windows" in model else ["--label", "state"]
    every = ["--every", str(rng.choice((50, 300, 1000))), "--scale", rng.choice(("none", "unit", "standard"))]
    words = ["learn", str(folder / f"s.{kind}"), *label, "--model", model.partition(",")[0], *parameters, *every]
    COUNTS[f"{kind} files"] += 1
    COUNTS[model] += 1
    return [*words, "--events", str(folder / "e.jsonl"), "--checkpoint", str(folder / "m")]


def spent() -> float:
    """Return the processor time of all children so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def whole_run(command: list[str], folder: Path) -> float:
    """Run the command to its end and store its results; return the processor time."""
    before = spent()
    assert in_child(command) == 0
    (folder / "m").rename(folder / "whole")
    (folder / "e.jsonl").rename(folder / "whole.jsonl")
    return spent() - before


def check_same(folder: Path) -> None:
    """Compare the results with the stored ones."""
    assert (folder / "m").read_bytes() == (folder / "whole").read_bytes()
    assert (folder / "e.jsonl").read_bytes() == (folder / "whole.jsonl").read_bytes()


def killed(rng: random.Random, folder: Path) -> None:
    """Check that a run killed at random moments ends with the bytes of an uninterrupted run."""
    command = learning(rng, folder)
    seconds = whole_run(command, folder)
    for _ in range(rng.randrange(1, 6)):
        moment = rng.uniform(0.001, seconds)
        status = in_child(command, lambda s=moment: signal.setitimer(signal.ITIMER_PROF, s))
        COUNTS["kills"] += os.WIFSIGNALED(status)
    assert in_child(command) == 0
    check_same(folder)


def killed_fleet(rng: random.Random, folder: Path) -> None:
    """Check that a killed fleet ends with the bytes of an uninterrupted one."""
    import pyarrow as pa
    from pyarrow import parquet

    from ccmem.app.commands import fleet
    from ccmem.app.options import add_options
    from ccmem.fleet import local
    from ccmem.fleet.local import in_turn

    n, keys = 600, 5
    X = np.random.default_rng(rng.randrange(1000)).random((n, 2)) + np.repeat(np.eye(2), n // 2, axis=0)
    table = pa.table({"k": [f"m{i % keys}" for i in range(n)], "t": np.arange(n), "a": X[:, 0], "b": X[:, 1]})
    parquet.write_table(table, folder / "s.parquet", row_group_size=100)

    def learn(store: Path) -> None:
        words = ["learn", str(folder / "s.parquet"), "--store", str(store), "--key", "k", "--order", "t"]
        parser = argparse.ArgumentParser()
        add_options(parser, "fleet")
        args = parser.parse_args([*words, "--buckets", "3", "--param", "n_slots=2"])
        local.learn(fleet._store(args), args.sources, in_turn, round_rows=200)

    def content(store: Path) -> dict[str, bytes]:
        files = sorted(file for file in store.rglob("*") if file.is_file() and file.suffix in (".arrow", ".parquet"))
        return {str(file.relative_to(store)): file.read_bytes() for file in files}

    before = spent()
    assert in_child([], lambda: finish(learn, folder / "whole")) == 0
    seconds = spent() - before
    for _ in range(rng.randrange(1, 6)):
        moment = rng.uniform(0.001, seconds)

        def attempt(moment: float = moment) -> None:
            signal.setitimer(signal.ITIMER_PROF, moment)
            finish(learn, folder / "s")

        COUNTS["kills of fleets"] += os.WIFSIGNALED(in_child([], attempt))
    assert in_child([], lambda: finish(learn, folder / "s")) == 0
    assert content(folder / "s") == content(folder / "whole")
    assert content(folder / "whole")


def finish(task: Callable[[Path], None], argument: Path) -> None:
    """Run a task, then end the process."""
    task(argument)
    os._exit(0)


def full_disk(rng: random.Random, folder: Path) -> None:
    """Check that a disk that is full at a random size leaves a checkpoint from which the run can be completed."""
    command = learning(rng, folder)
    whole_run(command, folder)
    limit = int(10 ** rng.uniform(2.0, 4.0))  # checkpoints have a few thousand bytes

    def prepare() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    COUNTS["disks that were full"] += in_child(command, prepare) != 0
    if (folder / "m").exists():
        load(folder / "m")
    assert in_child(command) == 0
    check_same(folder)


def jumping_clock(rng: random.Random, folder: Path) -> None:
    """Check that jumps of the wall clock do not change a run."""
    command = learning(rng, folder)
    whole_run(command, folder)

    def prepare() -> None:
        time.time = lambda: rng.uniform(0, 4e9)  # type: ignore[assignment]
        time.localtime = lambda *_: time.gmtime(rng.uniform(0, 4e9))  # type: ignore[assignment]

    assert in_child(command, prepare) == 0
    check_same(folder)


def rows(seed: int) -> tuple[Any, Any]:
    """Images of 4 x 4 pixels around three patterns, in random order, and their labels."""
    rng = np.random.default_rng(seed)
    y = np.arange(60) // 20
    return rng.random((60, 16)) + 2.0 * np.random.default_rng(0).random((3, 16))[y], y


def threads(rng: random.Random, folder: Path) -> None:
    """Check that threads that teach, read, copy and save one model leave the state of a single thread."""
    X, y = rows(rng.randrange(1000))
    name = rng.choice(list(MODELS))
    COUNTS[f"threads on {name}"] += 1
    model, alone, problems = MODELS[name]().partial_fit(X, y), MODELS[name]().partial_fit(X, y), []

    def attempt(task: Callable[[], Any]) -> None:
        try:
            for _ in range(6):
                task()
        except Exception as problem:
            problems.append(problem)

    def save() -> None:
        model.save(folder / "m")
        assert len(load(folder / "m").predict(X)) == len(X)

    tasks = [lambda: model.partial_fit(X, y)] * 2
    tasks += [lambda: model.predict(X), save, lambda: copy.deepcopy(model).partial_fit(X, y)]
    running = [threading.Thread(target=attempt, args=(task,)) for task in tasks]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not problems, problems
    for _ in range(12):
        alone.partial_fit(X, y)
    assert model.to_bytes() == alone.to_bytes()


_saved: dict[str, tuple[bytes, bytes]] = {}
ODD = (None, True, -1, 0, 1, 7, 2**40, 0.5, "", "a", [], [0, 1], {}, {"$tuple": []}, {"$float": "nan"})
LARGE = (-1, 0, 1, 2, 5, 100, 2**31, -(2**40), 2**62)
"""Replacement values."""


def changed(data: bytes, rng: random.Random) -> bytes:
    """Return the bytes with a few random changes."""
    new = bytearray(data)
    for _ in range(rng.randrange(1, 6)):
        place = rng.randrange(len(new))
        how = rng.randrange(3)
        if how == 0:
            new[place] = rng.randrange(256)
        elif how == 1:
            del new[place : place + rng.randrange(1, 40)]
        else:
            new[place:place] = rng.randbytes(rng.randrange(1, 40))
    return bytes(new)


def forged(data: bytes, rng: random.Random) -> bytes:
    """Return a checkpoint with a random value of another kind and a matching digest."""

    def change(document: Any, arrays: Any, metadata: Any) -> None:
        if rng.random() < 0.5:
            owner, key = rng.choice(list(_places(document)))
            owner[key] = rng.choice(ODD)
            return
        name = rng.choice(sorted(arrays))
        array = arrays[name]
        how = rng.randrange(4)
        if how < 2 and array.size:
            array.reshape(-1)[rng.randrange(array.size)] = np.array(rng.choice(LARGE)).astype(array.dtype)
        elif how == 2:
            arrays[name] = np.resize(array, [rng.randrange(9) for _ in range(rng.randrange(3))])
        else:
            arrays[name] = array.astype(rng.choice(("f4", "f8", "i8", "u1", "?")))

    return forge(data, change)


def _places(value: Any) -> Any:
    """Return every (owner, key) of a JSON document."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from _places(value[key])


def mutated(rng: random.Random, folder: Path) -> None:
    """Check that a randomly changed checkpoint is refused or gives a working model."""
    name = rng.choice(list(MODELS))
    X, y = rows(0)
    if name not in _saved:
        model = MODELS[name]().partial_fit(X, y)
        model.save(folder / "m")
        _saved[name] = (folder / "m").read_bytes(), model.to_bytes()
    for number in range(50):
        how = (changed, forged, forged, forged, forged)[number % 5]
        data = how(rng.choice(_saved[name]), rng)
        COUNTS["files with changed bytes" if how is changed else "signed files with changed content"] += 1
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = from_bytes(data)
        except CheckpointError:
            continue
        COUNTS[f"{how.__name__} files that load"] += 1
        width = getattr(model, "n_features_in_", 16)
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                some = np.resize(X, (20, width))
                labels = getattr(model, "classes_", y)
                model.partial_fit(some, np.resize(labels, 20) if len(labels) else None)
                model.predict(some)
        except (ValueError, TypeError, AttributeError) as problem:
            if isinstance(problem, (TypeError, AttributeError)) or not str(problem):
                raise


TRIALS: dict[str, Trial] = {f.__name__: f for f in (killed, mutated, threads, full_disk, killed_fleet, jumping_clock)}


def main() -> int:
    """Run trials until the time is over; print their numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", metavar="FILE", help="write what was tried to FILE, every now and then")
    parser.add_argument("--trial", choices=TRIALS, help="only this kind")
    args = parser.parse_args()
    end, began = time.monotonic() + 60 * args.minutes, time.process_time() + spent()
    for number in itertools.count(args.seed):
        name = args.trial or list(TRIALS)[number % len(TRIALS)]
        with tempfile.TemporaryDirectory() as folder:
            try:
                TRIALS[name](random.Random(number), Path(folder))
            except Exception as problem:
                traceback.print_exc()
                print(f"failed: --trial {name} --seed {number}: {problem!r}", file=sys.stderr)
                return 1
        COUNTS[f"trials of {name}"] += 1
        if time.monotonic() > end:
            break
        if args.out and number % 5 == 0:
            Path(args.out).write_text(report(args, began))
    print(report(args, began))
    if args.out:
        Path(args.out).write_text(report(args, began) + "\n")
    return 0


def report(args: argparse.Namespace, began: float) -> str:
    """Format the number of trials so far."""
    how = {name: os.environ[name] for name in ("NUMBA_BOUNDSCHECK", "NUMBA_DISABLE_JIT") if name in os.environ}
    minutes = round((time.process_time() + spent() - began) / 60, 1)
    return json.dumps({"failed": 0, "seed": args.seed, "processor_minutes": minutes, **how, **COUNTS}, indent=1)


if __name__ == "__main__":
    raise SystemExit(main())
