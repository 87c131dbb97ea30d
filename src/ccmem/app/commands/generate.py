"""``ccmem generate``: write synthetic data for trying out the other commands."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

EXAMPLE = """\
examples:
  ccmem generate drift sensors.csv
  ccmem generate drift sensors.parquet --features 6 --missing-labels 0.2 --changes changes.json

drift is a machine with sensors. It works in one of several states at a time, stays there for a while, and comes back to
states it was in before. Every state has its own pattern over the sensors; on top of it come a daily cycle, a slow drift
and noise. --changes writes down at which rows the state changed, to score events against (ccmem.metrics).
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("kind", choices=("drift",), help="sensors of a machine whose state changes")
    parser.add_argument("out", metavar="FILE", help=".csv, .ndjson, .parquet, .arrow, .npy or .npz")
    parser.add_argument("--rows", type=int, default=100_000, help="how many (default 100000)")
    parser.add_argument("--features", type=int, default=8, help="how many sensors (default 8)")
    parser.add_argument("--regimes", type=int, default=4, help="how many states (default 4, at most 6)")
    parser.add_argument("--segment", type=int, default=4000, help="rows spent in a state, on average (default 4000)")
    parser.add_argument(
        "--missing-labels", type=float, default=0.1, metavar="SHARE", help="share of rows without label (default 0.1)"
    )
    parser.add_argument("--seed", type=int, default=0, help="which machine (default 0)")
    parser.add_argument("--recording", type=int, default=0, help="which of its recordings (default 0)")
    parser.add_argument("--changes", metavar="FILE", help="write the true change points as JSON")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    parser.epilog = EXAMPLE


def run(args: argparse.Namespace) -> int:
    """Generate the data and write the file."""
    from ccmem.io.streams.drift import STATES, drifting_sensors
    from ccmem.io.streams.write import write_table

    limits = {
        "rows": (1, 10**9),
        "features": (2, 10_000),
        "regimes": (2, len(STATES)),
        "segment": (1, 10**9),
        "missing_labels": (0, 1),
        "seed": (0, 2**63),
        "recording": (0, 2**63),
    }
    for name, (least, most) in limits.items():
        if not least <= getattr(args, name) <= most:
            raise ValueError(f"--{name.replace('_', '-')} {getattr(args, name)} must lie between {least} and {most}")
    stream = drifting_sensors(
        args.rows, args.features, args.regimes, args.segment, args.missing_labels, args.seed, args.recording
    )
    write_table(args.out, stream.names, stream.chunks())
    facts: dict[str, Any] = {
        "rows": args.rows,
        "features": list(stream.names),
        "label": "state",
        "states": list(STATES[: args.regimes]),
        "changes": len(stream.changes),
        "out": args.out,
    }
    if args.changes:
        changes = [{"step": step, "state": STATES[state]} for step, state in stream.changes]
        record = {"start": STATES[stream.visits[0]], "changes": changes}
        Path(args.changes).write_text(json.dumps(record) + "\n")
    if args.json:
        print(json.dumps(facts))
    else:
        print(
            f"wrote {args.rows:,} rows of {args.features} sensors to {args.out}: {args.regimes} states, "
            f"{len(stream.changes)} changes, label column 'state'"
        )
    return 0
