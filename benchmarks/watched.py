"""Cost of a live page for learning: ``python -m benchmarks.watched``.

One memory learns one stream in short turns, without a page and with one that a browser's stand-in follows from another
process, one turn right after the other. Two things slow learning down: what the learning thread does more for each row,
and the processor that the threads of the page take, for which learning may have to wait. Both are counted in processor
time, which others on the machine do not lengthen; their sum is the most that learning can lose.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from ccmem import AdaptiveCCM, watch
from ccmem.app.watching.history import RowsAround, Signals

FOLLOW = "import sys, urllib.request\nfor line in urllib.request.urlopen(sys.argv[1]): pass"


class Turn(NamedTuple):
    """CPU time: of the learning thread per row, of all other threads per second."""

    microseconds: float
    others: float


@contextmanager
def followed(memory: AdaptiveCCM) -> Iterator[None]:
    """Open a page with a reader in another process."""
    with watch(memory, browser=False) as page:
        reader = subprocess.Popen([sys.executable, "-c", FOLLOW, page.url + "stream"], stderr=subprocess.DEVNULL)
        try:
            time.sleep(0.5)
            yield
        finally:
            reader.kill()
            reader.wait()


def turn(memory: AdaptiveCCM, X: np.ndarray, seconds: float) -> Turn:
    """Learn for ``seconds``."""
    rows, began = 0, (time.perf_counter(), time.thread_time(), time.process_time())
    while time.perf_counter() - began[0] < seconds:
        memory.partial_fit(X)
        rows += len(X)
    wall, own, all_threads = (
        time.perf_counter() - began[0],
        time.thread_time() - began[1],
        time.process_time() - began[2],
    )
    return Turn(1e6 * own / rows, (all_threads - own) / wall)


def copying(X: np.ndarray) -> float:
    """Return the microseconds that the page adds to a chunk in the learning thread: the shortest of many."""
    around, signals, shortest = RowsAround(), Signals(), np.inf
    for chunk in range(2000):
        began = time.perf_counter()
        around.observe(1_000_000 + chunk * len(X), X)
        signals.observe(1_000_000 + chunk * len(X), X)
        shortest = min(shortest, time.perf_counter() - began)
        if chunk % 100 == 0:
            signals.gather()
    return 1e6 * shortest


def main() -> None:
    """Print the loss with a 95 % bootstrap interval."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--width", type=int, default=784)
    options = parser.parse_args()
    X = np.random.default_rng(0).random((2000, options.width)).astype(np.float32)
    memory = AdaptiveCCM().partial_fit(X)
    alone, shown = [], []
    for _ in range(options.pairs):
        alone.append(turn(memory, X, options.seconds))
        with followed(memory):
            shown.append(turn(memory, X, options.seconds))
    more = [100 * (s.microseconds / a.microseconds - 1) for a, s in zip(alone, shown, strict=True)]
    page = [100 * (s.others - a.others) for a, s in zip(alone, shown, strict=True)]
    cost = np.median([a.microseconds for a in alone])
    print(f"{options.width} columns, {cost:.2f} us a row, {len(more)} pairs of turns")
    copied = copying(X)
    print(f"{'copying rows':<16} {100 * copied / (cost * len(X)):5.1f} %  ({copied:.1f} us a chunk of {len(X)} rows)")
    for name, values in (("learning thread", more), ("page's threads", page), ("at most lost", np.add(more, page))):
        draws = np.median(np.random.default_rng(0).choice(values, (2000, len(values))), axis=1)
        low, high = np.quantile(draws, [0.025, 0.975])
        print(f"{name:<16} {np.median(values):5.1f} %  ({low:.1f} to {high:.1f})")


if __name__ == "__main__":
    main()
