"""Discriminant rule derived from the statistics, in a form that takes few products per row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from ccmem.core.typing import FloatArray
from ccmem.readout._statistics import Statistics, largest_axes
from ccmem.readout.packed import factor_covariance, solved

SCORED_TOGETHER = 64
"""Number of rows scored per matrix product."""


class Rule(NamedTuple):
    """Scores bias - 2 b.x - |G x - h|^2 of every class, lower is better; x is relative to ``centre``."""

    centre: FloatArray
    weights: FloatArray
    """Per class, the vector b followed by the rows of G."""
    shifts: FloatArray
    """Per class, the vector h."""
    bias: FloatArray


def make_rule(state: Statistics, own_share: float, ridge: float) -> Rule:
    """Return the rule of ``state``, a copy with an empty buffer whose arrays are reused by the rule.

    A class with n rows gets its own covariance with weight n / (n + n_axes), because few rows determine few directions;
    the remaining weight goes to the covariance shared by all classes.
    """
    counts, classes = state.counts, state.classes
    n_classes, n_axes, d = len(counts), classes.shape[1] - 1, classes.shape[2]
    total = max(int(counts.sum()), 1)
    centre = (counts @ classes[:, 0].astype(np.float64) / total).astype(np.float32)
    common, two = np.zeros((n_axes, d), np.float32), np.empty((2 * n_axes, d), np.float32)
    for c in range(n_classes):
        two[:n_axes], two[n_axes:] = common, classes[c, 1:]
        largest_axes(two, common)
    common /= np.float32(np.sqrt(total))
    spread = factor_covariance(state.scatter, d, total, 1.0 - own_share, ridge)
    shifts, bias = np.zeros((n_classes, n_axes), np.float32), np.full(n_classes, np.inf)
    for c in np.flatnonzero(counts).tolist():
        both, n = classes[c], int(counts[c])
        both[0] -= centre
        known = n / (n + n_axes)
        np.multiply(both[1:], np.float32(np.sqrt(known / n)), out=two[:n_axes])
        np.multiply(common, np.float32(np.sqrt(1.0 - known)), out=two[n_axes:])
        largest_axes(two, both[1:])
        both[1:] *= np.float32(np.sqrt(own_share))
        both /= np.float32(spread)
        mean = both[0].astype(np.float64)
        half = solved(state.scatter, both.T)
        small = np.linalg.cholesky(np.eye(n_axes) + _products(half[:, 1:]))
        half[:, 1:] = half[:, 1:] @ solve_triangular(small, np.eye(n_axes), lower=True).T.astype(np.float32)
        both[:] = solved(state.scatter, half, transposed=True).T
        del half  # free memory before the next array is allocated
        shifts[c] = both[1:] @ mean
        bias[c] = mean @ both[0] + 2.0 * np.log(np.diag(small)).sum()
        both /= np.float32(spread)
    return Rule(centre, classes.reshape(-1, d), shifts, bias)


def _products(columns: FloatArray) -> FloatArray:
    """Return the products of columns, summed in double precision, a few rows at a time."""
    parts = (columns[k : k + SCORED_TOGETHER].astype(np.float64) for k in range(0, len(columns), SCORED_TOGETHER))
    return np.sum([part.T @ part for part in parts], axis=0)


def scores(rule: Rule, X: FloatArray) -> FloatArray:
    """Return the score of every class for every row: -2 log likelihood, up to a constant common to all classes."""
    n_classes, n_axes = rule.shifts.shape
    found = np.empty((len(X), n_classes))
    for start in range(0, len(X), SCORED_TOGETHER):
        part = slice(start, start + SCORED_TOGETHER)
        products = ((X[part] - rule.centre) @ rule.weights.T).reshape(-1, n_classes, 1 + n_axes)
        off = products[:, :, 1:] - rule.shifts
        found[part] = rule.bias - 2.0 * products[:, :, 0] - np.einsum("rck,rck->rc", off, off)
    return found
