"""Predictions of a modal classifier: the votes of the best units of a row."""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem.base.estimator import SavedEstimator, Summarised
from ccmem.base.memory import CompetitiveMemory
from ccmem.core.locking import reading
from ccmem.core.sklearn import NotFittedError
from ccmem.core.state import UNITS
from ccmem.core.typing import BoolArray, FloatArray, IntArray
from ccmem.kernels.votes import find_voters, weigh_votes
from ccmem.readout._reject import check_reject, rejected
from ccmem.readout.metric import MetricEvidence, SharedMetric

_ROWS_AT_ONCE = 1024
_NONE: IntArray = np.empty(0, np.int64)
FEW_COLUMNS = 32
"""Fewer columns than this are compared by distance, and the metric is not chosen by evidence."""


class VotingPredictions(SavedEstimator, Summarised):
    """Base with the predictions of :class:`ccmem.ModalClassifier`; nothing here changes units or votes."""

    memory_: CompetitiveMemory
    classes_: Any
    metric: str
    n_winners: int | None
    balanced: bool
    memory: CompetitiveMemory
    _votes: IntArray
    _evidence: MetricEvidence | None
    _made: SharedMetric | None
    """Shared metric of the present state, computed on demand; None after rows have been learned."""

    @reading
    def predict(self, X: Any, reject: float | None = None) -> Any:
        """Return the label with most votes in each row's best matching unit or units.

        With ``reject``, a share of the votes, the answer is None if the label's share is below ``reject``.
        """
        check_reject("ModalClassifier", reject)
        votes = self.predict_votes(X)
        labels = self.classes_[votes.argmax(axis=1)]
        return labels if reject is None else rejected(labels, votes.max(axis=1) < reject * votes.sum(axis=1))

    @reading
    def predict_one(self, x: Any) -> Any:
        """Return the label of one sample, without overhead if it needs no conversion."""
        self._require_start()
        row = self.memory_._check_one(x)
        if row is None or self._uses_shared():
            return self.predict(np.asarray(x).reshape(1, -1))[0]
        if self._k() > 1:
            return self.classes_[self._weigh(row)[0][0].argmax()]
        unit = self.memory_._winners(row, self._answering())[0]
        return self.classes_[self._votes[unit].argmax()]

    @reading
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the share of each class among the votes of each row's best matching unit or units."""
        votes = self.predict_votes(X)
        return votes / votes.sum(axis=1, keepdims=True)

    @reading
    def predict_votes(self, X: Any) -> Any:
        """Return the votes per class of each row's best matching unit; with several winners, their weighted shares."""
        return self._answer(X)[0]

    @reading
    def predict_units(self, X: Any) -> tuple[Any, IntArray]:
        """Return the label of every row, and the best matching unit with votes, which provides it."""
        votes, units = self._answer(X)
        return self.classes_[votes.argmax(axis=1)], units

    # ---------------------------------------------------------------------------------------------------------------

    @property
    def _takes_missing(self) -> bool:
        """True if NaN marks a missing reading: the memory supports it and no shared metric is used."""
        return self.metric != "shared" and bool(getattr(self.memory, "_takes_missing", False))

    def _new_evidence(self, memory: CompetitiveMemory, n_features: int) -> MetricEvidence | None:
        """Return the evidence that chooses the metric, or None if there is no choice."""
        several = memory._n_winners > 1 and (self.n_winners is None or self.n_winners > 1)
        return MetricEvidence(n_features) if self.metric == "auto" and several and n_features >= FEW_COLUMNS else None

    def _compare_metrics(self) -> None:
        """Score the kept rows with both metrics, if a comparison is due."""
        evidence = self._evidence
        if evidence is None or evidence.n_before_comparison > 0:
            return
        rows = evidence.rows.astype(self.memory_._state.prototypes.dtype)
        if self.memory_._by_distance or not len(rows) or not self._votes.any():
            rows = rows[:0]
        own, shared = (self._weigh(rows, shared)[0].argmax(axis=1) if len(rows) else _NONE for shared in (False, True))
        evidence.compare(own, shared)

    def _uses_shared(self) -> bool:
        """Return True if predictions use the shared metric."""
        if self.metric != "auto":
            return self.metric == "shared"
        return self._evidence is not None and self._evidence.prefers_shared and not self.memory_._by_distance

    def _answering(self) -> BoolArray:
        """Return the units that have votes; raise if there is none."""
        self._require_start()
        units = np.empty(self.memory_.n_units_, np.bool_)
        if not find_voters(self._votes, units):
            raise NotFittedError("This ModalClassifier has seen no label yet; give partial_fit some labels first")
        return units

    def _answer(self, X: Any) -> tuple[Any, IntArray]:
        """Return the result of :meth:`predict_votes`, and the best unit of every row."""
        self._require_start()
        several = self._k() > 1 or self._uses_shared()
        if several and (row := self.memory_._plain_row(X)) is not None:
            return self._weigh(row)
        rows = self.memory_._check(X, reset=False, finite=several, missing=self._takes_missing)
        if not several:  # _winners validates every value
            winners = self.memory_._winners(rows, self._answering())
            return self._votes[winners], winners
        parts = [self._weigh(rows[start : start + _ROWS_AT_ONCE]) for start in range(0, len(rows), _ROWS_AT_ONCE)]
        return np.concatenate([weighed for weighed, _ in parts]), np.concatenate([best for _, best in parts])

    def _k(self) -> int:
        """Return the number of units that vote."""
        return self.memory_._n_winners if self.n_winners is None else int(self.n_winners)

    def _weigh(self, rows: FloatArray, shared: bool | None = None) -> tuple[FloatArray, IntArray]:
        """Return the weighted shares of the best units of validated rows, and the best unit of each."""
        memory, votes = self.memory_, self._votes
        prototypes = memory._state.prototypes[: memory._state.counters[UNITS]]
        weighed, best = np.empty((len(rows), votes.shape[1])), np.empty(len(rows), np.int64)
        scores = np.empty((len(rows), len(prototypes)), rows.dtype)
        whole: BoolArray = np.zeros(len(rows), np.bool_)
        if self._uses_shared() if shared is None else shared:
            whole[:] = np.isfinite(rows).all(axis=1)
            made = self._made or SharedMetric.of(
                memory._coordinates(prototypes), votes[: len(prototypes)], memory._by_distance
            )
            self._made = made
            scores[whole] = made.scores(memory._coordinates(rows[whole]))
        if not whole.all():
            rest = np.empty((len(rows) - np.count_nonzero(whole), len(prototypes)), rows.dtype)
            memory._score(rows[~whole], prototypes, rest)
            scores[~whole] = rest
        if not weigh_votes(
            scores, memory._by_distance, memory._sharpness, votes, self.balanced, self._k(), weighed, best
        ):
            raise NotFittedError("This ModalClassifier has seen no label yet; give partial_fit some labels first")
        return weighed, best
