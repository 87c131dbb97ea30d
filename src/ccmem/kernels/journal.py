"""The journal: lines that a kernel writes while learning and Python reads between two calls."""

from __future__ import annotations

from ccmem.core.state import JOURNALED, SEEN
from ccmem.core.typing import IntArray
from ccmem.kernels.jit import kernel_in_place


@kernel_in_place
def note(
    counters: IntArray,
    journal: IntArray,
    kind: int,
    origin: int,
    target: int,
    count: int,
    uncertainty: int = 0,
    evidence: int = 0,
) -> None:
    """Add a line to the journal; the caller has made sure that one fits."""
    line = journal[counters[JOURNALED]]
    line[0], line[1], line[2], line[3], line[4], line[5] = kind, counters[SEEN], origin, target, count, uncertainty
    line[6] = evidence
    counters[JOURNALED] += 1
