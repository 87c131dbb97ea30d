"""DiscriminantClassifier with running sums: twin, any order, new classes, calibration, checkpoints, bad input."""

from __future__ import annotations

import copy
import functools
import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from ccmem import CheckpointError, DiscriminantClassifier, load
from ccmem.kernels.jit import JIT_ENABLED
from ccmem.readout import _sums
from naive.discriminant import naive


def scores(clf, X):
    return clf._state.scores(X, clf._settings(), [])


Sums = functools.partial(DiscriminantClassifier, forgetting="none")


def rows(n=120, d=6, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    mixing = rng.normal(size=(n_classes, d, d))
    X = np.einsum("nd,nde->ne", rng.normal(size=(n, d)), mixing[y]) + 3 * rng.normal(size=(n_classes, d))[y]
    return X.astype(np.float32), y


def known(clf):
    return [array.copy() for array in clf._state]


def assert_same(first, second):
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


def differences(scores):
    return scores - scores[:, :1]


@given(
    n=st.integers(1, 90),
    d=st.integers(1, 9),
    n_classes=st.integers(1, 4),
    n_axes=st.integers(1, 4),
    own_share=st.sampled_from([0.0, 0.4, 0.9]),
    ridge=st.sampled_from([0.02, 1.0]),
    buffer_rows=st.sampled_from([1, 7, 32]),
    seed=st.integers(0, 10),
)
def test_scores_equal_those_of_the_naive_twin(n, d, n_classes, n_axes, own_share, ridge, buffer_rows, seed):
    X, y = rows(n, d, n_classes, seed)
    y = np.unique(y, return_inverse=True)[1]
    Q = rows(20, d, n_classes, seed + 100)[0]
    settings = {"n_axes": n_axes, "own_share": own_share, "ridge": ridge, "buffer_rows": buffer_rows}
    clf = Sums(**settings).partial_fit(X, y)
    expected = naive(X, y, Q, **settings)
    found = scores(clf, Q)
    np.testing.assert_allclose(differences(found), differences(expected), rtol=5e-3, atol=5e-3 * (1 + expected.max()))


@given(cuts=st.lists(st.integers(0, 120), max_size=4), asks=st.booleans())
def test_a_stream_may_be_cut_anywhere_and_asked_at_any_time(cuts, asks):
    X, y = rows()
    whole, cut, one = (Sums(3, buffer_rows=16) for _ in range(3))
    whole.partial_fit(X, y)
    for part in np.split(np.arange(len(X)), sorted(cuts)):
        if len(part):
            cut.partial_fit(X[part], y[part], classes=[0, 1, 2])
            if asks:
                cut.predict(X[:3])
    for x, label in zip(X, y, strict=True):
        one.learn_one(x, label)
    assert_same(known(whole), known(one))
    assert_same(known(whole), known(cut))


@pytest.mark.parametrize("order", ["sorted", "reversed", "shuffled"])
def test_no_order_is_forgotten(order):
    X, y = rows(400, 8)
    places = {"sorted": np.argsort(y), "reversed": np.argsort(-y), "shuffled": np.arange(400)}[order]
    clf = Sums(8).partial_fit(X[places], y[places])  # all axes are kept: nothing is dropped
    joint = Sums(8, buffer_rows=400).partial_fit(X, y)
    for model in (clf, joint):
        model._state.add_buffer()
    np.testing.assert_allclose(differences(scores(clf, X)), differences(scores(joint, X)), rtol=1e-3, atol=1e-2)
    np.testing.assert_allclose(clf.means_, [X[y == c].mean(axis=0) for c in range(3)], atol=1e-5)
    np.testing.assert_array_equal(clf.class_counts_, np.bincount(y))


def test_classes_come_at_any_time_and_labels_may_be_missing():
    X, y = rows(60)
    names = np.array(["m", "z", "a"])[y].astype(object)
    first, second = Sums(2), Sums(2)
    with_gaps = names.copy()
    with_gaps[::5] = None
    first.partial_fit(X, with_gaps)
    second.partial_fit(X[with_gaps != None], names[with_gaps != None])  # noqa: E711
    np.testing.assert_array_equal(first.predict(X), second.predict(X))
    assert first.n_samples_seen_ == 60
    assert first.n_samples_taught_ == 48
    late = Sums(2)
    for label in ("z", "m", "a"):
        late.partial_fit(X[names == label], names[names == label])
    assert late.classes_.tolist() == ["a", "m", "z"]
    assert np.mean(late.predict(X) == names) > 0.9
    unlabeled = Sums(2, unlabeled=-1).partial_fit(X, np.where(with_gaps == None, -1, y))  # noqa: E711
    assert unlabeled.classes_.tolist() == [0, 1, 2]


def test_priors_of_the_stream_count_rows_that_wait_in_the_buffer():
    X, y = rows(30)
    clf = Sums(2, priors="stream", buffer_rows=64).partial_fit(X, y)  # no row has left the buffer yet
    assert np.isfinite(clf.predict_proba(X)).all()
    assert np.mean(clf.predict(X) == y) > 0.8


@pytest.mark.parametrize("forgetting", ["auto", "none"])
def test_default_priors_follow_all_rows_in_any_order(forgetting):
    rng = np.random.default_rng(0)
    y = (rng.random(2000) < 0.05).astype(int)
    X = rng.normal(size=(2000, 3)) + y[:, None]
    accuracy = {}
    for order in (np.arange(1500), np.argsort(y[:1500], kind="stable")):
        for priors in ("all", "equal"):
            model = DiscriminantClassifier(forgetting=forgetting, priors=priors).fit(X[order], y[order])
            accuracy.setdefault(priors, []).append(np.mean(model.predict(X[1500:]) == y[1500:]))
    assert accuracy["all"][0] > 0.93
    assert accuracy["all"][1] > (0.9 if forgetting == "auto" else 0.93)  # short memories trust the latest labels
    assert max(accuracy["equal"]) < 0.9


def test_announced_classes_are_never_answered_before_they_come():
    X, y = rows(60)
    clf = Sums(2).partial_fit(X, y, classes=[7, 9])
    assert clf.classes_.tolist() == [0, 1, 2, 7, 9]
    p = clf.predict_proba(X)
    assert not p[:, 3:].any()
    np.testing.assert_allclose(p.sum(axis=1), 1)


def test_one_sample_one_class_and_no_spread():
    clf = Sums().partial_fit([[1.0, 2.0]], ["only"])
    assert clf.predict([[5.0, -5.0]]).tolist() == ["only"]
    clf.partial_fit([[3.0, 2.0]], ["other"])  # no spread at all: the nearest mean
    assert clf.predict([[1.4, 0.0], [2.6, 9.0]]).tolist() == ["only", "other"]
    X, y = rows(200)
    clf = Sums(3).partial_fit(X, y).partial_fit(X[:1] + 50, [9])
    assert clf.predict(X[:1] + 49).tolist() == [9]
    assert np.mean(clf.predict(X) == y) > 0.9  # a class of one sample does not draw others to it


def test_large_offsets_and_scales_do_no_harm():
    X, y = rows(300, 5)
    for scale, shift in ((1.0, 1e3), (1e-6, 0.0), (1e6, 1e7)):
        moved = ((X.astype(np.float64) + shift) * scale).astype(np.float32)
        left = moved.astype(np.float64) / scale - shift  # single precision rounds the last to whole numbers
        expected = Sums(3).fit(left, y).predict(left)
        assert np.mean(Sums(3).fit(moved, y).predict(moved) == expected) >= 0.99


def test_many_columns_in_different_units_are_told_from_pixels():
    rng = np.random.default_rng(0)
    y = rng.integers(5, size=2000)
    X = 0.7 * rng.normal(size=(5, 48))[y] + rng.normal(size=(2000, 48))
    same, mixed = (
        np.mean(DiscriminantClassifier().fit(rows[:1000], y[:1000]).predict(rows[1000:]) == y[1000:])
        for rows in (X, X * 10.0 ** rng.uniform(-4, 4, 48))
    )
    assert same > 0.98
    assert mixed > 0.98
    assert _sums.share_unit(np.r_[np.ones(40), 0, 0.3])
    assert not _sums.share_unit(np.r_[np.ones(40), np.full(40, 1e3)])
    assert not _sums.share_unit(np.ones(31))


def test_probabilities_are_calibrated():
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    X, y = digits.data[order], digits.target[order]
    clf = Sums(10).partial_fit(X[:1200], y[:1200])
    p, truth = clf.predict_proba(X[1200:]), y[1200:]
    assert clf.temperature_ > 1  # many correlated columns: plain posteriors are too sure
    plain = scores(clf, X[1200:].astype(np.float32)) / 2
    plain = np.exp(plain.min(axis=1, keepdims=True) - plain)
    plain /= plain.sum(axis=1, keepdims=True)
    loss, plain_loss = (-np.log(q[np.arange(len(q)), truth]).mean() for q in (p, plain))
    assert loss < plain_loss
    assert abs(p.max(axis=1).mean() - np.mean(clf.predict(X[1200:]) == truth)) < 0.05


def test_predictions_use_sums_that_few_rows_are_missing_from():
    X, y = rows(500, 8)
    clf, made = Sums(2), 0
    for r, (x, label) in enumerate(zip(X, y, strict=True)):
        clf.learn_one(x, label)
        before = clf._made[:]
        clf.predict_one(x)
        made += before != clf._made
        waiting = clf._state.buffer_codes[: clf._state.counters[_sums.WAITING]]
        assert (8 * np.bincount(waiting, minlength=len(clf._state.counts)) <= clf._state.counts).all()
        if r in (3, 77, 300):
            whole = Sums(2).partial_fit(X[: r + 1], y[: r + 1])
            np.testing.assert_array_equal(whole.predict_proba(X), clf.predict_proba(X))
    assert 30 < made < 80


def test_reading_changes_nothing():
    X, y = rows()
    clf = Sums(2).partial_fit(X, y)
    before = known(clf)
    clf.predict(X), clf.predict_proba(X), clf.predict_one(X[0]), clf.means_, clf.class_counts_
    assert_same(before, known(clf))


def test_parameters_of_the_rule_may_change_those_of_the_shape_may_not():
    X, y = rows()
    clf = Sums(2).partial_fit(X, y)
    clf.predict(X)
    clf.set_params(own_share=0.9, ridge=0.5)
    fresh = Sums(2, own_share=0.9, ridge=0.5).partial_fit(X, y)
    np.testing.assert_allclose(scores(clf, X), scores(fresh, X))
    clf.set_params(n_axes=3)
    with pytest.raises(ValueError, match="n_axes from 2 to 3 cannot change"):
        clf.partial_fit(X, y)


def test_floats_are_counted():
    X, y = rows(d=10)
    clf = Sums(4, buffer_rows=8).fit(X, y)
    assert clf.n_floats_ == 3 + 3 * 5 * 10 + 55 + 10 + 80 + 8 + 2 + 4
    assert clf.working_floats_ > 3 * 5 * 10 + 55


@pytest.mark.parametrize(
    ("d", "n_axes", "buffer_rows", "n_classes"), [(320, 20, 64, 10), (400, 30, 32, 2), (90, 4, 64, 20)]
)
def test_working_space_is_what_is_taken(d, n_axes, buffer_rows, n_classes):
    """Every copy that answering and learning make is counted, and little else."""
    rng = np.random.default_rng(0)
    X, y = rng.random((200, d), np.float32), np.arange(200) % n_classes
    clf = Sums(n_axes, buffer_rows=buffer_rows).partial_fit(X, y)
    clf.predict(X)  # what is imported or compiled on the way is not meant
    most = 0
    for call in (lambda: clf.partial_fit(X[:50], y[:50]), lambda: clf.predict(X), lambda: clf.predict(X)):
        tracemalloc.start()
        call()
        most = max(most, tracemalloc.get_traced_memory()[1] // 4)
        tracemalloc.stop()
    assert 0.4 * clf.working_floats_ < most <= clf.working_floats_


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[0, 1, np.nan]], [1], "NaN at row 0, column 2"),
        ([[0, 1, 1e30]], [1], "too large for float32"),
        (np.ones((2, 4)), [1, 1], "4 features, but DiscriminantClassifier is expecting 3"),
        (np.ones((2, 3)), [1], "1 labels for 2 rows"),
        (np.ones((1, 3)), ["text"], "cannot be sorted together"),
    ],
)
def test_bad_input_is_named_and_changes_nothing(X, y, message):
    good, labels = rows(d=3)
    clf = Sums(2).partial_fit(good, labels)
    before = known(clf)
    with pytest.raises(ValueError, match=message):
        clf.partial_fit(X, y)
    assert_same(before, known(clf))
    fresh = clone(clf)
    with pytest.raises(NotFittedError):
        fresh.predict(good)
    fresh.partial_fit(good)
    with pytest.raises(NotFittedError, match="no label yet"):
        fresh.predict(good)


@pytest.mark.parametrize(
    ("name", "value"), [("n_axes", 0), ("own_share", 1.0), ("ridge", 0.0), ("buffer_rows", 0), ("ridge", float("inf"))]
)
def test_bad_parameters_are_named(name, value):
    with pytest.raises(ValueError, match=f"{name}={value!r}"):
        Sums(**{name: value}).fit(*rows())


def test_copies_and_checkpoints_go_on_alike(tmp_path):
    X, y = rows()
    clf = Sums(2, buffer_rows=16).partial_fit(X[:50], y[:50])
    clf.save(tmp_path / "clf.safetensors")
    others = [load(tmp_path / "clf.safetensors"), pickle.loads(pickle.dumps(clf)), copy.deepcopy(clf)]
    clf.partial_fit(X[50:], y[50:])
    for other in others:
        assert_same(known(clf), known(other.partial_fit(X[50:], y[50:])))
        np.testing.assert_array_equal(clf.predict_proba(X), other.predict_proba(X))


DAMAGE = {
    "counts": lambda f: {**f, "counts": f["counts"] + 1},
    "scatter": lambda f: {**f, "scatter": f["scatter"][:-1]},
    "variances": lambda f: {**f, "scatter": -f["scatter"]},
    "classes": lambda f: {**f, "classes_": f["classes_"][::-1]},
    "NaN": lambda f: {**f, "classes": f["classes"] * np.float32(np.nan)},
    "codes": lambda f: {**f, "buffer_codes": f["buffer_codes"] + 9},
    "waiting": lambda f: {**f, "counters": {**f["counters"], "waiting": 16}},
}


@pytest.mark.parametrize("case", DAMAGE)
def test_damaged_states_are_refused(case):
    X, y = rows()
    clf = Sums(2, buffer_rows=16).partial_fit(X[:50], y[:50])
    with pytest.raises((ValueError, CheckpointError)):
        clone(clf)._import(DAMAGE[case](clf._export()))


@pytest.mark.skipif(not JIT_ENABLED, reason="the same code paths as with the JIT on")
@parametrize_with_checks([DiscriminantClassifier(), Sums(n_axes=2)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_one_sample_of_another_width_is_refused():
    model = Sums(1, buffer_rows=8).partial_fit(np.eye(3, dtype=np.float32), [0, 1, 2])
    before = model.to_bytes()
    for width in (1, 2, 4):
        with pytest.raises(ValueError, match="features"):
            model.learn_one(np.ones(width, np.float32), 0)
    assert model.to_bytes() == before


def test_certainty_is_measured_on_classes_that_are_known():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(88, 3)).astype(np.float32), np.arange(88) % 2
    model = Sums(1, buffer_rows=8).partial_fit(X, y)
    before = model.temperature_
    assert before != 1.0  # two classes are enough
    model.partial_fit(X[:8], np.full(8, 2))  # it is due for a look, but nothing is known of the third yet
    assert model.temperature_ == before
    model.partial_fit(X, np.arange(88) % 3)
    assert model.temperature_ != before
    alone = Sums(1, buffer_rows=8).partial_fit(X, np.zeros(88))
    assert alone.temperature_ == 1.0  # with one class there is nothing to be certain of


def test_the_temperature_is_sought_on_a_grid_and_its_certainty_is_the_curvature_there():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)).astype(np.float32), np.arange(40) % 2
    X[y == 1, 0] += 1.0
    model = Sums(2, buffer_rows=16).partial_fit(X[:38], y[:38])
    assert model._state.counters[_sums.SCORED_AT] == 0
    model.partial_fit(X[38:39], y[38:39])
    assert model._state.counters[_sums.SCORED_AT] == 39  # as soon as a quarter of the buffer is added together
    state = model._state
    state.buffer[:], state.buffer_codes[:], state.counters[_sums.WAITING] = X[:16], y[:16], 16
    state.calibration[:] = before, certainty = 0.3, 2.0
    rule = _sums.make_rule(model._state.copied(with_buffer=False), float(model.own_share), float(model.ridge))
    found = rule.scores(X[:16]).astype(float) / 2

    def answers(t):
        weights = np.exp(-(found - found.min(axis=1, keepdims=True)) / np.exp(t))
        return weights / weights.sum(axis=1, keepdims=True)

    def cost(t):
        return -np.log(answers(t)[np.arange(16), y[:16]]).sum() + (certainty + 1.0) / 2 * (t - before) ** 2

    best = min((before + step / 20 for step in range(-40, 41)), key=cost)
    best = min((best + step / 200 for step in range(-10, 11)), key=cost)
    mean = (answers(best) * found).sum(axis=1, keepdims=True)
    curvature = (answers(best) * (found - mean) ** 2).sum() / np.exp(best) ** 2
    state._calibrate(model._settings())
    np.testing.assert_allclose(model._state.calibration, [best, 0.75 * certainty + curvature], rtol=1e-5)
