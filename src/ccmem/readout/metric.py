"""Metric shared by all units, computed from the units and their votes: directions that vary within classes count less.

With the unit p_u of every u, V_uc votes of class c in it, n votes in all, and mean m_c of the units of class c:

    B       = sum over u and c of V_uc (p_u - m_c)(p_u - m_c)' / n          scatter of units within classes
    C       = B + ridge trace(B) / d I
    z(x)    = C^-1/2 (x - mean of all units)
    score   = cosine of z(x) and z(p_u); the distance of both where a memory compares columns by distance

Rows and units have unit length if the memory compares directions. Nothing is stored: the metric follows from prototypes
and votes, and is computed once after rows have been learned. By Woodbury's identity all matrices are as large as the
number of units. The memory itself still learns without labels.

Whether the metric helps depends on the data: it does for features of a pretrained network, and not for raw digits,
whose directions within a class are those between classes. :class:`ccmem.readout._evidence.Evidence` therefore compares
both readouts on rows of the stream.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from scipy.linalg import solve_triangular

from ccmem.base.matching import blas_on_one_thread
from ccmem.core.typing import FloatArray, IntArray

RIDGE = 2.0
"""Part of C that is the same in all directions, relative to B. Validation on CIFAR-10 features: .844, .8455, .843 for
1, 2 and 4."""
_TINY = 1e-30


class SharedMetric(NamedTuple):
    """Metric of one state of a memory and its votes."""

    centre: FloatArray
    half: FloatArray
    """Matrix H with x' C^-1 x proportional to |x|^2 - |H x|^2."""
    units: FloatArray
    """Units relative to ``centre``."""
    units_half: FloatArray
    norms: FloatArray
    """Length of every unit in the metric."""
    by_distance: bool

    @classmethod
    def of(cls, units: FloatArray, votes: IntArray, by_distance: bool) -> Self:
        """Return the metric of units in the coordinates in which they are compared."""
        units, counts = _unit_rows(units, by_distance), votes.astype(np.float64)
        total, sizes = max(counts.sum(), 1.0), counts.sum(axis=1)
        centre = (sizes @ units / total).astype(np.float32)
        units = units - centre
        # B = units' K units with K = S' S, so B = D' D with D = S units
        K = np.diag(sizes) - (counts / np.maximum(counts.sum(axis=0), 1.0)) @ counts.T
        K[np.diag_indices(len(K))] += 1e-9 * max(sizes.max(initial=0.0), 1.0)  # K has rank units - classes
        with blas_on_one_thread():
            D = np.linalg.cholesky(K / total).T.astype(np.float32) @ units
            ridge = max(RIDGE * float((D * D).sum()) / units.shape[1], _TINY)
            small = np.linalg.cholesky(np.eye(len(D)) + (D @ D.T).astype(np.float64) / ridge)
            half = solve_triangular(small, D / np.sqrt(ridge), lower=True).astype(np.float32)
            units_half = units @ half.T
        return cls(centre, half, units, units_half, _lengths(units, units_half), by_distance)

    def scores(self, rows: FloatArray) -> FloatArray:
        """Return the cosine or the distance of every row to every unit."""
        x = _unit_rows(rows, self.by_distance) - self.centre
        with blas_on_one_thread():
            x_half = x @ self.half.T
            products = x @ self.units.T - x_half @ self.units_half.T
        lengths = _lengths(x, x_half)[:, np.newaxis]
        if self.by_distance:
            return np.sqrt(np.maximum(lengths**2 + self.norms**2 - 2.0 * products, 0.0))
        return products / (lengths * self.norms)


def _unit_rows(rows: FloatArray, by_distance: bool) -> FloatArray:
    """Return rows in single precision, of unit length unless they are compared by distance."""
    if by_distance:
        return rows.astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    return (rows / np.maximum(lengths, _TINY)[:, np.newaxis]).astype(np.float32)


def _lengths(x: FloatArray, x_half: FloatArray) -> FloatArray:
    squares = np.einsum("ij,ij->i", x, x) - np.einsum("ij,ij->i", x_half, x_half)
    return np.sqrt(np.maximum(squares, _TINY))
