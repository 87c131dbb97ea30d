"""Once per batch, compiled: evidence of the windows that end with it, and what is learned of the oldest batch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ccmem.core.typing import FloatArray
from ccmem.kernels.jit import kernel_apart, kernel_in_place
from ccmem.models.adaptive.batches import finish, hear, report_gaps, row_of, store
from ccmem.models.adaptive.coordinates import learn_columns, measure_scatter
from ccmem.models.adaptive.evidence import MOST, at_rest, bayes_factors, combined, totals
from ccmem.models.adaptive.nearest import another_is_nearer
from ccmem.models.adaptive.state import (
    AGE,
    ALARM,
    ALARMED,
    AWAY,
    BLOCKS,
    COUNT,
    DOUBT,
    DRIFT,
    EVIDENCE,
    FRESH,
    GATHERING,
    HOME,
    KEPT,
    LATEST,
    LEVEL,
    MEAN,
    MEASURED,
    MIXTURE,
    N_BATCHES,
    NOISE,
    PART,
    POINTER,
    POWER,
    PRODUCT,
    READINGS,
    REFERENCE,
    RESIDUAL,
    RING,
    ROWS,
    STATUS,
    SUMS,
    SWAY,
    TINY,
    TOTAL,
    VARIANCE,
    WAITING,
    WATCHED,
    WINDOW,
    WINDOWS,
)
from ccmem.models.adaptive.windows import drift_scale, extend, trimming

EARLY = 4
"""Batches after which a batch is learned while the stream is young."""
LEAST = 3
"""Observations of the drift scales that a test needs; degrees of freedom keep early tests cautious."""
_MOST_CORRELATED = 0.95
"""Cap on lag-1 correlations: a random walk would leave no degrees of freedom."""
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
    unit: FloatArray, nu: FloatArray, phi: FloatArray, again: FloatArray, noise: FloatArray, level: FloatArray,
    one: FloatArray, product: FloatArray, square: FloatArray, residual: FloatArray, settings: Any, n: float,
) -> None:  # fmt: skip
    """Set error variance of one batch, degrees of freedom of its estimated scale, and lag-1 correlation of batches.

    n squares whose lag-1 correlation is c are worth n (1 - c) / (1 + c) independent ones.
    """
    t, observations = n / (n + settings.prior_count), min(n, settings.stream_span)
    for j in range(unit.shape[0]):
        unit[j] = max(noise[j], 0.0) + settings.rounding * level[j] * level[j] + TINY
        phi[j] = again[j] = min(max(product[j], 0.0) * t / max(square[j], TINY), _MOST_CORRELATED)
        left = min(max(residual[j], 0.0) * t / max(one[j], 0.01), _MOST_CORRELATED)
        nu[j] = settings.prior_count + observations * (1.0 - left) / (1.0 + left)


@kernel_apart
def weigh(
    z2: FloatArray, total: FloatArray, error: FloatArray, low: FloatArray, lower: FloatArray, high: FloatArray,
    higher: FloatArray, before: FloatArray, level: FloatArray, weight: FloatArray, power: FloatArray, unit: FloatArray,
    one: FloatArray, two: FloatArray, four: FloatArray, t: float, age: float, i: int, predicted: float,
) -> None:  # fmt: skip
    """Turn the sums of a window of 2^i batches into squared z-scores, given the batch ``before`` the window.

    ``weight``, the share of that batch in the prediction, is then that for a window twice as long; ``power`` is phi^w.
    """
    w, inverse = float(1 << i), 1.0 / (1 << i)  # powers of 2, by which products are as exact as quotients
    longer = 1.0 + w / age
    for j in range(z2.shape[0]):
        mean = total[j] * inverse
        shift = nearest(mean, predicted * weight[j] * (before[j] - level[j]))
        weight[j] *= 0.5 * (1.0 + power[j])
        power[j] *= power[j]
        mean -= shift
        if i > 0:
            mean += inverse * trimming(low[j] - shift, lower[j] - shift, high[j] - shift, higher[j] - shift)
        variance = drift_scale(i, one[j], two[j], four[j], t) * unit[j] * longer
        z2[j] = min(mean * mean / max(variance, error[j] * inverse * inverse), MOST)


@kernel_in_place
def evaluate(state: Any, settings: Any, windows: int, home: bool) -> None:
    """Leave sums and log mixtures of Bayes factors of the first ``windows`` windows in ``scalars``.

    The latest 1, 2, 4 and 8 batches are held against the reference, or only the longest against the level the block
    began with (``home``). Columns are taken in parts, whose rows fit into the cache of the processor.
    """
    counters, scalars, stream, scratch = state.counters, state.scalars, state.stream, state.scratch
    block = state.blocks[counters[POINTER]]
    n, age, share = float(counters[WATCHED]), float(counters[AGE]), 1.0 / math.sqrt(2.0 * stream.shape[1])
    t = n / (n + settings.prior_count)
    for i in range(WINDOWS):
        scalars[TOTAL + i] = scalars[MIXTURE + i] = 0.0
    for begin in range(0, stream.shape[1], PART):
        end = min(begin + PART, stream.shape[1])
        m = end - begin  # rows first: a part of all rows would not be contiguous, and loops not vectorised
        total, error, low, lower = scratch[0, :m], scratch[1, :m], scratch[2, :m], scratch[3, :m]
        high, higher, z2, nu = scratch[4, :m], scratch[5, :m], scratch[6, :m], scratch[7, :m]
        weight, power, factors, unit = scratch[8, :m], scratch[9, :m], scratch[10, :m], scratch[11, :m]
        for f in range(2):
            level, drift = stream[HOME + f if home else REFERENCE + f, begin:end], DRIFT + MEASURED * f
            one, two, four = stream[drift, begin:end], stream[drift + 1, begin:end], stream[drift + 2, begin:end]
            noise, used = block[NOISE + f, begin:end], 0
            prepare(
                unit, nu, weight, power, noise, level, one, stream[PRODUCT + f, begin:end],
                stream[POWER + f, begin:end], stream[RESIDUAL + f, begin:end], settings, n,
            )  # fmt: skip
            for j in range(m):
                total[j] = error[j] = 0.0
                low[j] = lower[j] = np.inf
                high[j] = higher[j] = -np.inf
            for i in range(windows):
                while used < 1 << i:
                    row = row_of(used, counters[LATEST]) + f
                    values, errors = stream[row, begin:end], stream[row + 1, begin:end]
                    squared = (1.0 - f) / settings.batch
                    extend(total, error, low, lower, high, higher, values, errors, level, squared)
                    used += 1
                if home and i < windows - 1:
                    continue
                predicted = 0.0 if home or counters[KEPT] < used else 1.0
                before = stream[row_of(used, counters[LATEST]) + f, begin:end]
                weigh(
                    z2, total, error, low, lower, high, higher, before, level, weight, power, unit, one, two, four, t,
                    age, i, predicted,
                )  # fmt: skip
                bayes_factors(factors, z2, nu, block[NOISE, begin:end], settings.prior_scale)
                some, mixture = totals(factors, z2, nu, share, settings.prior_scale)
                scalars[TOTAL + i] += some
                scalars[MIXTURE + i] += mixture


@kernel_in_place
def evidence(state: Any, settings: Any, i: int) -> float:
    """Return the evidence of a window that was evaluated."""
    scalars, features = state.scalars, 2.0 * state.stream.shape[1]
    mean, deviation = at_rest(scalars, i, settings.mixture_prior * features)
    total, mixture = max(scalars[TOTAL + i], TINY), scalars[MIXTURE + i]
    return combined(total, mixture, features, mean, deviation, scalars[COUNT], settings.mixture_scale)


@kernel_in_place
def calibrate(scalars: FloatArray, i: int, mixture: float, prior: float, span: float) -> None:
    """Learn mean and variance of the mixture at rest."""
    n = min(scalars[COUNT + i] + 1.0, span)
    gain = mixture - scalars[MEAN + i]
    if n > 2.0:
        gain = min(gain, 3.0 * at_rest(scalars, i, prior)[1])
    scalars[COUNT + i] = n
    scalars[MEAN + i] += gain / n
    scalars[VARIANCE + i] += (gain * gain * (1.0 - 1.0 / n) - scalars[VARIANCE + i]) / n


@kernel_in_place
def clipped(x: float, limit: float) -> float:
    """Return ``x``, at most ``limit`` from 0."""
    return min(max(x, -limit), limit)


@kernel_apart
def learn_drift(
    one: FloatArray, two: FloatArray, four: FloatArray, product: FloatArray, power: FloatArray, residual: FloatArray,
    oldest: FloatArray, first: FloatArray, second: FloatArray, third: FloatArray, fourth: FloatArray, level: FloatArray,
    noise: FloatArray, settings: Any, n: float, age: float, span: float,
) -> None:  # fmt: skip
    """Learn drift scales from the 1, 2 and 4 batches after the oldest, and correlations of batches and of residuals.

    The cap is looser while n is small: white noise is only a guess then.
    """
    t, cap = n / (n + settings.prior_count), settings.cap * (1.0 + 1.0 / max(n, 1e-6))
    for j in range(one.shape[0]):
        unit = max(noise[j], 0.0) + settings.rounding * level[j] * level[j] + TINY
        gain = 1.0 / span if noise[j] > 0.0 else 0.0  # a column that has been constant so far has no scale
        phi = min(max(product[j], 0.0) * t / max(power[j], TINY), _MOST_CORRELATED)
        x, y, z = oldest[j] - level[j], first[j] - level[j], second[j] - level[j]
        away = y - nearest(y, phi * x)
        most = cap * drift_scale(0, one[j], 0.0, 0.0, t)
        one[j] += (min(away * away / (unit * (1.0 + 1.0 / age)), most) - one[j]) * gain
        away = 0.5 * (y + z)
        away -= nearest(away, forecast(phi, 1) * x)
        most = cap * drift_scale(1, one[j], two[j], 0.0, t)
        two[j] += (min(away * away / (unit * (1.0 + 2.0 / age)), most) - two[j]) * gain
        away = 0.25 * (y + z + third[j] - level[j] + fourth[j] - level[j])
        away -= nearest(away, forecast(phi, 2) * x)
        most = cap * drift_scale(2, one[j], 0.0, four[j], t)
        four[j] += (min(away * away / (unit * (1.0 + 4.0 / age)), most) - four[j]) * gain
        unit *= 1.0 + 1.0 / age
        limit = _OUTLIER * math.sqrt(max(one[j], 1.0) * unit)
        residual[j] += (clipped(y - phi * x, limit) * clipped(z - phi * y, limit) / unit - residual[j]) * gain
        x, y = clipped(x, limit), clipped(y, limit)
        product[j] += (x * y / unit - product[j]) * gain
        power[j] += (x * x / unit - power[j]) * gain


@kernel_apart
def learn_level(
    level: FloatArray, sway: FloatArray, reference: FloatArray, value: FloatArray, noise: FloatArray, one: FloatArray,
    span: float, reference_span: float, cap: float,
) -> None:  # fmt: skip
    """Move level, sway and reference towards the value of a batch; a change not noticed yet must not count as sway."""
    for j in range(level.shape[0]):
        away = value[j] - level[j]
        expected = max(one[j], 1.0) * max(noise[j], 0.0) + sway[j]
        sway[j] += (min(away * away * (1.0 - 1.0 / span), cap * expected) - sway[j]) / span
        level[j] += away / span
        reference[j] += (value[j] - reference[j]) / reference_span


@kernel_in_place
def learn_oldest(state: Any, settings: Any) -> None:
    """Learn the oldest batch that waits: drift of the stream, reference, and levels, noise and sway of the block."""
    counters, stream = state.counters, state.stream
    pointer, latest, waiting = counters[POINTER], counters[LATEST], counters[WAITING]
    n, age, own_age = float(counters[WATCHED]), float(counters[AGE]), state.ages[counters[POINTER]]
    block, row = state.blocks[pointer], row_of(waiting, latest)
    span, stream_span = min(own_age + 1.0, settings.block_span), min(n + 1.0, settings.stream_span)
    first, second = row_of(waiting - 1, latest), row_of(waiting - 2, latest)
    third, fourth = row_of(waiting - 3, latest), row_of(waiting - 4, latest)
    spans = min(age + 1.0, settings.reference_span)
    for f in range(2):
        drift = DRIFT + MEASURED * f
        learn_drift(
            stream[drift], stream[drift + 1], stream[drift + 2], stream[PRODUCT + f], stream[POWER + f],
            stream[RESIDUAL + f], stream[row + f], stream[first + f], stream[second + f], stream[third + f],
            stream[fourth + f], stream[REFERENCE + f], block[NOISE + f], settings, n, age, stream_span,
        )  # fmt: skip
    if state.gaps.shape[0] > 0:  # sums that wait for more readings are deviations from the reference
        for j in range(stream.shape[1]):
            step = (stream[row, j] - stream[REFERENCE, j]) / spans
            state.gaps[SUMS, j] -= state.gaps[READINGS, j] * step
    for f in range(2):
        learn_level(
            block[LEVEL + f], block[SWAY + f], stream[REFERENCE + f], stream[row + f], block[NOISE + f],
            stream[DRIFT + MEASURED * f], span, spans, settings.cap,
        )  # fmt: skip
    for j in range(stream.shape[1]):
        if block[NOISE, j] >= 0.0:
            block[NOISE, j] += (stream[row + 1, j] * stream[row + 1, j] / settings.batch - block[NOISE, j]) / span
            block[NOISE + 1, j] += (stream[row + 2, j] - block[NOISE + 1, j]) / span
        if own_age < settings.young:
            stream[HOME, j], stream[HOME + 1, j] = block[LEVEL, j], block[LEVEL + 1, j]
    state.ages[pointer] = span
    counters[WATCHED] += 1
    counters[AGE] += 1


@kernel_in_place
def judge(state: Any, settings: Any) -> None:
    """Test the windows that end with the newest batch; raise an alarm, or learn the oldest batch."""
    counters, scalars = state.counters, state.scalars
    n, waiting, threshold = counters[WATCHED], counters[WAITING], settings.threshold
    windows = 0
    while windows < WINDOWS and waiting >= (1 << windows) - 1:
        windows += 1
    if windows == WINDOWS and counters[N_BATCHES] % 2 == 1:  # the longest, every other batch
        windows -= 1
    evaluate(state, settings, windows, False)
    most = -np.inf
    if n >= LEAST:
        for i in range(windows):
            found = evidence(state, settings, i)
            most = max(most, found)
            if i > 0 and found > threshold:
                scalars[EVIDENCE], counters[WINDOW], counters[FRESH] = (
                    found,
                    1 << i,
                    max((1 << i) - 1 - settings.straddling, 0),
                )
                counters[ALARM], counters[DOUBT] = ((1 << i) - 1) * settings.batch, 0
                counters[STATUS] = ALARMED
                return
    counters[DOUBT] = 1 if most > 0.5 * threshold else 0
    if counters[DOUBT] == 0 or n > settings.young:
        prior = 2.0 * settings.mixture_prior * state.stream.shape[1]
        for i in range(windows):
            calibrate(scalars, i, scalars[MIXTURE + i], prior, settings.stream_span)
    if waiting < (RING if n >= RING else EARLY):
        counters[WAITING] += 1
        return
    if n >= RING and counters[BLOCKS] > 1 and counters[N_BATCHES] == 0:
        evaluate(state, settings, WINDOWS, True)
        found = evidence(state, settings, WINDOWS - 1)
        if found > threshold and another_is_nearer(state):
            scalars[EVIDENCE], counters[STATUS] = found, AWAY
    learn_oldest(state, settings)


@kernel_in_place
def close_batch(state: Any, settings: Any, missing: bool | None) -> None:
    """Take a full batch into account; ``counters[STATUS]`` says what is asked for."""
    counters, stream = state.counters, state.stream
    slot: Any = (counters[LATEST] + 1) % RING
    gaps = missing is not None and state.gaps.shape[0] > 0
    counters[ROWS], counters[N_BATCHES] = 0, (counters[N_BATCHES] + 1) % RING
    if gaps:
        report_gaps(state, settings)
    repeated: Any = (
        counters[LATEST] if counters[ALARM] > 0 else slot
    )  # the newest while an alarm is open, or the oldest
    finish(state, missing, repeated, float(settings.batch))
    if gaps or counters[AGE] == 0:
        hear(state, float(settings.batch))
    learn_columns(state, settings)
    if counters[ALARM] > 0:
        counters[FRESH] += 1
        counters[STATUS] = GATHERING
    elif counters[AGE] == 0:
        counters[AGE], state.ages[counters[POINTER]] = 1, 1.0
    else:
        judge(state, settings)
    store(stream, state.gaps, missing, slot)
    counters[LATEST], counters[KEPT] = slot, min(counters[KEPT] + 1, RING)
    measure_scatter(state, settings)
