"""Calibration of a modal classifier on rows of the stream, and choice of its metric.

Some labelled rows are predicted before they are learned: each of the first 128, then ever fewer, one in 1,024 at last.
With shares s_c of the votes of several units, and N classes:

    p_c    ~ (s_c + .001 / N)^(1 / T)       T moves by a Newton step of the log loss of each such row
    far(x) = distance to the best unit      moments of its logarithm mark rows that fit no unit

Shares of several units are less certain than they should be where classes are clear, so T is often near 1/2. The
predicted class does not depend on T.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ccmem.core.allocation import aligned
from ccmem.core.typing import BoolArray, FloatArray, IntArray
from ccmem.readout._reject import TINY, unusually_far
from ccmem.readout._saved import checked_arrays

KEPT_ROWS = 64
"""Number of labelled rows on which two readouts are compared."""
FIRST, GROWTH = 256, 1.15
"""Number of rows before the first comparison, and its growth from one comparison to the next."""
LEAD_FADE = 0.97
"""Decay factor per comparison of the evidence."""
MARGIN = 12.0
"""Number of rows by which the metric must lead to be used. With 8, held-out NotMNIST images lost .015 at 500 units."""
EVERY_ROW, SELDOM = 128, 1024
"""Number of labelled rows that are all predicted, and largest number of labelled rows from one to the next."""
FADE = 0.99
"""Decay factor per predicted row of the curvature of the log loss, and of the moments of log distances."""
FLOOR = 1e-3
"""Share that is divided among all classes, so that one row cannot contribute an infinite loss."""
LOG_TEMPERATURE, CURVATURE, WEIGHT, MEAN, VARIANCE, THIRD = range(6)
"""Indices into ``forecasts``; the last four describe log distances."""
SEEN, KEPT, COMPARED, LABELLED, PREDICTED = range(5)
"""Indices into ``counters``: rows seen, labelled rows kept, SEEN at the next comparison, labelled rows, LABELLED at the
next row to predict."""
_NEVER = 2**62


class Evidence:
    """Temperature, typical distances, and rows that compare the readout with and without the shared metric.

    Comparisons take place after 256 rows, and then each time their number has grown by 15 %. The rows are part of the
    state, so results do not depend on chunk boundaries.
    """

    def __init__(self, n_features: int, chooses: bool) -> None:
        n = KEPT_ROWS if chooses else 0
        self.forecasts = np.zeros(6)
        self.buffer = np.zeros((n, n_features), np.float32)
        self.codes = np.zeros(n, np.int64)
        self.lead = np.zeros(1)
        """Decaying number of rows that the metric alone predicted correctly, minus those it alone did not."""
        self.counters = np.array([0, 0, FIRST if chooses else _NEVER, 0, 0])

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({name: aligned(array) for name, array in state.items()})  # they may be read-only maps

    def predicts(self, code: int) -> bool:
        """Return True if the next row, with this label code, is to be predicted before it is learned."""
        return code >= 0 and bool(self.counters[LABELLED] >= self.counters[PREDICTED])

    def n_before_due(self, n_rows: int, labelled: IntArray) -> int:
        """Return how many of the next rows may be learned together; ``labelled`` holds the places of labelled rows."""
        ahead = max(int(self.counters[PREDICTED] - self.counters[LABELLED]), 0)
        stop = int(labelled[ahead]) if ahead < len(labelled) else n_rows
        return min(stop, int(self.counters[COMPARED] - self.counters[SEEN]))

    def note(self, rows: FloatArray, codes: IntArray) -> None:
        """Count rows that were learned, and keep the latest labelled ones for a comparison."""
        known = codes >= 0
        self.counters[SEEN] += len(rows)
        self.counters[LABELLED] += np.count_nonzero(known)
        if len(self.codes):
            for place in np.flatnonzero(known & ~np.isnan(rows).any(axis=1)):
                at = self.counters[KEPT] % KEPT_ROWS
                self.buffer[at], self.codes[at] = rows[place], codes[place]
                self.counters[KEPT] += 1

    def forecast(self, shares: FloatArray, far: float, code: int) -> None:
        """Update temperature and typical distance with the prediction of a row."""
        f, p = self.forecasts, self.calibrated(shares[np.newaxis])[0]
        z = np.log(shares + FLOOR / len(shares)) / math.exp(f[LOG_TEMPERATURE])
        mean = p @ z
        f[CURVATURE] = FADE * f[CURVATURE] + min(p @ (z - mean) ** 2, 1.0)
        step = min(max(z[code] - mean, -3.0), 3.0) / (f[CURVATURE] + 5.0)
        f[LOG_TEMPERATURE] = min(max(f[LOG_TEMPERATURE] - step, -3.0), 3.0)
        f[WEIGHT] = FADE * f[WEIGHT] + 1.0
        step = math.log(far + TINY) - f[MEAN]
        f[MEAN] += step / f[WEIGHT]
        deviation = math.log(far + TINY) - f[MEAN]
        f[VARIANCE] += (step * deviation - f[VARIANCE]) / f[WEIGHT]
        f[THIRD] += (deviation**3 - f[THIRD]) / f[WEIGHT]

    def predicted(self) -> None:
        """Schedule the next row to predict."""
        labelled = self.counters[LABELLED]
        self.counters[PREDICTED] = labelled + min(labelled // EVERY_ROW + 1, SELDOM)

    def calibrated(self, shares: FloatArray) -> FloatArray:
        """Return probabilities from shares that add up to 1."""
        z = np.log(shares + FLOOR / shares.shape[1]) / math.exp(self.forecasts[LOG_TEMPERATURE])
        p = np.exp(z - z.max(axis=1, keepdims=True))
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def unknown(self, far: FloatArray, level: float) -> BoolArray:
        """Return True for distances that a row has from its best unit with probability ``level`` at most."""
        return unusually_far(far, self.forecasts[WEIGHT:], level)

    @property
    def prefers_shared(self) -> bool:
        """True if the metric has predicted clearly better."""
        return bool(self.lead[0] > MARGIN)

    def compare(self, own: IntArray, shared: IntArray) -> None:
        """Update the evidence with the codes predicted for the kept rows, and schedule the next comparison."""
        self.counters[COMPARED] = int(self.counters[SEEN] * GROWTH) + 1
        right = self.codes[: len(own)]
        self.lead[0] = LEAD_FADE * self.lead[0] + np.count_nonzero(shared == right) - np.count_nonzero(own == right)

    @property
    def rows(self) -> FloatArray:
        """Kept rows."""
        return self.buffer[: min(int(self.counters[KEPT]), KEPT_ROWS)]

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

    def restore(self, fields: Any, n_classes: int) -> None:
        """Take over stored arrays; raise ValueError if learning cannot produce them."""
        if not isinstance(fields, dict) or list(fields) != list(vars(self)):
            raise ValueError("ModalClassifier: its evidence is damaged")
        arrays = checked_arrays("ModalClassifier", fields, vars(self))
        seen, kept, compared, labelled, predicted = arrays["counters"].tolist()
        codes, (warm, curvature, weight, _, variance, _) = arrays["codes"][: min(kept, KEPT_ROWS)], arrays["forecasts"]
        if not (0 <= kept <= labelled <= seen < compared <= _NEVER) or not 0 <= predicted <= labelled + SELDOM:
            raise ValueError("ModalClassifier: counts of its evidence are damaged")
        if ((codes < 0) | (codes >= n_classes)).any() or abs(warm) > 3.0 or min(curvature, weight, variance) < 0:
            raise ValueError("ModalClassifier: its evidence is damaged")
        vars(self).update(arrays)
