"""Thread safety of all methods: results are as if the calls were made one after the other."""

from __future__ import annotations

import copy
import pickle
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ccmem import (
    CCM,
    AdaptiveCCM,
    DiscriminantClassifier,
    GatedMLP,
    IncrementalWTA,
    ModalClassifier,
    OnlineMLP,
    PatchLayer,
    ShapeLayer,
    Stack,
    WindowLayer,
    load,
)
from ccmem.core.locking import Guard, guard_of, learning, reading

ROWS = np.random.default_rng(0).random((40, 9)) / 2 + np.repeat(np.eye(9)[[0, 4, 8]], 14, axis=0)[:40] * 3
LABELS = np.array(["a", "b"])[np.arange(40) % 2]
BLOCKY = {"n_slots": 1, "alarm_limit": 3, "vigilance": 0.9, "commit_limit": 3, "recall_limit": 3, "random_state": 0}


def shapes() -> ShapeLayer:
    return ShapeLayer(8, n_units=4, learning_rows=8)


def patches() -> PatchLayer:
    """A layer for images of 3 x 3 that is frozen after a few."""
    return PatchLayer(8, patch_size=2, grid=2, learning_images=5, random_state=0)


def in_threads(*tasks: Callable[[], Any]) -> None:
    """Run tasks at the same time; raise any exception of a task."""
    problems: list[BaseException] = []
    start = threading.Barrier(len(tasks))

    def run(task: Callable[[], Any]) -> None:
        try:
            start.wait()
            task()
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=run, args=(task,), daemon=True) for task in tasks]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    if problems:
        raise problems[0]


class Noting:
    """A guarded object that detects two threads in a section for one."""

    def __init__(self) -> None:
        self.learner: int | None = None
        self.readers: set[int] = set()

    @learning
    def learn(self, inner: Callable[[], Any] | None = None) -> None:
        assert self.learner is None
        self.learner = threading.get_ident()
        for _ in range(20):  # long enough to be interrupted
            assert not self.readers
        if inner is not None:
            inner()
        self.learner = None

    @reading
    def read(self, inner: Callable[[], Any] | None = None) -> None:
        me = threading.get_ident()
        is_inside = me in self.readers
        self.readers.add(me)
        try:
            for _ in range(20):
                assert self.learner in (None, me)
            if inner is not None:
                inner()
        finally:
            if not is_inside:
                self.readers.remove(me)


def test_nobody_reads_while_another_learns() -> None:
    noting = Noting()
    in_threads(*[lambda: [noting.learn() for _ in range(300)]] * 3, *[lambda: [noting.read() for _ in range(300)]] * 2)


def test_a_learner_may_read() -> None:
    noting = Noting()
    noting.learn(noting.read)
    noting.learn()  # nothing is left locked


@pytest.mark.parametrize(
    "make",
    [
        lambda: IncrementalWTA(n_units=4, random_state=0),
        lambda: CCM(**BLOCKY),
        lambda: AdaptiveCCM(n_slots=3),
        lambda: ModalClassifier(CCM(**BLOCKY)),
        lambda: OnlineMLP((4,), random_state=0),
        lambda: GatedMLP(CCM(**BLOCKY), hidden_sizes=(6,), gated_units=3, random_state=0),
        lambda: DiscriminantClassifier(1, buffer_rows=8),
        lambda: Stack([patches()], DiscriminantClassifier(1, buffer_rows=8)),
        lambda: Stack([patches()], CCM(**BLOCKY)),
    ],
    ids=["wta", "ccm", "adaptive", "classifier", "mlp", "gated", "discriminant", "stack", "stack of a memory"],
)
def test_threads_that_learn_predict_and_save_one_model(make: Callable[[], Any], tmp_path: Path) -> None:
    model, rounds = make(), 15
    model.partial_fit(ROWS, LABELS)
    alone = make().partial_fit(ROWS, LABELS)

    def teach() -> None:
        for _ in range(rounds):
            model.partial_fit(ROWS, LABELS)  # identical rows, so that the order of threads does not matter

    def save() -> None:
        for _ in range(rounds):
            model.save(tmp_path / "m")
            again = load(tmp_path / "m")  # its digest is valid
            assert again.n_samples_seen_ % len(ROWS) == 0 if hasattr(again, "n_samples_seen_") else True

    def read() -> None:
        for _ in range(rounds):
            assert len(model.predict(ROWS)) == len(ROWS)
            if hasattr(model, "predict_proba"):
                assert np.isfinite(model.predict_proba(ROWS)).all()
            pickle.loads(pickle.dumps(model)).partial_fit(ROWS, LABELS)

    in_threads(teach, teach, save, read)
    for _ in range(2 * rounds):
        alone.partial_fit(ROWS, LABELS)
    np.testing.assert_array_equal(model.predict(ROWS), alone.predict(ROWS))
    model.save(tmp_path / "one")
    alone.save(tmp_path / "other")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


@pytest.mark.parametrize("make", [patches, lambda: WindowLayer(8), shapes], ids=["patches", "windows", "shapes"])
def test_threads_that_share_a_layer(make: Callable[[], Any], tmp_path: Path) -> None:
    layer, rounds = make().partial_fit(ROWS), 15
    alone = make().partial_fit(ROWS)

    def read() -> None:
        for _ in range(rounds):
            assert np.isfinite(layer.transform(ROWS)).all()
            layer.save(tmp_path / "m")
            assert load(tmp_path / "m").n_samples_seen_ % len(ROWS) == 0
            assert pickle.loads(pickle.dumps(layer)).n_samples_seen_ % len(ROWS) == 0

    teach = getattr(layer, "push", layer.partial_fit)
    in_threads(*[lambda: [teach(ROWS) for _ in range(rounds)]] * 2, read)
    for _ in range(2 * rounds):
        alone.partial_fit(ROWS)
    assert layer.to_bytes() == alone.to_bytes()
    guard = guard_of(layer)
    assert guard_of(layer.fit(ROWS)) is guard  # other threads may be waiting for it


def test_threads_that_share_a_rival(monkeypatch: pytest.MonkeyPatch) -> None:
    from ccmem.paper.rivals import FineTuning, NearestNeighbour

    inside: list[str] = []

    def alone(name: str, method: Any) -> Any:
        def checked(self: Any, *args: Any) -> Any:
            assert inside == []
            inside.append(name)
            result = method(self, *args)
            inside.remove(name)
            return result

        return checked

    for name in ("_learn", "_answer"):
        monkeypatch.setattr(NearestNeighbour, name, alone(name, getattr(NearestNeighbour, name)))
    model = NearestNeighbour(max_floats=10_000).partial_fit(ROWS, LABELS)

    def teach() -> None:
        for _ in range(50):
            model.partial_fit(ROWS, LABELS)

    def ask() -> None:
        for _ in range(50):
            model.predict(ROWS)

    in_threads(teach, teach, ask)
    other = FineTuning(hidden_sizes=(5,)).partial_fit(ROWS, LABELS)
    guard = guard_of(other)
    assert guard_of(other.fit(ROWS, LABELS)) is guard


@pytest.mark.parametrize("kind", ["clusterer", "classifier", "detector", "detector of windows"])
def test_threads_that_share_a_river_model(kind: str) -> None:
    pytest.importorskip("river")
    from ccmem.river import ConceptDetector, MemoryClassifier, MemoryClusterer

    def make() -> Any:
        if kind == "clusterer":
            return MemoryClusterer(IncrementalWTA(n_units=3, random_state=0))
        if kind == "classifier":
            return MemoryClassifier(ModalClassifier(IncrementalWTA(n_units=3, random_state=0)))
        return ConceptDetector(CCM(**BLOCKY), window=8 if "windows" in kind else None)

    def teach(model: Any) -> None:
        for n in range(60):
            x = {"a": 1.0, "b": 0.5} if n % 2 or "windows" in kind else {"a": 1.0, "b": 0.5, f"c{n // 10}": 1.0}
            (model.update if hasattr(model, "update") else model.learn_one)(x)

    def read() -> None:
        for _ in range(30):
            if hasattr(model, "predict_one"):
                model.predict_one({"a": 1.0, "c3": 1.0})
            pickle.loads(pickle.dumps(model))

    model, alone = make(), make()
    in_threads(lambda: teach(model), lambda: teach(model), read)
    for _ in range(2):
        teach(alone)
    for learned in (model._model, alone._model):
        assert getattr(learned, "memory_", learned).n_samples_seen_ == (113 if "windows" in kind else 120)


def test_parameters_do_not_change_while_another_thread_learns() -> None:
    memory = IncrementalWTA(n_units=4, learning_rate=0.5).partial_fit(ROWS)
    before, asked = [], threading.Event()
    settings = memory._settings

    def slow_settings() -> Any:
        threading.Thread(target=lambda: (asked.set(), memory.set_params(learning_rate=0.1)), daemon=True).start()
        asked.wait()
        for _ in range(100):
            before.append(memory.learning_rate)
        return settings()

    memory.__dict__["_settings"] = slow_settings
    memory.partial_fit(ROWS)
    del memory.__dict__["_settings"]
    assert set(before) == {0.5}
    while memory.learning_rate != 0.1:  # as soon as it can
        pass


MODELS_THAT_TELL: dict[str, Callable[[CCM], Any]] = {
    "memory": lambda memory: memory,
    "classifier": ModalClassifier,
    "gated": lambda memory: GatedMLP(memory, hidden_sizes=(6,), gated_units=3, random_state=0),
    "stack": lambda memory: Stack([patches()], memory),
    "stack of a classifier": lambda memory: Stack([patches()], ModalClassifier(memory)),
}


@pytest.mark.parametrize("kind", MODELS_THAT_TELL)
def test_a_callback_may_read_and_save_but_not_teach(tmp_path: Path, kind: str) -> None:
    memory = CCM(**BLOCKY)
    told: list[Any] = []
    model = MODELS_THAT_TELL[kind](memory)

    @memory.on_event
    def callback(event: Any) -> None:
        model.predict(ROWS)
        model.save(tmp_path / "m")
        with pytest.raises(RuntimeError, match="must not teach it; learn after"):
            model.partial_fit(ROWS, LABELS)
        model.set_params(**model.get_params(deep=False))
        told.append(event)

    model.partial_fit(ROWS, LABELS)
    assert len(told) >= 2
    assert load(tmp_path / "m").predict(ROWS).tolist() == model.predict(ROWS).tolist()
    in_threads(lambda: model.partial_fit(ROWS, LABELS))  # nothing is left locked


@pytest.mark.parametrize("kind", MODELS_THAT_TELL)
def test_a_callback_may_wait_for_a_thread_that_teaches_its_model(kind: str) -> None:
    memory = CCM(**BLOCKY)
    model = MODELS_THAT_TELL[kind](memory)
    told: list[Any] = []
    inside: list[int] = []

    @memory.on_event
    def callback(event: Any) -> None:
        inside.append(threading.get_ident())
        assert len(inside) == 1  # callbacks do not overlap
        told.append(event)
        if len(told) == 1:
            other = threading.Thread(target=lambda: model.partial_fit(ROWS, LABELS), daemon=True)
            other.start()
            other.join(60.0)
            assert not other.is_alive()
        inside.pop()

    model.partial_fit(ROWS, LABELS)
    learned = getattr(model, "last_", model)
    learned = getattr(learned, "memory_", learned)
    assert learned.n_samples_seen_ == 80
    assert told == learned.events_  # the events of both threads, in order
    in_threads(lambda: model.partial_fit(ROWS, LABELS))  # nothing is left locked
    assert told == learned.events_


def test_threads_that_learn_deliver_every_event_once_and_in_order() -> None:
    memory = CCM(**BLOCKY)
    told: list[Any] = []
    memory.on_event(told.append)
    in_threads(*[lambda: [memory.partial_fit(ROWS) for _ in range(30)]] * 3)
    memory.partial_fit(ROWS[:1])
    assert told == memory.events_
    assert len(told) >= 30


def test_a_callback_of_a_river_model_is_told_when_all_is_learned() -> None:
    pytest.importorskip("river")
    from ccmem.river import ConceptDetector

    memory = CCM(**BLOCKY)
    told: list[Any] = []

    @memory.on_event
    def callback(event: Any) -> None:
        assert detector.drift_detected
        assert detector.event == event
        with pytest.raises(RuntimeError, match="must not teach it; learn after"):
            detector.update(ROWS[0])
        told.append(event)

    detector = ConceptDetector(memory)
    for row in ROWS:
        detector.update(row)
    assert told == detector.memory_.events_
    assert len(told) >= 2


@pytest.mark.parametrize("kind", MODELS_THAT_TELL)
def test_a_callback_that_raises_in_the_first_chunk_discards_nothing(kind: str) -> None:
    memory = CCM(**BLOCKY)
    model = MODELS_THAT_TELL[kind](memory)
    told: list[Any] = []

    @memory.on_event
    def callback(event: Any) -> None:
        told.append(event)
        if len(told) == 1:
            raise ZeroDivisionError

    for learn in (model.fit, model.partial_fit):
        told.clear()
        with pytest.raises(ZeroDivisionError):
            learn(ROWS, LABELS)
        learned = getattr(model, "last_", model)
        learned = getattr(learned, "memory_", learned)
        assert len(model.predict(ROWS)) == 40
        model.partial_fit(ROWS[:1], LABELS[:1])
        assert told == learned.events_[-len(told) :]  # pending events have been delivered
    assert learned.n_samples_seen_ == 82


MAPPED: dict[str, Callable[[], Any]] = {
    **{kind: lambda make=make: make(CCM(**BLOCKY)) for kind, make in MODELS_THAT_TELL.items()},  # type: ignore[misc]
    "wta": lambda: IncrementalWTA(n_units=4, random_state=0),
    "adaptive": lambda: ModalClassifier(AdaptiveCCM(n_slots=3, max_units=6), label_use="merge"),
    "shared": lambda: ModalClassifier(IncrementalWTA(n_units=4, random_state=0), metric="shared"),
    "mlp": lambda: OnlineMLP((4,), random_state=0),
    "discriminant": lambda: DiscriminantClassifier(1, buffer_rows=8),
    "patches": lambda: PatchLayer(8, patch_size=2, grid=2, learning_images=90, random_state=0),
    "windows": lambda: WindowLayer(8),
    "shapes": shapes,
}


@pytest.mark.parametrize("kind", MAPPED)
def test_what_comes_from_a_mapped_file_learns(kind: str, tmp_path: Path) -> None:
    joblib = pytest.importorskip("joblib")
    model = MAPPED[kind]().partial_fit(ROWS, LABELS)
    joblib.dump(model, tmp_path / "m.joblib")
    mapped = joblib.load(tmp_path / "m.joblib", mmap_mode="r")
    for _ in range(2):
        mapped.partial_fit(ROWS, LABELS)
        model.partial_fit(ROWS, LABELS)
    assert mapped.to_bytes() == model.to_bytes()


def test_nobody_hears_of_a_first_chunk_that_left_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = CCM(**BLOCKY)
    told: list[Any] = []
    memory.on_event(told.append)
    stack = Stack([patches()], memory)
    with monkeypatch.context() as patch:
        teach = Stack._teach
        patch.setattr(Stack, "_teach", lambda *chunk: (teach(*chunk), 1 / 0))
        with pytest.raises(ZeroDivisionError):
            stack.partial_fit(ROWS)
    stack.partial_fit(ROWS[:6])
    assert told == []
    stack.partial_fit(ROWS[6:])
    assert told == stack.events_


def test_copies_have_a_guard_of_their_own_and_parts_share_one() -> None:
    model = ModalClassifier(IncrementalWTA(n_units=4)).partial_fit(ROWS, LABELS)
    assert guard_of(model) is guard_of(model.memory_)
    model.fit(ROWS, LABELS)
    assert guard_of(model) is guard_of(model.memory_)
    for other in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert "_guard" not in vars(other)
        assert guard_of(other) is guard_of(other.memory_)
        assert guard_of(other) is not guard_of(model)
        other.partial_fit(ROWS, LABELS)
    np.testing.assert_array_equal(model.votes_.sum(), 40)


def test_parts_of_parts_share_the_guard() -> None:
    model = Stack([patches()], ModalClassifier(IncrementalWTA(n_units=4))).partial_fit(ROWS, LABELS)
    again = pickle.loads(pickle.dumps(model))
    again.predict(ROWS)
    assert vars(again.last_.memory_)["_guard"] is vars(again.last_)["_guard"] is vars(again)["_guard"]


def test_a_part_gets_no_guard_of_its_own_while_its_owner_makes_one(monkeypatch: pytest.MonkeyPatch) -> None:
    model = pickle.loads(pickle.dumps(ModalClassifier(IncrementalWTA(n_units=2)).partial_fit(ROWS, LABELS)))
    found: list[Guard] = []
    other = threading.Thread(target=lambda: found.append(guard_of(model.memory_)))

    class Slow(Guard):
        def __init__(self) -> None:
            super().__init__()
            if other.ident is None:
                other.start()
                other.join(0.3)

    monkeypatch.setattr("ccmem.core.locking.Guard", Slow)
    mine = guard_of(model)
    other.join()
    assert found == [mine]


def test_dates_are_not_learned_as_numbers() -> None:
    days = np.arange("2026-01-01", "2026-01-05", dtype="datetime64[D]").reshape(-1, 1)
    objects = np.array([[days[0, 0], 1.0]], object)  # as numbers: 20454 days, or seconds, or years
    frame = pytest.importorskip("pandas").DataFrame(days)
    for X in (days, days - days[0], frame, objects, [[days[0, 0], 1.0]]):
        with pytest.raises(ValueError, match="dates or durations"):
            IncrementalWTA(n_units=2).partial_fit(X)


def test_numbers_of_hundreds_of_digits_are_a_value_error() -> None:
    learned = IncrementalWTA(n_units=2).partial_fit([[1.0, 2.0]])
    for call in (
        IncrementalWTA(n_units=2).fit,
        learned.partial_fit,
        learned.predict,
        lambda X: learned.learn_one(X[0]),
    ):
        with pytest.raises(ValueError, match="too large for a float"):
            call([[10**400, 1.0]])
