"""DiscriminantClassifier on few columns: reference, drift and recall, units, abstention, checkpoints."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone

from ccmem import CheckpointError, DiscriminantClassifier, load
from ccmem.kernels import discriminant as kernels
from ccmem.kernels import neighbours
from ccmem.readout import _following as following
from ccmem.readout._reject import unusually_far
from ccmem.river import MemoryClassifier


def rows(n=200, d=4, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    return 3 * rng.normal(size=(n_classes, d))[y] + rng.normal(size=(n, d)), y


def concept(n, flipped, seed):
    X = np.random.default_rng(seed).normal(size=(n, 5))
    return X, ((X @ [1, -1, 0.5, 0, 0] > 0) != flipped).astype(int)


def right_answers(clf, X, y):
    right = np.zeros(len(y), bool)
    for i, (x, label) in enumerate(zip(X, y, strict=True)):
        right[i] = clf.n_samples_taught_ > 0 and clf.predict_one(x) == label if hasattr(clf, "_state") else False
        clf.learn_one(x, label)
    return right


def assert_same(first, second):
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


def unpacked(matrix, d):
    full, k = np.zeros((d, d)), 0
    for j in range(d):
        full[j:, j] = matrix[k : k + d - j]
        k += d - j
    return full


def test_sums_and_factors_equal_their_definitions():
    X, y = rows(160)  # a multiple of every period: all covariances have just been factored
    clf = DiscriminantClassifier(own_share=0.3, ridge=0.1, n_axes=5).partial_fit(X, y)
    state = clf._state
    for e, window in enumerate(following.WINDOWS):
        ages = {c: np.arange((y == c).sum())[::-1] for c in range(3)}
        w = {c: (1 - 1 / window) ** ages[c] for c in range(3)}
        means = {c: w[c] @ X[y == c] / w[c].sum() for c in range(3)}
        scatter = {c: (w[c] * (X[y == c] - means[c]).T) @ (X[y == c] - means[c]) for c in range(3)}
        W = sum(scatter.values()) / sum(v.sum() for v in w.values())
        for c in range(3):
            known = 0.3 * w[c].sum() / (w[c].sum() + 5)
            S = (1 - known) * W + known * scatter[c] / w[c].sum() + 0.1 * np.diag(np.diag(W))
            L = unpacked(state.factors[:, e, c], 4)
            np.testing.assert_allclose(state.means[:, e, c], means[c], rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(L @ L.T, S, rtol=1e-6, atol=1e-8)
            np.testing.assert_allclose(state.log_dets[e, c], np.linalg.slogdet(S)[1], rtol=1e-6)


def test_a_stream_may_be_cut_anywhere():
    X, y = rows(600)
    whole, cut, one = (DiscriminantClassifier() for _ in range(3))
    whole.partial_fit(X, y)
    for part in np.array_split(np.arange(600), 7):
        cut.partial_fit(X[part], y[part])
    for x, label in zip(X, y, strict=True):
        one.learn_one(x, label)
    assert_same(whole._state, cut._state)
    assert_same(whole._state, one._state)


def test_drift_is_followed_and_an_earlier_concept_is_recalled_within_a_few_rows():
    clf = DiscriminantClassifier()
    first = [right_answers(clf, *concept(700, flipped, i))[:30].mean() for i, flipped in enumerate([0, 1, 0, 1])]
    assert first[1] < 0.5  # never seen before: most of its first rows are wrong
    assert min(first[2:]) > 0.6
    X, y = concept(200, True, 9)
    assert np.mean(clf.predict(X) == y) > 0.9
    plain = DiscriminantClassifier(forgetting="none")
    for i, flipped in enumerate([0, 1, 0, 1]):
        plain.partial_fit(*concept(700, flipped, i))
    assert np.mean(plain.predict(X) == y) < 0.7


def test_classes_that_are_absent_are_not_forgotten():
    X, y = rows(900)
    order = np.argsort(y, kind="stable")
    clf = DiscriminantClassifier().partial_fit(X[order], y[order])
    assert np.mean(clf.predict(X) == y) > 0.95
    assert clf.class_counts_.tolist() == np.bincount(y).tolist()


def test_classes_of_several_clouds_are_told_apart_by_their_nearest_rows():
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [4.0, 4.0], [0.0, 4.0], [4.0, 0.0]])  # two clouds of each class, crosswise
    cloud = rng.integers(4, size=800)
    X, y = centres[cloud] + 0.5 * rng.normal(size=(800, 2)), cloud // 2
    clf = DiscriminantClassifier().partial_fit(X[:600], y[:600])
    assert np.mean(clf.predict(X[600:]) == y[600:]) > 0.98
    gaussians = clf._state.forecasters[kernels.SHORT, : len(following.WINDOWS)]
    assert clf._state.forecasters[kernels.SHORT, -1] > gaussians.max() + 1


def test_scores_of_the_neighbours_equal_their_definition():
    X, y = rows(300, d=3)
    y[y == 2] = np.where(np.arange((y == 2).sum()) < 3, 2, 0)  # one class has fewer rows than neighbours
    state = DiscriminantClassifier().partial_fit(X, y)._state
    inverse, found = np.array([1.0, 4.0, 0.25]), np.empty(3)
    space = np.empty(following.KEPT_ROWS), np.empty((3, neighbours.NEIGHBOURS)), np.empty(3, np.int64)
    neighbours.neighbour_scores(X[0], 300, inverse, state.kept, state.kept_labels, *space, found)
    for c in range(3):
        squares = np.sort(((X[y == c] - X[0]) ** 2) @ inverse)[: neighbours.NEIGHBOURS] + neighbours.NEAREST
        expected = np.log(len(squares) / (y == c).sum()) - 1.5 * np.log(squares.mean())
        assert found[c] == pytest.approx(expected)


def test_kept_rows_are_the_latest_and_classes_share_the_room(monkeypatch):
    monkeypatch.setattr(following, "KEPT_ROWS", 30)
    X, y = rows(400)
    y[:200], y[200:] = 0, 1 + y[200:] % 2
    state = DiscriminantClassifier().partial_fit(X, y)._state
    np.testing.assert_array_equal(np.bincount(state.kept_labels[neighbours.CODE]), [10, 10, 10])
    latest = np.sort(np.concatenate([np.flatnonzero(y == c)[-10:] for c in range(3)]))
    order = np.argsort(state.kept_labels[neighbours.AGE])
    np.testing.assert_array_equal(state.kept_labels[neighbours.AGE][order], latest)
    np.testing.assert_array_equal(state.kept.T[order], X[latest])


def test_units_and_offsets_of_columns_do_not_matter():
    X, y = rows(400)
    expected = DiscriminantClassifier().partial_fit(X, y).predict_proba(X)
    moved = X * [1e-6, 1.0, 1e6, 1e3] + [0.0, 1e3, -1e6, 5.0]
    np.testing.assert_allclose(DiscriminantClassifier().partial_fit(moved, y).predict_proba(moved), expected, atol=0.02)


def test_constant_columns_and_single_columns_are_harmless():
    X, y = rows(200)
    constant = np.column_stack([X, np.full(200, 7.0), np.zeros(200)])
    clf = DiscriminantClassifier().partial_fit(constant, y)
    assert np.mean(clf.predict(constant) == y) > 0.95
    single = DiscriminantClassifier().partial_fit(X[:, :1], y)
    assert np.isfinite(single.predict_proba(X[:, :1])).all()
    codes = DiscriminantClassifier().partial_fit(y[:, np.newaxis].astype(float), y)  # a column that is the label
    assert np.mean(codes.predict(y[:, np.newaxis].astype(float)) == y) == 1.0


def test_a_column_that_was_constant_may_begin_to_vary():
    X, y = rows(600)
    X = np.column_stack([X, np.zeros(600), np.full(600, 3.0)])
    X[300:, 4:] += np.random.default_rng(1).integers(0, 2, (300, 2))
    clf = DiscriminantClassifier().partial_fit(X, y)
    assert all(np.isfinite(array).all() for name, array in clf._state._asdict().items() if name != "log_dets")
    assert np.mean(clf.predict(X) == y) > 0.95


@pytest.mark.parametrize("columns", [2, 5])
def test_the_share_of_known_rows_called_unknown_is_about_the_level(columns):
    y = np.arange(6000) % 2  # logarithms of squared distances are skewed, most with few columns
    X = np.random.default_rng(0).normal(size=(6000, columns)) + 3.0 * y[:, np.newaxis]
    clf = DiscriminantClassifier().partial_fit(X[:3000], y[:3000])
    for level in (0.05, 0.01):
        assert 0.2 * level < clf.is_unknown(X[3000:], level).mean() < 2 * level


def test_distances_beyond_a_quantile_of_a_skewed_distribution_are_unusual():
    logarithms = np.log(np.random.default_rng(0).chisquare(15, 100_000))
    deviations = logarithms - logarithms.mean()
    moments = np.array([1.0, logarithms.mean(), np.mean(deviations**2), np.mean(deviations**3)])
    for level in (0.1, 0.01, 0.001):
        assert unusually_far(np.exp(logarithms), moments, level).mean() == pytest.approx(level, rel=0.5)
    moments[3] = 0.0  # a normal distribution
    limit = np.exp(moments[1] + 2.3263 * np.sqrt(moments[2]))
    assert unusually_far(limit * np.array([0.999, 1.001]), moments, 0.01).tolist() == [False, True]
    assert not unusually_far(np.array([1e9]), np.zeros(4), 0.01).any()


def test_unlikely_answers_are_withheld_and_unknown_rows_are_told():
    X, y = rows(600)
    clf = DiscriminantClassifier().partial_fit(X, np.array(["a", "b", "c"])[y])
    assert clf.is_unknown(X).mean() < 0.02
    assert clf.is_unknown(X[:5] + 100).all()
    answers = clf.predict(np.vstack([X[:50], X[:5] + 100]), reject=0.9)
    assert (answers[50:] == np.array(None)).all()
    sure = clf.predict_proba(X[:50]).max(axis=1) >= 0.9
    assert all(
        (answer is not None) == s for answer, s in zip(answers[:50], sure & ~clf.is_unknown(X[:50]), strict=True)
    )
    with pytest.raises(ValueError, match="reject=2 is not possible"):
        clf.predict(X, reject=2)


def test_priors_follow_the_stream_and_previous_labels_count_on_request():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 3)), np.repeat(rng.integers(0, 2, 100), 20)  # labels come in runs of 20
    scores = {
        name: np.mean(right_answers(DiscriminantClassifier(priors="equal", autoregressive=name), X, y))
        for name in (False, True)
    }
    assert scores[True] > 0.9 > scores[False]
    rare = (rng.random(2000) < 0.1).astype(int)
    guesses = [DiscriminantClassifier(priors=p).partial_fit(X, rare).predict(X).mean() for p in ("equal", "stream")]
    assert guesses[0] > 0.3
    assert guesses[1] < 0.1
    with pytest.raises(ValueError, match="autoregressive=True needs"):
        DiscriminantClassifier(autoregressive=True).partial_fit(np.eye(40), np.arange(40) % 2)


def test_priors_are_those_that_predicted_the_latest_rows():
    """A class is rare in the first 3,000 rows, and as frequent as the other one in the next 1,500."""
    rng = np.random.default_rng(0)
    y = (rng.random(4500) < np.repeat([0.05, 0.5], [3000, 1500])).astype(int)
    X = rng.normal(size=(4500, 3)) + y[:, None]
    right = {p: right_answers(DiscriminantClassifier(priors=p), X, y) for p in ("auto", "all", "equal")}
    before, after = (
        {p: answers[part].mean() for p, answers in right.items()} for part in np.split(np.arange(4500), [3000])
    )
    assert before["all"] - 0.005 < before["auto"] > before["equal"] + 0.05
    assert after["equal"] - 0.02 < after["auto"] > after["all"] + 0.01


def test_a_class_that_comes_last_does_not_choose_the_priors():
    rng = np.random.default_rng(0)
    y = (rng.random(2000) < 0.05).astype(int)
    X = rng.normal(size=(2000, 3)) + y[:, None]
    order = np.argsort(y[:1500], kind="stable")
    auto, equal = (DiscriminantClassifier(priors=p).fit(X[order], y[order]) for p in ("auto", "equal"))
    assert np.mean(auto.predict(X[1500:]) == y[1500:]) > 0.05 + np.mean(equal.predict(X[1500:]) == y[1500:])


def test_probabilities_are_calibrated():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=4000)
    X = np.repeat(y[:, np.newaxis] + rng.normal(scale=1.5, size=(4000, 1)), 4, axis=1) + rng.laplace(size=(4000, 4))
    clf, p = DiscriminantClassifier(), []
    for x, label in zip(X, y, strict=True):
        p.append(clf.predict_proba(x[np.newaxis])[0] if hasattr(clf, "_state") else [1.0])
        clf.learn_one(x, label)
    top, right = np.array([max(q) for q in p[1000:]]), np.array([np.argmax(q) for q in p[1000:]]) == y[1000:]
    assert abs(top.mean() - right.mean()) < 0.06


def test_columns_may_be_added_through_river():
    model = MemoryClassifier(DiscriminantClassifier())
    rng = np.random.default_rng(0)
    for i in range(300):
        label, x = i % 2, {"a": rng.normal() + 4 * (i % 2)}
        if i > 100:
            x["b"] = rng.normal()
        model.learn_one(x, label)
    assert model.predict_one({"a": 4.0, "b": 0.0}) == 1
    assert model.predict_one({"a": 0.0, "b": 0.0}) == 0


def test_copies_and_checkpoints_go_on_alike(tmp_path):
    X, y = rows(700)
    clf = DiscriminantClassifier().partial_fit(X[:333], y[:333])
    clf.save(tmp_path / "clf.safetensors")
    others = [load(tmp_path / "clf.safetensors"), pickle.loads(pickle.dumps(clf)), copy.deepcopy(clf)]
    clf.partial_fit(X[333:], y[333:])
    for other in others:
        assert_same(clf._state, other.partial_fit(X[333:], y[333:])._state)
        np.testing.assert_array_equal(clf.predict_proba(X), other.predict_proba(X))


DAMAGE = {
    "counts": lambda f: {**f, "counts": f["counts"] + 1},
    "scatter": lambda f: {**f, "scatters": f["scatters"][:-1]},
    "variances": lambda f: {**f, "scatters": -f["scatters"]},
    "pooled": lambda f: {**f, "pooled": -f["pooled"] - 1},
    "factors": lambda f: {**f, "factors": 0 * f["factors"]},
    "classes": lambda f: {**f, "classes_": f["classes_"][::-1]},
    "NaN": lambda f: {**f, "means": f["means"] * np.nan},
    "weights": lambda f: {**f, "weights": 0 * f["weights"]},
    "last": lambda f: {**f, "counters": {**f["counters"], "last": 9}},
    "archive": lambda f: {**f, "counters": {**f["counters"], "archive": 7}},
    "evidence": lambda f: {**f, "forecasters": -f["forecasters"] + 1},
    "kept codes": lambda f: {**f, "kept_labels": f["kept_labels"] + np.array([[3], [0]])},
    "kept ages": lambda f: {**f, "kept_labels": f["kept_labels"] + np.array([[0], [200]])},
}


@pytest.mark.parametrize("case", DAMAGE)
def test_damaged_states_are_refused(case):
    clf = DiscriminantClassifier().partial_fit(*rows())
    with pytest.raises((ValueError, CheckpointError)):
        clone(clf)._import(DAMAGE[case](clf._export()))


@pytest.mark.parametrize(
    ("X", "message"),
    [([[0, 1, 2, np.nan]], "NaN at row 0, column 3"), ([[0, 1, 1e80, 3]], "1e\\+80 at row 0, column 2")],
)
def test_bad_rows_are_named_and_change_nothing(X, message):
    clf = DiscriminantClassifier().partial_fit(*rows())
    before = [array.copy() for array in clf._state]
    with pytest.raises(ValueError, match=message):
        clf.partial_fit(X, [1])
    assert_same(before, clf._state)


def test_forecasters_are_archived_next_to_each_other_and_then_replace_the_least_used():
    live, size = len(following.WINDOWS), following.ARCHIVE_SIZE
    state = following.Following.new(2, 1, 8)
    state = state.with_classes(np.empty(0, np.int64), 2)
    margin = 2 * following.ARCHIVE_MARGIN
    for i in range(size):
        state.forecasters[following.LONG, following.ARCHIVED] = margin * i  # better than all archived so far
        state.means[:, following.ARCHIVED] = i + 1.0
        state._archive()
        assert state.counters[following.ARCHIVE] == i + 1
    expected = np.arange(size) + 1.0
    np.testing.assert_array_equal(state.means[0, live : live + size, 0], expected)
    state._archive()  # as good as one in the archive
    np.testing.assert_array_equal(state.means[0, live : live + size, 0], expected)
    state.forecasters[following.USE, live : live + size] = 1.0
    state.forecasters[following.USE, live + 1] = 0.5
    state.forecasters[following.LONG, following.ARCHIVED] = margin * size
    state.means[:, following.ARCHIVED] = expected[1] = 99.0
    state._archive()
    np.testing.assert_array_equal(state.means[0, live : live + size, 0], expected)
    assert state.counters[following.ARCHIVE] == size


@pytest.mark.parametrize("scale", [1e40, 1e-40])
def test_determinants_beyond_the_range_of_floats_are_kept_as_logarithms(scale):
    X, y = rows(160)
    plain, scaled = (DiscriminantClassifier().partial_fit(factor * X, y)._state for factor in (1.0, scale))
    live = len(following.WINDOWS)
    np.testing.assert_allclose(scaled.log_dets[:live], plain.log_dets[:live] + 8 * np.log(scale), rtol=1e-9)
