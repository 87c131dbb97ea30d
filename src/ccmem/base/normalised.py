"""Competition in normalised columns: z = (x - centre) / spread, for streams whose columns have different units.

Units stay in the units of the data and are converted when they are compared, so that old units follow every change of
scale. Columns that share a unit, such as pixels, are compared by direction instead (:func:`share_unit`), because
brightness says little there and rare pixels would count most.
"""

from __future__ import annotations

import numpy as np

from ccmem.base import matching
from ccmem.base.validation import check_finite
from ccmem.core.typing import BoolArray, FloatArray, IntArray
from ccmem.kernels.competition import distances, dot, squared_distance
from ccmem.kernels.jit import kernel_apart, kernel_in_place

CENTRE, VARIANCE, INVERSE = range(3)
"""Rows of ``columns``: running mean, running variance (-1 without a reading), and 1 / spread (0 for a constant column).
"""
FAR = 1e30
"""Largest coordinate: sums of squares must stay finite."""
FEW_COLUMNS = 32
"""Fewer columns than this are never taken to share a unit."""
SHARED_UNIT = 0.6
"""Standard deviation of log10 of the columns' largest magnitudes, below which they share a unit."""
EMPTY = 1e-12
"""Largest magnitude, relative to that of all columns, below which a column counts as always 0: networks leave such
rounding errors in features that they do not use."""
_ROWS_AT_ONCE = 4096


def share_unit(sizes: FloatArray) -> bool:
    """Return True if columns share a unit, as pixels do, judged by the spread of their largest magnitudes."""
    logarithms = np.log10(sizes[sizes > EMPTY * sizes.max()])
    return len(sizes) >= FEW_COLUMNS and (not len(logarithms) or float(logarithms.std()) < SHARED_UNIT)


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


def cosines_of(X: FloatArray, prototypes: FloatArray) -> FloatArray:
    """Return the similarity of every row to every unit by the readings that are there; 0 if there is none."""
    there = ~np.isnan(X)
    rows, units = np.where(there, X, 0.0).astype(np.float64), prototypes.astype(np.float64)
    lengths = np.sqrt((rows * rows).sum(axis=1))[:, np.newaxis] * np.sqrt(there.astype(np.float64) @ (units * units).T)
    return np.divide(rows @ units.T, lengths, out=np.zeros_like(lengths), where=lengths > 0.0)


@kernel_apart
def _convert(columns: FloatArray, x: FloatArray, z: FloatArray) -> None:
    for j in range(z.shape[0]):
        z[j] = min(max((x[j] - columns[CENTRE, j]) * columns[INVERSE, j], -FAR), FAR)


@kernel_in_place
def squares_of_row(
    columns: FloatArray, x: FloatArray, prototypes: FloatArray, scratch: FloatArray, out: FloatArray
) -> bool:
    """Set ``out`` to the squared distances of one row to all units; return False if a reading is missing."""
    if not dot(x, x) < np.inf:
        return False
    _convert(columns, x, scratch[0])
    for unit in range(prototypes.shape[0]):
        _convert(columns, prototypes[unit], scratch[1])
        out[unit] = squared_distance(scratch[0], scratch[1])
    return True


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
