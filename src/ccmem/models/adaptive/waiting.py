"""Blocks that wait, beside the latest batches: does one fit, does one explain them better, how one comes back into use.

The *guess* is the mean of the latest batches. It fits a block if no feature is beyond the quantile that makes a change
(:mod:`ccmem.models.adaptive.columns`), by the variance of batches and of the block's own. A shift that is certain but
no change, and that a waiting block explains better by h, by one feature or by all together, is a return (the race). One
that comes little by little is never certain: now and then the race is run against the *home* of the block in use, the
means of its first thousand rows, and a block that loses it goes back there.
"""

from __future__ import annotations

from ccmem._typing import FloatArray
from ccmem.kernels.jit import kernel_in_place
from ccmem.models.adaptive.columns import (
    ECHO,
    ERROR,
    HOME,
    LEVEL,
    N_GUESS,
    N_KNOWN,
    N_RUNNING,
    N_SLOT,
    NOISE,
    PRIOR,
    REFERENCE,
    RING,
    RUNNING,
    SILENT,
    STRAY,
    SWAY,
    TINY,
    latest,
    normalised,
    unknown,
)

FAR = 9.0
"""A level that is so many times its error and its slow wandering away, squared, has moved."""


@kernel_in_place
def gather(guess: FloatArray, ring: FloatArray, now: int, n: int) -> None:
    """Let the guess be the mean of the latest n batches, or of those in which a column says something."""
    for j in range(ring.shape[1]):
        heard = 0
        for back in range(n):
            heard += 0 if unknown(ring[N_SLOT * ((now + RING - back) % RING) + 2, j]) else 1
        for row in range(N_GUESS):
            mean = latest(ring, now, row, j, n)
            if 0 < heard < n:
                mean = 0.0
                for back in range(n):
                    slot = N_SLOT * ((now + RING - back) % RING)
                    mean += 0.0 if unknown(ring[slot + 2, j]) else ring[slot + row, j]
                mean /= heard
                if row >= 2:  # fewer batches, so that its variance / n is right
                    mean *= n / heard
            guess[row, j] = mean


@kernel_in_place
def column_misfit(
    known: FloatArray, readings: FloatArray, guess: FloatArray, batches: float, n: int, bound: float
) -> float:
    """How far the guess, of n batches, is from what a block knows; above 1 if it is not from there."""
    worst, d = 0.0, guess.shape[1]
    if batches == 0.0 or n == 0:
        return worst
    for feature in range(2 * d):
        kind, j = feature // d, feature % d
        block, running = known[N_KNOWN * kind :], readings[RUNNING + N_RUNNING * kind :]
        away = guess[kind, j] - block[LEVEL, j]
        variance = max(running[ERROR, j], max(block[NOISE, j], guess[2 + kind, j]))
        worst = max(worst, away * away / (variance / n + block[SWAY, j] * (1.0 + 1.0 / batches) + TINY))
    return normalised(worst, batches + PRIOR) / bound


@kernel_in_place
def column_distance(
    known: FloatArray, now: FloatArray, readings: FloatArray, there: FloatArray, doubts: FloatArray, step: int
) -> float:
    """Squared distance of a block from ``there``, in variances, by columns that are known in both.

    Rows 0 and ``step`` of ``there`` are levels, those of ``doubts`` tell if they are known.
    """
    total = 0.0
    for feature in range(2 * known.shape[1]):
        kind, j = feature // known.shape[1], feature % known.shape[1]
        first = N_KNOWN * kind
        if unknown(doubts[step * kind, j]) or unknown(known[first + SWAY, j]):
            continue
        away = there[step * kind, j] - known[first + LEVEL, j]
        noise = max(now[first + NOISE, j], known[first + NOISE, j])
        total += away * away / max(max(readings[RUNNING + N_RUNNING * kind + ERROR, j], noise), TINY)
    return total


@kernel_in_place
def better_by(
    known: FloatArray,
    now: FloatArray,
    readings: FloatArray,
    guess: FloatArray,
    batches: float,
    watched: float,
    reference_age: float,
    n: int,
    h: float,
    at_home: bool,
) -> float:
    """By how much a waiting block explains the guess better than the reference does: one feature, or all together.

    Not at all if all together speak for the reference. The larger variance of the two counts, and how far levels of
    the block wander beyond it. ``at_home`` the reference is the home of the block in use, and one mean must tell: two
    blocks of one regime differ a little in all of them.
    """
    together, most, tails = 0.0, 0.0, 2.0 * (watched + PRIOR)
    weight = 0.5 * n / (1.0 + n / min(batches, reference_age))
    for feature in range(known.shape[1] if at_home else 2 * known.shape[1]):
        kind, j = feature // known.shape[1], feature % known.shape[1]
        first, running = N_KNOWN * kind, readings[RUNNING + N_RUNNING * kind :]
        variance = max(running[ERROR, j], max(known[first + NOISE, j], now[first + NOISE, j]))
        variance = max(variance, guess[2 + kind, j]) + max(known[first + SWAY, j] - running[ERROR, j], 0.0) + TINY
        reference = now[HOME, j] if at_home else running[REFERENCE, j]
        here, there = guess[kind, j] - reference, guess[kind, j] - known[first + LEVEL, j]
        here, there = here * here, there * there
        gain = min(here / (variance + here / tails), h) - min(there / (variance + there / tails), h)
        together += gain
        most = max(most, weight * gain)
    if not at_home:
        most = max(most, weight * together)
    return most if together > 0.0 else 0.0


@kernel_in_place
def go_on(
    known: FloatArray, old: FloatArray, readings: FloatArray, guess: FloatArray, batch: FloatArray, n: int, new: bool
) -> None:
    """Let the guess, of n batches, be the reference from here on, ``batch`` being the last of them.

    It is the level of a new block, too. A recalled block knows its levels: the guess counts by how far they wander, or
    have moved, beside its own error. Variances follow the errors of batches, in a new block only
    upwards. Of a silent column a recalled block expects what it knew, and a new one what was expected before.
    """
    for kind in range(2):
        block, before = known[N_KNOWN * kind :], old[N_KNOWN * kind :]
        running = readings[RUNNING + N_RUNNING * kind :]
        for j in range(batch.shape[1]):
            expected, error, noise = guess[kind, j], guess[2 + kind, j], before[NOISE, j]
            silent = unknown(error)
            if new:
                expected = running[REFERENCE, j] if silent else expected
                block[LEVEL, j], block[SWAY, j] = expected, SILENT if silent else 0.0
                if kind == 0:
                    known[HOME, j] = expected
                block[NOISE, j] = noise if silent else max(error, noise)
            ratio = block[NOISE, j] / noise if noise > 0.0 and block[NOISE, j] > 0.0 else 1.0
            for k in range(ERROR, ECHO + 1):
                running[k, j] *= ratio
            if not new and silent:
                expected = running[REFERENCE, j] if unknown(block[SWAY, j]) else block[LEVEL, j]
            elif not new:
                away, doubt = expected - block[LEVEL, j], max(max(running[ERROR, j], block[NOISE, j]), error) / n
                slow = max(block[SWAY, j] - running[ERROR, j], 0.0)
                wander = max(slow, away * away - FAR * (doubt + slow))
                expected = block[LEVEL, j] + wander / (wander + doubt + TINY) * away
            for k in range(STRAY, ERROR):
                running[k, j] = 0.0
            running[REFERENCE, j] = expected
            running[STRAY, j] = 0.0 if silent or unknown(batch[2, j]) else batch[kind, j] - expected


@kernel_in_place
def move_home(known: FloatArray, keep: float) -> None:
    """Let the home of a block follow its levels, but for a part."""
    for j in range(known.shape[1]):
        known[HOME, j] = known[LEVEL, j] + keep * (known[HOME, j] - known[LEVEL, j])


@kernel_in_place
def go_home(known: FloatArray) -> None:
    """Let a block forget the levels it came to since it left its home."""
    for j in range(known.shape[1]):
        if not unknown(known[SWAY, j]):
            known[LEVEL, j], known[SWAY, j] = known[HOME, j], 0.0
