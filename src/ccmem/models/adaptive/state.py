"""State of :class:`ccmem.AdaptiveCCM`: arrays, and the names of their rows."""

from __future__ import annotations

import math
from collections import namedtuple
from functools import lru_cache
from typing import Any, NamedTuple

from ccmem.core.state import OWN
from ccmem.core.typing import FloatArray, IntArray
from ccmem.models.adaptive.constants import Constants

RING = 8
"""Batches that the stream keeps, and the longest window; no batch is learned before it is this old."""
WINDOWS = 4
"""Windows of 1, 2, 4 and 8 batches."""

SUM, SQUARES, FOURTHS, BEFORE = range(4)
"""Rows of ``stream``: sums of the batch being filled (deviations from the reference, squared steps and their squares),
and the last reading. The features of a full batch replace the first three until the ring takes them."""
REFERENCE, ONE, FOUR, PRODUCT, POWER, RESIDUAL = range(4, 16, 2)
"""Rows of ``stream``, each for means and then for spreads: reference level; drift scales of one and of four batches;
lag-1 product and square of deviations, lag-1 product of residuals, all in units of the block's noise."""
BATCHES = 16
"""Rows of ``stream``: mean, spread and error variance of the spread of each of the latest batches."""
COLUMN_ROWS = BATCHES + 3 * RING
N_STREAM = COLUMN_ROWS + 3
"""Further rows of ``stream``: centre, variance and 1 / spread of every column (:mod:`ccmem.base.normalised`)."""

LEVEL, NOISE, SWAY, N_BLOCK = 0, 2, 4, 6
"""Rows of ``blocks``, each for means and then for spreads: level, error variance of one batch (-1 if the block has
never had a reading of the column), and variance of batches around the level."""

LOST_AFTER = 8.0
"""Batches without a reading, beyond three times the longest gap so far, after which a column is lost."""
READINGS, GAP, LONGEST, LOST, HAS_BATCH, SUMS, N_GAPS = 0, 1, 2, 3, 4, 5, 8
"""Rows of ``stream`` after these, or of ``gaps``: readings that wait for a feature, rows since the last reading, the
longest gap so far, 1 if the column was reported as lost, 1 if the latest batch has features of its own, and room for
three sums. No rows before the first missing reading."""

EVIDENCE, SCATTER, THRESHOLD = range(3)
"""Places in ``scalars``: evidence of the last alarm, directional scatter of the block in use, threshold of an alarm."""
MEAN, VARIANCE, COUNT = 3, 3 + WINDOWS, 3 + 2 * WINDOWS
"""Places in ``scalars``, for every window: mean and variance of the mixture statistic at rest, and their number of
observations."""
MIXTURE, TOTAL = COUNT + WINDOWS, COUNT + 2 * WINDOWS
"""Places in ``scalars`` of the mixture statistic and of the sum of Bayes factors of every window (scratch)."""
N_SCALARS = TOTAL + WINDOWS
OTHERS, N_SCRATCH = 12, 13
"""Row of ``scratch`` with the largest variance of every column in any block but the one in use. The rows before are
free for anyone."""
PART = 128
"""Columns that are evaluated together: their rows fit into the first-level cache."""

OWN_COUNTERS = (
    "blocks", "pointer", "alarm", "size", "rows", "latest", "kept", "waiting", "fresh", "age", "watched", "batches",
    "doubt", "status", "window", "began", "uncertain", "coordinates",
)  # fmt: skip
"""Names of the model's counters."""
(
    BLOCKS, POINTER, ALARM, SIZE, ROWS, LATEST, KEPT, WAITING, FRESH, AGE, WATCHED, N_BATCHES, DOUBT, STATUS, WINDOW,
    BEGAN, UNCERTAIN, COORDINATES,
) = range(OWN, OWN + len(OWN_COUNTERS))  # fmt: skip
"""Places in ``counters``: blocks, block in use, rows since an open alarm; units of the block in use; rows of the batch
being filled, latest slot of the ring, batches in the ring that belong to the block, those not learned yet, batches
since the alarm; batches behind the reference, observations behind the stream's statistics, batches modulo 8; 1 if
slots wait; why the kernel stopped, window of the alarm, first row of the change and its uncertainty; coordinates of the
slots."""

ALARMED, GATHERING, RETURNING, LOSING, STARTING, CHOOSING, FULL = range(1, 8)
"""Values of ``counters[STATUS]``, for which the kernel stops: a change is certain; one more batch has come since;
enough evidence for a return; columns are lost or back; columns have their first batch; enough rows to choose
coordinates; more units than ``max_units``."""

UNDECIDED, COLUMNS, DIRECTIONS = range(3)
"""Values of ``counters[COORDINATES]``: normalised columns (:mod:`ccmem.base.normalised`) or directions, which are used
until a decision. Row INVERSE of ``columns`` holds the largest magnitudes until then."""
DECIDE_AT = 256
"""Rows after which a wide stream decides on its coordinates."""

TINY = 1e-307
"""Variance floor: the smallest normal number, nearly."""


class Work(NamedTuple):
    """Rows of ``scratch``, one number per column: sums of a window, and how they are weighed."""

    total: FloatArray
    error: FloatArray
    low: FloatArray
    lower: FloatArray
    high: FloatArray
    higher: FloatArray
    """Sums of deviations and of error variances, and the two extremes on each side."""
    z2: FloatArray
    nu: FloatArray
    factors: FloatArray
    """Squared z-scores, degrees of freedom, Bayes factors."""
    weight: FloatArray
    power: FloatArray
    """Weight of the batch before a window in its prediction, and the lag-1 correlation to the power of its length."""
    unit: FloatArray
    """Error variance of one batch, with that of rounding."""


class Feature(NamedTuple):
    """Rows of one feature, means or spreads: of the stream, and of a block."""

    reference: FloatArray
    one: FloatArray
    four: FloatArray
    product: FloatArray
    power: FloatArray
    residual: FloatArray
    level: FloatArray
    noise: FloatArray
    sway: FloatArray


class AdaptiveState(NamedTuple):
    """Everything that learning changes."""

    prototypes: FloatArray
    rates: FloatArray
    wins: IntArray
    counters: IntArray
    journal: IntArray
    unit_blocks: IntArray
    blocks: FloatArray
    ages: FloatArray
    """Batches that each block has learned."""
    stream: FloatArray
    scalars: FloatArray
    members: IntArray
    """Units of the block in use, in order (derived)."""
    scores: FloatArray
    """Similarities of a row to these units (derived)."""
    scratch: FloatArray
    """Rows of columns (derived)."""

    @property
    def columns(self) -> FloatArray:
        """Centre and spread of every column, shared by all blocks."""
        return self.stream[COLUMN_ROWS:N_STREAM]

    @property
    def gaps(self) -> FloatArray:
        """Counts of missing readings; no rows before the first."""
        return self.stream[N_STREAM:]


_OWN = ("n_slots", "max_units", "learning_rate", "fair", "threshold", "early", "rounding", "straddling", "expected")
AdaptiveSettings: Any = namedtuple("AdaptiveSettings", [*_OWN, *Constants._fields])  # type: ignore[misc]
"""Parameters and constants, as the kernel takes them. ``threshold``: evidence of a change, ln of the windows in
``false_alarm_every`` that share no row; ``early``: such windows per sample while the stream is short. ``rounding``:
relative error variance of a level, by the precision of the data. ``straddling``: batches after a change whose samples
share rows with samples before it. ``expected``: drift scales of means and of spreads, for every window, before any have
been measured."""


@lru_cache(maxsize=64)
def new_settings(
    n_slots: int,
    max_units: int | None,
    learning_rate: float,
    fair: bool,
    false_alarm_every: float,
    overlap: int,
    constants: Constants,
) -> Any:
    """Return the settings of a kernel."""
    return AdaptiveSettings(  # type: ignore[call-arg]
        int(n_slots),
        int(max_units or 0),
        float(learning_rate),
        bool(fair),
        math.log(max(false_alarm_every / max(constants.batch, int(overlap)), math.e)),
        constants.early_budget / int(overlap),
        (8.0 * 2.0**-52) ** 2,
        int(overlap) // constants.batch,
        (expected_drift(constants.batch, int(overlap)), expected_drift(constants.batch, 1)),
        *constants,
    )


def expected_drift(batch: int, overlap: int) -> tuple[float, float, float, float]:
    """Return the variance of the mean of every window, in units of the noise of a batch, if rows are white noise.

    Of samples that average ``overlap`` rows, and of whose rows neighbours share all but one, samples at a lag have the
    correlation 1 - lag / overlap; half their mean squared step is 1 / overlap of their variance.
    """

    def scale(n: int) -> float:
        last = min(n, overlap) - 1
        shared = n * last - (1 + n / overlap) * last * (last + 1) / 2 + last * (last + 1) * (2 * last + 1) / 6 / overlap
        return overlap * batch * (n + 2 * shared) / (n * n)

    return scale(batch), scale(2 * batch), scale(4 * batch), scale(8 * batch)


def block_values(state: Any, block: int) -> tuple[Any, Any, Any]:
    """Return levels, noise and sway of a block, each of shape (2, columns)."""
    rows = state.blocks[block].reshape(3, 2, -1)
    return rows[0], rows[1], rows[2]
