"""Centre and spread of every column over the latest rows, in which slots compete. Compiled."""

from __future__ import annotations

import math
from typing import Any

from ccmem.base.normalised import CENTRE, INVERSE, VARIANCE
from ccmem.core.state import SEEN
from ccmem.core.typing import FloatArray
from ccmem.kernels.jit import kernel_in_place
from ccmem.models.adaptive import state as s

SPAN = 32.0
"""Memory of centre and spread, in batches. Longer memories were worse on the electricity stream (.796, .783, .773 for
500, 2,000 and 10,000 rows)."""
LEAST_SPREAD = 0.05
"""Smallest spread of a column, relative to its largest in any block: a column at rest must not decide alone."""


@kernel_in_place
def inverse_of(variance: float, centre: float, rounding: float) -> float:
    """Return 1 / spread; 0 for a column that varies less than its precision."""
    return 1.0 / math.sqrt(variance) if variance > rounding * centre * centre + s.TINY else 0.0


@kernel_in_place
def begin_columns(state: Any, settings: Any) -> None:
    """Estimate spreads from the rows of the first batch so far, each column's scatter being its variance."""
    columns, scatter = state.stream[s.COLUMN_ROWS :], 0.0
    for j in range(columns.shape[1]):
        columns[CENTRE, j] = state.stream[s.REFERENCE, j]
        variance = state.stream[s.SQUARES, j] / (2.0 * (state.counters[s.ROWS] + 1))
        columns[INVERSE, j] = inverse_of(variance, columns[CENTRE, j], settings.rounding)
        scatter += columns[INVERSE, j] > 0.0
    state.scalars[s.SCATTER] = max(scatter, 1.0)


@kernel_in_place
def follow_row(state: Any, settings: Any, x: FloatArray) -> None:
    """Let a row set what does not wait for its batch: largest magnitudes until coordinates are chosen, the spread of
    all columns in the first batch, and that of a constant column at its first deviation."""
    columns, counters = state.stream[s.COLUMN_ROWS :], state.counters
    if counters[s.COORDINATES] == s.UNDECIDED:
        for j in range(x.shape[0]):
            if abs(x[j]) > columns[INVERSE, j]:  # false for a missing reading
                columns[INVERSE, j] = abs(x[j])
    elif counters[s.COORDINATES] == s.COLUMNS and counters[s.AGE] == 0:
        begin_columns(state, settings)
    elif counters[s.COORDINATES] == s.COLUMNS:
        for j in range(x.shape[0]):
            if columns[INVERSE, j] == 0.0 and columns[VARIANCE, j] >= 0.0:
                away = abs(x[j] - columns[CENTRE, j])
                if away * away > settings.rounding * columns[CENTRE, j] * columns[CENTRE, j] + s.TINY:
                    columns[INVERSE, j] = 1.0 / away


@kernel_in_place
def learn_columns(state: Any, settings: Any) -> None:
    """Move centres and variances towards the newest batch, whose features are in ``stream``.

    The variance is that of rows within batches (half the mean squared step) plus that of batches.
    """
    stream, columns, gaps = state.stream, state.stream[s.COLUMN_ROWS :], state.stream[s.N_STREAM :]
    gain = 1.0 / min(float(state.counters[SEEN] // settings.batch), SPAN)
    for j in range(columns.shape[1]):
        if gaps.shape[0] == 0 or gaps[s.HAS_BATCH, j] > 0.0:
            within, away = stream[s.SQUARES, j] * stream[s.SQUARES, j], stream[s.SUM, j] - columns[CENTRE, j]
            columns[CENTRE, j] += gain * away
            columns[VARIANCE, j] += gain * (within + (1.0 - gain) * away * away - columns[VARIANCE, j])
    if state.counters[s.COORDINATES] == s.COLUMNS:
        set_inverse(state, settings)


@kernel_in_place
def set_inverse(state: Any, settings: Any) -> None:
    """Compute 1 / spread of every column."""
    columns, block = state.stream[s.COLUMN_ROWS :], state.blocks[state.counters[s.POINTER]]
    for j in range(columns.shape[1]):
        most = max(state.scratch[s.OTHERS, j], variance_in(block, settings.batch, j))
        variance = max(columns[VARIANCE, j], LEAST_SPREAD * LEAST_SPREAD * most)
        columns[INVERSE, j] = inverse_of(variance, columns[CENTRE, j], settings.rounding)


@kernel_in_place
def variance_in(block: FloatArray, batch: int, j: Any) -> float:
    """Return the variance of a column's rows in a block; 0 if it has had no reading."""
    known = block[s.NOISE, j] >= 0.0
    return batch * block[s.NOISE, j] + block[s.SWAY, j] if known else 0.0


@kernel_in_place
def scatter_of(state: Any, settings: Any) -> float:
    """Return the estimated scatter of rows in the block in use: their mean squared distance from the mean.

    For directions, this is the variance over the mean square of rows.
    """
    block, by_distance = state.blocks[state.counters[s.POINTER]], state.counters[s.COORDINATES] == s.COLUMNS
    inverse, variance, square = state.stream[s.COLUMN_ROWS + INVERSE], 0.0, 0.0
    for j in range(block.shape[1]):
        weight = inverse[j] * inverse[j] if by_distance else 1.0
        variance += weight * variance_in(block, settings.batch, j)
        square += weight * block[s.LEVEL, j] * block[s.LEVEL, j] if block[s.NOISE, j] >= 0.0 else 0.0
    return variance if by_distance else variance / max(variance + square, s.TINY)
