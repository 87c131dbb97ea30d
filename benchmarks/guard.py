"""Cost of locking per method call, in nanoseconds: ``python -m benchmarks.guard``."""

from __future__ import annotations

import json
import timeit
from typing import Any

from ccmem.core.locking import learning, reading

_CALLS, _ROUNDS = 500, 400
"""Calls per round, and rounds; the fastest round counts, which excludes interference."""


class _Methods:
    def plain(self, x: Any) -> Any:
        return x

    learns = learning(plain)
    reads = reading(plain)


def main() -> None:
    """Print the cost of a plain call and the cost each kind of lock adds."""
    thing = _Methods()
    methods = {"plain": thing.plain, "learning": thing.learns, "reading": thing.reads}
    best = dict.fromkeys(methods, float("inf"))
    for _ in range(_ROUNDS):
        for name, method in methods.items():
            seconds = timeit.timeit(lambda method=method: method(1), number=_CALLS) / _CALLS  # type: ignore[misc]
            best[name] = min(best[name], seconds)
    costs = {name: seconds - (best["plain"] if name != "plain" else 0.0) for name, seconds in best.items()}
    print(json.dumps({name: round(seconds * 1e9) for name, seconds in costs.items()}))


if __name__ == "__main__":
    main()
