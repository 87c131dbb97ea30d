"""Layers and what stands on them, as one model that streams.

    x -> layer -> ... -> layer -> last          a classifier, or a memory

A layer learns from the first samples only. Until all layers stand still their features would change, so the samples
wait, with their labels, in a buffer; then they go through the finished layers to ``last`` in the order they came. A
class that was seen only while a layer learned is therefore not lost. The buffer is bounded by what the layers need,
counts among ``n_floats_`` while it exists, and is dropped when they stand still. Answers before that come from a copy
that is built from the buffer.

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

from ccmem._sklearn import BaseEstimator, available_if, clone
from ccmem._typing import FloatArray
from ccmem.base import CompetitiveMemory
from ccmem.estimator import SavedEstimator
from ccmem.guard import learning, reading, share_guard
from ccmem.kernels.rows import check_finite
from ccmem.labels import check_labels, encode_labels, sorted_union
from ccmem.layers.window import WindowLayer
from ccmem.memory import Event

_ROWS_AT_ONCE = 64
"""How many samples go through the layers together: features of so many are held at a time."""


def _last_has(method: str) -> Callable[[Any], bool]:
    return lambda stack: hasattr(stack.last, method)


class Stack(SavedEstimator, BaseEstimator):  # type: ignore[misc]
    """Layers and a classifier or memory on top, learned sample by sample as one model.

    Parameters
    ----------
    layers : sequence of layers, such as :class:`ccmem.PatchLayer`
        From the data upwards. They are cloned, not changed; those that learn are ``layers_``.
    last : a classifier with ``partial_fit``, or a memory
        What learns from the features; cloned too, as ``last_``.

    Attributes
    ----------
    layers_, last_ : what has learned.
    waiting_ : int, how many samples wait for the layers to stand still.
    n_floats_ : int, how many numbers are kept, samples that wait among them.
    working_floats_ : int, how many more are needed while learning or answering.
    """

    layers_: list[Any]
    last_: Any
    _rows: FloatArray
    _labels: list[Any]
    _classes: Any
    _layers_learned: bool
    _provisional: Any

    def __init__(self, layers: Sequence[Any], last: Any) -> None:
        self.layers = layers
        self.last = last

    # Learning ----------------------------------------------------------------------------------------------------

    @learning
    def fit(self, X: Any, y: Any = None) -> Self:
        """Forget everything, then learn the samples in ``X`` in order."""
        self._learn_anew(X, y, None)
        return self

    @learning
    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> Self:
        """Learn the samples in ``X`` in order; how a stream is cut into chunks changes nothing."""
        if self.__sklearn_is_fitted__():
            self._teach(X, y, classes)
        else:
            self._learn_anew(X, y, classes)
        return self

    @learning
    def learn_one(self, x: Any, y: Any = None) -> None:
        """Learn one sample, with its label if it has one."""
        if self.__sklearn_is_fitted__() and self._layers_learned and not self._of_windows():
            features = self._features(self.layers_[0]._check(np.asarray(x)[np.newaxis]))[0]
            if isinstance(self.last_, CompetitiveMemory):
                self.last_.learn_one(features)
            else:
                self.last_.learn_one(features, y)
            return
        labels = None if y is None else np.array([y], dtype=object if isinstance(y, str) else None)
        self.partial_fit(np.asarray(x)[np.newaxis], labels)

    def on_event(self, callback: Callable[[Event], Any]) -> Callable[[Event], Any]:
        """Call ``callback(event)`` for every new block and recall of the memory on top, while layers wait or later."""
        tell = callback
        if self._of_windows():  # steps count rows, as everywhere

            def tell(event: Event) -> Any:
                return callback(self._in_rows(event))

        memories = [getattr(last, "memory", last) for last in (self.last, getattr(self, "last_", self.last))]
        memories += [self.last_.memory_] if hasattr(getattr(self, "last_", None), "memory_") else []
        for memory in {id(memory): memory for memory in memories}.values():
            memory.on_event(tell)
        return callback

    def _learn_anew(self, X: Any, y: Any, classes: Any) -> None:
        """Learn a first chunk in a copy, so that one that cannot be learned leaves no trace."""
        fresh = clone(self)
        share_guard(self, fresh)  # so that events are told when all is done
        fresh._teach(X, y, classes)
        self._adopt(fresh)

    def _teach(self, X: Any, y: Any, classes: Any) -> None:
        """Learn a chunk; nothing changes unless all of it can be learned."""
        if not self.__sklearn_is_fitted__():
            self._begin()
        first = self.layers_[0]
        if self._of_windows():
            if y is not None:
                raise ValueError("Stack: windows of a signal are learned without labels; leave out y")
            windows = first.push(X)
            self._layers_learned = first.frozen_
            if len(windows):
                self.last_.partial_fit(windows)
            return
        rows = first._check(X) if first.__sklearn_is_fitted__() else first._begin(X)
        labels, codes, values = self._check_labels(y, len(rows), classes)
        for layer in self.layers_:
            if layer.__sklearn_is_fitted__():
                layer._check_settings()
        self._provisional = None
        done = 0 if self._layers_learned else self._hold_until_layers_learned(rows, labels, classes)
        self._classes = classes
        coded = codes is not None and hasattr(self.last_, "_teach_coded")
        for start in range(done, len(rows), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            features = self._features(rows[part])
            if coded and self._knows(classes):  # labels are looked at once, and not for every few rows
                self.last_._teach_coded(features, codes[part], values)
            else:
                self._teach_last(self.last_, features, None if labels is None else labels[part])

    def _knows(self, classes: Any) -> bool:
        """Whether ``last`` has begun and need not be told of ``classes``."""
        known = getattr(self.last_, "classes_", None)
        return known is not None and (classes is None or bool(np.isin(classes, known).all()))

    def _begin(self) -> None:
        if not isinstance(self.layers, (list, tuple)) or not self.layers:
            raise TypeError(f"Stack: layers={self.layers!r} is not possible; it must be a list of at least one layer")
        for layer in self.layers:
            if not hasattr(type(layer), "frozen_"):
                raise TypeError(f"Stack: {layer!r} is not a layer; pass one such as PatchLayer()")
        if not hasattr(self.last, "partial_fit"):
            raise TypeError(f"Stack: last={self.last!r} cannot learn from a stream: it has no partial_fit")
        alone = len(self.layers) == 1 and isinstance(self.last, CompetitiveMemory)
        if not alone and any(isinstance(layer, WindowLayer) for layer in self.layers):
            raise TypeError("Stack: a WindowLayer stands alone, below a memory")
        self.layers_ = [clone(layer) for layer in self.layers]
        self.last_ = clone(self.last)
        share_guard(self, self.last_)
        self._rows = np.empty((0, 0), np.float32)
        self._labels = []
        self._classes = None
        self._layers_learned = False
        self._provisional = None

    def _of_windows(self) -> bool:
        return bool(self.layers) and isinstance(self.layers[0], WindowLayer)

    def _in_rows(self, event: Event) -> Event:
        return self.layers_[0].event_in_rows(event) if self._of_windows() else event

    def _check_labels(self, y: Any, n_rows: int, classes: Any) -> tuple[Any, Any, Any]:
        """Labels that ``last`` will not refuse, also after those that wait; as places among their values, too."""
        if isinstance(self.last_, CompetitiveMemory):
            return None, None, None
        unlabeled = getattr(self.last_, "unlabeled", None)
        labels, missing = check_labels(y, n_rows, unlabeled)
        waiting, without = check_labels(self._labels, len(self._labels), unlabeled)
        known = getattr(self.last_, "classes_", waiting[:0])
        sorted_union(known, waiting[~without], labels[~missing], np.asarray([] if classes is None else classes))
        values = np.unique(labels[~missing])
        codes = encode_labels(labels, missing, values)
        if missing.any():
            labels = labels.astype(object)
            labels[missing] = None
        return labels, codes, values

    def _hold_until_layers_learned(self, rows: FloatArray, labels: Any, classes: Any) -> int:
        """Let rows wait until the layers stand still, then teach ``last`` all of them; return how many were used."""
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
        """Teach every layer the rows that wait and that it has not seen, as long as those below stand still."""
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
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            self._teach_last(last, self._features(rows[part]), labels[part] or None)

    def _teach_last(self, last: Any, features: FloatArray, labels: Any) -> None:
        if isinstance(last, CompetitiveMemory):
            last.partial_fit(features)
        elif self._classes is not None:
            last.partial_fit(features, labels, classes=self._classes)
        else:
            last.partial_fit(features, labels)

    def _features(self, rows: FloatArray) -> FloatArray:
        for layer in self.layers_:
            rows = layer.transform(rows)
        return rows

    # Reading -----------------------------------------------------------------------------------------------------

    @reading
    def transform(self, X: Any) -> FloatArray:
        """Features of every sample, as the layers give them now."""
        self._require_start()
        if self._of_windows():
            return self.layers_[0].transform(X)
        return self._features(self.layers_[0]._check(X))

    @reading
    def predict(self, X: Any) -> Any:
        """What ``last`` answers to every sample: its label, or the best matching unit of a memory."""
        return self._ask("predict", X)

    @reading
    def predict_one(self, x: Any) -> Any:
        """As :meth:`predict`, for one sample."""
        return self.predict(np.asarray(x)[np.newaxis])[0]

    @available_if(_last_has("predict_proba"))  # type: ignore[untyped-decorator]
    @reading
    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of every class for every sample."""
        return self._ask("predict_proba", X)

    @reading
    def score(self, X: Any, y: Any) -> float:
        """Part of the samples whose label is predicted."""
        return float(np.mean(self.predict(X) == np.asarray(y)))

    def _ask(self, method: str, X: Any) -> Any:
        self._require_start()
        ask = getattr(self._last_now(), method)
        if self._of_windows():  # one answer a window: see WindowLayer.transform
            return ask(self.layers_[0].transform(X))
        rows = self.layers_[0]._check(X)
        parts = [
            ask(self._features(rows[start : start + _ROWS_AT_ONCE])) for start in range(0, len(rows), _ROWS_AT_ONCE)
        ]
        return np.concatenate(parts)

    def _last_now(self) -> Any:
        """``last_``; while samples wait, one that has learned them from the layers as they are."""
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
        """Events of the memory on top; behind windows, each has the step of the row that completed its window."""
        self._require_start(AttributeError)
        last = self._last_now()
        return [self._in_rows(event) for event in getattr(last, "memory_", last).events_]

    @property
    @reading
    def waiting_(self) -> int:
        """How many samples wait for the layers to stand still."""
        self._require_start()
        if self._of_windows():
            return 0 if self._layers_learned else len(self.layers_[0]._rows)
        return len(self._rows)

    @property
    @reading
    def classes_(self) -> Any:
        """The labels seen so far, sorted, if ``last`` is a classifier."""
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
        """How many numbers are kept, samples that wait among them."""
        self._require_start()
        started = [part for part in (*self.layers_, self.last_) if part.__sklearn_is_fitted__()]
        return sum(part.n_floats_ for part in started) + self._rows.size + len(self._labels)

    @property
    @reading
    def working_floats_(self) -> int:
        """How many more numbers are needed while learning or answering."""
        self._require_start()
        started = [part for part in (*self.layers_, self.last_) if part.__sklearn_is_fitted__()]
        features = sum(_ROWS_AT_ONCE * layer._n_features_out for layer in self.layers_)
        return sum(getattr(part, "working_floats_", 0) for part in started) + features

    def _adopt(self, fresh: Self) -> None:
        """Take over all that ``fresh`` has learned."""
        names = ("layers_", "last_", "_rows", "_labels", "_classes", "_layers_learned", "_provisional")
        self.__dict__.update((name, vars(fresh)[name]) for name in names)
        share_guard(self, self.last_)

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
        from ccmem.persistence.memories import check_names, check_vector

        check_names("Stack", fields, ("layers_", "last_", "rows", "labels", "classes", "layers_learned"))
        layers, last, rows, labels = (fields[name] for name in ("layers_", "last_", "rows", "labels"))
        kinds = [type(layer) for layer in layers] if isinstance(layers, list) else []
        if not isinstance(self.layers, (list, tuple)) or not kinds or kinds != [type(layer) for layer in self.layers]:
            raise ValueError("Stack: its layers are not those of its parameters")
        if type(last) is not type(self.last) or not layers[0].__sklearn_is_fitted__():
            raise ValueError("Stack: what stands on its layers is not what its parameters say")
        check_vector("labels", labels)
        if not (isinstance(rows, np.ndarray) and rows.dtype == np.float32 and rows.ndim == 2):
            raise ValueError("Stack: the samples that wait are damaged")
        learned = all(layer.__sklearn_is_fitted__() and layer.frozen_ for layer in layers)
        if fields["layers_learned"] is not learned or (learned and len(rows)) or len(labels) not in (0, len(rows)):
            raise ValueError("Stack: the samples that wait do not fit its layers")
        if learned and isinstance(layers[0], WindowLayer):
            n = layers[0]._n_features_out
            if getattr(last, "n_features_in_", n) != n:  # windows of several channels have had fewer features
                raise ValueError(
                    f"Stack: its memory has learned {last.n_features_in_} features of windows that have {n}"
                )
        if len(rows):
            if rows.shape[1] != layers[0].n_features_in_:
                raise ValueError("Stack: the samples that wait do not fit its layers")
            check_finite(rows)
        if fields["classes"] is not None:
            check_vector("classes", fields["classes"])
        self.layers_, self.last_, self._rows, self._labels = layers, last, rows, list(labels)
        self._classes, self._layers_learned, self._provisional = fields["classes"], learned, None
        self._check_labels(None, 0, None)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "last_")
