"""Two versions of the source, turn by turn: ``python -m benchmarks.versions ../old/src src``.

Measures the cost of a change of AdaptiveCCM per row. Every version learns the same noise in a separate process, one
right after the other, so that other load slows all versions equally. The result is the median ratio of their
processor times. The memory layout of a process changes its times by up to a tenth, so each version runs in several
processes.

    git worktree add ../old COMMIT && python -m benchmarks.versions ../old/src src
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks.timing import ratio

WIDTHS = {8: 30_000, 784: 3_000}
"""Columns -> rows per turn."""
TURN = """
import sys, time
import numpy as np
from ccmem import AdaptiveCCM
width, rows = map(int, sys.argv[1:])
X = np.random.default_rng(0).random((rows, width), dtype=np.float32)
AdaptiveCCM().partial_fit(X)
for _ in sys.stdin:
    memory, start = AdaptiveCCM(), time.process_time()
    memory.partial_fit(X)
    print((time.process_time() - start) / rows * 1e6, flush=True)
"""


class Version:
    """A process that learns on request with the source in a folder."""

    def __init__(self, source: Path, width: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", TURN, str(width), str(WIDTHS[width])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(source.resolve()), "OMP_NUM_THREADS": "1"},
            text=True,
        )

    def microseconds(self) -> float:
        """Return the microseconds per row of one turn."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline())

    def stop(self) -> None:
        """End the process."""
        self._process.communicate()


def compare(sources: list[Path], width: int, turns: int) -> list[list[float]]:
    """Return the microseconds per row of every version, turn by turn."""
    versions = [Version(source, width) for source in sources]
    try:
        for version in versions:  # compiles kernels if needed
            version.microseconds()
        return [[version.microseconds() for version in versions] for _ in range(turns)]
    finally:
        for version in versions:
            version.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+", type=Path, metavar="FOLDER", help="holds ccmem; the first is the measure")
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--processes", type=int, default=5, help="of each version")
    args = parser.parse_args()
    for source in args.sources:
        if not (source / "ccmem").is_dir():
            parser.error(f"{source} holds no folder named ccmem; name the folder that does, such as src")
    for width in WIDTHS:
        turns = [turn for _ in range(args.processes) for turn in compare(args.sources, width, args.turns)]
        first, *_ = times = np.array(turns).T
        for source, own in zip(args.sources, times, strict=True):
            times_first = ratio(own, first)["median"]
            print(f"{width} columns, {source}: {own.min():.2f} us a row at best, {times_first:.2f} times the first")


if __name__ == "__main__":
    main()
