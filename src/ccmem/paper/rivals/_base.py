"""Shared base of the other learners: scikit-learn interface, labels and a budget of floats."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np

from ccmem.base.estimator import Estimator
from ccmem.base.validation import check_rows
from ccmem.core.labels import check_labels
from ccmem.core.locking import learning
from ccmem.core.parameters import Rule, check_parameters, integer, optional
from ccmem.core.sklearn import BaseEstimator, ClassifierMixin
from ccmem.core.typing import FloatArray, IntArray


class DoesNotFit(ValueError):  # noqa: N818 - reads as a sentence where it is caught
    """A rival cannot run in its budget of floats."""


@dataclass(eq=False, repr=False)
class Rival(Estimator, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base class: a classifier for streams that holds at most ``max_floats`` numbers between samples.

    The count includes weights, exemplars, prototypes, statistics, optimizer state and one number per stored label. It
    excludes temporary arrays used while learning a chunk or predicting.
    """

    _: KW_ONLY
    max_floats: int | None = None
    """Budget of floats; None for no limit."""
    random_state: Any = None

    told: ClassVar[str] = "labels"
    """Information the learner needs, for the tables."""
    _in_single: ClassVar[bool] = False
    """True if rows are learned in single precision regardless of their type, so that networks compile once."""
    _begun = "_labels"
    _rules: ClassVar[dict[str, Rule]] = {"max_floats": optional(integer(1))}
    """Rules of the parameters that a class adds or restricts; the rules of its base classes apply too."""

    # Methods a learner provides; ``n_features_in_`` and ``_learn_type`` are known when they are called ---------------

    @abstractmethod
    def _prepare(self) -> None:
        """Initialise before the first sample; rolled back if that sample cannot be learned."""

    @abstractmethod
    def _need(self, n_classes: int) -> dict[str, int]:
        """Return the floats needed for ``n_classes`` classes, by purpose."""

    def _held(self) -> int:
        """Return the number of floats held now; unless overridden, those needed for the known classes."""
        return sum(self._need(len(self._labels)).values())

    def _grow(self, n_classes: int) -> None:
        """Make room for more classes."""

    @abstractmethod
    def _learn(self, X: FloatArray, codes: IntArray) -> None:
        """Learn rows in order; codes number the classes in order of appearance."""

    @abstractmethod
    def _answer(self, X: FloatArray) -> IntArray:
        """Return the code of every row without visible side effects."""

    def _last_task_ends(self) -> None:
        """Handle the end of the last task; called by ``fit``."""

    # Learning and predicting -----------------------------------------------------------------------------------------

    @learning
    def fit(self, X: Any, y: Any) -> Self:
        """Reset, then learn the rows of ``X`` and their labels in order as one task."""
        if y is None:
            raise ValueError(f"{type(self).__name__}.fit requires y to be passed, but the target y is None")
        with self._anew():
            self._teach(X, y, None)
            self._last_task_ends()
        return self

    @learning
    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn the rows of ``X`` in order; ``classes`` may announce future labels."""
        with self._first_chunk():
            self._teach(X, y, classes)
        return self

    def _teach(self, X: Any, y: Any, classes: Any) -> None:
        name = type(self).__name__
        rules = {
            key: rule for kind in reversed(type(self).__mro__) for key, rule in getattr(kind, "_rules", {}).items()
        }
        check_parameters(name, rules, vars(self))
        first = not self.__sklearn_is_fitted__()
        rows = check_rows(self, X, None if first else self._dtype)
        labels, missing = check_labels(y, len(rows))
        if missing.any():
            raise ValueError(
                f"{name}: the label of row {int(missing.argmax())} is missing; rivals learn from labels only, "
                "leave such rows out"
            )
        known = [] if first else self._labels
        announced = np.asarray([] if classes is None else classes)
        order = list(dict.fromkeys([*known, *announced.tolist(), *labels.tolist()]))  # classes by appearance
        if len({isinstance(label, str) for label in order}) > 1:
            raise ValueError("y mixes labels that cannot be sorted; use numbers or strings as labels, not both")
        self._check_budget(len(order))
        if first:
            self._dtype: Any = rows.dtype
            self._learn_type: Any = np.dtype(np.float32) if self._in_single else rows.dtype
            self._prepare()
        if len(order) > len(known):
            self._grow(len(order))
        self._labels: list[Any] = order
        self._label_type = labels.dtype
        self.classes_ = np.sort(np.array(order, labels.dtype))
        place = {label: code for code, label in enumerate(order)}
        codes = np.array([place[label] for label in labels.tolist()], np.int64)
        self._learn(rows.astype(self._learn_type, copy=False), codes)

    def _check_budget(self, n_classes: int) -> None:
        needs = self._need(n_classes)
        if self.max_floats is not None and sum(needs.values()) > self.max_floats:
            parts = ", ".join(f"{what} {count:,}" for what, count in needs.items())
            raise DoesNotFit(
                f"{type(self).__name__} cannot run in max_floats={self.max_floats:,}: with {self.n_features_in_} "
                f"columns and {n_classes} classes it needs at least {sum(needs.values()):,} ({parts})"
            )

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
        return self._held()

    def _by_class(self) -> list[int]:
        """Return the codes of the classes in the order of ``classes_``."""
        return np.argsort(np.array(self._labels)).tolist()
