"""Image features: responses, three winners per place, pooling, in one pass without state between images."""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from ccmem.core.typing import FloatArray, IntArray
from ccmem.kernels.jit import kernel_in_place
from ccmem.layers._vectors import PLACES, TOGETHER, margins, pool

NO_CONTRAST = 1e-5
"""Relative contrast below which a deviation may be a rounding error."""


class Plan(NamedTuple):
    """Index tables for the shapes of image, patch and grid, and a workspace for one image, padded to whole vectors."""

    size: IntArray
    """Height, width, channels, side of a patch, rows and columns of places, step from place to place in learning."""
    offsets: IntArray
    """Offsets of the numbers of a patch from its first one."""
    row_shares: FloatArray
    """Weight of each row of places in each row of the grid."""
    reach: IntArray
    """First row of places, and the row after the last, of each row of the grid."""
    column_shares: FloatArray
    image: FloatArray
    sums: FloatArray
    contrast: FloatArray
    row_parts: FloatArray
    responses: FloatArray
    line: FloatArray
    patch: FloatArray


def bilinear(n: int, cells: int) -> FloatArray:
    """Return the weight of each of n places in each of ``cells`` cells, shared between the two nearest centres."""
    at = np.clip((np.arange(n) + 0.5) * cells / n - 0.5, 0, cells - 1)
    return np.maximum(0, 1 - np.abs(at - np.arange(cells)[:, np.newaxis])).astype(np.float32)


def golden_step(n: int) -> int:
    """Return about 0.618 n, coprime to n, so that steps of this size visit all n places evenly."""
    return next(step for step in itertools.count(max(int(0.618 * n), 1)) if math.gcd(n, step) == 1)


def new_plan(height: int, width: int, channels: int, patch: int, grid: int, n_units: int) -> Plan:
    high, wide = height - patch + 1, width - patch + 1
    padded = -(-wide // 8) * 8
    plane = height * width
    offsets = [c * plane + y * width + x for c in range(channels) for y in range(patch) for x in range(patch)]
    row_shares, column_shares = bilinear(high, grid), np.zeros((grid, padded), np.float32)
    column_shares[:, :wide] = bilinear(wide, grid)
    reach = [[np.flatnonzero(line)[0], np.flatnonzero(line)[-1] + 1] for line in row_shares]
    places = -(-high * width // PLACES) * PLACES + PLACES

    def zeros(*shape: int) -> FloatArray:
        return np.zeros(shape, np.float32)

    return Plan(
        np.array([height, width, channels, patch, high, wide, golden_step(high * wide)]),
        np.array(offsets),
        row_shares,
        np.array(reach),
        column_shares,
        image=zeros(channels * plane + patch * width + PLACES),
        sums=zeros(4, height, wide),
        contrast=zeros(high, wide),
        row_parts=zeros(grid, high, padded),
        responses=zeros(n_units, places),
        line=zeros(TOGETHER, padded),
        patch=zeros(len(offsets)),
    )


@kernel_in_place
def look_at(row: FloatArray, plan: Plan) -> float:
    """Load an image and the contrast of its patches; return the mean contrast, 0 if it is only rounding."""
    largest = 0.0
    for k in range(row.shape[0]):
        largest = max(largest, abs(row[k]))
    load_image(row, plan)
    measure_contrast(plan)
    mean = 0.0
    for y in range(plan.contrast.shape[0]):
        for x in range(plan.contrast.shape[1]):
            mean += plan.contrast[y, x]
    mean /= plan.contrast.size
    return mean if mean > (NO_CONTRAST * largest) ** 2 else 0.0


@kernel_in_place
def load_image(row: FloatArray, plan: Plan) -> None:
    """Store the image minus each channel's mean in ``image``, channel after channel."""
    channels = plan.size[2]
    plane = plan.size[0] * plan.size[1]
    for c in range(channels):
        total = 0.0
        for k in range(plane):
            total += row[k * channels + c]
        mean = np.float32(total / plane)
        part = plan.image[c * plane : (c + 1) * plane]
        for k in range(plane):
            part[k] = row[k * channels + c] - mean


@kernel_in_place
def measure_contrast(plan: Plan) -> None:
    """Store the squared deviation from its mean of the patch at every place in ``contrast``."""
    height, width, channels, patch, high, wide, _ = plan.size
    across, across2, down, down2 = plan.sums[0], plan.sums[1], plan.sums[2], plan.sums[3]
    down[:] = 0
    down2[:] = 0
    for c in range(channels):
        for y in range(height):
            line = plan.image[(c * height + y) * width : (c * height + y + 1) * width]
            a, b = across[y], across2[y]
            a[:] = 0
            b[:] = 0
            for d in range(patch):
                part = line[d:]
                for x in range(wide):
                    v = part[x]
                    a[x] += v
                    b[x] += v * v
        for y in range(high):
            a, b = down[y], down2[y]
            for d in range(patch):
                e, f = across[y + d], across2[y + d]
                for x in range(wide):
                    a[x] += e[x]
                    b[x] += f[x]
    share = np.float32(1.0 / (channels * patch * patch))
    for y in range(high):
        a, b, s = down[y], down2[y], plan.contrast[y]
        for x in range(wide):
            v = b[x] - a[x] * a[x] * share
            s[x] = v if v > 0 else np.float32(0)


@kernel_in_place
def encode(X: FloatArray, units: FloatArray, softening: float, plan: Plan, out: FloatArray) -> None:
    """Compute the features of every image in ``X``; see :mod:`ccmem.layers.patch`."""
    width, high, wide = plan.size[1], plan.size[4], plan.size[5]
    for r in range(X.shape[0]):
        mean = look_at(X[r], plan)
        if mean == 0.0:
            out[r] = 0
            continue
        soft = np.float32(softening * mean)
        for y in range(high):
            s = plan.contrast[y]
            for x in range(wide):
                s[x] = np.float32(1) / np.sqrt(s[x] + soft)
        for g in range(plan.row_parts.shape[0]):
            for y in range(plan.reach[g, 0], plan.reach[g, 1]):
                part, s, share = plan.row_parts[g, y], plan.contrast[y], plan.row_shares[g, y]
                for x in range(wide):
                    part[x] = share * s[x]
        margins(plan.image, units, plan.offsets, (high - 1) * width + wide, plan.responses)
        pool(plan.responses, width, plan.row_parts, plan.reach, plan.column_shares, plan.line, out[r])
        finish(out[r])


@kernel_in_place
def finish(features: FloatArray) -> None:
    """Raise features to the power 3/8 and normalise them; zeros stay zeros."""
    total = 0.0
    for k in range(features.shape[0]):
        fourth = np.sqrt(np.sqrt(features[k]))
        features[k] = fourth * np.sqrt(fourth)
        total += features[k] * features[k]
    if total > 0:
        shrink = np.float32(1 / np.sqrt(total))
        for k in range(features.shape[0]):
            features[k] *= shrink


SIMILAR = 0.9
MODESTY = 0.02


@kernel_in_place
def learn_patches(state: Any, X: FloatArray, per_image: int, plan: Plan) -> None:
    """Learn from ``per_image`` patches of every image; see :mod:`ccmem.layers.patch`."""
    width, high, wide = plan.size[1], plan.size[4], plan.size[5]
    n_places = high * wide
    step = plan.size[6]
    for r in range(X.shape[0]):
        state.counters[0] += 1
        mean = look_at(X[r], plan)
        if mean == 0.0:
            continue
        place, taken = 0, 0
        for _ in range(n_places):
            if taken == per_image:
                break
            y, x = place // wide, place % wide
            place = (place + step) % n_places
            if plan.contrast[y, x] > mean:
                take_patch(plan, y * width + x)
                learn_patch(state, plan.patch, SIMILAR)
                taken += 1


@kernel_in_place
def take_patch(plan: Plan, start: int) -> None:
    """Store the patch at a place, minus its mean and normalised, in ``patch``."""
    n, patch = plan.offsets.shape[0], plan.patch
    mean = 0.0
    for k in range(n):
        patch[k] = plan.image[start + plan.offsets[k]]
        mean += patch[k]
    mean /= n
    total = 0.0
    for k in range(n):
        total += (patch[k] - mean) ** 2
    for k in range(n):
        patch[k] = (patch[k] - mean) / np.sqrt(total)


@kernel_in_place
def learn_patch(state: Any, patch: FloatArray, similar: float) -> None:
    """Learn one patch: as a new unit if all units are less ``similar``, otherwise as a sample of its winner."""
    n_units, learned, all_wins = state.units.shape[0], state.counters[1], 0
    for j in range(learned):
        all_wins += state.wins[j]
    best, winner, nearest = -np.inf, 0, -np.inf
    for j in range(learned):
        similarity = 0.0
        for k in range(patch.shape[0]):
            similarity += state.units[j, k] * patch[k]
        nearest = max(nearest, similarity)
        score = similarity - MODESTY * (n_units * state.wins[j] / all_wins - 1)
        if score > best:
            best, winner = score, j
    if learned < n_units and nearest < similar:
        for k in range(patch.shape[0]):
            state.units[learned, k] = patch[k]
        state.wins[learned] = 1
        state.counters[1] += 1
        return
    unit = state.units[winner]
    state.wins[winner] += 1
    total = 0.0
    for k in range(patch.shape[0]):
        unit[k] += (patch[k] - unit[k]) / state.wins[winner]
        total += unit[k] * unit[k]
    for k in range(patch.shape[0]):
        unit[k] /= np.sqrt(total)
