"""``ccmem generate``: write synthetic data for trying out the other commands."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from ccmem.io.streams.drift import STATES, drifting_sensors
from ccmem.io.streams.write import write_table


def run(args: argparse.Namespace) -> int:
    """Generate the data and write the file."""
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
