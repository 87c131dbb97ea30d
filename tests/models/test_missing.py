"""AdaptiveCCM where readings are missing: its twin, its promises, columns that are lost and come back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ccmem
from ccmem import AdaptiveCCM
from ccmem.kernels.jit import JIT_ENABLED
from quick import QuickCCM, assert_is_twin, memories, task_streams
from zoo import adaptive_twin, assert_same, snapshot

long_streams = pytest.mark.skipif(not JIT_ENABLED, reason="the same code as with the JIT on, a hundred times slower")
MISSING = np.nan


@st.composite
def gappy_streams(draw):
    """Rows of tasks in which readings are missing: here and there, for a while, in whole rows, or but for every nth."""
    X, _ = draw(task_streams())
    X = X.copy()
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    if draw(st.booleans()):
        X[rng.random(X.shape) < draw(st.sampled_from([0.02, 0.3, 0.7]))] = MISSING
    for _ in range(draw(st.integers(0, 3))):
        first = rng.integers(0, len(X))
        columns = slice(None) if rng.random() < 0.2 else rng.integers(0, X.shape[1])
        X[first : first + rng.integers(1, 80), columns] = MISSING
    if draw(st.booleans()):
        j, every = rng.integers(0, X.shape[1]), rng.integers(2, 6)
        X[np.arange(len(X)) % every > 0, j] = MISSING
    return X


@settings(max_examples=60)
@given(X=gappy_streams(), memory=memories)
def test_kernel_equals_naive_twin(X, memory):
    names = ("n_slots", "max_units", "learning_rate", "false_alarm_every")
    expected = adaptive_twin(X, tuning=QuickCCM._tuning, **{name: getattr(memory, name) for name in names})
    winners = memory._learn(memory._check_chunk(X)).winners
    np.testing.assert_array_equal(winners, expected.pop("winners"))
    assert_is_twin(memory, expected)


@settings(max_examples=40)
@given(X=gappy_streams(), memory=memories, data=st.data())
def test_a_stream_may_be_cut_anywhere_and_saved_there(X, memory, data):
    cuts = sorted(data.draw(st.lists(st.integers(1, len(X)), max_size=4)))
    whole = QuickCCM(**memory.get_params()).partial_fit(X)
    for rows in np.split(X, cuts):
        if len(rows):
            memory.partial_fit(rows)
            saved, memory = memory._export(), QuickCCM(**memory.get_params())
            memory._import(saved)
    assert_same(snapshot(whole), snapshot(memory))


def plant(seed=0, rows=4000, width=4):
    """A quiet plant: a sensor a column, in units of its own."""
    rng = np.random.default_rng(seed)
    return rng.normal([5.0, -300.0, 0.02, 40.0][:width], [1.0, 20.0, 0.001, 0.5][:width], (rows, width))


def told(memory):
    return [(event.kind, event.to_block if event.changes_block else event.column) for event in memory.events_]


@long_streams
@pytest.mark.parametrize("share", [0.1, 0.4])
def test_readings_missing_at_random_are_no_event_and_hide_no_change(share):
    for seed in range(3):
        X = plant(seed, 8000)
        X[6000:, 1] += 60.0
        X[np.random.default_rng(100 + seed).random(X.shape) < share] = MISSING
        memory = AdaptiveCCM().partial_fit(X[:6000])
        assert memory.events_ == []
        assert told(memory.partial_fit(X[6000:])) == [("new_block", 1)]
        np.testing.assert_allclose(memory.block_levels_[:, 1], [-300.0, -240.0], atol=3.0)


@long_streams
def test_a_share_of_missing_readings_that_grows_is_no_event():
    X = plant(1, 9000)
    share = np.repeat([0.0, 0.1, 0.45], 3000)
    X[np.random.default_rng(2).random(X.shape) < share[:, None]] = MISSING
    assert AdaptiveCCM().partial_fit(X).events_ == []


@long_streams
@pytest.mark.parametrize("every", [5, 30])
def test_a_sensor_read_now_and_then_is_heard(every):
    X = plant(3, 12_000)
    X[8000:, 3] += 3.0
    X[np.arange(len(X)) % every > 0, 3] = MISSING
    memory = AdaptiveCCM().partial_fit(X)
    assert told(memory) == [("new_block", 1)]
    assert memory.events_[0].step < 8000 + 60 * every
    np.testing.assert_allclose(memory.block_levels_[:, 3], [40.0, 43.0], atol=0.5)


@long_streams
def test_a_column_that_dies_is_told_once_and_so_is_its_return():
    X = plant(4, 6000)
    X[3007:4500, 2] = MISSING
    memory = AdaptiveCCM().partial_fit(X)
    assert told(memory) == [("column_lost", 2), ("column_back", 2)]
    lost, back = memory.events_
    assert 3007 < lost.step < 3300
    assert abs(lost.onset - 3007) <= lost.uncertainty
    assert back.step < 4520
    assert abs(back.onset - 4500) <= back.uncertainty
    assert memory.n_blocks_ == 1
    assert str(lost) == f"column 2 lost at sample {lost.step:,} (since sample {lost.onset:,} ± {lost.uncertainty})"


@long_streams
def test_a_change_while_a_column_is_lost_is_found_and_its_return_recalled():
    """The new block does not know the lost column, and learns it when it speaks again there."""
    a, b = np.array([0.0, 0.0, 0.0, 0.0]), np.array([0.0, 100.0, 0.005, 0.0])
    X = plant(5, 9000)
    X[1500:3000] += b
    X[3000:4500] += a
    X[4500:] += b
    X[1000:4000, 2] = MISSING
    memory = AdaptiveCCM().partial_fit(X[:2900])
    assert told(memory) == [("column_lost", 2), ("new_block", 1)]
    np.testing.assert_array_equal(np.isnan(memory.block_levels_), [[False] * 4, [False, False, True, False]])
    memory.partial_fit(X[2900:])
    assert told(memory)[2:] == [("recall", 0), ("column_back", 2), ("recall", 1)]
    np.testing.assert_allclose(memory.block_levels_[:, 2], [0.02, 0.025], atol=0.001)


@long_streams
def test_a_column_that_is_empty_at_first_is_still_a_column():
    X = plant(6, 6000)
    X[:2000, 0] = MISSING
    memory = AdaptiveCCM().partial_fit(X)
    assert memory.events_ == []
    assert told(memory.partial_fit(plant(7, 1000) + np.array([4.0, 0.0, 0.0, 0.0]))) == [("new_block", 1)]


def test_rows_without_a_reading_count_and_teach_nothing():
    X = plant(8, 100)
    memory = AdaptiveCCM().partial_fit(X)
    known = memory.prototypes_
    memory.partial_fit(np.full((7, 4), MISSING))
    assert memory.n_samples_seen_ == 107
    np.testing.assert_array_equal(memory.prototypes_, known)
    assert memory.learn_one(np.full(4, MISSING)) == -1
    first = AdaptiveCCM().partial_fit(np.full((3, 4), MISSING))
    assert first.n_units_ == 0
    assert first.partial_fit(X).n_units_ > 0


@long_streams
def test_outages_that_are_usual_are_not_told_again_and_again():
    """A radio that fails for 400 rows at a time: told at first, until that is how it is."""
    X = plant(9, 60_000)
    for start in range(3000, 60_000, 1500):
        X[start : start + 400, 1] = MISSING
    memory = AdaptiveCCM().partial_fit(X)
    lost = [event for event in memory.events_ if event.kind == "column_lost"]
    assert 1 <= len(lost) <= 4
    assert {event.kind for event in memory.events_} == {"column_lost", "column_back"}


def test_many_columns_may_be_lost_at_once_however_the_stream_is_cut():
    X = np.random.default_rng(0).normal(3.0, 1.0, (1500, 40))
    X[600:1200, 3:] = MISSING
    whole, cut = AdaptiveCCM().partial_fit(X), AdaptiveCCM()
    for row in X:
        cut.learn_one(row)
    assert len(whole.events_) == 2 * 37
    assert_same(snapshot(whole), snapshot(cut))


def test_what_never_missed_a_reading_is_saved_as_before():
    memory = AdaptiveCCM().partial_fit(plant(0, 300))
    assert "missing" not in memory._export()["state"]
    assert "missing" in memory.partial_fit([[1.0, MISSING, 1.0, 1.0]])._export()["state"]
    again = ccmem.from_bytes(memory.to_bytes())
    assert_same(snapshot(again), snapshot(memory))


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e200])
def test_infinity_is_still_refused(value):
    X = plant(0, 30)
    X[3, 1], X[7, 2] = MISSING, value
    memory = AdaptiveCCM().partial_fit(plant(0, 30))
    before = snapshot(memory)
    with pytest.raises(ValueError, match="at row 7, column 2"):
        memory.partial_fit(X)
    assert_same(snapshot(memory), before)
