"""Sketches of long vectors, used to rule out matches without reading the vectors.

With Q some orthonormal rows, the sketch of a vector m is (Q m, |m - Q'Q m|). A sketch has the length of its vector, and
products of sketches are upper bounds: m . x = Qm . Qx + (rest of m) . (rest of x), and the last term is at most the
product of both lengths. A ball around the sketches of a block bounds all of them at once; where the data has no leading
directions, a ball around the vectors themselves may still help. If a sketch or a ball excludes a match, the vectors do
not match; otherwise they are compared exactly. Q only affects how often that happens.

Everything here is derived from the prototypes. A radius below 0 means "not sketched yet"; a Q of zeros is valid too.
"""

from __future__ import annotations

import math

import numpy as np

from ccmem.core.typing import BoolArray, FloatArray, IntArray
from ccmem.kernels.competition import dot, dots, squared_distance
from ccmem.kernels.jit import kernel

DIRECTIONS = 31
"""Rows of Q, if vectors are long enough; a sketch then has 32 numbers, the lanes of a sum."""
WORTH_IT = 32
"""Number of blocks above which sketching a block costs less than searching all of them."""
WORTH_SURROUNDING = 4
"""Number of slots below which a block gets no ball around its slots, because it would cost as much as they do."""
NOT_SKETCHED = -1.0
_ROWS_FOR_BASIS = 2048
LAST_FIT = 1024
"""Number of blocks above which Q is no longer refitted, because sketching all of them again would take too long."""


def fit_basis(prototypes: FloatArray, used: BoolArray, n_blocks: int) -> FloatArray:
    """Return Q for these prototypes: their leading directions, all directions, or zeros while there are few."""
    n_features, dtype = prototypes.shape[1], prototypes.dtype
    q = min(n_features, DIRECTIONS)
    if q == n_features:
        return np.eye(q, dtype=dtype)
    if n_blocks <= WORTH_IT:
        return np.zeros((q, n_features), dtype)
    rows = np.flatnonzero(used)
    matrix = prototypes[rows[:: max(1, len(rows) // _ROWS_FOR_BASIS)]].astype(np.float64)
    rng = np.random.default_rng(0)  # Q affects no result, and a separate generator disturbs no other
    directions = rng.standard_normal((n_features, q))
    for _ in range(3):
        directions = np.linalg.qr(matrix.T @ (matrix @ directions))[0]
    basis = np.ascontiguousarray(directions.T, dtype=dtype)
    error = np.linalg.norm(basis.astype(np.float64) @ basis.T.astype(np.float64) - np.eye(q))
    return basis if error < 4.0 * q * np.finfo(dtype).eps else np.zeros_like(basis)


@kernel
def slack(basis: FloatArray) -> float:
    """Return a bound on all rounding errors between sketches and exact sums of unit vectors.

    With u the rounding unit and L = width / 32 + 8: sums err by L u, the q numbers of Q m together by sqrt(q) L u, and
    Q is orthonormal up to 8 q u. Products of sketches have each of these at most twice; doubled once more for the rest.
    """
    q, width = basis.shape
    unit = 0.5 * np.finfo(basis.dtype).eps
    return 2.0 * unit * ((2.0 + 2.0 * math.sqrt(q)) * (width / 32 + 8.0) + 8.0 * q)


@kernel
def sketch(
    basis: FloatArray, x: FloatArray, scale: float, squared_length: float, h: FloatArray, out: FloatArray
) -> None:
    """Sketch ``scale * x``, whose squared length is at most ``squared_length``; ``h`` is scratch space."""
    q = basis.shape[0]
    dots(basis, 0, q, x, h)
    inside = 0.0
    for k in range(q):
        out[k] = h[k] * scale
        inside += float(out[k]) * float(out[k])
    rest = math.sqrt(max(0.0, squared_length - inside) + slack(basis))
    out[q] = rest * (1.0 + 2.0 * np.finfo(basis.dtype).eps)  # rounded up in either type


@kernel
def sketch_block(
    basis: FloatArray,
    prototypes: FloatArray,
    wins: IntArray,
    sketches: FloatArray,
    centre: FloatArray,
    start: int,
    stop: int,
) -> float:
    """Sketch the used slots of a block and the ball around them; return its radius."""
    h = np.empty(basis.shape[0])
    mean = np.zeros(centre.shape[0])
    used = 0
    for i in range(start, stop):
        if wins[i] > 0:
            m = prototypes[i]
            sketch(basis, m, 1.0, dot(m, m), h, sketches[i])
            used += 1
            for k in range(mean.shape[0]):
                mean[k] += float(sketches[i, k])
    for k in range(mean.shape[0]):
        centre[k] = mean[k] / max(used, 1)
    farthest = 0.0
    for i in range(start, stop):
        if wins[i] > 0:
            squared = 0.0
            for k in range(mean.shape[0]):
                squared += (float(sketches[i, k]) - float(centre[k])) ** 2
            farthest = max(farthest, squared)
    return math.sqrt(farthest) * (1.0 + 2.0 * slack(basis))


@kernel
def surround(
    basis: FloatArray, prototypes: FloatArray, wins: IntArray, middle: FloatArray, start: int, stop: int
) -> float:
    """Compute the mean of the used slots of a block; return the distance of the farthest one."""
    middle[:] = 0
    used = 0
    for i in range(start, stop):
        if wins[i] > 0:
            used += 1
            for k in range(middle.shape[0]):
                middle[k] += prototypes[i, k]
    share = middle.dtype.type(1.0 / max(used, 1))
    for k in range(middle.shape[0]):
        middle[k] = middle[k] * share
    farthest = 0.0
    for i in range(start, stop):
        if wins[i] > 0:
            farthest = max(farthest, squared_distance(prototypes[i], middle))
    return math.sqrt(farthest) * (1.0 + 2.0 * slack(basis))
