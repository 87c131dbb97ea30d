"""Prediction by a memory: best matching units, similarities, learned values, and the checks of input rows."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ccmem.base import matching
from ccmem.base.estimator import SavedEstimator, Summarised
from ccmem.base.matching import in_slabs
from ccmem.base.validation import check_rows, one_row, plain_row
from ccmem.core.locking import reading
from ccmem.core.sklearn import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    NotFittedError,
    TransformerMixin,
)
from ccmem.core.state import SEEN, UNITS
from ccmem.core.typing import BoolArray, FloatArray, IntArray
from ccmem.kernels import competition


class PredictingMemory(
    SavedEstimator,
    Summarised,
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    ClusterMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """The part of a memory that does not learn."""

    _takes_missing: ClassVar[bool] = False
    """True if NaN in a row is a missing reading instead of an error."""
    _epsilon: ClassVar[float] = 1e-5
    """Added to lengths before dividing by them; a zero row stays zero."""
    _state: Any

    @reading
    def predict(self, X: Any) -> IntArray:
        """Return the best matching unit of every row, over the whole memory."""
        self._require_units()
        row = self._plain_row(X)
        return self._winners(self._check(X, reset=False, finite=False) if row is None else row)

    @reading
    def predict_one(self, x: Any) -> int:
        """Return the best matching unit of one sample; a fast path like :meth:`learn_one`."""
        self._require_units()
        row = self._check_one(x)
        if row is None:
            row = self._check(one_row(x), reset=False)
        return int(self._winners(row)[0])

    @reading
    def transform(self, X: Any) -> FloatArray:
        """Return the similarity (for models that compare by distance, the distance) of every row to every unit."""
        self._require_units()
        X = self._check(X, reset=False)
        prototypes = self._state.prototypes[: self.n_units_]
        out = np.empty((len(X), len(prototypes)), X.dtype)
        self._score(X, prototypes, out)
        return out

    def _winners(self, X: FloatArray, competes: BoolArray | None = None) -> IntArray:
        """Return the best matching unit of every row among the units in ``competes`` (default: all that may win)."""
        winners = np.empty(len(X), np.int64)
        may_win = self._may_win()
        self._match(
            X, self._state.prototypes[: len(may_win)], may_win if competes is None else may_win & competes, winners
        )
        return winners

    def _may_win(self) -> BoolArray:
        """Return a mask of the units that may win at test time."""
        return np.ones(self.n_units_, np.bool_)

    def _coordinates(self, X: FloatArray) -> FloatArray:
        """Return the coordinates in which rows and units are compared."""
        return X

    def _score(self, X: FloatArray, prototypes: FloatArray, out: FloatArray) -> None:
        epsilon, work = self._epsilon, len(X) * prototypes.size
        in_slabs(lambda s: competition.similarities(X[s], prototypes, epsilon, out[s]), len(X), work)

    def _match(self, X: FloatArray, prototypes: FloatArray, competes: BoolArray, winners: IntArray) -> None:
        matching.most_similar(X, prototypes, competes, self._epsilon, winners)

    @property
    def n_units_(self) -> int:
        """Number of units."""
        return int(self._started().counters[UNITS])

    @property
    def n_samples_seen_(self) -> int:
        """Number of samples seen since learning began, learned or not."""
        return int(self._started().counters[SEEN])

    @property
    def n_floats_(self) -> int:
        """Number of stored values, including reserve capacity for further units."""
        return sum(array.size for array in self._started())

    @property
    @reading
    def prototypes_(self) -> FloatArray:
        """Prototypes of the units: a copy, of shape (n_units_, n_features_in_)."""
        return self._started().prototypes[: self.n_units_].copy()

    @property
    @reading
    def win_counts_(self) -> IntArray:
        """Number of samples that each unit has learned, a copy."""
        return self._started().wins[: self.n_units_].copy()

    @property
    @reading
    def learning_rates_(self) -> FloatArray:
        """Learning rate of each unit at its next win, a copy."""
        return self._started().rates[: self.n_units_].copy()

    def _started(self) -> Any:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(
                f"This {type(self).__name__} has learned nothing yet; call fit, partial_fit or learn_one first"
            )
        return self._state

    def _require_units(self) -> None:
        if self._started().counters[UNITS] == 0:
            raise NotFittedError(
                f"This {type(self).__name__} has no unit yet: zero vectors, which have no direction, rows "
                "without any reading and rows without a required label create none; learn more rows first"
            )

    # Input -------------------------------------------------------------------------------------------------------

    def _check(self, X: Any, reset: bool, finite: bool = True, missing: bool = True) -> FloatArray:
        """Return ``X`` as a contiguous float32 or float64 array, validated; an error changes nothing.

        ``finite`` False defers the check of the values to :meth:`_winners`. With ``missing``, NaN is allowed if the
        memory supports missing readings.
        """
        dtype = None if reset else self._started().prototypes.dtype
        return check_rows(self, X, dtype, finite, missing and self._takes_missing)

    def _check_one(self, x: Any) -> FloatArray | None:
        """Return ``x`` as one row without a copy if it has the type and shape that the kernel takes; otherwise None."""
        if not self.__sklearn_is_fitted__():
            return None
        prototypes = self._state.prototypes
        return plain_row(x, prototypes.dtype, prototypes.shape[1])

    def _plain_row(self, X: Any) -> FloatArray | None:
        """Return a table of one row if the kernel takes it as it is, which saves validation; otherwise None."""
        known = self.__dict__
        if type(X) is not np.ndarray or X.ndim != 2 or len(X) != 1 or "feature_names_in_" in known:
            return None
        return self._check_one(X[0]) if known.get("_clock") is None else None

    @property
    def _n_features_out(self) -> int:
        return self.n_units_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.non_deterministic = False
        tags.input_tags.allow_nan = self._takes_missing
        return tags
