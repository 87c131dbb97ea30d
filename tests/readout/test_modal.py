"""Modal classification: votes, missing labels, new classes."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError

from ccmem import ARTC2A, CCM, AdaptiveCCM, IncrementalWTA, ModalClassifier, load
from ccmem.core.codes import MOVE, REMOVE
from ccmem.kernels.votes import count_votes
from ccmem.readout.metric import SharedMetric
from zoo import ALL, assert_same, seeded, snapshot

X4 = np.array([[0.0], [10.0], [1.0], [9.0]])


def classifier(**options):
    return ModalClassifier(IncrementalWTA(2, learning_rate=0.1), **options)


@pytest.mark.parametrize(
    ("labels", "unlabeled"),
    [
        ([0.0, 1.0, np.nan, 1.0], None),
        (["low", "high", None, "high"], None),
        (["low", "high", np.nan, "high"], None),
        (pd.array([0, 1, None, 1], dtype="Int64"), None),
        (pd.Series(["low", "high", pd.NA, "high"], dtype="string"), None),
        (np.array([0, 1, -1, 1]), -1),
        (np.array(["low", "high", "?", "high"]), "?"),
        ([False, True, None, True], None),
    ],
    ids=["nan", "none", "nan among text", "pandas integers", "pandas text", "-1", "?", "booleans"],
)
def test_missing_labels_teach_but_do_not_vote(labels, unlabeled):
    clf = classifier(unlabeled=unlabeled).fit(X4, labels)
    assert clf.votes_.sum() == 3
    assert clf.memory_.win_counts_.tolist() == [2, 2]
    assert len(clf.classes_) == 2
    low, high = clf.predict([[1.0], [9.0]])
    assert (low, high) == (labels[0], labels[1])


def test_a_chunk_without_labels():
    clf = classifier().partial_fit(X4, None)
    with pytest.raises(NotFittedError, match="no label yet"):
        clf.predict(X4)
    clf.partial_fit(X4[:1], [3])
    assert clf.predict(X4).tolist() == [3, 3, 3, 3]  # the unit without votes does not predict


def test_new_classes_may_appear_at_any_time():
    clf = classifier().partial_fit([[0.0]], ["m"]).partial_fit([[10.0]], ["z"])
    clf.partial_fit([[0.0], [0.0]], ["a", "a"])
    assert clf.classes_.tolist() == ["a", "m", "z"]
    assert clf.votes_.tolist() == [[2, 1, 0], [0, 0, 1]]
    assert clf.predict([[0.0]]).tolist() == ["a"]
    assert clf.predict_proba([[0.0]]).tolist() == [[2 / 3, 1 / 3, 0.0]]


def test_announced_classes_are_listed_at_once():
    clf = classifier().partial_fit(X4, [1, 1, 1, 1], classes=[0, 1, 2])
    assert clf.classes_.tolist() == [0, 1, 2]
    assert clf.predict_proba([[0.0]]).tolist() == [[0.0, 1.0, 0.0]]


def test_a_rejected_sample_casts_no_vote():
    A, B = np.eye(2)
    clf = ModalClassifier(CCM(n_slots=1, commit_limit=2, random_state=0))
    clf.partial_fit([A] * 10, ["a"] * 10).partial_fit([B] * 5, ["b"] * 5)
    assert clf.votes_.sum() == 10
    assert clf.classes_.tolist() == ["a", "b"]


@pytest.mark.parametrize("model", ALL, ids=lambda m: m.__name__)
@given(seed=st.integers(0, 1000), cuts=st.lists(st.integers(0, 60), max_size=3))
def test_cutting_a_labelled_stream_changes_nothing(model, seed, cuts):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, size=(60, 3)).astype(float)
    X[0] = 1.0
    y = rng.choice(np.array(["a", "b", "c", None], dtype=object), 60)
    y[0] = "b"
    whole = ModalClassifier(seeded(model)).partial_fit(X, y)
    cut, single = ModalClassifier(seeded(model)), ModalClassifier(seeded(model))
    for rows in np.split(np.arange(60), sorted(cuts)):
        if len(rows):
            cut.partial_fit(X[rows], y[rows])
    for x, label in zip(X, y, strict=True):
        single.learn_one(x, label)
    for other in (cut, single):
        assert_same(snapshot(whole.memory_), snapshot(other.memory_))
        np.testing.assert_array_equal(whole.votes_, other.votes_)
        np.testing.assert_array_equal(whole.classes_, other.classes_)
    assert whole.predict(X).tolist() == [single.predict_one(x) for x in X]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1, 2, 3], "3 labels for 4 rows"),
        ([0.0, 1.0, np.inf, 1.0], "y contains infinity"),
        ([0.5, 1.25, 2.0, 3.0], "Unknown label type"),
        ([1, "a", 2, "b"], "cannot be sorted together"),
        ([[1, 2], [3, 4], [5, 6], [7, 8]], "y should be a 1d array"),
        (np.array(["2020-01-01"] * 4, "M8[D]"), r"datetime64\[D\].*astype\(str\)"),
        (np.array([1, 2, 3, 4], "m8[s]"), "labels of type timedelta64"),
    ],
)
def test_bad_labels_are_named_and_change_nothing(y, message):
    clf = classifier().fit(X4, [0, 1, 0, 1])
    before, votes = snapshot(clf.memory_), clf.votes_
    for call in (clf.partial_fit, clf.fit):
        with pytest.raises(ValueError, match=message):
            call(X4, np.array(y, dtype=object) if message.startswith("cannot") else y)
        assert_same(before, snapshot(clf.memory_))
        np.testing.assert_array_equal(votes, clf.votes_)


def test_bad_rows_change_no_votes():
    clf = classifier().fit(X4, [0, 1, 0, 1])
    before, votes = snapshot(clf.memory_), clf.votes_
    with pytest.raises(ValueError, match="row 1, column 0"):
        clf.partial_fit([[1.0], [np.nan]], [5, 6])
    assert_same(before, snapshot(clf.memory_))
    np.testing.assert_array_equal(votes, clf.votes_)
    assert clf.classes_.tolist() == [0, 1]


def test_calibration_ignores_classes_that_a_chunk_names_before_their_first_rows():
    rng = np.random.default_rng(0)
    y = np.repeat([2, 0, 1], 100)
    y[rng.random(300) < 0.1] = 2
    X = rng.normal(np.eye(3)[y], 0.5)
    whole, cut = (ModalClassifier(AdaptiveCCM(n_slots=3)) for _ in range(2))
    whole.partial_fit(X, y)
    cut.partial_fit(X[:102], y[:102]).partial_fit(X[102:], y[102:])
    np.testing.assert_array_equal(whole.predict_proba(X), cut.predict_proba(X))


def test_labels_and_text_do_not_mix_across_chunks():
    clf = classifier().fit(X4, [0, 1, 0, 1])
    with pytest.raises(ValueError, match="mixes labels"):
        clf.partial_fit(X4, ["a", "b", "a", "b"])
    assert clf.classes_.tolist() == [0, 1]


def test_fit_needs_labels():
    with pytest.raises(ValueError, match="y to be passed"):
        classifier().fit(X4, None)
    with pytest.raises(ValueError, match="every label in y is missing"):
        classifier().fit(X4, [None] * 4)


def test_only_memories_will_do():
    with pytest.raises(TypeError, match="not a competitive memory"):
        ModalClassifier("memory").fit(X4, [0, 1, 0, 1])


def test_the_memory_passed_in_stays_untouched():
    memory = IncrementalWTA(2)
    ModalClassifier(memory).fit(X4, [0, 1, 0, 1])
    assert not memory.__sklearn_is_fitted__()


# Several winners ---------------------------------------------------------------------------------------------------


def shares(clf, X):
    votes = clf.predict_votes(X)
    return votes / votes.sum(axis=1, keepdims=True)


def two_units():
    """Units at (1, 0) and (0, 1): 8 votes for a and 2 for b on the first, 1 for b on the second."""
    X = np.array([[1.0, 0.0]] * 10 + [[0.0, 1.0]])
    return ModalClassifier(ARTC2A(vigilance=0.9, learning_rate=1.0)).fit(X, ["a"] * 8 + ["b"] * 3)


@pytest.mark.parametrize("balanced", [True, False])
def test_several_winners_weigh_their_shares_by_similarity(balanced):
    clf = two_units().set_params(n_winners=2, balanced=balanced)
    x = np.array([[0.8, 0.6]])
    a, b = (8 / 8, 2 / 3) if balanced else (8, 2)  # of 8 labels a and 3 labels b
    weight = ((1 - 0.8) / (1 - 0.6)) ** 8
    expected = np.array([a / (a + b), b / (a + b) + weight])
    np.testing.assert_allclose(clf.predict_proba(x)[0], expected / expected.sum(), rtol=1e-4)
    assert clf.predict_one(x[0]) == clf.predict(x)[0]


def test_several_winners_weigh_their_shares_by_distance_squared():
    clf = classifier(n_winners=2).fit([[0.0], [10.0]], ["low", "high"])
    weight = ((2.0 / 8.0) ** 2) ** 8
    np.testing.assert_allclose(shares(clf, [[2.0]]), [[weight / (1 + weight), 1 / (1 + weight)]], rtol=1e-9)


@pytest.mark.parametrize("label_use", ["merge", "guide"])
def test_labels_stay_beside_their_rows_when_a_memory_needs_more_room_in_a_chunk(label_use):
    X = np.repeat(np.eye(12), 400, axis=0)  # twelve blocks, and room for four at first
    y = np.repeat(np.arange(12), 400)
    whole = ModalClassifier(AdaptiveCCM(n_slots=1), label_use=label_use).partial_fit(X, y)
    assert whole.memory_.n_blocks_ == 12
    assert whole.predict(np.eye(12)).tolist() == list(range(12))
    assert whole.votes_.sum(axis=1).tolist() == whole.memory_.win_counts_.tolist()
    others = whole.votes_ - np.diag(np.diag(whole.votes_))
    assert others.max() <= 16  # a change is noticed after its first batch
    assert (np.flatnonzero(others.sum(axis=0)) > 0).all()


def test_five_units_of_an_adaptive_memory_vote_by_default_and_one_of_others():
    X, y = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 3
    five, default, one = (ModalClassifier(AdaptiveCCM(), n_winners=k).fit(X, y) for k in (5, None, 1))
    np.testing.assert_array_equal(default.predict_proba(X), five.predict_proba(X))
    assert not np.array_equal(one.predict_proba(X), five.predict_proba(X))
    one, default = (ModalClassifier(IncrementalWTA(9), n_winners=k).fit(X, y) for k in (1, None))
    np.testing.assert_array_equal(default.predict_proba(X), one.predict_proba(X))


def test_weights_of_votes_in_columns_fall_with_the_square_of_the_distance_squared():
    X = np.array([[0.0], [10.0]] * 40)
    clf = ModalClassifier(AdaptiveCCM(n_slots=2), n_winners=2).fit(X, ["low", "high"] * 40)
    weight = (2.0 / 8.0) ** 4
    np.testing.assert_allclose(shares(clf, [[2.0]]), [[weight / (1 + weight), 1 / (1 + weight)]], rtol=1e-9)
    assert clf.predict([[2.0], [5.5]], reject=0.99).tolist() == ["low", None]


@pytest.mark.parametrize("label_use", ["readout", "guide"])
def test_one_row_is_learned_and_predicted_the_same_in_every_way(label_use):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), rng.integers(0, 3, 300)
    X[150:] += 9.0
    whole, rows, single = (
        ModalClassifier(AdaptiveCCM(n_slots=4), label_use=label_use, vote_span=None if label_use == "guide" else 5)
        for _ in range(3)
    )
    whole.partial_fit(X, y, classes=[0, 1, 2])
    rows.partial_fit(X[:1], y[:1], classes=[0, 1, 2])
    single.partial_fit(X[:1], y[:1], classes=[0, 1, 2])
    for x, label in zip(X[1:], y[1:], strict=True):
        rows.partial_fit(x[None], [label])
        single.learn_one(x, label)
    for other in (rows, single):
        assert_same(snapshot(whole.memory_), snapshot(other.memory_))
        np.testing.assert_array_equal(whole.votes_, other.votes_)
    np.testing.assert_array_equal(whole.predict(X), np.concatenate([whole.predict(x[None]) for x in X]))
    np.testing.assert_array_equal(whole.predict(X), [whole.predict_one(x) for x in X])
    memory = whole.memory_
    np.testing.assert_array_equal(memory.predict(X), np.concatenate([memory.predict(x[None]) for x in X]))


def test_votes_that_are_halved_follow_labels_that_change():
    X = np.random.default_rng(0).normal(size=(1200, 2))
    y = (X[:, 0] > 0) ^ (np.arange(1200) >= 900)  # the rule is reversed
    kept, halved = (ModalClassifier(AdaptiveCCM(), vote_span=span).fit(X, y) for span in (None, 8))
    assert (halved.predict(X[900:]) == y[900:]).mean() > 0.85 > 0.3 > (kept.predict(X[900:]) == y[900:]).mean()
    assert halved.votes_.sum(axis=1).max() <= 8
    assert kept.votes_.sum() == 1200


def test_a_rare_class_is_heard_when_balanced():
    X = np.array([[1.0, 0.0]] * 13 + [[0.0, 1.0]] * 90)
    y = ["common"] * 10 + ["rare"] * 3 + ["common"] * 90
    clf = ModalClassifier(ARTC2A(vigilance=0.9)).fit(X, y)
    answers = {balanced: clf.set_params(n_winners=2, balanced=balanced).predict(X[:1])[0] for balanced in (True, False)}
    assert answers == {True: "rare", False: "common"}


@pytest.mark.parametrize("memory", [IncrementalWTA(n_units=8), CCM(n_slots=4, random_state=0)], ids=["wta", "ccm"])
def test_more_winners_than_units_answer_and_rows_do_not_see_each_other(memory):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 3, 200)
    clf = ModalClassifier(memory, n_winners=50).fit(X, y)
    shares = clf.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_array_equal(shares[:7], clf.predict_proba(X[:7]))
    np.testing.assert_array_equal(clf.predict(X), clf.classes_[shares.argmax(axis=1)])


def test_impossible_options_are_refused():
    for name, value in {"n_winners": 0, "balanced": "yes", "label_use": "all"}.items():
        with pytest.raises(ValueError, match=f"ModalClassifier: {name}={value!r} is not possible"):
            ModalClassifier(CCM(), **{name: value}).fit(np.eye(3), [0, 1, 2])


def turned(n=600, seed=0):
    """Twelve groups: columns 0 and 1 separate the classes, two other columns have more variance but no information."""
    rng = np.random.default_rng(seed)
    group = rng.integers(12, size=n)
    X = rng.normal(size=(n, 4)) * [0.1, 0.1, 2.0, 2.0] + 20
    X[:, 0] += group % 3
    X[:, 1] += group // 3
    return X, (group % 3 + group // 3) % 2


def streaks(n, d=40, seed=0):
    """Return rows whose classes differ in few columns, while one other direction varies most."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    X = 5.0 + 0.3 * rng.normal(size=(n, d)) + np.outer(2.0 * rng.normal(size=n), np.sin(np.arange(d)))
    X[np.arange(n), y] += 2.5
    return X, y


def test_a_shared_metric_discounts_what_varies_within_classes_and_evidence_chooses_it():
    X, y = streaks(1500)
    own, auto, shared = (
        ModalClassifier(AdaptiveCCM(), metric=metric).partial_fit(X[:1200], y[:1200])
        for metric in ("own", "auto", "shared")
    )
    np.testing.assert_array_equal(own.memory_.prototypes_, shared.memory_.prototypes_)
    np.testing.assert_array_equal(own.votes_, shared.votes_)
    assert shared.score(X[1200:], y[1200:]) > own.score(X[1200:], y[1200:]) + 0.1
    np.testing.assert_array_equal(auto.predict_votes(X[1200:]), shared.predict_votes(X[1200:]))
    assert shared.n_floats_ == own.n_floats_
    assert auto.n_floats_ == own.n_floats_ + 64 * 41
    assert shared.working_floats_ > own.working_floats_ == 0
    noise = ModalClassifier(AdaptiveCCM()).partial_fit(np.abs(X[:600]), np.arange(600) % 2)  # labels mean nothing
    assert not noise._evidence.prefers_shared


@pytest.mark.parametrize("by_distance", [False, True])
def test_a_shared_metric_equals_its_definition(by_distance):
    rng = np.random.default_rng(0)
    units, votes, rows = rng.normal(size=(7, 5)), rng.integers(0, 9, size=(7, 3)), rng.normal(size=(4, 5))
    found = SharedMetric.of(units, votes, by_distance).scores(rows)
    if not by_distance:
        units, rows = (a / np.linalg.norm(a, axis=1, keepdims=True) for a in (units, rows))
    means, total = votes.T @ units / votes.sum(axis=0)[:, np.newaxis], votes.sum()
    B = (
        sum(votes[u, c] * np.outer(units[u] - means[c], units[u] - means[c]) for u in range(7) for c in range(3))
        / total
    )
    inverse = np.linalg.inv(B + 2.0 * np.trace(B) / 5 * np.eye(5))
    z, x = (a - votes.sum(axis=1) @ units / total for a in (units, rows))
    products, squares = x @ inverse @ z.T, np.einsum("ij,jk,ik->i", z, inverse, z)
    lengths = np.einsum("ij,jk,ik->i", x, inverse, x)[:, np.newaxis]
    scale = 2.0 * np.trace(B) / 5  # distances are in units of the ridge
    expected = (
        np.sqrt(scale * (lengths + squares - 2 * products)) if by_distance else products / np.sqrt(lengths * squares)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("metric", ["auto", "shared"])
def test_a_metric_does_not_depend_on_how_a_stream_is_cut(metric, tmp_path):
    X, y = streaks(700)
    whole, cut = (ModalClassifier(AdaptiveCCM(n_slots=5), metric=metric) for _ in range(2))
    whole.partial_fit(X, y)
    for start in range(0, 650, 13):
        cut.partial_fit(X[start : start + 13], y[start : start + 13])
        cut.predict(X[:3])
    for x, label in zip(X[650:], y[650:], strict=True):
        cut.learn_one(x, label)
    cut.save(tmp_path / "clf.safetensors")
    for other in (cut, load(tmp_path / "clf.safetensors"), pickle.loads(pickle.dumps(cut))):
        np.testing.assert_array_equal(whole.predict_proba(X), other.predict_proba(X))
        np.testing.assert_array_equal(whole.votes_, other.votes_)
        if metric == "auto":
            assert whole._evidence.lead == other._evidence.lead != 0
        np.testing.assert_array_equal(whole._evidence.forecasts, other._evidence.forecasts)
        np.testing.assert_array_equal(whole._evidence.counters, other._evidence.counters)


def test_bad_metrics_are_named():
    X, y = streaks(300)
    with pytest.raises(ValueError, match="metric='euclid'"):
        ModalClassifier(IncrementalWTA(), metric="euclid").partial_fit(X, y)
    fields = ModalClassifier(AdaptiveCCM()).partial_fit(X, y)._export()
    for damage in (
        {"counters": np.array([300, 301, 400, 300, 301])},
        {"counters": np.array([300, 300, 200, 300, 301])},
        {"counters": np.array([300, 300, 400, 300, 301 + 1024])},
        {"forecasts": np.array([4.0, 1.0, 1.0, 0.0, 1.0])},
        {"forecasts": np.array([0.0, 1.0, 1.0, 0.0, -1.0])},
        {"codes": np.full(64, 3)},
        {"buffer": None},
        {"lead": np.array([np.nan])},
    ):
        with pytest.raises(ValueError, match="ModalClassifier"):
            ModalClassifier(AdaptiveCCM())._import({**fields, "evidence": {**fields["evidence"], **damage}})
    with pytest.raises(ValueError, match="does not fit its settings"):
        ModalClassifier(AdaptiveCCM(), n_winners=1)._import(fields)
    with pytest.raises(ValueError, match="buffer is not an array"):
        ModalClassifier(AdaptiveCCM(), metric="own")._import(fields)


def test_votes_of_a_removed_unit_are_gone():
    votes = np.array([[2, 0], [0, 3], [1, 1]])
    changes = np.array([[REMOVE, 0, 1, -1, 3], [MOVE, 0, 2, 1, 2]])
    count_votes(votes, np.array([0, 1]), np.array([1, 0]), changes, 0)
    assert votes.tolist() == [[2, 1], [2, 1], [0, 0]]


@pytest.mark.parametrize("options", [{}, {"n_winners": 2}, {"metric": "shared"}], ids=["one", "two", "shared metric"])
def test_the_unit_that_answers_is_the_best_one_with_votes(options):
    clf = classifier(**options).partial_fit(X4, [3, None, None, None])
    labels, units = clf.predict_units([[0.0], [10.0]])
    assert labels.tolist() == clf.predict([[0.0], [10.0]]).tolist() == [3, 3]
    assert set(units) == {int(clf.votes_.any(axis=1).argmax())}  # the other unit is nearer to 10, but has no vote
    clf.partial_fit(X4[1:2], [4])
    labels, units = clf.predict_units([[0.0], [10.0]])
    assert labels.tolist() == [3, 4]
    assert clf.classes_[clf.votes_[units].argmax(axis=1)].tolist() == [3, 4]


def test_learning_many_rows_tells_who_learned_them():
    one, many = classifier(), classifier()
    labels = [0, 1, None, 1]
    units = [one.learn_one(x, y) for x, y in zip(X4, labels, strict=True)]
    assert many.learn_many(X4, labels).tolist() == units == many.memory_.predict(X4).tolist()
    memory = IncrementalWTA(2, learning_rate=0.1)
    assert memory.learn_many(X4).tolist() == units
    assert many.votes_.tolist() == one.votes_.tolist()
    assert many.memory_.prototypes_.tolist() == one.memory_.prototypes_.tolist()


def test_one_sample_is_answered_like_many():
    X = np.array([[1.0, 0.0]] * 2 + [[0.0, 1.0]])
    clf = ModalClassifier(ARTC2A(vigilance=0.9, learning_rate=1.0), balanced=False).fit(X, ["a", "b", "b"])
    x = np.array([0.75, 0.66])  # the nearest unit cannot decide, the second can
    for n_winners, answer in ((1, "a"), (2, "b")):
        clf.set_params(n_winners=n_winners)
        assert clf.predict(x[np.newaxis]).tolist() == [answer]
        assert clf.predict_one(x) == clf.predict_one(x.tolist()) == answer


def test_probabilities_are_calibrated_on_rows_that_were_not_learned_yet():
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=3000)
    X = rng.normal(size=(3000, 6)) + 1.5 * np.eye(6)[y]
    clf = ModalClassifier(AdaptiveCCM()).partial_fit(X[:2000], y[:2000])
    X, y = X[2000:], y[2000:]
    p, plain = clf.predict_proba(X), shares(clf, X)
    np.testing.assert_array_equal(p.argmax(axis=1), plain.argmax(axis=1))
    right = (clf.predict(X) == y).mean()
    assert abs(p.max(axis=1).mean() - right) < 0.03 < right - plain.max(axis=1).mean()
    losses = [-np.log(q[np.arange(1000), y] + 1e-3).mean() for q in (p, plain)]
    assert losses[0] < losses[1]
    for limit in (0.5, 0.7):
        answers = clf.predict(X, reject=limit)
        np.testing.assert_array_equal(answers == None, (p.max(axis=1) < limit) | clf.is_unknown(X))  # noqa: E711


def test_rows_of_a_class_never_seen_are_unknown():
    X, y = load_digits(return_X_y=True)
    seen = y < 9
    clf = ModalClassifier(AdaptiveCCM()).partial_fit(X[seen][:1400], y[seen][:1400])
    assert clf.is_unknown(X[seen][1400:], level=0.01).mean() < 0.05
    assert clf.is_unknown(X[seen].mean() - X[:50], level=0.01).all()
    seen = y > 0
    clf = ModalClassifier(AdaptiveCCM(n_slots=60)).partial_fit(X[seen][:1200], y[seen][:1200])
    assert 0.002 < clf.is_unknown(X[seen][1200:], level=0.01).mean() < 0.04
    assert clf.is_unknown(X[~seen], level=0.01).mean() > 0.4  # zeros are unlike all other digits
    one = ModalClassifier(AdaptiveCCM(), n_winners=1).partial_fit(X, y)
    with pytest.raises(ValueError, match="several winners"):
        one.is_unknown(X)


def test_a_memory_that_was_changed_is_noticed_by_the_next_sample():
    clf = ModalClassifier(IncrementalWTA(4, random_state=0)).partial_fit(np.eye(3), [0, 1, 2])
    clf.memory_.set_params(n_units=9)
    with pytest.raises(ValueError, match="n_units from 4 to 9 cannot change once learning has begun"):
        clf.learn_one(np.eye(3)[0], 1)


def test_unsure_answers_are_withheld():
    X = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    clf = ModalClassifier(ARTC2A(vigilance=0.9)).partial_fit(X, ["a", "a", "b", "c"])
    assert clf.predict(X, reject=0.5).tolist() == ["a", "a", "a", "c"]
    assert clf.predict(X, reject=0.7).tolist() == [None, None, None, "c"]
    with pytest.raises(ValueError, match="reject=-1 is not possible"):
        clf.predict(X, reject=-1)


def test_single_rows_are_learned_as_chunks_are():
    rng = np.random.default_rng(0)
    X, y = rng.random((400, 3)) + np.repeat(np.eye(3)[[0, 1, 0, 2]], 100, axis=0) * 3, rng.integers(0, 3, 400)
    labels = [None if i % 5 == 0 else int(label) for i, label in enumerate(y)]
    chunk, one = (ModalClassifier(ARTC2A(max_units=4, vigilance=0.98)) for _ in range(2))
    chunk.partial_fit(X, labels, classes=[0, 1, 2])
    one.partial_fit(X[:1], labels[:1], classes=[0, 1, 2])
    for x, label in zip(X[1:], labels[1:], strict=True):
        one.learn_one(x, label)
    np.testing.assert_array_equal(chunk.votes_, one.votes_)  # units were merged on the way
    np.testing.assert_array_equal(chunk.memory_.prototypes_, one.memory_.prototypes_)


def test_columns_of_rounding_errors_do_not_hide_that_the_others_share_a_unit():
    X = np.random.default_rng(0).normal(size=(300, 40))
    X[:, 5] *= 1e-33
    assert not AdaptiveCCM().partial_fit(X)._by_distance
    X[:, 6:30] *= 1e-5
    assert AdaptiveCCM().partial_fit(X)._by_distance


def test_probabilities_of_two_winners_are_calibrated_too():
    rng = np.random.default_rng(0)
    X, y = rng.random((600, 2)), rng.integers(2, size=600)  # labels that nothing predicts
    clf = ModalClassifier(IncrementalWTA(60), n_winners=2)
    for x, label in zip(X, y, strict=True):
        clf.partial_fit(x[np.newaxis], [label], classes=[0, 1])
    votes = clf.predict_votes(X)
    shares = (votes / votes.sum(axis=1, keepdims=True)).max(axis=1)
    assert clf.predict_proba(X).max(axis=1).mean() < shares.mean() - 0.05
