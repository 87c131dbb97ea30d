"""AdaptiveCCM where readings are missing: its twin, its promises, columns that are lost and come back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ccmem
from ccmem import AdaptiveCCM, ModalClassifier
from ccmem.kernels.jit import JIT_ENABLED
from ccmem.models.adaptive import state as names
from ccmem.models.adaptive.cold import _rebase
from quick import QuickCCM, memories, task_streams
from zoo import assert_same, snapshot

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
    assert told(memory)[0] == ("new_block", 1)
    assert memory.n_blocks_ == 2
    assert 8000 < memory.events_[0].step < 8000 + 60 * every
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


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e200])
def test_infinity_is_still_refused(value):
    X = plant(0, 30)
    X[3, 1], X[7, 2] = MISSING, value
    memory = AdaptiveCCM().partial_fit(plant(0, 30))
    before = snapshot(memory)
    with pytest.raises(ValueError, match="at row 7, column 2"):
        memory.partial_fit(X)
    assert_same(snapshot(memory), before)


# Reading the memory --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("normalise", ["columns", "none"])
def test_rows_are_compared_by_what_is_there_and_nothing_changes(normalise):
    X = plant(1, 600)
    X[300:] *= -1.0
    memory = AdaptiveCCM(normalise=normalise).partial_fit(X)
    before, rows = snapshot(memory), X[::7].copy()
    rows[np.random.default_rng(0).random(rows.shape) < 0.4] = MISSING
    rows[3] = MISSING
    found, scores = memory.predict(rows), memory.transform(rows)
    units = memory.prototypes_
    for row, unit, score in zip(rows, found, scores, strict=True):
        there = ~np.isnan(row)
        if not there.any():
            assert unit == memory.win_counts_.argmax()
            continue
        if normalise == "columns":
            away = ((row - units) * memory._state.columns[2])[:, there]
            np.testing.assert_allclose(score, np.sqrt((away**2).sum(axis=1) * len(row) / there.sum()), atol=1e-6)
            continue
        lengths = np.linalg.norm(row[there]) * np.linalg.norm(units[:, there], axis=1)
        np.testing.assert_allclose(score, units[:, there] @ row[there] / lengths, atol=1e-12)
    whole = ~np.isnan(rows).any(axis=1)
    np.testing.assert_array_equal(found[whole], memory.predict(rows[whole]))
    assert memory.task_pointers(rows).shape == (len(rows),)
    assert_same(snapshot(memory), before)


def test_blocks_of_one_direction_are_told_apart_by_the_columns_that_are_there():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal([10.0, 20.0, 5.0], 0.1, (400, 3)), rng.normal([20.0, 40.0, 10.0], 0.2, (400, 3))])
    memory = AdaptiveCCM().partial_fit(X)
    assert memory.n_blocks_ == 2
    rows = X[[10, 50, 500, 700]].copy()
    rows[:, 1] = MISSING
    assert memory.task_pointers(rows).tolist() == [0, 0, 1, 1]


def test_labels_are_learned_and_answered_with_gaps_but_not_with_a_shared_metric():
    X = plant(2, 400)
    y = np.repeat(["off", "on"], 200)
    X[200:] += 30.0
    X[::3, 1] = MISSING
    classifier = ccmem.ModalClassifier(AdaptiveCCM()).fit(X, y)
    assert (classifier.predict(X) == y).mean() > 0.9
    assert ccmem.ModalClassifier(AdaptiveCCM(), n_winners=3).fit(X, y).predict_proba(X).shape == (400, 2)
    with pytest.raises(ValueError, match="NaN at row 0, column 1"):
        ccmem.ModalClassifier(AdaptiveCCM(), metric="shared").fit(X, y)
    with pytest.raises(ValueError, match="NaN at row 0, column 1"):
        ccmem.GatedMLP(AdaptiveCCM()).fit(X, y)


def test_explanations_leave_out_what_a_block_never_heard():
    X = plant(5, 2000)
    X[1000:, 1] += 100.0
    X[800:, 2] = MISSING
    memory = AdaptiveCCM().partial_fit(X)
    change = next(event for event in memory.events_ if event.changes_block)
    assert memory.explain(change).columns[0].name == "column 1"
    assert np.isfinite([column.share for column in memory.explain(change).columns]).all()


def test_a_new_column_is_heard_as_it_comes():
    X = plant(6, 2000)
    memory = AdaptiveCCM().partial_fit(np.ascontiguousarray(X[:1000, :3]))
    memory._widen(4)
    assert np.isnan(memory.block_levels_[0, 3])
    memory.partial_fit(X[1000:])
    np.testing.assert_allclose(memory.block_levels_[0, 3], 40.0, atol=0.5)
    assert memory.n_blocks_ == 1


def test_shards_with_gaps_are_merged():
    first, second = plant(1, 1000), plant(2, 1000)
    first[:, 2] = MISSING
    second[500:, 0] = MISSING
    whole = ccmem.merge([AdaptiveCCM().partial_fit(first), AdaptiveCCM().partial_fit(second)])
    assert whole.n_blocks_ == 1
    np.testing.assert_allclose(whole.block_levels_[0, 2], 0.02, atol=0.001)
    assert [(event.kind, event.column) for event in whole.events_] == [("column_lost", 0)]


@long_streams
def test_a_lost_column_is_expected_where_the_recalled_block_knew_it():
    X = plant(7, 8000)
    X[1500:3000] += np.array([0.0, 100.0, 0.01, 0.0])
    X[3000:4500] += np.array([0.0, 0.0, 0.0, 0.0])
    X[4500:6000] += np.array([0.0, 100.0, 0.01, 0.0])
    X[5000:7000, 2] = MISSING  # known in both blocks by then; lost in one, back in the other
    memory = AdaptiveCCM().partial_fit(X)
    assert [kind for kind in told(memory) if kind[0] in ("new_block", "recall")] == [
        ("new_block", 1),
        ("recall", 0),
        ("recall", 1),
        ("recall", 0),
    ]
    np.testing.assert_allclose(memory.block_levels_[:, 2], [0.02, 0.03], atol=0.001)


def test_frames_lists_and_masks_tell_of_gaps_in_their_own_ways():
    X = plant(0, 60).round(3)
    X[5, 1] = X[7, 3] = MISSING
    expected = AdaptiveCCM().partial_fit(X).prototypes_
    gaps = [[None if value != value else value for value in row] for row in X.tolist()]
    given = [gaps, np.ma.array(np.nan_to_num(X, nan=99.0), mask=np.isnan(X))]
    pandas = pytest.importorskip("pandas")
    columns = {str(j): pandas.array([row[j] for row in gaps], "Float64") for j in range(4)}
    given.append(pandas.DataFrame(columns))
    for rows in given:
        np.testing.assert_array_equal(AdaptiveCCM().partial_fit(rows).prototypes_, expected)
    with pytest.raises(ValueError, match="NaN at row 5, column 1"):
        ccmem.CCM().partial_fit(given[1])


@pytest.mark.parametrize("labelled", [False, True])
def test_the_first_gap_of_a_bounded_or_labelled_memory_leaves_its_numbers_finite(labelled):
    X = np.random.default_rng(0).normal([5.0, 1.0], 0.3, (120, 2))
    X[50, 1] = np.nan
    if labelled:
        memory = ModalClassifier(AdaptiveCCM()).partial_fit(X, np.arange(120) % 2).memory_
    else:
        memory = AdaptiveCCM(max_units=6).partial_fit(X)
    assert np.isfinite(memory.block_levels_).all()
    assert np.isfinite(memory._state.stream).all()


def test_sums_that_wait_for_readings_follow_the_reference() -> None:
    X = np.random.default_rng(0).normal(size=(200, 3))
    X[::2, 1] = np.nan
    state = AdaptiveCCM(n_slots=2).partial_fit(X)._state
    state.gaps[names.READINGS] = (0.0, 3.0, 5.0)
    before = state.stream[names.SUM].copy()
    _rebase(state, state.stream[names.REFERENCE : names.REFERENCE + 2] + 2.0, 4, 16)
    np.testing.assert_allclose(state.stream[names.SUM], before - [0.0, 6.0, 10.0])
