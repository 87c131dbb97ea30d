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
whose directions within a class are those between classes. :class:`MetricEvidence` therefore compares both readouts on
rows of the stream.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg import solve_triangular

from ccmem.core.allocation import aligned
from ccmem.core.typing import FloatArray, IntArray
from ccmem.readout._saved import checked_arrays
from ccmem.readout.packed import on_one_thread

RIDGE = 2.0
"""Part of C that is the same in all directions, relative to B. Validation on CIFAR-10 features: .844, .8455, .843 for
1, 2 and 4."""
ROWS = 64
"""Number of labelled rows on which two readouts are compared."""
FIRST, GROWTH = 256, 1.15
"""Number of rows before the first comparison, and its growth from one comparison to the next."""
FADE = 0.97
"""Decay factor per comparison of the evidence."""
MARGIN = 12.0
"""Number of rows by which the metric must lead to be used. With 8, held-out NotMNIST images lost .015 at 500 units."""
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
        with on_one_thread():
            D = np.linalg.cholesky(K / total).T.astype(np.float32) @ units
            ridge = max(RIDGE * float((D * D).sum()) / units.shape[1], _TINY)
            small = np.linalg.cholesky(np.eye(len(D)) + (D @ D.T).astype(np.float64) / ridge)
            half = solve_triangular(small, D / np.sqrt(ridge), lower=True).astype(np.float32)
            units_half = units @ half.T
        return cls(centre, half, units, units_half, _lengths(units, units_half), by_distance)

    def scores(self, rows: FloatArray) -> FloatArray:
        """Return the cosine or the distance of every row to every unit."""
        x = _unit_rows(rows, self.by_distance) - self.centre
        with on_one_thread():
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


class MetricEvidence:
    """Comparison of the readout with and without the shared metric, on the latest labelled rows of the stream.

    Comparisons take place after 256 rows, and then each time their number has grown by 15 %. The rows are part of the
    state, so results do not depend on chunk boundaries.
    """

    def __init__(self, n_features: int) -> None:
        self.buffer = np.zeros((ROWS, n_features), np.float32)
        self.codes = np.zeros(ROWS, np.int64)
        self.lead = np.zeros(1)
        """Decaying number of rows that the metric alone predicted correctly, minus those it alone did not."""
        self.counters = np.array([0, 0, FIRST])
        """Rows seen, labelled rows seen, and number of rows seen at the next comparison."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({name: aligned(array) for name, array in state.items()})  # they may be read-only maps

    @property
    def n_before_comparison(self) -> int:
        """Number of rows before the next comparison."""
        return int(self.counters[2] - self.counters[0])

    @property
    def prefers_shared(self) -> bool:
        """True if the metric has predicted clearly better."""
        return bool(self.lead[0] > MARGIN)

    def note(self, rows: FloatArray, codes: IntArray) -> None:
        """Keep the latest labelled rows."""
        self.counters[0] += len(rows)
        for place in np.flatnonzero((codes >= 0) & ~np.isnan(rows).any(axis=1)):
            at = self.counters[1] % ROWS
            self.buffer[at], self.codes[at] = rows[place], codes[place]
            self.counters[1] += 1

    def compare(self, own: IntArray, shared: IntArray) -> None:
        """Update the evidence with the codes predicted for the kept rows, and schedule the next comparison."""
        self.counters[2] = int(self.counters[0] * GROWTH) + 1
        right = self.codes[: len(own)]
        self.lead[0] = FADE * self.lead[0] + np.count_nonzero(shared == right) - np.count_nonzero(own == right)

    @property
    def rows(self) -> FloatArray:
        """Kept rows."""
        return self.buffer[: min(int(self.counters[1]), ROWS)]

    def recode(self, places: IntArray) -> None:
        """Renumber the classes."""
        kept = len(self.rows)
        self.codes[:kept] = places[self.codes[:kept]]

    def widen(self, n_features: int) -> None:
        """Add columns that were 0 in the kept rows."""
        self.buffer = np.pad(self.buffer, ((0, 0), (0, n_features - self.buffer.shape[1])))

    @property
    def n_floats(self) -> int:
        """Number of floats kept."""
        return sum(array.size for array in vars(self).values())

    @classmethod
    def imported(cls, fields: Any, n_features: int, n_classes: int) -> MetricEvidence:
        """Return the evidence restored from its arrays; raise ValueError if they are invalid."""
        evidence = cls(n_features)
        if not isinstance(fields, dict) or list(fields) != list(vars(evidence)):
            raise ValueError("ModalClassifier: its metric is damaged")
        vars(evidence).update(checked_arrays("ModalClassifier", fields, vars(evidence)))
        seen, labelled, due = evidence.counters.tolist()
        codes = evidence.codes[: min(labelled, ROWS)]
        if not (0 <= labelled <= seen < due < 2**62) or ((codes < 0) | (codes >= n_classes)).any():
            raise ValueError("ModalClassifier: counts of its metric are damaged")
        return evidence
