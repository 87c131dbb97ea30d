"""Processor time to read a CSV file without pyarrow, compared with the standard library's csv module and float.

    python -m benchmarks.parsing [--rows 60000] [--columns 8]

Both read the same file in this process, alternately, five times each; the minimum processor time counts. The count of
conversions shows that every number is converted once.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np

from ccmem.io.streams.csv import CSVTable
from ccmem.io.streams.files import FileStream
from ccmem.io.streams.schema import SAMPLE_ROWS


def read_plainly(file: Path) -> int:
    """Read all numbers with the csv module."""
    with file.open(newline="") as source:
        reader = csv.reader(source)
        next(reader)
        return len(np.array([list(map(float, row)) for row in reader]))


def read_stream(file: Path) -> int:
    """Read all numbers the way ``ccmem learn`` does without pyarrow."""
    with mock.patch.object(CSVTable, "_parse_fast", return_value=None):
        return sum(len(chunk.X) for chunk in FileStream(file).chunks())


def conversions(file: Path) -> int:
    """Return the number of converted cells beyond the sample used to infer types."""
    count = 0
    real = CSVTable._parse_slowly

    def counted(self: CSVTable, block: object, columns: object) -> object:
        nonlocal count
        numbers = type(columns.cells).numbers  # type: ignore[attr-defined]

        def noted(form: object, cells: list[str], ordinary: bool) -> object:
            nonlocal count
            count += len(cells)
            return numbers(form, cells, ordinary)

        with mock.patch.object(type(columns.cells), "numbers", noted):  # type: ignore[attr-defined]
            return real(self, block, columns)  # type: ignore[arg-type]

    with mock.patch.object(CSVTable, "_parse_slowly", counted):
        read_stream(file)
    return count


def main() -> None:
    """Print microseconds per row and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--columns", type=int, default=8)
    args = parser.parse_args()
    X = np.random.default_rng(0).normal(size=(args.rows, args.columns))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "a.csv"
        np.savetxt(file, X, "%.6f", ",", header=",".join(f"x{i}" for i in range(args.columns)), comments="")
        times: dict[Callable[[Path], int], list[float]] = {read_plainly: [], read_stream: []}
        for _ in range(5):
            for read, spent in times.items():
                start = time.process_time()
                assert read(file) == args.rows
                spent.append(time.process_time() - start)
        plain, ours = (1e6 * min(spent) / args.rows for spent in times.values())
        print(f"{args.rows:,} rows of {args.columns} columns, without pyarrow")
        print(f"csv and float   {plain:6.2f} us per row")
        print(f"ccmem           {ours:6.2f} us per row, {ours / plain:.2f} times as long")
        print(f"conversions     {conversions(file):,} of {X.size:,} numbers (and a sample of {SAMPLE_ROWS} rows)")


if __name__ == "__main__":
    main()
