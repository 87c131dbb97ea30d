"""Once per batch, compiled: evidence of the windows that end with it, and what is learned of the oldest batch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ccmem.core.typing import FloatArray
from ccmem.kernels.jit import kernel_apart, kernel_in_place
from ccmem.models.adaptive import state as s
from ccmem.models.adaptive.batches import begin_new_columns, finish, report_gaps, row_of, store
from ccmem.models.adaptive.coordinates import COLUMNS, learn_columns, scatter_of
from ccmem.models.adaptive.evidence import MOST, at_rest, bayes_factors, combined, totals
from ccmem.models.adaptive.windows import MOST_CORRELATED, clear, drift_scale, extend, independent, trimming

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
def prepare(
    m: int, begin: int, unit: FloatArray, nu: FloatArray, phi: FloatArray, again: FloatArray, noise: FloatArray,
    level: FloatArray, one: FloatArray, product: FloatArray, square: FloatArray, residual: FloatArray, settings: Any,
    n: float,
) -> None:  # fmt: skip
    """Set error variance of one batch, degrees of freedom of its estimated scale, and lag-1 correlation of batches."""
    t, observations = n / (n + settings.prior_count), min(n, settings.stream_span)
    for j in range(m):
        k = np.uint64(begin + j)
        unit[j] = max(noise[k], 0.0) + settings.rounding * level[k] * level[k] + s.TINY
        phi[j] = again[j] = min(max(product[k], 0.0) * t / max(square[k], s.TINY), MOST_CORRELATED)
        nu[j] = settings.prior_count + observations * independent(residual[k], one[k], t)


@kernel_apart
def weigh(
    m: int, begin: int, z2: FloatArray, total: FloatArray, error: FloatArray, low: FloatArray, lower: FloatArray,
    high: FloatArray, higher: FloatArray, before: FloatArray, level: FloatArray, weight: FloatArray, power: FloatArray,
    unit: FloatArray, one: FloatArray, two: FloatArray, four: FloatArray, t: float, age: float, i: int,
    predicted: float, prior: float,
) -> None:  # fmt: skip
    """Convert the sums of a window of 2^i batches into squared z-scores, given the batch ``before`` the window.

    ``weight``, the share of that batch in the prediction, is then that for a window twice as long; ``power`` is phi^w.
    """
    w, inverse = float(1 << i), 1.0 / (1 << i)  # powers of 2, by which products are as exact as quotients
    longer = 1.0 + w / age
    for j in range(m):
        k = np.uint64(begin + j)
        mean = total[j] * inverse
        shift = nearest(mean, predicted * weight[j] * (before[k] - level[k]))
        weight[j] *= 0.5 * (1.0 + power[j])
        power[j] *= power[j]
        mean -= shift
        if i > 0:
            mean += inverse * trimming(mean * w, low[j] - shift, lower[j] - shift, high[j] - shift, higher[j] - shift)
        variance = drift_scale(i, one[k], two[k], four[k], t, prior) * unit[j] * longer
        z2[j] = min(mean * mean / max(variance, error[j] * inverse * inverse), MOST)


@kernel_in_place
def evaluate(state: Any, settings: Any, windows: int) -> None:
    """Store sums and log mixtures of Bayes factors of the first ``windows`` windows in ``scalars``.

    The latest 1, 2, 4 and 8 batches are compared with the reference. Columns are taken in parts, whose rows fit into
    the cache of the processor.
    """
    counters, scalars, stream, scratch = state.counters, state.scalars, state.stream, state.scratch
    block = state.blocks[counters[s.POINTER]]
    n, age, share = float(counters[s.WATCHED]), float(counters[s.AGE]), 1.0 / math.sqrt(2.0 * stream.shape[1])
    t = n / (n + settings.prior_count)
    for i in range(s.WINDOWS):
        scalars[s.TOTAL + i] = scalars[s.MIXTURE + i] = 0.0
    total, error, low, lower, high, higher = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4], scratch[5]
    z2, nu, weight, power, factors, unit = scratch[6], scratch[7], scratch[8], scratch[9], scratch[10], scratch[11]
    for begin in range(0, stream.shape[1], s.PART):
        m = min(stream.shape[1] - begin, s.PART)
        for f in range(2):
            level, drift, used = stream[s.REFERENCE + f], s.DRIFT + s.MEASURED * f, 0
            one, two, four, product = stream[drift], stream[drift + 1], stream[drift + 2], stream[s.PRODUCT + f]
            square, residual, noise = stream[s.POWER + f], stream[s.RESIDUAL + f], block[s.NOISE + f]
            prepare(m, begin, unit, nu, weight, power, noise, level, one, product, square, residual, settings, n)
            clear(m, total, error, low, lower, high, higher)
            for i in range(windows):
                while used < 1 << i:
                    row = row_of(used, counters[s.LATEST]) + f
                    values, errors, squared = stream[row], stream[row + 1], (1.0 - f) / settings.batch
                    extend(m, begin, total, error, low, lower, high, higher, values, errors, level, squared)
                    used += 1
                predicted = 0.0 if counters[s.KEPT] < used else 1.0
                before = stream[row_of(used, counters[s.LATEST]) + f]
                weigh(
                    m, begin, z2, total, error, low, lower, high, higher, before, level, weight, power, unit, one, two,
                    four, t, age, i, predicted, settings.expected[f][i],
                )  # fmt: skip
                bayes_factors(m, begin, factors, z2, nu, block[s.NOISE], settings.prior_scale)
                some, mixture = totals(m, factors, z2, nu, share, settings.prior_scale)
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
def learn_features(
    one: FloatArray, two: FloatArray, four: FloatArray, product: FloatArray, power: FloatArray, residual: FloatArray,
    oldest: FloatArray, first: FloatArray, second: FloatArray, third: FloatArray, fourth: FloatArray,
    errors: FloatArray, reference: FloatArray, level: FloatArray, noise: FloatArray, sway: FloatArray, settings: Any,
    n: float, age: float, own_age: float, squared: float, prior: tuple[float, float, float, float],
) -> None:  # fmt: skip
    """Learn the oldest batch: drift scales, correlations, reference, and level, noise and sway of the block.

    Drift scales are learned from the 1, 2 and 4 batches after it. The cap is looser while n is small: white noise is
    only a guess then. A change not noticed yet must not count as sway.
    """
    t, cap = n / (n + settings.prior_count), settings.cap * (1.0 + 1.0 / max(n, 1e-6))
    stream_span, own_span = min(n + 1.0, settings.stream_span), min(own_age + 1.0, settings.block_span)
    reference_span = min(age + 1.0, settings.reference_span)
    for j in range(one.shape[0]):
        unit = max(noise[j], 0.0) + settings.rounding * reference[j] * reference[j] + s.TINY
        gain = 1.0 / stream_span if noise[j] > 0.0 else 0.0  # a column that has been constant so far has no scale
        phi = min(max(product[j], 0.0) * t / max(power[j], s.TINY), MOST_CORRELATED)
        x, y, z = oldest[j] - reference[j], first[j] - reference[j], second[j] - reference[j]
        away = y - nearest(y, phi * x)
        most = cap * drift_scale(0, one[j], 0.0, 0.0, t, prior[0])
        one[j] += (min(away * away / (unit * (1.0 + 1.0 / age)), most) - one[j]) * gain
        away = 0.5 * (y + z)
        away -= nearest(away, forecast(phi, 1) * x)
        most = cap * drift_scale(1, one[j], two[j], 0.0, t, prior[1])
        two[j] += (min(away * away / (unit * (1.0 + 2.0 / age)), most) - two[j]) * gain
        away = 0.25 * (y + z + third[j] - reference[j] + fourth[j] - reference[j])
        away -= nearest(away, forecast(phi, 2) * x)
        most = cap * drift_scale(2, one[j], 0.0, four[j], t, prior[2])
        four[j] += (min(away * away / (unit * (1.0 + 4.0 / age)), most) - four[j]) * gain
        unit *= 1.0 + 1.0 / age
        limit = _OUTLIER * math.sqrt(max(one[j], 1.0) * unit)
        residual[j] += (clipped(y - phi * x, limit) * clipped(z - phi * y, limit) / unit - residual[j]) * gain
        x, y = clipped(x, limit), clipped(y, limit)
        product[j] += (x * y / unit - product[j]) * gain
        power[j] += (x * x / unit - power[j]) * gain
        away = oldest[j] - level[j]
        expected = max(one[j], 1.0) * max(noise[j], 0.0) + sway[j]
        sway[j] += (min(away * away * (1.0 - 1.0 / own_span), settings.cap * expected) - sway[j]) / own_span
        level[j] += away / own_span
        reference[j] += (oldest[j] - reference[j]) / reference_span
        error = errors[j] * errors[j] * squared if squared > 0.0 else errors[j]
        noise[j] += (error - noise[j]) / own_span if noise[j] >= 0.0 else 0.0


@kernel_in_place
def learn_oldest(state: Any, settings: Any) -> None:
    """Learn the oldest batch that waits."""
    counters, stream, block = state.counters, state.stream, state.blocks[state.counters[s.POINTER]]
    n, age, own_age = float(counters[s.WATCHED]), float(counters[s.AGE]), state.ages[counters[s.POINTER]]
    latest, waiting = counters[s.LATEST], counters[s.WAITING]
    row, first, second = row_of(waiting, latest), row_of(waiting - 1, latest), row_of(waiting - 2, latest)
    third, fourth = row_of(waiting - 3, latest), row_of(waiting - 4, latest)
    if state.gaps.shape[0] > 0:  # sums that wait for more readings are deviations from the reference
        for j in range(stream.shape[1]):
            step = (stream[row, j] - stream[s.REFERENCE, j]) / min(age + 1.0, settings.reference_span)
            state.gaps[s.SUMS, j] -= state.gaps[s.READINGS, j] * step
    for f in range(2):
        drift = s.DRIFT + s.MEASURED * f
        learn_features(
            stream[drift], stream[drift + 1], stream[drift + 2], stream[s.PRODUCT + f], stream[s.POWER + f],
            stream[s.RESIDUAL + f], stream[row + f], stream[first + f], stream[second + f], stream[third + f],
            stream[fourth + f], stream[row + 1 + f], stream[s.REFERENCE + f], block[s.LEVEL + f], block[s.NOISE + f],
            block[s.SWAY + f], settings, n, age, own_age, (1.0 - f) / settings.batch,
            settings.expected[f],
        )  # fmt: skip
        if own_age < settings.young:
            for j in range(stream.shape[1]):
                stream[s.HOME + f, j] = block[s.LEVEL + f, j]
    state.ages[counters[s.POINTER]] = min(own_age + 1.0, settings.block_span)
    counters[s.WATCHED] += 1
    counters[s.AGE] += 1


@kernel_in_place
def judge(state: Any, settings: Any) -> None:
    """Test the windows that end with the newest batch; raise an alarm, or learn the oldest batch."""
    counters, scalars = state.counters, state.scalars
    n, waiting, threshold = counters[s.WATCHED], counters[s.WAITING], settings.threshold
    features = 2.0 * state.stream.shape[1]
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
    """Take a full batch into account; ``counters[s.STATUS]`` holds the decision that is needed."""
    counters, stream = state.counters, state.stream
    slot: Any = (counters[s.LATEST] + 1) % s.RING
    gaps = missing is not None and state.gaps.shape[0] > 0
    counters[s.ROWS], counters[s.N_BATCHES] = 0, (counters[s.N_BATCHES] + 1) % s.RING
    if gaps:
        report_gaps(state, settings)
    # the newest while an alarm is open, or the oldest
    repeated: Any = counters[s.LATEST] if counters[s.ALARM] > 0 else slot
    finish(stream, state.gaps, state.scratch[0], missing, repeated, float(settings.batch))
    if gaps or counters[s.AGE] == 0:
        begin_new_columns(counters, stream, state.blocks[counters[s.POINTER]], state.gaps, float(settings.batch))
    learn_columns(state, settings)
    if counters[s.ALARM] > 0:
        counters[s.FRESH] += 1
        counters[s.STATUS] = s.GATHERING
    elif counters[s.AGE] == 0:
        counters[s.AGE], state.ages[counters[s.POINTER]] = 1, 1.0
    else:
        judge(state, settings)
    store(stream, state.gaps, missing, slot)
    counters[s.LATEST], counters[s.KEPT] = slot, min(counters[s.KEPT] + 1, s.RING)
    block, by_distance = state.blocks[counters[s.POINTER]], counters[s.COORDINATES] == COLUMNS
    state.scalars[s.SCATTER] = scatter_of(state.columns, block, settings.batch, by_distance)
