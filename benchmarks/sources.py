"""Cost of reading: learning from files against learning from an array that is already in memory.

    python benchmarks/sources.py

Best of five passes each, after a first pass that compiles; the same rows, the same model. Beside the time on the clock,
the processor time of all threads: a reader works in a thread of its own, so on an idle machine the clock shows less.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from ccmem import CCM, ModalClassifier
from ccmem.app.learner import Learner
from ccmem.io.streams.drift import drifting_sensors
from ccmem.io.streams.files import FileStream
from ccmem.io.streams.tables import code_labels
from ccmem.io.streams.write import write_table


def model(n_slots: int) -> Any:
    """Return the classifier to time."""
    return ModalClassifier(CCM(n_slots=n_slots, vigilance=0.85, commit_limit=10, recall_limit=15, random_state=0))


def main() -> None:
    """Time every format and print rows per second."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--features", type=int, default=8)
    parser.add_argument("--slots", type=int, default=25)
    parser.add_argument("--formats", default="parquet,arrow,npy,csv,ndjson")
    args = parser.parse_args()
    stream = drifting_sensors(args.rows, args.features)
    parts = list(stream.chunks())
    X = np.concatenate([x for x, _ in parts])
    labels, _ = code_labels([label for _, y in parts for label in y])
    values = np.array(labels.values, object)

    def from_array() -> None:
        learned = model(args.slots)
        for start in range(0, len(X), 65_536):
            learned._teach_coded(X[start : start + 65_536], labels.codes[start : start + 65_536], values)

    def from_file(file: Path) -> None:
        learner = Learner(model(args.slots))
        source = FileStream(file, label="state")
        for chunk in source.chunks_read_ahead(None, 60.0):
            if chunk is not None and source.columns is not None:
                learner.learn(chunk, source.columns)

    def best(call: Any) -> tuple[float, float]:
        clock, processor = [], []
        for _ in range(6):
            start = time.perf_counter(), time.process_time()
            call()
            clock.append(time.perf_counter() - start[0])
            processor.append(time.process_time() - start[1])
        return min(clock[1:]), min(processor[1:])

    array = best(from_array)
    print(f"{args.rows:,} rows of {args.features} features, {args.slots} slots a block")
    print(f"{'':<8} {'rows/s, clock':>25} {'rows/s, processor':>25}")
    print(f"array    {args.rows / array[0]:>12,.0f} {'':>12} {args.rows / array[1]:>12,.0f}")
    with tempfile.TemporaryDirectory() as folder:
        for kind in args.formats.split(","):
            file = Path(folder) / f"a.{kind}"
            write_table(file, stream.names, iter(parts))
            clock, processor = best(lambda file=file: from_file(file))  # type: ignore[misc]
            shares = f"x {array[0] / clock:.2f}", f"x {array[1] / processor:.2f}"
            rates = f"{args.rows / clock:,.0f}", f"{args.rows / processor:,.0f}"
            print(f"{kind:<8} {rates[0]:>12} {shares[0]:>12} {rates[1]:>12} {shares[1]:>12}", flush=True)


if __name__ == "__main__":
    main()
