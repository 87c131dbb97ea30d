"""The two protocols, compared with direct computations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from ccmem import CCM, IncrementalWTA, ModalClassifier, datasets
from ccmem.paper.experiments import protocol
from ccmem.paper.experiments.protocol import Benchmark, run


@pytest.fixture(scope="module")
def benchmark():
    return Benchmark.of(datasets.load("digits"))


def memory():
    return ModalClassifier(IncrementalWTA(n_units=30, learning_rate=0.1))


def test_test_rows_are_grouped_by_task(benchmark):
    assert benchmark.tasks == ((0, 1), (2, 3), (4, 5), (6, 7), (8, 9))
    for task, part in zip(benchmark.tasks, benchmark.test_parts, strict=True):
        assert set(benchmark.y_test[part]) == set(task)
    assert benchmark.test_parts[-1].stop == len(benchmark.y_test)
    assert benchmark.places.tolist() == [0, 1] * 5


def test_one_pass_serves_both_protocols(benchmark):
    """Shared votes equal those of a classifier that sees only shared labels."""
    stream = benchmark.stream(0)
    outcomes = run(memory(), benchmark, stream)
    parity, strict = memory(), memory()
    R = {name: np.full((5, 5), np.nan) for name in ("paper", "strict")}
    for visit in range(5):
        for chunk in stream:
            if chunk.visit == visit:
                X, y = benchmark.X[chunk.indices], benchmark.y[chunk.indices]
                parity.partial_fit(X, y % 2)
                strict.partial_fit(X, y)
        for task in range(visit + 1):
            part = benchmark.test_parts[task]
            X, y = benchmark.X_test[part], benchmark.y_test[part]
            R["paper"][visit, task] = np.mean(parity.predict(X) == y % 2)
            R["strict"][visit, task] = np.mean(strict.predict(X) == y)
    for name in R:
        assert np.array_equal(outcomes[name].R, R[name], equal_nan=True)
    expected = 2 * (benchmark.y_test // 2) + parity.predict(benchmark.X_test)
    assert np.array_equal(outcomes["paper"].predicted, expected)
    assert np.array_equal(outcomes["strict"].predicted, strict.predict(benchmark.X_test))
    assert outcomes["paper"].metrics()["ACC"] == pytest.approx(R["paper"][-1].mean())


def test_chunks_do_not_matter(benchmark):
    stream = benchmark.stream(3)
    model = ModalClassifier(CCM(n_slots=10, vigilance=0.9, alarm_limit=5, commit_limit=3, random_state=0))
    whole, cut = run(model, benchmark, stream), run(model, benchmark, replace(stream, chunk_size=7))
    for name in whole:
        assert np.array_equal(whole[name].R, cut[name].R, equal_nan=True)


def test_a_run_leaves_the_model_alone(benchmark):
    model = memory()
    run(model, benchmark, benchmark.stream(0), ["strict"])
    assert not hasattr(model, "memory_")
    assert model.unlabeled is None


class Recorder(ClassifierMixin, BaseEstimator):
    """A network that predicts the first class and records the calls."""

    log: list = []  # noqa: RUF012 - shared with clones on purpose

    def partial_fit(self, X, y, classes=None):
        Recorder.log.append(("fit", set(np.unique(y)), list(classes)))
        return self

    def predict(self, X):
        Recorder.log.append(("predict", len(X)))
        return np.zeros(len(X), np.int64)


class Pooled(Recorder):
    def predict_pool(self, X):
        Recorder.log.append(("pool", len(X)))
        return np.zeros(len(X), np.int64)


@pytest.mark.parametrize("kind", [Recorder, Pooled])
def test_networks_are_taught_and_asked_by_the_protocol(benchmark, kind):
    Recorder.log = []
    outcomes = run(kind(), benchmark, benchmark.stream(0), ["paper"])
    assert {tuple(entry[2]) for entry in Recorder.log if entry[0] == "fit"} == {(0, 1)}
    assert {entry[0] for entry in Recorder.log} == {"fit", "pool" if kind is Pooled else "predict"}
    first = [
        np.mean(benchmark.y_test[part] == task[0])
        for task, part in zip(benchmark.tasks, benchmark.test_parts, strict=True)
    ]
    assert outcomes["paper"].R[-1].tolist() == pytest.approx(first)
    Recorder.log = []
    outcomes = run(kind(), benchmark, benchmark.stream(0), ["strict"])
    assert {tuple(entry[2]) for entry in Recorder.log if entry[0] == "fit"} == {tuple(range(10))}
    assert {entry[0] for entry in Recorder.log} == {"fit", "predict"}
    assert outcomes["strict"].R[-1, 1:].tolist() == [0, 0, 0, 0]


def test_validation_never_touches_the_test_part():
    data = datasets.load("digits")
    split = Benchmark.validation(data, seed=1)
    assert len(split.rows) + len(split.y_test) == len(data.y_train)
    learned = {row.tobytes() for row in data.X_train[split.rows]}
    held_out = {row.tobytes() for row in split.X_test}
    assert learned.isdisjoint(held_out)
    assert held_out.isdisjoint({row.tobytes() for row in data.X_test})
    assert set(split.stream(0).indices) == set(split.rows)


def test_validation_goes_by_its_seed():
    data = datasets.load("digits")
    one, same, other = (Benchmark.validation(data, seed=seed) for seed in (1, 1, 2))
    assert one.rows.tolist() == same.rows.tolist() != other.rows.tolist()


def test_a_place_that_a_task_does_not_have_is_no_class():
    X, y = np.eye(5).repeat(4, axis=0), np.arange(5).repeat(4)
    uneven = Benchmark._grouped((X, y, np.arange(20)), (X, y), ((0, 1, 2), (3, 4)))
    assert uneven.width == 3
    assert protocol._class_at(uneven, 1, np.array([0, 1, 2])).tolist() == [3, 4, -1]
    outcomes = run(memory(), uneven, uneven.stream(0))
    for outcome in outcomes.values():
        assert outcome.R.shape == (2, 2)
        assert outcome.metrics()["ACC"] == pytest.approx(outcome.R[-1].mean())


@pytest.mark.parametrize("model", [memory(), Recorder()], ids=["memory", "network"])
def test_rows_of_tasks_that_never_came_have_no_answer(benchmark, model):
    from ccmem.io.streams import recurring_tasks

    stream = recurring_tasks(benchmark.y, [1], random_state=0)
    for outcome in run(model, benchmark, stream).values():
        assert [int((outcome.predicted[part] == -1).sum()) for part in benchmark.test_parts] == [
            0 if task == 1 else part.stop - part.start for task, part in enumerate(benchmark.test_parts)
        ]
        assert np.isnan(np.delete(outcome.R, 1, axis=1)).all()


def test_recurring_tasks_have_a_row_a_visit(benchmark):
    from ccmem.io.streams import recurring_tasks

    stream = recurring_tasks(benchmark.y, [0, 1, 0, 2, 3, 4], random_state=0)
    outcome = run(memory(), benchmark, stream, ["strict"])["strict"]
    assert outcome.R.shape == (6, 5)
    assert "BWT" not in outcome.metrics()


def test_stop_and_unknown_protocol(benchmark):
    with pytest.raises(protocol.Stopped):
        run(memory(), benchmark, benchmark.stream(0), stop=lambda model: True)
    with pytest.raises(ValueError, match=r"unknown protocol 'lax'"):
        run(memory(), benchmark, benchmark.stream(0), ["lax"])


def test_a_clock_adds_up_what_is_spent_inside_it(monkeypatch):
    times = iter([10.0, 12.5, 20.0, 21.0])
    monkeypatch.setattr(protocol.time, "thread_time", lambda: next(times))
    clock = protocol.Clock()
    for _ in range(2):
        with clock:
            pass
    assert clock.seconds == 3.5


class Told(Recorder):
    task_ends = (0,)


def test_rows_of_a_task_that_never_came_have_no_answer(benchmark):
    stream = benchmark.stream(0)
    begun = replace(stream, indices=stream.indices[: stream.change_points[0]], change_points=(), visits=(0,))
    for model in (memory(), Recorder(), Told()):
        for outcome in run(model, benchmark, begun).values():
            first = benchmark.test_parts[begun.visits[0]]
            assert (outcome.predicted[first] >= 0).all()
            assert (np.delete(outcome.predicted, np.r_[first]) == -1).all()
