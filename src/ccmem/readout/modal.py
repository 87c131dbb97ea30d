"""Modal classification on top of any memory: units to labels by majority vote.

Each unit counts the labels of the samples it learned; a sample's class is the majority label of its best matching unit
(paper, section 4.4). By default the memory never sees a label, so its units do not depend on the number of labels;
``label_use`` can change that.

With several winners, each of the K best units that have votes adds its shares of the classes, weighted by

    (d_best / d)^s,   d = 1 - similarity, or distance squared,   s = 8,

which is scale-free. For columns in units of their spread, s = 2 (:mod:`ccmem.base.normalised`). Shares are
used instead of counts, so that units with many wins do not get more weight.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, ClassVar, Self

import numpy as np

from ccmem.base.classifier import OnMemory
from ccmem.base.memory import ChunkResult, CompetitiveMemory, seeded_clone
from ccmem.base.storage import check_names, narrowed, widened
from ccmem.base.times import split_times
from ccmem.core.allocation import aligned, grown
from ccmem.core.codes import REJECTED
from ccmem.core.events import Event
from ccmem.core.labels import UNLABELED, known_codes, sorted_union
from ccmem.core.locking import learning, reading, share_guard
from ccmem.core.parameters import Rule, boolean, check_parameters, choice, integer, optional
from ccmem.core.sklearn import MetaEstimatorMixin
from ccmem.core.typing import FloatArray, IntArray
from ccmem.core.undo import undone_on_error
from ccmem.kernels.votes import add_vote, count_votes
from ccmem.readout._saved import check_classes, fitting_votes
from ccmem.readout._voting import VotingPredictions


class ModalClassifier(MetaEstimatorMixin, OnMemory, VotingPredictions):  # type: ignore[misc]
    """Classifier on top of a memory: majority label of the best matching unit.

    New classes may appear at any time, and labels may be missing: a missing label (``None`` or NaN, or the value of
    ``unlabeled``) is skipped by the votes, but the memory learns the sample. Units without votes are not used in
    prediction.

    Parameters
    ----------
    memory : a competitive memory
        Memory to read out. It is cloned, and the clone ``memory_`` learns.
    n_winners : int or None, default=None
        Number of best matching units that vote (K), weighted by similarity; 1 is the paper's rule. None: five for
        :class:`ccmem.AdaptiveCCM`, one for all others.
    balanced : bool, default=False
        With several winners: True if votes are divided by class frequency, so that units shared by a common and a rare
        class do not always predict the common one. False: classes that are frequent where a row lies are likely there,
        and probabilities follow the stream. It has no effect if all classes are equally frequent.
    vote_span : int or None, default=None
        Number of votes of a unit at which all its counts are halved, so that units follow labels that change (about 32
        for a drifting stream). None: never. Only for ``label_use="readout"``.
    label_use : "readout", "merge" or "guide", default="readout"
        Use of labels. "readout": only to vote, so that the units do not depend on labels. "merge": also to prefer units
        of the same label when a bounded memory must merge. "guide": in addition, a slot rejects samples whose label
        contradicts its clear majority. The last two need a memory that reads labels: :class:`ccmem.AdaptiveCCM`.
    metric : "auto", "own" or "shared", default="auto"
        Similarity used for prediction. "own": that of the memory. "shared": directions in which units of one class
        differ count less (:mod:`ccmem.readout.metric`). "auto": the one that predicts rows of the stream better, for an
        :class:`ccmem.AdaptiveCCM` that compares directions; otherwise "own". The shared metric is computed again after
        rows have been learned, which takes about 1 ms for 125 units and 20 ms for 500: predict many rows at once.
    unlabeled : label or None, default=None
        A value of ``y`` that also means "no label", such as the -1 of scikit-learn's semi-supervised estimators.
    random_state : int, Generator, RandomState or None, default=None
        Seed for a memory that draws random numbers and has no ``random_state``.

    Attributes
    ----------
    memory_ : the fitted memory.
    classes_ : array of the labels seen so far, sorted.
    votes_ : array of shape (n_units, n_classes), number of samples of each label that each unit has learned.

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

    _rules: ClassVar[dict[str, Rule]] = {
        "n_winners": optional(integer(1)),
        "vote_span": optional(integer(2)),
        "balanced": boolean(),
        "label_use": choice("readout", "merge", "guide"),
        "metric": choice("auto", "own", "shared"),
    }
    _not_pickled: ClassVar[tuple[str, ...]] = ("_label_codes", "_unchanged", "_made")

    def __init__(
        self,
        memory: CompetitiveMemory,
        *,
        n_winners: int | None = None,
        balanced: bool = False,
        vote_span: int | None = None,
        label_use: str = "readout",
        metric: str = "auto",
        unlabeled: Any = None,
        random_state: Any = None,
    ) -> None:
        self._assign(locals())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._takes_missing
        return tags

    @learning
    def fit(self, X: Any, y: Any, *, times: Any = None) -> Self:
        """Reset, then learn the rows of ``X`` and their labels in order."""
        return self._fit(X, y, times=times)

    @learning
    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, *, times: Any = None) -> Self:
        """Learn the rows of ``X`` in order, with or without labels.

        ``classes`` may announce future labels; it is optional.
        """
        row = self.memory_._plain_row(X) if hasattr(self, "memory_") and classes is times is None else None
        if row is not None and (codes := known_codes(self, y, 1)) is not None:
            self._learn_row(row, int(codes[0]))
        else:
            self._teach(X, y, classes, times)
        self.memory_._notify()
        return self

    @learning
    def learn_many(self, X: Any, y: Any = None, *, times: Any = None) -> IntArray:
        """Learn as :meth:`partial_fit` does; return the index of the unit that learned each row at that time, or -1."""
        winners = self._teach(X, y, None, times)
        self._notify()
        return winners

    @learning
    def learn_one(self, x: Any, y: Any = None) -> int:
        """Learn one sample, with or without a label; return the unit that learned it, or -1."""
        return int(self._learn_one(x, y))

    @property
    @reading
    def votes_(self) -> IntArray:
        """Number of samples of each label that each unit has learned, as a copy."""
        self._require_start()
        return self._votes[: self.memory_.n_units_].copy()

    @property
    def n_floats_(self) -> int:
        """Number of floats kept by the memory and the votes."""
        self._require_start()
        return int(self.memory_.n_floats_ + self._votes.size + (self._evidence.n_floats if self._evidence else 0))

    @property
    def working_floats_(self) -> int:
        """Number of temporary floats needed to predict with the shared metric: three arrays as large as the units."""
        self._require_start()
        return int(3 * self.memory_.n_units_ * self.n_features_in_) if self._uses_shared() else 0

    @property
    def events_(self) -> list[Event]:
        """Latest new blocks and recalls of the memory, oldest first; empty for a memory without blocks."""
        self._require_start()
        return list(getattr(self.memory_, "events_", ()))

    # ---------------------------------------------------------------------------------------------------------------

    def _teach(self, X: Any, y: Any, classes: Any, times: Any = None) -> IntArray:
        """Learn a chunk, or raise and leave the state unchanged; return the winner of every row."""
        memory = self._memory_to_teach()
        X, stamps = split_times(X, times)
        rows = memory._check_chunk(X, missing=self._takes_missing)
        codes, all_classes = self._codes(y, len(rows), classes)
        memory._expect_times(stamps)
        return self._learn_coded(memory, rows, codes, all_classes).winners

    @learning
    def _teach_coded(
        self, X: Any, codes: IntArray, values: Any, times: FloatArray | None = None, checked: bool = False
    ) -> ChunkResult:
        """Learn a chunk whose labels are indices into the distinct ``values``, without any work per label.

        ``checked`` is True if a file reader has already validated the values of ``X``.
        """
        memory = self._memory_to_teach()
        rows = memory._check_chunk(X, missing=self._takes_missing, checked=checked)
        used = np.unique(codes[codes != UNLABELED])
        new_classes = sorted_union(getattr(self, "classes_", values[:0]), values[used])
        places = np.full(len(values) + 1, UNLABELED, np.int64)  # the last entry serves the code of a missing label
        places[used] = np.searchsorted(new_classes, values[used])
        memory._expect_times(times)
        result = self._learn_coded(memory, rows, places[codes], new_classes)
        memory._notify()
        return result

    def _memory_to_teach(self) -> CompetitiveMemory:
        if not isinstance(self.memory, CompetitiveMemory):
            raise TypeError(
                f"ModalClassifier: memory={self.memory!r} is not a competitive memory; pass one of ccmem's, "
                "such as AdaptiveCCM()"
            )
        check_parameters("ModalClassifier", self._rules, vars(self))
        memory = self.memory_ if hasattr(self, "memory_") else seeded_clone(self.memory, self.random_state)
        if self.label_use != "readout" and memory._labelled_kernel is None:
            raise ValueError(
                f"ModalClassifier: label_use={self.label_use!r} needs a memory that looks at labels, such as "
                "AdaptiveCCM()"
            )
        return memory

    def _learn_coded(
        self, memory: CompetitiveMemory, rows: FloatArray, codes: IntArray, new_classes: Any
    ) -> ChunkResult:
        """Learn validated rows and count their votes, or raise and leave the state unchanged."""
        evidence = vars(self).get("_evidence")
        with undone_on_error(self, memory, *([evidence] if evidence else [])) if len(rows) > 1 else nullcontext():
            return self._learn_all(memory, rows, codes, new_classes)

    def _learn_all(self, memory: CompetitiveMemory, rows: FloatArray, codes: IntArray, new_classes: Any) -> ChunkResult:
        first = not hasattr(self, "memory_")
        old = new_classes[:0] if first else self.classes_
        if first:
            self._votes = np.zeros((memory.n_units_, len(new_classes)), np.int64)
            self._evidence = self._new_evidence(memory, rows.shape[1])
        elif len(new_classes) > len(old):
            votes, places = np.zeros((len(self._votes), len(new_classes)), np.int64), np.searchsorted(new_classes, old)
            in_front = not len(places) or places[-1] == len(places) - 1  # a slice is copied far faster than columns
            votes[:, slice(len(places)) if in_front else places] = self._votes
            self._votes = votes
            if self._evidence is not None:
                self._evidence.recode(places)
        self.memory_, self.classes_ = memory, new_classes
        if first:
            share_guard(self, memory)
        return self._learn(rows, codes)

    def _learn(self, rows: FloatArray, codes: IntArray) -> ChunkResult:
        """Learn validated rows and count their votes; predict some rows before, and compare metrics, when it is due."""
        evidence = self._evidence
        if evidence is None or not len(rows):
            return self._learn_and_count(rows, codes)
        results, done, labelled = [], 0, np.flatnonzero(codes != UNLABELED)
        while done < len(rows):
            self._predict_first(rows[done : done + 1], codes[done])
            ahead = labelled[np.searchsorted(labelled, done) :] - done
            part = slice(done, done + evidence.n_before_due(len(rows) - done, ahead))
            found = self._learn_and_count(rows[part], codes[part])
            found.unit_changes[:, 1] += done
            results.append(found)
            evidence.note(rows[part], codes[part])
            self._compare_metrics()
            done += len(found.winners)
        return ChunkResult(*map(np.concatenate, zip(*results, strict=True)))

    def _learn_row(self, row: FloatArray, code: int) -> int:
        if self.label_use != "readout":
            self.memory_._check_unchanged()
            return int(self._learn(row, np.array([code])).winners[0])
        self._predict_first(row, code)
        winners, changes = self.memory_._learn_row(row)
        self._made = None
        self._grow()
        if len(changes):
            count_votes(self._votes, winners, np.array([code]), changes, self.vote_span or 0)
        elif code != UNLABELED and winners[0] != REJECTED:
            add_vote(self._votes, winners[0], code, self.vote_span or 0)
        if self._evidence is not None:
            self._evidence.note(row, np.array([code]))
            self._compare_metrics()
        return int(winners[0])

    def _learn_and_count(self, rows: FloatArray, codes: IntArray) -> ChunkResult:
        self._made = None
        if self.label_use != "readout":
            return self.memory_._learn(rows, self._labelled_kernel(codes))
        result = self.memory_._learn(rows)
        self._grow()
        count_votes(self._votes, result.winners, codes, result.unit_changes, self.vote_span or 0)
        return result

    def _labelled_kernel(self, codes: IntArray) -> Callable[..., int]:
        """Return a kernel that reads the labels of a chunk and counts the votes."""
        refusing, labelled = self.label_use == "guide", self.memory_._labelled_kernel
        assert labelled is not None  # guaranteed by _memory_to_teach

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
        """Add columns; see :meth:`ccmem.base.memory.CompetitiveMemory._widen`."""
        self.memory_._widen(n_features)
        self._made = None
        if self._evidence is not None:
            self._evidence.widen(n_features)

    @reading
    def _export(self) -> dict[str, Any]:
        in_use = slice(None) if self.memory_._capacity_for(0) is None else slice(self.memory_.n_units_)
        evidence = {"evidence": dict(vars(self._evidence))} if self._evidence is not None else {}
        votes = narrowed(self._votes[in_use])
        return {"memory_": self.memory_, "classes_": self.classes_, "votes": votes, **evidence}

    def _import(self, fields: dict[str, Any]) -> None:
        check_parameters("ModalClassifier", self._rules, vars(self))
        check_names("ModalClassifier", fields, ("memory_", "classes_", "votes"), ("evidence",))
        memory, classes, votes = fields["memory_"], fields["classes_"], widened(fields["votes"])
        if not all(isinstance(m, CompetitiveMemory) for m in (memory, self.memory)) or not hasattr(memory, "_state"):
            raise ValueError("ModalClassifier: its memory is not a memory that has learned")
        check_classes("ModalClassifier", classes, self.unlabeled)
        self.memory_, self.classes_, self._votes = memory, classes, fitting_votes(memory, classes, votes)
        self._evidence, self._made = self._new_evidence(memory, int(memory.n_features_in_)), None
        if (self._evidence is not None) != ("evidence" in fields):
            raise ValueError("ModalClassifier: its evidence does not fit its settings")
        if self._evidence is not None:
            self._evidence.restore(fields["evidence"], len(classes))

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "_votes"):  # an unpickled array may be a read-only memory map, but learning writes to it
            self._votes, self._made = aligned(self._votes), None
