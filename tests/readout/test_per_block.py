"""Gated: any estimator per block, warm starts, recalls, missing labels, regressors, checkpoints."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from river import linear_model, naive_bayes
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.naive_bayes import GaussianNB

from ccmem import AdaptiveCCM, DiscriminantClassifier, Gated, IncrementalWTA, load


def stream(n=300, seed=0):
    """Three regimes, the third as the first; the rule is reversed in the second."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(3 * n, 3)) + np.repeat([[9.0, 0.0, 0.0], [0.0, 9.0, 0.0], [9.0, 0.0, 0.0]], n, axis=0)
    return X, ((X[:, 2] > 0) ^ (np.arange(3 * n) // n == 1)).astype(int)


@pytest.mark.parametrize("estimator", [GaussianNB(), naive_bayes.GaussianNB(), None, DiscriminantClassifier()])
def test_every_block_has_its_own_predictor_and_a_known_one_is_recalled(estimator):
    X, y = stream()
    model = Gated(estimator=estimator).partial_fit(X, y, classes=[0, 1])
    assert sorted(model.estimators_) == list(range(model.memory_.n_blocks_)) == [0, 1]
    assert model.memory_.task_pointer_ == 0
    assert np.mean(model.predict(X[-200:]) == y[-200:]) > 0.85
    p = model.predict_proba(X[-5:])
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert model.classes_.tolist() == [0, 1]
    assert model.predict_one(X[-1]) == model.predict(X[-1:])[0]


def test_rows_can_choose_their_block():
    X, y = stream()
    model = Gated(estimator=GaussianNB(), gate="row").partial_fit(X, y, classes=[0, 1])
    middle = slice(400, 600)
    assert np.mean(model.predict(X[middle]) == y[middle]) > 0.7
    by_stream = Gated(estimator=GaussianNB()).partial_fit(X, y, classes=[0, 1])
    assert np.mean(by_stream.predict(X[middle]) == y[middle]) < 0.6  # the block in use has the other rule


def test_a_new_block_starts_from_the_nearest():
    X, y = stream()
    model = Gated(estimator=GaussianNB()).partial_fit(X[:300], y[:300], classes=[0, 1])
    model.partial_fit(X[300:600])  # no labels: the second predictor has learned nothing but what it was copied with
    assert sorted(model.estimators_) == [0, 1]
    np.testing.assert_array_equal(model.estimators_[1].theta_, model.estimators_[0].theta_)


def test_a_stream_may_be_cut_anywhere():
    X, y = stream()
    whole, cut = (Gated(AdaptiveCCM()) for _ in range(2))
    whole.partial_fit(X, y)
    for part in np.array_split(np.arange(len(X)), 9):
        cut.partial_fit(X[part], y[part])
    np.testing.assert_array_equal(whole.predict_proba(X), cut.predict_proba(X))


def test_regressors_of_both_libraries_learn():
    X, _ = stream()
    target = X[:, 2] * 2
    for estimator in (SGDRegressor(random_state=0), linear_model.LinearRegression()):
        model = Gated(estimator=estimator).partial_fit(X / 9, target)
        assert np.corrcoef(model.predict(X[-100:] / 9), target[-100:])[0, 1] > 0.9
        assert not hasattr(model, "predict_proba")


def test_labels_may_be_missing_and_new_classes_are_refused_where_they_cannot_be_learned():
    X, y = stream()
    labels = [None if i % 2 else int(label) for i, label in enumerate(y)]
    model = Gated().partial_fit(X, labels)
    assert model.estimators_[0].n_samples_taught_ < 600
    fixed = Gated(estimator=SGDClassifier()).partial_fit(X, y)
    seen = fixed.memory_.n_samples_seen_
    with pytest.raises(ValueError, match="label 7 is new, but SGDClassifier has to know all"):
        fixed.partial_fit(X[:1], [7])
    with pytest.raises(ValueError, match="1 labels for 2 rows"):
        fixed.partial_fit(X[:2], [0])
    assert fixed.memory_.n_samples_seen_ == seen


def test_what_cannot_be_gated_is_refused():
    X, y = stream()
    with pytest.raises(TypeError, match="has no blocks"):
        Gated(IncrementalWTA(2)).partial_fit(X, y)
    with pytest.raises(TypeError, match="cannot learn from a stream"):
        Gated(estimator=object()).partial_fit(X, y)


def test_checkpoints_of_own_estimators_go_on_alike_and_others_are_refused(tmp_path):
    X, y = stream()
    model = Gated().partial_fit(X[:500], y[:500])
    model.save(tmp_path / "gated.safetensors")
    others = [load(tmp_path / "gated.safetensors"), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
    model.partial_fit(X[500:], y[500:])
    for other in others:
        other.partial_fit(X[500:], y[500:])
        np.testing.assert_array_equal(model.predict_proba(X), other.predict_proba(X))
    foreign = Gated(estimator=GaussianNB()).partial_fit(X, y)
    with pytest.raises(TypeError, match="GaussianNB is not one of ccmem's estimators"):
        foreign.save(tmp_path / "foreign.safetensors")
    fields = model._export()
    for damage in ({"blocks": fields["blocks"] + 5}, {"estimators": fields["estimators"][:1]}, {"memory_": None}):
        with pytest.raises(ValueError, match="Gated"):
            Gated()._import({**fields, **damage})
