"""Base of classifiers whose memory gives every unit a label: label codes, prediction and saving."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from ccmem.base.estimator import SavedEstimator, Summarised
from ccmem.base.storage import check_names, check_vector
from ccmem.core.codes import UNLABELED
from ccmem.core.labels import check_labels, encode_labels, sorted_union
from ccmem.core.locking import learning, reading, share_guard
from ccmem.core.sklearn import BaseEstimator, ClassifierMixin, NotFittedError, clone
from ccmem.core.typing import FloatArray, IntArray


class LabelledUnits(SavedEstimator, Summarised, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifier over a memory with an array ``labels`` of codes in its state and a method ``_learn_labelled``.

    New classes may appear at any time. A row without a label (None or NaN) is counted, but not learned.
    """

    _memory_type: ClassVar[type[Any]]
    memory_: Any

    @learning
    def fit(self, X: Any, y: Any) -> Self:
        """Reset, then learn the rows of ``X`` and their labels in order."""
        if y is None:
            raise ValueError(f"{type(self).__name__}.fit requires y to be passed, but the target y is None")
        fresh = clone(self)
        fresh._teach(X, y)
        if not len(fresh.classes_):
            raise ValueError("every label in y is missing (NaN or None); fit needs at least one")
        self.memory_, self._labels = fresh.memory_, fresh._labels
        share_guard(self, self.memory_)
        return self

    @learning
    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> Self:
        """Learn the rows of ``X`` in order, with their labels. ``classes`` is ignored."""
        self._teach(X, y)
        return self

    @learning
    def learn_one(self, x: Any, y: Any = None) -> int:
        """Learn one sample; return the unit that learned it, or -1 if none did (always without a label)."""
        labels = None if y is None else np.array([y], dtype=object if isinstance(y, str) else None)
        return int(self._teach(np.asarray(x).reshape(1, -1), labels)[0])

    def _teach(self, X: Any, y: Any) -> IntArray:
        """Learn a chunk, or raise and leave the state unchanged."""
        memory = getattr(self, "memory_", None) or self._memory_type()
        memory.set_params(**{name: getattr(self, name) for name in self._rules})
        rows = memory._check_chunk(X)
        labels, missing = check_labels(y, len(rows))
        known = getattr(self, "_labels", labels[:0])
        classes = sorted_union(known, labels[~missing])  # raises if they cannot be sorted together
        places = encode_labels(labels, missing, classes)
        old = np.searchsorted(classes, known.astype(classes.dtype))
        used, first = np.unique(places[~missing], return_index=True)
        new = used[np.argsort(first)]  # order of appearance in the stream, independent of chunks
        order = np.concatenate([old, new[~np.isin(new, old)]]).astype(np.int64)
        codes = np.append(np.argsort(order), UNLABELED)[places]  # the last entry serves missing labels
        if not hasattr(self, "memory_"):
            share_guard(self, memory)
        self.memory_, self._labels = memory, classes[order]
        return memory._learn_labelled(rows, codes)

    @property
    def classes_(self) -> Any:
        """Labels seen so far, sorted."""
        self._require_start(AttributeError)
        return np.sort(self._labels)

    @property
    @reading
    def unit_labels_(self) -> Any:
        """Label of every unit."""
        return self._labels_of(slice(self._taught().n_units_))

    def _labels_of(self, units: Any) -> Any:
        return self._labels[self.memory_._state.labels[units]]

    def _taught(self, error: type[Exception] = NotFittedError) -> Any:
        """Return the memory; raise if nothing has been learned yet."""
        self._require_start(error)
        return self.memory_

    @property
    def n_features_in_(self) -> int:
        """Number of columns of ``X``."""
        return int(self._taught(AttributeError).n_features_in_)

    @property
    def feature_names_in_(self) -> Any:
        """Names of the columns of ``X``, if they had any."""
        return self._taught(AttributeError).feature_names_in_

    @property
    def n_floats_(self) -> int:
        """Number of floats kept."""
        return int(self._taught().n_floats_)

    @reading
    def predict(self, X: Any) -> Any:
        """Return the label of the best matching unit of every row."""
        return self.predict_units(X)[0]

    @reading
    def predict_units(self, X: Any) -> tuple[Any, IntArray]:
        """Return the label and the best matching unit of every row."""
        units = self._taught().predict(X)
        return self._labels_of(units), units

    @reading
    def predict_one(self, x: Any) -> Any:
        """Return the label of one sample."""
        return self._labels_of(self._taught().predict_one(x))

    @reading
    def predict_proba(self, X: Any) -> FloatArray:
        """Return 1 for the label of the best matching unit, 0 for all others."""
        return (self.predict(X)[:, np.newaxis] == self.classes_).astype(np.float64)

    @learning
    def _widen(self, n_features: int) -> None:
        """Add columns; see :meth:`ccmem.base.memory.CompetitiveMemory._widen`."""
        self.memory_._widen(n_features)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "memory_")

    def __setstate__(self, state: dict[str, Any]) -> None:
        BaseEstimator.__setstate__(self, state)

    @reading
    def _export(self) -> dict[str, Any]:
        return {"memory": self.memory_._export(), "labels": self._labels}

    def _import(self, fields: dict[str, Any]) -> None:
        check_names(type(self).__name__, fields, ("memory", "labels"))
        memory = self._memory_type().set_params(**{name: getattr(self, name) for name in self._rules})
        memory._import(fields["memory"])
        labels = fields["labels"]
        check_vector("labels", labels)
        if len(np.unique(labels)) != len(labels) or not (memory._state.labels[: memory.n_units_] < len(labels)).all():
            raise ValueError(f"{type(self).__name__}: the labels of its units are damaged")
        self.memory_, self._labels = memory, labels
