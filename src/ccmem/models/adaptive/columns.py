"""The second witness: columns, each in its own units, by the level and the spread of batches.

A batch of b rows gives two features f for every column: its mean, and its spread sqrt(sum (x_t - x_t-1)^2 / 2b), which
neither a level nor a trend within the batch touches. Both come with their error as the batch itself tells it (variance
/ b for the mean; by the fourth powers of the same differences for the spread), so that one outlier is never more than
about one error away. For every feature, with prior = 5 batches in place of experience,

    prediction  R + phi (f_before - R), R a reference over about a thousand rows, phi the correlation of f - R
    surprise    z^2 = e^2 / (V + e^2 / 2v), e = f - prediction, V its variance so far (with correlation that remains,
                never less than the errors), v batches known: Student's tails without a logarithm; z^2 <= h
    evidence    S <- max(0, S + k |z| - k^2 / 2) as long as z keeps its sign, k the mean of the z before it in the run
                (at least 1): the log-likelihood ratio of a shift as large as it has looked so far

A run reaches h = ln(4 d N / b), one feature of 2 d either way, once in N rows (``false_alarm_every``) if nothing
changed; z^2 <= h makes it three batches at least. From h / 3 on the feature learns nothing. At h the shift is certain;
it is a change if two batches are at least half way there and if it is also further from R than the feature is used to
wander: beyond the quantile of exp(-h) of Student's distribution, with the variance of f - R, its correlation r, and
n (1 - r) / (1 + r) + 2 degrees of freedom from n batches. Slots wait where a feature is two thirds of the way by both.
What is neither a change nor a return within twelve batches is how this feature wanders, and R goes there. So nothing is
ever hidden: a limit is a multiple of what one column has shown, and a larger shift exceeds it.

How a feature moves (V, the variance of f - R, both correlations) belongs to the sensor: there is one of each for the
stream, which goes along from block to block, in proportion to the errors of batches there. A block knows the mean and
the variance of its features, their errors, and the means it began with (its home); :mod:`ccmem.models.adaptive.waiting`
holds it against the latest batches.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem._typing import FloatArray
from ccmem.kernels.jit import kernel_apart, kernel_in_place
from ccmem.kernels.lanes import largest_sum
from ccmem.models._blocks import OWN_BLOCK

ROWS, LATEST, FRESH, STAYED, REFERENCE_AGE, DOUBT, PARTIAL, WATCHED = range(OWN_BLOCK + 7, OWN_BLOCK + 15)
"""Places in ``counters``: rows of the batch being filled; the ring's latest slot; full batches since suspicion began,
and since the block came into use; batches behind the reference; whether slots wait for the evidence; whether the batch
being filled began before suspicion did; batches behind the variances of the stream."""
LEVEL, SWAY, NOISE, N_KNOWN = range(4)
HOME, N_BLOCK = 2 * N_KNOWN, 2 * N_KNOWN + 1
"""What a block knows of a feature: mean and variance of f, and the error of a batch; of means, then of spreads; and the
levels of means that it began with."""
SUM, SQUARES, FOURTHS, BEFORE, DIRECTION, RUNNING = range(6)
"""Rows of ``readings``: sums over the batch being filled, the row before, the sum of directions; then for means, and
again for spreads: """
REFERENCE, STRAY, MISS, EVIDENCE, RUN, PULL, ERROR, REACH, CARRY, ECHO, N_RUNNING = range(11)
"""R, the latest f - R and e; S, the batches behind it and the sum of their z; variance of e, of f - R; products with
the one before of f - R, of e."""
N_READINGS = RUNNING + 2 * N_RUNNING
RING, N_SLOT = 4, 5
"""The latest batches: mean, spread, the errors of both, and the mean direction."""
N_GUESS = 4
"""Rows of ``guess``, the mean of the latest batches: as the first of a slot."""
PRIOR = 5.0
LEAST_FREEDOM = 2.0
"""Degrees of freedom of a variance that few batches tell of."""
INHERITED = 20.0
"""Batches that the variances of the stream count for at most where a new block begins."""
MOST_CORRELATION, MOST_WANDER = 0.95, 0.98
OUTLIER = 16.0
"""Squared deviations count as at most so many variances when variances are learned."""
ROUNDING = 1e-7
TINY = 1e-300
SILENT = 1e301
"""The error of a feature of which a batch says nothing, and the variance of a level that a block does not know: beyond
any that numbers have. See :mod:`ccmem.models.adaptive.missing`."""


@kernel_in_place
def least_evidence(false_alarm_every: float, batch: int, n_features: int) -> float:
    """h"""
    return np.log(4.0 * n_features * false_alarm_every / batch)


@kernel_in_place
def squared_quantile(h: float) -> float:
    """z^2 of the standard normal quantile of exp(-h), by the expansion of its tail."""
    square = 2.0 * h
    for _ in range(8):
        square = 2.0 * h - np.log(2.0 * np.pi * square)
    return square


@kernel_in_place
def normalised(square: float, batches: float) -> float:
    """z^2 of a squared Student deviate (Wallace, 1959)."""
    share = (8.0 * batches + 1.0) / (8.0 * batches + 3.0)
    return batches * np.log(1.0 + square / batches) * (share * share)


@kernel_in_place
def unknown(variance: float) -> bool:
    """Whether it stands for a silent column, or for a level that was never heard."""
    return variance > 0.1 * SILENT


@kernel_in_place
def start(known: FloatArray, readings: FloatArray, batch: FloatArray, block_too: bool) -> None:
    """Let a batch be all that is known of the stream, and of the block too if it is new to columns."""
    for kind in range(2):
        block, running = known[N_KNOWN * kind :], readings[RUNNING + N_RUNNING * kind :]
        for j in range(batch.shape[1]):
            silent = unknown(batch[2 + kind, j])
            if block_too:
                for k in range(N_KNOWN):
                    block[k, j] = 0.0
                if silent:
                    block[SWAY, j] = SILENT
                else:
                    block[LEVEL, j], block[NOISE, j] = batch[kind, j], batch[2 + kind, j]
            for k in range(STRAY, N_RUNNING if block_too else ERROR):
                running[k, j] = 0.0
            if not silent:
                running[REFERENCE, j] = batch[kind, j]
    if block_too:
        for j in range(batch.shape[1]):
            known[HOME, j] = known[LEVEL, j]


@kernel_in_place
def weigh(
    known: FloatArray,
    running: FloatArray,
    features: FloatArray,
    errors: FloatArray,
    batches: float,
    watched: float,
    reference_age: float,
    slowest: float,
    reference_rate: float,
    h: float,
    learns: bool,
    start: int,
    stop: int,
) -> float:
    """Weigh what a batch says about means or spreads of some columns, and learn from it; return the most evidence."""
    part = slice(start, stop)
    weigh_columns(
        *(known[LEVEL][part], known[SWAY][part], running[ERROR][part], running[REACH][part]),
        *(running[CARRY][part], running[ECHO][part], known[NOISE][part]),
        *(running[REFERENCE][part], running[STRAY][part], running[MISS][part]),
        *(running[EVIDENCE][part], running[RUN][part], running[PULL][part]),
        *(features[part], errors[part]),
        watched,
        1.0 + 1.0 / reference_age,
        h,
        learns,
        max(1.0 / (watched + 1.0), slowest),
        max(1.0 / (batches + 1.0), slowest),
        max(1.0 / (reference_age + 1.0), reference_rate),
    )
    evidence = running[EVIDENCE][part]
    return 0.5 * largest_sum(evidence, evidence)


@kernel_apart
def weigh_columns(
    levels: FloatArray,
    sways: FloatArray,
    misses: FloatArray,
    reaches: FloatArray,
    carries: FloatArray,
    echoes: FloatArray,
    noises: FloatArray,
    references: FloatArray,
    strays: FloatArray,
    last: FloatArray,
    evidences: FloatArray,
    runs: FloatArray,
    pulls: FloatArray,
    features: FloatArray,
    errors: FloatArray,
    watched: float,
    unsure: float,
    h: float,
    learns: bool,
    rate: float,
    level_rate: float,
    reference_rate: float,
) -> None:
    """Every column alike and without branches: the processor does several at a time."""
    trust, tails = watched / (watched + PRIOR), 0.5 / (watched + PRIOR)
    most_square, outlier = h if watched >= PRIOR else 0.0, OUTLIER if watched >= 2.0 else np.inf
    pause = h / 3.0 if learns else -1.0
    for j in range(features.shape[0]):
        f, error, reach, before = features[j], errors[j], reaches[j], strays[j]
        stray = f - references[j]
        floor = max(noises[j], TINY)
        variance = max(misses[j], floor)
        phi = min(max(trust * carries[j] / (reach + TINY), 0.0), MOST_CORRELATION)
        left = min(max(trust * echoes[j], 0.0), MOST_CORRELATION * variance)
        e = stray - phi * before
        square = e * e
        # evidence
        was, run, pull = evidences[j], runs[j], pulls[j]
        z = np.sqrt(min(square / (max((variance + 2.0 * left) * unsure, error) + square * tails + TINY), most_square))
        signed = z if e > 0.0 else -z
        k = max(1.0, abs(pull) / max(run, 1.0))
        evidence = was + ((k * signed if pull > 0.0 else -k * signed) - 0.5 * k * k)
        begins = was <= 0.0 or evidence <= 0.0
        evidence = max(0.0, z - 0.5) if begins else evidence
        evidences[j] = evidence
        runs[j] = 1.0 if begins else run + 1.0
        pulls[j] = signed if begins else pull + signed
        # learning
        keeps = evidence > pause
        step, level_step = 0.0 if keeps else rate, 0.0 if keeps else level_rate
        most = outlier * max(variance, error)
        furthest = np.sqrt(most)
        e = (furthest if e > 0.0 else -furthest) if square > most else e
        most = outlier * max(max(reach, floor), error)
        furthest = np.sqrt(most)
        bounded = (furthest if stray > 0.0 else -furthest) if stray * stray > most else stray
        away = f - levels[j]
        misses[j] += step * (e * e - misses[j])
        echoes[j] += step * (e * last[j] - echoes[j])
        reaches[j] += step * (bounded * bounded - reach)
        carries[j] += 0.0 if keeps else rate * (bounded * before - carries[j])  # may be too large a number
        references[j] += 0.0 if keeps else reference_rate * stray
        sways[j] += 0.0 if keeps else level_rate * ((1.0 - level_rate) * away * away - sways[j])
        levels[j] += level_step * away
        noises[j] += level_step * (error - noises[j])
        strays[j] = stray
        last[j] = 0.0 if keeps else e


@kernel_in_place
def latest(ring: FloatArray, now: int, row: int, j: int, n: int) -> float:
    """Mean of one value over the latest n batches, slot ``now`` being the last."""
    total = 0.0
    for back in range(n):
        total += ring[N_SLOT * ((now + RING - back) % RING) + row, j]
    return total / n


@kernel_in_place
def strangeness(
    known: FloatArray,
    readings: FloatArray,
    ring: FloatArray,
    now: int,
    feature: int,
    watched: float,
    reference_age: float,
) -> float:
    """How far the run of a feature has taken it from its reference, by how far it is used to wander: z^2.

    n correlated batches count for n (1 - r) / (1 + r).
    """
    d = ring.shape[1]
    kind, j = feature // d, feature % d
    block, running = known[N_KNOWN * kind :], readings[RUNNING + N_RUNNING * kind :]
    n: Any = min(np.int64(running[RUN, j]), RING)
    away = latest(ring, now, kind, j, n) - running[REFERENCE, j]
    variance = widest(block, running, j)
    r = min(max(running[CARRY, j] / variance, 0.0), MOST_WANDER)
    share = min(1.0, (1.0 + r) / ((1.0 - r) * n)) + 1.0 / reference_age
    return normalised(away * away / (variance * share), watched * (1.0 - r) / (1.0 + r) + LEAST_FREEDOM)


@kernel_in_place
def widest(block: FloatArray, running: FloatArray, j: int) -> float:
    """The variance of a feature around its reference: as seen, and no less than what its errors make likely."""
    return max(max(running[REACH, j], running[ERROR, j]), max(block[NOISE, j], TINY))


@kernel_in_place
def in_doubt(
    known: FloatArray, readings: FloatArray, ring: FloatArray, now: int, watched: float, reference_age: float, h: float
) -> bool:
    """Whether a feature is two thirds of the way to a change, by its evidence and by how far it went."""
    bound, d = squared_quantile(h), ring.shape[1]
    for feature in range(2 * d):
        kind, j = feature // d, feature % d
        if 3.0 * readings[RUNNING + N_RUNNING * kind + EVIDENCE, j] < 2.0 * h or unknown(ring[N_SLOT * now + 2, j]):
            continue
        if 3.0 * strangeness(known, readings, ring, now, feature, watched, reference_age) >= 2.0 * bound:
            return True
    return False


@kernel_in_place
def departure(
    known: FloatArray, readings: FloatArray, ring: FloatArray, now: int, watched: float, reference_age: float, h: float
) -> tuple[int, int, int]:
    """The feature that left (its column, plus d for spreads; -1: none), batches where it went and since it began to."""
    found: Any = np.int64(-1)
    batches: Any = np.int64(0)
    length: Any = np.int64(0)
    most, bound, d = 0.0, squared_quantile(h), ring.shape[1]
    for feature in range(2 * d):
        kind, j = feature // d, feature % d
        running = readings[RUNNING + N_RUNNING * kind :]
        if running[EVIDENCE, j] < h or unknown(ring[N_SLOT * now + 2, j]):
            continue
        run: Any = np.int64(running[RUN, j])
        n = min(run, RING)
        last, near = latest(ring, now, kind, j, 1) - running[REFERENCE, j], 0
        while near < n:  # batches at least half as far from the reference as the last one, on its side
            if (
                ring[N_SLOT * ((now + RING - near) % RING) + kind, j] - running[REFERENCE, j]
            ) * last < 0.5 * last * last:
                break
            near += 1
        if near < 2 or running[EVIDENCE, j] <= most:
            continue
        if strangeness(known, readings, ring, now, feature, watched, reference_age) >= bound:
            found, batches, length, most = feature, near - 1, run, running[EVIDENCE, j]
    return found, batches, length


@kernel_in_place
def longest_run(readings: FloatArray, ring: FloatArray, now: int, h: float) -> int:
    """Batches since the first of the features whose shift is certain began to go."""
    longest = 0.0
    for kind in range(2):
        running = readings[RUNNING + N_RUNNING * kind :]
        for j in range(ring.shape[1]):
            if running[EVIDENCE, j] >= h and not unknown(ring[N_SLOT * now + 2, j]):
                longest = max(longest, running[RUN, j])
    return int(longest)


@kernel_in_place
def settle(
    known: FloatArray,
    readings: FloatArray,
    ring: FloatArray,
    now: int,
    watched: float,
    slowest: float,
    h: float,
    most_batches: int,
) -> None:
    """No change came of evidence that is certain: soon it is taken for how the feature wanders."""
    for feature in range(2 * ring.shape[1]):
        kind, j = feature // ring.shape[1], feature % ring.shape[1]
        block, running = known[N_KNOWN * kind :], readings[RUNNING + N_RUNNING * kind :]
        if running[EVIDENCE, j] < h or unknown(ring[N_SLOT * now + 2, j]):
            continue
        running[EVIDENCE, j] = h
        if running[RUN, j] >= most_batches:
            n: Any = min(np.int64(running[RUN, j]), RING)
            away, variance = latest(ring, now, kind, j, n) - running[REFERENCE, j], widest(block, running, j)
            rate, square = max(n / (watched + n), slowest), min(away * away, OUTLIER * variance)
            running[REACH, j] += rate * (square - running[REACH, j])
            running[REFERENCE, j] += away
            running[STRAY, j], running[MISS, j] = latest(ring, now, kind, j, 1) - running[REFERENCE, j], 0.0
            running[EVIDENCE, j], running[RUN, j], running[PULL, j] = 0.0, 0.0, 0.0
