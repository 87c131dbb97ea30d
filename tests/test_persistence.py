"""Checkpoints: exact, atomic, and never half loaded, whatever the file holds."""

from __future__ import annotations

import io
import json
import os
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from zoo import ALL, assert_same, estimators, snapshot, streams

import ccmem
from ccmem import ARTC2A, CCM, CheckpointError, IncrementalWTA, ModalClassifier, load, save
from ccmem.persistence import checkpoint as checkpoints
from ccmem.persistence import tensorfile


def mixed_stream(n_rows: int = 400, seed: int = 0) -> np.ndarray:
    """Four directions in turn, noisy."""
    rng = np.random.default_rng(seed)
    return np.repeat(np.eye(4), n_rows // 4, axis=0) + rng.uniform(0, 0.2, (n_rows // 4 * 4, 4))


def small_ccm(**parameters: Any) -> CCM:
    return CCM(**{"n_slots": 2, "alarm_limit": 3, "recall_limit": 2, "commit_limit": 1, "random_state": 0, **parameters})


# Going on -----------------------------------------------------------------------------------------------------------


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


def through_file(estimator: Any) -> Any:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        save(estimator, Path(folder) / "m.safetensors")
        return load(Path(folder) / "m.safetensors")


@pytest.mark.parametrize(
    "labels",
    [[3, 1, 3, 2], [0.0, 1.0, 5.0, np.nan], [True, False, True, True], ["oak", "ash", None, "oak"], np.array(["é", "b", "c", "b"])],
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
        small_ccm(random_state=np.random.RandomState(5)),  # noqa: NPY002
        ModalClassifier(ARTC2A(max_units=None, random_state=0), unlabeled="none"),
    ],
    ids=str,
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
    np.testing.assert_array_equal(arrays["model.fitted.memory_.fitted.state.prototypes"], classifier.memory_._state.prototypes)
    with safetensors.safe_open(tmp_path / "m.safetensors", "np") as file:
        assert file.metadata()["library_version"] == ccmem.__version__
        assert file.metadata()["schema"] == "1"


def test_arrays_of_every_type_and_shape_stand_in_the_file_as_they_are(tmp_path: Path) -> None:
    content = {"model": None, "a": {name: np.zeros((2, 0, 3), kind) for name, kind in tensorfile.DTYPES.items()},
               "b": [np.float32(1.5), np.arange(3, dtype=">i4"), np.array(True), np.arange(6).reshape(2, 3).T]}  # fmt: skip
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
    assert {name: (array.shape, array.dtype) for name, array in state._asdict().items()} == {
        name: (shape, np.dtype(dtype)) for name, (shape, dtype) in layout.items()
    }


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
    class Other(CCM):
        pass

    for estimator, named in ((Other(), "Other"), (CCM(random_state=object()), "random_state")):
        with pytest.raises(TypeError, match=named):
            save(estimator, tmp_path / "m")
    memory = small_ccm().partial_fit(mixed_stream())
    memory.n_slots = 5
    with pytest.raises(ValueError, match="n_slots changed since learning began"):
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


# Faults -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A good checkpoint of a classifier on CCM."""
    path = tmp_path_factory.mktemp("good") / "m.safetensors"
    ModalClassifier(small_ccm()).partial_fit(mixed_stream(), np.arange(400) // 100).save(path)
    return path.read_bytes()


def forge(data: bytes, change: Any) -> bytes:
    """The checkpoint after ``change(document, arrays, metadata)``, with a digest that fits."""
    file = io.BytesIO(data)
    header = tensorfile.read_header(file, len(data))
    arrays = tensorfile.read_arrays(file, header, len(data) - file.tell())
    metadata = header["__metadata__"]
    document = json.loads(metadata["document"])
    del metadata["digest"]
    change(document, arrays, metadata)
    metadata["document"] = json.dumps(document)
    metadata["digest"] = checkpoints._digest(metadata, arrays)
    head, ordered = tensorfile.dump(arrays, metadata)
    return head + b"".join(bytes(tensorfile.raw_bytes(array)) for array in ordered)


def loaded(data: bytes, folder: Path) -> Any:
    (folder / "f").write_bytes(data)
    return load(folder / "f")


def test_forging_nothing_gives_a_file_that_loads(saved: bytes, tmp_path: Path) -> None:
    assert loaded(forge(saved, lambda *_: None), tmp_path).memory_.n_blocks_ == 2


def test_truncated_altered_and_foreign_files_are_refused(saved: bytes, tmp_path: Path) -> None:
    for length in [0, 1, 7, 8, 9, 100, *range(200, len(saved), 211), len(saved) - 1]:
        with pytest.raises(CheckpointError, match="cannot be loaded"):
            loaded(saved[:length], tmp_path)
    for place in [*range(0, len(saved), 97), len(saved) - 1]:
        with pytest.raises(CheckpointError):
            loaded(saved[:place] + bytes([saved[place] ^ 1]) + saved[place + 1 :], tmp_path)
    with pytest.raises(CheckpointError, match="cut off or added to"):
        loaded(saved + b"\0" * 8, tmp_path)
    foreign = [pickle.dumps({"a": 1}), b"PK\3\4" + bytes(100), b"\x93NUMPY" + bytes(200), b"a,b\n1,2\n" * 50, bytes(64), b"\xff" * 64]
    for data in foreign:
        with pytest.raises(CheckpointError, match="cannot be loaded"):
            loaded(data, tmp_path)
    head, arrays = tensorfile.dump({"x": np.zeros(3)}, {"format": "pt"})
    with pytest.raises(CheckpointError, match="not one of ccmem's"):
        loaded(head + arrays[0].tobytes(), tmp_path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "absent")


def test_a_newer_schema_says_to_upgrade(saved: bytes, tmp_path: Path) -> None:
    def newer(document: Any, arrays: Any, metadata: Any) -> None:
        metadata.update(schema="2", library_version="9.0")

    with pytest.raises(CheckpointError, match=r"schema 2, written by ccmem 9.0.*upgrade"):
        loaded(forge(saved, newer), tmp_path)


MEMORY = "model.fitted.memory_.fitted.state."


def _memory(document: Any) -> Any:
    return document["model"]["fitted"]["memory_"]


WRONG = {
    "class": (lambda d, a, m: d["model"].update({"$estimator": "os.system"}), "not a model that can be loaded"),
    "class of another library": (lambda d, a, m: d["model"].update({"$estimator": "Popen"}), "not a model"),
    "extra parameter": (lambda d, a, m: _memory(d)["parameters"].update(x=1), "other parameters"),
    "missing parameter": (lambda d, a, m: _memory(d)["parameters"].pop("vigilance"), "other parameters"),
    "parameter out of range": (lambda d, a, m: _memory(d)["parameters"].update(vigilance=3), "vigilance=3 is not possible"),
    "parameter of wrong type": (lambda d, a, m: _memory(d)["parameters"].update(n_slots="2"), "n_slots='2'"),
    "huge shape parameter": (lambda d, a, m: _memory(d)["parameters"].update(n_slots=10**12), "recalls is not"),
    "other shape parameter": (lambda d, a, m: _memory(d)["parameters"].update(n_slots=1), "recalls is not"),
    "pointer beyond blocks": (lambda d, a, m: _memory(d)["fitted"]["counters"].update(pointer=4), "block 4 of 2"),
    "negative pointer": (lambda d, a, m: _memory(d)["fitted"]["counters"].update(pointer=-1), "counters are damaged"),
    "more blocks than room": (lambda d, a, m: _memory(d)["fitted"]["counters"].update(blocks=9, units=18), "do not fit"),
    "units not of the blocks": (lambda d, a, m: _memory(d)["fitted"]["counters"].update(units=7), "7 units in all"),
    "counter that is no number": (lambda d, a, m: _memory(d)["fitted"]["counters"].update(seen=True), "counters are damaged"),
    "missing counter": (lambda d, a, m: _memory(d)["fitted"]["counters"].pop("alarm"), "belong"),
    "missing array": (lambda d, a, m: _memory(d)["fitted"]["state"].pop("wins"), "belong"),
    "no random state": (lambda d, a, m: _memory(d)["fitted"].update(random_state=None), "random state is missing"),
    "random state of unknown kind": (
        lambda d, a, m: _memory(d)["fitted"]["random_state"]["$generator"].update(bit_generator="os"), "unknown kind"),
    "damaged random state": (
        lambda d, a, m: _memory(d)["fitted"]["random_state"]["$generator"]["state"].update(state=-1), "damaged"),
    "array that is not there": (lambda d, a, m: a.pop(MEMORY + "wins"), "wins"),
    "wrong shape": (lambda d, a, m: a.update({MEMORY + "wins": np.zeros(3, np.int64)}), "wins is not an array"),
    "wrong type": (lambda d, a, m: a.update({MEMORY + "rates": np.zeros(8, np.float32)}), "rates is not an array"),
    "prototypes of whole numbers": (lambda d, a, m: a.update({MEMORY + "prototypes": np.zeros((8, 4), np.int64)}), "prototypes"),
    "NaN": (lambda d, a, m: a[MEMORY + "prototypes"].fill(np.nan), "NaN or infinity"),
    "numbers beyond squaring": (lambda d, a, m: a[MEMORY + "prototypes"].fill(1e200), "too large"),
    "negative wins": (lambda d, a, m: a[MEMORY + "wins"].fill(-1), "negative counts"),
    "rates above 1": (lambda d, a, m: a[MEMORY + "rates"].fill(1.5), "rates lie outside"),
    "damaged events": (lambda d, a, m: a["model.fitted.memory_.fitted.events"].fill(7), "events are damaged"),
    "negative votes": (lambda d, a, m: a["model.fitted.votes"].fill(-1), "votes are negative"),
    "classes twice": (lambda d, a, m: a["model.fitted.classes_"].fill(1), "not sorted and distinct"),
    "votes of other shape": (lambda d, a, m: a.update({"model.fitted.votes": np.zeros((2, 2), np.int64)}), "votes are not"),
    "memory that is text": (lambda d, a, m: d["model"]["fitted"].update(memory_="CCM"), "not a memory"),
    "memory that learned nothing": (lambda d, a, m: _memory(d).update(fitted=None), "not a memory"),
    "features": (lambda d, a, m: _memory(d)["fitted"].update(n_features_in_=5), "do not fit"),
    "no model": (lambda d, a, m: d.clear(), "holds no model"),
    "deep nesting": (lambda d, a, m: d.update(model=_deep(5000)), "cannot be"),
    "unknown tag": (lambda d, a, m: d.update(model={"$call": "x"}), "unknown"),
}  # fmt: skip


def _deep(levels: int) -> Any:
    value: Any = 0
    for _ in range(min(levels, 900)):
        value = [value]
    return {"$tuple": [value] * 2, "x": 0}


@pytest.mark.parametrize("name", WRONG)
def test_content_that_no_learning_leads_to_is_refused(saved: bytes, tmp_path: Path, name: str) -> None:
    change, message = WRONG[name]
    with pytest.raises(CheckpointError, match=message) as caught:
        loaded(forge(saved, change), tmp_path)
    assert str(tmp_path / "f") in str(caught.value)


def test_bounds_of_the_other_models_are_checked(tmp_path: Path) -> None:
    X = mixed_stream()
    for estimator, changes in (
        (ARTC2A(max_units=3, vigilance=0.99), [("max_units", 9), ("max_units", 1), ("max_units", None)]),
        (IncrementalWTA(n_units=3), [("n_units", 2), ("n_units", 4)]),
    ):
        estimator.partial_fit(X).save(tmp_path / "m")
        for name, value in changes:
            changed = forge((tmp_path / "m").read_bytes(), lambda d, a, m: d["model"]["parameters"].update({name: value}))  # noqa: B023
            with pytest.raises(CheckpointError):
                loaded(changed, tmp_path)


# Fuzzing ------------------------------------------------------------------------------------------------------------


@settings(max_examples=2000)
@given(st.integers(0, 2**32), st.integers(1, 6))
def test_bytes_changed_at_random_never_load_and_never_crash(saved: bytes, folder: Path, seed: int, n_changes: int) -> None:
    rng = random.Random(seed)
    data = bytearray(saved)
    for _ in range(n_changes):
        place, kind = rng.randrange(len(data)), rng.randrange(4)
        if kind == 0:
            data[place] = rng.randrange(256)
        elif kind == 1:
            del data[place : place + rng.randrange(1, 40)]
        elif kind == 2:
            data[place:place] = rng.randbytes(rng.randrange(1, 40))
        else:
            other = rng.randrange(len(data))
            data[place : place + 16] = data[other : other + 16]
    if bytes(data) != saved:
        with pytest.raises(CheckpointError):
            loaded(bytes(data), folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


_odd_values = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 30), st.integers(), st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=4), st.lists(st.integers(0, 3), max_size=3), st.just({}), st.just({"$array": "model.fitted.votes"}),
    st.just({"$estimator": "CCM", "parameters": {}, "fitted": None}), st.just({"$tuple": []}), st.just({"$float": "nan"}),
)  # fmt: skip


@settings(max_examples=1500)
@given(st.data())
def test_signed_nonsense_is_refused_or_gives_a_model_that_works(saved: bytes, folder: Path, data: st.DataObject) -> None:
    def change(document: Any, arrays: Any, metadata: Any) -> None:
        if data.draw(st.booleans()):
            nodes = list(_places(document))
            owner, key = data.draw(st.sampled_from(nodes))
            if data.draw(st.integers(0, 3)) == 0 and isinstance(owner, dict):
                del owner[key]
            else:
                owner[key] = data.draw(_odd_values)
        else:
            name = data.draw(st.sampled_from(sorted(arrays)))
            array = arrays[name]
            how = data.draw(st.sampled_from(["values", "shape", "type"]))
            if how == "values":
                array.reshape(-1)[data.draw(st.integers(0, array.size - 1))] = data.draw(st.integers(-(2**40), 2**40))
            elif how == "shape":
                arrays[name] = np.resize(array, data.draw(st.lists(st.integers(0, 9), max_size=3)))
            else:
                arrays[name] = array.astype(data.draw(st.sampled_from(["f4", "f8", "i8", "u1", "?"])))

    try:
        model = loaded(forge(saved, change), folder)
    except CheckpointError:
        return
    if isinstance(model, ModalClassifier) and model.__sklearn_is_fitted__():
        X = np.random.default_rng(0).random((30, model.n_features_in_))
        model.partial_fit(X, model.classes_[np.zeros(30, int)] if len(model.classes_) else None)
        if model.votes_.any():
            assert len(model.predict(X)) == 30


def _places(value: Any) -> Any:
    """Every (owner, key) of a JSON document."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from _places(value[key])
