"""Predictions of a modal classifier: the votes of the best units of a row."""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem.base.classifier import OnlineClassifier
from ccmem.base.estimator import Summarised
from ccmem.base.memory import CompetitiveMemory
from ccmem.core.locking import reading
from ccmem.core.state import UNITS
from ccmem.core.typing import BoolArray, FloatArray, IntArray
from ccmem.kernels.votes import weigh_votes
from ccmem.readout._evidence import COMPARED, SEEN, Evidence
from ccmem.readout._reject import check_reject, rejected
from ccmem.readout.metric import SharedMetric

_ROWS_AT_ONCE = 1024
_NONE: IntArray = np.empty(0, np.int64)
UNKNOWN = 1e-3
"""Share of rows of known classes that may be called unknown."""
FEW_COLUMNS = 32
"""Fewer columns than this are compared by distance, and the metric is not chosen by evidence."""


class VotingPredictions(Summarised, OnlineClassifier):
    """Base with the predictions of :class:`ccmem.ModalClassifier`; nothing here changes units or votes."""

    memory_: CompetitiveMemory
    metric: str
    n_winners: int | None
    balanced: bool
    memory: CompetitiveMemory
    _votes: IntArray
    _evidence: Evidence | None
    """Calibration and choice of the metric; None if one unit votes."""
    _made: SharedMetric | None
    """Shared metric of the present state, computed on demand; None after rows have been learned."""

    @reading
    def predict(self, X: Any, reject: float | None = None) -> Any:
        """Return the label with most votes in each row's best matching unit or units.

        With ``reject``, a probability, the answer is None if the label is less probable or, with several winners, if
        :meth:`is_unknown` holds.
        """
        check_reject("ModalClassifier", reject)
        votes, _, far = self._answer(X)
        labels = self.classes_[votes.argmax(axis=1)]
        if reject is None:
            return labels
        unsure = self._probabilities(votes).max(axis=1) < reject
        if far is not None and self._evidence is not None:
            unsure |= self._evidence.unknown(far, UNKNOWN)
        return rejected(labels, unsure)

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
        """Return the probability of every class for every row.

        With one winner, these are the shares of the classes among its votes. With several, shares are calibrated on
        labelled rows of the stream, predicted before they were learned.
        """
        return self._probabilities(self._answer(X)[0])

    @reading
    def is_unknown(self, X: Any, level: float = UNKNOWN) -> BoolArray:
        """Return True for rows farther from every unit with votes than a share 1 - ``level`` of the labelled rows."""
        far = self._answer(X)[2]
        if far is None or self._evidence is None:
            raise ValueError(
                "ModalClassifier: is_unknown needs several winners since the start, which AdaptiveCCM has by default"
            )
        return self._evidence.unknown(far, level)

    @reading
    def predict_votes(self, X: Any) -> Any:
        """Return the votes per class of each row's best matching unit; with several winners, their weighted shares."""
        return self._answer(X)[0]

    @reading
    def predict_units(self, X: Any) -> tuple[Any, IntArray]:
        """Return the label of every row, and the best matching unit with votes, which provides it."""
        votes, units, _ = self._answer(X)
        return self.classes_[votes.argmax(axis=1)], units

    # ---------------------------------------------------------------------------------------------------------------

    @property
    def _takes_missing(self) -> bool:
        """True if NaN marks a missing reading: the memory supports it and no shared metric is used."""
        return self.metric != "shared" and bool(getattr(self.memory, "_takes_missing", False))

    def _new_evidence(self, memory: CompetitiveMemory, n_features: int) -> Evidence | None:
        """Return the evidence that calibrates votes and chooses the metric, or None if one unit votes."""
        if (memory._n_winners if self.n_winners is None else self.n_winners) == 1:
            return None
        return Evidence(n_features, self.metric == "auto" and memory._n_winners > 1 and n_features >= FEW_COLUMNS)

    def _predict_first(self, row: FloatArray, code: int) -> None:
        """Predict a row that is learned next, if that is due, to calibrate probabilities and distances."""
        evidence = self._evidence
        if evidence is None or not evidence.predicts(code):
            return
        evidence.predicted()
        known = np.asarray(self._votes.any(axis=0))  # a chunk names its classes before their first rows
        if self._k() > 1 and known[code] and np.count_nonzero(known) > 1:
            shares, _, far = self._weigh(row)
            evidence.forecast(shares[0, known] / shares[0].sum(), far[0], int(np.count_nonzero(known[:code])))

    def _compare_metrics(self) -> None:
        """Score the kept rows with both metrics, if a comparison is due."""
        evidence = self._evidence
        if evidence is None or evidence.counters[SEEN] < evidence.counters[COMPARED]:
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
        units = np.asarray(self._votes[: self.memory_.n_units_].any(axis=1))
        self._require_label(bool(units.any()))
        return units

    def _probabilities(self, votes: Any) -> FloatArray:
        shares: FloatArray = votes / votes.sum(axis=1, keepdims=True)
        return shares if self._evidence is None or self._k() == 1 else self._evidence.calibrated(shares)

    def _answer(self, X: Any) -> tuple[Any, IntArray, FloatArray | None]:
        """Return the result of :meth:`predict_votes`, the best unit of every row, and how far it is if several vote."""
        self._require_start()
        several = self._k() > 1 or self._uses_shared()
        if several and (row := self.memory_._plain_row(X)) is not None:
            return self._weigh(row)
        rows = self.memory_._check(X, reset=False, finite=several, missing=self._takes_missing)
        if not several:  # _winners validates every value
            winners = self.memory_._winners(rows, self._answering())
            return self._votes[winners], winners, None
        parts = [self._weigh(rows[start : start + _ROWS_AT_ONCE]) for start in range(0, len(rows), _ROWS_AT_ONCE)]
        votes, best, far = map(np.concatenate, zip(*parts, strict=True))
        return votes, best, far

    def _k(self) -> int:
        """Return the number of units that vote."""
        return self.memory_._n_winners if self.n_winners is None else int(self.n_winners)

    def _weigh(self, rows: FloatArray, shared: bool | None = None) -> tuple[FloatArray, IntArray, FloatArray]:
        """Return the weighted shares of the best units of validated rows, the best unit of each, and how far it is."""
        memory, votes = self.memory_, self._votes
        prototypes = memory._state.prototypes[: memory._state.counters[UNITS]]
        weighed, best = np.empty((len(rows), votes.shape[1])), np.empty(len(rows), np.int64)
        far, scores = np.empty(len(rows)), np.empty((len(rows), len(prototypes)), rows.dtype)
        whole = np.isfinite(rows).all(axis=1) if (self._uses_shared() if shared is None else shared) else None
        if whole is None or not whole.all():  # the memory itself compares rows with gaps
            memory._score(rows, prototypes, scores)
        if whole is not None and whole.any():
            self._made = self._made or SharedMetric.of(
                memory._coordinates(prototypes), votes[: len(prototypes)], memory._by_distance
            )
            scores[whole] = self._made.scores(memory._coordinates(rows[whole]))
        if not weigh_votes(
            scores, memory._by_distance, memory._sharpness, votes, self.balanced, self._k(), weighed, best, far
        ):
            self._require_label(False)
        return weighed, best, far
