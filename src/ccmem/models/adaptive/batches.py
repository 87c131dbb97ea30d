"""Sums of rows, features of batches, and columns without readings. Compiled.

A batch becomes two features per column: its mean, and its spread (root of half the mean squared step). The features of
the newest batch replace its sums until the batch enters the ring of the latest eight.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ccmem.core.codes import COLUMN_BACK, COLUMN_LOST
from ccmem.core.typing import FloatArray, IntArray
from ccmem.kernels.jit import kernel_apart, kernel_in_place
from ccmem.kernels.journal import note
from ccmem.models.adaptive import state as s

_LARGEST_STEP = 1e140
"""Cap on a squared step: its square must be finite."""
LOST_AFTER = 8.0
"""Batches without a reading, beyond three times the longest gap so far, after which a column is lost."""


@kernel_apart
def add_row(
    total: FloatArray,
    squares: FloatArray,
    fourths: FloatArray,
    before: FloatArray,
    reference: FloatArray,
    x: FloatArray,
) -> None:
    """Add a row to the sums of a batch."""
    for j in range(x.shape[0]):
        value = np.float64(x[j])
        step = value - before[j]
        step = min(step * step, _LARGEST_STEP)
        total[j] += value - reference[j]
        squares[j] += step
        fourths[j] += step * step
        before[j] = value


@kernel_in_place
def begin_stream(stream: FloatArray, x: FloatArray) -> None:
    """Let the first row of all be the first reference."""
    for j in range(x.shape[0]):
        if x[j] == x[j]:
            stream[s.REFERENCE, j] = stream[s.BEFORE, j] = x[j]


@kernel_in_place
def add_some(stream: FloatArray, gaps: FloatArray, unknown: FloatArray, x: FloatArray) -> None:
    """Add a row in which readings may be missing; a first reading (noise ``unknown``) becomes the reference."""
    for j in range(x.shape[0]):
        value = np.float64(x[j])
        if value != value:
            gaps[s.GAP, j] += 1.0
            continue
        if unknown[j] < 0.0 and gaps[s.READINGS, j] == 0.0:
            stream[s.REFERENCE, j] = stream[s.BEFORE, j] = value
        step = value - stream[s.BEFORE, j]
        step = min(step * step, _LARGEST_STEP)
        stream[s.SUM, j] += value - stream[s.REFERENCE, j]
        stream[s.SQUARES, j] += step
        stream[s.FOURTHS, j] += step * step
        stream[s.BEFORE, j] = value
        gaps[s.READINGS, j] += 1.0
        if gaps[s.LOST, j] == 0.0:
            gaps[s.LONGEST, j] = max(gaps[s.LONGEST, j], gaps[s.GAP, j])
            gaps[s.GAP, j] = 0.0


@kernel_in_place
def fill(reference: FloatArray, x: FloatArray, filled: FloatArray) -> bool:
    """Copy a row, the reference in place of missing readings; return True if there is any reading."""
    has_reading = False
    for j in range(x.shape[0]):
        if x[j] == x[j]:
            filled[j] = x[j]
            has_reading = True
        else:
            filled[j] = reference[j]
    return has_reading


@kernel_in_place
def error_of_spread(variance: float, fourths: float, n: float) -> float:
    """Return the error variance of a spread of ``n`` steps: more than normal where few steps make up the sum."""
    steps = 4.0 * n * n * variance * variance / max(fourths, s.TINY)
    share = max(0.5 / n, min(1.0, (1.0 - steps / n) / (4.0 * max(steps - 2.0, 0.01))))
    return variance * (share if variance > 0.0 else 0.5 / n)


@kernel_apart
def describe(
    total: FloatArray, squares: FloatArray, fourths: FloatArray, before: FloatArray, reference: FloatArray,
    readings: FloatArray,
) -> None:  # fmt: skip
    """Replace the sums of a batch by its features: mean, spread, and the error variance of the spread."""
    for j in range(total.shape[0]):
        n = readings[j]
        variance = squares[j] / (2.0 * n)
        mean = reference[j] + total[j] / n
        fourths[j] = error_of_spread(variance, fourths[j], n)
        total[j] = mean if variance > 0.0 else before[j]  # exactly, if no reading differs from the one before
        squares[j] = math.sqrt(variance)


@kernel_in_place
def finish(
    stream: FloatArray, gaps: FloatArray, readings: FloatArray, missing: bool | None, repeated: int, batch: float
) -> None:
    """Replace the sums of a full batch by its features.

    A column with less than half a batch of readings repeats a batch of the ring, that in slot
    ``repeated``, while its sums wait for more in ``gaps``.
    """
    last = s.BATCHES + 3 * repeated
    for j in range(stream.shape[1]):
        readings[j] = batch
    if missing is not None and gaps.shape[0] > 0:
        for j in range(stream.shape[1]):
            readings[j] = gaps[s.READINGS, j]
            gaps[s.HAS_BATCH, j] = 1.0 if 2.0 * readings[j] >= batch else 0.0
            for row in range(3):
                gaps[s.SUMS + row, j] = stream[s.SUM + row, j] if gaps[s.HAS_BATCH, j] == 0.0 else 0.0
    describe(stream[s.SUM], stream[s.SQUARES], stream[s.FOURTHS], stream[s.BEFORE], stream[s.REFERENCE], readings)
    if missing is not None and gaps.shape[0] > 0:
        for j in range(stream.shape[1]):
            if gaps[s.HAS_BATCH, j] == 0.0:
                for row in range(3):
                    stream[s.SUM + row, j] = stream[last + row, j]
            else:
                gaps[s.READINGS, j] = 0.0


@kernel_in_place
def store(stream: FloatArray, gaps: FloatArray, missing: bool | None, slot: int) -> None:
    """Move the features of the newest batch to a slot of the ring, and begin new sums."""
    first = s.BATCHES + 3 * slot
    for row in range(3):
        for j in range(stream.shape[1]):
            stream[first + row, j], stream[s.SUM + row, j] = stream[s.SUM + row, j], 0.0
            if missing is not None and gaps.shape[0] > 0:
                stream[s.SUM + row, j] = gaps[s.SUMS + row, j]


@kernel_in_place
def row_of(age: int, latest: int) -> int:
    """Return the row of the mean of a batch: 0 for the newest, which is not in the ring yet."""
    if age == 0:
        return s.SUM
    return s.BATCHES + 3 * ((latest + 1 - age) % s.RING)


@kernel_in_place
def begin_new_columns(
    counters: IntArray, stream: FloatArray, block: FloatArray, gaps: FloatArray, batch: float
) -> None:
    """Start columns without earlier readings in the current block at the newest batch."""
    for j in range(stream.shape[1]):
        if block[s.NOISE, j] >= 0.0 or (gaps.shape[0] > 0 and gaps[s.HAS_BATCH, j] == 0.0):
            continue
        new = stream[s.DRIFT, j] == 0.0  # the stream has never had one either
        for f in range(2):
            value = stream[s.SUM + f, j]
            stream[s.REFERENCE + f, j] = stream[s.HOME + f, j] = block[s.LEVEL + f, j] = value
            block[s.SWAY + f, j] = 0.0
            for slot in range(s.RING):
                stream[s.BATCHES + 3 * slot + f, j] = value
            for i in range(s.MEASURED):
                if new:
                    stream[s.DRIFT + s.MEASURED * f + i, j] = 1.0 / (1 << i)
        for slot in range(s.RING):
            stream[s.BATCHES + 3 * slot + 2, j] = stream[s.FOURTHS, j]
        block[s.NOISE, j] = stream[s.SQUARES, j] * stream[s.SQUARES, j] / batch
        block[s.NOISE + 1, j] = stream[s.FOURTHS, j]
        counters[s.AGE] = min(counters[s.AGE], 1)  # a reference of one batch
        counters[s.WATCHED] = min(counters[s.WATCHED], s.RING)  # and a noise of one batch


@kernel_in_place
def report_gaps(state: Any, settings: Any) -> None:
    """Report columns that are lost, or back, at the end of a batch."""
    counters, gaps = state.counters, state.gaps
    pointer: Any = counters[s.POINTER]
    for j in range(gaps.shape[1]):
        rows: Any = np.int64(gaps[s.GAP, j])
        if gaps[s.LOST, j] > 0.0 and gaps[s.READINGS, j] > 0.0:
            back: Any = np.int64(gaps[s.READINGS, j])
            gaps[s.LOST, j], gaps[s.LONGEST, j], gaps[s.GAP, j] = 0.0, max(gaps[s.LONGEST, j], gaps[s.GAP, j]), 0.0
            note(counters, state.journal, COLUMN_BACK, j, pointer, back, settings.batch)
        elif (
            gaps[s.LOST, j] == 0.0
            and state.stream[s.DRIFT, j] > 0.0
            and gaps[s.GAP, j] > LOST_AFTER * settings.batch + 3.0 * gaps[s.LONGEST, j]
        ):
            gaps[s.LOST, j], gaps[s.READINGS, j] = 1.0, 0.0
            for row in range(3):
                state.stream[s.SUM + row, j] = 0.0
            note(counters, state.journal, COLUMN_LOST, j, pointer, rows, 1)
