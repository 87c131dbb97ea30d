"""Base of the classifiers that learn online: chunks and single rows, label codes, new classes, columns."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from ccmem.base.estimator import SavedEstimator
from ccmem.base.validation import one_row
from ccmem.core.labels import check_labels, code_of, encode_labels, known_codes, sorted_union
from ccmem.core.locking import learning
from ccmem.core.sklearn import BaseEstimator, ClassifierMixin, NotFittedError
from ccmem.core.typing import FloatArray, IntArray


class OnMemory:
    """Base of estimators on top of a memory: they have its columns, and its listeners are theirs."""

    _begun = "memory_"
    memory_: Any

    @property
    def n_features_in_(self) -> int:
        """Number of columns of ``X``."""
        return int(self._fitted_memory().n_features_in_)

    @property
    def feature_names_in_(self) -> Any:
        """Names of the columns of ``X``, if they had any."""
        return self._fitted_memory().feature_names_in_

    def _fitted_memory(self) -> Any:
        self._require_start(AttributeError)  # type: ignore[attr-defined]
        return self.memory_

    def _check_one(self, x: Any) -> FloatArray | None:
        """Return ``x`` as a row without copying, or None if it needs conversion."""
        row: FloatArray | None = self.memory_._check_one(x)
        return row

    def _notify(self) -> None:
        self.memory_._notify()


class OnlineClassifier(SavedEstimator, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifier around ``_teach``, which learns a chunk, and ``_learn_row``, which learns one validated row."""

    _not_pickled: ClassVar[tuple[str, ...]] = ("_label_codes", "_unchanged")
    classes_: Any
    unlabeled: Any

    @abstractmethod
    def _teach(self, X: Any, y: Any, classes: Any) -> Any:
        """Learn a chunk, or raise and leave the state unchanged; return an array with an entry per row, or None."""

    @abstractmethod
    def _learn_row(self, row: FloatArray, code: int) -> Any:
        """Learn a row that ``_check_one`` accepted, with the code of a known label; return its entry."""

    @abstractmethod
    def _check_one(self, x: Any) -> FloatArray | None:
        """Return ``x`` as a row without copying, or None if it needs conversion."""

    @learning
    def fit(self, X: Any, y: Any) -> Self:
        """Reset, then learn the rows of ``X`` and their labels in order, in one pass."""
        return self._fit(X, y)

    def _fit(self, X: Any, y: Any, **more: Any) -> Self:
        name = type(self).__name__
        if y is None:
            raise ValueError(
                f"{name}.fit requires y to be passed, but the target y is None; "
                "use partial_fit for chunks without labels"
            )
        with self._anew():
            self._teach(X, y, None, **more)
            if not len(self.classes_):
                raise ValueError("every label in y is missing (NaN or None); fit needs at least one")
        self._notify()
        return self

    def _teach_safely(self, X: Any, y: Any, classes: Any) -> Any:
        """Learn a chunk; if it is the first one and raises, the classifier is unchanged."""
        with self._first_chunk():
            return self._teach(X, y, classes)

    def _learn_one(self, x: Any, y: Any) -> Any:
        """Learn one sample; return its entry."""
        row = self._check_one(x) if self.__sklearn_is_fitted__() else None
        code = None if row is None else code_of(self, y)
        if row is not None and code is not None:
            found = self._learn_row(row, code)
        else:
            labels = None if y is None else np.array([y], dtype=object if isinstance(y, str) else None)
            entries = self._teach_safely(one_row(x), labels, None)
            found = None if entries is None else entries[0]
        self._notify()
        return found

    def _notify(self) -> None:
        """Call the event listeners; runs after a chunk has been learned completely."""

    def _codes(self, y: Any, n_rows: int, classes: Any) -> tuple[IntArray, Any]:
        """Return the code of every label, and the sorted classes: known ones, those in ``classes``, and new labels."""
        fitted = self.__sklearn_is_fitted__()
        if fitted and classes is None and (codes := known_codes(self, y, n_rows)) is not None:
            return codes, self.classes_
        labels, missing = check_labels(y, n_rows, self.unlabeled)
        known = self.classes_ if fitted else labels[:0]
        everything = sorted_union(known, labels[~missing], np.asarray([] if classes is None else classes))
        return encode_labels(labels, missing, everything), everything

    def _require_label(self, seen: bool) -> None:
        """Raise if no label has been seen."""
        if not seen:
            raise NotFittedError(
                f"This {type(self).__name__} has seen no label yet; give partial_fit some labels first"
            )


class CountingClassifier(OnlineClassifier):
    """Classifier whose state begins its counters with the rows seen and the rows that were taught."""

    @property
    def n_samples_seen_(self) -> int:
        """Number of rows seen since learning began."""
        self._require_start()
        return int(self._state.counters[0])

    @property
    def n_samples_taught_(self) -> int:
        """Number of rows learned: those with a label and, with a memory, accepted by the memory."""
        self._require_start()
        return int(self._state.counters[1])

    @property
    def n_floats_(self) -> int:
        """Number of floats kept, without those of a memory."""
        self._require_start()
        return sum(array.size for array in self._state)
