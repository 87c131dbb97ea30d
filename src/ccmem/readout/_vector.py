"""Inner loops of the networks: one row and many, for rows of a matrix that are listed by index."""

from __future__ import annotations

from ccmem.core.typing import FloatArray, IntArray
from ccmem.kernels.jit import kernel_in_place


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
