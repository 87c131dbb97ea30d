"""Sums of rows, and features of batches. Compiled.

A batch becomes two features per column: its mean, and its spread (root of half the mean squared step). The features of
the newest batch replace its sums until the batch enters the ring of the latest eight.
"""

from __future__ import annotations

import math

import numpy as np

from ccmem.core.typing import FloatArray
from ccmem.kernels.jit import kernel_apart, kernel_in_place
from ccmem.models.adaptive import state as s

_LARGEST_STEP = 1e140
"""Cap on a squared step: its square must be finite."""


@kernel_apart
def add_row(
    total: FloatArray, squares: FloatArray, fourths: FloatArray, before: FloatArray, reference: FloatArray,
    x: FloatArray,
) -> None:  # fmt: skip
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
    readings = 0
    for j in range(x.shape[0]):
        there = x[j] == x[j]
        filled[j] = x[j] if there else reference[j]
        readings += there
    return readings > 0


@kernel_apart
def describe(
    total: FloatArray, squares: FloatArray, fourths: FloatArray, before: FloatArray, reference: FloatArray,
    readings: FloatArray,
) -> None:  # fmt: skip
    """Replace the sums of a batch by its features: mean, spread, and the error variance of the spread.

    The error of the spread is more than normal where few steps make up the sum.
    """
    for j in range(total.shape[0]):
        n = max(readings[j], 1.0)  # a column without readings repeats an earlier batch
        variance = squares[j] / (2.0 * n)
        mean = reference[j] + total[j] / n
        steps = 4.0 * n * n * variance * variance / max(fourths[j], s.TINY)
        share = max(0.5 / n, min(1.0, (1.0 - steps / n) / (4.0 * max(steps - 2.0, 0.01))))
        fourths[j] = variance * (share if variance > 0.0 else 0.5 / n)
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
def columns_wait(gaps: FloatArray, one: FloatArray, noise: FloatArray, full: bool, batch: int) -> int:
    """Return the status of the kernel if columns are lost or back in a full batch, or have their first one; or 0."""
    for j in range(noise.shape[0]):
        if gaps.shape[0] == 0 or not full:
            if noise[j] < 0.0 and (gaps.shape[0] == 0 or gaps[s.HAS_BATCH, j] > 0.0):
                return s.STARTING
        elif gaps[s.LOST, j] > 0.0:
            if gaps[s.READINGS, j] > 0.0:
                return s.LOSING
        elif one[j] > 0.0 and gaps[s.GAP, j] > s.LOST_AFTER * batch + 3.0 * gaps[s.LONGEST, j]:
            return s.LOSING
    return 0
