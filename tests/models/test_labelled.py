"""LVQ and ARTMAP: equal to their references; labels may be missing, and new ones may come at any time."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccmem import ARTMAP, LVQ, from_bytes
from naive import artmap, lvq
from zoo import streams

MODELS = {
    "lvq1": (LVQ(2, rate_decay=0.9), lvq),
    "glvq": (LVQ(2, rule="glvq", gain=4.0, rate_decay=0.9), lvq),
    "attract": (LVQ(2, rule="attract"), lvq),
    "artmap": (ARTMAP(vigilance=0.3, max_units=5), artmap),
}
every = pytest.mark.parametrize("name", MODELS)


def fresh(name):
    model = MODELS[name][0]
    return type(model)(**model.get_params())


@every
@settings(max_examples=25)
@given(data=st.data())
def test_equals_its_reference_however_the_stream_is_cut(name, data):
    X = data.draw(streams(30))
    y = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(X), max_size=len(X))))
    model = fresh(name).partial_fit(X, y)
    cut = fresh(name)
    for part in np.array_split(np.arange(len(X)), 4):
        if len(part):
            cut.partial_fit(X[part], y[part])
    expected = MODELS[name][1].naive(X, y=y, **model.get_params())
    for one in (model, cut):
        assert one.unit_labels_.tolist() == expected["labels"]
        np.testing.assert_array_equal(one.memory_.prototypes_, expected["prototypes_"])
        np.testing.assert_array_equal(one.memory_.win_counts_, expected["win_counts_"])
    assert [fresh(name).learn_one(X[0], y[0])] == expected["winners"][:1]


def rows():
    rng = np.random.default_rng(0)
    X = rng.random((60, 3))
    return X, np.where(X[:, 0] > 0.5, "right", "left").astype(object)


@every
def test_rows_without_a_label_are_counted_and_not_learned(name):
    X, y = rows()
    some = y.copy()
    some[::3] = None
    model, without = fresh(name).partial_fit(X, some), fresh(name).partial_fit(X[some != None], y[some != None])  # noqa: E711
    np.testing.assert_array_equal(model.memory_.prototypes_, without.memory_.prototypes_)
    assert model.memory_.n_samples_seen_ == len(X)
    assert model.learn_one(X[0]) == -1
    with pytest.raises(ValueError, match="every label in y is missing"):
        fresh(name).fit(X, [None] * len(X))


@every
def test_classes_may_come_at_any_time_but_not_of_another_type(name):
    X, y = rows()
    model = fresh(name).partial_fit(X[:20], np.full(20, "z", object)).partial_fit(X[20:], y[20:])
    assert model.classes_.tolist() == ["left", "right", "z"]
    before = model.memory_.prototypes_
    with pytest.raises(ValueError, match="sorted together"):
        model.partial_fit(X, np.arange(len(X)) % 2)
    np.testing.assert_array_equal(model.memory_.prototypes_, before)
    assert model.memory_.n_samples_seen_ == len(X)


@every
def test_saved_pickled_and_continued(name):
    X, y = rows()
    whole = fresh(name).partial_fit(X, y)
    half = fresh(name).partial_fit(X[:30], y[:30])
    for copy in (from_bytes(half.to_bytes()), pickle.loads(pickle.dumps(half))):
        copy.partial_fit(X[30:], y[30:])
        np.testing.assert_array_equal(copy.memory_.prototypes_, whole.memory_.prototypes_)
        np.testing.assert_array_equal(copy.predict(X), whole.predict(X))
    assert whole.predict_proba(X).sum(axis=1).tolist() == [1.0] * len(X)
    assert whole.predict_one(X[0]) == whole.predict(X[:1])[0]


def test_zero_rows_and_constant_columns_are_learned():
    X = np.zeros((20, 3))
    X[::2, 0] = 1.0
    for model in (LVQ(), ARTMAP()):
        assert model.fit(X, X[:, 0].astype(int)).score(X, X[:, 0].astype(int)) == 1.0


def test_artmap_at_its_bound_learns_classes_that_appear_late():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.random((200, 2)) * 0.4 + 0.2 * i for i in range(4)])
    y = np.repeat(list("abcd"), 200)
    model = ARTMAP(max_units=12, vigilance=0.95)
    for label in "abcd":
        model.partial_fit(X[y == label], y[y == label])
    found, counts = np.unique(model.unit_labels_, return_counts=True)
    assert found.tolist() == list("abcd")
    assert counts.min() >= 2
    assert model.memory_.n_units_ == 12
    assert [model.score(X[y == label], y[y == label]) > 0.25 for label in "abcd"] == [True] * 4


def test_artmap_replaces_the_least_used_unit_of_the_largest_class():
    X = np.array([[0.0], [0.5], [0.51], [1.0], [0.0], [0.8], [0.2]])
    y = np.array(["a", "a", "a", "a", "a", "b", "b"])
    model = ARTMAP(max_units=3, vigilance=0.9).partial_fit(X[:5], y[:5])
    assert model.memory_.prototypes_.ravel().tolist() == [0.0, 0.5, 1.0]
    assert model.memory_.win_counts_.tolist() == [2, 2, 1]
    assert model.learn_one(X[5], y[5]) == 2
    assert model.unit_labels_.tolist() == ["a", "a", "b"]
    assert model.learn_one(X[6], y[6]) == -1  # "a" has only one unit more than "b"
    assert model.memory_.win_counts_.tolist() == [2, 2, 1]
