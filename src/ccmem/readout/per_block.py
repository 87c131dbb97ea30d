"""One predictor per block of a memory: any classifier or regressor, recalled with the block it learned in.

The memory sees the columns and never a label. When the memory creates a block, the predictor of the nearest known block
is copied and continues from there; when the memory recalls a block, the predictor of that block continues. The nearest
block has the smallest squared distance between mean prototypes, in units of the spread of all prototypes per column.

This helps if the labels depend on the regime that the memory recognises. If the relation between columns and labels is
stable, each predictor sees fewer rows, and accuracy changes little or drops (docs/which_memory.md has figures).

>>> import numpy as np
>>> from sklearn.naive_bayes import GaussianNB
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(900, 3)) + np.repeat([[9.0, 0.0, 0.0], [0.0, 9.0, 0.0], [9.0, 0.0, 0.0]], 300, axis=0)
>>> y = (X[:, 2] > 0) ^ (np.arange(900) // 300 == 1)                    # the rule is reversed in the second regime
>>> model = Gated(estimator=GaussianNB()).partial_fit(X, y, classes=[False, True])
>>> sorted(model.estimators_), bool(np.mean(model.predict(X[-200:]) == y[-200:]) > 0.9)
([0, 1], True)
"""

from __future__ import annotations

import copy
import itertools
from typing import Any, ClassVar, Self

import numpy as np

from ccmem import registry
from ccmem.base.classifier import OnMemory
from ccmem.base.estimator import SavedEstimator, Summarised
from ccmem.base.memory import seeded_clone
from ccmem.base.storage import check_names, check_vector
from ccmem.core.labels import _is_missing
from ccmem.core.locking import learning, reading, share_guard
from ccmem.core.parameters import Rule, choice
from ccmem.core.sklearn import BaseEstimator, MetaEstimatorMixin, available_if, clone
from ccmem.core.typing import FloatArray, IntArray
from ccmem.models._blocks import BlockMemory
from ccmem.models.adaptive import AdaptiveCCM
from ccmem.readout.discriminant import DiscriminantClassifier


def _has_probabilities(owner: Gated) -> bool:
    inner = owner._inner()
    return hasattr(inner, "predict_proba") or hasattr(inner, "predict_proba_one")


class Gated(OnMemory, SavedEstimator, Summarised, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Classifier or regressor with a separate copy for every block of a memory.

    Parameters
    ----------
    memory : a memory with blocks or None, default=None
        Memory that selects the block; None means ``AdaptiveCCM()``. It is cloned, and the clone ``memory_`` learns.
    estimator : classifier or regressor or None, default=None
        Predictor of scikit-learn (with ``partial_fit``), of River (with ``learn_one``) or of ccmem; None means
        ``DiscriminantClassifier()``. It is cloned.
    gate : "stream" or "row", default="stream"
        Predictor to use: that of the current block, or that of the block of each row's best matching unit.

    Attributes
    ----------
    memory_ : the fitted memory.
    estimators_ : dict, block -> fitted predictor of the block.

    Notes
    -----
    Labels may be missing (None or NaN): the memory learns such rows, predictors do not. Rows of one call that belong to
    the same block are passed to its predictor together. scikit-learn's classifiers must know all classes from the
    start: announce them with ``partial_fit(X, y, classes=...)``.

    :meth:`save` works if the estimator is one of ccmem's. Estimators of other libraries can only be stored as pickles,
    which run code when they are loaded, and checkpoints never do: pickle such a model yourself, and load only pickles
    that you trust.
    """

    _rules: ClassVar[dict[str, Rule]] = {"gate": choice("stream", "row")}
    _shape_parameters: ClassVar[tuple[str, ...]] = ()
    _began_with: tuple[Any, ...] = ()
    memory_: BlockMemory
    estimators_: dict[int, Any]
    _classes: list[Any]

    def __init__(self, memory: BlockMemory | None = None, estimator: Any = None, *, gate: str = "stream") -> None:
        self._assign(locals())

    # Learning ----------------------------------------------------------------------------------------------------

    @learning
    def fit(self, X: Any, y: Any) -> Self:
        """Reset, then learn the rows of ``X`` and their labels or values in order."""
        if y is None:
            raise ValueError("Gated.fit requires y to be passed, but the target y is None; use partial_fit without y")
        known = [label for label in _values(y) if not _is_missing(label)]
        with self._anew():
            self._teach(X, y, sorted(set(known)) if _is_classifier(self._inner()) else None)
        return self

    @learning
    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> Self:
        """Learn the rows of ``X`` in order, with or without labels or values."""
        self._teach(X, y, classes)
        self.memory_._notify()
        return self

    @learning
    def learn_one(self, x: Any, y: Any = None) -> None:
        """Learn one sample, with or without a label or value."""
        self._teach(np.asarray(x).reshape(1, -1), [y], None)
        self.memory_._notify()

    def _teach(self, X: Any, y: Any, classes: Any) -> None:
        self._check_settings()
        first = not self.__sklearn_is_fitted__()
        memory = self._new_memory() if first else self.memory_
        rows = memory._check_chunk(X)
        labels = [None] * len(rows) if y is None else _values(y)
        if len(labels) != len(rows):
            raise ValueError(f"y has {len(labels)} labels for {len(rows)} rows of X; give one label per row")
        known = [place for place, label in enumerate(labels) if not _is_missing(label)]
        classes = self._announced(classes, {labels[place] for place in known}, first)
        if first:
            self.memory_, self.estimators_ = memory, {}
            share_guard(self, memory)
        self._classes = classes
        blocks = np.empty(len(rows), np.int64)
        for r in range(len(rows)):
            memory._learn(rows[r : r + 1])
            blocks[r] = memory.task_pointer_
            if blocks[r] not in self.estimators_:
                self.estimators_[int(blocks[r])] = self._new_estimator(int(blocks[r]))
        cuts = [0, *(np.flatnonzero(np.diff(blocks[known])) + 1), len(known)]
        for begin, end in itertools.pairwise(cuts):
            part = known[begin:end]
            if part:
                estimator = self.estimators_[int(blocks[part[0]])]
                self._teach_estimator(estimator, rows[part], [labels[place] for place in part])

    def _announced(self, classes: Any, labels: set[Any], first: bool) -> list[Any]:
        """Return the known classes; raise if a scikit-learn classifier would have to learn an unannounced class."""
        before = [] if first else self._classes
        if not _is_classifier(self._inner()):
            return before
        new = labels.union([] if classes is None else _values(classes)).difference(before)
        fixed = _is_fixed(self._inner()) and bool(before)
        if fixed and new:
            raise ValueError(
                f"Gated: label {min(new, key=str)!r} is new, but {type(self._inner()).__name__} has to know all "
                "classes from the start; announce them in the first call: partial_fit(X, y, classes=[...])"
            )
        return sorted([*before, *new])

    def _teach_estimator(self, estimator: Any, rows: FloatArray, labels: list[Any]) -> None:
        if not hasattr(estimator, "partial_fit"):
            for row, label in zip(rows, labels, strict=True):
                estimator.learn_one(self._features(row), label)
        elif _is_fixed(estimator) and not hasattr(estimator, "classes_"):
            estimator.partial_fit(rows, labels, classes=self._classes)
        else:
            estimator.partial_fit(rows, labels)

    def _features(self, row: FloatArray) -> dict[Any, float]:
        names = getattr(self.memory_, "feature_names_in_", None)
        return dict(zip(range(len(row)) if names is None else names, row.tolist(), strict=True))

    def _new_estimator(self, block: int) -> Any:
        """Return a copy of the predictor of the block nearest to ``block``, or a new predictor."""
        if not self.estimators_:
            inner = self._inner()
            return clone(inner) if hasattr(inner, "get_params") else copy.deepcopy(inner)
        return copy.deepcopy(self.estimators_[self._nearest(block)])

    def _nearest(self, block: int) -> int:
        memory = self.memory_
        prototypes, wins, owners = memory.prototypes_, memory.win_counts_, memory.unit_blocks_
        known = [b for b in self.estimators_ if wins[owners == b].any()]
        if not known or not wins[owners == block].any():
            return max(self.estimators_)
        spread = prototypes[wins > 0].std(axis=0)
        means = {b: np.average(prototypes[owners == b], axis=0, weights=wins[owners == b]) for b in (block, *known)}
        scale = np.where(spread > 0, spread, 1.0)
        return min(known, key=lambda b: float((((means[b] - means[block]) / scale) ** 2).sum()))

    # Reading -----------------------------------------------------------------------------------------------------

    @reading
    def predict(self, X: Any) -> Any:
        """Return the prediction for every row, by the predictor that the gate selects."""
        found = self._each(X, "predict", "predict_one")
        return np.array(found, dtype=object if any(isinstance(answer, str) for answer in found) else None)

    @reading
    def predict_one(self, x: Any) -> Any:
        """Return the prediction for one sample."""
        return self.predict(np.asarray(x).reshape(1, -1))[0]

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    @reading
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of every class in ``classes_`` for every row."""
        places = {label: place for place, label in enumerate(self._classes)}
        out = np.zeros((len(X), len(places)))
        for r, answer in enumerate(self._each(X, "predict_proba", "predict_proba_one")):
            for label, p in answer.items() if isinstance(answer, dict) else answer:
                out[r, places[label]] = p
        return out

    def _each(self, X: Any, many: str, one: str) -> list[Any]:
        self._require_start()
        rows = self.memory_._check(X, reset=False)
        blocks = self._blocks(rows)
        found: list[Any] = [None] * len(rows)
        for block in np.unique(blocks):
            estimator, places = self.estimators_[int(block)], np.flatnonzero(blocks == block)
            if hasattr(estimator, many):
                answers = getattr(estimator, many)(rows[places])
                if many == "predict_proba":
                    answers = [list(zip(estimator.classes_.tolist(), p, strict=True)) for p in answers.tolist()]
            else:
                answers = [getattr(estimator, one)(self._features(row)) for row in rows[places]]
            for place, answer in zip(places, answers, strict=True):
                found[place] = answer
        return found

    def _blocks(self, rows: FloatArray) -> IntArray:
        if self.gate == "row" and self.memory_.n_units_:
            blocks = self.memory_.unit_blocks_[self.memory_._winners(rows)]
            return np.where(np.isin(blocks, list(self.estimators_)), blocks, self.memory_.task_pointer_)
        return np.full(len(rows), self.memory_.task_pointer_)

    @property
    def classes_(self) -> Any:
        """Labels seen or announced so far, sorted."""
        self._require_start(AttributeError)
        return np.array(self._classes, dtype=object if any(isinstance(label, str) for label in self._classes) else None)

    def _inner(self) -> Any:
        return DiscriminantClassifier() if self.estimator is None else self.estimator

    def _new_memory(self) -> BlockMemory:
        memory = AdaptiveCCM() if self.memory is None else self.memory
        if not isinstance(memory, BlockMemory):
            raise TypeError(f"Gated: memory={memory!r} has no blocks; pass a memory with blocks, such as AdaptiveCCM()")
        if not (hasattr(self._inner(), "partial_fit") or hasattr(self._inner(), "learn_one")):
            raise TypeError(
                f"Gated: estimator={self._inner()!r} cannot learn from a stream; pass one with partial_fit "
                "(scikit-learn, ccmem) or learn_one (River)"
            )
        return seeded_clone(memory, None)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier" if _is_classifier(self._inner()) else "regressor"
        return tags

    @reading
    def _export(self) -> dict[str, Any]:
        if type(self._inner()).__name__ not in registry.ESTIMATORS:
            raise TypeError(
                f"Gated: {type(self._inner()).__name__} is not one of ccmem's estimators, and a checkpoint never runs "
                "code to rebuild others; use pickle for this model, and load only pickles that you trust"
            )
        blocks = sorted(self.estimators_)
        return {
            "memory_": self.memory_,
            "blocks": np.array(blocks, np.int64),
            "estimators": [self.estimators_[block] for block in blocks],
            "classes": self.classes_,
        }

    def _import(self, fields: dict[str, Any]) -> None:
        self._check_settings()
        check_names("Gated", fields, ("memory_", "blocks", "estimators", "classes"))
        memory, blocks, estimators = fields["memory_"], fields["blocks"], fields["estimators"]
        if not isinstance(memory, BlockMemory) or not hasattr(memory, "_state"):
            raise ValueError("Gated: its memory is not one with blocks that has learned")
        check_vector("blocks", blocks)
        check_vector("classes", fields["classes"])
        if blocks.dtype != np.int64 or not isinstance(estimators, list) or len(estimators) != len(blocks):
            raise ValueError("Gated: its predictors do not fit its blocks")
        inside = blocks.size and blocks.min() >= 0 and blocks.max() < memory.n_blocks_
        if not inside or memory.task_pointer_ not in blocks or len(set(blocks.tolist())) != len(blocks):
            raise ValueError("Gated: its predictors do not fit its blocks")
        if any(type(estimator) is not type(self._inner()) for estimator in estimators):
            raise ValueError("Gated: its predictors are not copies of its estimator")
        self.memory_, self._classes = memory, fields["classes"].tolist()
        self.estimators_ = dict(zip(blocks.tolist(), estimators, strict=True))


def _values(y: Any) -> list[Any]:
    return y.tolist() if hasattr(y, "tolist") else list(y)


def _is_classifier(estimator: Any) -> bool:
    kind = getattr(estimator, "_estimator_type", None)
    if kind is None and hasattr(estimator, "__sklearn_tags__"):
        kind = estimator.__sklearn_tags__().estimator_type
    return kind == "classifier" or hasattr(estimator, "predict_proba_one") or hasattr(estimator, "predict_proba")


def _is_fixed(estimator: Any) -> bool:
    """True if the classifier must know all classes from the start, as scikit-learn's classifiers must."""
    ours = type(estimator).__module__.startswith("ccmem.")
    return hasattr(estimator, "partial_fit") and _is_classifier(estimator) and not ours
