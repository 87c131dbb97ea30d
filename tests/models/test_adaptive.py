"""AdaptiveCCM: its twin, what it notices, what it lets pass, and its bound."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from ccmem import CCM, AdaptiveCCM, ModalClassifier
from ccmem.base.normalised import INVERSE, VARIANCE
from ccmem.core.events import event_of, line_of
from ccmem.io.streams.drift import drifting_sensors
from ccmem.kernels.jit import JIT_ENABLED
from ccmem.metrics.events import score_events
from ccmem.models.adaptive import model
from ccmem.models.adaptive import state as names
from ccmem.models.adaptive.cold import find_others
from ccmem.models.adaptive.columns import set_inverse
from ccmem.models.adaptive.evidence import at_rest, bayes_factor, bayes_factors
from ccmem.models.adaptive.slots import refuses
from naive.adaptive import naive
from quick import QuickCCM, memories, task_streams
from zoo import assert_same, snapshot

long_streams = pytest.mark.skipif(not JIT_ENABLED, reason="the same code as with the JIT on, a hundred times slower")


def assert_is_twin(memory, X):
    """The kernel's winners, units and numbers are those of the naive reference."""
    winners = memory._learn(memory._check_chunk(X)).winners
    expected = naive(X, memory)
    twin = expected.pop("twin")
    np.testing.assert_array_equal(winners, expected.pop("winners"))
    state = memory._state
    for name in ("KEPT", "WAITING", "FRESH", "AGE", "WATCHED", "N_BATCHES", "DOUBT", "ALARM"):
        assert state.counters[getattr(names, name)] == twin.state.counters[getattr(names, name)], name
    n = memory.n_blocks_
    if memory._by_distance:
        np.testing.assert_allclose(state.columns, twin.columns, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(state.blocks[:n], twin.state.blocks[:n], rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(state.ages[:n], twin.state.ages[:n])
    np.testing.assert_allclose(
        state.stream[names.REFERENCE : names.BATCHES],
        twin.state.stream[names.REFERENCE : names.BATCHES],
        rtol=1e-4,
        atol=1e-6,
    )
    np.testing.assert_allclose(
        state.scalars[1 : names.MIXTURE], twin.state.scalars[1 : names.MIXTURE], rtol=1e-4, atol=1e-5
    )
    for name, value in expected.items():
        if len(expected["prototypes_"]):
            np.testing.assert_array_equal(getattr(memory, name), value, err_msg=name)


@settings(max_examples=30)
@given(stream=task_streams(), memory=memories)
def test_kernel_equals_naive_twin_through_changes(stream, memory):
    noise = 0.01 * np.random.default_rng(0).normal(
        size=stream[0].shape
    )  # deviations must not tie: rounding would decide
    assert_is_twin(memory, (stream[0] + noise).astype(stream[0].dtype))


@pytest.mark.parametrize("seed", range(6))
def test_kernel_equals_naive_twin_where_tasks_wander_move_and_return(seed):
    rng = np.random.default_rng(seed)
    walk = 3.0 + np.cumsum(0.03 * rng.normal(size=(900, 3)), axis=0) + 0.3 * rng.normal(size=(900, 3))
    places = np.array([[3, 0, 1], [0, 3, 1], [3, 0.4, 1], [0, 3.4, 1]])
    moving = np.repeat(places, 150, axis=0) + 0.1 * rng.normal(size=(600, 3))
    slow = np.repeat([0.0, 5.0, 0.0], [200, 300, 300]) + rng.normal(size=800)
    for X in (walk, moving, np.column_stack([slow, 0.3 * rng.normal(size=800)])):
        assert_is_twin(QuickCCM(n_slots=2, max_units=rng.choice([None, 3])), X)


@long_streams
@pytest.mark.parametrize("seed", [13, 15])
def test_a_return_that_creeps_back_is_noticed_and_the_block_of_the_fault_still_knows_it(seed):
    """No batch is a surprise; but the stored block fits, and the block of the fault hardly learns the return."""
    noise = np.sqrt(1 - 0.8**2) * np.random.default_rng(seed).normal(size=(5000, 4))
    X = np.zeros_like(noise)
    for t in range(len(X)):
        X[t] = 0.8 * X[t - 1] + noise[t]
    X[1500:2900, 1] += np.concatenate([np.full(1000, 3.0), np.linspace(3.0, 0.0, 400)])
    X[4500:, 1] += 3.0
    memory = AdaptiveCCM(n_slots=2)
    memory.partial_fit(X[:4500])
    assert memory.task_pointer_ == 0
    assert abs(memory.block_levels_[1, 1] - 3.0) < 0.4
    memory.partial_fit(X[4500:])
    assert [(event.kind, event.to_block) for event in memory.events_] == [
        ("new_block", 1),
        ("recall", 0),
        ("recall", 1),
    ]


@long_streams
@pytest.mark.parametrize("seed", range(3))
def test_a_block_that_became_quiet_notices_smaller_shifts(seed):
    spread = np.concatenate([np.full(3000, 3.0), np.geomspace(3.0, 0.3, 6000), np.full(3400, 0.3)])
    X = np.random.default_rng(seed).normal(size=(12_400, 3)) * spread[:, np.newaxis]
    X[12_000:, 0] += 0.9
    memory = AdaptiveCCM(n_slots=2).partial_fit(X)
    (event,) = memory.events_
    assert 12_000 <= event.step < 12_200


@pytest.mark.parametrize("overlap", [1, 32])
def test_a_short_stream_is_tested_at_a_lower_threshold(overlap):
    """One expected false alarm in 100 times as many samples as there are, until that is one in false_alarm_every."""
    X = np.random.default_rng(0).normal(size=(6400, 2))
    memory = AdaptiveCCM(n_slots=2, overlap=overlap, false_alarm_every=1e5)
    for seen in range(160, 6401, 160):
        memory.partial_fit(X[seen - 160 : seen])
        expected = min(100 * seen / overlap, 1e5 / max(overlap, 16))
        assert memory._state.scalars[names.THRESHOLD] == pytest.approx(np.log(expected))
    assert expected == 1e5 / max(overlap, 16)
    assert not memory.events_


@long_streams
@pytest.mark.parametrize("seed", [1, 3, 8])
def test_a_return_takes_less_evidence_than_an_alarm(seed):
    """The stored block fits the batches after the return, and the one in use does not."""
    X = np.sqrt(1 - 0.7**2) * np.random.default_rng(seed).normal(size=(2800, 4))
    for t in range(1, len(X)):
        X[t] += 0.7 * X[t - 1]
    X[1500:2300, 1] += 1.5
    changed, back = AdaptiveCCM(n_slots=2).partial_fit(X).events_
    assert changed.kind == "new_block"
    assert (back.kind, back.to_block) == ("recall", 0)
    assert 2300 < back.step < 2450
    assert 0.5 < back.evidence < 1.0


@pytest.mark.parametrize("overlap", [1, 2, 33, 500])
def test_expected_drift_is_the_variance_of_means_of_overlapping_samples(overlap):
    rows = np.random.default_rng(0).normal(size=200_000 + overlap)
    samples = np.convolve(rows, np.ones(overlap) / overlap, "valid")
    noise = (np.diff(samples) ** 2).mean() / 2 / 16
    measured = [samples[: len(samples) // n * n].reshape(-1, n).mean(axis=1).var() / noise for n in (16, 32, 64, 128)]
    np.testing.assert_allclose(names.expected_drift(16, overlap), measured, rtol=0.1)


@long_streams
@pytest.mark.parametrize("seed", [0, 1])
def test_samples_that_share_rows_with_both_sides_of_a_change_choose_no_block(seed):
    rows = np.repeat([0.0, 8.0], [2000, 247])[:, None] + np.random.default_rng(seed).normal(size=(2247, 2))
    X = np.column_stack([np.convolve(column, np.ones(48) / 48, "valid") for column in rows.T])
    blind, aware = (AdaptiveCCM(n_slots=2, overlap=overlap).partial_fit(X).block_levels_[1] for overlap in (1, 48))
    assert (blind < 7.4).all()
    assert (aware > 7.5).all()


@long_streams
@pytest.mark.parametrize("seed", [0, 1])
def test_a_block_that_varies_widely_does_not_swallow_a_new_level(seed):
    rng = np.random.default_rng(seed)
    levels = np.repeat([0.0, 10.0, 20.0, 30.0, 40.0, 0.0], 400)[:, np.newaxis]
    memory = AdaptiveCCM(n_slots=2).partial_fit(levels + rng.normal(size=(2400, 8)))
    assert memory.n_blocks_ == 5
    memory._state.blocks[4, names.SWAY : names.SWAY + 2] = 100.0**2  # as after a slow transition
    memory.partial_fit(25.0 + rng.normal(size=(300, 8)))
    assert memory.n_blocks_ == 6


@settings(max_examples=40)
@given(stream=task_streams(), memory=memories, data=st.data())
def test_a_stream_may_be_cut_anywhere(stream, memory, data):
    X, labels = stream
    cuts = sorted(data.draw(st.lists(st.integers(0, len(X)), max_size=4)))
    for label_use in ("readout", "guide"):
        whole, cut = (ModalClassifier(memory, label_use=label_use, unlabeled=-1) for _ in range(2))
        whole.partial_fit(X, labels, classes=[0, 1, 2])
        for rows, some in zip(np.split(X, cuts), np.split(labels, cuts), strict=True):
            if len(rows):
                cut.partial_fit(rows, some, classes=[0, 1, 2])
        assert_same(snapshot(whole.memory_), snapshot(cut.memory_))
        np.testing.assert_array_equal(whole.votes_, cut.votes_)


@settings(max_examples=40)
@given(stream=task_streams(), memory=memories)
def test_the_bound_holds_and_no_vote_is_lost(stream, memory):
    X, labels = stream
    classifier = ModalClassifier(memory, unlabeled=-1)
    learned = 0
    for x, label in zip(X, labels, strict=True):
        learned += classifier.learn_one(x, label) >= 0 and label != -1
        if memory.max_units is not None:
            assert classifier.memory_.n_units_ <= memory.max_units
            assert classifier.memory_.n_blocks_ <= memory.max_units
        assert classifier.votes_.sum() == learned
        assert (classifier.votes_.sum(axis=1) <= classifier.memory_.win_counts_).all()


# What it notices ---------------------------------------------------------------------------------------------------


def clusters(seed, width=16, n=3, spread=0.3):
    """A task: rows around a few centres."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n, width))
    return lambda rows: centres[rng.integers(0, n, rows)] + spread * rng.normal(size=(rows, width))


def kinds(memory):
    return [(event.kind, event.to_block) for event in memory.events_]


@pytest.mark.parametrize("width", [3, 16, 200])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_tasks_are_found_and_recalled_whatever_their_scale(width, scale):
    a, b, c = (clusters(seed, width) for seed in range(3))
    lengths = (600, 400, 600, 400, 500)
    X = scale * np.concatenate([task(n) for task, n in zip((a, b, c, a, b), lengths, strict=True)])
    memory = AdaptiveCCM(n_slots=6).partial_fit(X)
    assert kinds(memory) == [("new_block", 1), ("new_block", 2), ("recall", 0), ("recall", 1)]
    delays = np.array([event.step for event in memory.events_]) - np.cumsum(lengths)[:-1]
    assert (delays > 0).all()
    assert (delays < 250).all()
    pointers = memory.task_pointers(np.concatenate([scale * task(50) for task in (a, b, c)]))
    assert (pointers == np.repeat([0, 1, 2], 50)).mean() > 0.7


def test_low_dimensional_data_far_from_the_origin():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal([50, 40], 0.5, (800, 2)), rng.normal([50, 43], 0.5, (800, 2))])
    assert kinds(AdaptiveCCM().partial_fit(X)) == [("new_block", 1)]


@pytest.mark.parametrize("length", [1, 5, 20])
@pytest.mark.parametrize("start", [1500, 1507, 1513])
def test_an_outlier_burst_as_long_as_a_batch_changes_nothing(length, start):
    a = clusters(0)
    X = a(3000)
    X[start : start + length] = 20.0 * np.random.default_rng(1).normal(size=16)
    memory = AdaptiveCCM().partial_fit(X)
    assert memory.events_ == []
    assert memory.n_blocks_ == 1


def test_a_mixture_of_two_tasks_is_a_task_of_its_own():
    a, b = clusters(4), clusters(5)
    rng = np.random.default_rng(2)

    def mixed(n):
        return np.where(rng.random((n, 1)) < 0.5, a(n), b(n))

    X = np.concatenate([a(1000), b(1000), mixed(1000), a(1000), mixed(1000)])
    events = kinds(AdaptiveCCM().partial_fit(X))
    assert events == [("new_block", 1), ("new_block", 2), ("recall", 0), ("recall", 2)]


@long_streams
def test_slow_drift_is_followed_and_fast_drift_is_a_change():
    a = clusters(0)
    towards = np.random.default_rng(1).normal(size=16)

    def drifting(rows):
        way = np.concatenate([np.zeros(2000), np.linspace(0, 1, rows), np.ones(2000)])
        return a(len(way)) + way[:, None] * towards

    assert AdaptiveCCM().partial_fit(drifting(40_000)).n_blocks_ == 1
    assert 2 <= AdaptiveCCM().partial_fit(drifting(400)).n_blocks_ <= 3


@long_streams
@pytest.mark.parametrize("dimensions", [2, 10, 100])
def test_one_task_stays_one_block(dimensions):
    X = np.random.default_rng(dimensions).normal(1.0, 1.0, (100_000, dimensions))
    memory = AdaptiveCCM(n_slots=4).partial_fit(X)
    assert memory.events_ == []
    lost = 1 - memory.win_counts_.sum() / len(X)
    assert lost < 0.01  # batches in doubt


@long_streams
@pytest.mark.parametrize("correlation", [0.9, 0.99])
def test_correlated_samples_raise_no_alarm(correlation):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 4))
    for i in range(1, len(X)):
        X[i] = correlation * X[i - 1] + np.sqrt(1 - correlation**2) * X[i]
    memory = AdaptiveCCM(n_slots=4).partial_fit(X + 6.0)
    assert memory.events_ == []
    assert kinds(memory.partial_fit(X[:3000] + np.array([6.0, -18.0, 6.0, 6.0]))) == [("new_block", 1)]


@long_streams
def test_samples_that_come_in_runs_are_one_task():
    """A hundred samples of one kind, then of another, as writers come in the files of handwritten digits."""
    rng = np.random.default_rng(0)
    kinds_of_run = rng.normal(size=(12, 10))
    X = 3.0 + np.repeat(kinds_of_run[rng.integers(0, 12, 300)], 100, axis=0) * 0.2 + rng.normal(size=(30_000, 10))
    memory = AdaptiveCCM(n_slots=4).partial_fit(X)
    assert memory.n_blocks_ <= 2
    assert memory.win_counts_.sum() > 0.9 * len(X)


@long_streams
@pytest.mark.parametrize("seed", [11, 12])
def test_sensors_with_a_cycle_and_a_drift(seed):
    stream = drifting_sensors(n_rows=60_000, seed=seed)
    memory = AdaptiveCCM(n_slots=4)
    for X, _ in stream.chunks():
        memory.partial_fit(X)
    score = score_events(memory.events_, stream.starts[1:].tolist(), tasks=stream.visits.tolist())
    assert score.missed == 0
    assert score.false_alarms <= 1
    assert score.right_recalls == score.returns > 5
    assert memory.n_blocks_ <= 5
    assert memory.win_counts_.sum() > 0.95 * memory.n_samples_seen_  # slots wait for changes, not for wandering


@long_streams
@pytest.mark.parametrize("movement", ["drift", "cycle", "walk"])
def test_an_abrupt_change_is_seen_in_a_block_that_wanders(movement):
    """The mean of the whole block is far off by then; the reference is not."""
    false_alarms = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        t = np.arange(30_000)[:, None]
        towards = rng.normal(size=10) / np.sqrt(10)
        X = 1.0 + 0.3 * rng.normal(size=(len(t), 10))
        X += {
            "drift": towards * t / 10_000,
            "cycle": 0.5 * towards * np.sin(t / 800),
            "walk": np.cumsum(0.002 * rng.normal(size=X.shape), axis=0),
        }[movement]
        memory = AdaptiveCCM(n_slots=4).partial_fit(X[:25_000])
        before = len(memory.events_)
        false_alarms += before
        memory.partial_fit(X[25_000:] + 0.7 * rng.normal(size=10))
        assert [event.kind for event in memory.events_[before:]] == ["new_block"]
        assert memory.events_[before].step < 25_150
    assert false_alarms <= (2 if movement == "walk" else 0)  # in 100,000 rows; walks have one on average


@long_streams
def test_a_task_that_comes_back_a_little_elsewhere_is_recalled():
    """Far nearer to its old place than to any other task: it has moved meanwhile."""
    a, b = np.array([3.0, 0.0, 1.0, 1.0]), np.array([0.0, 3.0, 1.0, 1.0])
    rng = np.random.default_rng(0)

    def rows(centre):
        return centre + 0.1 * rng.normal(size=(600, 4))

    moved = a + np.array([0.0, 0.2, 0.0, 0.0])
    memory = AdaptiveCCM().partial_fit(np.concatenate([rows(a), rows(b), rows(moved)]))
    assert kinds(memory) == [("new_block", 1), ("recall", 0)]
    elsewhere = np.array([2.0, 2.0, 1.0, 1.0])
    assert kinds(memory.partial_fit(rows(elsewhere)))[2:] == [("new_block", 2)]


def test_a_constant_stream_then_another():
    X = np.repeat(np.eye(3), 200, axis=0)
    memory = AdaptiveCCM().partial_fit(X).partial_fit(X[:200])
    assert kinds(memory) == [("new_block", 1), ("new_block", 2), ("recall", 0)]
    assert memory.n_units_ <= 6  # rows before the alarm may have opened a slot


def test_zero_vectors_are_passed_over():
    a = clusters(0)
    X = a(300)
    gaps = np.insert(X, np.arange(0, 300, 3), 0.0, axis=0)
    memory, other = (AdaptiveCCM(normalise="none").partial_fit(rows) for rows in (X, gaps))
    np.testing.assert_array_equal(memory.prototypes_, other.prototypes_)
    assert other.n_samples_seen_ == 400
    assert AdaptiveCCM().fit(gaps).win_counts_.sum() == 400  # in columns, zeros are readings


# Its coordinates -----------------------------------------------------------------------------------------------------


def blobs(n=1200, seed=0):
    """Rows around twelve centres, and the label of each centre."""
    rng = np.random.default_rng(seed)
    centres, which = 2.0 * rng.normal(size=(12, 5)), rng.integers(0, 12, n)
    return centres[which] + 0.3 * rng.normal(size=(n, 5)), which % 3


def accuracy(X, y, **parameters):
    classifier = ModalClassifier(AdaptiveCCM(**parameters)).partial_fit(X[:900], y[:900])
    return (classifier.predict(X[900:]) == y[900:]).mean()


def test_columns_of_any_unit_and_origin_give_the_same_units():
    """Raw and standardised columns: the same events and winners, and prototypes in the units of the data."""
    X, y = blobs()
    scale, origin = 2.0 ** np.array([-20, -3, 0, 9, 30]), np.array([0.0, 100.0, -1e3, 1e6, 3e11])
    raw, other = (AdaptiveCCM().fit(rows) for rows in (X, X * scale + origin))
    np.testing.assert_array_equal(raw.labels_, other.labels_)
    np.testing.assert_allclose((other.prototypes_ - origin) / scale, raw.prototypes_, atol=1e-3)
    np.testing.assert_allclose(other.transform(X * scale + origin), raw.transform(X), atol=1e-3)
    assert accuracy(X * scale + origin, y) == accuracy(X, y) > 0.9
    assert accuracy(X * scale + origin, y, normalise="none") < 0.7


@pytest.mark.parametrize(("scale", "origin"), [(1, 10), (3, 0), (-1, 1), (1e-3, 1e3)])
def test_evidence_does_not_depend_on_unit_and_origin_of_a_periodic_column(scale, origin):
    """Three batches a period: the highest and the lowest are equally far from the level, up to rounding."""
    X = np.random.default_rng(0).normal(size=(1000, 3))
    X[:, 0] = np.arange(1000) % 48 / 47
    raw, other = (AdaptiveCCM().fit(rows)._state for rows in (X, X * scale + origin))
    evidence = slice(names.MEAN, names.MIXTURE)
    np.testing.assert_allclose(other.scalars[evidence], raw.scalars[evidence], rtol=1e-7)


@pytest.mark.parametrize("forced", ["auto", "none", "columns"])
def test_many_columns_of_one_unit_are_compared_by_direction(forced):
    X = np.random.default_rng(0).random((300, 40)).astype(np.float32)
    memory = AdaptiveCCM(n_slots=5, normalise=forced).partial_fit(X[:255])
    assert memory._by_distance == (forced == "columns")
    memory.partial_fit(X[255:])
    assert memory._by_distance == (forced == "columns")
    assert_is_twin(AdaptiveCCM(n_slots=5, normalise=forced), X)


def test_many_columns_of_mixed_units_are_scaled_after_256_rows():
    X = np.random.default_rng(0).normal(1.0, 0.2, (500, 40)) * 10.0 ** np.linspace(-3, 3, 40)
    memory = AdaptiveCCM(n_slots=5).partial_fit(X[:255])
    np.testing.assert_allclose(np.linalg.norm(memory.prototypes_, axis=1), 1.0)
    memory.partial_fit(X[255:256])
    np.testing.assert_allclose(np.linalg.norm(memory.prototypes_, axis=1), np.linalg.norm(X, axis=1).mean(), rtol=0.1)
    assert_is_twin(AdaptiveCCM(n_slots=5), X)


def test_odd_columns_are_defined():
    X, y = blobs()
    rng = np.random.default_rng(1)
    constant = np.column_stack([X, np.full(len(X), 7.0)])
    assert accuracy(constant, y) == accuracy(X, y)
    constant[700:, 5] = 8.0  # it moves at last
    assert accuracy(constant, y) > 0.9
    codes = np.column_stack([X, rng.integers(0, 5, len(X)), rng.random(len(X)) < 0.01])
    assert accuracy(codes, y) > 0.8
    huge = X * np.array([1e69, 1.0, 1e-100, 1.0, 1.0])
    assert accuracy(huge, y) == accuracy(X, y)
    heavy = np.column_stack([X, np.exp(20.0 * rng.normal(size=len(X)))])  # no finite variance
    assert accuracy(heavy, y) > 0.9
    one = AdaptiveCCM().fit(np.repeat([[3.0], [9.0]], 50, axis=0)[rng.permutation(100)])
    assert one.predict([[2.5], [9.5]]).tolist() == one.predict([[3.0], [9.0]]).tolist()
    assert sorted({*one.prototypes_[one.predict([[3.0], [9.0]])].ravel().round(6)}) == [3.0, 9.0]
    nothing = AdaptiveCCM().fit(np.zeros((40, 2)))
    assert nothing.n_units_ == 1


def test_a_column_that_comes_later_sends_no_row_to_other_units():
    X, _ = blobs()
    late = np.column_stack([X, 300.0 + np.random.default_rng(2).normal(size=len(X))])
    memory = AdaptiveCCM().partial_fit(X[:900])
    memory._widen(6)
    memory.partial_fit(late[900:])
    np.testing.assert_allclose(memory.prototypes_[:, 5], 300.0, atol=5.0)


def test_slots_that_have_won_often_win_less_easily():
    X, _ = blobs()
    plain, fair = (AdaptiveCCM(n_slots=8, fair=fair).partial_fit(X).win_counts_ for fair in (False, True))
    assert fair.std() < 0.7 * plain.std()


# Its bound ---------------------------------------------------------------------------------------------------------


def test_a_block_grows_within_the_bound_and_makes_way_for_others():
    a, other = clusters(0, n=40), clusters(1, n=40)
    memory = AdaptiveCCM(n_slots=5, max_units=24).partial_fit(a(4000))
    assert memory.n_units_ == 24
    assert memory.n_blocks_ == 1
    memory.partial_fit(other(4000) + np.repeat([1.0, -1.0], 8))
    assert np.bincount(memory.unit_blocks_).tolist() == [12, 12]
    assert AdaptiveCCM(n_slots=5).partial_fit(a(4000)).n_units_ == 5


def test_merging_prefers_the_same_label():
    """Two pairs of neighbours, the closer one of different labels: which is merged depends on ``label_use``."""
    units = np.array([[1, 0, 0, 0, 0], [0.64, 0.77, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0.5, 0.87, 0]])
    first = np.tile(units, (100, 1))
    labels = np.tile([0, 1, 2, 2], 100)
    away = np.repeat([[0.0, 0.0, 0.0, 0.1, -1.0]], 150, axis=0)
    kept = {}
    for label_use in ("readout", "merge"):
        classifier = ModalClassifier(AdaptiveCCM(n_slots=4, max_units=4), label_use=label_use)
        classifier.memory.set_params(learning_rate=0.01)
        classifier.partial_fit(first, labels).partial_fit(away, np.full(150, 3))
        assert classifier.memory_.n_blocks_ == 2
        kept[label_use] = sorted(classifier.predict(units).tolist())
        assert classifier.votes_.sum() == classifier.memory_.win_counts_.sum()
    assert kept["merge"] == [0, 1, 2, 2]
    assert kept["readout"] != kept["merge"]


def test_slots_refuse_what_contradicts_them():
    rng = np.random.default_rng(0)
    centre = np.array([1.0, 1.0, 1.0])
    X = centre + 0.1 * rng.normal(size=(400, 3))
    y = (X[:, 0] > X[:, 1]).astype(int)
    scores = {}
    for label_use in ("readout", "guide"):
        classifier = ModalClassifier(AdaptiveCCM(n_slots=6), label_use=label_use).partial_fit(X, y)
        scores[label_use] = np.max(classifier.votes_, axis=1).sum() / classifier.votes_.sum()
    assert scores["guide"] > scores["readout"]


def test_labels_do_not_touch_the_memory_by_default():
    X = clusters(0)(500)
    y = np.random.default_rng(0).integers(0, 3, 500)
    classifier = ModalClassifier(AdaptiveCCM(max_units=20)).partial_fit(X, y)
    assert_same(snapshot(classifier.memory_), snapshot(AdaptiveCCM(max_units=20).partial_fit(X)))


# How it is asked for -----------------------------------------------------------------------------------------------


def test_what_cannot_be_is_refused():
    X = np.eye(3)
    with pytest.raises(ValueError, match="false_alarm_every=3 is not possible"):
        AdaptiveCCM(false_alarm_every=3).fit(X)
    with pytest.raises(ValueError, match=r"max_units from None to 9 cannot change"):
        AdaptiveCCM().fit(X).set_params(max_units=9).partial_fit(X)
    with pytest.raises(ValueError, match="needs a memory that looks at labels"):
        ModalClassifier(CCM(), label_use="guide").fit(X, [0, 1, 2])


# What columns notice -------------------------------------------------------------------------------------------------


def shifted(change, width=8, rows=(1500, 800, 800), seed=0):
    """Noise around 5, ``change`` applied to the middle part."""
    rng = np.random.default_rng(seed)
    parts = [5.0 + rng.normal(size=(n, width)) for n in rows]
    parts[1] = change(parts[1])
    return np.concatenate(parts)


def one_column(X):
    X[:, 3] += 2.0
    return X


@pytest.mark.parametrize("change", [lambda X: 3.0 * X, one_column], ids=["everything times 3", "one column"])
@pytest.mark.parametrize("units", [np.ones(8), 10.0 ** np.linspace(-3, 3, 8)], ids=["equal", "six decades"])
def test_magnitude_and_single_columns_count_whatever_their_units(change, units):
    X = shifted(change) * units
    memory = AdaptiveCCM(n_slots=4).partial_fit(X)
    assert kinds(memory) == [("new_block", 1), ("recall", 0)]
    first, back = memory.events_
    assert 1500 <= first.step < 1600
    assert 2300 <= back.step < 2480
    assert 1440 <= first.onset <= 1520  # a run may have begun by chance
    pointers = memory.task_pointers(X[[*range(1000, 1500), *range(1800, 2300)]])
    assert (pointers == np.repeat([0, 1], 500)).mean() > (0.9 if change is not one_column else 0.7)


def test_a_change_of_spread_is_a_change():
    memory = AdaptiveCCM().partial_fit(shifted(lambda X: 5.0 + 2.0 * (X - 5.0)))
    assert kinds(memory)[0] == ("new_block", 1)
    np.testing.assert_allclose(memory.block_spreads_[1] / memory.block_spreads_[0], 2.0, rtol=0.3)


def test_spreads_that_all_go_back_a_little_are_a_return():
    """No column is certain enough by itself: all together are."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 8))
    X[2000:3000] *= 1.5
    assert kinds(AdaptiveCCM().partial_fit(X)) == [("new_block", 1), ("recall", 0)]


def test_a_memory_that_can_notice_nothing_says_so_once():
    rng = np.random.default_rng(0)
    memory = AdaptiveCCM(n_slots=2).partial_fit(rng.normal(3.0, 1.0, (9_000, 2)))
    assert memory.blind_ == ()
    assert "blind" not in memory.summary()
    silence = np.full((10_000, 2), np.nan)
    with pytest.warns(UserWarning, match=r"no longer detect changes: after 19,000 samples"):
        memory.partial_fit(silence)
    assert memory.blind_ == ("column 0", "column 1")
    assert "blind to changes of column 0 and column 1" in memory.summary()
    memory.partial_fit(silence).partial_fit(silence)  # warnings are errors here
    assert memory.partial_fit(rng.normal(3.0, 1.0, (100, 2))).blind_ == ()


def test_levels_are_in_the_units_of_the_data_and_explain_the_event():
    memory = AdaptiveCCM().partial_fit(shifted(one_column) * 1000.0)
    np.testing.assert_allclose(memory.block_levels_[0], 5000.0, rtol=0.05)
    explanation = memory.explain(memory.events_[0])
    assert explanation.own_units
    assert explanation.columns[0].name == "column 3"
    assert abs(explanation.columns[0].change - 2000.0) < 400.0


def test_constant_columns_and_rare_codes_raise_no_alarm_and_a_constant_that_moves_does():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.full(6000, 7.0), np.zeros(6000), rng.random(6000) < 0.01, rng.normal(size=6000)])
    assert AdaptiveCCM().partial_fit(X).events_ == []
    X[4000:, 0] = 7.5
    assert kinds(AdaptiveCCM().partial_fit(X)) == [("new_block", 1)]


@pytest.mark.parametrize("seed", range(3))
def test_a_random_walk_raises_no_alarm_while_it_is_young(seed):
    """Its first steps are the only hint of how much it drifts; a cap relative to white noise would hide them."""
    X = np.cumsum(np.random.default_rng(seed).normal(size=(1500, 8)), axis=0)
    assert AdaptiveCCM().partial_fit(X).events_ == []


def test_tasks_of_180_rows_are_told_apart_from_the_first_on():
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    halves = [np.array_split(rng.permutation(np.flatnonzero(y // 2 == task)), 2) for task in range(5)]
    rows = np.concatenate([half[turn] for turn in (0, 1) for half in halves])
    expected = [("new_block", k) for k in range(1, 5)] + [("recall", k) for k in range(5)]
    assert kinds(AdaptiveCCM().partial_fit(X[rows])) == expected


def test_batches_that_alternate_raise_no_alarm():
    """Their mean over a period is nearly constant, but the trimmed mean is not."""
    X = np.sin(np.arange(8000) * np.pi / 16)[:, None] + 0.01 * np.random.default_rng(0).normal(size=(8000, 4))
    assert AdaptiveCCM().partial_fit(X).events_ == []


@long_streams
def test_a_random_walk_is_hardly_ever_a_change():
    X = np.cumsum(np.random.default_rng(0).normal(size=(50_000, 8)), axis=0)
    assert len(AdaptiveCCM().partial_fit(X).events_) <= 2


# Its units -----------------------------------------------------------------------------------------------------------


def test_a_slot_refuses_when_more_than_three_quarters_are_of_another_label():
    votes = np.array([[3, 1], [4, 1], [0, 0]])
    assert [refuses(votes, unit, 1) for unit in range(3)] == [False, True, False]
    assert not refuses(votes, 1, 0)


def test_a_decision_that_was_interrupted_is_taken_with_the_next_sample(monkeypatch):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(level, 0.2, (300, 3)) for level in ([1.0, 0.0, 0.1], [0.0, 1.0, 0.9])])
    undisturbed, memory = AdaptiveCCM(n_slots=3).partial_fit(X), AdaptiveCCM(n_slots=3)
    decide, asked = model.decide, []

    def cut_short(*arguments):
        asked.append(memory.n_samples_seen_)
        if len(asked) == 1:
            raise KeyboardInterrupt
        return decide(*arguments)

    monkeypatch.setattr(model, "decide", cut_short)
    for x in X:
        try:
            memory.learn_one(x)
        except KeyboardInterrupt:
            continue
    assert asked[0] == asked[1]
    assert kinds(memory) == [("new_block", 1)]
    assert_same(snapshot(memory), snapshot(undisturbed))


def test_the_larger_a_change_the_surer_its_event():
    rng = np.random.default_rng(5)
    found = []
    for shift in (1.0, 3.0, 40.0):
        X = rng.normal(5.0, 1.0, (900, 4))
        X[600:, 2] += shift
        events = AdaptiveCCM().partial_fit(X).events_
        found.append(events[0].evidence)
        assert load_round_trip(events) == events
    assert 1.0 <= found[0] < found[1] < found[2] <= 50.0


def load_round_trip(events):
    """Events as a journal keeps them, and back."""
    return [event_of(line_of(event)) for event in events]


def test_comparing_the_nearest_of_many_blocks_decides_like_comparing_all(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(24, 4)) * 10
    visits = [*range(24), *rng.integers(24, size=24)]
    rows = [centres[regime] + rng.normal(0, 0.3, (256, 4)) for regime in visits]
    found = []
    for most in (4, 1000):
        monkeypatch.setattr("ccmem.models.adaptive.fit.MOST_COMPARED", most)
        memory = AdaptiveCCM(n_slots=2)
        for chunk in rows:
            memory.partial_fit(chunk)
        found.append(memory.events_)
    assert found[0] == found[1]
    assert sum(event.kind == "recall" for event in found[0]) >= 20


def test_spreads_follow_from_all_blocks_whichever_is_in_use() -> None:
    """The largest spread of the blocks that wait is computed once per visit, not once per batch."""
    rng = np.random.default_rng(1)
    memory, centres, spreads, decided = AdaptiveCCM(n_slots=2), [0.0, 5.0, 9.0], [100.0, 0.1, 0.2], 0
    for regime in [0, 1, 2, 1, 0, 1, 2]:
        memory.partial_fit(centres[regime] + spreads[regime] * rng.normal(size=(2000, 3)))
        state, options = memory._state, memory._settings()
        anew = state._replace(stream=state.stream.copy(), scratch=np.zeros_like(state.scratch))
        find_others(anew, options)
        set_inverse(anew, options)
        known = state._replace(stream=state.stream.copy(), scratch=state.scratch.copy())
        set_inverse(known, options)
        np.testing.assert_array_equal(known.columns, anew.columns)
        decided += bool((anew.columns[INVERSE] < 1 / np.sqrt(anew.columns[VARIANCE])).all())
    assert memory.n_blocks_ == 3
    assert decided >= 3  # spreads in the wide block decide while another is in use


def test_bayes_factors_by_series_are_those_by_logarithms() -> None:
    z2 = np.concatenate([[0.0], np.logspace(-4, 2, 200)])
    for nu in (4.0, 9.0, 60.0, 1e3):
        out = np.empty_like(z2)
        bayes_factors(len(z2), 0, out, z2, np.full_like(z2, nu), np.zeros_like(z2), 8.0)
        exact = np.array([bayes_factor(z, nu, 8.0) for z in z2])
        in_series = out > 0
        np.testing.assert_allclose(out[in_series], exact[in_series], rtol=1e-6)
        assert in_series.sum() > 100
    bayes_factors(len(z2), 0, out, z2, np.full_like(z2, nu), np.full_like(z2, -1.0), 8.0)
    assert (out == 1.0).all()  # columns without readings say nothing


def test_the_mixture_at_rest_is_the_larger_of_one_batch_and_a_window() -> None:
    scalars = np.zeros(names.N_SCALARS)
    for place, values in ((names.COUNT, (6.0, 4.0)), (names.MEAN, (1.0, 3.0)), (names.VARIANCE, (2.0, 5.0))):
        scalars[place], scalars[place + 2] = values
    mean, deviation = at_rest(scalars, 2, 0.5)
    assert (mean, deviation) == (3.0, np.sqrt((4.0 * 5.0 + 4.0 * 0.5) / (4.0 + 4.0)))
    scalars[names.COUNT + 2] = 0.0  # no window yet: the mean is that of one batch, the variance at least the prior
    assert at_rest(scalars, 2, 0.5) == (1.0, np.sqrt((6.0 * 2.0 + 4.0 * 0.5) / (6.0 + 4.0)))
