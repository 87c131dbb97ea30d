"""From units to labels: modal classification on top of any memory.

Each unit counts the labels of the samples it learned; a sample's class is the majority label of its best matching unit
(paper, section 4.4). The memory never sees a label, so what it learns does not depend on how many there are, unless
``label_use`` says otherwise.

With several winners, each of the K best units that have votes adds its shares of the classes, weighted by

    (d_best / d)^8,   d = 1 - similarity, or distance squared,

which has no scale. Shares and not counts, so that a unit is not heard more for having won more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from ccmem._sklearn import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, NotFittedError, clone
from ccmem._typing import BoolArray, FloatArray, IntArray
from ccmem.base import ChunkResult, CompetitiveMemory, seeded_clone
from ccmem.deviations import SharedMetric
from ccmem.estimator import SavedEstimator, Summarised
from ccmem.guard import learning, reading, share_guard
from ccmem.kernels.votes import count_votes, weigh_votes
from ccmem.labels import UNLABELED, check_labels, code_of, encode_labels, sorted_union
from ccmem.memory import Event, aligned, grown
from ccmem.parameters import Rule, boolean, check_parameters, choice, integer

_RULES: dict[str, Rule] = {
    "n_winners": integer(1),
    "balanced": boolean(),
    "label_use": choice("readout", "merge", "guide"),
    "metric": choice("own", "shared"),
}
_ROWS_AT_ONCE = 1024


class ModalClassifier(SavedEstimator, Summarised, MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Turn a memory into a classifier: majority label of the best matching unit.

    New classes may appear at any time, and labels may be missing: a missing label (``None`` or NaN, or the value of
    ``unlabeled``) still teaches the memory, but casts no vote. Units without votes do not answer.

    Parameters
    ----------
    memory : a competitive memory
        It is cloned, not changed; the one that learns is ``memory_``.
    n_winners : int, default=1
        How many of the best units answer (K): 1 is the paper's rule, more weigh their votes by similarity.
    balanced : bool, default=True
        With several winners: whether a label counts by the part of its class that a unit holds, so that units shared by
        a common and a rare class do not always answer with the common one. Classes as frequent as each other make no
        difference.
    label_use : "readout", "merge" or "guide", default="readout"
        What labels are used for, besides reading the memory out: nothing, so that what is learned does not depend on
        them; to merge units of the same label first, when a bounded memory must merge; or, beyond that, to let a slot
        refuse samples whose label contradicts its clear majority. The last two need a memory that looks
        at labels: :class:`ccmem.AdaptiveCCM`.
    metric : "own" or "shared", default="own"
        How units are compared at test time: as the memory does, or by a distance that discounts what varies within
        units, learned from the samples without a look at labels (:mod:`ccmem.deviations`). It keeps
        d (d + 1) / 2 more numbers for d columns.
    unlabeled : label or None, default=None
        A value of ``y`` that also means "no label", such as the -1 of scikit-learn's semi-supervised estimators.
    random_state : int, Generator, RandomState or None, default=None
        For a memory that draws random numbers and has no ``random_state`` of its own.

    Attributes
    ----------
    memory_ : the memory that has learned.
    classes_ : array of the labels seen so far, sorted.
    votes_ : array of shape (n_units, n_classes), how often each unit learned each label.

    Examples
    --------
    >>> import numpy as np
    >>> from ccmem import IncrementalWTA, ModalClassifier
    >>> clf = ModalClassifier(IncrementalWTA(n_units=2, learning_rate=0.1))
    >>> X = np.array([[0.0], [10.0], [1.0], [9.0]])
    >>> clf.partial_fit(X, ["low", "high", None, "high"]).predict([[2.0], [8.0]])
    array(['low', 'high'], dtype=object)
    >>> clf.partial_fit(X, None).votes_            # a chunk without labels
    array([[0, 1],
           [2, 0]])
    """

    memory_: CompetitiveMemory
    classes_: Any
    _votes: IntArray
    _metric: SharedMetric | None

    def __init__(
        self,
        memory: CompetitiveMemory,
        *,
        n_winners: int = 1,
        balanced: bool = True,
        label_use: str = "readout",
        metric: str = "own",
        unlabeled: Any = None,
        random_state: Any = None,
    ) -> None:
        self.memory = memory
        self.n_winners = n_winners
        self.balanced = balanced
        self.label_use = label_use
        self.metric = metric
        self.unlabeled = unlabeled
        self.random_state = random_state

    @property
    def _takes_missing(self) -> bool:
        """Whether NaN in a row is a missing reading: if it is for the memory, and distances are the memory's own."""
        return self.metric == "own" and bool(getattr(self.memory, "_takes_missing", False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._takes_missing
        return tags

    @learning
    def fit(self, X: Any, y: Any) -> Self:
        """Forget everything, then learn the rows of ``X`` and their labels in order."""
        if y is None:
            raise ValueError(
                "ModalClassifier.fit requires y to be passed, but the target y is None; "
                "use partial_fit for chunks without labels"
            )
        fresh = clone(self)
        fresh._teach(X, y, None)
        if not len(fresh.classes_):
            raise ValueError("every label in y is missing (NaN or None); fit needs at least one")
        for name in ("memory_", "classes_", "_votes", "_metric"):
            setattr(self, name, getattr(fresh, name))
        share_guard(self, self.memory_)
        self.memory_._notify()
        return self

    @learning
    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> Self:
        """Learn the rows of ``X`` in order, with their labels where there are any.

        ``classes`` may announce labels to come; it is never needed.
        """
        self._teach(X, y, classes)
        self.memory_._notify()
        return self

    @learning
    def learn_many(self, X: Any, y: Any = None) -> IntArray:
        """As :meth:`partial_fit`; return the unit that learned each row, as numbered then, or -1 where none did."""
        winners = self._teach(X, y, None).winners
        self.memory_._notify()
        return winners

    @learning
    def learn_one(self, x: Any, y: Any = None) -> int:
        """Learn one sample, with its label if it has one; return the unit that learned it, or -1."""
        known = hasattr(self, "memory_")
        if known and (row := self.memory_._check_one(x)) is not None:
            code = code_of(self.classes_, y, self.unlabeled)
            if code is not None:
                self.memory_._check_unchanged()
                winner = self._learn(row, np.array([code])).winners[0]
                self.memory_._notify()
                return int(winner)
        labels = None if y is None else np.array([y], dtype=object if isinstance(y, str) else None)
        winner = self._teach(np.asarray(x).reshape(1, -1), labels, None).winners[0]
        self.memory_._notify()
        return int(winner)

    @reading
    def predict(self, X: Any) -> Any:
        """The label with most votes in each row's best matching unit or units."""
        best = self.predict_votes(X).argmax(axis=1)  # first, since it says when there is nothing to answer with
        return self.classes_[best]

    @reading
    def predict_one(self, x: Any) -> Any:
        """The label of one sample; the quick path, like :meth:`learn_one`."""
        self._require_votes()
        row = self.memory_._check_one(x)
        if row is None or self.n_winners > 1 or self._metric is not None:
            return self.predict(np.asarray(x).reshape(1, -1))[0]
        unit = self.memory_._winners(row, self._answering())[0]
        return self.classes_[self._votes[unit].argmax()]

    @reading
    def predict_proba(self, X: Any) -> FloatArray:
        """Share of each class among the votes of each row's best matching unit or units."""
        votes = self.predict_votes(X)
        return votes / votes.sum(axis=1, keepdims=True)

    @reading
    def predict_votes(self, X: Any) -> Any:
        """Votes for each class in each row's best matching unit; with several, their shares, weighted."""
        return self._answer(X)[0]

    @reading
    def predict_units(self, X: Any) -> tuple[Any, IntArray]:
        """The label of every row and the unit that answers: the best matching one that has votes."""
        votes, units = self._answer(X)
        return self.classes_[votes.argmax(axis=1)], units

    @property
    @reading
    def votes_(self) -> IntArray:
        """How often each unit learned each label, a copy."""
        self._require_start()
        return self._votes[: self.memory_.n_units_].copy()

    @property
    def n_floats_(self) -> int:
        """How many numbers are kept: those of the memory, and votes."""
        self._require_start()
        return int(self.memory_.n_floats_ + self._votes.size + (self._metric.n_floats if self._metric else 0))

    @property
    def working_floats_(self) -> int:
        """How many more numbers are needed while answering, with a metric: its factor, and units in its terms."""
        self._require_start()
        units = self.memory_.n_units_ * self.n_features_in_
        return int(self._metric.scatter.size + units) if self._metric else 0

    @property
    def events_(self) -> list[Event]:
        """The latest new blocks and recalls of the memory, oldest first; a memory without blocks has none."""
        self._require_start()
        return list(getattr(self.memory_, "events_", ()))

    @property
    def n_features_in_(self) -> int:
        """Number of columns of ``X``."""
        self._require_start(AttributeError)
        return int(self.memory_.n_features_in_)

    @property
    def feature_names_in_(self) -> Any:
        """Names of the columns of ``X``, if they had any."""
        self._require_start(AttributeError)
        return self.memory_.feature_names_in_

    # ---------------------------------------------------------------------------------------------------------------

    def _teach(self, X: Any, y: Any, classes: Any) -> ChunkResult:
        """Learn a chunk; nothing changes unless all of it can be learned."""
        first = not hasattr(self, "memory_")
        memory = self._memory_to_teach()
        rows = memory._check_chunk(X, missing=self._takes_missing)
        labels, missing = check_labels(y, len(rows), self.unlabeled)
        old = np.empty(0, labels.dtype) if first else self.classes_
        new_classes = sorted_union(old, labels[~missing], np.asarray([] if classes is None else classes))
        codes = encode_labels(labels, missing, new_classes)
        return self._learn_coded(memory, rows, codes, new_classes)

    @learning
    def _teach_coded(self, X: Any, codes: IntArray, values: Any) -> ChunkResult:
        """As ``_teach``, for labels that are places in an array of distinct ``values``: nothing is done per label."""
        memory = self._memory_to_teach()
        rows = memory._check_chunk(X, missing=self._takes_missing)
        used = np.unique(codes[codes != UNLABELED])
        new_classes = sorted_union(getattr(self, "classes_", values[:0]), values[used])
        places = np.full(len(values) + 1, UNLABELED, np.int64)  # the last is where the code of a missing label points
        places[used] = np.searchsorted(new_classes, values[used])
        result = self._learn_coded(memory, rows, places[codes], new_classes)
        memory._notify()
        return result

    def _memory_to_teach(self) -> CompetitiveMemory:
        if not isinstance(self.memory, CompetitiveMemory):
            raise TypeError(
                f"ModalClassifier: memory={self.memory!r} is not a competitive memory; pass one of ccmem's, "
                "such as AdaptiveCCM()"
            )
        check_parameters("ModalClassifier", _RULES, vars(self))
        memory = self.memory_ if hasattr(self, "memory_") else seeded_clone(self.memory, self.random_state)
        if self.label_use != "readout" and memory._labelled_kernel is None:
            raise ValueError(
                f"ModalClassifier: label_use={self.label_use!r} needs a memory that looks at labels, such as "
                "AdaptiveCCM()"
            )
        if hasattr(self, "memory_") and (self._metric is not None) != (self.metric == "shared"):
            raise ValueError("ModalClassifier: metric cannot change once learning has begun; call fit to start anew")
        return memory

    def _learn_coded(
        self, memory: CompetitiveMemory, rows: FloatArray, codes: IntArray, new_classes: Any
    ) -> ChunkResult:
        first = not hasattr(self, "memory_")
        old = new_classes[:0] if first else self.classes_
        if first:
            self._votes = np.zeros((memory.n_units_, len(new_classes)), np.int64)
            self._metric = SharedMetric(rows.shape[1]) if self.metric == "shared" else None
        elif len(new_classes) > len(old):
            votes = np.zeros((len(self._votes), len(new_classes)), np.int64)
            votes[:, np.searchsorted(new_classes, old)] = self._votes
            self._votes = votes
        self.memory_, self.classes_ = memory, new_classes
        if first:
            share_guard(self, memory)
        return self._learn(rows, codes)

    def _learn(self, rows: FloatArray, codes: IntArray) -> ChunkResult:
        """Learn checked rows, count their votes."""
        if self._metric is None:
            result = self._learn_and_count(rows, codes)
        else:
            results, done = [], 0
            while done < len(rows):
                part = slice(done, done + self._metric.n_accepted())
                found = self._learn_and_count(rows[part], codes[part])
                found.unit_changes[:, 1] += done
                results.append(found)
                self._metric.note(rows[part], self.memory_)
                done += len(found.winners)
            result = ChunkResult(*map(np.concatenate, zip(*results, strict=True)))
        return result

    def _learn_and_count(self, rows: FloatArray, codes: IntArray) -> ChunkResult:
        if self.label_use != "readout":
            return self.memory_._learn(rows, self._labelled_kernel(codes))
        result = self.memory_._learn(rows)
        self._grow()
        count_votes(self._votes, result.winners, codes, result.unit_changes)
        return result

    def _labelled_kernel(self, codes: IntArray) -> Callable[..., int]:
        """A kernel that looks at the labels of a chunk, and counts the votes itself."""
        refusing, labelled = self.label_use == "guide", self.memory_._labelled_kernel
        assert labelled is not None  # as _memory_to_teach has made sure

        def learn(state: Any, settings: Any, X: FloatArray, winners: IntArray) -> int:
            self._grow()
            return labelled(state, settings, X, winners, codes[len(codes) - len(X) :], self._votes, refusing)

        return learn

    def _grow(self) -> None:
        capacity = len(self.memory_._state.prototypes)
        if len(self._votes) < capacity:
            self._votes = grown(self._votes, capacity)

    @learning
    def _widen(self, n_features: int) -> None:
        """Go on with more columns; see :meth:`ccmem.base.CompetitiveMemory._widen`."""
        if self._metric is not None:
            raise ValueError("ModalClassifier: with metric='shared' columns cannot be added; call fit to start anew")
        self.memory_._widen(n_features)

    def _answering(self) -> BoolArray:
        return np.asarray(self._votes[: self.memory_.n_units_].any(axis=1))

    def _require_votes(self) -> None:
        self._require_start()
        if not self._votes.any():
            raise NotFittedError("This ModalClassifier has seen no label yet; give partial_fit some labels first")

    def _answer(self, X: Any) -> tuple[Any, IntArray]:
        """What :meth:`predict_votes` gives, and the best unit of every row."""
        self._require_votes()
        several = self.n_winners > 1 or self._metric is not None
        rows = self.memory_._check(X, reset=False, finite=several, missing=self._takes_missing)
        # else _winners looks at every value
        if not several:
            winners = self.memory_._winners(rows, self._answering())
            return self._votes[winners], winners
        units = np.flatnonzero(self._answering())
        votes = self._votes[units].astype(np.float64)
        shares = votes / np.maximum(self._votes.sum(axis=0), 1) if self.balanced else votes
        shares /= shares.sum(axis=1, keepdims=True)
        prototypes = self.memory_._state.prototypes[: self.memory_.n_units_]
        weighed, best = np.empty((len(rows), shares.shape[1])), np.empty(len(rows), np.int64)
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            part = rows[start : start + _ROWS_AT_ONCE]
            if self._metric is not None:
                scores = self._metric.distances(part, prototypes)
            else:
                scores = np.empty((len(part), len(prototypes)), rows.dtype)
                self.memory_._score(part, prototypes, scores)
            scores = np.ascontiguousarray(scores[:, units])
            by_distance = self._metric is not None or self.memory_._by_distance
            weigh_votes(scores, by_distance, shares, int(self.n_winners), weighed[start:], best[start:])
        return weighed, units[best]

    @reading
    def _export(self) -> dict[str, Any]:
        from ccmem.persistence.tensorfile import narrowed

        in_use = slice(None) if self.memory_._capacity_for(0) is None else slice(self.memory_.n_units_)
        metric = {"metric": self._metric.export()} if self._metric is not None else {}
        votes = narrowed(self._votes[in_use])
        return {"memory_": self.memory_, "classes_": self.classes_, "votes": votes, **metric}

    def _import(self, fields: dict[str, Any]) -> None:
        from ccmem.persistence.memories import check_names, check_vector, widened

        check_parameters("ModalClassifier", _RULES, vars(self))
        shared = ("metric",) if self.metric == "shared" else ()
        check_names("ModalClassifier", fields, ("memory_", "classes_", "votes", *shared))
        memory, classes, votes = fields["memory_"], fields["classes_"], widened(fields["votes"])
        if not all(isinstance(m, CompetitiveMemory) for m in (memory, self.memory)) or not hasattr(memory, "_state"):
            raise ValueError("ModalClassifier: its memory is not a memory that has learned")
        if not (self.unlabeled is None or isinstance(self.unlabeled, (str, int, float))):
            raise ValueError("ModalClassifier: unlabeled is neither text nor a number")
        check_vector("classes_", classes)
        if not np.array_equal(np.unique(classes), classes):
            raise ValueError("ModalClassifier: its classes are not sorted and distinct")
        capacity = len(memory._state.prototypes)
        needed = capacity if memory._capacity_for(0) is None else memory.n_units_
        if not (isinstance(votes, np.ndarray) and votes.dtype == np.int64 and votes.shape[1:] == (len(classes),)):
            raise ValueError(f"ModalClassifier: votes are not whole numbers of shape {(needed, len(classes))}")
        if len(votes) < needed:
            raise ValueError(f"ModalClassifier: votes of {len(votes)} units do not fit a memory of {needed}")
        if votes.size and votes.min() < 0:
            raise ValueError("ModalClassifier: votes are negative")
        self._metric = SharedMetric.imported(fields["metric"], int(memory.n_features_in_)) if shared else None
        self.memory_, self.classes_, self._votes = memory, classes, grown(votes[:needed], capacity)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "_votes"):  # an unpickled array may be a read-only map of a file; learning writes to it
            self._votes = aligned(self._votes)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "memory_")
