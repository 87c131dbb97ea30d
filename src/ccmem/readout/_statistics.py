"""State of a discriminant classifier: counts, means, a few axes per class, one shared scatter matrix.

The scatter matrix is symmetric, so only half of it is stored (:mod:`ccmem.readout.packed`). Rows are collected in a
buffer and added by matrix products when the buffer is full. The buffer is part of the state, so results do not depend
on chunk boundaries.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from ccmem.core.typing import FloatArray, IntArray
from ccmem.readout.packed import add_products, packed_zeros

SEEN, TAUGHT, WAITING, SCORED_AT = range(4)
"""Indices into ``counters``: rows seen, rows with a label, rows in the buffer, TAUGHT when rows were last scored."""
COUNTERS = ("seen", "taught", "waiting", "scored_at")


class Statistics(NamedTuple):
    """Complete learned state; classes are in the order of ``classes_``."""

    counts: IntArray
    classes: FloatArray
    """Per class its mean, then n_axes scaled axes v; the sum of v v' approximates the scatter of the class."""
    scatter: FloatArray
    """Sum over all rows of (x - mean of its class)(x - mean of its class)', packed."""
    buffer: FloatArray
    buffer_codes: IntArray
    calibration: FloatArray
    """Logarithm of the temperature, and its precision: decaying sum of the curvature of the log loss."""
    counters: IntArray


def new_statistics(n_features: int, n_axes: int, buffer_rows: int) -> Statistics:
    return Statistics(
        np.zeros(0, np.int64),
        np.zeros((0, 1 + n_axes, n_features), np.float32),
        packed_zeros(n_features),
        np.zeros((buffer_rows, n_features), np.float32),
        np.zeros(buffer_rows, np.int64),
        np.zeros(2),
        np.zeros(len(COUNTERS), np.int64),
    )


def with_classes(state: Statistics, places: IntArray, n_classes: int) -> Statistics:
    """Return the state extended by classes; ``places`` gives the new indices of the known classes."""
    if n_classes == len(state.counts):
        return state
    counts = np.zeros(n_classes, np.int64)
    classes = np.zeros((n_classes, *state.classes.shape[1:]), np.float32)
    counts[places], classes[places] = state.counts, state.classes
    codes = state.buffer_codes.copy()
    waiting = state.counters[WAITING]
    codes[:waiting] = places[codes[:waiting]]
    return state._replace(counts=counts, classes=classes, buffer_codes=codes)


def take_in_buffer(state: Statistics) -> None:
    """Add the buffered rows to counts, means, axes and scatter, in place."""
    waiting = state.counters[WAITING]
    if waiting == 0:
        return
    rows, codes = state.buffer[:waiting], state.buffer_codes[:waiting]
    present = np.unique(codes)
    deviations = np.empty((waiting + len(present), rows.shape[1]), np.float32)
    done = 0
    for c in present:
        own = rows[codes == c]
        part = deviations[done : done + len(own) + 1]
        n, more = int(state.counts[c]), len(own)
        mean = own.mean(axis=0, dtype=np.float64)
        step = mean - state.classes[c, 0]
        np.subtract(own, mean, out=part[:-1], casting="same_kind")
        part[-1] = step * np.sqrt(n * more / (n + more))  # between-means term
        state.classes[c, 0] += step * (more / (n + more))
        state.counts[c] = n + more
        axes = state.classes[c, 1:]
        largest_axes(np.concatenate([axes, part]), axes)
        done += more + 1
    add_products(state.scatter, deviations)
    state.counters[WAITING] = 0


def largest_axes(rows: FloatArray, axes: FloatArray) -> None:
    """Fill ``axes`` with orthogonal rows whose scatter approximates that of ``rows``; unused axes are 0.

    The axes are computed from the eigenvectors of the small Gram matrix of ``rows``.
    """
    values, vectors, _ = lapack.ssyevd(rows @ rows.T)  # a third of the time of np.linalg.eigh
    keep = min(len(axes), len(values))
    largest = vectors[:, ::-1][:, :keep] * (values[::-1][:keep] > 1e-6 * max(values[-1], 0.0))
    np.matmul(largest.T, rows, out=axes[:keep])
    axes[keep:] = 0
