"""Vector loops of networks: equal to numpy bit for bit at every length, without access beyond the end."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ccmem.kernels.jit import kernel
from ccmem.readout import _vector


@kernel
def add_rows(total, flat, rows, factors, stride, count):
    _vector.add_rows(total, flat, rows, factors, stride, count)


@kernel
def add_to_rows(one, flat, rows, factors, stride, count):
    _vector.add_to_rows(one, flat, rows, factors, stride, count)


lengths = st.one_of(st.integers(1, 300), st.sampled_from([31, 32, 33, 95, 96, 97, 127, 128, 129, 255, 256, 257]))
dtypes = st.sampled_from([np.float32, np.float64])


@given(length=lengths, extra=st.integers(0, 20), count=st.integers(0, 9), dtype=dtypes, seed=st.integers(0, 99))
def test_rows(length, extra, count, dtype, seed):
    rng = np.random.default_rng(seed)
    one, flat, factors = (rng.normal(size=n).astype(dtype) for n in (length, 12 * (length + extra), 10))
    rows = rng.permutation(12)[:10]
    total, matrix = one.copy(), flat.reshape(12, -1).copy()
    for row, factor in zip(rows[:count], factors[:count], strict=True):
        total += factor * matrix[row, :length]
    added = one.copy()
    add_rows(added, flat, rows, factors, length + extra, count)
    np.testing.assert_array_equal(added, total)
    for row, factor in zip(rows[:count], factors[:count], strict=True):
        matrix[row, :length] += factor * one
    add_to_rows(one, flat, rows, factors, length + extra, count)
    np.testing.assert_array_equal(flat, matrix.ravel())
