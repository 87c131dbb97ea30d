"""Comparison of fair and plain slots in CCM and AdaptiveCCM on held-out training images.

    python -m studies.fair [mnist fashion-mnist notmnist] [--trials 3]

Each model learns five sixths of the training part in five tasks; the rest is the test (strict protocol). Test images
are not read. The results are added to studies/evidence/fair.json, whose table is
put into docs/family.md.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import mean
from typing import Any

from ccmem.paper.datasets import load
from ccmem.paper.experiments import Row, changed, named_row, rows, tuned_row
from ccmem.paper.experiments.protocol import STRICT, Benchmark
from ccmem.paper.experiments.runs import run_trial
from studies.family import SETS
from studies.pages import grid, put_between

HERE = Path(__file__).parent
EVIDENCE = HERE / "evidence" / "fair.json"


def compared(dataset: str) -> dict[str, Row]:
    """Return the row of every model and kind of slot."""
    adaptive = next(row for row in rows(dataset, kinds=["adaptive"]) if row.name == "adaptive-ccm")
    found = {}
    for title, row, more in (
        ("CCM, settings of the paper", named_row(dataset, "ccm"), {}),
        ("CCM, tuned", tuned_row(dataset, "ccm"), {}),
        ("AdaptiveCCM", adaptive, {}),
        ("AdaptiveCCM, at most 125 units", adaptive, {"max_units": 125}),
    ):
        for fair in (False, True):
            found[f"{title}: {'fair' if fair else 'plain'}"] = changed(row, row.name, {**more, "fair": fair})
    return found


def cell(found: dict[str, list[float]]) -> str:
    """Return the means of accuracy and number of blocks as text."""
    return f"{mean(found['ACC']):.4f} ({mean(found['blocks']):.1f})".removeprefix("0")


def table(results: dict[str, dict[str, dict[str, list[float]]]]) -> str:
    """Return the mean accuracy and number of blocks of every model and kind of slot, with the number of trials."""
    sets = [name for name in SETS if name in results]
    lines = [(title, *(cell(results[name][title]) for name in sets)) for title in results[sets[0]]]
    trials = {len(found["ACC"]) for by_title in results.values() for found in by_title.values()}
    counted = f"Trials of each cell: {' to '.join(map(str, sorted({min(trials), max(trials)})))}."
    return f"{grid(('slots', *(SETS[name] for name in sets)), lines)}\n\n{counted}"


def main() -> None:
    """Compare, store and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", default=list(SETS), metavar="DATASET")
    parser.add_argument("--trials", type=int, default=3)
    args = parser.parse_args()
    results: dict[str, dict[str, Any]] = json.loads(EVIDENCE.read_text()) if EVIDENCE.exists() else {}
    for name in args.datasets:
        held_out, results[name] = Benchmark.validation(load(name, pixels="unit")), {}
        for title, row in compared(name).items():
            trials = [run_trial(row, held_out, seed, (STRICT,))[0] for seed in range(args.trials)]
            accuracies = [round(trial["protocols"][STRICT]["metrics"]["ACC"], 4) for trial in trials]
            results[name][title] = {"ACC": accuracies, "blocks": [trial["blocks"] for trial in trials]}
            print(f"{SETS[name]:14} {title:46} {cell(results[name][title])}  {accuracies}", flush=True)
        EVIDENCE.write_text(json.dumps(results, indent=1) + "\n")
    put_between(HERE.parent / "docs" / "family.md", "fair", table(results))


if __name__ == "__main__":
    main()
