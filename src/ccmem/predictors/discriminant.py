"""A readout that cannot forget: discriminant analysis from running sums.

For rows x with label c, d columns, and all sums over the rows seen so far:

    m_c    = mean of the rows of class c                            n_c of them, n in all
    W      = sum over classes of (x - m_c)(x - m_c)' / n            one covariance for all classes: d (d + 1) / 2 floats
    V_c    = the n_axes largest axes of (x - m_c)(x - m_c)'         per class, so that V_c'V_c is nearly its scatter
    B      = (1 - own_share) W + ridge trace(W) / d I
    S_c    = B + own_share A_c,   A_c = V_c'V_c / n_c               with few rows, partly what classes have in common
    g_c(x) = (x - m_c)' S_c^-1 (x - m_c) + log det S_c              the class with the smallest wins
    p_c(x) ~ exp(-g_c(x) / (2 T))

No sum depends on the order of its rows, so no order of classes or tasks makes it forget: what it knows after a stream
is, up to rounding, what it would know had the stream been shuffled. Only the axes depend on the order a little, because
those beyond n_axes are dropped each time the buffer is taken in. S_c is never formed: by Woodbury's identity an answer
takes one product with B^-1 m_c and n_axes others per class. All classes count as equally likely beforehand. T is
learned on the way: now and then rows are scored before they are learned, and T moves to where the log loss of those
answers is least. A class of one sample has the covariance that all classes share; without any spread at all the
nearest mean wins. This is regularised discriminant analysis (Friedman, 1989) with low-rank class covariances, and not
competition.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(300, 2)) @ [[3.0, 0.0], [0.0, 0.3]] + np.repeat([[0.0, 0.0], [0.0, 2.0]], 150, axis=0)
>>> clf = DiscriminantClassifier(n_axes=1).partial_fit(X[:150], ["low"] * 150)
>>> clf.partial_fit(X[150:], ["high"] * 150).predict([[6.0, 0.2], [-6.0, 1.8]])      # one class after the other
array(['low', 'high'], dtype=object)
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from ccmem._sklearn import BaseEstimator, ClassifierMixin, NotFittedError, clone
from ccmem._typing import FloatArray, IntArray
from ccmem.estimator import SavedEstimator
from ccmem.guard import learning, reading
from ccmem.kernels.packed import on_one_thread
from ccmem.kernels.rows import check_finite, check_rows, columns_kept_on_error
from ccmem.labels import UNLABELED, check_labels, code_of, encode_labels, sorted_union
from ccmem.parameters import Rule, check_parameters, integer, number
from ccmem.predictors._rule import SCORED_TOGETHER, make_rule, scores
from ccmem.predictors._statistics import (
    COUNTERS,
    SCORED_AT,
    SEEN,
    TAUGHT,
    WAITING,
    Statistics,
    new_statistics,
    take_in_buffer,
    with_classes,
)

_SCORE_AFTER = 1.1
"""Rows are scored, for the temperature, when this many times as many were taught as the time before."""
_FADES = 0.75
"""What the temperature's certainty is multiplied with each time."""
_MATURE = 0.25
"""Rows of a class that had fewer than this part of the mean are not scored: they say little about later answers."""
_NUMPY_BUFFERS = 25_000
"""What numpy takes to convert numbers piece by piece."""


def naive(
    X: FloatArray, codes: IntArray, Q: FloatArray, *, n_axes: int, own_share: float, ridge: float, buffer_rows: int
) -> FloatArray:
    """The equations above, read aloud: g_c, less what all classes share, of the rows of ``Q`` after learning ``X``."""
    X, Q = X.astype(np.float64), Q.astype(np.float64)
    n, d, n_classes = len(X), X.shape[1], int(codes.max()) + 1
    m = [X[codes == c].mean(axis=0) for c in range(n_classes)]
    deviations = np.array([x - m[c] for x, c in zip(X, codes, strict=True)])
    W = deviations.T @ deviations / n
    s2 = np.trace(W) / d

    def largest(scatter: FloatArray) -> FloatArray:
        values, vectors = np.linalg.eigh(scatter)
        keep = np.argsort(values)[::-1][:n_axes]
        return (vectors[:, keep] * np.maximum(values[keep], 0)) @ vectors[:, keep].T

    A = [np.zeros((d, d)) for _ in m]
    for end in range(buffer_rows, n + buffer_rows, buffer_rows):
        start, end = end - buffer_rows, min(end, n)
        for c in np.unique(codes[start:end]):
            before, now = X[:start][codes[:start] == c], X[start:end][codes[start:end] == c]
            scatter = (now - now.mean(0)).T @ (now - now.mean(0))
            if len(before):
                step = now.mean(0) - before.mean(0)
                scatter += np.outer(step, step) * len(before) * len(now) / (len(before) + len(now))
            A[c] = largest(A[c] + scatter)
    common = np.zeros((d, d))
    for c in range(n_classes):
        common = largest(common + A[c])
    B = (1 - own_share) * W + ridge * s2 * np.eye(d) if s2 > 0 else np.eye(d)
    found = np.empty((len(Q), n_classes))
    for c in range(n_classes):
        n_c = int((codes == c).sum())
        known = n_c / (n_c + n_axes)
        S = B + own_share * largest(known * A[c] / n_c + (1 - known) * common / n)
        difference = Q - m[c]
        found[:, c] = (difference * np.linalg.solve(S, difference.T).T).sum(axis=1) + np.linalg.slogdet(S)[1]
    return found


class DiscriminantClassifier(SavedEstimator, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Discriminant analysis on a stream: running sums, so that no order of classes makes it forget.

    For features that are already good: those of a :class:`ccmem.PatchLayer`, embeddings of a pretrained network,
    readings of sensors. New classes may appear at any time; rows without a label are skipped.

    Parameters
    ----------
    n_axes : int, default=20
        How many directions of its own each class keeps (k). More cost n_axes x d floats a class.
    own_share : float, default=0.4
        How much of a class's covariance is its own; the rest is what all classes share. 0 is linear discriminant
        analysis.
    ridge : float, default=0.02
        What is added to every variance, in parts of the mean variance.
    buffer_rows : int, default=64
        How many rows wait to be taken in together. Fewer are slower; it hardly matters otherwise.
    unlabeled : label or None, default=None
        A value of ``y`` that also means "no label", besides None and NaN.

    Attributes
    ----------
    classes_ : array of the labels seen or announced so far, sorted.
    class_counts_, means_ : how many rows each class had, and their mean; copies.
    temperature_ : float, what scores are divided by for probabilities.
    n_floats_ : int, how many numbers are kept; the buffer is among them.
    working_floats_ : int, how many more are needed while learning or answering.
    n_samples_seen_, n_samples_taught_ : how many rows came, and how many of them had a label.
    """

    _rules: ClassVar[dict[str, Rule]] = {
        "n_axes": integer(1),
        "own_share": number(0.0, 1.0, open_above=True),
        "ridge": number(0.0, open_below=True, open_above=True),
        "buffer_rows": integer(1),
    }
    _shape_parameters: ClassVar[tuple[str, ...]] = ("n_axes", "buffer_rows")
    _not_pickled: ClassVar[tuple[str, ...]] = ("_made",)
    _state: Statistics
    _made: list[Any]
    """The rule and what it was made with; made when it is needed, dropped when something is learned."""
    classes_: Any

    def __init__(
        self,
        n_axes: int = 20,
        *,
        own_share: float = 0.4,
        ridge: float = 0.02,
        buffer_rows: int = 64,
        unlabeled: Any = None,
    ) -> None:
        self.n_axes = n_axes
        self.own_share = own_share
        self.ridge = ridge
        self.buffer_rows = buffer_rows
        self.unlabeled = unlabeled

    # Learning ----------------------------------------------------------------------------------------------------

    @learning
    def fit(self, X: Any, y: Any) -> Self:
        """Forget everything, then learn the rows of ``X`` and their labels, once."""
        if y is None:
            raise ValueError(
                "DiscriminantClassifier.fit requires y to be passed, but the target y is None; "
                "use partial_fit for chunks without labels"
            )
        fresh = clone(self)
        fresh._teach(X, y, None)
        if not len(fresh.classes_):
            raise ValueError("every label in y is missing (NaN or None); fit needs at least one")
        self._adopt(fresh)
        return self

    @learning
    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> Self:
        """Learn the rows of ``X`` that have a label; how a stream is cut into chunks changes nothing.

        ``classes`` may announce labels to come; it is never needed.
        """
        if self.__sklearn_is_fitted__():
            self._teach(X, y, classes)
        else:
            fresh = clone(self)
            fresh._teach(X, y, classes)
            self._adopt(fresh)
        return self

    @learning
    def learn_one(self, x: Any, y: Any = None) -> None:
        """Learn one sample, if it has a label."""
        if self.__sklearn_is_fitted__() and (row := self._check_one(x)) is not None:
            code = code_of(self.classes_, y, self.unlabeled)
            if code is not None:
                self._check_settings()
                self._learn(row, np.array([code]))
                return
        labels = None if y is None else np.array([y], dtype=object if isinstance(y, str) else None)
        self.partial_fit(np.asarray(x).reshape(1, -1), labels)

    def _teach(self, X: Any, y: Any, classes: Any) -> None:
        """Learn a chunk; nothing changes unless all of it can be learned."""
        self._check_settings()
        rows = self._check(X)
        labels, missing = check_labels(y, len(rows), self.unlabeled)
        known = self.classes_ if self.__sklearn_is_fitted__() else np.empty(0, labels.dtype)
        everything = sorted_union(known, labels[~missing], np.asarray([] if classes is None else classes))
        self._learn_coded(rows, encode_labels(labels, missing, everything), everything)

    def _teach_coded(self, X: Any, codes: IntArray, values: Any) -> None:
        """As ``_teach``, for labels that are places in an array of distinct ``values``: nothing is done per label."""
        self._check_settings()
        rows = self._check(X)
        used = np.unique(codes[codes != UNLABELED])
        everything = sorted_union(getattr(self, "classes_", values[:0]), values[used])
        places = np.full(len(values) + 1, UNLABELED, np.int64)  # the last is where the code of a missing label points
        places[used] = np.searchsorted(everything, values[used])
        self._learn_coded(rows, places[codes], everything)

    def _learn_coded(self, rows: FloatArray, codes: IntArray, classes: Any) -> None:
        first = not self.__sklearn_is_fitted__()
        state = new_statistics(rows.shape[1], int(self.n_axes), int(self.buffer_rows)) if first else self._state
        known = classes[:0] if first else self.classes_
        self._state = with_classes(state, np.searchsorted(classes, known.astype(classes.dtype)), len(classes))
        self.classes_, self._began_with = classes, self._shape()
        self._learn(rows, codes)

    def _learn(self, rows: FloatArray, codes: IntArray) -> None:
        self._made = []
        self._state.counters[SEEN] += len(rows)
        taught = np.flatnonzero(codes != UNLABELED)
        state, counters = self._state, self._state.counters
        done = 0
        while done < len(taught):
            waiting = int(counters[WAITING])
            now = taught[done : done + len(state.buffer) - waiting]
            state.buffer[waiting : waiting + len(now)] = rows[now]
            state.buffer_codes[waiting : waiting + len(now)] = codes[now]
            counters[WAITING] += len(now)
            counters[TAUGHT] += len(now)
            done += len(now)
            if counters[WAITING] == len(state.buffer):
                with on_one_thread():
                    if counters[TAUGHT] >= _SCORE_AFTER * counters[SCORED_AT] + len(state.buffer):
                        self._calibrate()
                    take_in_buffer(state)

    def _calibrate(self) -> None:
        """Move the temperature towards what makes the answers to the rows that wait most likely."""
        state = self._state
        present = np.flatnonzero(state.counts)
        state.counters[SCORED_AT] = state.counters[TAUGHT]
        if len(present) < 2:
            return
        known = state.counts[state.buffer_codes] > _MATURE * state.counts[present].mean()
        if not known.any():
            return
        rule = make_rule(self._copied_without_buffer(), float(self.own_share), float(self.ridge))
        found = scores(rule, state.buffer[known])[:, present] / 2
        own = np.searchsorted(present, state.buffer_codes[known])
        before, certainty = state.calibration

        def cost(t: float) -> float:
            return _log_loss(found / np.exp(t), own) + 0.5 * (certainty + 1.0) * (t - before) ** 2

        best = min(before + np.linspace(-2.0, 2.0, 81), key=cost)
        best = min(best + np.linspace(-0.05, 0.05, 21), key=cost)
        p = _softmax(-found / np.exp(best))
        spread = (p * (found - (p * found).sum(axis=1, keepdims=True)) ** 2).sum() / np.exp(2 * best)
        state.calibration[:] = best, _FADES * certainty + spread

    # Reading -----------------------------------------------------------------------------------------------------

    @reading
    def predict(self, X: Any) -> Any:
        """The most likely label of every row."""
        best = self._scores(X).argmin(axis=1)
        return self.classes_[best]

    @reading
    def predict_one(self, x: Any) -> Any:
        """The most likely label of one sample."""
        return self.predict(np.asarray(x).reshape(1, -1))[0]

    @reading
    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of every class for every row."""
        return _softmax(-self._scores(X) / (2.0 * self.temperature_))

    def _scores(self, X: Any) -> FloatArray:
        self._require_classes()
        return self._score(self._check(X))

    def _score(self, rows: FloatArray) -> FloatArray:
        settings = float(self.own_share), float(self.ridge)
        kept = self._made[0] if self._made else None
        with on_one_thread():
            if kept is None or kept[0] != settings:
                self._check_settings()
                kept = settings, make_rule(self._copied_without_buffer(taken_in=True), *settings)
                self._made[:] = [kept]  # at once: others may read at the same time
            return scores(kept[1], rows)

    def _copied_without_buffer(self, taken_in: bool = False) -> Statistics:
        state = self._state
        copy = state._replace(
            counts=state.counts.copy(),
            classes=state.classes.copy(),
            scatter=state.scatter.copy(),
            counters=state.counters.copy(),
        )
        if taken_in:
            take_in_buffer(copy)
        return copy

    @property
    @reading
    def class_counts_(self) -> IntArray:
        """How many rows each class had."""
        self._require_start()
        return self._copied_without_buffer(taken_in=True).counts

    @property
    @reading
    def means_(self) -> FloatArray:
        """Mean of the rows of each class, an array of shape (n_classes, n_features_in_)."""
        self._require_start()
        return self._copied_without_buffer(taken_in=True).classes[:, 0]

    @property
    def temperature_(self) -> float:
        """What scores are divided by for probabilities."""
        self._require_start()
        return float(np.exp(self._state.calibration[0]))

    @property
    def n_floats_(self) -> int:
        """How many numbers are kept, the buffer and counts among them."""
        self._require_start()
        return sum(array.size for array in self._state)

    @property
    def working_floats_(self) -> int:
        """How many more numbers are needed while learning or answering, in parts of an array of float32.

        A copy of what was learned becomes the rule. Beside it the buffer is taken in, then axes are turned, then a few
        rows are scored: the largest of these counts.
        """
        self._require_start()
        state = self._state
        n_classes, n_rows, d = state.classes.shape
        taken_in = 2 * (len(state.buffer) + n_rows) * d
        scored = SCORED_TOGETHER * (d + 3 * n_classes * n_rows)
        return state.scatter.size + state.classes.size + max(taken_in, 6 * n_rows * d, scored) + _NUMPY_BUFFERS

    @property
    def n_samples_seen_(self) -> int:
        """How many rows have been seen since learning began."""
        self._require_start()
        return int(self._state.counters[SEEN])

    @property
    def n_samples_taught_(self) -> int:
        """How many of them had a label."""
        self._require_start()
        return int(self._state.counters[TAUGHT])

    # ---------------------------------------------------------------------------------------------------------------

    def _check(self, X: Any) -> FloatArray:
        """``X`` as float32 rows, every value checked; nothing changes if it is bad."""
        if self.__sklearn_is_fitted__():
            with np.errstate(over="ignore"):
                return check_rows(self, X, np.float32)
        with columns_kept_on_error(self):
            rows = check_rows(self, X, None)
            if rows.dtype != np.float32:
                with np.errstate(over="ignore"):
                    rows = rows.astype(np.float32)
                check_finite(rows)
        return rows

    def _check_one(self, x: Any) -> FloatArray | None:
        """``x`` as one row, without a copy, if there is nothing to convert; else None."""
        if type(x) is not np.ndarray or x.dtype != np.float32 or x.shape != self._state.buffer.shape[1:]:
            return None
        return x[np.newaxis] if x.flags.carray and np.abs(x).max() < 1e15 else None

    def _require_classes(self) -> None:
        self._require_start()
        if self._state.counters[TAUGHT] == 0:
            raise NotFittedError(
                "This DiscriminantClassifier has seen no label yet; give partial_fit some labels first"
            )

    @reading
    def _export(self) -> dict[str, Any]:
        names = {"feature_names_in_": self.feature_names_in_} if hasattr(self, "feature_names_in_") else {}
        self._check_settings()
        fields = {name: array for name, array in self._state._asdict().items() if name != "counters"}
        return {
            **fields,
            "counters": dict(zip(COUNTERS, self._state.counters.tolist(), strict=True)),
            "classes_": self.classes_,
            "n_features_in_": int(self.n_features_in_),
            **names,
        }

    def _import(self, fields: dict[str, Any]) -> None:
        from ccmem.predictors._saved_statistics import check_statistics

        check_parameters(type(self).__name__, self._rules, vars(self))
        state = check_statistics(self, fields)
        self._state, self.classes_, self._made = state, fields["classes_"], []
        self._began_with = self._shape()
        self.__dict__.update({name: fields[name] for name in fields if name.endswith("_in_")})

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "_state"):
            self._made = []


def _log_loss(found: FloatArray, own: IntArray) -> float:
    """Sum of negative log probabilities of the rows' own classes; ``found`` are half scores over the temperature."""
    least = found.min(axis=1)
    there = found[np.arange(len(found)), own]
    return float((there - least + np.log(np.exp(least[:, np.newaxis] - found).sum(axis=1))).sum())


def _softmax(values: FloatArray) -> FloatArray:
    p = np.exp(values - values.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)
