"""Sums, distances and winners, each compared with a direct computation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy.spatial.distance import cdist
from tests.naive import plain

from ccmem.kernels import competition
from ccmem.kernels.jit import kernel

PAIR_SUMS = {
    "dot": (kernel(lambda a, b: competition.dot(a, b)), lambda a, b: a * b),
    "squared_distance": (kernel(lambda a, b: competition.squared_distance(a, b)), lambda a, b: (a - b) * (a - b)),
    "manhattan_distance": (kernel(lambda a, b: competition.manhattan_distance(a, b)), lambda a, b: np.abs(a - b)),
}


@pytest.mark.parametrize("name", PAIR_SUMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lane_sums_keep_their_order_at_every_length(name, dtype):
    compiled, terms = PAIR_SUMS[name]
    rng = np.random.default_rng(0)
    for size in [*range(70), 95, 96, 97, 784, 1000]:
        a, b = rng.normal(size=(2, size)).astype(dtype)
        assert compiled(a, b) == plain.lane_sum(terms(a, b)), size
        np.testing.assert_allclose(compiled(a, b), math.fsum(terms(a, b)), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_many_rows_are_those_of_each(dtype):
    rng = np.random.default_rng(0)
    for n, size in [(0, 3), (1, 40), (4, 33), (5, 32), (6, 1), (13, 100)]:
        M, x = rng.normal(size=(n + 2, size)).astype(dtype), rng.normal(size=size).astype(dtype)
        out = np.full(n, np.nan)
        competition.dots(M, 1, n + 1, x, out)
        expected = [plain.dot(m, x) for m in M[1 : n + 1]]
        assert out.tolist() == expected
        for backwards in (False, True):
            out[:] = np.nan
            assert competition.dots_and_square(M, 1, n + 1, x[None], 0, backwards, out) == plain.dot(x, x)
            assert out.tolist() == expected
        for p in (1.0, 2.0, 3.0):
            competition.distance_powers(M, n, x[None], 0, p, out)
            np.testing.assert_allclose(out, [plain.distance_power(x, m, p) for m in M[:n]], rtol=0 if p < 3 else 1e-14)


def test_lane_sums_read_nothing_beyond_the_end():
    a = np.full(64, np.nan)
    a[:33] = 1.0
    assert PAIR_SUMS["dot"][0](a[:33], a[:33]) == 33.0


def test_sums_keep_nan_and_infinity():
    dot = PAIR_SUMS["dot"][0]
    assert math.isnan(dot(np.array([1.0, np.nan]), np.array([0.0, 0.0])))
    assert dot(np.array([np.inf, 1.0]), np.array([1.0, 1.0])) == np.inf


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, 7.25, np.inf])
def test_distances_equal_scipy(p):
    rng = np.random.default_rng(2)
    X, M = rng.normal(size=(20, 37)), rng.normal(size=(5, 37))
    out = np.empty((20, 5))
    competition.distances(X, M, p, out)
    metric = {"metric": "chebyshev"} if p == np.inf else {"metric": "minkowski", "p": p}
    np.testing.assert_allclose(out, cdist(X, M, **metric), rtol=1e-12)


def test_similarities_are_of_rows_of_unit_length():
    X, M = np.array([[3.0, 4.0], [0.0, 0.0], [0.5, 0.0]]), np.array([[1.0, 0.0], [0.6, 0.8]])
    out = np.empty((3, 2))
    competition.similarities(X, M, 0.5, out)
    np.testing.assert_allclose(out, (X @ M.T) / (np.linalg.norm(X, axis=1, keepdims=True) + 0.5))


scores = npst.arrays(np.float64, st.integers(1, 30), elements=st.integers(-3, 3).map(float))


@given(scores, st.data())
def test_find_bmu_is_a_stable_sort(h, data):
    k = data.draw(st.integers(1, h.size))
    np.testing.assert_array_equal(competition.find_bmu(h, k, "max"), np.argsort(-h, kind="stable")[:k])
    np.testing.assert_array_equal(competition.find_bmu(h, k, "min"), np.argsort(h, kind="stable")[:k])


@given(scores | npst.arrays(np.float64, st.integers(1, 9), elements=st.sampled_from([-np.inf, 0.0, np.inf])), st.data())
def test_the_best_of_some_scores_is_the_first_of_them(h, data):
    n = data.draw(st.integers(0, h.size))
    assert competition.lowest(h, n) == (np.argmin(h[:n]) if n else -1)
    assert competition.highest(h, n) == (np.argmax(h[:n]) if n else -1)


@pytest.mark.parametrize("n", range(1, 10))
def test_the_best_is_found_at_every_place(n):
    for place in range(n):
        h = np.arange(n, dtype=np.float64) % 3
        h[place] = -5.0
        assert competition.lowest(h, n) == competition.highest(-h, n) == place


@given(scores, st.data())
def test_encode_marks_exactly_the_winners(h, data):
    winners = competition.find_bmu(h, data.draw(st.integers(1, h.size)))
    code = competition.encode(winners, h.size)
    assert code.sum() == len(winners)
    assert code[winners].all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: competition.find_bmu(np.ones(3), 4), "n_winners=4"),
        (lambda: competition.find_bmu(np.ones(3), 0), "n_winners=0"),
        (lambda: competition.find_bmu(np.ones((2, 2))), r"shape \(2, 2\)"),
        (lambda: competition.find_bmu(np.ones(3), winner_type="best"), "'best' is unknown"),
        (lambda: competition.encode([0, 5], 5), r"\[0, 5\] do not all lie in 0..4"),
    ],
)
def test_bad_requests_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("search", [competition.most_similar, competition.nearest])
def test_only_those_that_compete_can_win(search):
    M = np.eye(4)
    winners = np.empty(4, np.int64)
    search(M, M, np.array([False, True, True, False]), 1.0, winners)
    assert winners.tolist() == [1, 1, 2, 1]
    search(M, M, np.zeros(4, np.bool_), 1.0, winners)
    assert winners.tolist() == [-1] * 4
