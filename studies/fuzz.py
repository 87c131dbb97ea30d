"""Fuzzing: forged checkpoints, stores and events files, grammars of CSV and NDJSON, and requests to the live page.

    python -m studies.fuzz --minutes 3
    python -m studies.fuzz --minutes 240 --seed 7 --only checkpoint
    python -m studies.fuzz --replay tests/corpus/csv-1a2b3c4d.json

A case is a list of plain values from which a target builds its input, so that it can be written to a file and repeated.
A case that fails is written to ``tests/corpus``; ``make test`` repeats all cases there. Models that load are learned
with, by kernels that check their bounds if NUMBA_BOUNDSCHECK=1 is set (`make fuzz` does).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from studies.fuzz_files import check_events, check_lines, make_events, make_lines
from studies.fuzz_models import check_checkpoint, check_store, make_checkpoint, make_store
from studies.fuzz_page import check_request, make_request

CORPUS = Path(__file__).resolve().parent.parent / "tests" / "corpus"


class Target(NamedTuple):
    """Something to fuzz."""

    make: Callable[[random.Random], Any]
    """Make a case, of plain values."""
    check: Callable[[Any, Path], str]
    """Raise if a case is not handled as promised; else name the outcome in a word."""


TARGETS = {
    "checkpoint": Target(make_checkpoint, check_checkpoint),
    "store": Target(make_store, check_store),
    "events": Target(make_events, check_events),
    "csv": Target(lambda rng: make_lines(rng, "csv"), check_lines),
    "ndjson": Target(lambda rng: make_lines(rng, "ndjson"), check_lines),
    "page": Target(make_request, check_request),
}


def check(name: str, case: Any) -> str:
    """Check one case in a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="ccmem-fuzz-") as folder:
        return TARGETS[name].check(case, Path(folder))


def replay(file: Path) -> str:
    """Check a case of the corpus."""
    saved = json.loads(file.read_text())
    return check(saved["target"], saved["case"])


def keep(name: str, case: Any) -> Path:
    """Write a case to the corpus."""
    text = json.dumps({"target": name, "case": case}, indent=1)
    file = CORPUS / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text + "\n")
    return file


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=TARGETS, action="append")
    parser.add_argument("--replay", type=Path)
    parser.add_argument("--out", type=Path, help="append what was tried to this file, a line of JSON a run")
    args = parser.parse_args()
    if args.replay:
        print(replay(args.replay))
        return 0
    rng, counts, end = random.Random(args.seed), Counter[str](), time.monotonic() + 60 * args.minutes
    failed = 0
    while time.monotonic() < end:
        name = rng.choice(args.only or list(TARGETS))
        case = TARGETS[name].make(rng)
        try:
            counts[f"{name}: {check(name, case)}"] += 1
        except Exception:
            failed += 1
            print(traceback.format_exc(), f"kept as {keep(name, case)}", sep="\n", file=sys.stderr, flush=True)
    facts = {"minutes": args.minutes, "seed": args.seed, "failed": failed, "tried": dict(sorted(counts.items()))}
    print(json.dumps(facts, indent=1))
    if args.out:
        with args.out.open("a") as file:
            file.write(json.dumps(facts) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
