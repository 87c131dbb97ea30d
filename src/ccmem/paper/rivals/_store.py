"""Sample stores: a reservoir (uniform over all samples seen) and GDumb's balanced store."""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem.core.typing import FloatArray, IntArray
from ccmem.kernels.jit import kernel


@kernel
def reservoir_plan(
    seen: int, capacity: int, keep: FloatArray, replay: FloatArray, places: IntArray, order: IntArray
) -> int:
    """Plan the reservoir updates for the next ``len(keep)`` samples and the replay order.

    ``places[s]`` is the row in slot s: below ``capacity`` a kept row, ``capacity + r`` for row r of the chunk.
    ``keep`` and ``replay`` are uniform in [0, 1): ``keep[r]`` decides whether and where sample r is kept, ``replay[r]``
    which kept rows follow sample r in ``order``. Returns the length of ``order``.
    """
    length = 0
    for r in range(keep.shape[0]):
        order[length] = capacity + r
        length += 1
        held = min(seen, capacity)
        if held > 0:
            for k in range(replay.shape[1]):
                order[length] = places[int(replay[r, k] * held)]
                length += 1
        slot = seen if seen < capacity else int(keep[r] * (seen + 1))
        if slot < capacity:
            places[slot] = capacity + r
        seen += 1
    return length


class _Store:
    """Slots for rows and their class codes. The first ``seen`` slots are filled, at most all of them."""

    def __init__(self, capacity: int, n_features: int, dtype: Any, rng: np.random.Generator) -> None:
        self.X = np.zeros((capacity, n_features), dtype)
        self.codes = np.zeros(capacity, np.int64)
        self.seen = 0
        self.rng = rng

    def __len__(self) -> int:
        return min(self.seen, len(self.X))

    def rows(self) -> tuple[FloatArray, IntArray]:
        """Return the rows held and their codes."""
        return self.X[: len(self)], self.codes[: len(self)]

    @property
    def n_floats(self) -> int:
        """Number of floats held; a code counts as one."""
        return len(self) * (self.X.shape[1] + 1)


class Reservoir(_Store):
    """A uniform sample of all rows seen (Vitter's algorithm R), independent of chunk boundaries."""

    def add(self, X: FloatArray, codes: IntArray, n_replayed: int = 0) -> tuple[FloatArray, IntArray]:
        """Add rows; return them again, each followed by ``n_replayed`` rows drawn from those held before it."""
        capacity = len(self.X)
        draws = self.rng.random((len(X), 1 + n_replayed))
        places = np.arange(capacity)
        order = np.empty(len(X) * (1 + n_replayed), np.int64)
        length = reservoir_plan(
            self.seen, capacity, np.ascontiguousarray(draws[:, 0]), np.ascontiguousarray(draws[:, 1:]), places, order
        )
        order = order[:length]
        fresh = order >= capacity
        rows, row_codes = np.empty((length, X.shape[1]), self.X.dtype), np.empty(length, np.int64)
        rows[fresh], row_codes[fresh] = X[order[fresh] - capacity], codes[order[fresh] - capacity]
        rows[~fresh], row_codes[~fresh] = self.X[order[~fresh]], self.codes[order[~fresh]]
        changed = np.flatnonzero(places >= capacity)
        self.X[changed], self.codes[changed] = X[places[changed] - capacity], codes[places[changed] - capacity]
        self.seen += len(X)
        return rows, row_codes

    def shrink(self, capacity: int) -> None:
        """Continue with fewer slots; any part of a uniform sample is one."""
        if capacity < len(self.X):
            kept = self.rng.permutation(len(self))[:capacity]
            empty = np.setdiff1d(np.arange(len(self.X)), np.arange(len(self)))[: capacity - len(kept)]
            chosen = np.concatenate([kept, empty])
            self.X, self.codes = self.X[chosen], self.codes[chosen]


class BalancedStore(_Store):
    """GDumb's greedy sampler: each class receives slots until all are even, then the largest class gives way."""

    def __init__(self, capacity: int, n_features: int, dtype: Any, rng: np.random.Generator) -> None:
        super().__init__(capacity, n_features, dtype, rng)
        self.members: list[list[int]] = []

    def add(self, X: FloatArray, codes: IntArray) -> bool:
        """Add rows if they fit; return True if any was stored."""
        changed = False
        for row, code in zip(X, codes.tolist(), strict=True):
            self.members += [[] for _ in range(len(self.members), code + 1)]
            n_classes = sum(map(bool, self.members)) + (not self.members[code])
            full = len(self) == len(self.X)
            if full and len(self.members[code]) >= len(self.X) / n_classes:
                continue
            slot = self._give_way() if full else len(self)
            self.seen += not full
            self.members[code].append(slot)
            self.X[slot], self.codes[slot] = row, code
            changed = True
        return changed

    def _give_way(self) -> int:
        """Drop a random sample of the largest class and return its slot."""
        largest = max(self.members, key=len)
        return largest.pop(int(self.rng.integers(len(largest))))

    def shrink(self, capacity: int) -> None:
        """Continue with fewer slots."""
        while len(self) > capacity:
            slot, last = self._give_way(), len(self) - 1
            if slot != last:
                mine = self.members[self.codes[last]]
                mine[mine.index(last)] = slot
                self.X[slot], self.codes[slot] = self.X[last], self.codes[last]
            self.seen = last
        self.X, self.codes = self.X[:capacity].copy(), self.codes[:capacity].copy()
