"""Stack: samples wait until the layers stand still, then it is the layers and the last, one after the other."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from ccmem import (
    AdaptiveCCM,
    CheckpointError,
    DiscriminantClassifier,
    ModalClassifier,
    OnlineMLP,
    PatchLayer,
    Stack,
    WindowLayer,
    load,
)


def pictures(n=60, seed=0):
    """Three kinds of pictures: standing bars, lying bars, both."""
    rng = np.random.default_rng(seed)
    images = rng.random((n, 9, 9)).astype(np.float32) * 0.3
    y = np.arange(n) % 3
    for image, kind in zip(images, y, strict=True):
        at = rng.integers(1, 8)
        if kind != 1:
            image[:, at] += 1
        if kind != 0:
            image[at, :] += 1
    return images.reshape(n, 81), y


def layer(**changes):
    settings = {"n_units": 8, "patch_size": 3, "grid": 2, "learning_images": 10, "random_state": 0, **changes}
    return PatchLayer(**settings)


def stack(last=None, **changes):
    return Stack([layer(**changes)], last or DiscriminantClassifier(2, buffer_rows=8))


LASTS = {
    "discriminant": lambda: DiscriminantClassifier(2, buffer_rows=8),
    "votes": lambda: ModalClassifier(AdaptiveCCM(n_slots=4)),
    "network": lambda: OnlineMLP((5,), random_state=0),
}


@pytest.mark.parametrize("name", LASTS)
def test_it_equals_its_parts(name):
    X, y = pictures()
    whole = stack(LASTS[name]()).partial_fit(X, y)
    alone = layer().partial_fit(X)
    last = LASTS[name]().partial_fit(alone.transform(X), y)
    np.testing.assert_array_equal(whole.transform(X), alone.transform(X))
    np.testing.assert_array_equal(whole.predict(X), last.predict(alone.transform(X)))
    np.testing.assert_allclose(whole.predict_proba(X), last.predict_proba(alone.transform(X)), atol=1e-6)
    assert whole.classes_.tolist() == [0, 1, 2]
    assert whole.waiting_ == 0


@given(cuts=st.lists(st.integers(0, 60), max_size=4), asks=st.booleans())
def test_a_stream_may_be_cut_anywhere_and_asked_at_any_time(cuts, asks):
    X, y = pictures()
    whole, cut, one = stack().partial_fit(X, y), stack(), stack()
    for part in np.split(np.arange(60), sorted(cuts)):
        if len(part):
            cut.partial_fit(X[part], y[part])
            if asks:
                cut.predict(X[:2])
    for x, label in zip(X, y, strict=True):
        one.learn_one(x, label)
    for other in (cut, one):
        for a, b in zip(whole.last_._state, other.last_._state, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_class_seen_only_while_the_layer_learns_is_not_lost():
    X, y = pictures()
    order = np.argsort(y, kind="stable")
    clf = stack(learning_images=25).partial_fit(X[order[:20]], y[order[:20]])
    assert clf.waiting_ == 20
    assert clf.n_floats_ > 20 * 81
    clf.partial_fit(X[order[20:]], y[order[20:]])
    assert clf.waiting_ == 0
    np.testing.assert_array_equal(clf.last_.class_counts_, [20, 20, 20])
    assert clf.score(X, y) > 0.9


@pytest.mark.parametrize("scale", [255.0, 0.001])
def test_the_scale_of_pixels_changes_no_answer(scale):
    X, y = pictures()
    expected = stack().partial_fit(X[:40], y[:40]).predict(X)
    np.testing.assert_array_equal(stack().partial_fit(scale * X[:40], y[:40]).predict(scale * X), expected)


def test_colour_images_of_any_size_go_through_as_they_are():
    rng, kinds = np.random.default_rng(0), np.arange(40) % 2
    images = rng.random((40, 12, 7, 3))
    images[kinds == 1, 4:6, :, 1] += 1  # a green line
    clf = stack().partial_fit(images[:20], kinds[:20])
    for image, kind in zip(images[20:30], kinds[20:30], strict=True):
        clf.learn_one(image, kind)
    assert clf.score(images[30:], kinds[30:]) == 1
    before = clf.last_.n_samples_seen_
    for bad in (images[..., :2], images[:, :11], np.where(images > 1.9, np.nan, images)):
        with pytest.raises(ValueError, match=r"expecting images of 12 x 7 x 3|NaN at row"):
            clf.partial_fit(bad, kinds)
    assert clf.last_.n_samples_seen_ == before


def test_it_answers_while_the_layer_learns():
    X, y = pictures()
    clf = stack(learning_images=59).partial_fit(X[:50], y[:50])
    assert clf.waiting_ == 50
    assert clf.score(X[:50], y[:50]) > 0.9
    assert clf.classes_.tolist() == [0, 1, 2]
    assert clf.waiting_ == 50


def test_a_memory_may_stand_on_a_layer_and_its_events_are_heard():
    X, y = pictures(900)
    order = np.concatenate([np.flatnonzero(y == 0), np.flatnonzero(y == 1), np.flatnonzero(y == 0)])
    heard = []
    memory = AdaptiveCCM(n_slots=4)
    clf = Stack([layer()], memory)
    clf.on_event(heard.append)
    clf.partial_fit(X[order])
    assert clf.last_.n_blocks_ >= 2
    assert [event.kind for event in heard] == [event.kind for event in clf.last_.events_]
    assert clf.predict(X[:5]).dtype == np.int64
    assert not hasattr(clf, "predict_proba")


def test_labels_may_be_missing_and_new_ones_may_come():
    X, y = pictures()
    names = np.array(["a", "b", "c"], dtype=object)[y]
    names[::4] = None
    clf = stack().partial_fit(X, names)
    assert clf.last_.n_samples_taught_ == 45
    assert clf.partial_fit(X[:3], ["d", None, "d"]).classes_.tolist() == ["a", "b", "c", "d"]


def test_labels_keep_their_kind():
    X, y = pictures()
    clf = stack().partial_fit(X[:30], y[:30])
    gaps = y[30:].astype(float)
    gaps[::3] = np.nan
    clf.partial_fit(X[30:], gaps)
    clf.partial_fit(X[:4], [0, None, 7, 1])
    assert clf.classes_.tolist() == [0, 1, 2, 7]
    assert clf.classes_.dtype.kind in "if"
    assert clf.last_.n_samples_taught_ == 30 + 20 + 3


def test_labels_that_do_not_fit_are_refused_while_samples_wait_and_later():
    X, y = pictures()
    for n in (5, 30):
        clf = stack().partial_fit(X[:n], y[:n])
        before = clf.waiting_, clf.n_floats_
        with pytest.raises(ValueError, match="cannot be sorted together"):
            clf.partial_fit(X[:2], ["a", "b"])
        with pytest.raises(ValueError, match="2 labels for 3 rows"):
            clf.partial_fit(X[:3], [1, 2])
        with pytest.raises(ValueError, match="NaN at row 1"):
            clf.partial_fit(np.vstack([X[:1], X[:1] * np.nan]), [0, 1])
        with pytest.raises(ValueError, match="80 features"):
            clf.partial_fit(X[:2, :80], [0, 1])
        assert (clf.waiting_, clf.n_floats_) == before


def test_a_first_chunk_that_is_refused_leaves_no_trace():
    X, _ = pictures()
    clf = stack()
    with pytest.raises(ValueError, match="labels for"):
        clf.partial_fit(X, [1, 2])
    assert not clf.__sklearn_is_fitted__()
    with pytest.raises(NotFittedError, match="learned nothing yet"):
        clf.predict(X)


@pytest.mark.parametrize("n", [6, 40])
@pytest.mark.parametrize("name", LASTS)
def test_copies_and_checkpoints_go_on_alike(tmp_path, name, n):
    X, y = pictures()
    names = np.array(["a", "b", "c"], dtype=object)[y]
    clf = stack(LASTS[name]()).partial_fit(X[:n], names[:n])
    clf.save(tmp_path / "stack.safetensors")
    others = [load(tmp_path / "stack.safetensors"), pickle.loads(pickle.dumps(clf)), copy.deepcopy(clf)]
    clf.partial_fit(X[n:], names[n:])
    for other in others:
        other.partial_fit(X[n:], names[n:])
        np.testing.assert_array_equal(clf.predict_proba(X), other.predict_proba(X))


def test_an_unfitted_stack_is_saved_too(tmp_path):
    stack().save(tmp_path / "stack.safetensors")
    assert isinstance(load(tmp_path / "stack.safetensors").layers[0], PatchLayer)


@pytest.mark.parametrize(
    ("layers", "last", "message"),
    [
        ([], DiscriminantClassifier(), "layers=\\[\\] is not possible"),
        (PatchLayer(), DiscriminantClassifier(), "must be a list"),
        ([DiscriminantClassifier()], DiscriminantClassifier(), "is not a layer"),
        ([PatchLayer()], PatchLayer, "is not possible|cannot learn|no partial_fit|Cannot clone"),
    ],
)
def test_what_is_no_layer_is_named(layers, last, message):
    with pytest.raises(TypeError, match=message):
        Stack(layers, last).partial_fit(*pictures())


def test_parts_are_cloned_not_changed():
    X, y = pictures()
    below, above = layer(), DiscriminantClassifier(2)
    clf = Stack([below], above).fit(X, y)
    assert not below.__sklearn_is_fitted__()
    assert not above.__sklearn_is_fitted__()
    assert clf.n_floats_ == clf.layers_[0].n_floats_ + clf.last_.n_floats_
    assert clf.working_floats_ > clf.last_.working_floats_
    clf.fit(X[:30], y[:30])
    assert clf.last_.n_samples_seen_ == 30


def hum(n_rows=6000):
    """A sine that turns into a square wave and back."""
    time, rng = 2 * np.pi * np.arange(n_rows) / 30, np.random.default_rng(0)
    square = (np.arange(n_rows) // (n_rows // 3)) == 1
    return np.where(square, np.sign(np.sin(time)), np.sin(time)) + 0.05 * rng.normal(size=n_rows)


def test_windows_below_a_memory(tmp_path):
    X, front, memory = hum(), WindowLayer(), AdaptiveCCM()
    windows = front.push(X)
    front.set_overlap(memory)
    memory.partial_fit(windows)
    assert memory.overlap == front.window_ // front.hop_
    told = []
    stack = Stack([WindowLayer()], AdaptiveCCM())
    stack.on_event(told.append)
    stack.partial_fit(X[:100, np.newaxis])
    assert (stack.waiting_, stack.n_features_in_) == (100, 1)
    for part in np.array_split(X[100:, np.newaxis], 7):
        stack.partial_fit(part)
        stack.save(tmp_path / "stack")
        again = load(tmp_path / "stack")
    assert stack.waiting_ == 0
    expected = [front.event_in_rows(event) for event in memory.events_]
    assert told == stack.events_ == again.events_ == expected
    np.testing.assert_array_equal(stack.last_.prototypes_, memory.prototypes_)
    np.testing.assert_array_equal(again.predict(X[:500]), memory.predict(front.transform(X[:500])))
    with pytest.raises(ValueError, match="without labels"):
        stack.partial_fit(X, np.zeros(len(X)))
    with pytest.raises(TypeError, match="only layer"):
        Stack([WindowLayer(), WindowLayer()], AdaptiveCCM()).partial_fit(X)


def test_a_memory_of_other_windows_is_refused(tmp_path):
    X = np.random.default_rng(0).normal(size=(500, 3))
    stack = Stack([WindowLayer(20)], AdaptiveCCM()).partial_fit(X)
    stack.last_ = AdaptiveCCM().partial_fit(stack.transform(X)[:, :-3])  # what windows were without pairs of channels
    with pytest.raises(CheckpointError, match="has learned 24 features of windows that have 27"):
        stack.save(tmp_path / "old")  # a file that could not be loaded is not written


def test_buffered_rows_and_labels_count_as_kept():
    X, y = hum()[:100, np.newaxis], np.arange(100) % 2
    bare, labelled = Stack([WindowLayer()], AdaptiveCCM()), Stack([WindowLayer()], DiscriminantClassifier())
    bare.partial_fit(X)
    labelled.partial_fit(X, y)
    assert (bare.waiting_, labelled.waiting_) == (100, 100)
    parts = [sum(part.n_floats_ for part in stack._started()) for stack in (bare, labelled)]
    assert bare.n_floats_ == parts[0] == 100  # the layer holds the rows
    assert labelled.n_floats_ == parts[1] + 100
