"""Print and store one table of all benchmarks of a decision rule.

    python -m studies.scoreboard --data FOLDER
    python -m studies.scoreboard --quick --part skab plants --memory package.module:Class --name "longer windows"
    python -m studies.scoreboard --peers
    python -m studies.scoreboard --compare
    python -m studies.scoreboard --page docs/real_streams.md

FOLDER (or the environment variable CCMEM_DATA) holds skab, tep, activity, segments and the image sets; parts without
data are skipped. A full run of all parts is stored under studies/evidence/scoreboard; --store also stores single
parts, and keeps the other parts of the same rule. Runs with a --name are counted in tried.jsonl there, so that the
number of candidates compared is on record.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import ccmem

from . import budget, pages
from .candidates import Candidate, load
from .made import RESERVED
from .run import PARTS, run
from .table import cells, markdown
from .trial import FULL, QUICK


def main() -> None:
    """Run the parts asked for, print the table and store a full run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("CCMEM_DATA"), help="folder of the recordings")
    parser.add_argument("--part", nargs="*", choices=list(PARTS), help="parts to run (default: all)")
    parser.add_argument("--quick", action="store_true", help="fewer starts, seeds and trials; nothing is stored")
    parser.add_argument("--store", action="store_true", help="store single parts beside the stored parts of the rule")
    parser.add_argument("--memory", default="ccmem:AdaptiveCCM", help="package.module:name of what makes a memory")
    parser.add_argument("--front", default="ccmem:WindowLayer", help="package.module:name of what makes windows")
    parser.add_argument("--name", help="name of a candidate rule (default: the version of ccmem)")
    parser.add_argument("--reserved", action="store_true", help="synthetic streams of the seeds kept for verification")
    parser.add_argument("--peers", action="store_true", help="other detectors at the same false-alarm budget")
    parser.add_argument("--compare", action="store_true", help="print the stored rules side by side; run nothing")
    parser.add_argument("--page", type=Path, help="write the stored tables into this page; run nothing")
    parser.add_argument("--out", type=Path, default=pages.EVIDENCE, help="folder of the evidence")
    args = parser.parse_args()
    if args.compare:
        print(pages.comparison(pages.rules(args.out)))
    if args.page:
        pages.write(args.page)
    if args.compare or args.page:
        return
    if args.data is None:
        parser.error("name the folder of the recordings: --data FOLDER, or CCMEM_DATA")
    args.out.mkdir(parents=True, exist_ok=True)
    candidate, data = Candidate(load(args.memory), load(args.front)), Path(args.data)
    if args.peers:
        for part in args.part or budget.COMPARED:
            rows = [row.record() for row in budget.compared(part, candidate, data)]
            _store(args.out / f"peers-{part}.json", {"parts": {part: {"rows": rows}}})
            print((args.out / f"peers-{part}.md").read_text(), flush=True)
        return
    size = (QUICK if args.quick else FULL)._replace(first_seed=RESERVED if args.reserved else 0)
    name, parts = args.name or ".".join(ccmem.__version__.split(".")[:2]), args.part or list(PARTS)
    head = {"rule": name, "memory": args.memory, "front": args.front, "quick": args.quick, "reserved": args.reserved}
    file = args.out / f"{name}{'-reserved' * args.reserved}.json"
    storing = not args.quick and (args.store or set(parts) == set(PARTS))
    stored = json.loads(file.read_text())["parts"] if storing and file.exists() else {}
    missed: dict[str, str] = {}
    seconds = 0.0
    for part in parts:  # store each part when it ends, so an interrupted run keeps its results
        entry = run([part], candidate, data, size)[part]
        seconds += entry.get("seconds", 0)
        missed |= {row.benchmark: cells(row)[-1] for row in entry["rows"] if cells(row)[-1]}
        stored[part] = entry | {"rows": [row.record() for row in entry["rows"]]}
        if storing:
            _store(file, head | {"parts": {part: stored[part] for part in PARTS if part in stored}})
    if args.name:
        with (args.out / "tried.jsonl").open("a") as log:
            log.write(json.dumps(head | {"parts": parts, "not met": missed}) + "\n")
    print(f"{name}: {seconds:.0f} s of processor time; targets not met: {missed or 'none'}")
    if storing:
        print(f"{file.with_suffix('.md').read_text()}\nstored as {file} and .md")


def _store(file: Path, content: dict[str, Any]) -> None:
    file.write_text(json.dumps(content, indent=1) + "\n")
    file.with_suffix(".md").write_text(markdown(pages.rows_of(content)) + "\n")


if __name__ == "__main__":
    main()
