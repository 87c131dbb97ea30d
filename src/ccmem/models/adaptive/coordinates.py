"""Coordinates in which slots compete: directions, or columns in units of their own spread. Compiled.

    columns       z = (x - centre) / spread,   dissimilarity = |z - z_unit|^2 / 2
    directions    x' = x / |x|,                dissimilarity = 1 - x' . unit

Centre and spread are those of the latest 512 rows or so, shared by all blocks, and updated once per batch. In columns,
a unit is a mean of rows in the units of the data, and is converted when it is compared, so that old units follow every
change of scale. Columns that share a unit, such as pixels, are compared by direction, because brightness says little
there and rare pixels would count most. At least 32 columns with largest values of similar size are taken to share a
unit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ccmem.base import matching
from ccmem.base.validation import check_finite
from ccmem.core.state import SEEN, UNITS
from ccmem.core.typing import BoolArray, FloatArray, IntArray
from ccmem.kernels.competition import distances, dot, squared_distance
from ccmem.kernels.jit import kernel_apart, kernel_in_place
from ccmem.models.adaptive import state as s

UNDECIDED, COLUMNS, DIRECTIONS = range(3)
"""Values of ``counters[s.COORDINATES]``; directions are used until a decision."""
CENTRE, VARIANCE, INVERSE, N_COLUMNS = range(4)
"""Rows of ``columns``: running mean, running variance (-1 without a reading), and 1 / spread (0 for a constant column).
Only zeros where directions are compared."""
LARGEST = INVERSE
"""Row of ``columns`` while coordinates are undecided: largest magnitude so far."""
FEW_COLUMNS = 32
"""Fewer columns than this are never taken to share a unit."""
DECIDE_AT = 256
"""Rows after which a wide stream decides on its coordinates."""
SHARED_UNIT = 0.6
"""Standard deviation of log10 of the columns' largest magnitudes, below which they share a unit."""
EMPTY = 1e-12
"""Largest magnitude, relative to that of all columns, below which a column counts as always 0: networks leave such
rounding errors in features that they do not use."""
SPAN = 32.0
"""Memory of centre and spread, in batches. Longer memories were worse on the electricity stream (.796, .783, .773 for
500, 2,000 and 10,000 rows)."""
LEAST_SPREAD = 0.05
"""Smallest spread of a column, relative to its largest in any block: a column at rest must not decide alone."""
FAR = 1e30
"""Largest coordinate: sums of squares must stay finite."""
_ROWS_AT_ONCE = 4096


def first_coordinates(normalise: str, n_features: int) -> int:
    """Return the coordinates that a stream begins with."""
    if normalise == "auto":
        return COLUMNS if n_features < FEW_COLUMNS else UNDECIDED
    return COLUMNS if normalise == "columns" else DIRECTIONS


@kernel_apart
def convert(columns: FloatArray, x: FloatArray, z: FloatArray) -> None:
    """Set ``z`` to the coordinates of a row or a unit, at most FAR from 0."""
    for j in range(z.shape[0]):
        z[j] = min(max((x[j] - columns[CENTRE, j]) * columns[INVERSE, j], -FAR), FAR)


def in_columns(columns: FloatArray, X: FloatArray) -> FloatArray:
    """Return the coordinates of rows or units; missing readings stay NaN."""
    return np.clip((X.astype(np.float64) - columns[CENTRE]) * columns[INVERSE], -FAR, FAR)


def nearest_in_columns(
    columns: FloatArray, X: FloatArray, prototypes: FloatArray, competes: BoolArray, winners: IntArray
) -> None:
    """Find the nearest competing unit of every row, as :func:`ccmem.base.matching.nearest` does."""
    check_finite(X)
    units = in_columns(columns, prototypes)
    for start in range(0, len(X), _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        matching.nearest(in_columns(columns, X[part]), units, competes, 2.0, winners[part])


@kernel_in_place
def nearest_to_row(columns: FloatArray, x: FloatArray, prototypes: FloatArray, units: int, scratch: FloatArray) -> int:
    """Return the nearest of the first ``units`` units of one row; -1 if a reading is missing."""
    best, least = -1, np.inf
    if not dot(x, x) < np.inf:
        return best
    convert(columns, x, scratch[0])
    for unit in range(units):
        convert(columns, prototypes[unit], scratch[1])
        far = squared_distance(scratch[0], scratch[1])
        if far < least:
            best, least = unit, far
    return best


@kernel_in_place
def distances_of_row(
    columns: FloatArray, x: FloatArray, prototypes: FloatArray, scratch: FloatArray, out: FloatArray
) -> bool:
    """Set ``out[0]`` to the distances of one row to all units; return False if a reading is missing."""
    if not dot(x, x) < np.inf:
        return False
    convert(columns, x, scratch[0])
    for unit in range(prototypes.shape[0]):
        convert(columns, prototypes[unit], scratch[1])
        out[0, unit] = math.sqrt(squared_distance(scratch[0], scratch[1]))
    return True


def distances_in_columns(columns: FloatArray, X: FloatArray, prototypes: FloatArray) -> FloatArray:
    """Return the distance of every row to every unit; missing readings are as far as the others on average."""
    rows, units = in_columns(columns, X), in_columns(columns, prototypes)
    there = ~np.isnan(rows)
    if there.all():
        out = np.empty((len(rows), len(units)))
        matching.in_slabs(lambda part: distances(rows[part], units, 2.0, out[part]), len(rows), len(rows) * units.size)
        return out
    rows, known = np.where(there, rows, 0.0), there.astype(np.float64)
    squares = (rows * rows).sum(axis=1)[:, np.newaxis] - 2.0 * (rows @ units.T) + known @ (units * units).T
    share = np.maximum(known.sum(axis=1, keepdims=True), 1.0) / there.shape[1]
    found: FloatArray = np.sqrt(np.maximum(squares, 0.0) / share)
    return found


@kernel_in_place
def squared_apart(inverse: FloatArray, a: FloatArray, b: FloatArray) -> float:
    """Return the squared distance of rows or units in units of the spread; four sums hide the delay of additions."""
    n, one, two, three, four = a.shape[0], 0.0, 0.0, 0.0, 0.0
    whole = n - n % 4
    for j in range(0, whole, 4):
        first = (np.float64(a[j]) - b[j]) * inverse[j]
        second = (np.float64(a[j + 1]) - b[j + 1]) * inverse[j + 1]
        third = (np.float64(a[j + 2]) - b[j + 2]) * inverse[j + 2]
        fourth = (np.float64(a[j + 3]) - b[j + 3]) * inverse[j + 3]
        one += first * first
        two += second * second
        three += third * third
        four += fourth * fourth
    for j in range(whole, n):
        first = (np.float64(a[j]) - b[j]) * inverse[j]
        one += first * first
    return min((one + two) + (three + four), FAR * FAR)


@kernel_in_place
def dissimilarity(state: Any, a: int, b: int) -> float:
    """Return the dissimilarity of two units."""
    if state.counters[s.COORDINATES] == COLUMNS:
        return 0.5 * squared_apart(state.columns[INVERSE], state.prototypes[a], state.prototypes[b])
    return max(0.0, 1.0 - dot(state.prototypes[a], state.prototypes[b]))


@kernel_in_place
def set_inverse(state: Any, settings: Any) -> None:
    """Compute 1 / spread of every column; 0 for a column that varies less than its precision."""
    columns, own, largest = state.columns, state.counters[s.POINTER], state.scratch[s.OTHERS]
    if state.scratch[s.OTHERS_OF, 0] != own + 1:  # other blocks do not change while a block is in use
        state.scratch[s.OTHERS_OF, 0] = own + 1
        for j in range(columns.shape[1]):
            largest[j] = 0.0
        for k in range(state.counters[s.BLOCKS]):
            for j in range(columns.shape[1]):
                if k != own and state.blocks[k, s.NOISE, j] >= 0.0:
                    largest[j] = max(largest[j], variance_in(state.blocks[k], settings, j))
    for j in range(columns.shape[1]):
        most = largest[j]
        if state.blocks[own, s.NOISE, j] >= 0.0:
            most = max(most, variance_in(state.blocks[own], settings, j))
        variance = max(columns[VARIANCE, j], LEAST_SPREAD * LEAST_SPREAD * most)
        least = settings.rounding * columns[CENTRE, j] * columns[CENTRE, j] + s.TINY
        columns[INVERSE, j] = 1.0 / math.sqrt(variance) if variance > least else 0.0


@kernel_in_place
def variance_in(block: FloatArray, settings: Any, j: Any) -> float:
    """Return the variance of a column's rows in a block."""
    variance: float = settings.batch * block[s.NOISE, j] + block[s.SWAY, j]
    return variance


def without_inverse(state: Any, settings: Any) -> FloatArray:
    """Return a copy of ``columns`` for a file; zeros in place of 1 / spread if it follows from the rest."""
    kept: FloatArray = state.columns.copy()
    set_inverse(state, settings)
    follows = np.array_equal(kept[INVERSE], state.columns[INVERSE])
    state.columns[INVERSE] = kept[INVERSE]
    if follows:
        kept[INVERSE] = 0.0
    return kept


@kernel_in_place
def wake_columns(columns: FloatArray, x: FloatArray, rounding: float) -> None:
    """Let the first deviation of a constant column be its spread until the batch is full."""
    for j in range(x.shape[0]):
        if columns[INVERSE, j] == 0.0 and columns[VARIANCE, j] >= 0.0:
            away = abs(x[j] - columns[CENTRE, j])
            if away * away > rounding * columns[CENTRE, j] * columns[CENTRE, j] + s.TINY:
                columns[INVERSE, j] = 1.0 / away


@kernel_in_place
def begin_columns(state: Any, settings: Any) -> None:
    """Estimate spreads from the rows of the first batch so far, each column's scatter being its variance."""
    columns, stream, scatter = state.columns, state.stream, 0.0
    for j in range(columns.shape[1]):
        columns[CENTRE, j] = stream[s.REFERENCE, j]
        columns[VARIANCE, j] = stream[s.SQUARES, j] / (2.0 * (state.counters[s.ROWS] + 1))
    set_inverse(state, settings)
    for j in range(columns.shape[1]):
        columns[VARIANCE, j] = -1.0
        scatter += columns[INVERSE, j] > 0.0
    state.scalars[s.SCATTER] = max(scatter, 1.0)


@kernel_in_place
def learn_magnitudes(columns: FloatArray, x: FloatArray) -> None:
    """Keep the largest magnitude of every column; missing readings are not larger."""
    for j in range(x.shape[0]):
        if abs(x[j]) > columns[LARGEST, j]:
            columns[LARGEST, j] = abs(x[j])


@kernel_in_place
def learn_columns(state: Any, settings: Any) -> None:
    """Move centres and variances towards the newest batch, whose features are in ``stream``.

    The variance is that of rows within batches (half the mean squared step) plus that of batches.
    """
    if state.counters[s.COORDINATES] == DIRECTIONS:
        return
    columns, stream, batches = state.columns, state.stream, (state.counters[SEEN] + 1) // settings.batch
    gain = 1.0 / min(float(batches), SPAN)
    for j in range(columns.shape[1]):
        if state.gaps.shape[0] > 0 and state.gaps[s.HAS_BATCH, j] == 0.0:
            continue
        mean, within = stream[s.SUM, j], stream[s.SQUARES, j] * stream[s.SQUARES, j]
        if columns[VARIANCE, j] < 0.0:
            columns[CENTRE, j], columns[VARIANCE, j] = mean, within
            if batches > 1 and state.counters[s.COORDINATES] == COLUMNS:  # units know nothing of the column yet
                for unit in range(state.counters[UNITS]):
                    state.prototypes[unit, j] = mean
            continue
        away = mean - columns[CENTRE, j]
        columns[CENTRE, j] += gain * away
        columns[VARIANCE, j] += gain * (within + (1.0 - gain) * away * away - columns[VARIANCE, j])
    if state.counters[s.COORDINATES] == COLUMNS:
        set_inverse(state, settings)
    elif state.counters[SEEN] + 1 >= DECIDE_AT:
        decide_coordinates(state, settings)


@kernel_in_place
def decide_coordinates(state: Any, settings: Any) -> None:
    """Choose between columns and directions by the largest magnitudes."""
    columns, counters = state.columns, state.counters
    n, total, squares, largest = 0.0, 0.0, 0.0, 0.0
    for j in range(columns.shape[1]):
        largest = max(largest, columns[LARGEST, j])
    for j in range(columns.shape[1]):
        if columns[LARGEST, j] > EMPTY * largest:
            size = math.log10(columns[LARGEST, j])
            n, total, squares = n + 1.0, total + size, squares + size * size
    shared = n == 0.0 or squares / n - (total / n) * (total / n) < SHARED_UNIT * SHARED_UNIT
    if not shared:
        begin_in_columns(state, settings)
        return
    counters[s.COORDINATES] = DIRECTIONS
    for row in range(N_COLUMNS):
        for j in range(columns.shape[1]):
            columns[row, j] = 0.0


@kernel_in_place
def begin_in_columns(state: Any, settings: Any) -> None:
    """Convert from directions to columns: units of a block get the length of its rows."""
    columns, counters = state.columns, state.counters
    counters[s.COORDINATES] = COLUMNS
    set_inverse(state, settings)
    for block in range(counters[s.BLOCKS]):
        variance, square = moments(columns, state.blocks[block], settings.batch, False)
        length = state.prototypes.dtype.type(math.sqrt(variance + square))
        for unit in range(counters[UNITS]):
            if state.unit_blocks[unit] == block:
                for j in range(columns.shape[1]):
                    state.prototypes[unit, j] *= length


@kernel_in_place
def moments(columns: FloatArray, block: FloatArray, batch: int, scaled: bool) -> tuple[float, float]:
    """Return variance and squared level of a block, summed over its columns (``scaled``: in units of their spread)."""
    variance = square = 0.0
    for j in range(block.shape[1]):
        if block[s.NOISE, j] >= 0.0:
            weight = columns[INVERSE, j] * columns[INVERSE, j] if scaled else 1.0
            variance += weight * (batch * block[s.NOISE, j] + block[s.SWAY, j])
            square += weight * block[s.LEVEL, j] * block[s.LEVEL, j]
    return variance, square


@kernel_in_place
def scatter_of(columns: FloatArray, block: FloatArray, batch: int, by_distance: bool) -> float:
    """Return the estimated scatter of rows in a block: their mean squared distance from the mean.

    For directions, this is the variance over the mean square of rows.
    """
    variance, square = moments(columns, block, batch, by_distance)
    return variance if by_distance else variance / max(variance + square, s.TINY)
