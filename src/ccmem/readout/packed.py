"""Symmetric matrices in LAPACK's packed form: sums of products, Cholesky factors and solutions.

The rectangular full packed form stores n (n + 1) / 2 numbers, and its routines are as fast as those for full matrices.
All arrays have single precision. The BLAS runs on one thread, because these matrices are too small to parallelise.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import lapack

from ccmem.core.typing import FloatArray, IntArray

_FORM: dict[str, Any] = {"uplo": b"L", "transr": b"N"}
_ROUNDING = 1e-6
"""Smallest ridge per column that keeps a matrix positive definite despite rounding in single precision."""

_NO_SPREAD, _CONSTANT = 1e-14, 1e-4
"""Variance that may be rounding, and the variance that replaces it, relative to the squared magnitude of the column."""


def packed_zeros(n: int) -> FloatArray:
    """Return an n x n matrix of zeros."""
    return np.zeros(n * (n + 1) // 2, np.float32)


def diagonal(n: int) -> IntArray:
    """Return the indices of the diagonal of an n x n matrix."""
    j = np.arange(n)
    half = n - n // 2
    if n % 2:
        return np.where(j < half, j * n + j, (j - half + 1) * n + j - half)
    return np.where(j < half, j * (n + 1) + j + 1, (j - half) * (n + 1) + j - half)


def add_products(matrix: FloatArray, rows: FloatArray) -> None:
    """Add rows' rows to ``matrix``, in place."""
    lapack.ssfrk(rows.shape[1], len(rows), 1.0, rows.T, 1.0, matrix, trans=b"N", overwrite_c=1, **_FORM)


def factor_covariance(
    scatter: FloatArray, n: int, count: int, share: float, ridge: float, sizes: FloatArray | None = None
) -> float:
    """Replace a sum of ``count`` products by the Cholesky factor L of share C / s^2 + ridge R; return s.

    C is the covariance and s^2 its mean variance. R is the identity; with ``sizes``, the largest magnitudes of the
    columns, its diagonal is that of C / s^2. If the variance is 0, L is the identity and s is 1.
    """
    places = diagonal(n)
    variances = scatter[places].astype(np.float64) / max(count, 1)
    variance = float(variances.mean())
    if not variance > 0:
        scatter[:] = 0
        scatter[places] = 1
        return 1.0
    scatter *= np.float32(share / (count * variance))
    scales = np.ones(n)
    if sizes is not None:
        squares = sizes.astype(np.float64) ** 2
        np.divide(np.where(variances > _NO_SPREAD * squares, variances, _CONSTANT * squares), variance, out=scales)
        scales[squares == 0] = 1.0
    scatter[places] += (max(ridge, _ROUNDING * n) * scales).astype(np.float32)
    lapack.spftrf(n, scatter, overwrite_a=1, **_FORM)
    return float(np.sqrt(variance))


def solved(factor: FloatArray, columns: FloatArray, transposed: bool = False) -> FloatArray:
    """Return L^-1 columns, or L'^-1 columns."""
    return lapack.stfsm(1.0, factor, columns, trans=b"T" if transposed else b"N", overwrite_b=0, **_FORM)
