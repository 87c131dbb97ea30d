"""iGMM between its two limits: winner-take-all, and equal posteriors."""

from __future__ import annotations

import numpy as np
import pytest

from ccmem import IncrementalGMM, IncrementalWTA
from ccmem.models.gmm import LEAVES_NO_TRACE
from naive import gmm

rng = np.random.default_rng(5)
X, START = rng.normal(size=(200, 6)), rng.normal(size=(5, 6))


def test_cold_is_winner_take_all():
    cold = IncrementalGMM(5, temperature=1e-9, learning_rate=0.2, init=START).fit(X)
    hard = IncrementalWTA(5, learning_rate=0.2, init=START).fit(X)
    np.testing.assert_array_equal(cold.prototypes_, hard.prototypes_)


def test_hot_moves_all_units_alike():
    hot = IncrementalGMM(5, temperature=1e12, learning_rate=0.5, init=START).fit(X[:1])
    np.testing.assert_allclose(hot.prototypes_, START + 0.1 * (X[0] - START), rtol=1e-9)


def test_posterior_is_what_moves():
    memory = IncrementalGMM(2, temperature=1.0, precision=2.0, learning_rate=0.25, init=[[0.0], [3.0]])
    memory.learn_one(np.array([1.0]))
    z = np.exp([-2.0, -4.0])
    z /= z.sum()
    np.testing.assert_allclose(memory.prototypes_.ravel(), [0.5 * z[0], 3.0 - 0.5 * z[1] * 2.0], rtol=1e-12)


def test_far_samples_do_not_underflow():
    memory = IncrementalGMM(2, init=[[0.0], [9.0]], learning_rate=1.0).fit([[1e6]])
    assert memory.prototypes_.ravel().tolist() == [0.0, 1e6]


@pytest.mark.parametrize(("dtype", "edge"), [(np.float32, 23 * np.log(2)), (np.float64, 52 * np.log(2))])
def test_a_share_below_the_resolution_moves_nothing(dtype, edge):
    for place, moves in ((edge - 0.1, True), (edge + 0.3, False)):
        memory = IncrementalGMM(2, temperature=1.0, learning_rate=1.0, init=np.array([[0.0], [place]], dtype))
        memory.fit(np.zeros((1, 1), dtype))
        assert (memory.prototypes_[1] != dtype(place)) == moves


def test_a_move_never_overshoots():
    memory = IncrementalGMM(1, precision=100.0, learning_rate=1.0, init=[[0.0]]).fit([[5.0]])
    assert memory.prototypes_.ravel().tolist() == [5.0]


@pytest.mark.parametrize(("p", "temperature"), [(1.0, 0.1), (2.0, 0.05), (np.inf, 0.03)])
def test_units_too_far_to_leave_a_trace_may_be_left_out(p, temperature):
    memory = IncrementalGMM(60, temperature=temperature, p=p).partial_fit(X)
    h = memory.transform(X)
    near = h - h.min(axis=1, keepdims=True) < -LEAVES_NO_TRACE * temperature
    assert 10 < np.median(near.sum(axis=1)) < 40
    expected = gmm.naive(X, n_units=60, precision=1.0, temperature=temperature, p=p, learning_rate=0.1, rate_decay=1.0)
    np.testing.assert_array_equal(memory.prototypes_, expected["prototypes_"])
