"""Discriminant analysis under drift: forecasters with different memory lengths, weighted by their forecasts.

For few columns. Each live forecaster keeps exponentially weighted sums per class. They decay with every row of the
class, so an absent class does not decay; one forecaster never decays. One more forecaster keeps 1,024 rows, the same
number of each class if possible, and compares the distances to the nearest rows of every class: it answers where a
class consists of several clouds (:mod:`ccmem.kernels.neighbours`). Every labelled row is first predicted by all
forecasters. A forecaster's weight is the exponential of its log likelihood, summed over a decay time of 10 rows:

    S_c    = (1 - k_c) W + k_c A_c + ridge diag(W),   k_c = own_share n_c / (n_c + n_axes)
    u_c(x) = -((x - m_c)' S_c^-1 (x - m_c) + log det S_c) / 2
    p(x)   = sum over forecasters of weight times softmax(u / T + log prior)

W is the shared covariance, A_c the covariance of class c, T a temperature that each forecaster learns. The ridge is
relative to the variance of each column, so results do not depend on units. Forecasts with equal priors and with class
frequencies are mixed by the number of latest rows that only one of the two predicted (:mod:`ccmem.kernels.priors`).
Every 256 rows a copy of the 100-row forecaster is archived, unless an archived copy predicts equally well. When a
concept returns, the forecasts of its copy identify it within a few rows.
"""

from __future__ import annotations

from threading import get_ident
from typing import Any, NamedTuple, Self

import numpy as np

from ccmem.core.typing import BoolArray, FloatArray, IntArray
from ccmem.kernels import discriminant as kernels
from ccmem.kernels.discriminant import (
    ARCHIVE,
    ARCHIVE_EVERY,
    LAST,
    LOG_TEMPERATURE,
    LONG,
    SHORT,
    TAUGHT,
    USE,
    WINDOWS,
    Settings,
)
from ccmem.kernels.jit import compiled_for
from ccmem.kernels.neighbours import CODE
from ccmem.kernels.priors import MOST_LEAD
from ccmem.readout._reject import unusually_far
from ccmem.readout._saved import checked_arrays

ARCHIVE_SIZE = 6
ARCHIVED = 2
"""Index of the live forecaster that is archived: its window is long enough to be precise, and spans one concept."""
ARCHIVE_MARGIN = 10.0
"""Minimum lead in log loss, summed over the long average, over all archived forecasters for a copy to be archived."""
KEPT_ROWS = 1024
"""Number of rows kept to search for neighbours. 512 rows were worse on clouds (.872 instead of .895)."""
_NO_CODES: IntArray = np.empty(0, np.int64)
_NO_ROWS: FloatArray = np.empty((0, 0))
_RUN: list[Any] = []
"""Compiled :func:`ccmem.kernels.discriminant.run`, whose arguments always have the same types."""


class Following(NamedTuple):
    """Complete learned state; the last axes are forecaster (live ones, then the archive) and class."""

    counts: IntArray
    weights: FloatArray
    means: FloatArray
    scatters: FloatArray
    """Per live forecaster and class, the weighted sum of (x - mean)(x - mean)', packed."""
    pooled: FloatArray
    """Sum of the scatters of all classes of a live forecaster, packed."""
    factors: FloatArray
    """Cholesky factors of the covariances, packed."""
    log_dets: FloatArray
    forecasters: FloatArray
    """Evidence, use and temperature of every forecaster, the neighbours last; see :mod:`ccmem.kernels.discriminant`."""
    typical: FloatArray
    """Weight, mean, variance and third moment of the log distance between a row and the mean of its class."""
    lead: FloatArray
    """Latest rows that class frequencies as priors predicted and equal priors did not, less the opposite."""
    tables: FloatArray
    """Exponentially weighted label counts: overall, then conditional on the previous label."""
    kept: FloatArray
    """Kept rows, one per column."""
    kept_labels: IntArray
    """Code and age of every kept row; -1 and 0 where there is none yet."""
    counters: IntArray

    @staticmethod
    def dtype() -> Any:
        """Return the type of the rows that are learned."""
        return np.float64

    @staticmethod
    def counter_names() -> tuple[str, ...]:
        """Return the names of the entries of ``counters``."""
        return ("seen", "taught", "last", "archive", "run")

    @classmethod
    def new(cls, d: int, n_axes: int, buffer_rows: int) -> Self:
        """Return the initial state for ``d`` columns, before the first row."""
        live, packed, n = len(WINDOWS), d * (d + 1) // 2, len(WINDOWS) + ARCHIVE_SIZE
        return cls(
            counts=np.zeros(0, np.int64),
            weights=np.zeros((live, 0)),
            means=np.zeros((d, n, 0)),
            scatters=np.zeros((packed, live, 0)),
            pooled=np.zeros((packed, live)),
            factors=np.zeros((packed, n, 0)),
            log_dets=np.zeros((n, 0)),
            forecasters=np.zeros((5, n + 1)),
            typical=np.zeros(4),
            lead=np.zeros(1),
            tables=np.zeros((1, 0)),
            kept=np.zeros((d, KEPT_ROWS)),
            kept_labels=np.stack([np.full(KEPT_ROWS, -1), np.zeros(KEPT_ROWS, np.int64)]),
            counters=np.array([0, 0, -1, 0, 0]),
        )

    def with_classes(self, places: IntArray, n_classes: int) -> Self:
        """Return the state extended to ``n_classes`` classes; ``places`` gives the new indices of the known classes."""
        if n_classes == len(self.counts):
            return self
        wider: dict[str, Any] = {}
        for name in ("counts", "weights", "means", "scatters", "factors", "log_dets"):
            array = getattr(self, name)
            fill = np.inf if name == "log_dets" else 0
            wider[name] = np.full((*array.shape[:-1], n_classes), fill, array.dtype)
            wider[name][..., places] = array
        new = np.setdiff1d(np.arange(n_classes), places)
        wider["factors"][np.ix_(_diagonal(len(self.means)), np.arange(len(self.log_dets)), new)] = 1.0
        wider["tables"] = np.zeros((1 + n_classes, n_classes))
        wider["tables"][np.ix_(np.append(0, 1 + places), places)] = self.tables
        wider["counters"], wider["kept_labels"] = self.counters.copy(), self.kept_labels.copy()
        moved = np.append(places, -1)  # the code -1 of an empty place stays -1
        wider["counters"][LAST] = moved[self.counters[LAST]]
        wider["kept_labels"][CODE] = moved[self.kept_labels[CODE]]
        return self._replace(**wider)

    def with_columns(self, d: int) -> Self:
        """Return the state extended to ``d`` columns; the new ones were 0 in all earlier rows."""
        old = len(self.means)
        places = np.concatenate([_diagonal(d)[j] + np.arange(old - j) for j in range(old)])
        wider: dict[str, Any] = {"means": np.pad(self.means, ((0, d - old), (0, 0), (0, 0)))}
        wider["kept"] = np.pad(self.kept, ((0, d - old), (0, 0)))
        for name in ("scatters", "pooled", "factors"):
            array = getattr(self, name)
            wider[name] = np.zeros((d * (d + 1) // 2, *array.shape[1:]))
            wider[name][places] = array
        wider["factors"][_diagonal(d)[old:]] = 1.0
        return self._replace(**wider)

    def learn(self, rows: FloatArray, codes: IntArray, settings: Settings) -> None:
        """Learn rows with their label codes, in place."""
        done = 0
        while done < len(rows):
            done = self._run(rows, codes, done, settings, _NO_ROWS, self.typical)
            taught = self.counters[TAUGHT]
            if taught and taught % ARCHIVE_EVERY == 0:
                self._archive()

    def _archive(self) -> None:
        """Archive a copy of one live forecaster, unless an archived one performs as well on the latest rows."""
        live, record = len(WINDOWS), self.forecasters
        archived = slice(live, live + int(self.counters[ARCHIVE]))
        if (record[LONG, archived] > record[LONG, ARCHIVED] - ARCHIVE_MARGIN).any():
            return
        if self.counters[ARCHIVE] < ARCHIVE_SIZE:
            self.counters[ARCHIVE] += 1
            place = archived.stop
        else:
            place = live + int(record[USE, archived].argmin())
        for array in (self.means, self.factors):
            array[:, place] = array[:, ARCHIVED]
        self.log_dets[place], record[:, place] = self.log_dets[ARCHIVED], record[:, ARCHIVED]

    def probabilities(self, rows: FloatArray, settings: Settings, made: list[Any]) -> tuple[FloatArray, FloatArray]:
        """Return the class probabilities of every row, and the row's squared distance to the nearest class."""
        out, nearest = np.empty((len(rows), len(self.counts))), np.empty(len(rows))
        self._run(rows, _NO_CODES, 0, settings, out, nearest)
        return out, nearest

    def _run(
        self, rows: FloatArray, codes: IntArray, start: int, settings: Settings, out: FloatArray, nearest: FloatArray
    ) -> int:
        sizes = len(self.means), len(self.counts), self.forecasters.shape[1] - 1, self.kept.shape[1]
        arguments = self, rows, codes, start, settings, out, nearest, kernels.room_for(get_ident(), *sizes)
        if not _RUN:
            _RUN.append(compiled_for(kernels.run, *arguments))
        return int(_RUN[0](*arguments))

    @property
    def class_counts(self) -> IntArray:
        """Number of rows of each class."""
        return self.counts.copy()

    @property
    def class_means(self) -> FloatArray:
        """Mean of all rows of each class, one row per class."""
        return self.means[:, 0].T.copy()

    @property
    def temperature(self) -> float:
        """Temperature of the Gaussian forecaster with the largest weight."""
        n = len(WINDOWS) + int(self.counters[ARCHIVE])
        return float(np.exp(self.forecasters[LOG_TEMPERATURE, self.forecasters[SHORT, :n].argmax()]))

    @property
    def working_floats(self) -> int:
        """Number of temporary floats needed to learn or predict, in units of float32."""
        return 2 * (self.means.size + self.kept.shape[1])

    def unknown(self, distances: FloatArray, level: float) -> BoolArray:
        """Return True for distances that rows have from their own class with probability ``level`` at most."""
        return unusually_far(distances, self.typical, level)

    @classmethod
    def checked(cls, name: str, fields: dict[str, Any], empty: Self) -> Self:
        """Return the state in ``fields``; raise ValueError if learning cannot produce such a state."""
        state = cls(**checked_arrays(name, fields, empty._asdict(), may_be_infinite=("log_dets",)))
        n_classes = len(state.counts)
        seen, taught, last, archive, run = state.counters.tolist()
        if not (0 <= taught <= seen and -1 <= last < n_classes and 0 <= archive <= ARCHIVE_SIZE and 0 <= run <= taught):
            raise ValueError(f"{name}: its counters are damaged")
        if state.counts.min(initial=0) < 0 or state.counts.sum() != taught or (taught > 0) != (last >= 0):
            raise ValueError(f"{name}: its counts do not add up")
        if state.weights.min(initial=0) < 0 or ((state.weights > 0) != (state.counts > 0)).any():
            raise ValueError(f"{name}: its weights do not fit its counts")
        diagonal = _diagonal(len(state.means))
        if (state.scatters[diagonal] < 0).any() or (state.pooled[diagonal] < 0).any():
            raise ValueError(f"{name}: its scatter has negative variances")
        if not (state.factors[diagonal][:, : len(WINDOWS) + archive] > 0).all():
            raise ValueError(f"{name}: its covariances have negative variances")
        record = state.forecasters
        if (
            abs(record[LOG_TEMPERATURE:]).max() > 1e9
            or abs(state.lead[0]) > MOST_LEAD
            or record[: LONG + 1].max() > 0
            or state.tables.min(initial=0) < 0
        ):
            raise ValueError(f"{name}: its evidence is damaged")
        codes, ages = state.kept_labels[:, : min(taught, KEPT_ROWS)]
        if codes.size and not (
            codes.min() >= 0 and codes.max() < n_classes and ages.min() >= 0 and ages.max() < taught
        ):
            raise ValueError(f"{name}: its kept rows are damaged")
        return state


def _diagonal(d: int) -> IntArray:
    """Return the indices of the diagonal in a packed matrix of ``d`` columns."""
    return np.cumsum([0, *range(d, 1, -1)])
