"""Readings that are missing (NaN), and columns that fall silent.

A row is worked with as if a missing reading were what its column is expected to have now: the reference R of the
stream, 0 before the first reading. So direction and slots see nothing unusual. A row without any reading counts as a
row and teaches nothing.

Columns go by the readings they have. A batch gives features of a column if there are at least half a batch of readings
since the last ones; otherwise they wait for the next batch, and the column is *silent* in this one: it is no
evidence, nothing is learned of it, and it takes no part in what fits a block. So a sensor read every tenth row is heard
every fifth batch. Steps lead from one reading to the next, however many rows are between. A block that begins while a
column is silent does not know its level; the first feature is the level then. The first that a column ever gives turns
the direction of every row to come, so what is known of directions in the block in use begins anew.

A column without a single reading in L batches in a row is *lost*: by chance it would be once in ``false_alarm_every``
rows. Of n batches, g began such a gap, and m were part of one that ended:

    d (g + 1) / n  q^(L - 1)  <=  b / N,   q = (m - g + 1) / (m + 2)

It is *back* with its next reading. Both are told as events; they change no block.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem._typing import FloatArray
from ccmem.kernels.competition import dot
from ccmem.kernels.jit import kernel_in_place
from ccmem.memory import COLUMN_BACK, COLUMN_LOST, SEEN, aligned_zeros, note
from ccmem.models._blocks import POINTER
from ccmem.models.adaptive.batches import mean_and_spread
from ccmem.models.adaptive.columns import (
    BEFORE,
    CARRY,
    DIRECTION,
    ECHO,
    ERROR,
    FOURTHS,
    HOME,
    LEVEL,
    N_KNOWN,
    N_RUNNING,
    N_SLOT,
    NOISE,
    OUTLIER,
    REACH,
    REFERENCE,
    RING,
    RUNNING,
    SILENT,
    SQUARES,
    SUM,
    SWAY,
    unknown,
)

ABSENT, UNHEARD, STREAK, TAIL, LOST, GAPS, GONE, WAITING, KEPT = range(9)
"""Rows of ``missing``: readings missing in the batch being filled; whether there was none yet; batches without a
reading up to now, and readings missing in the one before; whether that was told; g and m; readings of earlier batches
that wait for more, then their sums (as the first rows of ``readings``)."""
N_MISSING = KEPT + 3


@kernel_in_place
def all_there(x: FloatArray) -> bool:
    """Whether no reading of a row is missing."""
    squared = dot(x, x)
    return bool(squared == squared)  # NaN is not itself


@kernel_in_place
def fill(readings: FloatArray, x: FloatArray, filled: FloatArray) -> bool:
    """``x`` with what is expected in place of what is missing; whether there is any reading at all."""
    reference, heard = readings[RUNNING + REFERENCE], False
    for j in range(x.shape[0]):
        if x[j] == x[j]:
            filled[j] = x[j]
            heard = True
        else:
            filled[j] = reference[j]
    return heard


@kernel_in_place
def read_some(
    readings: FloatArray, missing: FloatArray, x: FloatArray, filled: FloatArray, scale: float, first: bool, anew: bool
) -> None:
    """As :func:`ccmem.models.adaptive.batches.read`, for a row in which readings may be missing."""
    reference, before = readings[RUNNING + REFERENCE], readings[BEFORE]
    for j in range(x.shape[0]):
        value = np.float64(x[j])
        heard = value == value
        if first:
            for row in range(SUM, BEFORE):
                readings[row, j] = 0.0
            readings[DIRECTION, j] = missing[ABSENT, j] = 0.0
            if anew and heard:
                reference[j] = before[j] = value
        readings[DIRECTION, j] += scale * np.float64(filled[j])
        if not heard:
            missing[ABSENT, j] += 1.0
            continue
        if missing[UNHEARD, j] > 0.0:
            before[j], missing[UNHEARD, j] = value, 0.0
        step = value - before[j]
        before[j] = value
        step *= step
        readings[SUM, j] += value - reference[j]
        readings[SQUARES, j] += step
        readings[FOURTHS, j] += step * step


@kernel_in_place
def close_some(readings: FloatArray, missing: FloatArray, ring: FloatArray, slot: int, n: float) -> None:
    """As :func:`ccmem.models.adaptive.batches.close`; a silent column keeps its last features, of no weight."""
    first, last = N_SLOT * slot, N_SLOT * ((slot + RING - 1) % RING)
    for j in range(ring.shape[1]):
        ring[first + 4, j] = readings[DIRECTION, j] / n
        count = n - missing[ABSENT, j] + missing[WAITING, j]
        total = readings[SUM, j] + missing[KEPT, j]
        squares = readings[SQUARES, j] + missing[KEPT + 1, j]
        fourths = readings[FOURTHS, j] + missing[KEPT + 2, j]
        if 2.0 * count < n:
            ring[first, j], ring[first + 1, j] = ring[last, j], ring[last + 1, j]
            ring[first + 2, j] = ring[first + 3, j] = SILENT
        else:
            mean, spread, error, spread_error = mean_and_spread(
                total, squares, fourths, readings[RUNNING + REFERENCE, j], count
            )
            ring[first, j], ring[first + 1, j] = mean, spread
            ring[first + 2, j], ring[first + 3, j] = error, spread_error
            count = total = squares = fourths = 0.0
        missing[WAITING, j], missing[KEPT, j], missing[KEPT + 1, j], missing[KEPT + 2, j] = (
            count, total, squares, fourths,
        )  # fmt: skip


@kernel_in_place
def forget_waiting(missing: FloatArray) -> None:
    """Drop the readings that wait: they are from before a change."""
    for row in range(WAITING, missing.shape[0]):
        missing[row] = 0.0


@kernel_in_place
def next_heard(known: FloatArray, batch: FloatArray, first: int) -> tuple[int, int]:
    """The next columns side by side, from ``first`` on, that say something in a batch which the block can compare."""
    start, d = first, batch.shape[1]
    while start < d and (unknown(batch[2, start]) or unknown(known[SWAY, start])):
        start += 1
    stop = start
    while stop < d and not (unknown(batch[2, stop]) or unknown(known[SWAY, stop])):
        stop += 1
    return start, stop


@kernel_in_place
def hear(known: FloatArray, readings: FloatArray, batch: FloatArray, learns: bool) -> bool:
    """Let columns that say something for the first time in this block begin there; whether one never did before."""
    first = False
    for j in range(batch.shape[1]):
        new = known[NOISE, j] == 0.0
        if unknown(batch[2, j]) or not unknown(known[SWAY, j]) or not (learns or new):
            continue
        first = first or new
        known[HOME, j] = batch[0, j]
        for kind in range(2):
            block, running = known[N_KNOWN * kind :], readings[RUNNING + N_RUNNING * kind :]
            if new:  # the others' age says nothing about it
                running[ERROR, j] = running[REACH, j] = OUTLIER * batch[2 + kind, j]
                running[CARRY, j] = running[ECHO, j] = 0.0
            block[LEVEL, j], block[SWAY, j], block[NOISE, j] = batch[kind, j], 0.0, batch[2 + kind, j]
            for k in range(ERROR):
                running[k, j] = 0.0
            running[REFERENCE, j] = batch[kind, j]
    return first


@kernel_in_place
def tally(state: Any, settings: Any) -> None:
    """Count the batches without a reading, and tell of columns that are lost or back."""
    counters, missing, n = state.counters, state.missing, float(settings.batch)
    batches, d = (counters[SEEN] + 1.0) / n, missing.shape[1]
    pointer: Any = counters[POINTER]
    for j in range(d):
        absent = missing[ABSENT, j]
        if missing[UNHEARD, j] > 0.0:
            continue
        if absent == n:
            missing[STREAK, j] += 1.0
            gone, gaps = missing[GONE, j], missing[GAPS, j]
            often = d * (gaps + 1.0) / batches * settings.false_alarm_every / n
            least = 1.0 - np.log(often) / np.log((gone - gaps + 1.0) / (gone + 2.0))
            if missing[LOST, j] == 0.0 and missing[STREAK, j] >= max(least, 2.0):
                missing[LOST, j] = 1.0
                rows: Any = np.int64(missing[STREAK, j] * n + missing[TAIL, j])
                note(counters, state.journal, COLUMN_LOST, j, pointer, rows, settings.batch)
            continue
        if missing[LOST, j] > 0.0:
            back: Any = np.int64(n - absent)
            off: Any = np.int64(absent)
            note(counters, state.journal, COLUMN_BACK, j, pointer, back, off)
        if missing[STREAK, j] > 0.0:
            missing[GAPS, j] += 1.0
            missing[GONE, j] += missing[STREAK, j]
        missing[STREAK, j] = missing[LOST, j] = 0.0
        missing[TAIL, j] = absent


def expecting_gaps(state: Any) -> Any:
    """``state`` with room for what is known of missing readings."""
    if len(state.missing):
        return state
    state = state._replace(missing=aligned_zeros((N_MISSING, state.prototypes.shape[1]), np.float64))
    state.missing[UNHEARD] = state.counters[SEEN] == 0
    return state


def cosines(X: FloatArray, prototypes: FloatArray) -> FloatArray:
    """Similarity of every row to every unit by the readings that are there; 0 if there is none, or nothing but 0."""
    there = ~np.isnan(X)
    rows, units = np.where(there, X, 0.0).astype(np.float64), prototypes.astype(np.float64)
    lengths = np.sqrt((rows * rows).sum(axis=1))[:, np.newaxis] * np.sqrt(there.astype(np.float64) @ (units * units).T)
    return np.divide(rows @ units.T, lengths, out=np.zeros_like(lengths), where=lengths > 0.0)
