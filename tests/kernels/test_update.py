"""Moves of a prototype."""

from __future__ import annotations

import numpy as np
import pytest

from ccmem.kernels import update

both_types = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@both_types
def test_hebbian_move(dtype):
    m, x = np.array([0.0, 4.0], dtype), np.array([4.0, 0.0], dtype)
    update.hebbian_move(m, x, 0.25)
    assert m.tolist() == [1.0, 3.0]
    assert m.dtype == dtype


@both_types
def test_renormalising_move_ends_at_unit_length_between_both(dtype):
    m, x = np.array([1.0, 0.0], dtype), np.array([0.0, 5.0], dtype)
    update.renormalising_move(m, x, 0.2, 0.5, 0.0)
    np.testing.assert_allclose(m, np.sqrt([0.5, 0.5]), rtol=1e-6)


@both_types
def test_rate_one_takes_the_sample_whole(dtype):
    m, x = np.array([0.6, 0.8], dtype), np.array([0.0, 4.0], dtype)
    update.renormalising_move(m, x, 0.25, 1.0, 0.0)
    assert m.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("epsilon", [0.0, 1e-5])
def test_nothing_has_no_direction(epsilon):
    m = np.zeros(3)
    update.renormalise(m, epsilon)
    assert m.tolist() == [0.0, 0.0, 0.0]


def test_a_win_is_counted_and_slows_the_unit_down():
    rates, wins = np.array([0.5, 0.5]), np.array([0, 7])
    update.count_win(rates, wins, 1, 0.9)
    assert rates.tolist() == [0.5, 0.45]
    assert wins.tolist() == [0, 8]


@both_types
def test_what_fades_becomes_zero_before_it_is_subnormal(dtype):
    least = np.sqrt(np.finfo(dtype).tiny)
    start = np.array([1.0, 3 * least, -3 * least, 3 * least], dtype)
    x = np.array([1.0, 0.0, 0.0, 3 * least], dtype)
    for move in (lambda m: update.hebbian_move(m, x, 0.5), lambda m: update.renormalising_move(m, x, 1.0, 0.5, 0.0)):
        m = start.copy()
        move(m)
        assert (np.abs(m[1:]) > least).all()  # 1.5 times as much is kept
        move(m)
        assert m[1] == 0.0
        assert m[2] == 0.0
        assert m[0] > 0.0
        assert m[3] > least
