"""Features of the windows of a signal, and the choice of the window length.

One channel of a window, x_1 ... x_w, with mean m, deviation s and z = (x - m) / s, becomes

    level m, spread ln s, skewness mean z^3, kurtosis ln mean z^4, and for each band of frequencies ln (p + 1/1000),

p the mean power |sum z e^(-2 pi i k t / w)|^2 / w of a band's frequencies k: 1-2, 3-4, 5-8, 9-16, 17-32, 33-64 cycles a
window, up to the highest frequency of the window. A window of two periods has the period in the first band, its double
frequency in the second, then octaves. These features hardly depend on the phase at which a window begins, so they stay
constant while the signal repeats, and move with a change of period or waveform. Standardising to z separates shape from
size; logarithms bring the distributions closer to normal and remove units.

The relation of channels i and j is their correlation r_ij = mean z_i z_j, 0 if one is constant. Fisher's z brings its
distribution closer to normal: F(r) = ln ((1 + r + 1/1000) / (1 - r + 1/1000)) / 2. Two to eight channels have F(r_ij)
for every pair i < j. More channels would have too many pairs, so each channel i has

    mean r_ij, ln (mean r_ij^2 + 1/1000), F(max |r_ij|), over the channels j that are at most 64 columns away.

A new correlated pair among fifty channels moves the last feature, an additional partner of a paired channel moves the
second, and a change of sign moves the first. These features do not identify the partner of a channel: an exchange of
partners, or the loss of one among many correlated pairs, may leave all of them unchanged.
"""

from __future__ import annotations

import numpy as np

from ccmem.core.typing import FloatArray, IntArray
from ccmem.kernels.competition import dots
from ccmem.kernels.jit import kernel, kernel_in_place

BAND_EDGES = (1, 3, 5, 9, 17, 33, 65)
N_MOMENTS = 4
_FLOOR = 1e-3
"""Floor added to the power of a band; white noise has power 1 at every frequency."""
STILL, LEAST_SPREAD = 1e-9, 1e-150
"""Standard deviations below this fraction of the level, or below this number, are rounding: the channel is constant."""
PAIRED = 8
"""Largest number of channels for which every pair has a feature."""
REACH = 64
"""Largest distance, in columns, of two channels that are compared; time then grows linearly with the channels."""
FALLBACK_PERIOD = 50
_SURE, _HINT = 0.5, 0.2
"""Autocorrelation that ends the search for a period at once, and the one that suffices at the end of the search."""


def bands(window: int) -> IntArray:
    """Return the band edges for a window length: band i has frequencies ``edges[i]`` to ``edges[i + 1] - 1``."""
    top = window // 2
    kept = [edge for edge in BAND_EDGES if edge <= top]
    return np.array([*kept, min(top + 1, BAND_EDGES[len(kept)])] if len(kept) < len(BAND_EDGES) else kept)


def waves(window: int) -> FloatArray:
    """Return cosines and sines of every frequency in the bands, one per row, in pairs."""
    k = np.arange(1, bands(window)[-1])
    turns = np.outer(k, np.arange(window)) % window  # integer arithmetic, exact for all rows
    angles = 2 * np.pi * turns / window
    return np.ascontiguousarray(np.stack([np.cos(angles), np.sin(angles)], axis=1).reshape(-1, window))


def n_together(n_channels: int) -> int:
    """Return the number of features of channel relations; they follow the features of single channels."""
    pairs = n_channels * (n_channels - 1) // 2
    return pairs if n_channels <= PAIRED else 3 * n_channels


@kernel_in_place
def fisher(r: float) -> float:
    return float(0.5 * np.log((1.0 + r + _FLOOR) / (1.0 - r + _FLOOR)))


@kernel_in_place
def _describe_pairs(shapes: FloatArray, products: FloatArray, out: FloatArray) -> None:
    """Store the features of all pairs of few channels; ``shapes`` holds the standardised rows z of the channels."""
    n_channels, window = shapes.shape
    place = 0
    for i in range(n_channels):
        dots(shapes, i + 1, n_channels, shapes[i], products)
        for k in range(n_channels - 1 - i):
            out[place] = fisher(products[k] / window)
            place += 1


@kernel_in_place
def _describe_others(shapes: FloatArray, products: FloatArray, out: FloatArray) -> None:
    """Store the relation features of many channels, channel by channel."""
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
        n_others = stop - 1 - max(0, i - REACH)  # number of terms in the sums
        out[3 * i] /= n_others
        out[3 * i + 1] = np.log(out[3 * i + 1] / n_others + _FLOOR)
        out[3 * i + 2] = fisher(out[3 * i + 2])


@kernel
def describe(rows: FloatArray, window: int, hop: int, table: FloatArray, edges: IntArray, out: FloatArray) -> None:
    """Store the features of every window in ``out``, one row per window, ``hop`` rows apart; see the module docstring.

    Features are ordered channel by channel; relations between channels come last.
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
            if spread <= STILL * abs(mean) or spread <= LEAST_SPREAD:  # a constant channel
                spread = max(STILL * abs(mean), LEAST_SPREAD)
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
    """Return the period of a signal in rows and its autocorrelation, averaged over the channels.

    The period is the shortest lag beyond the first zero whose autocorrelation peak is within a tenth of the highest
    peak.
    """
    n = len(rows)
    deviations = rows - rows.mean(axis=0)
    lengths = np.sqrt((deviations**2).mean(axis=0))
    moving = lengths > STILL * np.abs(rows.mean(axis=0)) + LEAST_SPREAD
    if n < 24 or not moving.any():
        return FALLBACK_PERIOD, 0.0
    size = 1 << (2 * n - 1).bit_length()
    spectrum = np.fft.rfft(deviations[:, moving] / lengths[moving], size, axis=0)
    sums = np.fft.irfft((np.abs(spectrum) ** 2).mean(axis=1), size)[: n // 3]
    likeness = sums / (n - np.arange(n // 3))  # mean over the available pairs
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
    """Return the period if its autocorrelation is high enough; the ``last`` search accepts a lower autocorrelation."""
    period, likeness = find_period(rows)
    if likeness >= _SURE and 4 * period <= len(rows):
        return period
    if not last:
        return None
    return period if likeness >= _HINT else FALLBACK_PERIOD
