"""Mahalanobis metric shared by all units, from the deviations between samples and their best matching units.

    C       = mean over samples of (x - m_w)(x - m_w)',  w the best matching unit
    d(x, m) = (x - m)' (C + ridge trace(C) / d I)^-1 (x - m)

Directions that vary within units count less than directions that separate units; labels are not used. Samples are
buffered and added 32 at a time, relative to the units at that time, so results do not depend on chunk boundaries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ccmem.core.allocation import aligned
from ccmem.core.typing import FloatArray
from ccmem.readout.packed import add_products, diagonal, factor_covariance, on_one_thread, packed_zeros, solved

if TYPE_CHECKING:
    from ccmem.base.memory import CompetitiveMemory

ROWS = 32
RIDGE = 0.02


class SharedMetric:
    """Covariance of the deviations between samples and their units, learned online in single precision."""

    def __init__(self, n_features: int) -> None:
        self.scatter = packed_zeros(n_features)
        self.buffer = np.zeros((ROWS, n_features), np.float32)
        self.count = self.waiting = 0
        self._made: list[Any] = []

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)  # unpickled arrays may be read-only memory maps, but learning writes to them
        self.scatter, self.buffer = aligned(self.scatter), aligned(self.buffer)

    def n_accepted(self) -> int:
        """Return the number of samples that may be learned before the next call of :meth:`note`."""
        return ROWS - self.waiting

    def note(self, rows: FloatArray, memory: CompetitiveMemory) -> None:
        """Add at most :meth:`n_accepted` samples that ``memory`` has just learned."""
        self._made = []
        self.buffer[self.waiting : self.waiting + len(rows)] = rows
        self.waiting += len(rows)
        if self.waiting == ROWS and memory._may_win().any():
            prototypes = memory._state.prototypes
            winners = memory._winners(self.buffer.astype(prototypes.dtype))
            with on_one_thread():
                away = memory._coordinates(self.buffer) - memory._coordinates(prototypes[winners])
                add_products(self.scatter, away.astype(np.float32))
            self.count += ROWS
        if self.waiting == ROWS:
            self.waiting = 0

    def distances(self, rows: FloatArray, prototypes: FloatArray) -> FloatArray:
        """Return the distance of every row to every prototype."""
        n = self.buffer.shape[1]
        with on_one_thread():
            made = self._made
            if not made:
                factor = self.scatter.copy()
                scale = np.float32(factor_covariance(factor, n, self.count, 1.0, RIDGE))
                made = [factor, scale, solved(factor, prototypes.T.astype(np.float32) / scale)]
                self._made = made  # one assignment, because other threads may read meanwhile
            factor, scale, units = made
            x = solved(factor, rows.T.astype(np.float32) / scale)
            squares = (x * x).sum(axis=0)[:, np.newaxis] + (units * units).sum(axis=0) - 2.0 * (x.T @ units)
        return np.sqrt(np.maximum(squares, 0.0)).astype(rows.dtype)

    @property
    def n_floats(self) -> int:
        return int(self.scatter.size + self.buffer.size + 2)

    def export(self) -> dict[str, Any]:
        return {"scatter": self.scatter, "buffer": self.buffer, "count": self.count, "waiting": self.waiting}

    @classmethod
    def imported(cls, fields: Any, n_features: int) -> SharedMetric:
        """Return the metric restored from :meth:`export`; raise ValueError if the content is invalid."""
        metric = cls(n_features)
        if not isinstance(fields, dict) or list(fields) != list(metric.export()):
            raise ValueError("ModalClassifier: its metric is damaged")
        for name in ("scatter", "buffer"):
            array, wanted = fields[name], getattr(metric, name)
            fits = isinstance(array, np.ndarray) and array.dtype == np.float32 and array.shape == wanted.shape
            if not fits or not np.isfinite(array).all():
                raise ValueError(f"ModalClassifier: {name} of its metric is damaged")
            wanted[:] = array
        count, waiting = fields["count"], fields["waiting"]
        if not (type(count) is type(waiting) is int and 0 <= count < 2**62 and 0 <= waiting < ROWS):
            raise ValueError("ModalClassifier: counts of its metric are damaged")
        if (metric.scatter[diagonal(n_features)] < 0).any():
            raise ValueError("ModalClassifier: its metric has negative variances")
        metric.count, metric.waiting = count, waiting
        return metric
