"""Task matrices R of a stream of tasks, under two protocols that must not be confused.

**paper**   The published tables. All tasks share labels: the first, second, ... class of the current task (digit parity
            on Split MNIST). Class conformity is measured with the task known: the predicted class is the class of the
            *true* task at the predicted position. A task-gated network sends the whole test pool of a task through one
            gate (``predict_pool``).
**strict**  A task-free learner as users run it: all classes compete, every sample is routed separately, and tasks are
            unknown.

R[i, j] is the accuracy on the test samples of task j after visit i of the stream (learning task i); tasks that have not
been visited yet are not tested (NaN). A memory never sees labels, so one pass serves both protocols.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from ccmem import metrics, ncl
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
    """Raised when a run has to stop early."""


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
        everything = data.X_train, data.y_train, np.arange(len(data.y_train))
        return cls._grouped(everything, (data.X_test, data.y_test), tasks)

    @classmethod
    def validation(cls, data: ImageData, part: float = 1 / 6, seed: int = 0) -> Benchmark:
        """Train on most of the training part and test on the rest; the test part is not used."""
        tasks = class_tasks(data.y_train, 5)
        order = np.random.default_rng(seed).permutation(len(data.y_train))
        held_out, rest = np.split(order, [round(part * len(order))])
        train = data.X_train, data.y_train, np.sort(rest)
        return cls._grouped(train, (data.X_train[held_out], data.y_train[held_out]), tasks)

    def few(self, n_each: int) -> Benchmark:
        """Return the benchmark with the first ``n_each`` samples of every class."""

        def first(labels: IntArray) -> IntArray:
            return np.concatenate([np.flatnonzero(labels == label)[:n_each] for task in self.tasks for label in task])

        rows, tested = self.rows[first(self.y[self.rows])], first(self.y_test)
        return self._grouped((self.X, self.y, rows), (self.X_test[tested], self.y_test[tested]), self.tasks)

    @classmethod
    def _grouped(cls, train: tuple[Any, Any, Any], test: tuple[Any, Any], tasks: tuple[tuple[int, ...], ...]) -> Self:
        """Return ``X``, ``y`` and ``rows`` with the test rows and their classes, grouped by task."""
        X_test, y_test = test
        members = [np.flatnonzero(np.isin(y_test, classes)) for classes in tasks]
        for task, part in enumerate(members):
            if len(part) == 0:
                raise ValueError(f"task {task} (classes {tasks[task]}) has no test samples; give every class some")
        edges = np.cumsum([0, *map(len, members)]).tolist()
        order = np.concatenate(members)
        parts = tuple(slice(start, end) for start, end in pairwise(edges))
        return cls(*train, X_test[order], y_test[order], tasks, parts)

    def stream(self, seed: Any) -> TaskStream:
        """Return the class-incremental stream of one trial, as indices into ``X``."""
        order = [label for task in self.tasks for label in task]
        stream = split_by_class(self.y[self.rows], len(self.tasks), class_order=order, random_state=seed)
        return replace(stream, indices=self.rows[stream.indices])

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
        A classifier with ``predict_pool`` uses it under the paper protocol. A classifier with ``task_ends`` knows the
        tasks, so it learns classes under both protocols.
    benchmark, stream
        Data, and the order in which they are learned.
    protocols : sequence of "paper", "strict"
    watch : function, optional
        Called with the units that learned the rows of every chunk (ModalClassifier only).
    stop : function, optional
        Called before every chunk with the model that learns; :class:`Stopped` is raised if it returns True.
    """
    unknown = [protocol for protocol in protocols if protocol not in PROTOCOLS]
    if unknown:
        raise ValueError(f"unknown protocol {unknown[0]!r}; there are {' and '.join(PROTOCOLS)}")
    if getattr(model, "task_ends", None) is not None or isinstance(model, ncl.Classifier):
        learners = [(_classifier(model, benchmark, STRICT), protocols)]
    elif isinstance(model, ModalClassifier):
        learners = [(_memory(model, benchmark, watch), protocols)]
    else:
        learners = [(_classifier(model, benchmark, protocol), [protocol]) for protocol in protocols]
    found: dict[str, Outcome] = {}
    for learner, together in learners:
        found |= _run(learner, benchmark, stream, together, stop)
    return found


class Clock:
    """A timer that accumulates this thread's CPU time spent inside its context."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __enter__(self) -> None:
        self._began = time.thread_time()

    def __exit__(self, *problem: object) -> None:
        self.seconds += time.thread_time() - self._began


class _Learner(NamedTuple):
    """A model with the way it learns and predicts under the protocols."""

    model: Any
    teach: Callable[[FloatArray, IntArray], object]
    """Learn rows and their classes."""
    answers: Callable[[FloatArray], dict[str, IntArray]]
    """Return the prediction per protocol: a class if strict, a position in the task under the paper protocol."""


def _memory(model: ModalClassifier, benchmark: Benchmark, watch: Callable[[IntArray], None] | None) -> _Learner:
    """Return a memory with a label readout; the memory never sees labels, so one pass serves both protocols."""
    classifier = clone(model)

    def teach(X: FloatArray, labels: IntArray) -> None:
        winners = classifier.learn_many(X, labels)
        if watch is not None:
            watch(winners)

    def answers(X: FloatArray) -> dict[str, IntArray]:
        votes, classes = classifier.predict_votes(X), classifier.classes_
        shared = np.eye(benchmark.width, dtype=np.int64)[benchmark.places[classes]]
        return {STRICT: classes[votes.argmax(axis=1)], PAPER: (votes @ shared).argmax(axis=1)}

    return _Learner(classifier, teach, answers)


def _classifier(model: Any, benchmark: Benchmark, protocol: str) -> _Learner:
    """Return a classifier that learns the labels of one protocol.

    Learners that know the task, and so the class, and memories with labels learn classes under both protocols: their
    units have one class each, as the units of a memory without labels have after the vote. So one pass serves both.
    """
    learner = clone(model)
    classes = np.arange(benchmark.width) if protocol == PAPER else np.array(sorted(sum(benchmark.tasks, ())))
    predict = getattr(learner, "predict_pool", learner.predict) if protocol == PAPER else learner.predict

    def teach(X: FloatArray, labels: IntArray) -> None:
        learner.partial_fit(X, benchmark.places[labels] if protocol == PAPER else labels, classes=classes)

    def answers(X: FloatArray) -> dict[str, IntArray]:
        found = predict(X)
        return {PAPER: found} if protocol == PAPER else {STRICT: found, PAPER: benchmark.places[found]}

    return _Learner(learner, teach, answers)


def _run(
    learner: _Learner, benchmark: Benchmark, stream: TaskStream, protocols: Sequence[str], stop: Callable[[Any], bool]
) -> dict[str, Outcome]:
    """Train in one pass over the stream; after each visit, test on the tasks seen so far."""
    R = {protocol: np.full((len(stream.visits), len(benchmark.tasks)), np.nan) for protocol in protocols}
    predicted = {protocol: np.full(len(benchmark.y_test), -1) for protocol in protocols}
    clock = Clock()
    seen: set[int] = set()
    for visit, chunks in groupby(stream, lambda chunk: chunk.visit):
        for chunk in chunks:
            if stop(learner.model):
                raise Stopped
            with clock:
                learner.teach(benchmark.X[chunk.indices], benchmark.y[chunk.indices])
        if isinstance(learner.model, Rival):  # some learn only when asked to predict
            with clock:
                learner.model.predict(benchmark.X_test[:1])
        seen.add(stream.visits[visit])
        for task in sorted(seen):
            part = benchmark.test_parts[task]
            answers = learner.answers(benchmark.X_test[part])
            for protocol in protocols:
                answer = answers[protocol]
                if protocol == PAPER:
                    answer = _class_at(benchmark, task, answer)
                R[protocol][visit, task] = np.mean(answer == benchmark.y_test[part])
                predicted[protocol][part] = answer
    return {p: Outcome(p, R[p], predicted[p], benchmark.y_test, learner.model, clock.seconds) for p in protocols}


def _class_at(benchmark: Benchmark, task: int, places: IntArray) -> IntArray:
    """Return the class of ``task`` at each position; -1 beyond the last."""
    classes = np.full(benchmark.width, -1)
    classes[: len(benchmark.tasks[task])] = benchmark.tasks[task]
    return classes[places]
