"""Windows of a signal as a few numbers each, and how long a window should be.

One channel of a window, x_1 ... x_w, with mean m, deviation s and z = (x - m) / s, becomes

    level m, spread ln s, skewness mean z^3, peakedness ln mean z^4, and for each band of frequencies ln (p + 1/1000),

p the mean power |sum z e^(-2 pi i k t / w)|^2 / w of a band's frequencies k: 1-2, 3-4, 5-8, 9-16, 17-32, 33-64 turns a
window, as far as there are. A window of two periods has the period itself in the first band, its double in the second,
then octaves. Where a window begins within a period hardly matters to any of these, so a signal that goes on as before
stays where it is, and a change of period or waveform moves it. z keeps shape apart from size; logarithms make both look
more normal, and free of units.

How channels i and j go together is their correlation r_ij = mean z_i z_j, 0 where one stands still. Fisher's z makes
it look more normal: F(r) = ln ((1 + r + 1/1000) / (1 - r + 1/1000)) / 2. Two to eight channels have F(r_ij) for every
pair i < j. For more there would be too many pairs, so each channel i has

    mean r_ij, ln (mean r_ij^2 + 1/1000), F(max |r_ij|), over the channels j that are at most 64 columns away.

One pair among fifty moves the last, a channel that has a twin and finds another the second, one that turns its sign the
first. What they do not show is which channels go together: a change of partners, or a pair that parts among many that
stay, may leave all of them as they were.
"""

from __future__ import annotations

import numpy as np

from ccmem._typing import FloatArray, IntArray
from ccmem.kernels.competition import dots
from ccmem.kernels.jit import kernel, kernel_in_place

BAND_EDGES = (1, 3, 5, 9, 17, 33, 65)
N_MOMENTS = 4
_FLOOR = 1e-3
"""Power of white noise is 1 at every frequency; below this part of it nothing is told apart."""
_STILL = 1e-9
"""A spread less than this part of the level is rounding."""
_LEAST_SPREAD = 1e-150
PAIRED = 8
"""Up to so many channels every pair has a feature of its own."""
REACH = 64
"""Columns between two channels that are still compared: time grows with the channels, not their square."""
FALLBACK_PERIOD = 50
_SURE, _HINT = 0.5, 0.2
"""Autocorrelations at which a period is believed at once, and at the end of the search."""


def bands(window: int) -> IntArray:
    """Edges of the bands of a window of this length: band i is frequencies ``edges[i]`` to ``edges[i + 1] - 1``."""
    top = window // 2
    kept = [edge for edge in BAND_EDGES if edge <= top]
    return np.array([*kept, min(top + 1, BAND_EDGES[len(kept)])] if len(kept) < len(BAND_EDGES) else kept)


def waves(window: int) -> FloatArray:
    """Cosines and sines of every frequency in the bands, one a row, in pairs."""
    k = np.arange(1, bands(window)[-1])
    turns = np.outer(k, np.arange(window)) % window  # whole numbers: as exact for the last as for the first
    angles = 2 * np.pi * turns / window
    return np.ascontiguousarray(np.stack([np.cos(angles), np.sin(angles)], axis=1).reshape(-1, window))


def n_together(n_channels: int) -> int:
    """How many features tell of channels together; they come after those of every channel."""
    pairs = n_channels * (n_channels - 1) // 2
    return pairs if n_channels <= PAIRED else 3 * n_channels


@kernel_in_place
def _fisher(r: float) -> float:
    return float(0.5 * np.log((1.0 + r + _FLOOR) / (1.0 - r + _FLOOR)))


@kernel_in_place
def _describe_pairs(shapes: FloatArray, products: FloatArray, out: FloatArray) -> None:
    """The features of few channels together, pair after pair; their z are the rows of ``shapes``."""
    n_channels, window = shapes.shape
    place = 0
    for i in range(n_channels):
        dots(shapes, i + 1, n_channels, shapes[i], products)
        for k in range(n_channels - 1 - i):
            out[place] = _fisher(products[k] / window)
            place += 1


@kernel_in_place
def _describe_others(shapes: FloatArray, products: FloatArray, out: FloatArray) -> None:
    """The features of many channels together, channel after channel."""
    n_channels, window = shapes.shape
    out[:] = 0.0
    for i in range(n_channels):
        stop = min(n_channels, i + 1 + REACH)
        dots(shapes, i + 1, stop, shapes[i], products)
        for j in range(i + 1, stop):
            r = products[j - i - 1] / window
            for c in (i, j):
                out[3 * c] += r
                out[3 * c + 1] += r * r
                out[3 * c + 2] = max(out[3 * c + 2], abs(r))
        n_others = stop - 1 - max(0, i - REACH)  # all of them have been added
        out[3 * i] /= n_others
        out[3 * i + 1] = np.log(out[3 * i + 1] / n_others + _FLOOR)
        out[3 * i + 2] = _fisher(out[3 * i + 2])


@kernel
def describe(rows: FloatArray, window: int, hop: int, table: FloatArray, edges: IntArray, out: FloatArray) -> None:
    """One row of ``out`` for every window, ``hop`` rows apart: what the module says, channel after channel.

    What tells of channels together comes last.
    """
    n_channels = rows.shape[1]
    shapes, products = np.empty((n_channels, window)), np.empty(max(table.shape[0], REACH))
    per_channel = N_MOMENTS + edges.shape[0] - 1
    for r in range(out.shape[0]):
        for c in range(n_channels):
            z, place, total = shapes[c], c * per_channel, 0.0
            for t in range(window):
                z[t] = rows[r * hop + t, c]
                total += z[t]
            mean, square = total / window, 0.0
            for t in range(window):
                z[t] -= mean
                square += z[t] * z[t]
            spread = np.sqrt(square / window)
            if spread <= _STILL * abs(mean) or spread <= _LEAST_SPREAD:  # a channel that stands still
                spread = max(_STILL * abs(mean), _LEAST_SPREAD)
                z[:] = 0.0
            third = fourth = 0.0
            for t in range(window):
                z[t] /= spread
                third += z[t] ** 3
                fourth += z[t] ** 4
            out[r, place] = mean
            out[r, place + 1] = np.log(spread)
            out[r, place + 2] = third / window
            out[r, place + 3] = np.log(fourth / window + _FLOOR)
            dots(table, 0, table.shape[0], z, products)
            for band in range(edges.shape[0] - 1):
                power = 0.0
                for k in range(2 * (edges[band] - 1), 2 * (edges[band + 1] - 1)):
                    power += products[k] * products[k]
                power /= window * (edges[band + 1] - edges[band])
                out[r, place + N_MOMENTS + band] = np.log(power + _FLOOR)
        together = out[r, n_channels * per_channel :]
        if n_channels > PAIRED:
            _describe_others(shapes, products, together)
        else:
            _describe_pairs(shapes, products, together)


def find_period(rows: FloatArray) -> tuple[int, float]:
    """The period of a signal in rows and how much of it repeats, by the mean autocorrelation of its channels.

    The shortest lag, beyond the first zero, at which the autocorrelation peaks within a tenth of its highest peak.
    """
    n = len(rows)
    deviations = rows - rows.mean(axis=0)
    lengths = np.sqrt((deviations**2).mean(axis=0))
    moving = lengths > _STILL * np.abs(rows.mean(axis=0)) + _LEAST_SPREAD
    if n < 24 or not moving.any():
        return FALLBACK_PERIOD, 0.0
    size = 1 << (2 * n - 1).bit_length()
    spectrum = np.fft.rfft(deviations[:, moving] / lengths[moving], size, axis=0)
    sums = np.fft.irfft((np.abs(spectrum) ** 2).mean(axis=1), size)[: n // 3]
    likeness = sums / (n - np.arange(n // 3))  # mean over the pairs there are
    below = np.flatnonzero(likeness < 0)
    if not len(below):
        return FALLBACK_PERIOD, 0.0
    lags = np.arange(max(int(below[0]), 2), len(likeness) - 1)
    peaks = lags[(likeness[lags] > likeness[lags - 1]) & (likeness[lags] >= likeness[lags + 1]) & (likeness[lags] > 0)]
    if not len(peaks):
        return FALLBACK_PERIOD, 0.0
    period = int(peaks[likeness[peaks] >= 0.9 * likeness[peaks].max()][0])
    return period, float(likeness[period])


def choose_period(rows: FloatArray, last: bool) -> int | None:
    """The period if it is sure enough to stop looking; on the ``last`` look what there is."""
    period, likeness = find_period(rows)
    if likeness >= _SURE and 4 * period <= len(rows):
        return period
    if not last:
        return None
    return period if likeness >= _HINT else FALLBACK_PERIOD
