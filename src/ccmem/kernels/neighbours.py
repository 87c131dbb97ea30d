"""Class densities from the nearest of a few kept rows: for classes that consist of several clouds.

    log f_c(x) = -(d / 2) log(mean of the K smallest |x - x_i|^2 of class c) + log(K / n_c)

n_c of the kept rows belong to class c. Distances are in units of the spread of each column within classes.
"""

from __future__ import annotations

import math

import numpy as np

from ccmem.core.typing import FloatArray, IntArray
from ccmem.kernels.jit import kernel_in_place

CODE, AGE = 0, 1
"""Rows of ``kept_labels``: code of a kept row, and the value of TAUGHT when it was learned."""
NEIGHBOURS = 5
"""Number of nearest rows of a class behind its density."""
NEAREST = 1e-9
"""Squared distance added to that of the neighbours, in units of the variance: equal rows have a finite density."""
FARTHEST = 1e15
"""Cap on squared distances (of a column that was constant until now, for example), so that their squares are finite."""


@kernel_in_place
def keep_row(x: FloatArray, own: int, taught: int, kept: FloatArray, kept_labels: IntArray, sizes: IntArray) -> None:
    """Keep a row; if there is no room, drop the oldest row of the class that has most. ``sizes`` is scratch space."""
    n, place = kept.shape[1], taught
    if place >= n:
        for c in range(sizes.shape[0]):
            sizes[c] = 0
        largest = kept_labels[CODE, 0]
        for i in range(n):
            sizes[kept_labels[CODE, i]] += 1
        for c in range(sizes.shape[0]):
            if sizes[c] > sizes[largest]:
                largest = c
        place = -1
        for i in range(n):
            if kept_labels[CODE, i] == largest and (place < 0 or kept_labels[AGE, i] < kept_labels[AGE, place]):
                place = i
    for j in range(kept.shape[0]):
        kept[j, place] = x[j]
    kept_labels[CODE, place] = own
    kept_labels[AGE, place] = taught


@kernel_in_place
def neighbour_scores(
    x: FloatArray,
    n: int,
    inverse: FloatArray,
    kept: FloatArray,
    kept_labels: IntArray,
    far: FloatArray,
    near: FloatArray,
    sizes: IntArray,
    scores: FloatArray,
) -> None:
    """Compute the log density of every class at x from its nearest rows among the ``n`` kept ones."""
    d, n_classes = kept.shape[0], scores.shape[0]
    for i in range(n):
        far[i] = NEAREST
    for j in range(d):
        for i in range(n):
            step = x[j] - kept[j, i]
            far[i] += inverse[j] * step * step
    for c in range(n_classes):
        sizes[c] = 0
        for k in range(NEIGHBOURS):
            near[c, k] = FARTHEST
    for i in range(n):
        c = kept_labels[CODE, i]
        sizes[c] += 1
        if far[i] < near[c, NEIGHBOURS - 1]:
            k = NEIGHBOURS - 1
            while k > 0 and near[c, k - 1] > far[i]:
                near[c, k] = near[c, k - 1]
                k -= 1
            near[c, k] = far[i]
    for c in range(n_classes):
        m = NEIGHBOURS if sizes[c] > NEIGHBOURS else sizes[c]
        total = 0.0
        for k in range(m):
            total += near[c, k]
        scores[c] = math.log(m / sizes[c]) - 0.5 * d * math.log(total / m) if m > 0 else -np.inf
