"""Cost of the paper's tables: all six models, ten trials, against one pass of PyTorch's MLP.

    python benchmarks/tables_cost.py --data DIR

All are timed in this one run, one after the other, with kernels compiled before: both of the paper's tables, which are
those of the paper protocol, from images in memory to the text; ``ccmem reproduce mnist --rows paper`` as a process of
its own, which also runs the strict protocol, reads the files and draws the report; and PyTorch learning the same
network, 784-110-104-2 at batch 1 with plain SGD, from the same 60,000 images once.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ccmem import datasets, experiments
from ccmem.paper.datasets import ImageData
from ccmem.paper.experiments.protocol import PAPER, Benchmark
from ccmem.paper.experiments.runs import Results, run_all
from ccmem.paper.report import for_terminal, tables


def tables_seconds(data: ImageData, benchmark: Benchmark) -> float:
    """Return the time of both tables of the paper: ten trials of six models on all cores."""
    rows = experiments.rows(data.name, None, ["paper"])
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        results = Results(Path(folder), data, benchmark, rows, trials=10, seed=0, protocols=(PAPER,))
        run_all(results, rows, benchmark)
        for table in tables(results.content):
            for_terminal(table)
        return time.perf_counter() - began


def command_seconds(arguments: list[str]) -> float:
    """Return the time of the command, from start to report."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "ccmem.cli", "reproduce", "mnist", "--rows", "paper", "--out", folder]
        began = time.perf_counter()
        subprocess.run([*command, *arguments], check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - began


def torch_seconds(benchmark: Benchmark, n_steps: int) -> float:
    """Return the time of one pass at batch 1, extrapolated from the first ``n_steps`` samples."""
    import torch

    torch.set_num_threads(1)  # more threads only wait for each other at this size
    layers = torch.nn.Sequential(
        torch.nn.Linear(784, 110), torch.nn.ReLU(), torch.nn.Linear(110, 104), torch.nn.ReLU(), torch.nn.Linear(104, 2)
    )
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.001)
    loss = torch.nn.CrossEntropyLoss()
    order = benchmark.stream(0).indices[:n_steps]
    X, y = torch.from_numpy(benchmark.X[order]), torch.from_numpy(benchmark.places[benchmark.y[order]])
    began = time.perf_counter()
    for row in range(len(order)):
        optimizer.zero_grad()
        loss(layers(X[row : row + 1]), y[row : row + 1]).backward()
        optimizer.step()
    return (time.perf_counter() - began) * len(benchmark.y) / len(order)


def main() -> None:
    """Time both and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with data sets (default: CCMEM_DATA, the cache, ...)")
    parser.add_argument("--steps", type=int, default=60_000, help="PyTorch steps to time (default: all)")
    options = parser.parse_args()
    more = ["--data", options.data] if options.data else []
    data = datasets.load("mnist", folder=options.data)
    benchmark = Benchmark.of(data)
    command_seconds([*more, "--trials", "1"])  # compiles kernels if needed
    ours, whole = tables_seconds(data, benchmark), command_seconds(more)
    theirs = torch_seconds(benchmark, options.steps)
    print(f"PyTorch, one pass of the MLP at batch 1:                    {theirs:6.1f} s")
    print(f"both tables, 6 models x 10 trials:                          {ours:6.1f} s, ratio {theirs / ours:.2f}")
    print(f"the same with the strict protocol, from files to report:    {whole:6.1f} s, ratio {theirs / whole:.2f}")


if __name__ == "__main__":
    main()
