"""What the rivals share: the scikit-learn interface, labels, a budget of floats, and being told where a task ends."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from ccmem._sklearn import BaseEstimator, ClassifierMixin, NotFittedError, clone
from ccmem._typing import FloatArray, IntArray
from ccmem.estimator import Estimator
from ccmem.guard import learning
from ccmem.kernels.rows import check_rows
from ccmem.labels import check_labels
from ccmem.parameters import Rule, check_parameters, integer, number, optional


class DoesNotFit(ValueError):  # noqa: N818 - reads as a sentence where it is caught
    """A rival cannot run in its budget of floats."""


class Rival(Estimator, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the rivals: a classifier for streams that never holds more than ``max_floats`` numbers between samples.

    Counted are weights, exemplars, prototypes, statistics, optimizer state, and one number for the label of everything
    that is stored; not counted is what only exists while a chunk is learned or a question answered.
    """

    told: ClassVar[str] = "labels"
    """What it has to be told, for the tables."""
    _in_single: ClassVar[bool] = False
    """Whether rows are learned in single precision, whatever they come in: networks are, and compiled once then."""
    _rules: ClassVar[dict[str, Rule]] = {}
    _own_rules: ClassVar[dict[str, Rule]] = {"max_floats": optional(integer(1))}
    max_floats: Any
    random_state: Any
    classes_: Any
    _dtype: Any
    _learn_type: Any
    _labels: list[Any]
    n_features_in_: int

    # What a rival provides ---------------------------------------------------------------------------------------

    def _prepare(self, n_features: int, dtype: Any) -> None:
        """Before the first sample; everything it sets is taken back if that sample cannot be learned."""

    @abstractmethod
    def _need(self, n_features: int, n_classes: int) -> dict[str, int]:
        """The least it needs to know so many classes, in floats, by what needs them."""

    @abstractmethod
    def _held(self) -> dict[str, int]:
        """What it holds now, in floats."""

    def _grow(self, n_classes: int) -> None:
        """Make room for more classes."""

    @abstractmethod
    def _learn(self, X: FloatArray, codes: IntArray) -> None:
        """Learn rows in order. Codes number the classes as they appeared."""

    @abstractmethod
    def _answer(self, X: FloatArray) -> IntArray:
        """The code of every row; changes nothing that shows."""

    # Learning ----------------------------------------------------------------------------------------------------

    @learning
    def fit(self, X: Any, y: Any) -> Self:
        """Forget everything, then learn the rows of ``X`` and their labels in order, as one task."""
        if y is None:
            raise ValueError(f"{type(self).__name__}.fit requires y to be passed, but the target y is None")
        fresh = clone(self)
        fresh._teach(X, y, None)
        fresh._last_task_ends()
        self._adopt(fresh)
        return self

    @learning
    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn the rows of ``X`` in order; ``classes`` may announce labels that are still to come."""
        if self.__sklearn_is_fitted__():
            self._teach(X, y, classes)
        else:
            fresh = clone(self)
            fresh._teach(X, y, classes)
            self._adopt(fresh)
        return self

    def _teach(self, X: Any, y: Any, classes: Any) -> None:
        name = type(self).__name__
        check_parameters(name, {**self._own_rules, **self._rules}, vars(self))
        first = not self.__sklearn_is_fitted__()
        rows = check_rows(self, X, None if first else self._dtype)
        labels, missing = check_labels(y, len(rows))
        if missing.any():
            raise ValueError(
                f"{name}: the label of row {int(missing.argmax())} is missing; rivals learn from labels only, "
                "leave such rows out"
            )
        known = [] if first else self._labels
        order = _by_appearance(known, [] if classes is None else classes, labels)
        self._check_budget(rows.shape[1], len(order))
        if first:
            self._dtype = rows.dtype
            self._learn_type = np.dtype(np.float32) if self._in_single else rows.dtype
            self._labels = []
            self._prepare(rows.shape[1], self._learn_type)
        self._label_type = labels.dtype
        if len(order) > len(self._labels):
            self._grow(len(order))
        self._labels = order
        self.classes_ = np.sort(np.array(order, labels.dtype))
        place = {label: code for code, label in enumerate(order)}
        codes = np.array([place[label] for label in labels.tolist()], np.int64)
        self._learn(rows.astype(self._learn_type, copy=False), codes)

    def _check_budget(self, n_features: int, n_classes: int) -> None:
        needs = self._need(n_features, n_classes)
        if self.max_floats is not None and sum(needs.values()) > self.max_floats:
            parts = ", ".join(f"{what} {count:,}" for what, count in needs.items())
            raise DoesNotFit(
                f"{type(self).__name__} cannot run in max_floats={self.max_floats:,}: with {n_features} columns and "
                f"{n_classes} classes it needs at least {sum(needs.values()):,} ({parts})"
            )

    def _last_task_ends(self) -> None:
        """Called when ``fit`` has seen all there is."""

    # Reading -----------------------------------------------------------------------------------------------------

    @learning  # some keep what they make for an answer
    def predict(self, X: Any) -> Any:
        """The label of every row."""
        self._require_start()
        codes = self._answer(check_rows(self, X, self._dtype).astype(self._learn_type, copy=False))
        return np.array(self._labels, self._label_type)[codes]

    @property
    def n_floats_(self) -> int:
        """How many numbers it holds between samples."""
        self._require_start()
        return sum(self._held().values())

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_labels")


def _by_appearance(known: Sequence[Any], announced: Any, labels: Any) -> list[Any]:
    """All labels in the order in which they came: known ones, announced ones, then row by row."""
    values = labels.tolist()
    order = dict.fromkeys(known)
    order.update(dict.fromkeys(np.asarray(announced).tolist()))
    order.update(dict.fromkeys(values))
    if len({isinstance(label, str) for label in order}) > 1:
        raise ValueError("y mixes labels that cannot be sorted together; use numbers or strings as labels, not both")
    return list(order)


def increasing() -> Rule:
    """Whole numbers that grow."""
    whole, _ = integer(1)

    def fits(v: Any) -> bool:
        listed = isinstance(v, (Sequence, np.ndarray)) and not isinstance(v, str)
        return listed and all(map(whole, v)) and all(a < b for a, b in pairwise(v))

    return fits, "whole numbers that grow, such as (1000, 2000)"


class TaskRival(Rival):
    """A rival that goes over a whole task several times, and has to be told where it ends.

    The rows of the task at hand are held until then. They are counted apart, in ``n_floats_of_task_``: the published
    methods do not count them either.
    """

    told: ClassVar[str] = "labels, task boundaries"
    _own_rules: ClassVar[dict[str, Rule]] = {
        **Rival._own_rules,
        "task_ends": optional(increasing()),
        "n_epochs": integer(1),
        "learning_rate": number(0.0, open_below=True, open_above=True),
    }
    task_ends: Sequence[int] | None
    n_epochs: int
    learning_rate: float

    @abstractmethod
    def _learn_task(self, X: FloatArray, codes: IntArray) -> None:
        """Learn a whole task."""

    def _prepare(self, n_features: int, dtype: Any) -> None:
        self._seen, self._n_tasks = 0, 0
        self._waiting: list[tuple[FloatArray, IntArray]] = []

    def _learn(self, X: FloatArray, codes: IntArray) -> None:
        ends = [end - self._seen for end in self.task_ends or () if self._seen < end <= self._seen + len(X)]
        for rows, those in zip(np.split(X, ends), np.split(codes, ends), strict=True):
            if len(rows):
                self._waiting.append((rows.copy(), those))
            self._seen += len(rows)
            if len(ends) and self._seen in (self.task_ends or ()):
                self.end_task()

    @learning
    def end_task(self) -> Self:
        """Say that the task at hand is over: now it is learned. For those who do not know ``task_ends`` before."""
        self._require_start()
        if self._waiting:
            X = np.concatenate([rows for rows, _ in self._waiting])
            codes = np.concatenate([codes for _, codes in self._waiting])
            self._waiting = []
            self._learn_task(X, codes)
            self._n_tasks += 1
        return self

    def _last_task_ends(self) -> None:
        self.end_task()

    def predict(self, X: Any) -> Any:
        """The label of every row, by what the tasks that are over have taught."""
        self._require_start()
        if not self._n_tasks:
            raise NotFittedError(
                f"This {type(self).__name__} learns when a task ends, and none has ended yet; name task_ends or call "
                "end_task"
            )
        return super().predict(X)

    @property
    def n_floats_of_task_(self) -> int:
        """How many numbers the rows of the task at hand take, and their labels."""
        self._require_start()
        return sum(rows.size + len(rows) for rows, _ in self._waiting)
