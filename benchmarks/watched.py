"""What a live page costs learning: ``python -m benchmarks.watched``.

One memory learns one stream in short turns, without a page and with one that a reader follows, one turn right after the
other, so that both see the same machine; the cost is the median over pairs of turns, with the range that 95 of 100
resamplings of the pairs give it.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import threading
import time
import urllib.request

import numpy as np

from ccmem import AdaptiveCCM, watch


def turn(memory: AdaptiveCCM, X: np.ndarray, watched: bool, seconds: float) -> float:
    """Rows a second by the clock."""
    page = watch(memory, browser=False) if watched else None
    if page is not None:
        threading.Thread(target=_follow, args=(page.url + "stream",), daemon=True).start()
    time.sleep(0.25)
    rows, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        memory.partial_fit(X)
        rows += len(X)
    rate = rows / (time.perf_counter() - began)
    if page is not None:
        page.close()
    return rate


def _follow(url: str) -> None:
    with contextlib.suppress(OSError), urllib.request.urlopen(url) as stream:
        while stream.readline():
            pass


def main() -> None:
    """Print rows a second with and without a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=90)
    parser.add_argument("--seconds", type=float, default=0.4)
    parser.add_argument("--width", type=int, default=784)
    options = parser.parse_args()
    X = np.random.default_rng(0).random((2000, options.width)).astype(np.float32)
    memory = AdaptiveCCM().partial_fit(X)
    turn(memory, X, True, 0.5)
    alone, lost = [], []
    for number in range(options.pairs):
        rate = {watched: turn(memory, X, watched, options.seconds) for watched in (number % 2 == 0, number % 2 == 1)}
        alone.append(rate[False])
        lost.append(100 * (1 - rate[True] / rate[False]))
    rng = np.random.default_rng(0)
    low, high = np.quantile(np.median(rng.choice(lost, (2000, len(lost))), axis=1), [0.025, 0.975])
    cost = f"{statistics.median(lost):.1f} % lost ({low:.1f} to {high:.1f})"
    print(f"alone {statistics.median(alone):,.0f} rows/s; watched {cost} in {len(lost)} pairs of turns")


if __name__ == "__main__":
    main()
