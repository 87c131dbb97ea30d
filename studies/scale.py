"""Scale: very many rows in pieces, very many columns, very many blocks and events on the live page.

    python -m studies.scale rows --rows 1e9 --piece 1e7      (resumes where it stopped)
    python -m studies.scale wide --columns 10000
    python -m studies.scale blocks --blocks 10000            (time per row as blocks are added)
    python -m studies.scale page --blocks 10000 --events 1000000
    python -m studies.fleet scale --keys 1000000             (keys of a fleet)
    python -m studies.fleet kills plain --kills 200          (kills of a fleet; also dask, spark)

Each appends a line of JSON to studies/evidence/reliability/scale.jsonl, with the commit it ran on.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import ccmem
from ccmem.app.watching.observer import Observer
from ccmem.core.events import Event

EVIDENCE = Path(__file__).parent / "evidence" / "reliability" / "scale.jsonl"
_CHUNK = 50_000
_SEGMENT = 100_000
"""Rows of a regime before the next one."""


def commit() -> str:
    """Return the commit that is checked out."""
    return subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()


def _regimes(first: int, n_rows: int, noise: float = 0.3) -> np.ndarray:
    """Return rows ``first`` and following of a stream of four regimes in turn, the same however it is cut."""
    centres = np.random.default_rng(0).normal(size=(4, 8)) * 3
    X = centres[np.arange(first, first + n_rows) // _SEGMENT % 4]
    return X + np.random.default_rng([1, first]).normal(0, noise, (n_rows, 8))


def rows(args: argparse.Namespace) -> dict[str, Any]:
    """Learn a stream in pieces, each from the checkpoint of the one before; memory and blocks must not grow.

    Every piece is listed beside the checkpoint when it is saved, so that an interrupted run loses only one piece.
    """
    checkpoint, listed = Path(args.checkpoint), Path(f"{args.checkpoint}.jsonl")
    pieces = [json.loads(line) for line in listed.read_text().splitlines()] if listed.exists() else []
    memory = ccmem.load(checkpoint) if pieces else ccmem.AdaptiveCCM()
    first = pieces[-1]["rows"] if pieces else 0
    assert not pieces or memory.n_samples_seen_ == first, f"{listed} does not belong to {checkpoint}"
    while first < args.rows:
        began, wall, spent = time.process_time(), time.monotonic(), 0.0
        last, kinds = min(first + int(args.piece), int(args.rows)), Counter[str]()
        memory.on_event(lambda event, kinds=kinds: kinds.update([event.kind]))
        for start in range(first, last, _CHUNK):
            X = _regimes(start, min(_CHUNK, last - start))
            before = time.process_time()
            memory.partial_fit(X)
            spent += time.process_time() - before
        memory.save(checkpoint)
        memory = ccmem.load(checkpoint)
        pieces.append(
            {
                "rows": last,
                "commit": commit(),
                "rows_per_processor_second": round((last - first) / spent),
                "processor_s": round(time.process_time() - began, 1),
                "wall_s": round(time.monotonic() - wall, 1),
                "peak_MiB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
                "checkpoint_bytes": checkpoint.stat().st_size,
                "changes_in_the_stream": (last - 1) // _SEGMENT - max(first - 1, 0) // _SEGMENT,
                "recalls": kinds["recall"],
                "new_blocks": kinds["new_block"],
                "blocks": memory.n_blocks_,
                "largest_error_of_a_level": _error(memory),
            }
        )
        with listed.open("a") as file:
            file.write(json.dumps(pieces[-1]) + "\n")
        print(json.dumps(pieces[-1]), flush=True)
        first = last
    return {"rows": int(args.rows), "pieces": pieces}


def _error(memory: Any) -> float:
    """Return the largest distance, in any column, of a regime's centre from the level of its nearest block."""
    apart = np.abs(memory.block_levels_[:, None] - _regimes(0, 4 * _SEGMENT, noise=0.0)[::_SEGMENT])
    return round(float(apart.max(axis=2).min(axis=0).max()), 5)


def wide(args: argparse.Namespace) -> dict[str, Any]:
    """Learn, save and load rows of very many columns with every kind of memory."""
    rng, found = np.random.default_rng(0), {}
    X = rng.normal(size=(2, args.columns))[np.arange(400) // 200] + rng.normal(0, 0.1, (400, args.columns))
    for memory in (ccmem.AdaptiveCCM(n_slots=4), ccmem.CCM(n_slots=4), ccmem.IncrementalWTA(4), ccmem.ARTC2A(8)):
        before = time.process_time()
        memory.partial_fit(X)
        spent = time.process_time() - before
        with tempfile.TemporaryDirectory() as folder:
            memory.save(Path(folder) / "m")
            same = (ccmem.load(Path(folder) / "m").predict(X) == memory.predict(X)).all()
        found[type(memory).__name__] = {"processor_s": round(spent, 3), "units": memory.n_units_, "loads": bool(same)}
    return {"columns": args.columns, "models": found}


def blocks(args: argparse.Namespace) -> dict[str, Any]:
    """Learn a stream with a change every 256 rows, three in four to a new regime; time per row and returns found."""
    rng, memory, centres, found = np.random.default_rng(0), ccmem.AdaptiveCCM(n_slots=2), [], []
    marks, began, first, tried, right = [250, 500, 1000, 2000, 4000, 7000, 10_000], time.process_time(), 0, 0, 0
    block_of: dict[int, int] = {}
    while marks and memory_blocks(memory) < args.blocks:
        returns = len(centres) > 8 and rng.random() < 0.25
        regime = int(rng.integers(len(centres) - 1)) if returns else len(centres)
        if not returns:
            centres.append(rng.normal(size=8) * 10)
        memory.partial_fit(centres[regime] + rng.normal(0, 0.3, (256, 8)))
        tried, right = tried + returns, right + (returns and memory.task_pointer_ == block_of[regime])
        block_of.setdefault(regime, memory.task_pointer_)
        if memory.n_blocks_ >= marks[0]:
            rows, now = memory.n_samples_seen_ - first, time.process_time()
            share = round(right / max(tried, 1), 4)
            part = {
                "blocks": memory.n_blocks_,
                "us_per_row": round(1e6 * (now - began) / rows, 2),
                "returns_found": share,
            }
            print(json.dumps(part), flush=True)
            found.append(part)
            marks, first, began, tried, right = marks[1:], first + rows, time.process_time(), 0, 0
    return {"regimes": len(centres), "parts": found}


def memory_blocks(memory: Any) -> int:
    """Return the number of blocks, 0 before the first row."""
    return int(memory.n_blocks_) if hasattr(memory, "_state") else 0


def page(args: argparse.Namespace) -> dict[str, Any]:
    """Show a memory with very many blocks and events."""
    memory = ccmem.CCM(n_slots=1, alarm_limit=0, recall_limit=0, commit_limit=0, vigilance=0.999, random_state=0)
    X = np.random.default_rng(0).normal(size=(args.blocks, 16))
    before = time.process_time()
    memory.partial_fit(np.repeat(X, 3, axis=0))
    learned = time.process_time() - before
    observer = Observer(lambda: memory, title="scale")
    events = [Event("recall", step, 0, step % memory.n_blocks_, 1) for step in range(memory.n_samples_seen_)]
    for start in range(0, args.events, len(events)):
        memory._history.extend(events[: args.events - start])
    before = time.process_time()
    observer.look()
    answer = json.dumps(observer.update(), allow_nan=False)
    return {
        "blocks": memory.n_blocks_,
        "events": args.events,
        "learning_s": round(learned, 1),
        "update_ms": round(1e3 * (time.process_time() - before), 1),
        "update_bytes": len(answer),
        "peak_MiB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["rows", "wide", "blocks", "page"])
    parser.add_argument("--rows", type=float, default=1e7)
    parser.add_argument("--piece", type=float, default=2e6)
    parser.add_argument("--checkpoint", default="scale.safetensors")
    parser.add_argument("--columns", type=int, default=10_000)
    parser.add_argument("--blocks", type=int, default=10_000)
    parser.add_argument("--events", type=int, default=1_000_000)
    args = parser.parse_args()
    facts = {"what": args.what, "commit": commit(), **globals()[args.what](args)}
    print(json.dumps(facts))
    with EVIDENCE.open("a") as file:
        file.write(json.dumps(facts) + "\n")


if __name__ == "__main__":
    main()
