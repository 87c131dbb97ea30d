"""Layers and a classifier or memory on top of them, as one streaming model.

    x -> layer -> ... -> layer -> last          a classifier, or a memory

A layer learns from the first samples only, and its features change until it is fixed. Samples and labels are therefore
buffered until all layers are fixed; then they pass through the layers to ``last`` in their original order. The buffer
is bounded by the number of samples that the layers need, and is included in ``n_floats_``. Earlier predictions come
from a temporary copy of ``last`` that learns the buffered samples.

>>> import numpy as np
>>> from ccmem import DiscriminantClassifier, PatchLayer
>>> stripes = np.kron(np.eye(2)[:, [0, 1, 0, 1]], np.ones((1, 2)))              # two images: 8 columns, shifted stripes
>>> images = np.stack([np.tile(row, (8, 1)) for row in stripes] + [np.tile(row, (8, 1)).T for row in stripes])
>>> stack = Stack([PatchLayer(8, patch_size=3, grid=2, random_state=0)], DiscriminantClassifier())
>>> stack.partial_fit(images, ["standing", "standing", "lying", "lying"]).predict(images)
array(['standing', 'standing', 'lying', 'lying'], dtype=object)
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from ccmem.base.estimator import SavedEstimator
from ccmem.base.memory import CompetitiveMemory
from ccmem.base.validation import check_finite
from ccmem.core.events import Event
from ccmem.core.labels import check_labels, encode_labels, sorted_union
from ccmem.core.locking import learning, reading, share_guard
from ccmem.core.sklearn import BaseEstimator, available_if, clone
from ccmem.core.typing import FloatArray
from ccmem.layers._windowed import WindowedLayer

_ROWS_AT_ONCE = 64
"""Number of samples that pass through the layers together; bounds the number of features held at a time."""


def _parts(start: int, stop: int) -> list[slice]:
    """Return the slices of samples that pass through the layers together."""
    return [slice(first, first + _ROWS_AT_ONCE) for first in range(start, stop, _ROWS_AT_ONCE)]


def _last_has(method: str) -> Callable[[Any], bool]:
    return lambda stack: hasattr(stack.last, method)


class Stack(SavedEstimator, BaseEstimator):  # type: ignore[misc]
    """Layers with a classifier or memory on top, learned sample by sample as one model.

    Parameters
    ----------
    layers : sequence of layers, such as :class:`ccmem.PatchLayer`, or one layer of windows
        Layers in the order of the data flow. They are cloned, and the clones ``layers_`` learn. After a
        :class:`ccmem.ShapeLayer` or :class:`ccmem.WindowLayer` a sample is a window: its label is the majority label of
        its labelled rows, and there is one prediction per window.
    last : a classifier with ``partial_fit``, or a memory
        Model that learns from the features. It is cloned, and the clone ``last_`` learns.

    Attributes
    ----------
    layers_, last_ : the fitted layers and model.
    waiting_ : int, number of samples buffered until the layers are fixed.
    n_floats_ : int, number of floats kept, including buffered samples.
    working_floats_ : int, number of temporary floats needed to learn or predict.
    """

    _begun = "last_"
    _rows: FloatArray
    _labels: list[Any]

    def __init__(self, layers: Sequence[Any], last: Any) -> None:
        self.layers = layers
        self.last = last

    # Learning ----------------------------------------------------------------------------------------------------

    @learning
    def fit(self, X: Any, y: Any = None) -> Self:
        """Reset, then learn the samples in ``X`` in order."""
        with self._anew():
            self._teach(X, y, None)
        return self

    @learning
    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> Self:
        """Learn the samples in ``X`` in order; the result does not depend on chunk boundaries."""
        with self._first_chunk():
            self._teach(X, y, classes)
        return self

    @learning
    def learn_one(self, x: Any, y: Any = None) -> None:
        """Learn one sample, with or without a label."""
        if self.__sklearn_is_fitted__() and self._layers_learned and not self._of_windows():
            features = self._features(self.layers_[0]._check(np.asarray(x)[np.newaxis]))[0]
            self.last_.learn_one(*([features] if isinstance(self.last_, CompetitiveMemory) else [features, y]))
            return
        labels = None if y is None else np.array([y], dtype=object if isinstance(y, str) else None)
        self.partial_fit(np.asarray(x)[np.newaxis], labels)

    def on_event(self, callback: Callable[[Event], Any]) -> Callable[[Event], Any]:
        """Call ``callback(event)`` for every new block and recall of the memory, also before the layers are fixed."""
        report = callback
        if self._of_windows():  # steps count rows everywhere

            def report(event: Event) -> Any:
                return callback(self._in_rows(event))

        memories = [getattr(last, "memory", last) for last in (self.last, getattr(self, "last_", self.last))]
        memories += [self.last_.memory_] if hasattr(getattr(self, "last_", None), "memory_") else []
        for memory in {id(memory): memory for memory in memories}.values():
            memory.on_event(report)
        return callback

    def _teach(self, X: Any, y: Any, classes: Any) -> None:
        """Learn a chunk, or raise and leave the state unchanged."""
        if not self.__sklearn_is_fitted__():
            self._begin()
        first = self.layers_[0]
        if self._of_windows():
            self._teach_windows(X, y, classes)
            return
        rows = first._check(X) if first.__sklearn_is_fitted__() else first._begin(X)
        labels = self._check_labels(y, len(rows), classes)
        for layer in self.layers_:
            if layer.__sklearn_is_fitted__():
                layer._check_settings()
        self._provisional = None
        done = 0 if self._layers_learned else self._hold_until_layers_learned(rows, labels, classes)
        self._classes = classes
        for part in _parts(done, len(rows)):
            self._teach_last(self.last_, self._features(rows[part]), None if labels is None else labels[part])

    def _teach_windows(self, X: Any, y: Any, classes: Any) -> None:
        """Learn the windows completed by the rows of ``X``; labels are buffered as long as their rows."""
        layer = self.layers_[0]
        labels = self._check_labels(y, len(X), classes)
        if labels is None and y is not None:
            raise ValueError("Stack: a memory learns windows of a signal without labels; leave out y")
        windows = layer.push(X)
        if not isinstance(self.last_, CompetitiveMemory):
            waiting = [*self._labels, *([None] * len(X) if y is None else labels)]
            self._labels = waiting[len(windows) * (layer.hop_ or 0) :]
            labels = self._labels_of_windows(waiting) if len(windows) else None
        self._layers_learned, self._classes = layer.frozen_, classes
        if len(windows):
            layer.set_overlap(self.last_)
            self._teach_last(self.last_, windows, labels)

    def _labels_of_windows(self, y: Any) -> Any:
        """Return the label of every window from the labels of its rows, None for a window without a label."""
        labels, missing = check_labels(y, len(y), getattr(self.last_, "unlabeled", None))
        values = np.unique(labels[~missing])
        codes = self.layers_[0].labels_of_windows(encode_labels(labels, missing, values))
        found = np.full(len(codes), None, object)
        found[codes >= 0] = values[codes[codes >= 0]]
        return found

    def _begin(self) -> None:
        if not isinstance(self.layers, (list, tuple)) or not self.layers:
            raise TypeError(f"Stack: layers={self.layers!r} is not possible; it must be a list of at least one layer")
        for layer in self.layers:
            if not hasattr(type(layer), "frozen_"):
                raise TypeError(f"Stack: {layer!r} is not a layer; pass one such as PatchLayer()")
        if not hasattr(self.last, "partial_fit"):
            raise TypeError(f"Stack: last={self.last!r} cannot learn from a stream: it has no partial_fit")
        if len(self.layers) > 1 and any(isinstance(layer, WindowedLayer) for layer in self.layers):
            raise TypeError("Stack: a layer of windows must be the only layer; pass [ShapeLayer()] or [WindowLayer()]")
        self.layers_, self.last_ = [clone(layer) for layer in self.layers], clone(self.last)
        share_guard(self, self.last_)
        self._rows, self._labels, self._layers_learned = np.empty((0, 0), np.float32), [], False
        self._classes = self._provisional = None

    def _of_windows(self) -> bool:
        return bool(self.layers) and isinstance(self.layers[0], WindowedLayer)

    def _in_rows(self, event: Event) -> Event:
        return self.layers_[0].event_in_rows(event) if self._of_windows() else event

    def _check_labels(self, y: Any, n_rows: int, classes: Any) -> Any:
        """Return labels that ``last`` accepts together with the buffered ones; None if ``last`` takes no labels."""
        if isinstance(self.last_, CompetitiveMemory):
            return None
        unlabeled = getattr(self.last_, "unlabeled", None)
        labels, missing = check_labels(y, n_rows, unlabeled)
        waiting, without = check_labels(self._labels, len(self._labels), unlabeled)
        known = getattr(self.last_, "classes_", waiting[:0])
        sorted_union(known, waiting[~without], labels[~missing], np.asarray([] if classes is None else classes))
        return np.where(missing, None, labels) if missing.any() else labels

    def _hold_until_layers_learned(self, rows: FloatArray, labels: Any, classes: Any) -> int:
        """Buffer rows until the layers are fixed, then teach ``last`` all of them; return the number of rows used."""
        used = 0
        while used < len(rows) and not self._layers_learned:
            part = slice(used, used + self._still_needed())
            self._rows = np.concatenate([self._rows, rows[part]]) if len(self._rows) else rows[part].copy()
            if labels is not None:
                self._labels += list(labels[part])
            self._classes = classes
            used = min(part.stop, len(rows))
            self._layers_learned = self._teach_layers()
        if self._layers_learned:
            rows, labels, self._rows, self._labels = self._rows, self._labels, self._rows[:0], []
            self._teach_waiting(self.last_, rows, labels)
        return used

    def _still_needed(self) -> int:
        for layer in self.layers_:
            if not layer.__sklearn_is_fitted__():
                return 1
            if not layer.frozen_:
                return int(layer.still_needs_)
        return 0

    def _teach_layers(self) -> bool:
        """Teach every layer the buffered rows that it has not seen, as long as all layers below are fixed."""
        inputs = self._rows
        for layer in self.layers_:
            new = inputs[layer.n_samples_seen_ if layer.__sklearn_is_fitted__() else 0 :]
            if len(new):
                layer.partial_fit(new)
            if not layer.frozen_:
                return False
            inputs = layer.transform(inputs)
        return True

    def _teach_waiting(self, last: Any, rows: FloatArray, labels: list[Any]) -> None:
        for part in _parts(0, len(rows)):
            self._teach_last(last, self._features(rows[part]), labels[part] or None)

    def _teach_last(self, last: Any, features: FloatArray, labels: Any) -> None:
        if isinstance(last, CompetitiveMemory):
            last.partial_fit(features)
        else:
            last.partial_fit(features, labels, **({} if self._classes is None else {"classes": self._classes}))

    def _features(self, rows: FloatArray) -> FloatArray:
        for layer in self.layers_:
            rows = layer.transform(rows)
        return rows

    # Reading -----------------------------------------------------------------------------------------------------

    @reading
    def transform(self, X: Any) -> FloatArray:
        """Return the features of every sample, computed with the current layers."""
        self._require_start()
        return self._features(X if self._of_windows() else self.layers_[0]._check(X))

    @reading
    def predict(self, X: Any) -> Any:
        """Return the prediction of ``last`` for every sample: a label, or the best matching unit of a memory."""
        return self._ask("predict", X)

    @reading
    def predict_one(self, x: Any) -> Any:
        """Return the prediction for one sample, as :meth:`predict` does."""
        return self.predict(np.asarray(x)[np.newaxis])[0]

    @available_if(_last_has("predict_proba"))  # type: ignore[untyped-decorator]
    @reading
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of every class for every sample."""
        return self._ask("predict_proba", X)

    @reading
    def score(self, X: Any, y: Any) -> float:
        """Return the accuracy; with windows, the accuracy over the windows that have a label."""
        y = self._labels_of_windows(y) if self._of_windows() else np.asarray(y)
        return float(np.mean((self.predict(X) == y)[y != np.array(None)]))

    def _ask(self, method: str, X: Any) -> Any:
        self._require_start()
        answer = getattr(self._last_now(), method)
        if not self._of_windows():
            rows = self.layers_[0]._check(X)
            return np.concatenate([answer(self._features(rows[part])) for part in _parts(0, len(rows))])
        windows = self._features(X)  # one prediction per window
        if not len(windows):
            raise ValueError(f"Stack: {len(X)} rows are fewer than a window of {self.layers_[0].window_}; give more")
        return answer(windows)

    def _last_now(self) -> Any:
        """Return ``last_`` or, while samples are buffered, a copy that has learned them from the current layers."""
        if self._layers_learned:
            return self.last_
        if self._provisional is None:
            last = copy.deepcopy(self.last_)
            if all(layer.__sklearn_is_fitted__() for layer in self.layers_):
                self._teach_waiting(last, self._rows, self._labels)
            self._provisional = last
        return self._provisional

    @property
    @reading
    def events_(self) -> list[Event]:
        """Events of the memory; with windows, each has the step of the row that completed its window."""
        self._require_start(AttributeError)
        last = self._last_now()
        return [self._in_rows(event) for event in getattr(last, "memory_", last).events_]

    @property
    @reading
    def waiting_(self) -> int:
        """Number of samples buffered until the layers are fixed."""
        self._require_start()
        buffered = self.layers_[0]._rows if self._of_windows() and not self._layers_learned else self._rows
        return len(buffered)

    @property
    @reading
    def classes_(self) -> Any:
        """Labels seen so far, sorted, if ``last`` is a classifier."""
        self._require_start(AttributeError)
        return self._last_now().classes_

    @property
    def n_features_in_(self) -> int:
        """Number of columns of ``X``."""
        self._require_start(AttributeError)
        return int(self.layers_[0].n_features_in_)

    @property
    @reading
    def n_floats_(self) -> int:
        """Number of floats kept, including buffered samples."""
        self._require_start()
        return sum(part.n_floats_ for part in self._started()) + self._rows.size + len(self._labels)

    @property
    @reading
    def working_floats_(self) -> int:
        """Number of temporary floats needed to learn or predict."""
        self._require_start()
        features = sum(_ROWS_AT_ONCE * layer._n_features_out for layer in self.layers_)
        return sum(getattr(part, "working_floats_", 0) for part in self._started()) + features

    def _started(self) -> list[Any]:
        return [part for part in (*self.layers_, self.last_) if part.__sklearn_is_fitted__()]

    @reading
    def _export(self) -> dict[str, Any]:
        labels = np.empty(len(self._labels), object)
        labels[:] = self._labels
        return {
            "layers_": list(self.layers_),
            "last_": self.last_,
            "rows": self._rows,
            "labels": labels,
            "classes": None if self._classes is None else np.asarray(self._classes),
            "layers_learned": self._layers_learned,
        }

    def _import(self, fields: dict[str, Any]) -> None:
        from ccmem.base.storage import check_names, check_vector

        check_names("Stack", fields, ("layers_", "last_", "rows", "labels", "classes", "layers_learned"))
        layers, last, rows, labels = (fields[name] for name in ("layers_", "last_", "rows", "labels"))
        kinds = [type(layer) for layer in layers] if isinstance(layers, list) else []
        if not isinstance(self.layers, (list, tuple)) or not kinds or kinds != [type(layer) for layer in self.layers]:
            raise ValueError("Stack: its layers are not those of its parameters")
        if type(last) is not type(self.last) or not layers[0].__sklearn_is_fitted__():
            raise ValueError("Stack: its last part is not of the kind that its parameters name")
        check_vector("labels", labels)
        if fields["classes"] is not None:
            check_vector("classes", fields["classes"])
        if not (isinstance(rows, np.ndarray) and rows.dtype == np.float32 and rows.ndim == 2):
            raise ValueError("Stack: its buffered samples are damaged")
        learned = all(layer.__sklearn_is_fitted__() and layer.frozen_ for layer in layers)
        windowed = isinstance(layers[0], WindowedLayer)
        waiting = layers[0]._rows if windowed else rows
        fits = fields["layers_learned"] is learned and len(labels) in (0, len(waiting)) and not (learned and len(rows))
        if not fits or (len(rows) and rows.shape[1] != layers[0].n_features_in_):
            raise ValueError("Stack: its buffered samples do not fit its layers")
        check_finite(rows)
        n = layers[0]._n_features_out if learned and windowed else None
        if n is not None and getattr(last, "n_features_in_", n) != n:  # older checkpoints may have other features
            raise ValueError(f"Stack: its memory has learned {last.n_features_in_} features of windows that have {n}")
        self.layers_, self.last_, self._rows, self._labels = layers, last, rows, list(labels)
        self._classes, self._layers_learned, self._provisional = fields["classes"], learned, None
        self._check_labels(None, 0, None)
