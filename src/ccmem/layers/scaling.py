"""Scaling of a stream, independent of chunk boundaries.

``unit`` scales every row to length 1. ``standard`` subtracts the running mean of every column and divides by its
running standard deviation (Welford's sums, row by row, including the current row); prediction leaves the sums
unchanged. Missing readings (NaN) stay missing and are not counted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem.core.typing import FloatArray
from ccmem.kernels.jit import kernel_in_place

SCALES = ("none", "unit", "standard")


def to_unit_length(X: FloatArray) -> None:
    """Scale rows to unit length, in place, as far as their readings are there; zeros stay zeros."""
    lengths = np.sqrt((np.where(np.isnan(X), 0.0, X).astype(np.float64) ** 2).sum(axis=1, keepdims=True))
    np.divide(X, lengths, out=X, where=lengths > 0.0, casting="same_kind")


@kernel_in_place
def standardise(
    X: FloatArray, count: float, absent: FloatArray, mean: FloatArray, squares: FloatArray, learn: bool
) -> None:
    for r in range(X.shape[0]):
        if learn:
            count += 1.0
        for j in range(X.shape[1]):
            x = float(X[r, j])
            if x != x:
                absent[j] += 1.0 if learn else 0.0
                continue
            there = count - absent[j]
            if learn:
                difference = x - mean[j]
                mean[j] += difference / there
                squares[j] += difference * (x - mean[j])
            deviation = np.sqrt(squares[j] / there) if there > 0.0 else 0.0
            X[r, j] = X.dtype.type((x - mean[j]) / deviation) if deviation > 0.0 else X.dtype.type(0.0)


class Scale:
    """One kind of scaling with its column statistics.

    >>> scale = Scale("standard", 1)
    >>> scale.learn(np.array([[1.0], [3.0], [5.0]])).round(3).tolist(), scale.apply(np.array([[3.0]])).tolist()
    ([[0.0], [1.0], [1.225]], [[0.0]])
    """

    def __init__(self, kind: str, n_features: int) -> None:
        if kind not in SCALES:
            raise ValueError(f"scale={kind!r} is unknown; use one of {', '.join(SCALES)}")
        self.kind = kind
        self.count = 0
        self.absent = np.zeros(n_features)
        """Number of missing readings of each column."""
        self.mean = np.zeros(n_features)
        self.squares = np.zeros(n_features)

    def learn(self, X: FloatArray) -> FloatArray:
        """Return ``X`` scaled, each row after updating the statistics; ``X`` itself is unchanged."""
        return self._scaled(X, True)

    def apply(self, X: FloatArray) -> FloatArray:
        """Return ``X`` scaled with the current statistics."""
        return self._scaled(X, False)

    def _scaled(self, X: FloatArray, learn: bool) -> FloatArray:
        if self.kind == "none":
            return X
        X = np.array(X, order="C")
        if self.kind == "unit":
            to_unit_length(X)
        else:
            standardise(X, float(self.count), self.absent, self.mean, self.squares, learn)
            self.count += len(X) if learn else 0
        return X

    def export(self) -> dict[str, Any]:
        """Return the content of a checkpoint."""
        fields = {"kind": self.kind, "count": self.count, "mean": self.mean, "squares": self.squares}
        return {**fields, "absent": self.absent} if self.absent.any() else fields

    @classmethod
    def of(cls, fields: Any, n_features: int) -> Scale:
        """Restore a scale from ``export``; raise ValueError if the content is invalid."""
        scale = cls(fields["kind"], n_features)
        count, mean, squares = fields["count"], fields["mean"], fields["squares"]
        absent = fields.get("absent", scale.absent)
        for array in (mean, squares, absent):
            if not (isinstance(array, np.ndarray) and array.dtype == np.float64 and array.shape == (n_features,)):
                raise ValueError("the scaling does not fit the columns")
            if not np.isfinite(array).all():
                raise ValueError("the scaling holds NaN or infinity")
        if type(count) is not int or not 0 <= count < 2**62 or squares.min(initial=0.0) < 0:
            raise ValueError("the scaling is damaged")
        if absent.min(initial=0.0) < 0 or absent.max(initial=0.0) > count:
            raise ValueError("the scaling is damaged")
        scale.count, scale.mean, scale.squares, scale.absent = count, mean, squares, absent
        return scale
