"""Discriminant analysis of a few columns, row by row: weighted sums, Cholesky factors, neighbours, scores, evidence.

A symmetric matrix of d columns is packed by columns: element (i, j), i >= j, is at ``j d - j (j + 1) / 2 + i``. The
matrices of all classes of all forecasters are factored together, element by element. Class c of forecaster e is column
``e n_classes + c`` of ``means`` and ``factors`` as matrices, and a step runs along these columns in contiguous memory.
The state is :class:`ccmem.readout._following.Following`.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ccmem.core.codes import UNLABELED
from ccmem.core.typing import FloatArray, IntArray
from ccmem.kernels.jit import kernel_in_place
from ccmem.kernels.neighbours import FARTHEST, NEIGHBOURS, keep_row, neighbour_scores
from ccmem.kernels.priors import AUTO, LEAST_RUN, PREVIOUS, PRIOR_FADE, log_prior, next_lead, relate

SHORT, LONG, USE, LOG_TEMPERATURE, PRECISION = range(5)
"""Rows of ``forecasters``: decaying sums of log likelihood (short and long), decaying sum of weights, logarithm of the
temperature, and its precision (decaying sum of the curvature of the log loss). The last column is the neighbours."""
SHORT_FADE, LONG_FADE, USE_FADE = 0.9, 0.99, 0.9999
"""Decay factors per row of the first three rows of ``forecasters``."""
LEAST_SHARE = 0.02
"""Fraction of a uniform forecast mixed into every forecast before its log loss, so that one row cannot veto."""
CERTAINTY_FADE = 0.99
"""Decay factor per row of the curvature used to update a temperature."""
TYPICAL_FADE = 0.995
"""Decay factor per row of the moments of log distances to the row's own class."""
ARCHIVE_EVERY = 256
"""Number of labelled rows after which :func:`run` returns, so that the caller may archive a forecaster."""
SEEN, TAUGHT, LAST, ARCHIVE, RUN = range(5)
"""Indices into ``counters``: rows seen, rows with a label, code of the last label, archived forecasters, and labelled
rows since another label."""
WINDOWS = (np.inf, 500.0, 100.0, 20.0)
"""Memory of each live forecaster, in rows of a class; the first never forgets."""
PERIODS = (16, 16, 4, 1)
"""Rows between two factorisations of all class covariances, per live forecaster; other rows factor only their class."""
TILE = 16
"""Number of matrices factored together, small enough for the first-level cache."""
EARLY = 64
"""Number of labelled rows during which all covariances are factored after each row."""
ROUNDING = 1e-10
"""Minimum variance of a column, relative to its squared level; smaller values are rounding errors."""
TINY = 1e-200
"""Minimum absolute variance, reached by a column that is always 0."""


class Settings(NamedTuple):
    """Parameters of the classifier that predictions depend on."""

    own_share: float
    ridge: float
    n_axes: int
    priors: int


class Room(NamedTuple):
    """Scratch space: allocations inside the kernels would add to their compile time."""

    rest: FloatArray
    distances: FloatArray
    far: FloatArray
    near: FloatArray
    p: FloatArray
    scores: FloatArray
    priors: FloatArray
    ratios: FloatArray
    shares: FloatArray
    tile: FloatArray
    work: FloatArray
    step: FloatArray
    sizes: IntArray


@lru_cache(maxsize=4)
def room_for(thread: int, d: int, n_classes: int, most: int, n_kept: int) -> Room:
    """Return the scratch space of a thread for ``d`` columns and ``most`` Gaussian forecasters.

    Calls with a single row would spend a tenth of their time on new arrays.
    """
    shapes = (
        (d, most * n_classes), most * n_classes, n_kept, (n_classes, NEIGHBOURS), n_classes, n_classes, n_classes,
        (3, n_classes), most + 1, (d * (d + 1) // 2, TILE), (3, TILE), d,
    )  # fmt: skip
    arrays: list[Any] = [np.empty(shape) for shape in shapes]
    return Room._make([*arrays, np.empty(n_classes, np.int64)])


@kernel_in_place
def _factor(F: FloatArray, d: int, n: int, work: FloatArray) -> None:
    """Replace packed matrices, one in each of the first ``n`` columns of ``F``, by their Cholesky factors.

    The logarithms of their determinants are stored in ``work[0]``.
    """
    for m in range(n):
        work[0, m] = 0.0
        work[1, m] = 1.0
    start = 0
    for k in range(d):
        for m in range(n):
            root = math.sqrt(F[start, m] if F[start, m] > TINY else TINY)
            F[start, m] = root
            work[2, m] = 1.0 / root
            work[1, m] *= root
        for m in range(n):
            if work[1, m] > 1e100 or work[1, m] < 1e-100:
                work[0, m] += 2.0 * math.log(work[1, m])
                work[1, m] = 1.0
        for i in range(1, d - k):
            for m in range(n):
                F[start + i, m] *= work[2, m]
        target = start + d - k
        for j in range(1, d - k):
            for i in range(j, d - k):
                for m in range(n):
                    F[target, m] -= F[start + j, m] * F[start + i, m]
                target += 1
        start += d - k
    for m in range(n):
        work[0, m] += 2.0 * math.log(work[1, m])


@kernel_in_place
def _distances(F: FloatArray, means: FloatArray, x: FloatArray, n: int, rest: FloatArray, out: FloatArray) -> None:
    """Compute |L^-1 (x - mean)|^2 for the first ``n`` columns; ``rest`` is scratch space."""
    d = means.shape[0]
    for m in range(n):
        out[m] = 0.0
    for i in range(d):
        for m in range(n):
            rest[i, m] = x[i] - means[i, m]
    start = 0
    for k in range(d):
        for m in range(n):
            rest[k, m] /= F[start, m]
            out[m] += rest[k, m] * rest[k, m]
        for i in range(1, d - k):
            for m in range(n):
                rest[k + i, m] -= rest[k, m] * F[start + i, m]
        start += d - k


@kernel_in_place
def _variance(
    i: int, k: int, e: int, weights: FloatArray, means: FloatArray, pooled: FloatArray, factor: float
) -> float:
    """Return ``factor`` times the variance of column i within classes, stored at ``k``, plus a bound on rounding."""
    n_classes = weights.shape[1]
    total, level = 0.0, 0.0
    for c in range(n_classes):
        total += weights[e, c]
        level += weights[e, c] * means[i, e, c] * means[i, e, c]
    return factor * pooled[k, e] / total + ROUNDING * level / total + TINY


@kernel_in_place
def _refresh(state: Any, e: int, first: int, last: int, settings: Settings, room: Room) -> None:
    """Factor the covariances of classes ``first`` to ``last`` of a live forecaster, a few at a time."""
    weights, pooled, tile, work = state.weights, state.pooled, room.tile, room.work
    d, n_classes = state.means.shape[0], weights.shape[1]
    total = 0.0
    for c in range(n_classes):
        total += weights[e, c]
    for begin in range(first, last, TILE):
        n = last - begin if last - begin < TILE else TILE
        for m in range(n):
            w = weights[e, begin + m]
            known = settings.own_share * w / (w + float(settings.n_axes))
            work[0, m] = 1.0 - known
            work[1, m] = known / w if w > 0.0 else 0.0
        for k in range(tile.shape[0]):
            mean = pooled[k, e] / total
            for m in range(n):
                tile[k, m] = work[0, m] * mean + work[1, m] * state.scatters[k, e, begin + m]
        k = 0
        for i in range(d):
            more = _variance(i, k, e, weights, state.means, pooled, settings.ridge)
            for m in range(n):
                tile[k, m] += more
            k += d - i
        _factor(tile, d, n, work)
        for k in range(tile.shape[0]):
            for m in range(n):
                state.factors[k, e, begin + m] = tile[k, m]
        for m in range(n):
            state.log_dets[e, begin + m] = work[0, m] if weights[e, begin + m] > 0.0 else np.inf


@kernel_in_place
def _add_row(state: Any, x: FloatArray, own: int, e: int, whole: bool, step: FloatArray) -> None:
    """Add a row to the sums of its class; ``whole`` recomputes the total scatter, which removes rounding errors."""
    weights, means, scatters, pooled = state.weights, state.means, state.scatters, state.pooled
    d, rate = means.shape[0], 1.0 / WINDOWS[e]
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
def _soften(scores: FloatArray, temperature: float, priors: FloatArray, out: FloatArray) -> None:
    """Compute probabilities from log densities and log priors; all 0 if no class is possible."""
    top, total = -np.inf, 0.0
    for c in range(scores.shape[0]):
        out[c] = scores[c] / temperature + priors[c]
        if out[c] > top:
            top = out[c]
    for c in range(scores.shape[0]):
        out[c] = math.exp(out[c] - top) if out[c] > -np.inf else 0.0
        total += out[c]
    if total > 0.0:
        for c in range(scores.shape[0]):
            out[c] /= total


@kernel_in_place
def _calibrate(scores: FloatArray, p: FloatArray, own: int, t: float, e: int, forecasters: FloatArray) -> None:
    """Perform one Newton step of the temperature's logarithm on the log loss of a row."""
    mean, square = 0.0, 0.0
    for c in range(p.shape[0]):
        if p[c] > 0.0:
            mean += p[c] * scores[c]
            square += p[c] * scores[c] * scores[c]
    spread = (square - mean * mean) / (t * t)
    spread = 0.0 if spread < 0.0 else 1.0 if spread > 1.0 else spread
    forecasters[PRECISION, e] = CERTAINTY_FADE * forecasters[PRECISION, e] + spread
    step = (scores[own] - mean) / t
    step = 3.0 if step > 3.0 else -3.0 if step < -3.0 else step
    warm = forecasters[LOG_TEMPERATURE, e] - step / (forecasters[PRECISION, e] + 10.0)
    forecasters[LOG_TEMPERATURE, e] = 5.0 if warm > 5.0 else -1.0 if warm < -1.0 else warm


@kernel_in_place
def _note_distance(distance: float, typical: FloatArray) -> None:
    """Update weight, mean, variance and third moment of the log distance of rows to their own class."""
    far = math.log(distance + 1e-30)
    typical[0] = TYPICAL_FADE * typical[0] + 1.0
    step = far - typical[1]
    typical[1] += step / typical[0]
    deviation = far - typical[1]
    typical[2] += (step * deviation - typical[2]) / typical[0]
    typical[3] += (deviation**3 - typical[3]) / typical[0]


@kernel_in_place
def run(
    state: Any,
    X: FloatArray,
    codes: IntArray,
    start: int,
    settings: Settings,
    out: FloatArray,
    nearest: FloatArray,
    room: Room,
) -> int:
    """Predict the rows from ``start`` on, or score and learn them; return the index of the first row not processed.

    Without ``codes``, store class probabilities in ``out``, and the distance to the nearest class, according to the
    Gaussian forecaster of highest weight, in ``nearest``. With ``codes``, return after ARCHIVE_EVERY labelled rows.
    """
    counts, counters, forecasters, log_dets = state.counts, state.counters, state.forecasters, state.log_dets
    kept, kept_labels, tables, lead = state.kept, state.kept_labels, state.tables, state.lead
    d, n_classes, mode = state.means.shape[0], counts.shape[0], settings.priors
    n_live, most = len(WINDOWS), forecasters.shape[1] - 1
    means = state.means.reshape((d, most * n_classes))
    factors = state.factors.reshape((state.factors.shape[0], most * n_classes))
    learning = codes.shape[0] > 0
    distances, shares, step = room.distances, room.shares, room.step
    p, scores, priors, ratios = room.p, room.scores, room.priors, room.ratios
    for r in range(start, X.shape[0]):
        own = UNLABELED
        if learning:
            counters[SEEN] += 1
            own = codes[r]
            if own == UNLABELED:
                continue
        x = X[r]
        n_kept = counters[TAUGHT] if counters[TAUGHT] < kept.shape[1] else kept.shape[1]
        n, known = n_live + counters[ARCHIVE], 0
        for c in range(n_classes):
            known += counts[c] > 0
            priors[c] = log_prior(mode, counts[c], tables[counters[LAST] + 1 if mode == PREVIOUS else 0, c])
        if not learning or (known > 1 and counts[own] > 0):
            # Forecasters are weighted by their latest log likelihoods; the neighbours are forecaster ``most``.
            top, total, best = forecasters[SHORT, most], 0.0, 0
            for e in range(n):
                if forecasters[SHORT, e] > forecasters[SHORT, best]:
                    best = e
            if forecasters[SHORT, best] > top:
                top = forecasters[SHORT, best]
            for e in range(most + 1):
                shares[e] = math.exp(forecasters[SHORT, e] - top) if e < n or e == most else 0.0
                total += shares[e]
            trust = 1.0 / (1.0 + math.exp(-lead[0]))
            for c in range(n_classes):
                ratios[1, c] = ratios[2, c] = 0.0
            k = 0
            for i in range(d):
                step[i] = 1.0 / _variance(i, k, 0, state.weights, state.means, state.pooled, 1.0)
                k += d - i
            _distances(factors, means, x, n * n_classes, room.rest, distances)
            if not learning:
                nearest[r] = np.inf
                for c in range(n_classes):
                    out[r, c] = 0.0
                    square = distances[best * n_classes + c]
                    if log_dets[best, c] < np.inf and square < nearest[r]:
                        nearest[r] = square
            for e in range(most + 1):
                if n <= e < most:
                    continue
                t = math.exp(forecasters[LOG_TEMPERATURE, e])
                if e == most:
                    neighbour_scores(x, n_kept, step, kept, kept_labels, room.far, room.near, room.sizes, scores)
                else:
                    for c in range(n_classes):
                        square = distances[e * n_classes + c]
                        square = square if square < FARTHEST else FARTHEST
                        scores[c] = -0.5 * (square + log_dets[e, c])
                _soften(scores, t, priors, p)
                if mode == AUTO:
                    relate(p, counts, ratios[0])
                    for c in range(n_classes):
                        ratios[1, c] += shares[e] * p[c]
                        ratios[2, c] += shares[e] * p[c] * ratios[0, c]
                        p[c] *= 1.0 + trust * (ratios[0, c] - 1.0)
                if not learning:
                    for c in range(n_classes):
                        out[r, c] += shares[e] * p[c]
                    continue
                if (e < n_live or e == most) and scores[own] > -np.inf:
                    _calibrate(scores, p, own, t, e, forecasters)
                loss = math.log(LEAST_SHARE / known + (1.0 - LEAST_SHARE) * p[own])
                forecasters[SHORT, e] = SHORT_FADE * forecasters[SHORT, e] + loss
                forecasters[LONG, e] = LONG_FADE * forecasters[LONG, e] + loss
                forecasters[USE, e] = USE_FADE * forecasters[USE, e] + shares[e] / total
                if e == best and log_dets[e, own] < np.inf:
                    _note_distance(distances[e * n_classes + own], state.typical)
            if learning and mode == AUTO:
                run = counters[RUN] if counters[LAST] == own else 0
                if (counts[own] / counters[TAUGHT]) ** run >= LEAST_RUN:
                    lead[0] = next_lead(lead[0], own, ratios)
        if not learning:
            total = 0.0
            for c in range(n_classes):
                total += out[r, c]
            for c in range(n_classes):
                out[r, c] /= total
            continue
        counts[own] += 1
        for c in range(n_classes):
            tables[0, c] *= PRIOR_FADE
            tables[counters[LAST] + 1, c] *= PRIOR_FADE if counters[LAST] >= 0 else 1.0
        tables[0, own] += 1.0
        tables[counters[LAST] + 1, own] += 1.0 if counters[LAST] >= 0 else 0.0
        keep_row(x, own, counters[TAUGHT], kept, kept_labels, room.sizes)
        counters[RUN] = 1 + (counters[RUN] if counters[LAST] == own else 0)
        counters[LAST] = own
        counters[TAUGHT] += 1
        for e in range(n_live):
            whole = counters[TAUGHT] < EARLY or counters[TAUGHT] % PERIODS[e] == 0
            _add_row(state, x, own, e, whole, step)
            first, last = (0, n_classes) if whole else (own, own + 1)
            _refresh(state, e, first, last, settings, room)
        if counters[TAUGHT] % ARCHIVE_EVERY == 0:
            return r + 1
    return X.shape[0]
