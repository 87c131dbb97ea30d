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
    VARIANCE,
    WAITING,
    WATCHED,
    WINDOW,
    WINDOWS,
)

_MOST_CORRELATED = 0.95
"""Cap on lag-1 correlations: the prediction of a random walk would divide by 0."""
_OUTLIER = 4.0
"""Deviations are clipped at this number of standard deviations while correlations are learned."""
_NONE = 1e15
"""Mixture statistic of a window that was not evaluated."""


@kernel_apart
def gather(
    away: FloatArray, own: FloatArray, values: FloatArray, errors: FloatArray, level: FloatArray, squared: float
) -> None:
    """Add the deviations of a batch from a level, and its error variances (squares of ``errors`` times ``squared``)."""
    for j in range(away.shape[0]):
        away[j] += values[j] - level[j]
        own[j] += errors[j] * errors[j] * squared if squared > 0.0 else errors[j]


@kernel_in_place
def correlation(product: float, power: float, t: float) -> float:
    """Return a lag-1 correlation, shrunk by ``t``, between 0 and its cap."""
    return min(max(product, 0.0) * t / max(power, TINY), _MOST_CORRELATED)


@kernel_in_place
def forecast(phi: float, i: int) -> float:
    """Return the weight of a deviation in the prediction of the mean of the 2^i batches after it."""
    power, w = phi, float(1 << i)
    for _ in range(i):
        power *= power
    return phi * (1.0 - power) / (w * (1.0 - phi))


@kernel_in_place
def nearest(mean: float, prediction: float) -> float:
    """Return the point between 0 and a prediction that is nearest to a mean."""
    near = prediction if abs(prediction) < abs(mean) else mean
    return near if mean * prediction > 0.0 else 0.0


@kernel_apart
def predict(
    shift: FloatArray, away: FloatArray, before: FloatArray, level: FloatArray, product: FloatArray, power: FloatArray,
    t: float, i: int,
) -> None:  # fmt: skip
    """Set ``shift`` to the part of the window's mean deviation that the batch before the window predicts."""
    w = float(1 << i)
    for j in range(shift.shape[0]):
        weight = forecast(correlation(product[j], power[j], t), i)
        shift[j] = nearest(away[j] / w, weight * (before[j] - level[j]))


@kernel_apart
def furthest(top: FloatArray, second: FloatArray, values: FloatArray, level: FloatArray, shift: FloatArray) -> None:
    """Keep the two largest deviations of a window."""
    for j in range(top.shape[0]):
        x = values[j] - level[j] - shift[j]
        beyond = abs(x) > abs(top[j])
        other = top[j] if beyond else x
        second[j] = other if abs(other) > abs(second[j]) else second[j]
        top[j] = x if beyond else top[j]


@kernel_apart
def extrapolate(longest: FloatArray, shorter: FloatArray, long: FloatArray) -> None:
    """Continue drift scales to the longest window: what one doubling did, between averaging out and not at all."""
    for j in range(longest.shape[0]):
        longest[j] = max(0.5, min(1.0, long[j] / max(shorter[j], TINY))) * long[j]


@kernel_apart
def weigh(
    z2: FloatArray, nu: FloatArray, shift: FloatArray, top: FloatArray, second: FloatArray, noise: FloatArray,
    level: FloatArray, drift: FloatArray, residual: FloatArray, drift_of_one: FloatArray, settings: Any, n: float,
    age: float, i: int,
) -> None:  # fmt: skip
    """Turn sums of deviations (``z2``) and of errors (``nu``) into squared z-scores and degrees of freedom."""
    w, t = float(1 << i), n / (n + settings.prior_count)
    for j in range(z2.shape[0]):
        replaced = second[j] if second[j] * top[j] > 0.0 else 0.0
        away = z2[j] / w - shift[j] + (replaced - top[j]) / w
        unit = (noise[j] + settings.rounding * level[j] * level[j] + TINY) * (1.0 + w / age)
        variance = max(max(t * drift[j] + (1.0 - t) / w, 1.0 / w) * unit, nu[j] / (w * w))
        left = correlation(residual[j], max(drift_of_one[j], 0.01), t)
        z2[j] = min(away * away / variance, MOST)
        nu[j] = 2.0 + n * (1.0 - left) / (1.0 + left)


@kernel_in_place
def window_evidence(state: Any, settings: Any, i: int, home: bool) -> float:
    """Return the evidence that the latest 2^i batches do not continue the block in use (or not at its ``home``).

    The mixture statistic is left in ``scalars[EVIDENCE]`` for its calibration.
    """
    counters, stream, block = state.counters, state.stream, state.blocks[state.counters[POINTER]]
    z2, nu, shift, top, second = (
        state.scratch[0],
        state.scratch[1],
        state.scratch[2],
        state.scratch[3],
        state.scratch[4],
    )
    latest, n, age = counters[LATEST], float(counters[WATCHED]), float(counters[AGE])
    features, t, w = 2.0 * stream.shape[1], n / (n + settings.prior_count), 1 << i
    total = mixture = 0.0
    for f in range(2):
        level = stream[HOME + f] if home else stream[REFERENCE + f]
        for row in range(5):
            for j in range(z2.shape[0]):
                state.scratch[row, j] = 0.0
        for a in range(w):
            row = row_of(a, latest) + f
            gather(z2, nu, stream[row], stream[row + 1], level, 1.0 / settings.batch if f == 0 else 0.0)
        if not home and counters[KEPT] >= w:
            before = stream[row_of(w, latest) + f]
            predict(shift, z2, before, level, stream[PRODUCT + f], stream[POWER + f], t, i)
        if w > 1:  # the batch that is furthest away is replaced by the second furthest, or by none
            for a in range(w):
                furthest(top, second, stream[row_of(a, latest) + f], level, shift)
        one, drift = stream[DRIFT + MEASURED * f], state.scratch[5]
        if i < MEASURED:
            drift = stream[DRIFT + MEASURED * f + i]
        else:
            extrapolate(drift, stream[DRIFT + MEASURED * f + 1], stream[DRIFT + MEASURED * f + 2])
        weigh(
            z2, nu, shift, top, second, block[NOISE + f], level, drift, stream[RESIDUAL + f], one, settings, n, age, i,
        )  # fmt: skip
        bayes_factors(shift, z2, nu, settings.prior_scale)
        some, part = totals(shift, z2, nu, block[NOISE], features, settings.prior_scale)
        total += some
        mixture += part
    state.scalars[EVIDENCE] = mixture
    mean, deviation = at_rest(state.scalars, i, settings.mixture_prior * features)
    return combined(max(total, TINY), mixture, features, mean, deviation, n, settings.mixture_scale)


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
    drift: FloatArray, away: FloatArray, oldest: FloatArray, level: FloatArray, noise: FloatArray, product: FloatArray,
    power: FloatArray, settings: Any, n: float, age: float, span: float, i: int,
) -> None:  # fmt: skip
    """Learn the drift scale of a window from the sum of its deviations."""
    w, t = float(1 << i), n / (n + settings.prior_count)
    for j in range(drift.shape[0]):
        mean = away[j] / w
        weight = forecast(correlation(product[j], power[j], t), i)
        mean -= nearest(mean, weight * (oldest[j] - level[j]))
        unit = (max(noise[j], 0.0) + settings.rounding * level[j] * level[j] + TINY) * (1.0 + w / age)
        expected = max(t * drift[j] + (1.0 - t) / w, 1.0 / w)
        drift[j] += (min(mean * mean / unit, settings.cap * expected) - drift[j]) / span


@kernel_apart
def learn_correlation(
    product: FloatArray, power: FloatArray, residual: FloatArray, drift: FloatArray, oldest: FloatArray,
    second: FloatArray, third: FloatArray, level: FloatArray, noise: FloatArray, settings: Any, n: float, age: float,
    span: float,
) -> None:  # fmt: skip
    """Learn the lag-1 correlation of deviations, and that of the residuals of their predictions."""
    t = n / (n + settings.prior_count)
    for j in range(product.shape[0]):
        unit = (max(noise[j], 0.0) + settings.rounding * level[j] * level[j] + TINY) * (1.0 + 1.0 / age)
        limit = _OUTLIER * math.sqrt(max(drift[j], 1.0) * unit)
        phi = correlation(product[j], power[j], t)
        x, y, z = oldest[j] - level[j], second[j] - level[j], third[j] - level[j]
        a, b = clipped(x, limit), clipped(y, limit)
        residuals = clipped(y - phi * x, limit) * clipped(z - phi * y, limit)
        residual[j] += (residuals / unit - residual[j]) / span
        product[j] += (a * b / unit - product[j]) / span
        power[j] += (a * a / unit - power[j]) / span


@kernel_apart
def learn_level(
    level: FloatArray, sway: FloatArray, reference: FloatArray, value: FloatArray, span: float, reference_span: float
) -> None:
    """Move level, sway and reference towards the value of a batch."""
    for j in range(level.shape[0]):
        away = value[j] - level[j]
        sway[j] += (away * away * (1.0 - 1.0 / span) - sway[j]) / span
        level[j] += away / span
        reference[j] += (value[j] - reference[j]) / reference_span


@kernel_in_place
def learn_oldest(state: Any, settings: Any) -> None:
    """Learn the oldest batch that waits: drift of the stream, reference, and levels, noise and sway of the block.

    Drift scales and correlations are learned from the windows that follow the oldest batch.
    """
    counters, stream, sums, unused = state.counters, state.stream, state.scratch[0], state.scratch[1]
    pointer, latest, waiting = counters[POINTER], counters[LATEST], counters[WAITING]
    n, age, own_age = float(counters[WATCHED]), float(counters[AGE]), state.ages[counters[POINTER]]
    block, row = state.blocks[pointer], row_of(waiting, latest)
    span, stream_span = min(own_age + 1.0, settings.block_span), min(n + 1.0, settings.stream_span)
    for f in range(2):
        level, noise, oldest = stream[REFERENCE + f], block[NOISE + f], stream[row + f]
        for j in range(sums.shape[0]):
            sums[j] = 0.0
        used = 0
        for i in range(MEASURED):
            w, drift = 1 << i, stream[DRIFT + MEASURED * f + i]
            if w > waiting:  # not measured yet: as if the drift of the shorter window never averaged out
                for j in range(sums.shape[0]):
                    drift[j] = stream[DRIFT + MEASURED * f + i - 1, j]
                continue
            while used < w:
                newer = stream[row_of(waiting - 1 - used, latest) + f]
                gather(sums, unused, newer, newer, level, 0.0)
                used += 1
            learn_drift(
                drift, sums, oldest, level, noise, stream[PRODUCT + f], stream[POWER + f], settings, n, age,
                stream_span, i,
            )  # fmt: skip
        learn_correlation(
            stream[PRODUCT + f], stream[POWER + f], stream[RESIDUAL + f], stream[DRIFT + MEASURED * f], oldest,
            stream[row_of(waiting - 1, latest) + f], stream[row_of(waiting - 2, latest) + f], level, noise, settings, n,
            age, stream_span,
        )  # fmt: skip
    spans = min(age + 1.0, settings.reference_span)
    if state.gaps.shape[0] > 0:  # sums that wait for more readings are deviations from the reference
        for j in range(sums.shape[0]):
            step = (stream[row, j] - stream[REFERENCE, j]) / spans
            state.gaps[SUMS, j] -= state.gaps[READINGS, j] * step
    for f in range(2):
        learn_level(block[LEVEL + f], block[SWAY + f], stream[REFERENCE + f], stream[row + f], span, spans)
    for j in range(sums.shape[0]):
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
    prior = 2.0 * settings.mixture_prior * state.stream.shape[1]
    most = -np.inf
    for i in range(WINDOWS):
        w = 1 << i
        scalars[MIXTURE + i] = _NONE
        if waiting >= w - 1 and (w < RING or counters[N_BATCHES] % 2 == 0):
            evidence = window_evidence(state, settings, i, False)
            scalars[MIXTURE + i] = scalars[EVIDENCE]
            if n >= RING:
                most = max(most, evidence)
                if w > 1 and evidence > threshold:
                    scalars[EVIDENCE], counters[WINDOW], counters[FRESH] = evidence, w, w - 1
                    counters[ALARM], counters[DOUBT], counters[STATUS] = (w - 1) * settings.batch, 0, ALARMED
                    return
    counters[DOUBT] = 1 if most > 0.5 * threshold else 0
    if counters[DOUBT] == 0 or n > settings.young:
        for i in range(WINDOWS):
            if scalars[MIXTURE + i] < _NONE:
                calibrate(scalars, i, scalars[MIXTURE + i], prior, settings.stream_span)
    if waiting < (RING if n >= RING else RING // 2):
        counters[WAITING] += 1
        return
    if n >= RING and counters[BLOCKS] > 1 and counters[N_BATCHES] == 0:
        evidence = window_evidence(state, settings, WINDOWS - 1, True)
        if evidence > threshold:
            scalars[EVIDENCE], counters[STATUS] = evidence, AWAY
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
    finish(stream, state.gaps, missing, repeated, float(settings.batch))
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
