"""Prediction by matrix products equals the plain kernels, bit for bit, for any division of the work."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from ccmem import CCM, IncrementalWTA
from ccmem.base import matching
from ccmem.kernels import competition
from ccmem.kernels.jit import JIT_ENABLED

pytestmark = pytest.mark.skipif(not JIT_ENABLED, reason="without the JIT the plain kernel does all")

ORDERS = {
    "most_similar": (competition.most_similar, matching.most_similar, 1e-5),
    "nearest": (competition.nearest, matching.nearest, 2.0),
}
every_order = pytest.mark.parametrize("order", ORDERS)


def agree(order, X, M, competes):
    plain, quick, setting = ORDERS[order]
    expected, found = np.empty(len(X), np.int64), np.empty(len(X), np.int64)
    plain(X, M, competes, setting, expected)
    quick(X, M, competes, setting, found)
    np.testing.assert_array_equal(found, expected)


@pytest.fixture(autouse=True)
def always_a_product(monkeypatch):
    monkeypatch.setattr(matching, "WORTH_A_PRODUCT", 0)


@every_order
@given(data=st.data())
def test_products_propose_and_exact_sums_decide(order, data):
    """Units one rounding apart, repeated, scaled, far from the origin: cases in which rounded products fail."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    width = data.draw(st.sampled_from([1, 2, 31, 33, 100]))
    n_units = data.draw(st.integers(1, 40))
    base = rng.integers(-2, 3, (data.draw(st.integers(1, 3)), width))
    scale, shift = 10.0 ** data.draw(st.integers(-12, 6)), data.draw(st.sampled_from([0.0, 1.0, 1e3]))
    M = ((base[rng.integers(0, len(base), n_units)] + shift) * scale).astype(dtype)
    nudged = rng.random(M.shape) < data.draw(st.sampled_from([0.0, 0.1]))
    M[nudged] = np.nextafter(M[nudged], dtype(np.inf))
    X = np.vstack([M[rng.integers(0, n_units, 10)], (rng.normal(size=(10, width)) + shift) * scale]).astype(dtype)
    agree(order, X, M, rng.random(n_units) < data.draw(st.sampled_from([0.3, 1.1])))


@every_order
def test_many_slabs_and_threads(order, monkeypatch):
    monkeypatch.setattr(matching, "SLAB_ROWS", 16)
    monkeypatch.setattr(matching, "MOST_PRODUCTS", 7 * 50)
    monkeypatch.setattr(matching, "WORTH_A_THREAD", 0)
    rng = np.random.default_rng(0)
    X, M = rng.normal(size=(133, 9)).astype(np.float32), rng.normal(size=(50, 9)).astype(np.float32)
    M[40:] = M[:10]
    for competes in (np.ones(50, np.bool_), np.arange(50) % 3 == 0, np.zeros(50, np.bool_)):
        agree(order, X, M, competes)


@every_order
def test_the_plain_kernel_is_asked_about_close_units_alone(order, monkeypatch):
    """Matrix products rule out units: with well separated units, no exact comparison is left."""
    asked = []
    exact = matching._exact
    monkeypatch.setattr(matching, "_exact", lambda X, M, *more: asked.append((len(X), len(M))) or exact(X, M, *more))
    M = 10.0 * np.eye(20, dtype=np.float32)
    agree(order, M, M, np.ones(20, np.bool_))
    assert asked == []
    M[7] = M[3]
    agree(order, M, M, np.ones(20, np.bool_))
    assert asked == [(2, 2)]  # two rows, two units


def test_other_orders_go_through_the_plain_kernel():
    rng = np.random.default_rng(0)
    X, M = rng.normal(size=(2, 30, 6))
    for p in (1.0, 3.0, np.inf):
        expected, found = np.empty(30, np.int64), np.empty(30, np.int64)
        competition.nearest(X, M, np.ones(30, np.bool_), p, expected)
        matching.nearest(X, M, np.ones(30, np.bool_), p, found)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("memory", [CCM(random_state=0), IncrementalWTA(), IncrementalWTA(p=1.0)], ids=str)
@pytest.mark.parametrize("row", [0, 17, 999])
def test_a_bad_row_is_named_whatever_slab_it_is_in(memory, row, monkeypatch):
    monkeypatch.setattr(matching, "SLAB_ROWS", 100)
    X = np.random.default_rng(0).normal(size=(1000, 5))
    memory.fit(X)
    X[row, 3] = np.nan
    with pytest.raises(ValueError, match=f"NaN at row {row}, column 3"):
        memory.predict(X)


def test_large_transforms_equal_small_ones(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 7))
    for memory in (CCM(random_state=0).fit(X), IncrementalWTA().fit(X)):
        whole = memory.transform(X)
        monkeypatch.setattr(matching, "SLAB_ROWS", 16)
        monkeypatch.setattr(matching, "WORTH_A_THREAD", 0)
        np.testing.assert_array_equal(memory.transform(X), whole)
        monkeypatch.undo()


def blas_threads():
    return sorted(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")


def test_threads_are_as_many_as_the_blas_may_use_and_given_back(monkeypatch):
    monkeypatch.setattr(matching, "WORTH_A_THREAD", 0)
    monkeypatch.setattr(matching, "SLAB_ROWS", 1)
    seen = set()

    def job(slab):
        seen.add(threading.current_thread())
        assert set(blas_threads()) == {1}

    before = blas_threads()
    with threadpool_limits(1, user_api="blas"):
        matching.in_slabs(job, 8, 1)
        assert seen == {threading.current_thread()}
    matching.in_slabs(job, 8, 1)
    assert blas_threads() == before
    # two at a time: the second must not mistake the first one's limit for the machine's
    first, second = matching._BLAS.on_one_thread(), matching._BLAS.on_one_thread()
    first.__enter__()
    assert second.__enter__() == 1
    first.__exit__(None, None, None)
    assert set(blas_threads()) == {1}
    second.__exit__(None, None, None)
    assert blas_threads() == before
