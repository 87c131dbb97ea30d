"""The naive twin of :mod:`ccmem.models.adaptive.merging`: units, and which two of them to merge."""

from __future__ import annotations

from ccmem._typing import FloatArray
from ccmem.kernels import plain


class Unit:
    """A slot: prototype M, rate v, wins C, its block, gathered dissimilarity E and label votes."""

    def __init__(self, M: FloatArray, v: float, block: int, n_labels: int) -> None:
        self.M, self.v, self.C, self.block, self.E = M, v, 0, block, 0.0
        self.votes = [0] * n_labels

    def label(self) -> int | None:
        """The majority label, if any."""
        return self.votes.index(max(self.votes)) if any(self.votes) else None

    def refuses(self, label: int) -> bool:
        """Whether this unit clearly belongs to another label."""
        most = self.label()
        return most is not None and most != label and 4 * self.votes[most] > 3 * sum(self.votes)


def cost(a: Unit, b: Unit) -> float:
    """What merging two units costs."""
    ward = float(a.C) * b.C / (a.C + b.C) * max(0.0, 1.0 - plain.dot(a.M, b.M))
    differ = a.label() is not None and b.label() is not None and a.label() != b.label()
    return ward * 2.0**100 if differ else ward


def merge(units: list[Unit], share: int) -> None:
    """Merge the cheapest pair within blocks of more than ``share`` units; the last unit fills the gap."""
    sizes = [sum(other.block == unit.block for other in units) for unit in units]
    pairs = [
        (cost(units[i], units[j]), i, j)
        for i in range(len(units))
        for j in range(i + 1, len(units))
        if units[i].block == units[j].block and sizes[i] > share
    ]
    _, i, j = min(pairs)
    a, b = units[i], units[j]
    step = a.M.dtype.type(b.C / (a.C + b.C))
    a.M = plain.renormalised(a.M + step * (b.M - a.M), 0.0)
    a.v, a.C, a.E = min(a.v, b.v), a.C + b.C, 0.0
    a.votes = [x + y for x, y in zip(a.votes, b.votes, strict=True)]
    last = units.pop()
    if last is not b:
        units[j] = last
