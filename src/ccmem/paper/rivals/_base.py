"""Shared base of the other learners: scikit-learn interface, labels, a budget of floats, and task ends."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from ccmem.base.estimator import Estimator
from ccmem.base.validation import check_rows
from ccmem.core.labels import check_labels
from ccmem.core.locking import learning
from ccmem.core.parameters import Rule, check_parameters, integer, number, optional
from ccmem.core.sklearn import BaseEstimator, ClassifierMixin, NotFittedError, clone
from ccmem.core.typing import FloatArray, IntArray


class DoesNotFit(ValueError):  # noqa: N818 - reads as a sentence where it is caught
    """A rival cannot run in its budget of floats."""


class Rival(Estimator, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base class: a classifier for streams that holds at most ``max_floats`` numbers between samples.

    The count includes weights, exemplars, prototypes, statistics, optimizer state and one number per stored label. It
    excludes temporary arrays used while learning a chunk or predicting.
    """

    told: ClassVar[str] = "labels"
    """Information the learner needs, for the tables."""
    _in_single: ClassVar[bool] = False
    """True if rows are learned in single precision regardless of their type, so that networks compile once."""
    _rules: ClassVar[dict[str, Rule]] = {}
    _own_rules: ClassVar[dict[str, Rule]] = {"max_floats": optional(integer(1))}
    max_floats: Any
    random_state: Any
    classes_: Any
    _dtype: Any
    _learn_type: Any
    _labels: list[Any]
    n_features_in_: int

    # Methods a learner provides ---------------------------------------------------------------------------------------

    def _prepare(self, n_features: int, dtype: Any) -> None:
        """Initialise before the first sample; rolled back if that sample cannot be learned."""

    @abstractmethod
    def _need(self, n_features: int, n_classes: int) -> dict[str, int]:
        """Return the floats needed for ``n_classes`` classes, by purpose."""

    @abstractmethod
    def _held(self) -> dict[str, int]:
        """Return the number of floats held now."""

    def _grow(self, n_classes: int) -> None:
        """Make room for more classes."""

    @abstractmethod
    def _learn(self, X: FloatArray, codes: IntArray) -> None:
        """Learn rows in order; codes number the classes in order of appearance."""

    @abstractmethod
    def _answer(self, X: FloatArray) -> IntArray:
        """Return the code of every row without visible side effects."""

    # Learning ----------------------------------------------------------------------------------------------------

    @learning
    def fit(self, X: Any, y: Any) -> Self:
        """Reset, then learn the rows of ``X`` and their labels in order as one task."""
        if y is None:
            raise ValueError(f"{type(self).__name__}.fit requires y to be passed, but the target y is None")
        fresh = clone(self)
        fresh._teach(X, y, None)
        fresh._last_task_ends()
        self._adopt(fresh)
        return self

    @learning
    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn the rows of ``X`` in order; ``classes`` may announce future labels."""
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
        """Handle the end of the last task; called by ``fit``."""

    # Reading -----------------------------------------------------------------------------------------------------

    @learning  # some learners cache the model they build for predictions
    def predict(self, X: Any) -> Any:
        """Return the label of every row."""
        self._require_start()
        codes = self._answer(check_rows(self, X, self._dtype).astype(self._learn_type, copy=False))
        return np.array(self._labels, self._label_type)[codes]

    @property
    def n_floats_(self) -> int:
        """Number of floats held between samples."""
        self._require_start()
        return sum(self._held().values())

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_labels")


def _by_appearance(known: Sequence[Any], announced: Any, labels: Any) -> list[Any]:
    """Return all labels in order of appearance: known, announced, then row by row."""
    values = labels.tolist()
    order = dict.fromkeys(known)
    order.update(dict.fromkeys(np.asarray(announced).tolist()))
    order.update(dict.fromkeys(values))
    if len({isinstance(label, str) for label in order}) > 1:
        raise ValueError("y mixes labels that cannot be sorted together; use numbers or strings as labels, not both")
    return list(order)


def increasing() -> Rule:
    """Accept increasing integers."""
    whole, _ = integer(1)

    def fits(v: Any) -> bool:
        listed = isinstance(v, (Sequence, np.ndarray)) and not isinstance(v, str)
        return listed and all(map(whole, v)) and all(a < b for a, b in pairwise(v))

    return fits, "whole numbers that grow, such as (1000, 2000)"


class TaskRival(Rival):
    """A learner that makes several passes over each task and needs to know where the task ends.

    Rows of the current task are held until then. They are counted separately, in ``n_floats_of_task_``, because the
    published methods do not count them either.
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
        """End the current task and learn it; for callers that do not know ``task_ends`` in advance."""
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
        """Return the label of every row according to the completed tasks."""
        self._require_start()
        if not self._n_tasks:
            raise NotFittedError(
                f"This {type(self).__name__} learns when a task ends, and none has ended yet; name task_ends or call "
                "end_task"
            )
        return super().predict(X)

    @property
    def n_floats_of_task_(self) -> int:
        """Number of floats held for rows and labels of the current task."""
        self._require_start()
        return sum(rows.size + len(rows) for rows, _ in self._waiting)
