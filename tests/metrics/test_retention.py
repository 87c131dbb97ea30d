"""Metrics of the task matrix R, compared with the printed sums."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ccmem import metrics

matrices = st.integers(1, 6).flatmap(lambda n: arrays(np.float64, (n, n), elements=st.floats(0, 1)))


@given(matrices)
def test_as_printed(R):
    T = len(R)
    assert metrics.average_accuracy(R) == pytest.approx(sum(R[T - 1, i] for i in range(T)) / T)
    bwt = sum(R[T - 1, i] - R[i, i] for i in range(T - 1)) / (T - 1) if T > 1 else 0.0
    assert metrics.backward_transfer(R) == pytest.approx(bwt)
    pairs = [(i, j) for i in range(T) for j in range(i)]
    triangle = sum(R[i, j] - R[j, j] for i, j in pairs) / len(pairs) if pairs else 0.0
    assert metrics.backward_transfer_triangle(R) == pytest.approx(triangle)
    assert metrics.forgetting_first_to_last(R) == pytest.approx(-bwt)
    best = [max(R[i, j] for i in range(j, T)) - R[T - 1, j] for j in range(T - 1)]
    assert metrics.forgetting_best_to_last(R) == pytest.approx(np.mean(best) if best else 0.0)


@given(matrices)
def test_upper_triangle_does_not_count(R):
    gaps = R.copy()
    gaps[np.triu_indices(len(R), 1)] = np.nan
    for name in ("average_accuracy", "backward_transfer", "backward_transfer_triangle", "forgetting_best_to_last"):
        assert getattr(metrics, name)(R) == getattr(metrics, name)(gaps)


def test_nothing_forgotten_is_nought_and_not_minus_nought():
    assert str(metrics.forgetting_first_to_last(np.eye(1))) == "0.0"


def test_bad_matrices():
    with pytest.raises(ValueError, match="square"):
        metrics.average_accuracy(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="gaps"):
        metrics.backward_transfer([[np.nan, 0], [0, 0]])


def test_conformity_does_not_mind_names():
    true = np.array([0, 0, 1, 1, 2, 2])
    guess = np.array([5, 5, 7, 7, 7, 9])
    assert metrics.conformity(true, guess) == metrics.conformity(true, guess * 3 - 1)
    assert metrics.conformity(true, np.zeros(6))["ARI"] == 0.0
