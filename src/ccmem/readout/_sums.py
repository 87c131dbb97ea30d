"""Discriminant analysis from running sums over all rows: for many columns, or without forgetting.

The scatter matrix is symmetric, so only half of it is stored (:mod:`ccmem.readout.packed`). Rows are collected in a
buffer and added by matrix products when the buffer is full. The buffer is part of the state, so results do not depend
on chunk boundaries.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg import lapack

from ccmem.base.matching import blas_on_one_thread
from ccmem.base.normalised import EMPTY, share_unit
from ccmem.core.codes import UNLABELED
from ccmem.core.typing import FloatArray, IntArray
from ccmem.kernels.discriminant import Settings
from ccmem.kernels.priors import EQUAL, PSEUDO_COUNT
from ccmem.readout._saved import checked_arrays
from ccmem.readout.packed import add_products, diagonal, factor_covariance, packed_zeros, solved

SEEN, TAUGHT, WAITING, SCORED_AT = range(4)
"""Indices into ``counters``: rows seen, rows with a label, rows in the buffer, TAUGHT when rows were last scored."""
SCORED_TOGETHER = 64
"""Number of rows scored per matrix product."""
_SCORE_AFTER = 1.1
"""Growth factor of the number of learned rows between two updates of the temperature."""
_STALE = 1 / 8
"""Rows of a class that may wait in the buffer, relative to those in the sums: predictions use the sums."""
_ENOUGH = 1 / 4
"""Smallest part of the buffer that updates the temperature."""
_FADES = 0.75
"""Decay factor of the temperature's precision at each update."""
_MATURE = 0.25
"""Rows of classes below this fraction of the mean class count are not scored: their early scores are not typical."""
_FLOATS_AT_ONCE = 25_000
"""Most floats of class axes that are processed together when a rule is made, unless one class has more."""
_SMALL = 50_000
"""Products below which scores are computed without BLAS: to hold its threads takes as long as 100,000 products."""
_NUMPY_BUFFERS = 25_000
"""Floats that numpy allocates to convert arrays piece by piece."""


class Sums(NamedTuple):
    """Complete learned state; classes are in the order of ``classes_``."""

    counts: IntArray
    classes: FloatArray
    """Per class its mean, then n_axes scaled axes v; the sum of v v' approximates the scatter of the class."""
    scatter: FloatArray
    """Sum over all rows of (x - mean of its class)(x - mean of its class)', packed."""
    sizes: FloatArray
    """Largest magnitude in every column."""
    buffer: FloatArray
    buffer_codes: IntArray
    calibration: FloatArray
    """Logarithm of the temperature, and its precision: decaying sum of the curvature of the log loss."""
    counters: IntArray

    @staticmethod
    def dtype() -> Any:
        """Return the type of the rows that are learned."""
        return np.float32

    @staticmethod
    def counter_names() -> tuple[str, ...]:
        """Return the names of the entries of ``counters``."""
        return ("seen", "taught", "waiting", "scored_at")

    @classmethod
    def new(cls, d: int, n_axes: int, buffer_rows: int) -> Self:
        """Return the initial state for ``d`` columns, before the first row."""
        return cls(
            counts=np.zeros(0, np.int64),
            classes=np.zeros((0, 1 + n_axes, d), np.float32),
            scatter=packed_zeros(d),
            sizes=np.zeros(d, np.float32),
            buffer=np.zeros((buffer_rows, d), np.float32),
            buffer_codes=np.zeros(buffer_rows, np.int64),
            calibration=np.zeros(2),
            counters=np.zeros(4, np.int64),
        )

    def with_classes(self, places: IntArray, n_classes: int) -> Self:
        """Return the state extended to ``n_classes`` classes; ``places`` gives the new indices of the known classes."""
        if n_classes == len(self.counts):
            return self
        counts = np.zeros(n_classes, np.int64)
        classes = np.zeros((n_classes, *self.classes.shape[1:]), np.float32)
        counts[places], classes[places] = self.counts, self.classes
        codes = self.buffer_codes.copy()
        waiting = self.counters[WAITING]
        codes[:waiting] = places[codes[:waiting]]
        return self._replace(counts=counts, classes=classes, buffer_codes=codes)

    def with_columns(self, d: int) -> Self:
        """Raise ValueError: columns cannot be added to the sums."""
        raise ValueError("DiscriminantClassifier: adding columns needs forgetting='auto' and few columns")

    def learn(self, rows: FloatArray, codes: IntArray, settings: Settings) -> None:
        """Learn rows with their label codes, in place."""
        self.counters[SEEN] += len(rows)
        taught = np.flatnonzero(codes != UNLABELED)
        counters, done = self.counters, 0
        while done < len(taught):
            waiting = int(counters[WAITING])
            now = taught[done : done + len(self.buffer) - waiting]
            own = np.append(self.buffer_codes[:waiting], codes[now])
            rank = np.tril(own[waiting:, np.newaxis] == own, waiting).sum(axis=1)  # rows of its class that wait
            due = np.flatnonzero(rank > _STALE * self.counts[codes[now]])
            now = now[: due[0] + 1] if len(due) else now
            self.buffer[waiting : waiting + len(now)] = rows[now]
            self.buffer_codes[waiting : waiting + len(now)] = codes[now]
            counters[WAITING] += len(now)
            counters[TAUGHT] += len(now)
            done += len(now)
            if len(due) or counters[WAITING] == len(self.buffer):
                with blas_on_one_thread():
                    enough = counters[WAITING] >= _ENOUGH * len(self.buffer)
                    if enough and counters[TAUGHT] >= _SCORE_AFTER * counters[SCORED_AT] + len(self.buffer):
                        self._calibrate(settings)
                    self.add_buffer()

    def add_buffer(self) -> None:
        """Add the buffered rows to counts, means, axes and scatter, in place."""
        waiting = self.counters[WAITING]
        if waiting == 0:
            return
        rows, codes = self.buffer[:waiting], self.buffer_codes[:waiting]
        present = np.unique(codes)
        deviations = np.empty((waiting + len(present), rows.shape[1]), np.float32)
        done = 0
        for c in present:
            own = rows[codes == c]
            part = deviations[done : done + len(own) + 1]
            n, more = int(self.counts[c]), len(own)
            mean = own.mean(axis=0, dtype=np.float64)
            step = mean - self.classes[c, 0]
            np.subtract(own, mean, out=part[:-1], casting="same_kind")
            part[-1] = step * np.sqrt(n * more / (n + more))  # between-means term
            self.classes[c, 0] += step * (more / (n + more))
            self.counts[c] = n + more
            axes = self.classes[c, 1:]
            largest_axes(np.concatenate([axes, part]), axes)
            done += more + 1
        add_products(self.scatter, deviations)
        np.maximum(self.sizes, np.abs(rows).max(axis=0), out=self.sizes)
        self.counters[WAITING] = 0

    def copied(self, with_buffer: bool) -> Self:
        """Return a copy of the sums, with or without the rows that wait in the buffer."""
        copy = self._replace(
            counts=self.counts.copy(),
            classes=self.classes.copy(),
            scatter=self.scatter.copy(),
            sizes=self.sizes.copy(),
            counters=self.counters.copy(),
        )
        if with_buffer:
            copy.add_buffer()
        return copy

    def _calibrate(self, settings: Settings) -> None:
        """Move the temperature towards the value that minimises the log loss of the buffered rows."""
        present = np.flatnonzero(self.counts)
        self.counters[SCORED_AT] = self.counters[TAUGHT]
        if len(present) < 2:
            return
        rows, codes = (array[: self.counters[WAITING]] for array in (self.buffer, self.buffer_codes))
        known = self.counts[codes] > _MATURE * self.counts[present].mean()
        if not known.any():
            return
        rule = make_rule(self.copied(with_buffer=False), settings.own_share, settings.ridge)
        found = rule.scores(rows[known])[:, present] / 2
        own = np.searchsorted(present, codes[known])
        before, certainty = self.calibration

        def cost(t: float) -> float:
            return _log_loss(found / np.exp(t), own) + 0.5 * (certainty + 1.0) * (t - before) ** 2

        best = min(before + np.linspace(-2.0, 2.0, 81), key=cost)
        best = min(best + np.linspace(-0.05, 0.05, 21), key=cost)
        p = _softmax(-found / np.exp(best))
        spread = (p * (found - (p * found).sum(axis=1, keepdims=True)) ** 2).sum() / np.exp(2 * best)
        self.calibration[:] = best, _FADES * certainty + spread

    def scores(self, rows: FloatArray, settings: Settings, made: list[Any]) -> FloatArray:
        """Return the score of every class for every row; ``made`` caches the rule and what it was made from."""
        key = settings, len(self.counts), self.counters[TAUGHT] - self.counters[WAITING]
        kept: Any = made[0] if made else (None, None)
        if kept[0] != key:
            with blas_on_one_thread():
                kept = key, make_rule(self.copied(with_buffer=False), settings.own_share, settings.ridge)
            made[:] = [kept]  # one assignment, because other threads may read meanwhile
        return np.asarray(kept[1].scores(rows))

    def probabilities(self, rows: FloatArray, settings: Settings, made: list[Any]) -> tuple[FloatArray, None]:
        """Return the class probabilities of every row, and None: distances to classes are not known."""
        found = -self.scores(rows, settings, made) / (2.0 * self.temperature)
        if settings.priors != EQUAL:
            found += np.log(self.class_counts + PSEUDO_COUNT)
        return _softmax(found), None

    @property
    def class_counts(self) -> IntArray:
        """Number of rows of each class, including those in the buffer."""
        waiting = self.buffer_codes[: self.counters[WAITING]]
        return self.counts + np.bincount(waiting, minlength=len(self.counts))

    @property
    def class_means(self) -> FloatArray:
        """Mean of all rows of each class, one row per class."""
        return self.copied(with_buffer=True).classes[:, 0]

    @property
    def temperature(self) -> float:
        """Temperature that divides the scores."""
        return float(np.exp(self.calibration[0]))

    @property
    def working_floats(self) -> int:
        """Number of temporary floats needed to learn or predict: a copy of the sums, and the largest of three steps.

        The steps are adding the buffer, rotating axes, and scoring a few rows.
        """
        n_classes, n_rows, d = self.classes.shape
        added = 2 * (len(self.buffer) + n_rows) * d
        scored = SCORED_TOGETHER * (d + 3 * n_classes * n_rows)
        return self.scatter.size + self.classes.size + max(added, 6 * n_rows * d, scored) + _NUMPY_BUFFERS

    @classmethod
    def checked(cls, name: str, fields: dict[str, Any], empty: Self) -> Self:
        """Return the state in ``fields``; raise ValueError if learning cannot produce such a state."""
        state = cls(**checked_arrays(name, fields, empty._asdict()))
        seen, taught, waiting, scored_at = state.counters.tolist()
        codes = state.buffer_codes[:waiting]
        if min(seen, taught, waiting, scored_at) < 0 or taught > seen or abs(state.calibration).max() > 1e9:
            raise ValueError(f"{name}: its counters are damaged")
        if waiting >= len(state.buffer) or (codes.size and not (codes.min() >= 0 and codes.max() < len(state.counts))):
            raise ValueError(f"{name}: the buffered rows are damaged")
        if state.counts.min(initial=0) < 0 or state.counts.sum() + waiting != taught:
            raise ValueError(f"{name}: its counts do not add up")
        if (state.sizes < 0).any():
            raise ValueError(f"{name}: its largest magnitudes are negative")
        if (state.scatter[diagonal(state.buffer.shape[1])] < 0).any():
            raise ValueError(f"{name}: its scatter has negative variances")
        return state


def largest_axes(rows: FloatArray, axes: FloatArray) -> None:
    """Fill ``axes`` with orthogonal rows whose scatter approximates that of ``rows``; unused axes are 0.

    The axes are computed from the eigenvectors of the small Gram matrix of ``rows``.
    """
    values, vectors, _ = lapack.ssyevd(rows @ rows.T)  # a third of the time of np.linalg.eigh
    keep = min(len(axes), len(values))
    largest = vectors[:, ::-1][:, :keep] * (values[::-1][:keep] > 1e-6 * max(values[-1], 0.0))
    np.matmul(largest.T, rows, out=axes[:keep])
    axes[keep:] = 0


class Rule(NamedTuple):
    """Scores bias - 2 b.x - |G x - h|^2 of every class, lower is better; x is relative to ``centre``."""

    centre: FloatArray
    weights: FloatArray
    """Per class, the vector b followed by the rows of G."""
    shifts: FloatArray
    """Per class, the vector h."""
    bias: FloatArray

    def scores(self, X: FloatArray) -> FloatArray:
        """Return the score of every class for every row: -2 log likelihood, up to a constant common to all classes."""
        n_classes, n_axes = self.shifts.shape
        found = np.empty((len(X), n_classes))
        for start in range(0, len(X), SCORED_TOGETHER):
            part = slice(start, start + SCORED_TOGETHER)
            products = self._products(X[part] - self.centre).reshape(-1, n_classes, 1 + n_axes)
            off = products[:, :, 1:] - self.shifts
            found[part] = self.bias - 2.0 * products[:, :, 0] - np.einsum("rck,rck->rc", off, off)
        return found

    def _products(self, rows: FloatArray) -> FloatArray:
        if len(rows) * self.weights.size < _SMALL:
            return np.asarray(np.einsum("rd,kd->rk", rows, self.weights))
        with blas_on_one_thread():
            return rows @ self.weights.T


def make_rule(state: Sums, own_share: float, ridge: float) -> Rule:
    """Return the rule of ``state`` without the buffer; ``state`` is a copy whose arrays are reused by the rule.

    A class with n rows gets its own covariance with weight n / (n + n_axes), because few rows determine few directions.
    """
    counts, classes = state.counts, state.classes
    n_classes, n_axes, d = len(counts), classes.shape[1] - 1, classes.shape[2]
    total = max(int(counts.sum()), 1)
    centre = (counts @ classes[:, 0].astype(np.float64) / total).astype(np.float32)
    sizes = np.where(state.sizes > EMPTY * state.sizes.max(), state.sizes, np.float32(0))
    spread = factor_covariance(state.scatter, d, total, 1.0 - own_share, ridge, None if share_unit(sizes) else sizes)
    shifts, bias = np.zeros((n_classes, n_axes), np.float32), np.full(n_classes, np.inf)
    known, at_once = np.flatnonzero(counts), max(1, _FLOATS_AT_ONCE // classes[0].size)
    for begin in range(0, len(known), at_once):
        part = known[begin : begin + at_once]
        both = classes[part]
        both[:, 0] -= centre
        both[:, 1:] *= np.sqrt(own_share / (counts[part] + n_axes), dtype=np.float32)[:, np.newaxis, np.newaxis]
        both /= np.float32(spread)
        mean = both[:, 0].astype(np.float64)
        half = solved(state.scatter, both.reshape(-1, d).T).T.reshape(both.shape)
        small = np.linalg.cholesky(
            np.eye(n_axes) + np.matmul(half[:, 1:], half[:, 1:].transpose(0, 2, 1), dtype=np.float64)
        )
        half[:, 1:] = np.linalg.solve(small, half[:, 1:])
        both[:] = solved(state.scatter, half.reshape(-1, d).T, transposed=True).T.reshape(both.shape)
        del half  # free memory before the next array is allocated
        shifts[part] = np.matmul(both[:, 1:], mean[:, :, np.newaxis])[:, :, 0]
        bias[part] = (mean * both[:, 0]).sum(axis=1) + 2.0 * np.log(np.diagonal(small, axis1=1, axis2=2)).sum(axis=1)
        classes[part] = both / np.float32(spread)
    return Rule(centre, classes.reshape(-1, d), shifts, bias)


def _log_loss(found: FloatArray, own: IntArray) -> float:
    """Return the log loss of the rows, summed; ``found`` are half the scores divided by the temperature."""
    least = found.min(axis=1)
    there = found[np.arange(len(found)), own]
    return float((there - least + np.log(np.exp(least[:, np.newaxis] - found).sum(axis=1))).sum())


def _softmax(values: FloatArray) -> FloatArray:
    """Return the softmax of every row."""
    p = np.exp(values - values.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)
