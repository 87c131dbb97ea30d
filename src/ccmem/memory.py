"""The state that every model shares, as NamedTuples of arrays that numba takes whole.

A model's state is a NamedTuple whose first five fields are those of :class:`UnitState`; more may follow. Everything
that changes while learning is in these arrays (scalars in ``counters``), so copying, comparing and saving a memory is
one generic loop over fields.
"""

from __future__ import annotations

import math
import os
from typing import Any, NamedTuple

import numpy as np

from ccmem._codes import COLUMN_BACK as COLUMN_BACK
from ccmem._codes import COLUMN_LOST as COLUMN_LOST
from ccmem._codes import EVIDENCE_UNIT as EVIDENCE_UNIT
from ccmem._codes import MERGE as MERGE
from ccmem._codes import MOVE as MOVE
from ccmem._codes import NEW_BLOCK as NEW_BLOCK
from ccmem._codes import QUESTION as QUESTION
from ccmem._codes import RECALL as RECALL
from ccmem._codes import REMOVE as REMOVE
from ccmem._typing import FloatArray, IntArray
from ccmem.kernels.jit import kernel_in_place

SEEN, UNITS, JOURNALED = 0, 1, 2
"""Places in ``counters`` that mean the same in every model; a model's own begin at ``OWN``."""
OWN = 3

JOURNAL_COLUMNS = 7
FIRST_JOURNAL_LINES, MOST_JOURNAL_LINES = 4, 256
"""A journal that fills up between two looks is made longer: most memories of a fleet note next to nothing."""


class UnitState(NamedTuple):
    """Prototypes and what each has been through; rows beyond ``counters[UNITS]`` are spare capacity."""

    prototypes: FloatArray
    rates: FloatArray
    wins: IntArray
    counters: IntArray
    journal: IntArray
    """Lines (kind, step, from, to, count, uncertainty, evidence) since Python last looked; see the kinds above."""


BLOCK_KINDS = ("new_block", "recall")


class Event(NamedTuple):
    """Something that a stream did: a new block began, an old one came back; a column was lost, or is back.

    >>> print(Event("recall", step=900, from_block=1, to_block=0, count=101, uncertainty=8))
    recall of block 0 at sample 900, from block 1 (since sample 800 ± 8)
    >>> print(Event("column_lost", step=900, from_block=1, to_block=1, count=201, uncertainty=20, column=3))
    column 3 lost at sample 900 (since sample 700 ± 20)
    """

    kind: str
    """``"new_block"`` or ``"recall"``; ``"column_lost"`` or ``"column_back"``, which change no block."""
    step: int
    """Index of the sample (from 0, since learning began) at which it was noticed."""
    from_block: int
    to_block: int
    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody needs here
    """Samples since the change began, this one included: CCM's alarm or hits, AdaptiveCCM's estimate."""
    uncertainty: int = 0
    """The change began within so many samples of ``onset``, if it came at once; one that creeps in began earlier."""
    column: int = -1
    """The column that was lost, or is back; -1 for blocks."""
    evidence: float = 0.0
    """How sure it was, as a multiple of what a change takes: 1 is just enough, 50 the most; 0 where none is told."""

    @property
    def changes_block(self) -> bool:
        """Whether another block is in use since: True for new blocks and recalls."""
        return self.kind in BLOCK_KINDS

    @property
    def onset(self) -> int:
        """Where the change began, as far as the memory can tell: the first sample of what is new."""
        return max(0, self.step - self.count + 1)

    def record(self) -> dict[str, Any]:
        """Names and values, for a line of a file; ``column`` and ``evidence`` only where there is one."""
        absent = {"column"} if self.column < 0 else set()
        absent |= set() if self.evidence else {"evidence"}
        return {name: value for name, value in self._asdict().items() if name not in absent}

    def __repr__(self) -> str:
        return f"Event({', '.join(f'{name}={value!r}' for name, value in self.record().items())})"

    def __str__(self) -> str:
        since = f"sample {self.onset:,} ± {self.uncertainty:,}" if self.uncertainty else f"about sample {self.onset:,}"
        if not self.changes_block:
            return f"column {self.column} {self.kind.removeprefix('column_')} at sample {self.step:,} (since {since})"
        what = "new block" if self.kind == "new_block" else "recall of block"
        return f"{what} {self.to_block} at sample {self.step:,}, from block {self.from_block} (since {since})"


def new_units(capacity: int, n_features: int, dtype: np.dtype[Any], learning_rate: float, n_own: int = 0) -> UnitState:
    """Arrays for ``capacity`` units, none of them in use yet; ``n_own`` further counters."""
    check_size(capacity * (n_features * np.dtype(dtype).itemsize + 16), f"{capacity:,} units of {n_features} features")
    return UnitState(
        prototypes=aligned_zeros((capacity, n_features), dtype),
        rates=np.full(capacity, learning_rate, np.float64),
        wins=np.zeros(capacity, np.int64),
        counters=np.zeros(OWN + n_own, np.int64),
        journal=np.zeros((FIRST_JOURNAL_LINES, JOURNAL_COLUMNS), np.int64),
    )


CACHE_LINE = 64
SMALL = 1 << 16
"""Bytes of a state that may share a buffer: what outgrows its part of it leaves so many behind at most."""
_MOST_BYTES = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 1 << 40


def aligned_zeros(shape: tuple[int, ...], dtype: Any) -> Any:
    """Zeros that begin with a cache line: a vector load that straddles two lines costs twice."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    check_size(size, f"{' x '.join(map(str, shape))} numbers")
    buffer = np.zeros(size + CACHE_LINE, np.uint8)
    start = -buffer.__array_interface__["data"][0] % CACHE_LINE  # .ctypes takes longer
    return buffer[start : start + size].view(dtype).reshape(shape)


class Places(NamedTuple):
    """Shapes and types of arrays, and where each begins in one buffer; None if they are too large for that."""

    layouts: list[tuple[tuple[int, ...], Any]]
    starts: list[int] | None
    end: int


def places_for(layouts: list[tuple[tuple[int, ...], Any]]) -> Places:
    """Arrays of these shapes and types: small ones share one buffer, because making many takes time."""
    starts, end = [], 0
    for shape, dtype in layouts:
        starts.append(end)
        end += -(-math.prod(shape) * np.dtype(dtype).itemsize // CACHE_LINE) * CACHE_LINE
    return Places(layouts, starts if end <= SMALL else None, end)


def zeros_at(places: Places) -> list[Any]:
    """Such arrays of zeros."""
    if places.starts is None:
        return [aligned_zeros(*layout) for layout in places.layouts]
    buffer = aligned_zeros((places.end,), np.uint8)
    return [np.ndarray(*layout, buffer, start) for layout, start in zip(places.layouts, places.starts, strict=True)]


def aligned_zeros_of(layouts: list[tuple[tuple[int, ...], Any]]) -> list[Any]:
    """Arrays of zeros of these shapes and types."""
    return zeros_at(places_for(layouts))


def check_size(n_bytes: int, what: str) -> None:
    """Raise if there is not so much memory: the system would promise it, and end the process when it is used."""
    if n_bytes > _MOST_BYTES:
        raise ValueError(f"{what} need {n_bytes / 2**30:,.0f} GiB, more than this machine has; ask for fewer")


def aligned(array: Any) -> Any:
    """``array``, or a copy of it, writeable and at the start of a cache line; for arrays that come from elsewhere."""
    if array.flags.writeable and array.flags.c_contiguous and array.__array_interface__["data"][0] % CACHE_LINE == 0:
        return array
    fresh = aligned_zeros(array.shape, array.dtype)
    fresh[...] = array
    return fresh


def grown(array: Any, rows: int, fill: float = 0) -> Any:
    """A copy of ``array`` with ``rows`` rows, the new ones filled with ``fill``."""
    larger = aligned_zeros((rows, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    larger[len(array) :] = fill
    return larger


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
