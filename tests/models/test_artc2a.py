"""ART-C 2A against artlib, and its bound."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccmem import ARTC2A, ModalClassifier
from naive.artc2a import naive


def unit_rows(seed, n_rows, width):
    X = np.random.default_rng(seed).normal(size=(n_rows, width))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@given(seed=st.integers(0, 2**20), width=st.integers(2, 40), vigilance=st.floats(0.0, 0.99))
def test_without_bound_at_rate_one_equals_artlib(seed, width, vigilance):
    artlib = pytest.importorskip("artlib")
    X = np.abs(unit_rows(seed, 60, width))  # artlib requires non-negative values
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # artlib warns about its own ART2A
        oracle = artlib.ART2A(rho=vigilance, alpha=0.0, beta=1.0)
        for x in X:
            oracle.partial_fit(x.reshape(1, -1))
    memory = ARTC2A(max_units=None, vigilance=vigilance, learning_rate=1.0)
    memory._epsilon = 0.0  # artlib divides by |x| alone
    winners = memory._learn(memory._check_chunk(X)).winners
    np.testing.assert_array_equal(winners, oracle.labels_)
    np.testing.assert_allclose(memory.prototypes_, np.array(oracle.W), atol=1e-15)


@given(seed=st.integers(0, 2**20), bound=st.integers(1, 12), reset=st.sampled_from(["input", "pair"]))
def test_the_bound_holds_at_every_moment(seed, bound, reset):
    memory = ARTC2A(bound, vigilance=0.99, vigilance_reset=reset)
    for x in unit_rows(seed, 40, 4):
        memory.learn_one(x)
        assert memory.n_units_ <= bound
    assert memory.win_counts_.sum() == 40
    np.testing.assert_allclose(np.linalg.norm(memory.prototypes_, axis=1), 1.0, atol=2e-5)


def test_vigilance_falls_to_the_best_match_of_the_input():
    X = np.array([[1.0, 0.0], [0.0, 1.0], [3.0, 4.0]])
    by_input = ARTC2A(2, vigilance=0.9).fit(X)
    by_pair = ARTC2A(2, vigilance=0.9, vigilance_reset="pair").fit(X)
    assert by_input.vigilance_ == pytest.approx(0.8, abs=1e-5)
    assert by_pair.vigilance_ == pytest.approx(0.8, abs=1e-5)  # the pair is the input and its best match
    lower = ARTC2A(3, vigilance=0.9).fit(np.vstack([X, [[-1.0, 0.2]]]))
    assert lower.vigilance_ == pytest.approx(0.2 / np.hypot(1.0, 0.2), abs=1e-5)


def test_votes_survive_merges():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 3)), rng.integers(0, 4, 500)
    classifier = ModalClassifier(ARTC2A(6, vigilance=0.999))
    for start in range(0, 500, 90):
        classifier.partial_fit(X[start : start + 90], y[start : start + 90])
    assert classifier.votes_.sum() == 500
    np.testing.assert_array_equal(classifier.votes_.sum(axis=0), np.bincount(y))
    np.testing.assert_array_equal(classifier.votes_.sum(axis=1), classifier.memory_.win_counts_)


def test_a_merge_costs_no_more_than_the_votes_of_the_pair():
    """Three units in a row, bound of two: the votes of the closest pair are added, those of the third stay."""
    X = np.array([[1.0, 0.0], [0.0, 1.0], [0.1, 1.0]])
    classifier = ModalClassifier(ARTC2A(2, vigilance=0.999)).fit(X, ["a", "b", "c"])
    assert classifier.votes_.tolist() == [[1, 0, 0], [0, 1, 1]]


def test_grows_without_a_bound():
    X = np.eye(200)
    assert ARTC2A(None).fit(X).n_units_ == 200


def test_many_merges_in_one_chunk_outlive_the_journal():
    X = unit_rows(3, 3000, 3)
    whole = ModalClassifier(ARTC2A(4, vigilance=1.0, vigilance_reset="pair")).partial_fit(X, np.arange(3000) % 7)
    assert whole.votes_.sum() == 3000


def test_a_merge_that_writes_two_lines_has_room_for_both():
    """The first merge writes one line and each further one two, so the journal is once full except for one line."""
    rows = np.eye(40)
    near = 0.8 * rows[:1] + 0.6 * rows[39:]
    X = np.concatenate([rows[:4], near, rows[4:39]])
    classifier = ModalClassifier(ARTC2A(4, vigilance=0.9)).partial_fit(X, np.arange(40) % 3)
    np.testing.assert_array_equal(classifier.votes_.sum(axis=1), classifier.memory_.win_counts_)
    assert classifier.votes_.sum() == 40


def test_every_merge_is_of_the_closest_pair():
    """Include the case in which the unit that filled the last gap belongs to the pair."""
    X = unit_rows(5, 150, 12)
    memory = ARTC2A(6, vigilance=1.0, vigilance_reset="pair")
    winners = memory._learn(memory._check_chunk(X)).winners
    expected = naive(X, 6, 1.0, 0.02, 1.0, "pair")
    np.testing.assert_array_equal(winners, expected["winners"])
    np.testing.assert_array_equal(memory.prototypes_, expected["prototypes_"])
    assert memory.win_counts_.tolist() == expected["win_counts_"]


def test_a_match_that_only_equals_the_vigilance_is_none():
    X = np.array([[1.0, 0.0], [0.0, 1.0]])  # orthogonal: a match of exactly 0
    assert ARTC2A(max_units=None, vigilance=0.0).partial_fit(X).n_units_ == 2
    assert ARTC2A(max_units=None, vigilance=-0.1).partial_fit(X).n_units_ == 1
