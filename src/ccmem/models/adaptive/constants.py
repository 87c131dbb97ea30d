"""The constants of the rule; docs/adaptive_rule.md gives the evidence for each value."""

from __future__ import annotations

from typing import NamedTuple


class Constants(NamedTuple):
    """Fifteen numbers that are the same for all data; lengths of memory are in batches."""

    batch: int = 16
    """Rows of a batch."""
    early_budget: float = 100.0
    """A stream of n samples that share no row is tested at one expected false alarm in this multiple of n samples,
    until that is ``false_alarm_every``: a short stream may spend more of its false alarms early."""
    prior_scale: float = 50.0
    """Prior variance of a shift, in units of the error variance of a window (tau squared)."""
    prior_count: float = 5.0
    """Batches that the prior (white noise) is worth in drift scales and correlations."""
    cap: float = 6.0
    """Cap on a squared deviation while drift scales are learned, in units of its expected value: a change that has not
    been noticed yet must not count as drift."""
    reference_span: float = 64.0
    """Memory of the reference level that follows slow drift."""
    block_span: float = 640.0
    """Memory of a block's levels and sway."""
    stream_span: float = 100.0
    """Memory of drift scales, correlations, noise and the calibration of the mixture."""
    young: float = 40.0
    """Observations that a new block inherits from the stream at most."""
    moved: float = 0.02
    """Share of the squared distance from the window to the next nearest block by which a block may have moved."""
    mixture_prior: float = 0.02
    """Prior variance of the mixture statistic, per feature, worth four observations."""
    mixture_scale: float = 1.5
    """Standard deviations at rest that make one unit of the mixture's evidence."""
    decide_after: int = 3
    """Batches since an alarm that are needed to begin a new block or to dismiss the alarm; a recall needs one more."""
    spacing: float = 0.25
    """A slot opens for a sample whose dissimilarity to all others exceeds this part of the block's scatter."""
    growth: float = 10.0
    """With ``max_units``, a slot beyond ``n_slots`` opens if wins times dissimilarity of the best match exceed this
    multiple of the scatter."""
