"""Loops over rows, compiled: sums of every row, a slot for it, and the end of a batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem.core.codes import REJECTED
from ccmem.core.state import JOURNALED, SEEN, UNITS
from ccmem.core.typing import FloatArray, IntArray
from ccmem.kernels.competition import dot
from ccmem.kernels.jit import kernel, kernel_in_place
from ccmem.models.adaptive import state as s
from ccmem.models.adaptive.batches import add_row, add_some, fill
from ccmem.models.adaptive.bound import merge_cheapest
from ccmem.models.adaptive.columns import follow_row, scatter_of
from ccmem.models.adaptive.hot import close_batch
from ccmem.models.adaptive.slots import UNKNOWN, match_row, place, scale_of
from ccmem.models.adaptive.state import AdaptiveState

_EVENT_LINES = 3
"""Journal lines that may be added before the journal is read: of a merge, of a move, of a decision."""
_NO_VOTES: IntArray = np.empty((0, 0), np.int64)


@kernel_in_place
def learn_rows(
    state: AdaptiveState,
    settings: Any,
    X: FloatArray,
    winners: IntArray,
    labels: IntArray,
    votes: IntArray | None,
    refusing: bool,
    missing: bool | None,
) -> int:
    """Learn rows in order, up to the first that finds no space or needs a decision; return their number.

    With ``missing`` None the first missing reading ends the loop, and the code for such readings is not compiled.
    """
    counters: Any = state.counters
    stream, gaps = state.stream, state.stream[s.N_STREAM :]
    r: Any = np.int64(0)
    while counters[s.STATUS] == 0:
        if counters[s.ROWS] >= settings.batch:
            close_batch(state, settings, missing)
            continue
        if counters[s.COORDINATES] == s.UNDECIDED and counters[s.ROWS] == 0 and counters[SEEN] >= s.DECIDE_AT:
            counters[s.STATUS] = s.CHOOSING
            break
        if r == X.shape[0] or counters[UNITS] == state.prototypes.shape[0]:
            break
        if counters[JOURNALED] + _EVENT_LINES > state.journal.shape[0]:
            break
        x, has_reading = X[r], True
        scale, matched = match_row(X, r, state.prototypes, counters, state.members, state.scores)
        if scale == 0.0 and has_gap(x):
            if missing is None or gaps.shape[0] == 0:
                break
            x = state.prototypes[counters[UNITS]]  # of a unit that does not exist yet
            has_reading = fill(stream[s.REFERENCE], X[r], x)
            scale, matched = scale_of(dot(x, x)), False
        if counters[SEEN] == 0:
            for j in range(x.shape[0]):  # of a missing reading, fill has copied a 0
                stream[s.REFERENCE, j] = stream[s.BEFORE, j] = x[j]
        if missing is not None and gaps.shape[0] > 0:
            add_some(stream, gaps, state.blocks[counters[s.POINTER], s.NOISE], X[r])
        else:
            add_row(stream[s.SUM], stream[s.SQUARES], stream[s.FOURTHS], stream[s.BEFORE], stream[s.REFERENCE], x)
        if counters[s.COORDINATES] != s.DIRECTIONS:
            follow_row(state, settings, X[r])
        if counters[s.ROWS] == 0 and counters[s.AGE] > 0:
            state.scalars[s.SCATTER] = scatter_of(state, settings)
        winners[r] = REJECTED
        if counters[s.ALARM] > 0:
            counters[s.ALARM] += 1
        elif (scale > 0.0 or counters[s.COORDINATES] == s.COLUMNS) and has_reading and counters[s.DOUBT] == 0:
            label = labels[r] if labels.shape[0] else UNKNOWN
            winners[r] = place(state, settings, x, scale, matched, label, votes, refusing)
        counters[s.ROWS] += 1
        counters[SEEN] += 1
        r += 1
    return r


@kernel_in_place
def has_gap(x: FloatArray) -> bool:
    """True if a reading of a row is missing."""
    missing = 0
    for j in range(x.shape[0]):
        missing += x[j] != x[j]
    return missing > 0


@kernel_in_place
def learn(state: AdaptiveState, settings: Any, X: FloatArray, winners: IntArray) -> int:
    """Learn rows without labels, gaps or a bound."""
    return learn_rows(state, settings, X, winners, winners[:0], None, False, None)


@kernel_in_place
def learn_with_gaps(state: AdaptiveState, settings: Any, X: FloatArray, winners: IntArray) -> int:
    """Learn rows as :func:`learn` does, where readings may be missing."""
    return learn_rows(state, settings, X, winners, winners[:0], None, False, True)


@kernel
def _learn_voting(
    state: AdaptiveState, settings: Any, X: FloatArray, winners: IntArray, labels: IntArray, votes: IntArray,
    refusing: bool,
) -> int:  # fmt: skip
    return learn_rows(state, settings, X, winners, labels, votes, refusing, True)


def learn_bounded(
    state: AdaptiveState,
    settings: Any,
    X: FloatArray,
    winners: IntArray,
    labels: IntArray | None = None,
    votes: IntArray = _NO_VOTES,
    refusing: bool = False,
) -> int:
    """Learn rows as :func:`learn` does, and merge units where there would be more than ``max_units``.

    With labels, count ``votes``: merges go by them, and slots may be ``refusing``.
    """
    done, labels = 0, winners[:0] if labels is None else labels
    while True:
        if state.counters[s.STATUS] == s.FULL:
            merge_cheapest(state, settings, votes, max(1, settings.max_units // state.counters[s.BLOCKS]))
            state.counters[s.STATUS] = 0
        done += _learn_voting(state, settings, X[done:], winners[done:], labels[done:], votes, refusing)
        if state.counters[s.STATUS] != s.FULL:
            return done
