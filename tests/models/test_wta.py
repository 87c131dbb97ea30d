"""iWTA compared with MiniSom, and its initial prototypes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccmem import IncrementalGMM, IncrementalWTA


@pytest.mark.filterwarnings("ignore:sigma should be:UserWarning")
@given(seed=st.integers(0, 2**20), n_units=st.integers(2, 9), width=st.integers(1, 40), rate=st.floats(0.01, 1.0))
def test_equals_minisom(seed, n_units, width, rate):
    """A self-organising map whose neighbourhood is the winner alone equals winner-take-all."""
    minisom = pytest.importorskip("minisom")
    rng = np.random.default_rng(seed)
    X, start = rng.normal(size=(60, width)), rng.normal(size=(n_units, width))
    som = minisom.MiniSom(
        1, n_units, width, sigma=1e-9, learning_rate=rate, neighborhood_function="bubble", random_seed=0
    )
    som._weights[0] = start
    winners = []
    for x in X:
        winner = som.winner(x)
        winners.append(winner[1])
        som.update(x, winner, 0, 10**12)
    memory = IncrementalWTA(n_units, learning_rate=rate, init=start)
    assert memory._learn(memory._check_chunk(X)).winners.tolist() == winners
    np.testing.assert_array_equal(memory.prototypes_, som.get_weights()[0])


def test_first_distinct_samples_become_the_units():
    X = np.array([[1.0], [1.0], [5.0], [5.0], [9.0]])
    memory = IncrementalWTA(3).partial_fit(X)
    assert memory.prototypes_.ravel().tolist() == [1.0, 5.0, 9.0]
    assert memory.win_counts_.tolist() == [2, 2, 1]


def test_all_k_winners_move_and_the_nearest_is_reported():
    memory = IncrementalWTA(3, n_winners=2, learning_rate=0.5, init=[[0.0], [1.0], [10.0]])
    assert memory.learn_one(np.array([2.0])) == 1
    assert memory.prototypes_.ravel().tolist() == [1.0, 1.5, 10.0]
    assert memory.win_counts_.tolist() == [1, 1, 0]


@pytest.mark.parametrize("init", [np.zeros((2, 3)), np.zeros((3, 2)), np.full((3, 3), np.nan), [1.0, 2.0, 3.0]])
def test_given_prototypes_must_fit(init):
    with pytest.raises(ValueError, match=r"IncrementalWTA: init has shape .* \(3, 3\)"):
        IncrementalWTA(3, init=init).fit(np.ones((4, 3)))


def test_given_prototypes_that_do_not_fit_leave_an_old_memory_as_it_was():
    memory = IncrementalWTA(3, init=np.zeros((3, 2))).fit(np.ones((4, 2)))
    with pytest.raises(ValueError, match="init has shape"):
        memory.fit(np.ones((4, 5)))
    assert memory.n_features_in_ == 2
    assert memory.predict(np.ones((1, 2))).tolist() == [0]


def test_given_prototypes_are_copied():
    start = np.zeros((2, 2))
    IncrementalWTA(2, init=start, learning_rate=1.0).fit(np.ones((4, 2)))
    assert not start.any()


def test_no_more_winners_than_units():
    with pytest.raises(ValueError, match="n_winners=4 cannot exceed n_units=3"):
        IncrementalWTA(3, n_winners=4).fit(np.ones((4, 2)))


def test_units_beyond_the_memory_of_the_machine_are_refused(monkeypatch):
    monkeypatch.setattr("ccmem.core.allocation._MOST_BYTES", 1000)
    IncrementalWTA(n_units=20).partial_fit(np.eye(3))
    with pytest.raises(ValueError, match="30 units of 3 features need 0 GiB, more than this machine has"):
        IncrementalWTA(n_units=30).partial_fit(np.eye(3))


@pytest.mark.parametrize("model", [IncrementalWTA, IncrementalGMM])
def test_numbers_whose_powers_overflow_are_refused(model):
    """Such numbers would tie at infinity (compiled), or raise OverflowError (with the JIT off)."""
    large = np.array([[3e15, 1.0], [1.0, 2.0]])
    memory = model(2, p=16.0).partial_fit(large / 3)
    assert memory.predict(large / 3).tolist() == [0, 1]
    for call in (memory.partial_fit, memory.predict, memory.transform, lambda X: memory.learn_one(X[0])):
        with pytest.raises(ValueError, match=r"too large for distances of order p=16\.0; rescale"):
            call(large)
    with pytest.raises(ValueError, match="too large"):
        model(2, p=3.0, init=large).partial_fit(large / 3).partial_fit(large / 3)
    for order in (1.0, 2.0, np.inf):
        memory = model(2, p=order).partial_fit(large)
        assert memory.predict(large).tolist() == [0, 1]
    with pytest.raises(ValueError, match="too large"):  # learned values count too
        memory.set_params(p=3.0).predict(large / 1e10)
    with pytest.raises(ValueError, match=r"1e\+200.*too large"):
        model(1, init=[[1e200]]).partial_fit([[1.0]])
