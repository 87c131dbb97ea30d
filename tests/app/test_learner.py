"""Parts of a learner, tested separately: scaling, events files, columns, reading ahead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ccmem import CCM, CheckpointError, IncrementalWTA, ModalClassifier, OnlineMLP, WindowLayer
from ccmem.app.events import EventsFile
from ccmem.app.learner import Learner
from ccmem.io.persistence.atomic import BusyError
from ccmem.io.streams.files import Prefetch
from ccmem.io.streams.progress import Progress
from ccmem.io.streams.schema import Columns
from ccmem.io.streams.tables import Chunk, Labels
from ccmem.layers.scaling import Scale


def test_columns_are_scaled_by_what_is_known_of_them_and_asking_teaches_nothing() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal([5.0, -3.0, 0.0], [2.0, 0.1, 1.0], (500, 3))
    scale = Scale("standard", 3)
    scale.learn(X)
    np.testing.assert_allclose(scale.apply(X), (X - X.mean(axis=0)) / X.std(axis=0), rtol=1e-9)
    before = scale.export()
    scale.apply(X + 100)
    assert scale.export()["count"] == before["count"] == 500
    np.testing.assert_array_equal(scale.mean, before["mean"])


def test_rows_are_scaled_to_length_one_also_with_gaps() -> None:
    X = np.array([[3.0, 4.0], [0.0, 0.0], [np.nan, 2.0]])
    np.testing.assert_array_equal(Scale("unit", 2).learn(X), [[0.6, 0.8], [0.0, 0.0], [np.nan, 1.0]])


def test_what_cannot_be_a_scale_is_refused() -> None:
    fields = Scale("standard", 2).export()
    assert Scale.of(fields, 2).count == 0  # columns that never varied are possible
    for odd in ({"count": 2**62}, {"count": -1}, {"count": 1.0}, {"squares": np.array([0.0, -1.0])}):
        with pytest.raises(ValueError, match="scal"):
            Scale.of({**fields, **odd}, 2)
    for absent in ([-1.0, 0.0], [0.0, 1.0]):  # scale of zero rows
        with pytest.raises(ValueError, match="damaged"):
            Scale.of({**fields, "absent": np.array(absent)}, 2)


def test_an_events_file_knows_its_owner_and_its_end(tmp_path: Path) -> None:
    file = tmp_path / "e.jsonl"
    events = EventsFile(file, None, str(tmp_path / "one"))
    with pytest.raises(BusyError):
        EventsFile(file, None, str(tmp_path / "one"))
    for step in range(100):  # longer than the tail that is read
        events.write({"step": step, "text": "x" * 60})
    mark = events.mark()
    events.write({"step": 100})
    events.close()
    whole = file.read_bytes()
    with pytest.raises(CheckpointError, match="holds the events of one"):
        EventsFile(file, None, str(tmp_path / "two"))
    EventsFile(file, None, str(tmp_path / "one")).close()
    assert file.read_bytes() == whole
    EventsFile(file, mark, str(tmp_path / "one")).close()
    assert file.read_bytes() == whole[: mark.size]
    file.write_bytes(whole[: mark.size] + b'{"checkpoint": "two"}\n')
    with pytest.raises(CheckpointError, match="events of another checkpoint"):
        EventsFile(file, mark, str(tmp_path / "one"))
    for changed in (whole[: mark.size - 1], b"y" + whole[: mark.size], whole[: mark.size - 5] + b"y" * 5):
        file.write_bytes(changed)
        with pytest.raises(CheckpointError, match="it has been changed"):
            EventsFile(file, mark, str(tmp_path / "one"))


def chunk(X: Any) -> Chunk:
    return Chunk(X, None, "f", np.arange(1, len(X) + 1), 0, len(X), None)


def test_a_learner_keeps_to_its_columns_and_tells_blocks() -> None:
    columns = Columns(("a", "b", "c"), None, np.dtype(np.float64), None)
    learner = Learner(CCM(2, random_state=0))
    for _ in range(2):
        learner.learn(chunk(np.eye(3)), columns)
    assert learner.model.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(CheckpointError, match="the columns changed"):
        learner.learn(chunk(np.eye(3)), columns._replace(features=("a", "b", "d")))
    assert learner.rows == 6
    assert sorted(learner.predict(np.eye(3))) == ["block", "unit"]
    plain = Learner(IncrementalWTA(2))
    plain.learn(chunk(np.eye(3)), columns)
    assert sorted(plain.predict(np.eye(3))) == ["unit"]
    network = Learner(OnlineMLP((2,), random_state=0))  # no memory, no names
    labels = Labels(np.arange(3), ["p", "q", "r"])
    network.learn(chunk(np.eye(3))._replace(labels=labels), columns._replace(label="l", text_labels=True))
    assert sorted(network.predict(np.eye(3))) == ["label"]


def test_a_learner_comes_back_with_columns_and_events(tmp_path: Path) -> None:
    learner = Learner(IncrementalWTA(2))
    learner.learn(chunk(np.eye(3)), Columns(("a", "b", "c"), None, np.dtype(np.float64), None))
    events = EventsFile(tmp_path / "e.jsonl", None, str(tmp_path / "m"))
    learner.events = events.mark()
    events.close()
    learner.save(tmp_path / "m")
    again = Learner.load(tmp_path / "m")
    assert again.columns == learner.columns
    assert again.events == learner.events
    learner.events = learner.events._replace(size=2**62)
    with pytest.raises(CheckpointError, match=r"was not written.*impossible size of the events file"):
        learner.save(tmp_path / "m")
    learner.events = None
    for odd in (Progress(rows=2**62), Progress(size=-1), Progress(end=2**62)):
        learner.progress["f.csv"] = odd
        with pytest.raises(CheckpointError, match=r"was not written.*impossible progress"):
            learner.save(tmp_path / "m")
    assert Learner.load(tmp_path / "m").progress == {}


def test_items_are_read_ahead_in_order_and_no_further_than_asked() -> None:
    taken: list[int] = []

    def items() -> Any:
        for i in range(50):
            taken.append(i)
            yield i

    assert [item for item in Prefetch(items()).each(60.0) if item is not None] == list(range(50))
    taken.clear()
    ahead = Prefetch(items(), depth=2)
    reader = ahead.each(60.0)
    assert next(reader) == 0
    reader.close()  # the consumer gives up: the thread ends, with the rows it had taken
    ahead._thread.join()
    assert len(taken) <= 5

    def failing() -> Any:
        yield 1
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(Prefetch(failing()).each(60.0))


def test_an_events_file_of_one_line_tells_whose_it_is(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    events = EventsFile(file, None, str(tmp_path / "mine"))
    events.write({"kind": "recall"})
    events.close()
    EventsFile(file, None, str(tmp_path / "mine")).close()
    with pytest.raises(CheckpointError, match="holds the events of mine"):
        EventsFile(file, None, str(tmp_path / "another"))


def test_lines_that_others_appended_to_an_events_file_are_kept_or_it_is_refused(tmp_path: Path) -> None:
    file, owner = tmp_path / "e.jsonl", str(tmp_path / "one")
    events = EventsFile(file, None, owner)
    events.write({"kind": "recall"})
    mark = events.mark()
    events.close()
    counted = file.read_bytes()
    for note in (b"# checked by Eve\n", b"{}\n", b"no line end"):
        file.write_bytes(counted + note)
        events = EventsFile(file, mark, owner)
        events.write({"kind": "recall"})
        events.close()
        assert file.read_bytes() == counted + note.rstrip(b"\n") + b"\n" + counted
    for mixed in (counted + b"# note\n", b"# note\n" + counted, b"# note\n" + counted[:20]):
        file.write_bytes(counted + mixed)
        with pytest.raises(CheckpointError, match=r"holds 1 lines that ccmem did not write.*move them"):
            EventsFile(file, mark, owner)
        assert file.read_bytes() == counted + mixed
    for cut in (1, 20, len(counted) - 1):
        file.write_bytes(counted * 2 + counted[:cut])
        EventsFile(file, mark, owner).close()
        assert file.read_bytes() == counted


def test_labelled_rows_and_windows_reach_the_model_and_answers_have_the_type_of_labels() -> None:
    X, columns = np.random.default_rng(0).normal(size=(60, 2)), Columns(("a", "b"), "l", np.dtype(np.float64), False)
    rows, voting = np.arange(1, 61), Learner(ModalClassifier(IncrementalWTA(2)))
    voting.learn(Chunk(X, Labels(np.arange(60) % 2, [3, 7]), "f", rows, 0, 60, None), columns)
    assert voting.model.classes_.tolist() == [3, 7]
    assert voting.model.votes_.sum() == 60
    assert voting.answer_kinds()["label"] is int
    windowed = Learner(IncrementalWTA(2), front=WindowLayer(10))
    windowed.learn(Chunk(X, None, "f", rows, 0, 60, None), columns._replace(label=None))
    assert windowed.model.n_samples_seen_ == windowed.front.n_windows_ > 0
