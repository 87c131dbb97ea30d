"""A quick range check of all numbers in a row."""

from __future__ import annotations

from ccmem.core.typing import FloatArray
from ccmem.kernels.competition import dot
from ccmem.kernels.jit import kernel_in_place

SAFE_SQUARED_NORM = 0.99e30
"""Squared-norm bound: a vector below it holds no NaN, no infinity and no magnitude above 1e15."""


@kernel_in_place
def sum_of_squares(x: FloatArray) -> float:
    """Return the squared length of a vector."""
    return dot(x, x)


@kernel_in_place
def first_suspect(X: FloatArray) -> int:
    """Return the index of the first row that may hold an invalid number; the number of rows if there is none."""
    for r in range(X.shape[0]):
        if not dot(X[r], X[r]) < SAFE_SQUARED_NORM:  # also true for NaN
            return r
    return X.shape[0]
