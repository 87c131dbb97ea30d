"""Base of classifiers whose memory gives every unit a label: label codes, prediction and saving."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from ccmem.base.classifier import OnlineClassifier, OnMemory
from ccmem.base.estimator import Summarised
from ccmem.base.storage import check_names, check_vector
from ccmem.core.codes import UNLABELED
from ccmem.core.labels import check_labels, encode_labels, sorted_union
from ccmem.core.locking import learning, reading, share_guard
from ccmem.core.sklearn import BaseEstimator
from ccmem.core.typing import FloatArray, IntArray


class LabelledUnits(OnMemory, Summarised, OnlineClassifier):
    """Classifier over a memory with an array ``labels`` of codes in its state and a method ``_learn_labelled``.

    New classes may appear at any time. A row without a label (None or NaN) is counted, but not learned.
    """

    _memory_type: ClassVar[type[Any]]
    _labels: Any
    unlabeled = None

    @learning
    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> Self:
        """Learn the rows of ``X`` in order, with their labels. ``classes`` is ignored."""
        self._teach(X, y)
        return self

    @learning
    def learn_one(self, x: Any, y: Any = None) -> int:
        """Learn one sample; return the unit that learned it, or -1 if none did (always without a label)."""
        return int(self._learn_one(x, y))

    def _check_one(self, x: Any) -> None:
        """Return None: every row takes the way of a chunk."""

    def _teach(self, X: Any, y: Any, classes: Any = None) -> IntArray:
        """Learn a chunk, or raise and leave the state unchanged."""
        memory = getattr(self, "memory_", None) or self._memory_type()
        memory.set_params(**{name: getattr(self, name) for name in self._rules})
        rows = memory._check_chunk(X)
        labels, missing = check_labels(y, len(rows))
        known = self._labels if self.__sklearn_is_fitted__() else labels[:0]
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

    def _taught(self) -> Any:
        """Return the memory; raise if nothing has been learned yet."""
        self._require_start()
        return self.memory_

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
