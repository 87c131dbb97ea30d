"""What a live page costs learning: ``python -m benchmarks.watched``.

The same stream is learned in turns, without a page and with one that a reader follows;
the ratio is that of the medians.
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
import urllib.request

import numpy as np

from ccmem import AdaptiveCCM, watch


def turn(X: np.ndarray, watched: bool, seconds: float) -> float:
    """Rows a second by the clock."""
    memory = AdaptiveCCM().partial_fit(X[:1000])
    page = watch(memory, browser=False) if watched else None
    if page is not None:
        threading.Thread(target=_follow, args=(page.url + "stream",), daemon=True).start()
        time.sleep(0.5)
    rows, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        memory.partial_fit(X)
        rows += len(X)
    rate = rows / (time.perf_counter() - began)
    if page is not None:
        page.close()
    return rate


def _follow(url: str) -> None:
    try:
        with urllib.request.urlopen(url) as stream:
            while stream.readline():
                pass
    except OSError:
        pass


def main() -> None:
    """Print rows a second with and without a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--width", type=int, default=784)
    options = parser.parse_args()
    X = np.random.default_rng(0).random((2000, options.width)).astype(np.float32)
    turn(X, False, 0.5)
    rates: dict[bool, list[float]] = {False: [], True: []}
    for number in range(options.turns):
        for watched in (number % 2 == 0, number % 2 == 1):
            rates[watched].append(turn(X, watched, options.seconds))
    alone, shown = statistics.median(rates[False]), statistics.median(rates[True])
    print(f"alone {alone:,.0f} rows/s, watched {shown:,.0f} rows/s: {100 * (1 - shown / alone):+.1f} % lost")


if __name__ == "__main__":
    main()
