"""Models as bytes: equal to a file, small, independent of chunks, and checked like a file."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccmem import AdaptiveCCM, CheckpointError, ModalClassifier, from_bytes, load
from ccmem.core.state import FIRST_JOURNAL_LINES
from ccmem.io.persistence import checkpoint, tensorfile
from forgery import forge, mixed_stream, networks, small_ccm
from zoo import ALL, estimators, streams


def four_tasks(dtype: Any) -> np.ndarray:
    """Four blocks of 8 features, two of them twice."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(4, 8))
    return np.concatenate([centres[i % 4] + 0.3 * rng.normal(size=(400, 8)) for i in range(6)]).astype(dtype)


def test_a_memory_of_8_features_and_4_blocks_is_small() -> None:
    memory = AdaptiveCCM().partial_fit(four_tasks(np.float32))
    assert (memory.n_blocks_, memory.n_units_) == (4, 100)
    assert len(memory.to_bytes()) <= 8_448
    assert sum(array.nbytes for array in from_bytes(memory.to_bytes())._state) <= 12_288
    assert sum(array.nbytes for array in memory._state) <= 13_500


def test_rates_follow_from_wins_and_are_left_out() -> None:
    memory = AdaptiveCCM(n_slots=3).partial_fit(four_tasks(np.float32))
    assert not len(memory._export()["state"]["rates"])
    np.testing.assert_array_equal(from_bytes(memory.to_bytes()).learning_rates_, memory.learning_rates_)


@pytest.mark.parametrize("model", ALL, ids=lambda model: model.__name__)
@settings(max_examples=15)
@given(st.data())
def test_bytes_are_the_same_however_often_a_stream_was_interrupted(model: type, data: st.DataObject) -> None:
    estimator, X = data.draw(estimators(model)), data.draw(streams())
    cuts = sorted(data.draw(st.lists(st.integers(1, len(X)), max_size=4)))
    parts = [part for part in np.split(X, cuts) if len(part)]
    interrupted = from_bytes(estimator.to_bytes())
    for part in parts:
        interrupted = from_bytes(interrupted.partial_fit(part).to_bytes())
    assert interrupted.to_bytes() == estimator.partial_fit(X).to_bytes()


def test_bytes_and_files_say_the_same(tmp_path: Path) -> None:
    X, y = mixed_stream(), np.arange(400) // 30 % 3
    models = [*networks(), ModalClassifier(small_ccm()), ModalClassifier(AdaptiveCCM(n_slots=3, max_units=5))]
    for model in models:
        model.partial_fit(X, y).save(tmp_path / "m")
        assert from_bytes((tmp_path / "m").read_bytes()).to_bytes() == model.to_bytes()
        (tmp_path / "bytes").write_bytes(model.to_bytes())
        assert load(tmp_path / "bytes").to_bytes() == model.to_bytes()
        again = from_bytes(model.to_bytes())
        assert again.partial_fit(X, y).to_bytes() == model.partial_fit(X, y).to_bytes()


def test_a_classifier_on_a_bounded_memory_goes_on_with_its_votes() -> None:
    X, y = mixed_stream(), np.array(list("abcd"))[np.arange(400) // 100]
    classifier = ModalClassifier(AdaptiveCCM(n_slots=3, max_units=6), label_use="merge").partial_fit(X, y)
    again = from_bytes(classifier.to_bytes())
    np.testing.assert_array_equal(again.votes_, classifier.votes_)
    again.partial_fit(X, y), classifier.partial_fit(X, y)
    np.testing.assert_array_equal(again.votes_, classifier.votes_)


def test_what_is_not_bytes_of_a_model_is_refused() -> None:
    data = AdaptiveCCM(n_slots=2).partial_fit(mixed_stream()).to_bytes()
    for wrong in (b"", data[:-1], data + b"\0", data[:700] + bytes([data[700] ^ 1]) + data[701:]):
        with pytest.raises(CheckpointError, match="the bytes cannot be loaded"):
            from_bytes(wrong)
    with pytest.raises(TypeError, match="of type str"):
        from_bytes("memory.safetensors")  # type: ignore[arg-type]


def test_a_journal_that_fills_up_grows() -> None:
    rng = np.random.default_rng(0)
    memory = AdaptiveCCM(n_slots=2, max_units=3).partial_fit(rng.normal(size=(4, 3)))
    assert len(memory._state.journal) == FIRST_JOURNAL_LINES
    one = from_bytes(memory.to_bytes())
    X = rng.normal(size=(600, 3)) * np.repeat([[1, 0, 0], [0, 1, 0], [0, 0, 1]], 200, axis=0) + 0.05
    memory.partial_fit(X)
    for x in X:
        one.partial_fit(x[np.newaxis])
    assert one.to_bytes() == memory.to_bytes()


def test_a_unit_that_is_zero_is_a_unit() -> None:
    memory = AdaptiveCCM(n_slots=1, learning_rate=0.5).partial_fit(np.array([[1.0], [-1.0]]))
    memory._state.prototypes[0] = 0.0  # where its samples cancel out
    assert from_bytes(memory.to_bytes()).n_units_ == 1


def test_what_is_not_small_is_written_as_a_file_would_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = AdaptiveCCM(n_slots=2).partial_fit(mixed_stream())
    monkeypatch.setattr(checkpoint, "MOST_DEFLATED", 500)
    memory.save(tmp_path / "m")
    assert memory.to_bytes() == (tmp_path / "m").read_bytes()
    assert from_bytes(memory.to_bytes()).to_bytes() == memory.to_bytes()


def test_what_does_not_inflate_is_refused() -> None:
    data = AdaptiveCCM(n_slots=2).partial_fit(mixed_stream()).to_bytes()
    bomb = gzip.compress(b"\0" * (checkpoint.MOST_DEFLATED + 1))
    for wrong in (data[:2], data[:-1], data + b"\0", data + data, b"\x1f\x8b" + b"\xff" * 50, bomb):
        with pytest.raises(CheckpointError, match="the bytes cannot be loaded: it"):
            from_bytes(wrong)


def test_any_byte_that_is_changed_is_noticed_or_changes_nothing(tmp_path: Path) -> None:
    data = AdaptiveCCM(n_slots=2).partial_fit(mixed_stream()).to_bytes()
    (tmp_path / "m").write_bytes(data)
    assert load(tmp_path / "m").to_bytes() == data
    unnoticed = 0
    for place in range(len(data)):
        for wrong in {data[place] ^ 1, data[place] ^ 0x20, 0x20} - {data[place]}:
            try:
                again = from_bytes(data[:place] + bytes([wrong]) + data[place + 1 :])
            except CheckpointError:
                continue
            unnoticed += 1  # time stamp and padding of gzip
            assert again.to_bytes() == data
    assert unnoticed < 40


@settings(max_examples=200)
@given(st.data())
def test_signed_nonsense_is_refused_or_can_be_learned_with(data: st.DataObject) -> None:
    bounded = data.draw(st.booleans())
    memory = AdaptiveCCM(n_slots=3, max_units=6 if bounded else None).partial_fit(mixed_stream())

    def change(_: Any, arrays: dict[str, Any], metadata: dict[str, str]) -> None:
        name = data.draw(st.sampled_from(sorted(name for name in arrays if arrays[name].nbytes)))
        damaged = bytearray(arrays[name].tobytes())
        place = data.draw(st.integers(0, len(damaged) - 1))
        damaged[place] = data.draw(st.sampled_from(sorted(b'0129[]{},"')))
        arrays[name] = np.frombuffer(bytes(damaged), arrays[name].dtype).reshape(arrays[name].shape)

    try:
        again = from_bytes(forge(memory.to_bytes(), change))
    except CheckpointError:
        return
    with np.errstate(all="ignore"):
        again.partial_fit(mixed_stream()[::3, : again.n_features_in_]).predict(
            mixed_stream()[:9, : again.n_features_in_]
        )


def test_a_memory_of_many_blocks_has_no_space_to_spare_once_it_was_bytes() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(10 * np.eye(9)[i], 0.3, (200, 9)) for i in range(9)])
    memory = AdaptiveCCM(n_slots=2).partial_fit(X[:1000])
    again = from_bytes(memory.to_bytes())
    assert len(again._state.blocks) == again.n_blocks_ > 4
    assert again.partial_fit(X[1000:]).to_bytes() == memory.partial_fit(X[1000:]).to_bytes()
    assert again.n_blocks_ == 9


@pytest.mark.parametrize("shape", [[-2, -3], [6, True], [6.0], "6", [[6]]])
def test_shapes_that_cannot_be_are_refused_before_anything_is_allocated(shape: Any) -> None:
    entry = {"dtype": "F64", "shape": shape, "data_offsets": [0, 48]}
    with pytest.raises(tensorfile.FormatError, match="array 'a' has impossible sizes"):
        tensorfile._entry("a", entry)


@pytest.mark.parametrize("build", [True, False])
@pytest.mark.parametrize("model", [{"no": "class"}, [1], "class", None])
def test_a_checkpoint_holds_a_model_whether_it_is_built_or_not(tmp_path: Path, build: bool, model: Any) -> None:
    data = b"".join(checkpoint.encode({"model": model}))
    (tmp_path / "m").write_bytes(data)
    with pytest.raises(CheckpointError, match="m cannot be loaded: it holds no model"):
        checkpoint.read_checkpoint(tmp_path / "m", build)
    with pytest.raises(CheckpointError, match="the bytes cannot be loaded: it holds no model"):
        checkpoint.decode(data, has_model=True)
