"""From statistics to answers: the discriminant rule in a form that takes few products per row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from ccmem._typing import FloatArray
from ccmem.kernels.packed import factor_covariance, solved
from ccmem.predictors._statistics import Statistics, largest_axes

_ROWS_AT_ONCE = 64


class Rule(NamedTuple):
    """Score of class c: bias - 2 b.x - |G x - h|^2, the smaller the better; x counts from ``centre``."""

    centre: FloatArray
    weights: FloatArray
    """Per class b, then the rows of G."""
    shifts: FloatArray
    """Per class h."""
    bias: FloatArray


def make_rule(state: Statistics, own_share: float, ridge: float) -> Rule:
    """The rule of ``state``, a copy with an empty buffer that is used up: its arrays become the rule's.

    With few rows a class has seen few directions of its own: n of them count n / (n + n_axes), the rest is what classes
    have in common.
    """
    counts, classes = state.counts, state.classes
    n_classes, n_axes, d = len(counts), classes.shape[1] - 1, classes.shape[2]
    total = max(int(counts.sum()), 1)
    centre = (counts @ classes[:, 0].astype(np.float64) / total).astype(np.float32)
    common = np.zeros((n_axes, d), np.float32)
    for c in range(n_classes):
        common = largest_axes(np.concatenate([common, classes[c, 1:]]), n_axes)
    common /= np.float32(np.sqrt(total))
    spread = factor_covariance(state.scatter, d, total, 1.0 - own_share, ridge)
    shifts, bias = np.zeros((n_classes, n_axes), np.float32), np.full(n_classes, np.inf)
    for c in np.flatnonzero(counts).tolist():
        both, n = classes[c], int(counts[c])
        both[0] -= centre
        known = n / (n + n_axes)
        own = both[1:] * np.float32(np.sqrt(known / n))
        own = largest_axes(np.concatenate([own, common * np.float32(np.sqrt(1.0 - known))]), n_axes)
        both[1:] = own * np.float32(np.sqrt(own_share))
        both /= np.float32(spread)
        mean = both[0].astype(np.float64)
        half = solved(state.scatter, both.T)
        axes = half[:, 1:].astype(np.float64)
        small = np.linalg.cholesky(np.eye(n_axes) + axes.T @ axes)
        half[:, 1:] = solve_triangular(small, axes.T, lower=True).T
        both[:] = solved(state.scatter, half, transposed=True).T
        shifts[c] = both[1:] @ mean
        bias[c] = mean @ both[0] + 2.0 * np.log(np.diag(small)).sum()
        both /= np.float32(spread)
    return Rule(centre, classes.reshape(-1, d), shifts, bias)


def scores(rule: Rule, X: FloatArray) -> FloatArray:
    """Score of every class for every row: twice the negative log likelihood, but for what all classes share."""
    n_classes, n_axes = rule.shifts.shape
    found = np.empty((len(X), n_classes))
    for start in range(0, len(X), _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        products = ((X[part] - rule.centre) @ rule.weights.T).reshape(-1, n_classes, 1 + n_axes)
        off = products[:, :, 1:] - rule.shifts
        found[part] = rule.bias - 2.0 * products[:, :, 0] - np.einsum("rck,rck->rc", off, off)
    return found
