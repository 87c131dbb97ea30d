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
from ccmem.models.adaptive.batches import add_row, add_some, begin_stream, fill
from ccmem.models.adaptive.coordinates import COLUMNS, UNDECIDED, begin_columns, learn_magnitudes, wake_columns
from ccmem.models.adaptive.hot import close_batch
from ccmem.models.adaptive.state import AdaptiveSettings, AdaptiveState
from ccmem.models.adaptive.units import UNKNOWN, match_row, place, scale_of

EVENT_LINES = 3
"""Journal lines that one row may add, without those of lost columns."""


@kernel_in_place
def learn_rows(
    state: AdaptiveState,
    settings: AdaptiveSettings,
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
    stream, lines = state.stream, EVENT_LINES
    if missing is not None and state.gaps.shape[0] > 0:
        lines += X.shape[1]
    r: Any = np.int64(0)
    while r < X.shape[0] and counters[s.STATUS] == 0:
        if counters[UNITS] == state.prototypes.shape[0] or counters[JOURNALED] + lines > state.journal.shape[0]:
            break
        x, has_reading = X[r], True
        scale, matched = match_row(X, r, state.prototypes, counters, state.members, state.scores)
        if scale == 0.0 and has_gap(x):
            if missing is None or state.gaps.shape[0] == 0:
                break
            x, has_reading = state.filled, fill(stream[s.REFERENCE], x, state.filled)
            scale, matched = scale_of(dot(x, x)), False
        if counters[SEEN] == 0:
            begin_stream(stream, X[r])
        if missing is not None and state.gaps.shape[0] > 0:
            add_some(stream, state.gaps, state.blocks[counters[s.POINTER], s.NOISE], X[r])
        else:
            add_row(stream[s.SUM], stream[s.SQUARES], stream[s.FOURTHS], stream[s.BEFORE], stream[s.REFERENCE], x)
        if counters[s.COORDINATES] == UNDECIDED:
            learn_magnitudes(state.columns, X[r])
        elif counters[s.COORDINATES] == COLUMNS and counters[s.AGE] == 0:
            begin_columns(state, settings)
        elif counters[s.COORDINATES] == COLUMNS:
            wake_columns(state.columns, X[r], settings.rounding)
        winners[r] = REJECTED
        if counters[s.ALARM] > 0:
            counters[s.ALARM] += 1
        elif (scale > 0.0 or counters[s.COORDINATES] == COLUMNS) and has_reading and counters[s.DOUBT] == 0:
            label = labels[r] if labels.shape[0] else UNKNOWN
            winners[r] = place(state, settings, x, scale, matched, label, votes, refusing)
        counters[s.ROWS] += 1
        if counters[s.ROWS] == settings.batch:
            close_batch(state, settings, missing)
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


@kernel
def learn_labelled(
    state: AdaptiveState,
    settings: AdaptiveSettings,
    X: FloatArray,
    winners: IntArray,
    labels: IntArray,
    votes: IntArray,
    refusing: bool,
) -> int:
    """Learn rows as :func:`learn` does, and count ``votes``: merges go by them, and slots may be ``refusing``."""
    return learn_rows(state, settings, X, winners, labels, votes, refusing, True)


@kernel
def learn_bounded(state: AdaptiveState, settings: AdaptiveSettings, X: FloatArray, winners: IntArray) -> int:
    """Learn rows as :func:`learn` does, and merge units where there would be more than ``max_units``."""
    return learn_rows(state, settings, X, winners, winners[:0], np.empty((0, 0), np.int64), False, True)


@kernel_in_place
def learn(state: AdaptiveState, settings: AdaptiveSettings, X: FloatArray, winners: IntArray) -> int:
    """Learn rows without labels, gaps or a bound."""
    return learn_rows(state, settings, X, winners, winners[:0], None, False, None)


@kernel_in_place
def learn_with_gaps(state: AdaptiveState, settings: AdaptiveSettings, X: FloatArray, winners: IntArray) -> int:
    """Learn rows as :func:`learn` does, where readings may be missing."""
    return learn_rows(state, settings, X, winners, winners[:0], None, False, True)
