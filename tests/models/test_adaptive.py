"""AdaptiveCCM: its twin, what it notices, what it lets pass, and its bound."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from ccmem import CCM, AdaptiveCCM, ModalClassifier
from ccmem.kernels.jit import JIT_ENABLED
from ccmem.memory import JOURNALED, UNITS
from ccmem.metrics.events import score_events
from ccmem.models._blocks import event_of, line_of
from ccmem.models.adaptive import decision, model
from ccmem.models.adaptive.columns import ERROR, FRESH, LATEST, LEVEL, N_KNOWN, N_RUNNING, N_SLOT, NOISE, RING, RUNNING
from ccmem.models.adaptive.decision import has_moved
from ccmem.models.adaptive.kernels import open_slot, refuses
from ccmem.models.adaptive.merging import TO_FIND, mend_partners, merge_cheapest, merge_cost
from ccmem.models.adaptive.onset import variance_of
from ccmem.models.adaptive.signature import (
    COUNT,
    DRIFT,
    N_STATISTICS,
    PAIRS,
    PRODUCT,
    SQUARE,
    VARIANCE,
    WANDER,
    WEIGHT,
    effective_dimensions,
    inflation,
    limit,
    noise,
    observe,
    quantile,
    reach,
)
from ccmem.models.adaptive.twin import Signature
from ccmem.models.adaptive.units_twin import Unit, merge
from ccmem.streams.drift import drifting_sensors
from quick import QuickCCM, assert_is_twin, memories, task_streams
from zoo import adaptive_twin, assert_same, snapshot

long_streams = pytest.mark.skipif(not JIT_ENABLED, reason="the same code as with the JIT on, a hundred times slower")


@settings(max_examples=40)
@given(stream=task_streams(), memory=memories)
def test_kernel_equals_naive_twin_through_changes(stream, memory):
    X, _ = stream
    names = ("n_slots", "max_units", "learning_rate", "false_alarm_every")
    expected = adaptive_twin(X, tuning=QuickCCM._tuning, **{name: getattr(memory, name) for name in names})
    winners = memory._learn(memory._check_chunk(X)).winners
    np.testing.assert_array_equal(winners, expected.pop("winners"))
    assert_is_twin(memory, expected)


@pytest.mark.parametrize("seed", range(3))
def test_kernel_equals_naive_twin_where_tasks_wander_and_move(seed):
    rng = np.random.default_rng(seed)
    walk = 3.0 + np.cumsum(0.03 * rng.normal(size=(900, 3)), axis=0) + 0.3 * rng.normal(size=(900, 3))
    places = np.array([[3, 0, 1], [0, 3, 1], [3, 0.4, 1], [0, 3.4, 1]])
    moving = np.repeat(places, 150, axis=0) + 0.1 * rng.normal(size=(600, 3))
    for X in (walk, moving):
        memory = QuickCCM(n_slots=2)
        winners = memory._learn(memory._check_chunk(X)).winners
        expected = adaptive_twin(X, 2, None, memory.learning_rate, memory.false_alarm_every, QuickCCM._tuning)
        np.testing.assert_array_equal(winners, expected.pop("winners"))
        assert_is_twin(memory, expected)


@pytest.mark.parametrize("seed", range(8))
def test_kernel_equals_naive_twin_where_changes_are_small(seed):
    rng = np.random.default_rng([seed, 11])
    for _ in range(5):
        width, slow = int(rng.integers(1, 4)), rng.uniform(0.0, 0.9)
        centres = rng.normal(3.0, rng.choice([0.3, 1.0]), (3, width))
        lengths = rng.integers(15, 60, 4)
        level = np.repeat(centres[rng.integers(0, 3, 4)], lengths, axis=0)
        hum = rng.normal(size=level.shape) * np.repeat(rng.choice([1.0, 4.0], 4), lengths)[:, np.newaxis]
        for t in range(1, len(hum)):
            hum[t] += slow * hum[t - 1]
        memory = QuickCCM(2, max_units=rng.choice([None, 3]), false_alarm_every=rng.choice([100.0, 1e4]))
        X = level + 0.2 * hum
        winners = memory._learn(memory._check_chunk(X)).winners
        expected = adaptive_twin(
            X, 2, memory.max_units, memory.learning_rate, memory.false_alarm_every, QuickCCM._tuning
        )
        np.testing.assert_array_equal(winners, expected.pop("winners"))
        assert_is_twin(memory, expected)


@long_streams
@pytest.mark.parametrize("seed", [12, 13])
def test_a_return_that_creeps_back_is_noticed_and_the_block_of_the_fault_forgets_it(seed):
    """No batch is a surprise; but it is far from where the block began, and where the first one is."""
    noise = np.sqrt(1 - 0.8**2) * np.random.default_rng(seed).normal(size=(4000, 4))
    X = np.zeros_like(noise)
    for t in range(len(X)):
        X[t] = 0.8 * X[t - 1] + noise[t]
    X[1500:2900, 1] += np.concatenate([np.full(1000, 3.0), np.linspace(3.0, 0.0, 400)])
    memory = AdaptiveCCM(n_slots=2)
    winners = memory._learn(memory._check_chunk(X)).winners
    assert memory.task_pointer_ == 0
    assert abs(memory.block_levels_[1, 1] - 3.0) < 0.3
    expected = adaptive_twin(X, 2, None, memory.learning_rate, memory.false_alarm_every, AdaptiveCCM._tuning)
    np.testing.assert_array_equal(winners, expected.pop("winners"))
    assert_is_twin(memory, expected)


def test_onsets_go_by_the_variance_of_each_feature():
    memory = QuickCCM(n_slots=2).partial_fit(np.random.default_rng(4).normal(3.0, [1.0, 5.0], (60, 2)))
    state = memory._state
    for feature in range(4):
        kind, j = divmod(feature, 2)
        latest = [state.ring[N_SLOT * ((state.counters[LATEST] - back) % RING) + 2 + kind, j] for back in range(2)]
        known = state.readings[RUNNING + N_RUNNING * kind + ERROR, j], state.columns[0, N_KNOWN * kind + NOISE, j]
        assert variance_of(state, feature) == max(*known, sum(latest) / 2)


def test_one_batch_is_enough_to_tell_that_a_block_has_moved():
    rng = np.random.default_rng(3)
    memory = AdaptiveCCM().partial_fit(np.concatenate([rng.normal(level, 0.2, (300, 2)) for level in (1.0, 9.0)]))
    state, levels = memory._state, memory.block_levels_
    assert memory.task_pointer_ == 1
    state.guess[:2] = levels[0], memory._state.columns[0, N_KNOWN + LEVEL]
    state.guess[2:] = 1e-3
    for batches, moved in ((1, True), (0, False)):  # of none, the guess is an old one
        state.counters[FRESH] = batches
        assert has_moved(state, memory._settings(), 0, 2.0) == moved


@pytest.mark.parametrize("seed", range(4))
def test_limits_of_a_signature_are_those_of_the_twin(seed):
    rng = np.random.default_rng(seed)
    for _ in range(50):
        statistics = np.abs(rng.normal(size=N_STATISTICS)) * 10.0 ** rng.uniform(-3, 1, N_STATISTICS)
        statistics[COUNT], statistics[PAIRS] = rng.integers(1, 2000), rng.integers(0, 2000)
        statistics[VARIANCE], statistics[WEIGHT] = rng.uniform(0.01, 1.0), rng.uniform(0.0, 0.6)
        twin = Signature(np.zeros(1), statistics[COUNT], statistics[VARIANCE], statistics[WEIGHT])
        twin.pairs, twin.product, twin.square = statistics[PAIRS], statistics[PRODUCT], statistics[SQUARE]
        weight, z, z_wander = rng.uniform(0.0, 0.2), rng.normal(), rng.normal()
        for which in (WANDER, DRIFT):
            learned = (statistics[which], statistics[which + 1])
            assert limit(statistics, which, weight, z, z_wander) == twin.limit(learned, weight, z, z_wander)


@pytest.mark.parametrize("label_use", ["readout", "merge", "guide"])
@settings(max_examples=40)
@given(stream=task_streams(), memory=memories)
def test_votes_equal_those_of_the_twin(label_use, stream, memory):
    X, labels = stream
    names = ("n_slots", "max_units", "learning_rate", "false_alarm_every")
    classifier = ModalClassifier(memory, label_use=label_use, unlabeled=-1)
    classifier.partial_fit(X, labels, classes=[0, 1, 2])
    if label_use == "readout":  # the memory has not seen the labels: compare votes with who learned what
        counted = clone(memory).partial_fit(X)
        np.testing.assert_array_equal(counted.prototypes_, classifier.memory_.prototypes_)
        assert classifier.votes_.sum() <= counted.win_counts_.sum()
        return
    expected = adaptive_twin(
        X,
        tuning=QuickCCM._tuning,
        labels=labels.tolist(),
        n_labels=3,
        refusing=label_use == "guide",
        **{name: getattr(memory, name) for name in names},
    )
    del expected["winners"]
    if len(expected["prototypes_"]):
        np.testing.assert_array_equal(classifier.votes_, expected.pop("votes_"))
        assert_is_twin(classifier.memory_, expected)


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


def test_a_burst_during_a_needless_suspicion_changes_nothing():
    X = clusters(0)(6000)
    memory = AdaptiveCCM()
    seen = 0
    while memory.partial_fit(X[seen : seen + 1]).alarm_ != 12:
        seen += 1
    burst = np.tile(20.0 * np.random.default_rng(1).normal(size=16), (10, 1))
    memory.partial_fit(burst).partial_fit(X[seen + 1 :])
    assert memory.events_ == []


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
    assert AdaptiveCCM().partial_fit(drifting(400)).n_blocks_ == 2


@long_streams
@pytest.mark.parametrize("dimensions", [2, 10, 100])
def test_one_task_stays_one_block(dimensions):
    X = np.random.default_rng(dimensions).normal(1.0, 1.0, (100_000, dimensions))
    memory = AdaptiveCCM(n_slots=4).partial_fit(X)
    assert memory.events_ == []
    lost = 1 - memory.win_counts_.sum() / len(X)
    assert 0.005 < lost < 0.04  # a suspicion every thousand samples or so, of one batch or two


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
    """Five times nearer to its old place than to any other task: it has moved while nobody looked."""
    a, b = np.array([3.0, 0.0, 1.0, 1.0]), np.array([0.0, 3.0, 1.0, 1.0])
    rng = np.random.default_rng(0)

    def rows(centre):
        return centre + 0.1 * rng.normal(size=(600, 4))

    moved = a + np.array([0.0, 0.5, 0.0, 0.0])
    memory = AdaptiveCCM().partial_fit(np.concatenate([rows(a), rows(b), rows(moved)]))
    assert kinds(memory) == [("new_block", 1), ("recall", 0)]
    elsewhere = np.array([2.0, 2.0, 1.0, 1.0])
    assert kinds(memory.partial_fit(rows(elsewhere)))[2:] == [("new_block", 2)]


def test_a_constant_stream_then_another():
    X = np.repeat(np.eye(3), 200, axis=0)
    memory = AdaptiveCCM().partial_fit(X).partial_fit(X[:200])
    assert kinds(memory) == [("new_block", 1), ("new_block", 2), ("recall", 0)]
    assert memory.n_units_ == 3


def test_zero_vectors_are_passed_over():
    a = clusters(0)
    X = a(300)
    gaps = np.insert(X, np.arange(0, 300, 3), 0.0, axis=0)
    memory, other = AdaptiveCCM().partial_fit(X), AdaptiveCCM().partial_fit(gaps)
    np.testing.assert_array_equal(memory.prototypes_, other.prototypes_)
    assert other.n_samples_seen_ == 400


# Its arithmetic ----------------------------------------------------------------------------------------------------


@long_streams
def test_effective_dimensions_and_correlation_are_those_of_the_data():
    rng = np.random.default_rng(0)
    spread = np.array([3.0, 1.0, 1.0, 0.2])
    U = 0.001 * rng.normal(size=(20_000, 4)) * spread + np.array([0.0, 0.0, 0.0, 1.0])  # nearly unit already
    memory = AdaptiveCCM().partial_fit(U)
    variances = spread[:3] ** 2  # along the mean nothing is left after normalising
    assert effective_dimensions(memory._state.statistics[0]) == pytest.approx(
        variances.sum() ** 2 / (variances**2).sum(), rel=0.1
    )
    assert inflation(memory._state.statistics[0]) == pytest.approx(1.0, abs=0.1)


def test_limits_are_quantiles_of_chi_square():
    from scipy.stats import chi2, norm

    for nu in (1.0, 2.5, 10.0, 100.0):
        for level in (0.05, 0.005, 1e-4):
            assert quantile(nu, norm.isf(level)) == pytest.approx(chi2.isf(level, nu) / nu, rel=0.1)


def test_without_pairs_few_dimensions_are_assumed():
    statistics = np.zeros(N_STATISTICS)
    statistics[VARIANCE] = 1.0
    assert effective_dimensions(statistics) == 2.0
    statistics[[PAIRS, PRODUCT, SQUARE]] = 1e6, 0.5, 1.0
    assert effective_dimensions(statistics) == pytest.approx(1.0, rel=1e-4)
    assert inflation(statistics) == pytest.approx(3.0, rel=1e-4)


def test_what_was_learned_of_wandering_widens_the_limit():
    statistics = np.zeros(N_STATISTICS)
    statistics[[COUNT, VARIANCE, PAIRS, SQUARE]] = 1e6, 1.0, 1e6, 0.1
    assert noise(statistics, 0.01) == pytest.approx(0.01)
    assert reach(statistics, WANDER, 3.0) == 0.0
    rng = np.random.default_rng(0)
    for distance in 0.01 + 0.05 * rng.chisquare(4, 20_000) / 4:
        observe(statistics, WANDER, distance, 0.01, 0.001)
    for z in (0.0, 2.0, 4.0):  # the noise is known to be of ten dimensions, what was added to it of four
        assert reach(statistics, WANDER, z) == pytest.approx(0.05 * quantile(4.0 * 1.2**2, z), rel=0.25)


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
    for old in ({"novelty": "signature"}, {"max_units": 5}):
        with pytest.raises(TypeError, match=r"a class of its own: ccmem\.AdaptiveCCM"):
            CCM(**old)
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
    assert 2300 <= back.step < 2420
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
    with pytest.warns(UserWarning, match=r"no change any more: after 19,000 samples"):
        memory.partial_fit(silence)
    assert memory.blind_ == ("direction", "columns")
    assert "blind to changes of direction and columns" in memory.summary()
    memory.partial_fit(silence).partial_fit(silence)  # warnings are errors here
    assert memory.partial_fit(rng.normal(3.0, 1.0, (100, 2))).blind_ == ()


def test_a_direction_that_wanders_as_far_as_directions_go_is_blind_and_columns_are_not():
    rng = np.random.default_rng(0)
    memory = AdaptiveCCM(n_slots=2).partial_fit(rng.normal(size=(2_000, 2)))
    for which in (WANDER, DRIFT):
        memory._state.statistics[0, which : which + 2] = 3.0, 9.0
    assert memory.blind_ == ("direction",)
    assert "blind to changes of direction: see blind_" in memory.summary()


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


@long_streams
def test_a_random_walk_is_hardly_ever_a_change():
    X = np.cumsum(np.random.default_rng(0).normal(size=(50_000, 8)), axis=0)
    assert len(AdaptiveCCM().partial_fit(X).events_) <= 2


# Its units -----------------------------------------------------------------------------------------------------------


def test_a_slot_refuses_when_more_than_three_quarters_are_of_another_label():
    votes = np.array([[3, 1], [4, 1], [0, 0]])
    assert [refuses(votes, unit, 1) for unit in range(3)] == [False, True, False]
    assert not refuses(votes, 1, 0)


def test_a_new_unit_knows_nothing_of_the_one_that_had_its_place():
    memory = AdaptiveCCM(n_slots=3, max_units=8).partial_fit(clusters(0)(200))
    state, unit = memory._state, memory.n_units_
    assert unit < 8
    state.errors[:] = 7.0
    state.partners[:] = 1
    assert open_slot(state, memory._settings(), 0, np.ones(16), 0.25) == unit
    assert (state.errors[0], state.errors[unit], state.partners[unit], state.wins[unit]) == (0.0, 0.0, TO_FIND, 0)


def test_a_block_that_was_in_use_is_searched_anew_for_units_to_merge():
    memory = AdaptiveCCM(n_slots=3, max_units=40).partial_fit(clusters(0)(400))
    first = memory.n_units_
    memory._state.partners[:first] = 1
    memory.partial_fit(clusters(1)(400))
    assert kinds(memory) == [("new_block", 1)]
    assert (memory._state.partners[:first] == TO_FIND).all()


def test_merges_are_those_of_the_twin_where_everything_ties():
    """Few directions, equal wins: nearly every pair costs the same, so that the rules for ties decide."""
    directions = np.concatenate([np.eye(3), np.eye(3)[[1, 2, 0]] + np.eye(3)])
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    memory = AdaptiveCCM(n_slots=3, max_units=10).partial_fit(np.eye(3))
    for seed in range(60):
        rng = np.random.default_rng(seed)
        state, n = memory._state, 10
        state.prototypes[:n] = directions[rng.integers(0, 6, n)]
        state.wins[:n] = rng.integers(1, 3, n)
        state.rates[:n] = rng.choice([0.25, 0.5], n)
        state.errors[:n] = 1.0
        state.unit_blocks[:n] = rng.integers(0, 2, n)
        state.partners[:n] = TO_FIND
        state.counters[UNITS], state.counters[JOURNALED] = n, 0
        votes = rng.integers(0, 2, (n + 1, 2))
        votes[n] = 0
        units = []
        for i in range(n):
            unit = Unit(state.prototypes[i].copy(), float(state.rates[i]), int(state.unit_blocks[i]), 2)
            unit.C, unit.E, unit.votes = int(state.wins[i]), 1.0, votes[i].tolist()
            units.append(unit)
        for _ in range(5):
            sizes = np.bincount(state.unit_blocks[: len(units)], minlength=2)
            if sizes.max() < 3:
                break
            state.counters[JOURNALED] = 0
            merge_cheapest(state, votes, sizes > 2)
            merge(units, 2)
            known = len(units)
            assert state.counters[UNITS] == known
            np.testing.assert_array_equal(state.prototypes[:known], [unit.M for unit in units])
            assert state.wins[:known].tolist() == [unit.C for unit in units]
            assert state.rates[:known].tolist() == [unit.v for unit in units]
            assert state.errors[:known].tolist() == [unit.E for unit in units]
            assert state.unit_blocks[:known].tolist() == [unit.block for unit in units]
            assert votes[:known].tolist() == [unit.votes for unit in units]
            assert not votes[known:].any()  # nothing is left for the next unit there


def test_a_merged_unit_takes_the_place_of_a_partner_that_costs_the_same_and_comes_later():
    state = AdaptiveCCM(n_slots=3, max_units=10).partial_fit(np.eye(3))._state
    votes = np.zeros((10, 1), np.int64)
    state.prototypes[:4] = [1.0, 0.0, 0.0]
    state.wins[:4], state.unit_blocks[:4], state.counters[UNITS] = 1, 0, 4
    for partner, wanted in ((2, 1), (0, 0)):
        state.partners[:4], state.partners[3] = TO_FIND, partner + 1
        state.costs[3] = merge_cost(state, votes, 3, partner)
        mend_partners(state, votes, 1, 4, 4)
        assert state.partners[3] == wanted + 1


def test_a_question_about_a_change_that_was_cut_short_is_answered_with_the_next_sample(monkeypatch):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(level, 0.2, (150, 3)) for level in ([1.0, 0.0, 0.1], [0.0, 1.0, 0.9])])
    undisturbed, memory = AdaptiveCCM(n_slots=3).partial_fit(X), AdaptiveCCM(n_slots=3)
    answer, asked = model.answer, []

    def cut_short(*arguments):
        asked.append(memory.n_samples_seen_)
        if len(asked) == 1:
            raise KeyboardInterrupt
        answer(*arguments)

    monkeypatch.setattr(model, "answer", cut_short)
    for x in X:
        try:
            memory.learn_one(x)
        except KeyboardInterrupt:
            continue
    assert asked[0] == asked[1]
    assert kinds(memory) == [("new_block", 1)]
    assert_same(snapshot(memory), snapshot(undisturbed))


def test_no_question_is_open_when_the_journal_is_empty():
    asking = getattr(decision.is_asking, "py_func", decision.is_asking)
    for lines, answer in ((0, False), (1, True)):
        counters = np.zeros(3, np.int64)
        counters[JOURNALED] = lines
        state = SimpleNamespace(counters=counters, journal=np.full((4, 6), decision.QUESTION))  # of an earlier chunk
        assert asking(state) == answer


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
