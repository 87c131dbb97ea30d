"""Packed symmetric matrices compared with full ones."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import lapack

from ccmem.readout.packed import add_products, diagonal, factor_covariance, packed_zeros, solved


@pytest.mark.parametrize("n", range(1, 9))
def test_packed_equals_whole(n):
    rows = np.random.default_rng(n).normal(size=(20, n)).astype(np.float32)
    matrix = packed_zeros(n)
    for part in np.split(rows, [3, 4, 11]):
        add_products(matrix, part)
    whole = rows.astype(np.float64).T @ rows
    packed = lapack.strttf(np.tril(whole).astype(np.float32), uplo=b"L", transr=b"N")[0]
    np.testing.assert_allclose(matrix, packed, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(matrix[diagonal(n)], np.diag(whole), rtol=1e-4)
    variance = np.trace(whole) / (20 * n)
    scale = factor_covariance(matrix, n, 20, 0.6, 0.02)
    assert scale == pytest.approx(np.sqrt(variance), rel=1e-4)
    L = np.linalg.cholesky(0.6 * whole / 20 / variance + 0.02 * np.eye(n))
    columns = rows[:5].T.copy()
    np.testing.assert_allclose(solved(matrix, columns), np.linalg.solve(L, columns), rtol=2e-3, atol=2e-3)
    np.testing.assert_allclose(solved(matrix, columns, True), np.linalg.solve(L.T, columns), rtol=2e-3, atol=2e-3)


def test_no_variance_at_all_is_the_identity():
    matrix = packed_zeros(4)
    assert factor_covariance(matrix, 4, 9, 0.6, 0.02) == 1.0
    columns = np.arange(8.0, dtype=np.float32).reshape(4, 2)
    np.testing.assert_array_equal(solved(matrix, columns), columns)
