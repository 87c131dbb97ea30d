"""Sample stores: a reservoir (uniform over all samples seen) and GDumb's balanced store."""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem.core.typing import FloatArray, IntArray


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
        places, order = list(range(capacity)), []  # row in each slot, rows learned: new rows count from ``capacity``
        for row, (keep, *replay) in enumerate(self.rng.random((len(X), 1 + n_replayed)).tolist(), capacity):
            order.append(row)
            if len(self):
                order += [places[int(share * len(self))] for share in replay]
            slot = self.seen if self.seen < capacity else int(keep * (self.seen + 1))
            if slot < capacity:
                places[slot] = row
            self.seen += 1
        rows, row_codes = np.concatenate([self.X, X]), np.concatenate([self.codes, codes])
        self.X, self.codes = rows[places], row_codes[places]
        return rows[order], row_codes[order]

    def shrink(self, capacity: int) -> None:
        """Continue with fewer slots; any part of a uniform sample is one."""
        if capacity < len(self.X):
            kept = self.rng.permutation(len(self))[:capacity]
            chosen = np.concatenate([kept, np.arange(len(self), len(self.X))])[:capacity]
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
