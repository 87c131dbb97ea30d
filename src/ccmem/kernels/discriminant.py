"""Discriminant analysis of a few columns, row by row: weighted sums, Cholesky factors, scores, evidence.

A symmetric matrix of d columns is packed by columns: element (i, j), i >= j, is at ``j d - j (j + 1) / 2 + i``. The
matrices of all classes of all forecasters are factored together, element by element: the last two axes of an array are
forecaster and class, and a step runs along them in contiguous memory.
"""

from __future__ import annotations

import numpy as np

from ccmem.core.codes import UNLABELED
from ccmem.core.typing import FloatArray, IntArray
from ccmem.kernels.jit import kernel, kernel_in_place

SHORT_FADE, LONG_FADE = 0.9, 0.99
"""Decay factors per row of the two averages of a forecaster's log loss: for its weight, and for the archive."""
PRIOR_FADE = 0.998
"""Decay factor per row of the counts behind class priors, a memory of about 500 rows."""
LEAST_SHARE = 0.02
"""Fraction of a uniform forecast mixed into every forecast before its log loss, so that one row cannot veto."""
CERTAINTY_FADE = 0.99
"""Decay factor per row of the curvature used to update a temperature."""
TYPICAL_FADE = 0.995
"""Decay factor per row of the mean and variance of log distances to the row's own class."""
USE_FADE = 0.9999
"""Decay factor per row of the sum of a forecaster's weights; the archived one with the lowest sum is replaced."""
ARCHIVE_EVERY = 256
"""Number of rows between two decisions about the archive."""
ARCHIVE_MARGIN = 10.0
"""Minimum lead in log loss, summed over the long average, over all archived forecasters for a copy to be archived."""
ARCHIVED = 2
"""Index of the live forecaster that is archived: its window is long enough to be precise, and spans one concept."""
EQUAL, STREAM, PREVIOUS = 0, 1, 2
"""Class priors: uniform; recent frequencies; recent frequencies after the previous label."""
SEEN, TAUGHT, LAST, ARCHIVE = 0, 1, 2, 3
"""Indices into ``counters``: rows seen, rows with a label, code of the last label, archived forecasters."""
TILE = 16
"""Number of matrices factored together, small enough for the first-level cache."""
EARLY = 64
"""Number of labelled rows during which all covariances are factored after each row."""
ROUNDING = 1e-10
"""Minimum variance of a column, relative to its squared level; smaller values are rounding errors."""
FARTHEST = 1e15
"""Cap on squared distances (of a column that was constant until now, for example), so that their squares are finite."""
TINY = 1e-200
"""Minimum absolute variance, reached by a column that is always 0."""


@kernel_in_place
def _factor(F: FloatArray, d: int, n: int, product: FloatArray, inverse: FloatArray, log_dets: FloatArray) -> None:
    """Replace packed matrices, one in each of the first ``n`` columns of ``F``, by their Cholesky factors."""
    for m in range(n):
        product[m] = 1.0
        log_dets[m] = 0.0
    start = 0
    for k in range(d):
        diagonal = F[start]
        for m in range(n):
            root = np.sqrt(max(diagonal[m], TINY))
            diagonal[m] = root
            inverse[m] = 1.0 / root
            product[m] *= root
        for m in range(n):
            if product[m] > 1e100 or product[m] < 1e-100:
                log_dets[m] += 2.0 * np.log(product[m])
                product[m] = 1.0
        for i in range(1, d - k):
            row = F[start + i]
            for m in range(n):
                row[m] *= inverse[m]
        target = start + d - k
        for j in range(1, d - k):
            factor = F[start + j]
            for i in range(j, d - k):
                row, other = F[target], F[start + i]
                for m in range(n):
                    row[m] -= factor[m] * other[m]
                target += 1
        start += d - k
    for m in range(n):
        log_dets[m] += 2.0 * np.log(product[m])


@kernel_in_place
def _distances(F: FloatArray, means: FloatArray, x: FloatArray, rest: FloatArray, out: FloatArray) -> None:
    """Compute the squared distance |L^-1 (x - mean)|^2 for every column of ``out``; ``rest`` is scratch space."""
    d, n = means.shape[0], out.shape[0]
    for i in range(d):
        mean, left = means[i], rest[i]
        for m in range(n):
            left[m] = x[i] - mean[m]
    out[:] = 0.0
    start = 0
    for k in range(d):
        z, diagonal = rest[k], F[start]
        for m in range(n):
            z[m] /= diagonal[m]
            out[m] += z[m] * z[m]
        for i in range(1, d - k):
            left, factor = rest[k + i], F[start + i]
            for m in range(n):
                left[m] -= z[m] * factor[m]
        start += d - k


@kernel_in_place
def _refresh(
    e: int,
    first: int,
    last: int,
    settings: tuple[float, float, float],
    weights: FloatArray,
    means: FloatArray,
    scatters: FloatArray,
    pooled: FloatArray,
    factors: FloatArray,
    log_dets: FloatArray,
    tile: FloatArray,
    columns: FloatArray,
) -> None:
    """Factor the covariances of classes ``first`` to ``last`` of a live forecaster, a few at a time."""
    own_share, ridge, half = settings
    d = means.shape[0]
    shared, own, product, inverse, found = columns[0], columns[1], columns[2], columns[3], columns[4]
    total = 0.0
    for c in range(weights.shape[1]):
        total += weights[e, c]
    for begin in range(first, last, TILE):
        n = min(TILE, last - begin)
        for m in range(n):
            w = weights[e, begin + m]
            known = own_share * w / (w + half)
            shared[m] = 1.0 - known
            own[m] = known / w if w > 0.0 else 0.0
        for k in range(tile.shape[0]):
            mean, row, scatter = pooled[k, e] / total, tile[k], scatters[k, e]
            for m in range(n):
                row[m] = shared[m] * mean + own[m] * scatter[begin + m]
        k = 0
        for i in range(d):
            level = 0.0
            for c in range(weights.shape[1]):
                level += weights[e, c] * means[i, e, c] * means[i, e, c]
            for m in range(n):
                tile[k, m] += ridge * pooled[k, e] / total + ROUNDING * level / total + TINY
            k += d - i
        _factor(tile, d, n, product, inverse, found)
        for k in range(tile.shape[0]):
            for m in range(n):
                factors[k, e, begin + m] = tile[k, m]
        for m in range(n):
            log_dets[e, begin + m] = found[m] if weights[e, begin + m] > 0.0 else np.inf


@kernel_in_place
def _take_in(
    x: FloatArray,
    own: int,
    e: int,
    rate: float,
    whole: bool,
    weights: FloatArray,
    means: FloatArray,
    scatters: FloatArray,
    pooled: FloatArray,
    step: FloatArray,
) -> None:
    """Add a row to the sums of its class; ``whole`` recomputes the total scatter, which removes rounding errors."""
    d = means.shape[0]
    weights[e, own] = (1.0 - rate) * weights[e, own] + 1.0
    share = 1.0 / weights[e, own]
    for i in range(d):
        step[i] = x[i] - means[i, e, own]
        means[i, e, own] += share * step[i]
    k = 0
    for j in range(d):
        factor = (1.0 - share) * step[j]
        for i in range(j, d):
            before = scatters[k, e, own]
            scatters[k, e, own] = (1.0 - rate) * before + factor * step[i]
            pooled[k, e] += scatters[k, e, own] - before
            k += 1
    if whole:
        for k in range(pooled.shape[0]):
            total = 0.0
            for c in range(weights.shape[1]):
                total += scatters[k, e, c]
            pooled[k, e] = total


@kernel_in_place
def _priors(tables: FloatArray, counts: IntArray, last: int, mode: int, out: FloatArray) -> None:
    """Compute the logarithms of the class priors."""
    for c in range(out.shape[0]):
        if counts[c] == 0:
            out[c] = -np.inf
        elif mode == EQUAL:
            out[c] = 0.0
        else:
            out[c] = np.log(tables[last + 1 if mode == PREVIOUS else 0, c] + 0.5)


@kernel_in_place
def _softened(scores: FloatArray, temperature: float, out: FloatArray) -> None:
    """Compute probabilities from logarithms; all 0 if no class is possible."""
    top = -np.inf
    for c in range(scores.shape[0]):
        top = max(top, scores[c])
    total = 0.0
    for c in range(scores.shape[0]):
        out[c] = np.exp((scores[c] - top) / temperature) if scores[c] > -np.inf else 0.0
        total += out[c]
    if total > 0.0:
        for c in range(scores.shape[0]):
            out[c] /= total


@kernel_in_place
def _largest(values: FloatArray) -> int:
    best = 0
    for e in range(values.shape[0]):
        if values[e] > values[best]:
            best = e
    return best


@kernel_in_place
def _log_densities(
    distances: FloatArray, log_dets: FloatArray, temperature: float, priors: FloatArray, out: FloatArray
) -> None:
    for c in range(out.shape[0]):
        out[c] = -np.inf
        if log_dets[c] < np.inf:
            out[c] = -0.5 * (min(distances[c], FARTHEST) + log_dets[c]) + temperature * priors[c]


@kernel
def answer(
    X: FloatArray,
    mode: int,
    counts: IntArray,
    means: FloatArray,
    factors: FloatArray,
    log_dets: FloatArray,
    evidence: FloatArray,
    calibration: FloatArray,
    tables: FloatArray,
    counters: IntArray,
    n_live: int,
    out: FloatArray,
    nearest: FloatArray,
) -> None:
    """Compute class probabilities for every row, and its smallest distance in the forecaster of highest weight."""
    d, most, n_classes = means.shape
    n = n_live + counters[ARCHIVE]
    F, M = factors.reshape(factors.shape[0], most * n_classes), means.reshape(d, most * n_classes)
    rest, distances, scores = np.empty((d, n * n_classes)), np.empty(n * n_classes), np.empty(n_classes)
    p, priors, shares = np.empty(n_classes), np.empty(n_classes), np.empty(n)
    _priors(tables, counts, counters[LAST], mode, priors)
    _softened(evidence[0, :n], 1.0, shares)
    best = _largest(shares)
    for r in range(X.shape[0]):
        _distances(F, M, X[r], rest, distances)
        out[r] = 0.0
        for e in range(n):
            t = np.exp(calibration[e, 0])
            far = distances[e * n_classes : (e + 1) * n_classes]
            _log_densities(far, log_dets[e], t, priors, scores)
            _softened(scores, t, p)
            for c in range(n_classes):
                out[r, c] += shares[e] * p[c]
            if e == best:
                nearest[r] = np.inf
                for c in range(n_classes):
                    if log_dets[e, c] < np.inf:
                        nearest[r] = min(nearest[r], far[c])
        out[r] /= out[r].sum()


@kernel
def learn(
    X: FloatArray,
    codes: IntArray,
    rates: FloatArray,
    periods: IntArray,
    settings: tuple[float, float, float],
    mode: int,
    counts: IntArray,
    weights: FloatArray,
    means: FloatArray,
    scatters: FloatArray,
    pooled: FloatArray,
    factors: FloatArray,
    log_dets: FloatArray,
    evidence: FloatArray,
    calibration: FloatArray,
    use: FloatArray,
    typical: FloatArray,
    tables: FloatArray,
    counters: IntArray,
) -> None:
    """Score each row with every forecaster, then learn it."""
    d, most, n_classes = means.shape
    n_live = rates.shape[0]
    F, M = factors.reshape(factors.shape[0], most * n_classes), means.reshape(d, most * n_classes)
    rest, distances, scores = np.empty((d, most * n_classes)), np.empty(most * n_classes), np.empty(n_classes)
    p, priors, shares = np.empty(n_classes), np.empty(n_classes), np.empty(most)
    tile, columns, step = np.empty((factors.shape[0], TILE)), np.empty((5, TILE)), np.empty(d)
    for r in range(X.shape[0]):
        counters[SEEN] += 1
        own = codes[r]
        if own == UNLABELED:
            continue
        x = X[r]
        n = n_live + counters[ARCHIVE]
        known = 0
        for c in range(n_classes):
            known += counts[c] > 0
        if known > 1 and counts[own] > 0:
            _softened(evidence[0, :n], 1.0, shares[:n])
            best = _largest(shares[:n])
            _priors(tables, counts, counters[LAST], mode, priors)
            _distances(F, M, x, rest, distances[: n * n_classes])
            for e in range(n):
                t = np.exp(calibration[e, 0])
                far = distances[e * n_classes : (e + 1) * n_classes]
                _log_densities(far, log_dets[e], t, priors, scores)
                _softened(scores, t, p)
                if e < n_live and scores[own] > -np.inf:
                    for c in range(n_classes):
                        scores[c] -= t * priors[c]  # the temperature applies to the densities only
                    _calibrate(scores, p, own, t, calibration[e])
                loss = np.log(LEAST_SHARE / known + (1.0 - LEAST_SHARE) * p[own])
                evidence[0, e] = SHORT_FADE * evidence[0, e] + loss
                evidence[1, e] = LONG_FADE * evidence[1, e] + loss
                use[e] = USE_FADE * use[e] + shares[e]
                if e == best and log_dets[e, own] < np.inf:
                    _note_distance(far[own], typical)
        counts[own] += 1
        for row in (0, counters[LAST] + 1):
            for c in range(n_classes):
                tables[row, c] *= PRIOR_FADE
            tables[row, own] += 1.0
        counters[LAST] = own
        counters[TAUGHT] += 1
        for e in range(n_live):
            whole = counters[TAUGHT] < EARLY or counters[TAUGHT] % periods[e] == 0
            _take_in(x, own, e, rates[e], whole, weights, means, scatters, pooled, step)
            first, last = (0, n_classes) if whole else (own, own + 1)
            _refresh(e, first, last, settings, weights, means, scatters, pooled, factors, log_dets, tile, columns)
        if counters[TAUGHT] % ARCHIVE_EVERY == 0:
            _archive(n_live, means, factors, log_dets, evidence, calibration, use, counters)


@kernel_in_place
def _note_distance(distance: float, typical: FloatArray) -> None:
    """Update weight, mean and variance of the log distance of rows to their own class."""
    far = np.log(distance + 1e-30)
    typical[0] = TYPICAL_FADE * typical[0] + 1.0
    step = far - typical[1]
    typical[1] += step / typical[0]
    typical[2] += (step * (far - typical[1]) - typical[2]) / typical[0]


@kernel_in_place
def _calibrate(scores: FloatArray, p: FloatArray, own: int, t: float, calibration: FloatArray) -> None:
    """Perform one Newton step of the temperature's logarithm on the log loss of a row."""
    mean, square = 0.0, 0.0
    for c in range(p.shape[0]):
        if p[c] > 0.0:
            mean += p[c] * scores[c]
            square += p[c] * scores[c] * scores[c]
    spread = max(square - mean * mean, 0.0) / (t * t)
    calibration[1] = CERTAINTY_FADE * calibration[1] + min(spread, 1.0)
    step = (scores[own] - mean) / t
    calibration[0] -= max(min(step, 3.0), -3.0) / (calibration[1] + 10.0)
    calibration[0] = max(min(calibration[0], 5.0), -1.0)


@kernel
def _archive(
    n_live: int,
    means: FloatArray,
    factors: FloatArray,
    log_dets: FloatArray,
    evidence: FloatArray,
    calibration: FloatArray,
    use: FloatArray,
    counters: IntArray,
) -> None:
    """Archive a copy of one live forecaster, unless an archived one performs as well on the latest rows."""
    place = n_live + counters[ARCHIVE]
    for e in range(n_live, place):
        if evidence[1, e] > evidence[1, ARCHIVED] - ARCHIVE_MARGIN:
            return
    if place == use.shape[0]:
        place = n_live + _largest(-use[n_live:])
    else:
        counters[ARCHIVE] += 1
    means[:, place] = means[:, ARCHIVED]
    factors[:, place] = factors[:, ARCHIVED]
    log_dets[place] = log_dets[ARCHIVED]
    evidence[:, place] = evidence[:, ARCHIVED]
    calibration[place] = calibration[ARCHIVED]
    use[place] = use[ARCHIVED]
