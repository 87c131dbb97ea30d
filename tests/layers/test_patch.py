"""PatchLayer: kernel and reference, image shapes, freezing, bad input."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from tests.naive import patch as naive

from ccmem import DiscriminantClassifier, PatchLayer, load
from ccmem.layers._encode import golden_step


def pictures(n=12, shape=(9, 8), seed=0):
    """Noise with bright bars, so that some patches have more contrast than others."""
    rng = np.random.default_rng(seed)
    images = rng.random((n, *shape)) * 0.1
    for image in images:
        image[rng.integers(shape[0]) :, : rng.integers(1, shape[1])] += 1.0
    return images


def small(**changes):
    return PatchLayer(**{"n_units": 6, "patch_size": 3, "grid": 2, "learning_images": 8, "random_state": 0, **changes})


def known(layer):
    return [array.copy() for array in layer._state]


def assert_same(first, second):
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


@given(
    shape=st.sampled_from([(5, 5), (9, 8), (6, 17), (12, 20, 3), (7, 6, 2)]),
    n_units=st.sampled_from([4, 5, 7, 16]),
    patch_size=st.integers(2, 4),
    grid=st.integers(1, 2),
    softening=st.sampled_from([0.01, 0.06, 1.0]),
    seed=st.integers(0, 5),
)
def test_kernel_equals_naive_twin(shape, n_units, patch_size, grid, softening, seed):
    X = pictures(5, shape, seed).astype(np.float32)
    layer = PatchLayer(
        n_units, patch_size=patch_size, grid=grid, softening=softening, learning_images=3, random_state=seed
    ).partial_fit(X)
    start = clone(layer).set_params(units="random").partial_fit(X)._state.units
    units, wins = naive.learn(X[:3], start, patch_size, layer.patches_per_image)
    np.testing.assert_allclose(layer._state.units, units, atol=2e-6)
    np.testing.assert_array_equal(layer.win_counts_, wins)
    expected = [naive.features(x, layer._state.units, patch_size, grid, softening) for x in X]
    np.testing.assert_allclose(layer.transform(X), expected, atol=2e-4)


def test_features_of_an_image_checked_by_hand():
    layer = PatchLayer(4, patch_size=2, grid=1, softening=1e-6, units="random", random_state=0)
    layer.partial_fit(np.eye(3)[np.newaxis])
    layer._state.units[:] = np.array([[1, -1, -1, 1], [1, 1, -1, -1], [1, -1, 1, -1], [-1, 1, 1, -1]]) / 2
    places = np.array([[[1, 0, 0, 1], [0, 0, 1, 0]], [[0, 1, 0, 0], [1, 0, 0, 1]]], np.float64)
    f = np.zeros(4)
    for x in places.reshape(4, 4):
        s = layer._state.units @ x / np.linalg.norm(x - x.mean())
        f += np.maximum(s - s.min(), 0)
    expected = f**0.375 / np.linalg.norm(f**0.375)
    np.testing.assert_allclose(layer.transform(np.eye(3)[np.newaxis])[0], expected, rtol=1e-4)


@given(cuts=st.lists(st.integers(0, 12), max_size=3))
def test_a_stream_may_be_cut_anywhere(cuts):
    X = pictures()
    whole, cut = small().partial_fit(X), small()
    for part in np.split(X, sorted(cuts)):
        if len(part):
            cut.partial_fit(part)
    one = small()
    for x in X:
        one.learn_one(x)
    assert_same(known(whole), known(cut))
    assert_same(known(whole), known(one))
    np.testing.assert_array_equal(whole.transform(X)[3], whole.transform_one(X[3]))


def test_units_stand_still_after_the_first_images():
    X = pictures(30)
    layer = small().partial_fit(X[:7])
    assert not layer.frozen_
    assert layer.still_needs_ == 1
    layer.partial_fit(X[7:8])
    assert layer.frozen_
    units = layer.units_
    np.testing.assert_array_equal(units, layer.partial_fit(X[8:]).units_)
    assert layer.n_samples_seen_ == 30
    assert units.shape == (6, 1, 3, 3)
    np.testing.assert_allclose(units.sum(axis=(1, 2, 3)), 0, atol=1e-5)
    np.testing.assert_allclose((units**2).sum(axis=(1, 2, 3)), 1, rtol=1e-5)


@pytest.mark.parametrize("scale", [1e-6, 1 / 255, 255.0, 1e6])
@pytest.mark.parametrize("shift", [0.0, -3.0])
def test_other_scales_need_no_other_settings(scale, shift):
    X = pictures()
    expected = small().fit(X).transform(X)
    np.testing.assert_allclose(small().fit((X + shift) * scale).transform((X + shift) * scale), expected, atol=2e-3)


def test_images_without_contrast_have_no_features_and_teach_nothing():
    flat = np.full((10, 9, 8), 0.1)
    layer = small().partial_fit(flat)
    assert layer.frozen_
    assert layer.win_counts_.sum() == 0
    assert not layer.transform(flat).any()
    f = layer.transform(pictures())  # random units work
    np.testing.assert_allclose((f**2).sum(axis=1), 1, rtol=1e-5)


def test_random_units_are_the_control():
    X = pictures()
    layer = small(units="random").partial_fit(X)
    assert layer.win_counts_.sum() == 0
    assert not np.array_equal(layer.units_, small(units="random", random_state=1).partial_fit(X).units_)


def test_rows_arrays_and_colours():
    grey, colour = pictures(shape=(9, 9)), pictures(shape=(9, 8, 3))
    rows = small().fit(grey.reshape(12, 81)).transform(grey.reshape(12, 81))
    np.testing.assert_array_equal(rows, small().fit(grey).transform(grey))
    layer = small(image_shape=(9, 8, 3)).fit(colour.reshape(12, -1))
    np.testing.assert_array_equal(layer.transform(colour), small().fit(colour).transform(colour))
    assert layer.units_.shape == (6, 3, 3, 3)
    assert rows.shape == (12, 24)
    assert rows.dtype == np.float32
    assert layer.get_feature_names_out()[0] == "patchlayer0"
    assert layer.n_floats_ == 6 * 27 + 6 + 2
    assert layer.working_floats_ > 9 * 8 * 3


BAD = {
    "another size": (np.ones((2, 9, 9)), "images of 9 x 9, but PatchLayer is expecting images of 9 x 8"),
    "another width": (np.ones((2, 70)), "70 features, but PatchLayer is expecting 72"),
    "NaN": (np.full((1, 72), np.nan), "NaN at row 0"),
    "too large": (np.full((1, 72), 1e30), "too large for float32"),
    "text": (np.array([["a"] * 72], dtype=object), "could not convert"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_images_are_named_and_change_nothing(case):
    X, message = BAD[case]
    layer = small(image_shape=(9, 8)).partial_fit(pictures()[:3])
    before = known(layer)
    for call in (layer.partial_fit, layer.transform):
        with pytest.raises(ValueError, match=message):
            call(X)
        assert_same(before, known(layer))


def test_a_missing_channel_is_named():
    layer = small().partial_fit(pictures(shape=(9, 8, 3)))
    with pytest.raises(ValueError, match="images of 9 x 8 x 2, but PatchLayer is expecting images of 9 x 8 x 3"):
        layer.transform(np.ones((1, 9, 8, 2)))
    with pytest.raises(ValueError, match="72 features, but PatchLayer is expecting 216"):
        layer.transform(np.ones((1, 72)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_units": 3}, "n_units=3 is not possible"),
        ({"patch_size": 9}, "do not fit images of 9 x 8"),
        ({"grid": 7}, "do not fit images of 9 x 8"),
        ({"softening": 0.0}, "softening=0.0"),
        ({"learning_images": 0}, "learning_images=0"),
        ({"units": "best"}, "units='best'"),
        ({"image_shape": (9,)}, "image_shape="),
        ({"image_shape": (9, 8, 2)}, "images of 9 x 8 were given where 9 x 8 x 2 are expected"),
    ],
)
def test_bad_parameters_are_named(changes, message):
    layer = small(**changes)
    with pytest.raises(ValueError, match=message):
        layer.partial_fit(pictures())
    assert not hasattr(layer, "n_features_in_")
    with pytest.raises(NotFittedError):
        layer.transform(pictures())


def test_rows_that_are_no_squares_ask_for_a_shape():
    with pytest.raises(ValueError, match="rows of 72 numbers are not square images; set image_shape"):
        small().fit(np.ones((2, 72)))


def test_the_shape_cannot_change_under_way():
    layer = small().partial_fit(pictures()).set_params(n_units=8)
    with pytest.raises(ValueError, match="n_units from 6 to 8 cannot change"):
        layer.partial_fit(pictures())


def test_copies_and_checkpoints_go_on_alike(tmp_path):
    X = pictures(20)
    layer = small().partial_fit(X[:5])
    layer.save(tmp_path / "layer.safetensors")
    others = [load(tmp_path / "layer.safetensors"), pickle.loads(pickle.dumps(layer)), copy.deepcopy(layer)]
    layer.partial_fit(X[5:])
    for other in others:
        assert_same(known(layer), known(other.partial_fit(X[5:])))
        np.testing.assert_array_equal(layer.transform(X), other.transform(X))


def test_the_layer_holds_no_view_and_changes_no_data():
    X = pictures().astype(np.float32)
    kept = X.copy()
    layer = small().fit(X)
    f = layer.transform(X)
    np.testing.assert_array_equal(X, kept)
    X[:] = 3
    np.testing.assert_array_equal(layer.transform(kept), f)


def test_it_works_in_a_pipeline():
    X = pictures(shape=(8, 8)).reshape(12, 64)
    y = np.arange(12) % 2
    pipeline = make_pipeline(small(), DiscriminantClassifier(n_axes=2)).fit(X, y)
    assert pipeline.predict(X).shape == (12,)


def test_steps_visit_every_place_and_are_about_golden():
    assert [golden_step(n) for n in range(2, 11)] == [1, 1, 3, 3, 5, 4, 5, 5, 7]
    for n in range(2, 60):
        assert sorted(i * golden_step(n) % n for i in range(n)) == list(range(n))


def test_a_layer_that_has_seen_only_blank_images_is_loaded(tmp_path):
    X = pictures(20)
    layer = small().partial_fit(np.zeros((3, 9, 8)))
    layer.save(tmp_path / "layer")
    again = load(tmp_path / "layer")
    assert_same(known(layer.partial_fit(X)), known(again.partial_fit(X)))
