"""River adapters: a memory as a clusterer, a classifier on a memory, and a memory with blocks as a drift
detector for vectors.

River's samples are dictionaries with varying features. A feature gets a column when it is first *learned* (features
that appear together are sorted, so the order of a dictionary has no effect):

* a feature that is absent from a sample, or whose value is None or NaN, is a missing reading for AdaptiveCCM (and for a
  classifier or detector on it); for the other models an absent feature counts as 0, and None or NaN is an error;
* a new feature extends every unit by a 0, as if the feature had always been 0. This is exact: the similarities and
  distances of earlier samples do not change, and all models except CCM and the fuzzy ones continue bit for bit as if
  the column had existed from the start. (Fuzzy ART and ARTMAP measure boxes relative to the number of columns; CCM
  draws unused slots in the columns known at that time; networks give a new column weights of 0.)
* a feature that appears only in ``predict_one`` is ignored, which cannot change the best matching unit.

A stream with an unlimited number of features needs a bound, such as River's ``preprocessing.FeatureHasher``.

>>> from river import preprocessing
>>> from ccmem import IncrementalWTA, ModalClassifier
>>> model = preprocessing.StandardScaler() | MemoryClassifier(ModalClassifier(IncrementalWTA(n_units=4)))
>>> for heat, label in [(1.0, "cold"), (9.0, "warm"), (2.0, "cold"), (8.0, "warm")]:
...     model.learn_one({"heat": heat}, label)
>>> model.predict_one({"heat": 7.5}), model.predict_one({"heat": 1.5, "wind": 3.0})
('warm', 'cold')
"""

from __future__ import annotations

import pickle
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import numpy as np

from ccmem import registry
from ccmem.base.memory import REJECTED, CompetitiveMemory
from ccmem.core.events import Event
from ccmem.core.locking import Guarded, learning, reading
from ccmem.core.sklearn import clone
from ccmem.core.typing import FloatArray
from ccmem.kernels.rows import SAFE_SQUARED_NORM, sum_of_squares
from ccmem.layers._windowed import WindowedLayer
from ccmem.layers.window import WindowLayer
from ccmem.models._blocks import BlockMemory
from ccmem.readout.gated import GatedMLP
from ccmem.readout.mlp import OnlineMLP
from ccmem.readout.modal import ModalClassifier

try:
    from river import base
except ImportError as problem:
    raise ImportError("ccmem.river needs River: pip install river") from problem

__all__ = ["ConceptDetector", "MemoryClassifier", "MemoryClusterer"]

Features = Mapping[Hashable, Any]
_TIMES = {np.datetime64, np.timedelta64}
"""Types that numpy converts to counts of an arbitrary unit."""


class _DictModel(Guarded):
    """Common base of the adapters: a scikit-learn style estimator that learns rows made from dictionaries."""

    seed: int | None

    def _start(self, estimator: Any) -> None:
        self._model = clone(estimator)
        self._columns: dict[Hashable, int] = {}
        self._began = False
        if self.seed is not None:
            seeds = [name for name in self._model.get_params() if name.rpartition("__")[2] == "random_state"]
            self._model.set_params(**dict.fromkeys(seeds, self.seed))

    @property
    def _raw_memory_usage(self) -> int:
        """Size of the pickled model in bytes; River's walk over references would reach compiled kernels."""
        return len(pickle.dumps(self._model))

    def _to_learn(self, x: Features) -> FloatArray | None:
        """Return ``x`` as a row, adding columns for its new features; None while no feature has been seen."""
        columns = self._columns
        if not isinstance(x, Mapping):
            raise TypeError(f"a sample is a dictionary of features, not {x!r}")
        if new := x.keys() - columns.keys():
            columns = columns | {name: len(columns) + i for i, name in enumerate(_in_order(new))}
        row = self._row(x, columns)  # validate first, so that an error changes nothing
        if new and self._began:
            self._model._widen(len(columns))
        self._columns = columns
        self._began = bool(columns)
        return row if self._began else None

    def _row(self, x: Features, columns: Mapping[Hashable, int]) -> FloatArray:
        """Return the values of ``x`` in the order of ``columns``; absent features are missing readings, otherwise 0."""
        missing = bool(getattr(getattr(self, "_front", None) or self._model, "_takes_missing", False))
        absent = np.nan if missing else 0.0
        try:
            values = [x.get(name, absent) for name in columns]
            row = np.array(values, np.float64)  # None becomes NaN
            if (
                row.ndim == 1
                and _TIMES.isdisjoint(map(type, values))
                and (sum_of_squares(row) < SAFE_SQUARED_NORM or (np.isfinite(row) | (missing & np.isnan(row))).all())
            ):
                return row
        except (TypeError, ValueError, OverflowError):
            pass
        except AttributeError as problem:
            raise TypeError(f"a sample is a dictionary of features, not {x!r}") from problem
        for name, value in x.items():
            try:
                fine = (missing and (value is None or value != value)) or bool(np.isfinite(float(value)))
                fine = fine and type(value) not in _TIMES
            except (TypeError, ValueError, OverflowError):
                fine = False
            if not fine:
                raise ValueError(
                    f"feature {name!r} is {value!r}, which is not a finite number; encode or impute it first "
                    "(River: preprocessing.OneHotEncoder, preprocessing.StatImputer)"
                )
        raise ValueError(f"{x!r} does not make a row of numbers")


def _in_order(names: set[Hashable]) -> list[Hashable]:
    try:
        return sorted(names)  # type: ignore[type-var]
    except TypeError:  # names of different types cannot be sorted
        return sorted(names, key=lambda name: (str(name), type(name).__name__))


class MemoryClusterer(_DictModel, base.Clusterer):
    """River clusterer on any memory: the cluster of a sample is its best matching unit.

    Parameters
    ----------
    memory
        A memory of ccmem, such as ``AdaptiveCCM()``. It is cloned, and the clone ``memory_`` learns.
    seed
        If not None, replaces the memory's ``random_state``.

    Examples
    --------
    >>> from ccmem import ARTC2A
    >>> model = MemoryClusterer(ARTC2A(vigilance=0.9))
    >>> for x in [{"east": 2.0}, {"north": 5.0}, {"east": 1.0, "north": 0.1}]:
    ...     model.learn_one(x)
    >>> model.predict_one({"north": 1.0, "up": 0.2}), model.memory_.win_counts_.tolist()
    (1, [2, 1])
    """

    def __init__(self, memory: CompetitiveMemory, seed: int | None = None) -> None:
        if not isinstance(memory, CompetitiveMemory):
            raise TypeError(f"MemoryClusterer: memory={memory!r} is not a memory of ccmem, such as AdaptiveCCM()")
        self.memory = memory
        self.seed = seed
        self._start(memory)

    @property
    def memory_(self) -> CompetitiveMemory:
        """Memory that learns."""
        return self._model

    @property
    @reading
    def centers(self) -> dict[int, dict[Hashable, float]]:
        """Prototypes of all units that may win, by unit, in the form that River's clustering metrics expect."""
        if not self._began:
            return {}
        able = np.flatnonzero(self.memory_._may_win())
        return {int(u): dict(zip(self._columns, self.memory_._state.prototypes[u].tolist(), strict=True)) for u in able}

    @learning
    def learn_one(self, x: Features) -> None:
        row = self._to_learn(x)
        if row is not None:
            self._model.learn_one(row)

    @reading
    def predict_one(self, x: Features) -> int:
        """Return the best matching unit of ``x``, or -1 while there is none."""
        if not self._began or self.memory_.n_units_ == 0:
            return REJECTED
        return int(self._model.predict_one(self._row(x, self._columns)))

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield from ({"memory": registry.load(name)()} for name in registry.MEMORIES)


class MemoryClassifier(_DictModel, base.Classifier):
    """River classifier on a classifier of ccmem: new labels may appear at any time, or be missing (``y=None``).

    Parameters
    ----------
    classifier
        A classifier of ccmem: ``ModalClassifier(CCM())``, ``GatedMLP(CCM())`` or ``OnlineMLP()``. It is cloned, and the
        clone ``classifier_`` learns. Put a scaler before a network.
    seed
        If not None, replaces every ``random_state`` inside the classifier.

    Examples
    --------
    >>> from ccmem import CCM, ModalClassifier
    >>> model = MemoryClassifier(ModalClassifier(CCM(n_slots=4)), seed=0)
    >>> model.predict_one({"a": 1.0}), model.predict_proba_one({"a": 1.0})
    (None, {})
    >>> for x, y in [({"a": 1.0}, "first"), ({"b": 1.0}, "second"), ({"a": 0.9, "b": 0.1}, None)] * 20:
    ...     model.learn_one(x, y)
    >>> model.predict_one({"a": 1.0}), model.predict_one({"b": 2.0, "c": 0.1})
    ('first', 'second')
    """

    def __init__(self, classifier: Any, seed: int | None = None) -> None:
        if not (hasattr(classifier, "_widen") and hasattr(classifier, "predict_proba")):
            raise TypeError(
                f"MemoryClassifier: classifier={classifier!r} is not a classifier of ccmem, such as "
                "ModalClassifier(CCM())"
            )
        self.classifier = classifier
        self.seed = seed
        self._start(classifier)

    @property
    def classifier_(self) -> Any:
        """Classifier that learns."""
        return self._model

    @learning
    def learn_one(self, x: Features, y: Any = None) -> None:
        row = self._to_learn(x)
        if row is not None:
            self._model.learn_one(row, y)

    @reading
    def predict_proba_one(self, x: Features, **kwargs: Any) -> dict[Any, float]:
        """Return the probability of every label seen so far; all equal while no unit has a label."""
        if not self._began:
            return {}
        labels = self._model.classes_.tolist()
        if not labels:
            return {}
        if isinstance(self._model, ModalClassifier) and not self._model._votes.any():
            return {label: 1.0 / len(labels) for label in labels}
        shares = self._model.predict_proba(self._row(x, self._columns).reshape(1, -1))[0]
        return dict(zip(labels, shares.tolist(), strict=True))

    @reading
    def predict_one(self, x: Features, **kwargs: Any) -> Any:
        """Return the most probable label, or None while there is none."""
        if not self._began or not len(self._model.classes_):
            return None
        if isinstance(self._model, ModalClassifier) and not self._model._votes.any():
            return self._model.classes_[:1].tolist()[0]
        label = self._model.predict_one(self._row(x, self._columns))
        return label.item() if isinstance(label, np.generic) else label

    @property
    def _multiclass(self) -> bool:
        return True

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield from ({"classifier": ModalClassifier(registry.load(name)())} for name in registry.MEMORIES)
        yield from ({"classifier": registry.load(name)()} for name in ("LVQ", "ARTMAP"))
        # River's checks do not scale their data, so large steps would diverge
        yield {"classifier": GatedMLP(learning_rate=1e-5)}
        yield {"classifier": OnlineMLP(learning_rate=1e-5)}


class ConceptDetector(_DictModel, base.DriftDetector):
    """Multivariate drift detector on a memory with blocks: distinguishes new concepts from returning ones.

    After each :meth:`update`, ``drift_detected`` is True if the concept changed with this sample; then either
    ``new_concept_detected`` or ``recall_detected`` is True. ``concept`` is the number of the current concept; a known
    concept that returns keeps its number. Concepts are distinguished by direction (cosine), so centre or scale the
    features first if their size matters.

    Parameters
    ----------
    memory
        A memory with blocks; None means ``AdaptiveCCM(n_slots=10)``, which needs no thresholds. With thresholds tuned
        to the data, the paper's model reacts sooner: ``CCM(n_slots=1, commit_limit=20, alarm_limit=10,
        recall_limit=5)`` if one prototype represents a concept, more slots if a concept has several kinds of samples.
        Unneeded slots stay open, and learn the next concept without an alarm.
    seed
        If not None, replaces the memory's ``random_state``.
    window
        Number of samples per window, or "auto", for samples that form a signal (see :class:`ccmem.WindowLayer`): a
        change of period, waveform or correlation is then a change of concept. Pass ``ShapeLayer()`` to learn shapes
        instead. With windows, the features are fixed by the first sample.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> detector = ConceptDetector()
    >>> calm, storm = [1.0, 0.0, 0.1], [0.0, 1.0, 0.9]
    >>> for step, weather in enumerate([calm] * 300 + [storm] * 300 + [calm] * 300):
    ...     detector.update(rng.normal(weather, 0.2))
    ...     if detector.drift_detected:
    ...         print(step, "new" if detector.new_concept_detected else "back to", detector.concept)
    351 new 1
    671 back to 0
    """

    def __init__(self, memory: BlockMemory | None = None, seed: int | None = None, window: Any = None) -> None:
        super().__init__()
        if memory is not None and not isinstance(memory, BlockMemory):
            raise TypeError(f"ConceptDetector: memory={memory!r} has no blocks; use AdaptiveCCM()")
        self.memory = memory
        self.seed = seed
        self.window = window
        layer = window if isinstance(window, WindowedLayer) else WindowLayer(window)
        self._front = None if window is None else clone(layer)
        self._event: Event | None = None
        self._start(registry.load("AdaptiveCCM")(n_slots=10) if memory is None else memory)

    @property
    def memory_(self) -> BlockMemory:
        """Memory that learns."""
        return self._model

    @learning
    def update(self, x: Any) -> None:
        """Learn one sample: a dictionary of features, or a vector; do not mix the two."""
        row: FloatArray | None
        if not isinstance(x, Mapping):
            row = np.asarray(x)
            self._began = True
        elif self._front is not None and self._began:
            if new := x.keys() - self._columns.keys():
                raise ValueError(
                    f"ConceptDetector: the features of a signal cannot change; {_in_order(new)[0]!r} is new"
                )
            row = self._row(x, self._columns)
        else:
            row = self._to_learn(x)
        self._event = None
        if row is not None:
            # the history is a ring whose length stays constant when it is full, so compare the pointer instead
            before = self.concept
            if self._front is None:
                self._model.learn_one(row)
            elif len(windows := self._front.push(row.reshape(1, -1))):
                self._front.set_overlap(self._model)
                self._model.partial_fit(windows)
            history: Any = getattr(self._model, "_history", ())  # no history before the first window
            if self.concept != before:
                self._event = history[-1] if self._front is None else self._front.event_in_rows(history[-1])
            elif self._front is None and history and history[-1].step == self.memory_.n_samples_seen_ - 1:
                self._event = history[-1]  # an event of a column
        self._drift_detected = self._event is not None and self._event.changes_block

    @property
    def concept(self) -> int:
        """Number of the concept (block) the stream is in; 0 at the start."""
        return self.memory_.task_pointer_ if hasattr(self._model, "_state") else 0

    @property
    def event(self) -> Event | None:
        """Event triggered by the last sample, or None; its ``step`` counts samples from 0."""
        return self._event

    @property
    def new_concept_detected(self) -> bool:
        """True if the last sample started a new concept."""
        return self._event is not None and self._event.kind == "new_block"

    @property
    def recall_detected(self) -> bool:
        """True if the last sample brought back a known concept."""
        return self._event is not None and self._event.kind == "recall"

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}
        yield {"window": 16}
