"""What :class:`ccmem.AdaptiveCCM` keeps, and the numbers its kernels go by."""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

from ccmem._typing import FloatArray, IntArray


class AdaptiveState(NamedTuple):
    prototypes: FloatArray
    rates: FloatArray
    wins: IntArray
    counters: IntArray
    journal: IntArray
    unit_blocks: IntArray
    errors: FloatArray
    """Dissimilarity each unit has gathered since a slot was last opened for it; only if ``max_units`` is a bound."""
    partners: IntArray
    costs: FloatArray
    """Cheapest partner of each unit, if known, and what merging the two would cost. Without a bound there are no
    partners, and costs are scratch for the units of a block."""
    members: IntArray
    """Units of the block in use, in order."""
    means: FloatArray
    statistics: FloatArray
    """One row a block: see :mod:`ccmem.models.adaptive.signature`."""
    vectors: FloatArray
    scalars: FloatArray
    columns: FloatArray
    ages: FloatArray
    """What each block knows of its columns, and from how many batches: see :mod:`ccmem.models.adaptive.columns`."""
    readings: FloatArray
    ring: FloatArray
    """The stream's own: sums and runs of every column, and the latest batches."""
    missing: FloatArray
    """What is known of missing readings: see :mod:`ccmem.models.adaptive.missing`. No rows until one is missing."""
    filled: FloatArray
    guess: FloatArray
    """Room for a row in which what is missing is filled in, and for the mean of the latest batches."""


class Tuning(NamedTuple):
    """What is the same for all data; how it was chosen is in docs/adaptive.md."""

    recent_rate: float = 0.02
    """lambda; 4 / n while a block of n samples is young."""
    slowest_rate: float = 1e-4
    """A signature remembers as many samples as this is the part of."""
    reference_rate: float = 0.001
    """The same for the reference that follows."""
    batch: int = 16
    least_batches: int = 3
    confirm_power: float = 0.25
    """A batch confirms a needless suspicion with probability ``false_alarm_every`` to minus this."""
    recall_batches: int = 5
    most_batches: int = 12
    recall_level: float = 0.01
    """How often a returning task may seem not to fit clearly, ..."""
    new_level: float = 1e-6
    """... and not to fit at all."""
    clearly_nearest: float = 0.04
    """What fits no block is still the nearest if its squared distance is less than this part of that to the others."""
    youngest: int = 30
    """Samples a signature needs before anything is compared with it (more if they are correlated); at least a batch."""
    spacing: float = 0.25
    """A slot is opened for samples less similar to all others than 1 - this part of the block's variance."""
    growth: float = 10.0


class AdaptiveSettings(NamedTuple):
    n_slots: int
    max_units: int
    learning_rate: float
    recent_rate: float
    slowest_rate: float
    reference_rate: float
    batch: int
    least_batches: int
    recall_batches: int
    most_batches: int
    z_suspect: float
    z_confirm: float
    z_recall: float
    z_new: float
    z_wander: float
    clearly_nearest: float
    youngest: int
    spacing: float
    growth: float
    false_alarm_every: float


@lru_cache(maxsize=64)
def new_settings(
    n_slots: int, max_units: int | None, learning_rate: float, false_alarm_every: float, tuning: Tuning
) -> AdaptiveSettings:
    """Settings for the kernel: limits as quantiles of the standard normal distribution."""
    # a recent mean stays beyond a limit for about 1 / (10 lambda) samples
    suspect = min(0.05, 0.1 / (tuning.recent_rate * false_alarm_every**0.5))
    confirm = false_alarm_every ** (-tuning.confirm_power)
    wander = min(0.05, 1.0 / (tuning.recent_rate * false_alarm_every))  # no batch is independent of this
    normal = NormalDist()
    return AdaptiveSettings(
        n_slots=int(n_slots),
        max_units=int(max_units or 0),
        learning_rate=float(learning_rate),
        recent_rate=tuning.recent_rate,
        slowest_rate=tuning.slowest_rate,
        reference_rate=tuning.reference_rate,
        batch=tuning.batch,
        least_batches=tuning.least_batches,
        recall_batches=tuning.recall_batches,
        most_batches=tuning.most_batches,
        z_suspect=-normal.inv_cdf(suspect),
        z_confirm=-normal.inv_cdf(confirm),
        z_recall=-normal.inv_cdf(tuning.recall_level),
        z_new=-normal.inv_cdf(tuning.new_level),
        z_wander=-normal.inv_cdf(wander),
        clearly_nearest=tuning.clearly_nearest,
        youngest=tuning.youngest,
        spacing=tuning.spacing,
        growth=tuning.growth,
        false_alarm_every=float(false_alarm_every),
    )
