"""Learned shapes: the figures of docs/howto/waveforms.md.

    python -m studies.shapes --data FOLDER --out studies/evidence/shapes

FOLDER (or the environment variable CCMEM_DATA) holds ``activity`` and ``segments``. Every part writes one JSON file;
tables.md is made from all that are there. ``peers`` needs claspy and stumpy (see peers.py); without them it is skipped.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import ccmem

from .parts import PARTS


def table(rows: list[dict[str, Any]]) -> str:
    """Return rows of equal keys as a Markdown table."""
    lines = ["| " + " | ".join(rows[0]) + " |", "|" + "---|" * len(rows[0])]
    lines += ["| " + " | ".join(_shown(value) for value in row.values()) + " |" for row in rows]
    return "\n".join(lines)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if value > 10 else f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def main() -> None:
    """Run the parts asked for and write the tables of all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("CCMEM_DATA"))
    parser.add_argument("--out", type=Path, default=Path("studies/evidence/shapes"))
    parser.add_argument("--part", nargs="*", default=list(PARTS), choices=list(PARTS))
    args = parser.parse_args()
    if args.data is None:
        parser.error("say where the data are: --data FOLDER")
    args.out.mkdir(parents=True, exist_ok=True)
    for part in args.part:
        began = time.process_time()
        try:
            rows = PARTS[part](Path(args.data))
        except ImportError as error:
            print(f"{part}: skipped, {error}", flush=True)
            continue
        lines = ",\n".join(json.dumps(row) for row in rows)
        (args.out / f"{part}.json").write_text(f'{{"ccmem": "{ccmem.__version__}", "rows": [\n{lines}\n]}}\n')
        print(f"{part}: {time.process_time() - began:.1f} s of processor time", flush=True)
    texts = []
    for part, function in PARTS.items():
        if (file := args.out / f"{part}.json").exists():
            texts.append(f"## {function.__doc__}\n\n{table(json.loads(file.read_text())['rows'])}\n")
    (args.out / "tables.md").write_text("\n".join(texts))
    print("\n".join(texts))


if __name__ == "__main__":
    main()
