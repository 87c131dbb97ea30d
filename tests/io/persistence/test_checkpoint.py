"""Checkpoints: exact, atomic, and never partly loaded, for any content of the file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ccmem
from ccmem import ARTC2A, CCM, AdaptiveCCM, CheckpointError, IncrementalWTA, ModalClassifier, load, save
from ccmem.io.persistence import checkpoint as checkpoints
from ccmem.io.persistence import tensorfile
from forgery import mixed_stream, networks, small_ccm, through_file
from zoo import ALL, assert_same, estimators, snapshot, streams

# Resuming ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ALL, ids=lambda model: model.__name__)
@settings(max_examples=25)
@given(st.data())
def test_save_load_and_go_on_equals_never_having_stopped(model: type, data: st.DataObject) -> None:
    estimator, X = data.draw(estimators(model)), data.draw(streams())
    cut = data.draw(st.integers(1, len(X)))
    estimator.partial_fit(X[:cut])
    again = through_file(estimator)
    assert_same(snapshot(again), snapshot(estimator))
    if cut < len(X):
        assert_same(snapshot(again.partial_fit(X[cut:])), snapshot(estimator.partial_fit(X[cut:])))


@pytest.mark.parametrize(
    "labels",
    [
        [3, 1, 3, 2],
        [0.0, 1.0, 5.0, np.nan],
        [True, False, True, True],
        ["oak", "ash", None, "oak"],
        np.array(["é", "b", "c", "b"]),
    ],
    ids=["whole numbers", "floats with gaps", "booleans", "text with gaps", "numpy text"],
)
def test_classifier_keeps_labels_of_every_kind(labels: Any) -> None:
    classifier = ModalClassifier(IncrementalWTA(n_units=3)).partial_fit(np.arange(8.0).reshape(4, 2), labels)
    again = through_file(classifier)
    assert again.classes_.dtype == classifier.classes_.dtype
    assert again.classes_.tolist() == classifier.classes_.tolist()
    np.testing.assert_array_equal(again.votes_, classifier.votes_)
    X = np.random.default_rng(0).uniform(0, 8, (20, 2))
    assert again.predict(X).tolist() == classifier.predict(X).tolist()


@pytest.mark.parametrize(
    "estimator",
    [
        IncrementalWTA(n_units=2, init=np.eye(2, dtype=np.float32), p=np.inf, random_state=0),
        IncrementalWTA(n_units=2, init=[[0.0, 1.0], [1.0, 0.0]], random_state=0),
        small_ccm(random_state=np.random.default_rng(7)),
        small_ccm(random_state=np.random.Generator(np.random.MT19937(3))),
        small_ccm(random_state=np.random.Generator(np.random.Philox(3))),
        small_ccm(random_state=np.random.RandomState(5)),
        ModalClassifier(ARTC2A(max_units=None, random_state=0), unlabeled="none"),
    ],
    ids=["given array", "given list", "PCG64", "MT19937", "Philox", "RandomState", "classifier"],
)
def test_parameters_of_every_kind_and_models_that_have_learned_nothing(estimator: Any) -> None:
    again = through_file(estimator)
    assert not again.__sklearn_is_fitted__()
    X = mixed_stream()[:, :2]
    for model in (estimator, again):
        model.partial_fit(X)
    first, second = (getattr(model, "memory_", model) for model in (estimator, again))
    assert_same(snapshot(first), snapshot(second))
    assert_same(snapshot(getattr(through_file(estimator), "memory_", None) or through_file(estimator)), snapshot(first))


def test_what_belongs_to_a_fit_comes_back(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(mixed_stream(), columns=list("abcd"))
    memory = small_ccm().fit(frame)
    memory.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.feature_names_in_.tolist() == list("abcd")
    assert again.labels_.tolist() == memory.labels_.tolist()
    assert again.events_ == memory.events_
    assert again.partial_fit(frame).n_samples_seen_ == 800


def test_the_file_opens_with_the_safetensors_library(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors")
    numpy_reader = pytest.importorskip("safetensors.numpy")
    classifier = ModalClassifier(small_ccm()).partial_fit(mixed_stream(), np.arange(400) % 3)
    classifier.save(tmp_path / "m.safetensors")
    arrays = numpy_reader.load_file(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(arrays["model.fitted.votes"], classifier._votes)
    np.testing.assert_array_equal(
        arrays["model.fitted.memory_.fitted.state.prototypes"], classifier.memory_._state.prototypes
    )
    with safetensors.safe_open(tmp_path / "m.safetensors", "np") as file:
        assert file.metadata()["library_version"] == ccmem.__version__
        assert file.metadata()["schema"] == "4"


def test_arrays_of_every_type_and_shape_stand_in_the_file_as_they_are(tmp_path: Path) -> None:
    content = {
        "model": IncrementalWTA(n_units=2),
        "a": {name: np.zeros((2, 0, 3), kind) for name, kind in tensorfile.DTYPES.items()},
        "b": [np.float32(1.5), np.arange(3, dtype=">i4"), np.array(True), np.arange(6).reshape(2, 3).T],
    }
    checkpoints.write_checkpoint(tmp_path / "c", content)
    again = checkpoints.read_checkpoint(tmp_path / "c").content
    assert all(again["a"][name].shape == (2, 0, 3) for name in tensorfile.DTYPES)
    assert again["b"][0] == 1.5
    assert again["b"][1].tolist() == [0, 1, 2]
    assert again["b"][3].tolist() == [[0, 3], [1, 4], [2, 5]]


@pytest.mark.parametrize("model", ALL, ids=lambda model: model.__name__)
@settings(max_examples=10)
@given(st.data())
def test_layout_describes_the_state_also_after_growing(model: type, data: st.DataObject) -> None:
    estimator, X = data.draw(estimators(model)), data.draw(streams(max_rows=300))
    state = estimator.partial_fit(X)._state
    layout = estimator._layout(len(state.prototypes), X.shape[1], X.dtype)
    saved = {name: array for name, array in state._asdict().items() if name not in estimator._derived}
    assert saved.keys() == layout.keys()
    for name, array in saved.items():
        shape, dtype = layout[name]  # None: any size up to the capacity
        for have, want in zip(array.shape, shape, strict=True):  # a tuple: one of these sizes
            assert want is None or have in (want if isinstance(want, tuple) else (want,)), name
        assert array.dtype == dtype, name


# Writing ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_previous_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = tmp_path / "m.safetensors"
    memory = small_ccm().partial_fit(mixed_stream())
    memory.save(path)
    before = path.read_bytes()

    def full_disk(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os if call == "fsync" else Path, call, full_disk)
    with pytest.raises(OSError, match="No space left"):
        memory.partial_fit(mixed_stream()).save(path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_saved_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="random_state"):
        save(CCM(random_state=object()), tmp_path / "m")
    memory = small_ccm().partial_fit(mixed_stream())
    memory.n_slots = 5
    with pytest.raises(ValueError, match=r"n_slots.* changed since learning began"):
        save(memory, tmp_path / "m")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        save(small_ccm(), tmp_path / "nowhere" / "m")
    with pytest.raises(IsADirectoryError):
        save(small_ccm(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_link_stays_a_link_and_permissions_stay(tmp_path: Path) -> None:
    (tmp_path / "real").touch()
    (tmp_path / "real").chmod(0o600)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    small_ccm().save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o600
    assert load(tmp_path / "link").n_slots == 2


# Networks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("cut", [1, 150, 399])
def test_a_network_that_was_saved_goes_on_bit_for_bit(tmp_path: Path, number: int, cut: int) -> None:
    network = networks()[number]
    X, y = mixed_stream(), np.array(["a", "b", None, "c"], object)[np.arange(400) // 30 % 4]
    network.partial_fit(X[:cut], y[:cut]).save(tmp_path / "m")
    again = load(tmp_path / "m")
    for model, name in ((network, "one"), (again, "other")):
        model.partial_fit(X[cut:], y[cut:]).save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    np.testing.assert_array_equal(again.predict_proba(X), network.predict_proba(X))


def test_a_file_that_could_not_be_loaded_again_never_replaces_a_good_one(tmp_path: Path) -> None:
    memory = IncrementalWTA(n_units=2).partial_fit(np.eye(3))
    memory.save(tmp_path / "m")
    before = (tmp_path / "m").read_bytes()
    memory._state.prototypes[0, 0] = np.nan
    with pytest.raises(CheckpointError, match=r"was not written.*NaN.*unchanged"):
        memory.save(tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["m"]


@pytest.mark.parametrize("place", [0, 5, 38, 39])
def test_a_value_is_refused_or_its_powers_can_be_saved(place: int) -> None:
    X = np.random.default_rng(0).random((40, 3))
    X[place, 1] = 1e70
    assert ccmem.from_bytes(AdaptiveCCM().partial_fit(X).to_bytes()).n_samples_seen_ == 40
    for value in (1.1e70, 1e78, -1e149):
        X[place, 1] = value
        with pytest.raises(ValueError, match=rf"row {place}, column 1.*rescale"):
            AdaptiveCCM().partial_fit(X)
