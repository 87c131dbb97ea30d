"""Shapes of a signal: learning the units, and pooling their activations over windows.

A signal is split into groups of channels, and every group is encoded on several scales. A place is a row at which a
subsequence of ``taps`` points starts, ``dilation`` rows from point to point; a point is the mean of ``dilation`` rows.
The vector instructions of :mod:`ccmem.layers._vectors` find the winners at 16 places at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ccmem.core.typing import FloatArray, IntArray
from ccmem.kernels.jit import kernel_in_place
from ccmem.layers._encode import learn_patch
from ccmem.layers._signal import fisher
from ccmem.layers._vectors import PLACES, margins

TILE = 512
"""Places that are encoded together, a multiple of ``PLACES``: their responses fit into a processor's cache."""
VARIANCE_FLOOR = 1e-4
"""Added to a variance, in units of the variance of the first rows: logarithms and correlations stay finite."""
SOFTENING = 0.05
"""Share of the mean squared length that is added to every squared length: faint subsequences activate units less."""
RARE = np.float32(0.01)
"""Added to a mean activation before its square root, whose slope is infinite at 0: single wins stay small."""
ROOT = np.float32(0.1)
"""Square root of ``RARE``, so that a unit that never wins has the feature 0."""
STILL = 1e-6
"""Added to a squared length: a subsequence that only differs from its mean by rounding activates no unit."""


class Group(NamedTuple):
    """Units of a group of channels on one scale, as :func:`ccmem.layers._encode.learn_patch` expects them."""

    units: FloatArray
    wins: IntArray
    counters: IntArray
    """Unused, and the number of units that have learned."""


class Room(NamedTuple):
    """Working arrays for one tile of one group of channels."""

    points: FloatArray
    """Points of the tile, channel after channel, with room for whole vectors."""
    gains: FloatArray
    """Factor of the activations at each place."""
    responses: FloatArray
    offsets: IntArray
    """Offsets of the points of a subsequence from its first point."""
    patch: FloatArray


def new_room(n_channels: int, taps: int, dilation: int, n_units: int) -> Room:
    """Return the working arrays for groups of ``n_channels`` channels."""
    width = TILE + (taps - 1) * dilation + PLACES
    offsets = [c * width + t * dilation for c in range(n_channels) for t in range(taps)]
    return Room(
        np.zeros(n_channels * width, np.float32),
        np.zeros(TILE, np.float32),
        np.zeros((n_units, TILE), np.float32),
        np.array(offsets),
        np.zeros(len(offsets), np.float32),
    )


@kernel_in_place
def load_tile(rows: FloatArray, first: int, n: int, channel: int, taps: int, dilation: int, room: Room) -> None:
    """Load the points of ``n`` places from row ``first`` on, for the channels from ``channel`` on.

    ``gains`` receives the squared length of every subsequence less the mean of each of its channels.
    """
    share = np.float32(1.0 / dilation)
    room.gains[:] = 0
    n_channels = room.offsets.shape[0] // taps
    for c in range(n_channels):
        points = room.points[room.offsets[c * taps] :]
        for t in range(n + (taps - 1) * dilation):
            total = np.float32(0)
            for k in range(dilation):
                total += rows[first + t + k, channel + c]
            points[t] = total * share
        for t in range(n):
            mean = np.float32(0)
            for k in range(taps):
                mean += points[t + k * dilation]
            mean /= np.float32(taps)
            square = np.float32(0)
            for k in range(taps):
                deviation = points[t + k * dilation] - mean
                square += deviation * deviation
            room.gains[t] += square


@kernel_in_place
def mean_square(rows: FloatArray, channel: int, taps: int, dilation: int, room: Room) -> float:
    """Return the mean squared length of all subsequences of a group, less their mean."""
    n_places, total = rows.shape[0] - taps * dilation + 1, 0.0
    for first in range(0, n_places, TILE):
        n = min(TILE, n_places - first)
        load_tile(rows, first, n, channel, taps, dilation, room)
        for t in range(n):
            total += room.gains[t]
    return total / max(n_places, 1)


@kernel_in_place
def learn_shapes(
    group: Group, rows: FloatArray, channel: int, taps: int, dilation: int, similar: float, room: Room
) -> None:
    """Learn from the subsequences at all rows, first to last, that are not constant."""
    for place in range(rows.shape[0] - taps * dilation + 1):
        load_tile(rows, place, 1, channel, taps, dilation, room)
        if room.gains[0] <= STILL:
            continue
        for start in range(0, room.offsets.shape[0], taps):
            mean = 0.0
            for k in range(start, start + taps):
                mean += room.points[room.offsets[k]]
            mean /= taps
            for k in range(start, start + taps):
                room.patch[k] = (room.points[room.offsets[k]] - mean) / np.sqrt(room.gains[0])
        learn_patch(group, room.patch, similar)


@kernel_in_place
def sum_activations(
    rows: FloatArray,
    channel: int,
    taps: int,
    dilation: int,
    units: FloatArray,
    square: float,
    gain_free: bool,
    block: int,
    room: Room,
    sums: FloatArray,
) -> None:
    """Sum the activations of each block of ``block`` places into a row of ``sums``, first place to last."""
    n_places = sums.shape[0] * block
    share = np.float32(1 if gain_free else 0)
    soft = np.float32((SOFTENING if gain_free else 1.0) * square + STILL)
    sums[:] = 0
    for first in range(0, n_places, TILE):
        n = min(TILE, n_places - first)
        load_tile(rows, first, n, channel, taps, dilation, room)
        for t in range(n):
            room.gains[t] = np.float32(1) / np.sqrt(room.gains[t] * share + soft)
        margins(room.points, units, room.offsets, n, room.responses)
        for j in range(units.shape[0]):
            response, place = room.responses[j], 0
            while place < n:
                at = (first + place) // block
                stop = min(n, (at + 1) * block - first)
                total = sums[at, j]
                for t in range(place, stop):
                    total += response[t] * room.gains[t]
                sums[at, j] = total
                place = stop


@kernel_in_place
def pool_windows(sums: FloatArray, n_blocks: int, last: float, step: int, column: int, out: FloatArray) -> None:
    """Add up ``n_blocks`` rows of ``sums`` for every window, ``step`` rows apart, into ``out`` from ``column`` on.

    The next row is added with weight ``last``.
    Row b of ``sums`` becomes the sum of rows b to b + size - 1 for size = 1, 2, 4, ...; a window is the sum of one such
    run for every binary digit of ``n_blocks``. ``sums`` is used up.
    """
    width, size, offset = sums.shape[1], 1, 0
    for r in range(out.shape[0]):
        part = sums[r * step + n_blocks]
        for j in range(width):
            out[r, column + j] = last * part[j]
    while size <= n_blocks:
        if n_blocks & size:
            for r in range(out.shape[0]):
                part = sums[r * step + offset]
                pooled = out[r, column : column + width]
                for j in range(width):
                    pooled[j] += part[j]
            offset += size
        for b in range(sums.shape[0] - size):
            first, second = sums[b], sums[b + size]
            for j in range(width):
                first[j] += second[j]
        size *= 2


@kernel_in_place
def describe_scale(
    rows: FloatArray,
    units: FloatArray,
    squares: FloatArray,
    plan: tuple[int, int, int, int, float, bool],
    room: Room,
    sums: FloatArray,
    column: int,
    out: FloatArray,
) -> None:
    """Store the square root of ``RARE`` plus the mean activation of every unit in every window, from ``column`` on.

    ``plan`` holds taps, dilation, blocks from one window to the next, places per block, weight of the last block of a
    window, and True if activations do not depend on the gain. ``sums`` has a row for every block that a window needs.
    """
    taps, dilation, step, block, last, gain_free = plan
    n_groups, n_units = units.shape[0], units.shape[1]
    size = room.offsets.shape[0] // taps
    n_blocks = sums.shape[0] - (out.shape[0] - 1) * step - 1
    share = np.float32(1.0 / ((n_blocks + last) * block))
    for group in range(n_groups):
        sum_activations(rows, group * size, taps, dilation, units[group], squares[group], gain_free, block, room, sums)
        pool_windows(sums, n_blocks, last, step, column + group * n_units, out)
    for r in range(out.shape[0]):
        for j in range(column, column + n_groups * n_units):
            out[r, j] = np.sqrt(out[r, j] * share + RARE) - ROOT


@kernel_in_place
def describe_channels(
    rows: FloatArray, plan: tuple[int, int, int], sums: FloatArray, pooled: FloatArray, out: FloatArray
) -> None:
    """Write level and energy of every channel, then the correlations of pairs, to the last columns of ``out``.

    ``plan`` holds places per block, blocks per window and blocks from one window to the next. ``sums`` (a row for every
    block) and ``pooled`` (a row for every window) are room, in double precision: sums of every channel, then of the
    squares, then of the products of the pairs that have a feature.
    """
    block, n_blocks, step = plan
    n, n_pairs = rows.shape[1], sums.shape[1] - 2 * rows.shape[1]
    column = out.shape[1] - 2 * n - n_pairs
    sums[:] = 0
    for b in range(sums.shape[0]):
        part = sums[b]
        for t in range(b * block, (b + 1) * block):
            row, place = rows[t], 2 * n
            for i in range(n):
                x = float(row[i])
                part[i] += x
                part[n + i] += x * x
                if n_pairs:
                    for j in range(i + 1, n):
                        part[place] += x * row[j]
                        place += 1
    pool_windows(sums, n_blocks - 1, 1.0, step, 0, pooled)
    share = 1.0 / (n_blocks * block)
    for r in range(out.shape[0]):
        found, line = pooled[r], out[r]
        for i in range(n):
            found[i] *= share
            found[n + i] = max(found[n + i] * share - found[i] * found[i], 0.0) + VARIANCE_FLOOR
            line[column + 2 * i] = found[i]
            line[column + 2 * i + 1] = 0.5 * np.log(found[n + i])
        if n_pairs:
            place = 2 * n
            for i in range(n):
                for j in range(i + 1, n):
                    covariance = found[place] * share - found[i] * found[j]
                    line[column + place] = fisher(covariance / np.sqrt(found[n + i] * found[n + j]))
                    place += 1


def smooth_shapes(n: int, n_channels: int, taps: int) -> FloatArray:
    """Return ``n`` fixed smooth curves with mean 0 and unit length, the values of units that learn nothing."""
    rng, time = np.random.default_rng(0), np.arange(taps) / taps
    half_turns = np.arange(1, 5)[:, np.newaxis]
    weights, phases = rng.normal(size=(2, n, n_channels, 4, 1)) * [[[[[1.0]]]], [[[[np.pi]]]]]
    curves = (weights * np.cos(np.pi * half_turns * time + phases)).sum(axis=-2)
    curves = (curves - curves.mean(axis=-1, keepdims=True)).reshape(n, -1)
    return (curves / np.linalg.norm(curves, axis=1, keepdims=True)).astype(np.float32)


def held(rows: FloatArray, latest: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Replace every NaN by the reading before it; return the rows and the last reading of every channel.

    ``latest`` holds the readings before the first row.
    """
    missing = np.isnan(rows)
    if missing.any():
        all_rows = np.concatenate([latest[np.newaxis], rows])
        sources = np.where(missing, 0, np.arange(1, len(all_rows))[:, np.newaxis])
        rows = np.take_along_axis(all_rows, np.maximum.accumulate(sources, axis=0), axis=0)
    return rows, rows[-1].copy()
