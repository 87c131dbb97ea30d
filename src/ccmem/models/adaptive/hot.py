"""Once per batch, compiled: evidence of the windows that end with it, and what is learned of the oldest batch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ccmem.core.state import SEEN
from ccmem.core.typing import FloatArray
from ccmem.kernels.jit import kernel_apart, kernel_in_place
from ccmem.models.adaptive import state as s
from ccmem.models.adaptive.batches import columns_wait, finish, row_of, store
from ccmem.models.adaptive.columns import learn_columns
from ccmem.models.adaptive.evidence import MOST, at_rest, bayes_factors, combined, totals
from ccmem.models.adaptive.state import Feature, Work
from ccmem.models.adaptive.windows import (
    MOST_CORRELATED,
    clear,
    drift_scale,
    extend,
    feature_of,
    independent,
    trimming,
    work_of,
)

EARLY = 4
"""Batches after which a batch is learned while the stream is young."""
LEAST = 3
"""Observations of the drift scales that a test needs; degrees of freedom keep early tests cautious."""
_OUTLIER = 4.0
"""Deviations are clipped at this number of standard deviations while correlations are learned."""


@kernel_in_place
def forecast(phi: float, i: int) -> float:
    """Return the weight of a deviation in the prediction of the mean of the 2^i batches after it."""
    weight = phi
    for _ in range(i):
        weight *= 0.5 * (1.0 + phi)
        phi *= phi
    return weight


@kernel_in_place
def nearest(mean: float, prediction: float) -> float:
    """Return the point between 0 and a prediction that is nearest to a mean."""
    near = prediction if abs(prediction) < abs(mean) else mean
    return near if mean * prediction > 0.0 else 0.0


@kernel_apart
def prepare(m: int, begin: int, w: Work, x: Feature, settings: Any, n: float) -> None:
    """Set error variance of one batch, degrees of freedom of its estimated scale, and lag-1 correlation of batches."""
    t, observations = n / (n + settings.prior_count), min(n, settings.stream_span)
    for j in range(m):
        k = np.uint64(begin + j)
        w.unit[j] = max(x.noise[k], 0.0) + settings.rounding * x.reference[k] * x.reference[k] + s.TINY
        w.weight[j] = w.power[j] = min(max(x.product[k], 0.0) * t / max(x.power[k], s.TINY), MOST_CORRELATED)
        w.nu[j] = settings.prior_count + observations * independent(x.residual[k], x.one[k], t)


@kernel_apart
def weigh(
    m: int, begin: int, w: Work, x: Feature, before: FloatArray, t: float, age: float, i: int, predicted: float,
    prior: float,
) -> None:  # fmt: skip
    """Convert the sums of a window of 2^i batches into squared z-scores, given the batch ``before`` the window.

    ``weight``, the share of that batch in the prediction, is then that for a window twice as long; ``power`` is phi^w.
    """
    n, inverse = float(1 << i), 1.0 / (1 << i)  # powers of 2, by which products are as exact as quotients
    longer = 1.0 + n / age
    for j in range(m):
        k = np.uint64(begin + j)
        mean = w.total[j] * inverse
        shift = nearest(mean, predicted * w.weight[j] * (before[k] - x.reference[k]))
        w.weight[j] *= 0.5 * (1.0 + w.power[j])
        w.power[j] *= w.power[j]
        mean -= shift
        if i > 0:
            low, lower, high, higher = w.low[j] - shift, w.lower[j] - shift, w.high[j] - shift, w.higher[j] - shift
            mean += inverse * trimming(mean * n, low, lower, high, higher)
        variance = drift_scale(i, x.one[k], x.four[k], t, prior) * w.unit[j] * longer
        w.z2[j] = min(mean * mean / max(variance, w.error[j] * inverse * inverse), MOST)


@kernel_in_place
def evaluate(state: Any, settings: Any, windows: int) -> None:
    """Store sums and log mixtures of Bayes factors of the first ``windows`` windows in ``scalars``.

    The latest 1, 2, 4 and 8 batches are compared with the reference. Columns are taken in parts, whose rows fit into
    the cache of the processor.
    """
    counters, scalars, stream, latest = state.counters, state.scalars, state.stream, state.counters[s.LATEST]
    n, age, share = float(counters[s.WATCHED]), float(counters[s.AGE]), 1.0 / math.sqrt(2.0 * stream.shape[1])
    t, w = n / (n + settings.prior_count), work_of(state.scratch)
    for i in range(s.WINDOWS):
        scalars[s.TOTAL + i] = scalars[s.MIXTURE + i] = 0.0
    for begin in range(0, stream.shape[1], s.PART):
        m = min(stream.shape[1] - begin, s.PART)
        for f in range(2):
            x, used = feature_of(stream, state.blocks[counters[s.POINTER]], f), 0
            prepare(m, begin, w, x, settings, n)
            clear(m, w)
            for i in range(windows):
                while used < 1 << i:
                    row = row_of(used, latest) + f
                    extend(m, begin, w, stream[row], stream[row + 1], x.reference, (1.0 - f) / settings.batch)
                    used += 1
                predicted, before = 0.0 if counters[s.KEPT] < used else 1.0, stream[row_of(used, latest) + f]
                weigh(m, begin, w, x, before, t, age, i, predicted, settings.expected[f][i])
                bayes_factors(m, begin, w.factors, w.z2, w.nu, x.noise, settings.prior_scale)
                some, mixture = totals(m, w.factors, w.z2, w.nu, share, settings.prior_scale)
                scalars[s.TOTAL + i] += some
                scalars[s.MIXTURE + i] += mixture


@kernel_in_place
def evidence(scalars: FloatArray, i: int, features: float, prior: float, scale: float) -> float:
    """Return the evidence of a window that was evaluated."""
    mean, deviation = at_rest(scalars, i, prior * features)
    total, mixture = max(scalars[s.TOTAL + i], s.TINY), scalars[s.MIXTURE + i]
    return combined(total, mixture, features, mean, deviation, scalars[s.COUNT], scale)


@kernel_in_place
def calibrate(scalars: FloatArray, i: int, mixture: float, prior: float, span: float) -> None:
    """Learn mean and variance of the mixture at rest."""
    n = min(scalars[s.COUNT + i] + 1.0, span)
    gain = mixture - scalars[s.MEAN + i]
    if n > 2.0:
        gain = min(gain, 3.0 * at_rest(scalars, i, prior)[1])
    scalars[s.COUNT + i] = n
    scalars[s.MEAN + i] += gain / n
    scalars[s.VARIANCE + i] += (gain * gain * (1.0 - 1.0 / n) - scalars[s.VARIANCE + i]) / n


@kernel_in_place
def clipped(x: float, limit: float) -> float:
    """Return ``x``, at most ``limit`` from 0."""
    return min(max(x, -limit), limit)


@kernel_apart
def learn_feature(
    f: Feature, oldest: FloatArray, first: FloatArray, second: FloatArray, third: FloatArray,
    fourth: FloatArray, errors: FloatArray, settings: Any, n: float, age: float, own_age: float, squared: float,
    prior: tuple[float, float, float, float],
) -> None:  # fmt: skip
    """Learn the oldest batch: drift scales, correlations, reference, and level, noise and sway of the block.

    Drift scales are learned from the batch after it and from the four after it. The cap is looser while n is small:
    white noise is only a guess then. A change not noticed yet must not count as sway.
    """
    t, cap = n / (n + settings.prior_count), settings.cap * (1.0 + 1.0 / max(n, 1e-6))
    stream_gain, own_span = 1.0 / min(n + 1.0, settings.stream_span), min(own_age + 1.0, settings.block_span)
    noise_gain = 1.0 / min(own_span, settings.stream_span)
    reference_span = min(age + 1.0, settings.reference_span)
    for j in range(f.one.shape[0]):
        unit = max(f.noise[j], 0.0) + settings.rounding * f.reference[j] * f.reference[j] + s.TINY
        gain = stream_gain if f.noise[j] > 0.0 else 0.0  # a column that has been constant so far has no scale
        phi = min(max(f.product[j], 0.0) * t / max(f.power[j], s.TINY), MOST_CORRELATED)
        x, y, z = oldest[j] - f.reference[j], first[j] - f.reference[j], second[j] - f.reference[j]
        away = y - nearest(y, phi * x)
        most = cap * drift_scale(0, f.one[j], 0.0, t, prior[0])
        f.one[j] += (min(away * away / (unit * (1.0 + 1.0 / age)), most) - f.one[j]) * gain
        away = 0.25 * (y + z + third[j] - f.reference[j] + fourth[j] - f.reference[j])
        away -= nearest(away, forecast(phi, 2) * x)
        most = cap * drift_scale(2, f.one[j], f.four[j], t, prior[2])
        f.four[j] += (min(away * away / (unit * (1.0 + 4.0 / age)), most) - f.four[j]) * gain
        unit *= 1.0 + 1.0 / age
        limit = _OUTLIER * math.sqrt(max(f.one[j], 1.0) * unit)
        f.residual[j] += (clipped(y - phi * x, limit) * clipped(z - phi * y, limit) / unit - f.residual[j]) * gain
        x, y = clipped(x, limit), clipped(y, limit)
        f.product[j] += (x * y / unit - f.product[j]) * gain
        f.power[j] += (x * x / unit - f.power[j]) * gain
        away = oldest[j] - f.level[j]
        expected = max(f.one[j], 1.0) * max(f.noise[j], 0.0) + f.sway[j]
        f.sway[j] += (min(away * away * (1.0 - 1.0 / own_span), settings.cap * expected) - f.sway[j]) / own_span
        f.level[j] += away / own_span
        f.reference[j] += (oldest[j] - f.reference[j]) / reference_span
        error = errors[j] * errors[j] * squared if squared > 0.0 else errors[j]
        f.noise[j] += (error - f.noise[j]) * noise_gain if f.noise[j] >= 0.0 else 0.0


@kernel_in_place
def learn_oldest(state: Any, settings: Any) -> None:
    """Learn the oldest batch that waits."""
    counters, stream, block = state.counters, state.stream, state.blocks[state.counters[s.POINTER]]
    n, age, own_age = float(counters[s.WATCHED]), float(counters[s.AGE]), state.ages[counters[s.POINTER]]
    latest, waiting = counters[s.LATEST], counters[s.WAITING]
    row, first, second = row_of(waiting, latest), row_of(waiting - 1, latest), row_of(waiting - 2, latest)
    third, fourth = row_of(waiting - 3, latest), row_of(waiting - 4, latest)
    gaps = stream[s.N_STREAM :]
    if gaps.shape[0] > 0:  # sums that wait for more readings are deviations from the reference
        for j in range(stream.shape[1]):
            step = (stream[row, j] - stream[s.REFERENCE, j]) / min(age + 1.0, settings.reference_span)
            gaps[s.SUMS, j] -= gaps[s.READINGS, j] * step
    for f in range(2):
        learn_feature(
            feature_of(stream, block, f), stream[row + f], stream[first + f], stream[second + f], stream[third + f],
            stream[fourth + f], stream[row + 1 + f], settings, n, age, own_age, (1.0 - f) / settings.batch,
            settings.expected[f],
        )  # fmt: skip
    state.ages[counters[s.POINTER]] = min(own_age + 1.0, settings.block_span)
    counters[s.WATCHED] += 1
    counters[s.AGE] += 1


@kernel_in_place
def judge(state: Any, settings: Any) -> None:
    """Test the windows that end with the newest batch; raise an alarm, or learn the oldest batch."""
    counters, scalars = state.counters, state.scalars
    n, waiting, features = counters[s.WATCHED], counters[s.WAITING], 2.0 * state.stream.shape[1]
    threshold = min(settings.threshold, max(math.log(settings.early * counters[SEEN]), 1.0))
    scalars[s.THRESHOLD] = threshold
    windows = 0
    while windows < s.WINDOWS and waiting >= (1 << windows) - 1:
        windows += 1
    if windows == s.WINDOWS and counters[s.N_BATCHES] % 2 == 1:  # the longest, every other batch
        windows -= 1
    evaluate(state, settings, windows)
    found = most = -np.inf
    if n >= LEAST:
        for i in range(windows):
            found = evidence(scalars, i, features, settings.mixture_prior, settings.mixture_scale)
            most = max(most, found)
            if i > 0 and found > threshold:
                scalars[s.EVIDENCE], counters[s.WINDOW] = found, 1 << i
                counters[s.FRESH] = max((1 << i) - 1 - settings.straddling, 0)
                counters[s.ALARM], counters[s.DOUBT] = ((1 << i) - 1) * settings.batch, 0
                counters[s.STATUS] = s.ALARMED
                return
    counters[s.DOUBT] = 1 if most > 0.5 * threshold else 0
    if counters[s.DOUBT] == 0 or n > settings.young:
        for i in range(windows):
            calibrate(scalars, i, scalars[s.MIXTURE + i], settings.mixture_prior * features, settings.stream_span)
    if waiting < (s.RING if n >= s.RING else EARLY):
        counters[s.WAITING] += 1
        return
    if n >= s.RING and counters[s.BLOCKS] > 1 and windows == s.WINDOWS and found > 0.5 * threshold:
        scalars[s.EVIDENCE], counters[s.STATUS] = found, s.RETURNING
    learn_oldest(state, settings)


@kernel_in_place
def close_batch(state: Any, settings: Any, missing: bool | None) -> None:
    """Take a full batch into account, or stop for a decision first; ``counters[STATUS]`` then holds which."""
    counters, stream, noise = state.counters, state.stream, state.blocks[state.counters[s.POINTER], s.NOISE]
    slot: Any = (counters[s.LATEST] + 1) % s.RING
    gaps = stream[s.N_STREAM :]
    some_missing = missing is not None and gaps.shape[0] > 0
    if counters[s.ROWS] == settings.batch:
        if some_missing:
            counters[s.STATUS] = columns_wait(gaps, stream[s.ONE], noise, True, settings.batch)
            if counters[s.STATUS] != 0:
                return
        # the newest while an alarm is open, or the oldest
        repeated: Any = counters[s.LATEST] if counters[s.ALARM] > 0 else slot
        finish(stream, gaps, state.scratch[0], missing, repeated, float(settings.batch))
        counters[s.ROWS] += 1
        if some_missing or counters[s.AGE] == 0:
            counters[s.STATUS] = columns_wait(gaps, stream[s.ONE], noise, False, settings.batch)
            if counters[s.STATUS] != 0:
                return
    counters[s.ROWS], counters[s.N_BATCHES] = 0, (counters[s.N_BATCHES] + 1) % s.RING
    if counters[s.COORDINATES] != s.DIRECTIONS:
        learn_columns(state, settings)
    if counters[s.ALARM] > 0:
        counters[s.FRESH] += 1
        counters[s.STATUS] = s.GATHERING
    elif counters[s.AGE] == 0:
        counters[s.AGE], state.ages[counters[s.POINTER]] = 1, 1.0
    else:
        judge(state, settings)
    store(stream, gaps, missing, slot)
    counters[s.LATEST], counters[s.KEPT] = slot, min(counters[s.KEPT] + 1, s.RING)
