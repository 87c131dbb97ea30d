"""Task matrices R of a stream of tasks, under two protocols that must not be confused.

**paper**   The published tables. Labels are shared by all tasks: the first, second, ... class of the task at hand
            (digit parity on Split MNIST). Class conformity is measured with the task known: the predicted class is that
            of the *true* task at the predicted place. A task-gated network sends the whole test pool of a task
            through one gate (``predict_pool``).
**strict**  What a user of a task-free learner gets: all classes compete, every sample is routed by itself, nothing
            about tasks is known.

R[i, j] is the accuracy on the test samples of task j after visit i of the stream (learning task i); tasks that have not
been visited yet are not tested (NaN). A memory never sees labels, so one pass serves both protocols.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ccmem import metrics, ncl
from ccmem.core.codes import UNLABELED
from ccmem.core.sklearn import clone
from ccmem.core.typing import FloatArray, IntArray
from ccmem.io.streams.splits import TaskStream, class_tasks, split_by_class
from ccmem.paper.rivals import Rival
from ccmem.readout.modal import ModalClassifier

if TYPE_CHECKING:
    from ccmem.paper.datasets import ImageData

PAPER, STRICT = "paper", "strict"
PROTOCOLS = (PAPER, STRICT)


class Stopped(Exception):  # noqa: N818 - not an error
    """Raised when a run was asked to stop early."""


@dataclass(frozen=True)
class Benchmark:
    """An immutable data set divided into tasks, its test rows grouped by task; shared by all trials."""

    X: FloatArray
    y: IntArray
    rows: IntArray
    """Indices of the training rows in X."""
    X_test: FloatArray
    y_test: IntArray
    tasks: tuple[tuple[int, ...], ...]
    """Classes of every task."""
    test_parts: tuple[slice, ...]
    """Slice of the test rows of every task."""

    @classmethod
    def of(cls, data: ImageData, n_tasks: int = 5, class_order: Sequence[int] | None = None) -> Benchmark:
        """Train on the training part and test on the test part."""
        tasks = class_tasks(data.y_train, n_tasks, class_order)
        return cls._grouped(data.X_train, data.y_train, np.arange(len(data.y_train)), data.X_test, data.y_test, tasks)

    @classmethod
    def validation(cls, data: ImageData, n_tasks: int = 5, part: float = 1 / 6, seed: int = 0) -> Benchmark:
        """Train on most of the training part and test on the rest; the test part is not used."""
        tasks = class_tasks(data.y_train, n_tasks)
        order = np.random.default_rng(seed).permutation(len(data.y_train))
        held_out, rest = np.split(order, [round(part * len(order))])
        return cls._grouped(
            data.X_train, data.y_train, np.sort(rest), data.X_train[held_out], data.y_train[held_out], tasks
        )

    def few(self, n_each: int) -> Benchmark:
        """Return the benchmark with the first ``n_each`` samples of every class."""

        def first(labels: IntArray) -> IntArray:
            return np.concatenate([np.flatnonzero(labels == label)[:n_each] for task in self.tasks for label in task])

        rows, tested = self.rows[first(self.y[self.rows])], first(self.y_test)
        return self._grouped(self.X, self.y, rows, self.X_test[tested], self.y_test[tested], self.tasks)

    @classmethod
    def _grouped(
        cls,
        X: FloatArray,
        y: IntArray,
        rows: IntArray,
        X_test: FloatArray,
        y_test: IntArray,
        tasks: tuple[tuple[int, ...], ...],
    ) -> Benchmark:
        members = [np.flatnonzero(np.isin(y_test, classes)) for classes in tasks]
        for task, part in enumerate(members):
            if len(part) == 0:
                raise ValueError(f"task {task} (classes {tasks[task]}) has no test samples; give every class some")
        edges = np.cumsum([0, *map(len, members)]).tolist()
        order = np.concatenate(members)
        parts = tuple(slice(start, end) for start, end in pairwise(edges))
        return cls(X, y, rows, X_test[order], y_test[order], tasks, parts)

    def stream(self, seed: Any) -> TaskStream:
        """Return the class-incremental stream of one trial, as indices into ``X``."""
        order = [label for task in self.tasks for label in task]
        stream = split_by_class(self.y[self.rows], len(self.tasks), class_order=order, random_state=seed)
        return TaskStream(
            self.rows[stream.indices],
            stream.labelled,
            stream.tasks,
            stream.visits,
            stream.change_points,
            stream.sample_tasks,
            stream.chunk_size,
        )

    @property
    def places(self) -> IntArray:
        """Return class -> position within its task, from 0."""
        places = np.zeros(max(max(task) for task in self.tasks) + 1, np.int64)
        for task in self.tasks:
            places[list(task)] = np.arange(len(task))
        return places

    @property
    def width(self) -> int:
        """Number of classes in the largest task, which is the number of shared labels."""
        return max(map(len, self.tasks))


@dataclass(frozen=True)
class Outcome:
    """Result of one model on one stream under one protocol."""

    protocol: str
    R: FloatArray
    """Accuracy on task j after visit i; NaN if not tested."""
    predicted: IntArray
    """Predicted class of every test row after the last visit; -1 if the current task has no such position."""
    true: IntArray
    model: Any
    """The fitted model."""
    seconds: float = 0.0
    """CPU time of learning, until the model was ready to predict after each visit."""

    def metrics(self) -> dict[str, float]:
        """Return all metrics of the tables; retention only if every task was visited once, in order."""
        found = {"ACC": float(np.nanmean(self.R[-1]))}
        if self.R.shape[0] == self.R.shape[1]:
            found |= {
                "BWT": metrics.backward_transfer(self.R),
                "BWT triangle": metrics.backward_transfer_triangle(self.R),
                "forgetting first to last": metrics.forgetting_first_to_last(self.R),
                "forgetting best to last": metrics.forgetting_best_to_last(self.R),
            }
        return found | metrics.conformity(self.true, self.predicted)


def never(model: Any) -> bool:
    """Never stop."""
    return False


def run(
    model: Any,
    benchmark: Benchmark,
    stream: TaskStream,
    protocols: Sequence[str] = PROTOCOLS,
    *,
    watch: Callable[[IntArray], None] | None = None,
    stop: Callable[[Any], bool] = never,
) -> dict[str, Outcome]:
    """Train clones of ``model`` on the stream and test them after every visit.

    Parameters
    ----------
    model : ModalClassifier, or any classifier with ``partial_fit(X, y, classes=...)`` and ``predict``
        One with ``predict_pool`` uses it under the paper protocol. One with ``task_ends`` knows the tasks, so that
        shared labels tell it classes: it learns those under both protocols.
    benchmark, stream
        What to learn, in which order.
    protocols : sequence of "paper", "strict"
    watch : function, optional
        Called with the units that learned the rows of every chunk (ModalClassifier only).
    stop : function, optional
        Asked before every chunk, with the model that learns; when it says yes, :class:`Stopped` is raised.
    """
    unknown = [protocol for protocol in protocols if protocol not in PROTOCOLS]
    if unknown:
        raise ValueError(f"unknown protocol {unknown[0]!r}; there are {' and '.join(PROTOCOLS)}")
    if getattr(model, "task_ends", None) is not None or isinstance(model, ncl.Classifier):
        return _run_told(model, benchmark, stream, protocols, stop)
    if isinstance(model, ModalClassifier):
        return _run_memory(model, benchmark, stream, protocols, watch, stop)
    return {protocol: _run_network(model, benchmark, stream, protocol, stop) for protocol in protocols}


class Clock:
    """A timer that accumulates this thread's CPU time spent inside its context."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __enter__(self) -> None:
        self._began = time.thread_time()

    def __exit__(self, *problem: object) -> None:
        self.seconds += time.thread_time() - self._began


def _visits(
    model: Any,
    benchmark: Benchmark,
    stream: TaskStream,
    teach: Callable[[FloatArray, IntArray], None],
    stop: Callable[[Any], bool],
    clock: Clock,
) -> Iterator[tuple[int, list[int]]]:
    """Train visit by visit; after each, yield its index and the tasks seen so far."""
    seen: set[int] = set()
    visit = 0

    def end() -> tuple[int, list[int]]:
        if isinstance(model, Rival):  # some learn only when asked to predict
            with clock:
                model.predict(benchmark.X_test[:1])
        seen.add(stream.visits[visit])
        return visit, sorted(seen)

    for chunk in stream:
        if stop(model):
            raise Stopped
        if chunk.visit != visit:
            yield end()
            visit = chunk.visit
        labels = np.where(chunk.labelled, benchmark.y[chunk.indices], UNLABELED)
        rows = benchmark.X[chunk.indices]
        with clock:
            teach(rows, labels)
    yield end()


def _run_memory(
    model: ModalClassifier,
    benchmark: Benchmark,
    stream: TaskStream,
    protocols: Sequence[str],
    watch: Callable[[IntArray], None] | None,
    stop: Callable[[Any], bool],
) -> dict[str, Outcome]:
    classifier = clone(model).set_params(unlabeled=UNLABELED)
    places = benchmark.places
    R = {protocol: np.full((len(stream.visits), len(benchmark.tasks)), np.nan) for protocol in protocols}
    predicted = {protocol: np.full(len(benchmark.y_test), -1) for protocol in protocols}

    def teach(X: FloatArray, labels: IntArray) -> None:
        winners = classifier.learn_many(X, labels)
        if watch is not None:
            watch(winners)

    clock = Clock()
    for visit, seen in _visits(classifier, benchmark, stream, teach, stop, clock):
        for task in seen:
            part = benchmark.test_parts[task]
            votes = classifier.predict_votes(benchmark.X_test[part])
            for protocol in protocols:
                if protocol == STRICT:
                    answer = classifier.classes_[votes.argmax(axis=1)]
                else:
                    shared = np.eye(benchmark.width, dtype=np.int64)[places[classifier.classes_]]
                    answer = _class_at(benchmark, task, (votes @ shared).argmax(axis=1))
                R[protocol][visit, task] = np.mean(answer == benchmark.y_test[part])
                predicted[protocol][part] = answer
    return {p: Outcome(p, R[p], predicted[p], benchmark.y_test, classifier, clock.seconds) for p in protocols}


def _run_network(
    model: Any, benchmark: Benchmark, stream: TaskStream, protocol: str, stop: Callable[[Any], bool]
) -> Outcome:
    network = clone(model)
    takes_unlabeled = "unlabeled" in network.get_params(deep=False)
    if takes_unlabeled:
        network.set_params(unlabeled=UNLABELED)
    places = benchmark.places
    classes = np.arange(benchmark.width) if protocol == PAPER else np.array(sorted(sum(benchmark.tasks, ())))
    as_pool = protocol == PAPER and hasattr(network, "predict_pool")
    R = np.full((len(stream.visits), len(benchmark.tasks)), np.nan)
    predicted = np.full(len(benchmark.y_test), -1)

    def teach(X: FloatArray, labels: IntArray) -> None:
        labelled = labels != UNLABELED
        if not takes_unlabeled and not labelled.all():
            X, labels, labelled = X[labelled], labels[labelled], labelled[labelled]
        if len(labels):
            targets = np.where(labelled, places[labels], UNLABELED) if protocol == PAPER else labels
            network.partial_fit(X, targets, classes=classes)

    clock = Clock()
    for visit, seen in _visits(network, benchmark, stream, teach, stop, clock):
        for task in seen:
            part = benchmark.test_parts[task]
            X = benchmark.X_test[part]
            answer = network.predict_pool(X) if as_pool else network.predict(X)
            if protocol == PAPER:
                answer = _class_at(benchmark, task, answer)
            R[visit, task] = np.mean(answer == benchmark.y_test[part])
            predicted[part] = answer
    return Outcome(protocol, R, predicted, benchmark.y_test, network, clock.seconds)


def _run_told(
    model: Any, benchmark: Benchmark, stream: TaskStream, protocols: Sequence[str], stop: Callable[[Any], bool]
) -> dict[str, Outcome]:
    """Run one pass with class labels for both protocols; the paper's scores the position in the task.

    For learners that know the task, and so the class; and for memories with labels, whose units have one class each,
    as the units of a memory without labels have after the vote.
    """
    learner = clone(model)
    classes = np.array(sorted(sum(benchmark.tasks, ())))
    R = {protocol: np.full((len(stream.visits), len(benchmark.tasks)), np.nan) for protocol in protocols}
    predicted = {protocol: np.full(len(benchmark.y_test), -1) for protocol in protocols}

    def teach(X: FloatArray, labels: IntArray) -> None:
        labelled = labels != UNLABELED
        if labelled.any():
            learner.partial_fit(X[labelled], labels[labelled], classes=classes)

    clock = Clock()
    for visit, seen in _visits(learner, benchmark, stream, teach, stop, clock):
        for task in seen:
            part = benchmark.test_parts[task]
            answer = learner.predict(benchmark.X_test[part])
            for protocol in protocols:
                counted = _class_at(benchmark, task, benchmark.places[answer]) if protocol == PAPER else answer
                R[protocol][visit, task] = np.mean(counted == benchmark.y_test[part])
                predicted[protocol][part] = counted
    return {p: Outcome(p, R[p], predicted[p], benchmark.y_test, learner, clock.seconds) for p in protocols}


def _class_at(benchmark: Benchmark, task: int, places: IntArray) -> IntArray:
    """Return the class of ``task`` at each position; -1 beyond the last."""
    classes = np.full(benchmark.width, -1)
    classes[: len(benchmark.tasks[task])] = benchmark.tasks[task]
    return classes[places]
