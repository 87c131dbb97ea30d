"""Fit of every block to the latest batches: the statistic of :mod:`ccmem.models.adaptive.evidence`, in numpy.

The block in use is at its reference, a stored block at its level. A block fits if its evidence is not positive; it does
not fit if its evidence exceeds the threshold of an alarm. Features have the shape (2, columns): means, then spreads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ccmem.core.typing import BoolArray, FloatArray
from ccmem.kernels.jit import in_python
from ccmem.models.adaptive import state as s
from ccmem.models.adaptive.evidence import LARGEST, MOST, at_rest, combined
from ccmem.models.adaptive.windows import MOST_CORRELATED, TIE

MOST_COMPARED = 64
"""Number of blocks that are compared if there are more than twice as many: comparing all would take most of the time.
"""
SAME_LEVEL = 9.0
"""Squared z-score beyond which a feature is no longer at the same level."""
_MOST_APART = 1e6
"""Cap on the squared z-score of one feature in the distance of a block, so that one feature does not decide alone."""


class Fits(NamedTuple):
    """Blocks beside a window of batches."""

    evidence: FloatArray
    """Evidence that the window does not belong to each block; infinite for blocks too far away to be compared."""
    new_level: Callable[[int], float]
    """Log likelihood ratio of a new level against a block, which a block of large sway cannot escape."""


def latest(state: Any, n: int) -> FloatArray:
    """Return the latest ``n`` batches, newest first: mean, spread and error variance of the spread of every column."""
    ring = state.stream[s.BATCHES : s.COLUMN_ROWS].reshape(s.RING, 3, -1)
    batches: FloatArray = ring[(int(state.counters[s.LATEST]) - np.arange(n)) % s.RING]
    return batches


def errors(settings: Any, batches: FloatArray) -> FloatArray:
    """Return the mean error variance of one batch."""
    return np.stack([(batches[:, 1] ** 2).mean(axis=0) / settings.batch, batches[:, 2].mean(axis=0)])


def noise(state: Any, settings: Any, block: int) -> FloatArray:
    """Return the error variance of one batch in a block, with that of rounding."""
    level, error, _ = s.block_values(state, block)
    return np.maximum(error, 0.0) + settings.rounding * level**2 + s.TINY


def silent_columns(state: Any, rows: int) -> BoolArray:
    """Return which columns have had no reading for so many rows."""
    return state.gaps[s.GAP] >= rows if len(state.gaps) else np.zeros(state.stream.shape[1], np.bool_)


def drift_scales(state: Any, settings: Any) -> FloatArray:
    """Return the drift scale of every window and feature, shape (windows, 2, columns), as ``windows.drift_scale``."""
    n, one, four = float(state.counters[s.WATCHED]), state.stream[s.ONE : s.FOUR], state.stream[s.FOUR : s.PRODUCT]
    share, white = n / (n + settings.prior_count), 0.5 ** np.arange(s.WINDOWS)[:, None, None]
    ratio = np.clip(np.sqrt(four / np.maximum(one, s.TINY)), 0.5, 1.0)
    learned = np.maximum([one, np.sqrt(one * four), four, ratio * four], white * one)
    return np.maximum(share * learned + (1.0 - share) * np.array(settings.expected).T[:, :, None], white)


def drift_of(scales: FloatArray, n: int) -> FloatArray:
    """Return the drift scale of the mean of ``n`` batches, between those of the windows around it."""
    i = _window(n)
    scale: FloatArray = np.maximum(scales[i] * (1 << i) / n, scales[min(i + 1, s.WINDOWS - 1)])
    return scale


def _window(n: int) -> int:
    """Return the index of the longest window of at most ``n`` batches."""
    return min(n.bit_length() - 1, s.WINDOWS - 1)


def deviation(batches: FloatArray, levels: FloatArray) -> FloatArray:
    """Return the mean deviation of batches from levels, trimmed as ``windows.trimming`` does.

    Where both extremes are equally far and both sums are equally near to 0, it is the mean as it is.
    """
    order = np.sort(batches, axis=0)
    lower, low, high, higher = (order[k] - levels for k in (0, 1, -2, -1))
    total = order.sum(axis=0) - len(batches) * levels
    down = np.where((high > 0.0) & (high >= -TIE * lower), high, 0.0) - higher
    up = np.where((low < 0.0) & (-low >= TIE * higher), low, 0.0) - lower
    balance, tie = higher + lower, (1.0 - TIE) * (higher - lower)
    gain, tied = np.where(balance > 0.0, down, up), abs(balance) <= tie
    if tied.any():
        balance = abs(total + up) - abs(total + down)
        nearer = np.where(abs(balance) <= tie, 0.5 * (down + up), np.where(balance > 0.0, down, up))
        gain = np.where(tied, nearer, gain)
    mean: FloatArray = (total + gain) / len(batches)
    return mean


def fits(state: Any, settings: Any, batches: FloatArray, own: int = -1) -> Fits:
    """Return how well every block explains batches; block ``own`` is at the reference.

    A stored block may have moved since its last use, by a part of the squared distance to the nearest other block.
    """
    count, n, watched = int(state.counters[s.BLOCKS]), len(batches), float(state.counters[s.WATCHED])
    level, noise, sway = (state.blocks[:count].reshape(count, 3, 2, -1)[:, row] for row in range(3))
    ages, at = np.maximum(state.ages[:count], 1.0)[:, None, None], level
    if own >= 0:
        at = level.copy()
        at[own] = state.stream[s.REFERENCE : s.ONE]
    known = np.broadcast_to((noise[:, :1] >= 0.0) & ~silent_columns(state, n * settings.batch), noise.shape)
    scales = drift_scales(state, settings)
    unit = np.maximum(noise, 0.0) + settings.rounding * level**2 + s.TINY
    one = np.maximum(scales[0], 1.0) * unit
    variance = drift_of(scales, n) * unit + one / ages + np.maximum(sway - one * (1.0 + 3.0 / np.sqrt(ages)), 0.0)
    variance = np.maximum(variance, errors(settings, batches) / n)
    z2 = np.minimum(deviation(batches[:, :2], at) ** 2 / variance, MOST)
    apart = np.where(known, np.minimum(z2, _MOST_APART), 0.0).sum(axis=(1, 2)) / np.maximum(known.sum(axis=(1, 2)), 1)
    moved = np.ones(count)
    if count > 1:
        closest, next_closest = np.argsort(apart, kind="stable")[:2]
        moved += settings.moved * np.where(np.arange(count) == closest, apart[next_closest], apart[closest])
    if own >= 0:
        moved[own] = 1.0
    z2, variance = z2 / moved[:, None, None], variance * moved[:, None, None]
    evidence = _evidence(state, settings, z2, np.minimum(ages, watched), known, _window(n))

    def new_level(block: int) -> float:
        nu = settings.prior_count + min(float(ages[block, 0, 0]), watched)
        ratio = _new_level(batches[:, :2].mean(axis=0), at, variance, block, nu)
        return float(np.where(known[block], ratio, 0.0).sum())

    return Fits(evidence, new_level)


def _evidence(state: Any, settings: Any, z2: FloatArray, n: FloatArray, known: BoolArray, window: int) -> FloatArray:
    """Return the evidence over all features from squared z-scores, for every block; ``n``: its observations."""
    one, residual = state.stream[s.ONE : s.FOUR], state.stream[s.RESIDUAL : s.BATCHES]
    watched = float(state.counters[s.WATCHED])
    left = np.maximum(residual, 0.0) * watched / (watched + settings.prior_count) / np.maximum(one, 0.01)
    left = np.minimum(left, MOST_CORRELATED)
    nu = settings.prior_count + n * (1.0 - left) / (1.0 + left)
    ratio = np.log((nu + z2) / (nu + z2 / (1.0 + settings.prior_scale)))
    logs = np.minimum(0.5 * (nu + 1.0) * ratio - 0.5 * np.log1p(settings.prior_scale), LARGEST)
    factors, features = np.where(known, np.exp(logs), 1.0), float(z2[0].size)
    mixtures = np.log1p((factors - 1.0) / np.sqrt(features)).sum(axis=(1, 2))
    mean, rest = in_python(at_rest)(state.scalars, window, settings.mixture_prior * features)
    calibrated, count = in_python(combined), state.scalars[s.COUNT]
    totals = np.maximum(factors.sum(axis=(1, 2)), s.TINY)
    return np.array([
        calibrated(total, mixture, features, mean, rest, count, settings.mixture_scale)
        for total, mixture in zip(totals.tolist(), mixtures.tolist(), strict=True)
    ])  # fmt: skip


def _new_level(mean: FloatArray, levels: FloatArray, variance: FloatArray, block: int, nu: float) -> FloatArray:
    """Return the log likelihood ratio of a new level against that of a block, per feature.

    The predictive density of a block is Student's t; a new level is drawn from the normal distribution of the levels of
    all blocks. A block that varies as much as these levels explains nothing.
    """
    total, own = levels.var(axis=0) + variance.mean(axis=0), variance[block]
    away = np.minimum((mean - levels.mean(axis=0)) ** 2 / total, SAME_LEVEL)
    known = np.log(own / total) + (nu + 1.0) * np.log1p((mean - levels[block]) ** 2 / (own * nu))
    ratio: FloatArray = 0.5 * (known - away)
    return ratio


def fits_nearest(state: Any, settings: Any, batches: FloatArray, own: int) -> Fits:
    """Return the results of :func:`fits` for the block in use and the blocks nearest to a window, if there are many.

    Blocks are ranked by the mean squared z-score of a window, with a variance that is easy to compute and at least that
    of the comparison up to the error of a level.
    """
    blocks, n = int(state.counters[s.BLOCKS]), len(batches)
    if blocks <= 2 * MOST_COMPARED:
        return fits(state, settings, batches, own)
    window = np.median(batches[:, :2], axis=0)  # an outlying batch decides nothing
    known, ranks = ~silent_columns(state, n * settings.batch), np.empty(blocks)
    drift, error = drift_of(drift_scales(state, settings), n), errors(settings, batches) / n + s.TINY
    for begin in range(0, blocks, MOST_COMPARED):
        part = slice(begin, min(begin + MOST_COMPARED, blocks))
        level, noise, sway = (state.blocks[part, row : row + 2] for row in (s.LEVEL, s.NOISE, s.SWAY))
        z2 = (window - level) ** 2 / np.maximum(drift * (noise + settings.rounding * level**2) + sway, error)
        there = (noise[:, :1] >= 0.0) & known
        ranks[part] = np.minimum(z2, _MOST_APART).sum(axis=(1, 2), where=there) / np.maximum(there.sum(axis=(1, 2)), 1)
    ranks[own] = -1.0
    some = np.sort(np.argpartition(ranks, MOST_COMPARED)[:MOST_COMPARED])
    few = state._replace(blocks=state.blocks[some], ages=state.ages[some], counters=state.counters.copy())
    few.counters[s.BLOCKS] = len(some)
    found, evidence = fits(few, settings, batches, int(np.searchsorted(some, own))), np.full(blocks, np.inf)
    evidence[some] = found.evidence
    return Fits(evidence, lambda block: found.new_level(int(np.searchsorted(some, block))))
