"""What the paper's tables cost: all six models, ten trials, both protocols, against one pass of PyTorch's MLP.

    python benchmarks/tables_cost.py --data DIR

Both are timed in this one run, one after the other: ``ccmem reproduce mnist --rows paper`` as a process of its own
(kernels compiled before), then PyTorch learning the same network, 784-110-104-2 at batch 1 with plain SGD, from the
same 60,000 images once. Prints both times and their ratio.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time

from ccmem import datasets
from ccmem.protocol import Benchmark


def tables_seconds(arguments: list[str]) -> float:
    """Time of the command, from start to report."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "ccmem.cli", "reproduce", "mnist", "--rows", "paper", "--out", folder]
        began = time.perf_counter()
        subprocess.run([*command, *arguments], check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - began


def torch_seconds(benchmark: Benchmark, n_steps: int) -> float:
    """Time of one pass at batch 1, from the first ``n_steps`` samples, scaled to all."""
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
    """Time both and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with data sets (default: CCMEM_DATA, the cache, ...)")
    parser.add_argument("--steps", type=int, default=60_000, help="PyTorch steps to time (default: all)")
    options = parser.parse_args()
    more = ["--data", options.data] if options.data else []
    benchmark = Benchmark.of(datasets.load("mnist", folder=options.data))
    tables_seconds([*more, "--trials", "1"])  # compiles what is not compiled yet
    ours = tables_seconds(more)
    theirs = torch_seconds(benchmark, options.steps)
    print(f"all tables for MNIST, 6 models x 10 trials, both protocols, with report: {ours:7.1f} s")
    print(f"PyTorch, one pass of the MLP at batch 1:                                 {theirs:7.1f} s")
    print(f"ratio: {theirs / ours:.2f}")


if __name__ == "__main__":
    main()
