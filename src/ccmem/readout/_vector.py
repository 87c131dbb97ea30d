"""Inner loops of the networks: activations of a vector, softmax, and sums of rows that are listed by index."""

from __future__ import annotations

import math

import numpy as np

from ccmem.core.typing import FloatArray, IntArray
from ccmem.kernels.jit import kernel_in_place
from ccmem.readout.network import RELU, TANH


@kernel_in_place
def add_rows(total: FloatArray, flat: FloatArray, rows: IntArray, factors: FloatArray, stride: int, count: int) -> None:
    """Add factors[k] times row rows[k] of the matrix in ``flat`` to ``total``, for k = 0 to ``count`` - 1 in order."""
    n, k = total.shape[0], 0
    while k + 4 <= count:  # four rows at a time: every total is loaded and stored once for all of them
        f0, f1, f2, f3 = factors[k], factors[k + 1], factors[k + 2], factors[k + 3]
        r0 = flat[rows[k] * stride : rows[k] * stride + n]
        r1 = flat[rows[k + 1] * stride : rows[k + 1] * stride + n]
        r2 = flat[rows[k + 2] * stride : rows[k + 2] * stride + n]
        r3 = flat[rows[k + 3] * stride : rows[k + 3] * stride + n]
        for j in range(n):
            total[j] = total[j] + f0 * r0[j] + f1 * r1[j] + f2 * r2[j] + f3 * r3[j]
        k += 4
    while k < count:
        factor, row = factors[k], flat[rows[k] * stride : rows[k] * stride + n]
        for j in range(n):
            total[j] += factor * row[j]
        k += 1


@kernel_in_place
def add_to_rows(
    one: FloatArray, flat: FloatArray, rows: IntArray, factors: FloatArray, stride: int, count: int
) -> None:
    """Add factors[k] * ``one`` to row rows[k] of the matrix in ``flat``, k = 0 to ``count`` - 1; rows are distinct."""
    n = one.shape[0]
    for k in range(count):
        factor, row = factors[k], flat[rows[k] * stride : rows[k] * stride + n]
        for j in range(n):
            row[j] += factor * one[j]


@kernel_in_place
def fill(values: FloatArray, value: float) -> None:
    """Set all values of a vector."""
    for i in range(values.shape[0]):
        values[i] = value


@kernel_in_place
def copy(source: FloatArray, target: FloatArray) -> None:
    """Copy a vector to the beginning of another one."""
    for i in range(source.shape[0]):
        target[i] = source[i]


@kernel_in_place
def activate(kind: int, h: float) -> float:
    """Return the activation phi(h)."""
    if kind == RELU:
        return h if h > 0.0 else 0.0
    if kind == TANH:
        return math.tanh(h)
    if h >= 0.0:  # both branches take exp of a non-positive number, so it cannot overflow
        return 1.0 / (1.0 + math.exp(-h))
    return math.exp(h) / (1.0 + math.exp(h))


@kernel_in_place
def slope(kind: int, z: float) -> float:
    """Return the derivative phi'(h), computed from z = phi(h)."""
    if kind == RELU:
        return 1.0 if z > 0.0 else 0.0
    if kind == TANH:
        return 1.0 - z * z
    return z * (1.0 - z)


@kernel_in_place
def activate_all(kind: int, h: FloatArray) -> None:
    if kind == RELU:  # a separate loop, because LLVM can vectorise it
        for i in range(h.shape[0]):
            h[i] = max(h[i], h.dtype.type(0.0))
    else:
        for i in range(h.shape[0]):
            h[i] = activate(kind, np.float64(h[i]))


@kernel_in_place
def multiply_by_slope(kind: int, deltas: FloatArray, z: FloatArray) -> None:
    if kind == RELU:
        for i in range(deltas.shape[0]):
            deltas[i] = deltas[i] if z[i] > 0.0 else deltas.dtype.type(0.0)
    else:
        for i in range(deltas.shape[0]):
            deltas[i] = np.float64(deltas[i]) * slope(kind, np.float64(z[i]))


@kernel_in_place
def softmax(scores: FloatArray) -> bool:
    """Turn scores into probabilities in place; return False if they are not finite."""
    most = -np.inf
    for c in range(scores.shape[0]):
        if not np.isfinite(scores[c]):
            return False
        most = max(most, scores[c])
    total = 0.0
    for c in range(scores.shape[0]):
        scores[c] = math.exp(scores[c] - most)
        total += scores[c]
    for c in range(scores.shape[0]):
        scores[c] /= total
    return True
