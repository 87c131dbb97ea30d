"""Competition: similarity or distance of a sample to every unit, and the K best matching units.

Sums have a fixed order, so a result never depends on the processor, the chunk or the calling kernel: lane ``l`` adds
the terms whose index is ``l`` modulo 32, first to last, and the 32 lanes are then folded in halves. Vector units work
this way anyway, so the order is free, and it makes bit-identical results testable. Terms are computed in the type of
the data; sums are returned as doubles. Ties go to the lowest index.
"""

from __future__ import annotations

import numpy as np

from ccmem.core.typing import BoolArray, FloatArray, IntArray
from ccmem.kernels.jit import kernel_in_place
from ccmem.kernels.lanes import ABSOLUTE, MINIMUM, PRODUCT, ROWS, SQUARE, pair_sum, row_sums
from ccmem.kernels.lanes import LANES as LANES

dot = pair_sum(*PRODUCT)
squared_distance = pair_sum(*SQUARE)
manhattan_distance = pair_sum(*ABSOLUTE)
minimum_sum = pair_sum(*MINIMUM)

_dots = row_sums(*PRODUCT)
_dots_and_square = row_sums(*PRODUCT, with_x=True)
_squared_distances = row_sums(*SQUARE)
_manhattan_distances = row_sums(*ABSOLUTE)
_minimum_sums = row_sums(*MINIMUM)


@kernel_in_place
def dots(prototypes: FloatArray, start: int, stop: int, x: FloatArray, out: FloatArray) -> None:
    """Set ``out[k]`` to the :func:`dot` product of ``x`` with row ``start + k`` for rows before ``stop``."""
    i = start
    while i + ROWS <= stop:
        k = i - start
        out[k], out[k + 1], out[k + 2], out[k + 3], out[k + 4] = _dots(prototypes, i, x)
        i += ROWS
    while i < stop:
        out[i - start] = dot(prototypes[i], x)
        i += 1


@kernel_in_place
def dots_and_square(
    prototypes: FloatArray, start: int, stop: int, X: FloatArray, row: int, backwards: bool, out: FloatArray
) -> float:
    """Compute :func:`dots` with a row of ``X`` and the row's squared length in the same pass.

    Alternating the direction (``backwards``) reuses the prototypes read last while they are in the nearest cache.
    """
    x = X[row]
    passes = (stop - start) // ROWS
    square = 0.0 if passes else dot(x, x)
    for n in range(passes):
        k = ROWS * (passes - 1 - n if backwards else n)
        if n == 0:
            out[k], out[k + 1], out[k + 2], out[k + 3], out[k + 4], square = _dots_and_square(prototypes, start + k, x)
        else:
            out[k], out[k + 1], out[k + 2], out[k + 3], out[k + 4] = _dots(prototypes, start + k, x)
    for k in range(passes * ROWS, stop - start):
        out[k] = dot(prototypes[start + k], x)
    return square


@kernel_in_place
def distance_power(a: FloatArray, b: FloatArray, p: float) -> float:
    """Return the sum of abs(a - b)^p, the p-norm distance before its root (for p = inf, the largest difference).

    The competition compares these values: the root preserves their order and would only round away differences.
    """
    if p == 2.0:
        return squared_distance(a, b)
    if p == 1.0:
        return manhattan_distance(a, b)
    total = 0.0
    for i in range(a.shape[0]):
        difference = abs(float(a[i] - b[i]))
        if p == np.inf:
            total = max(total, difference)
        else:
            total += difference**p
    return total


@kernel_in_place
def distance_powers(prototypes: FloatArray, n: int, X: FloatArray, row: int, p: float, out: FloatArray) -> None:
    """Set ``out`` to the :func:`distance_power` of a row of ``X`` to each of the first ``n`` prototypes."""
    x, i = X[row], 0
    while i + ROWS <= n and (p == 2.0 or p == 1.0):
        if p == 2.0:
            out[i], out[i + 1], out[i + 2], out[i + 3], out[i + 4] = _squared_distances(prototypes, i, x)
        else:
            out[i], out[i + 1], out[i + 2], out[i + 3], out[i + 4] = _manhattan_distances(prototypes, i, x)
        i += ROWS
    while i < n:
        out[i] = distance_power(x, prototypes[i], p)
        i += 1


@kernel_in_place
def minimum_sums(prototypes: FloatArray, n: int, x: FloatArray, out: FloatArray) -> None:
    """Set ``out[i]`` to the sum of min(x, prototype i) for the first ``n`` prototypes; several rows share a pass."""
    i = 0
    while i + ROWS <= n:
        out[i], out[i + 1], out[i + 2], out[i + 3], out[i + 4] = _minimum_sums(prototypes, i, x)
        i += ROWS
    while i < n:
        out[i] = minimum_sum(prototypes[i], x)
        i += 1


@kernel_in_place
def root(power: float, p: float) -> float:
    """Return the distance for a value of :func:`distance_power`."""
    if p == 2.0:
        return float(np.sqrt(power))
    if p == 1.0 or p == np.inf:
        return power
    return float(power ** (1.0 / p))


@kernel_in_place
def unit_scale(x: FloatArray, epsilon: float) -> float:
    """Return the factor that scales ``x`` to unit length: 1 / (norm(x) + epsilon)."""
    return 1.0 / (np.sqrt(dot(x, x)) + epsilon)


@kernel_in_place
def lowest(scores: FloatArray, n: int) -> int:
    """Return the index of the smallest of the first ``n`` scores; ties go to the lowest index, -1 if there are none."""
    best = min(n, 1) - 1
    for i in range(1, n):
        if scores[i] < scores[best]:
            best = i
    return best


@kernel_in_place
def all_finite(values: FloatArray, n: int) -> bool:
    """True if the first ``n`` values are finite."""
    for i in range(n):  # noqa: SIM110 (numba does not compile all)
        if not abs(values[i]) < np.inf:
            return False
    return True


@kernel_in_place
def all_below(units: IntArray, m: int, n: int) -> bool:
    """True if the first ``m`` entries are indices below ``n``."""
    for j in range(m):  # noqa: SIM110
        if not 0 <= units[j] < n:
            return False
    return True


@kernel_in_place
def highest(scores: FloatArray, n: int) -> int:
    """Return the index of the largest of the first ``n`` scores; ties go to the lowest index, -1 if there are none."""
    best = min(n, 1) - 1
    for i in range(1, n):
        if scores[i] > scores[best]:
            best = i
    return best


@kernel_in_place
def find_winners(scores: FloatArray, largest: bool, winners: IntArray) -> None:
    """Fill ``winners`` with the indices of the best scores: distinct, best first, ties to the lowest index.

    One pass inserts scores into a list of K, without sorting or allocation.
    """
    k = winners.shape[0]
    found = 0
    for i in range(scores.shape[0]):
        score = scores[i]
        place = found
        while place > 0 and (score > scores[winners[place - 1]] if largest else score < scores[winners[place - 1]]):
            place -= 1
        if place == k:
            continue
        found = min(found + 1, k)
        for j in range(found - 1, place, -1):
            winners[j] = winners[j - 1]
        winners[place] = i


@kernel_in_place
def sort_units(scores: FloatArray, n: int, units: IntArray, scratch: IntArray) -> None:
    """Fill ``units`` with all indices below ``n``, lowest score first, ties to the lowest index: a merge sort."""
    for i in range(n):
        units[i] = i
    run = 1
    while run < n:
        for start in range(0, n, 2 * run):
            i, middle = start, min(start + run, n)
            j, stop = middle, min(start + 2 * run, n)
            for place in range(start, stop):
                left = j >= stop or (i < middle and scores[units[i]] <= scores[units[j]])
                scratch[place] = units[i] if left else units[j]
                i += left
                j += not left
        for i in range(n):
            units[i] = scratch[i]
        run *= 2


def find_bmu(scores: FloatArray, n_winners: int = 1, winner_type: str = "max") -> IntArray:
    """Return the K best matching units of one pre-activation vector (FindBMU, algorithm 1 of the paper).

    As printed, the algorithm overwrites a winner with the maximum and would find it again; here the winners are
    distinct, which is what it says it returns. Ties go to the lowest index.

    >>> import numpy as np
    >>> find_bmu(np.array([0.3, 0.9, 0.1, 0.9]), n_winners=3)
    array([1, 3, 0])
    >>> find_bmu(np.array([0.3, 0.9, 0.1, 0.9]), winner_type="min")
    array([2])
    """
    if winner_type not in ("max", "min"):
        raise ValueError(f"winner_type={winner_type!r} is unknown; use 'max' or 'min'")
    scores = np.ascontiguousarray(scores, dtype=np.float64)
    if scores.ndim != 1 or not 1 <= n_winners <= scores.size:
        raise ValueError(
            f"n_winners={n_winners} of scores with shape {scores.shape}: need a vector of at least that many"
        )
    winners = np.empty(n_winners, np.int64)
    find_winners(scores, winner_type == "max", winners)
    return winners


def encode(winners: IntArray, n_units: int) -> BoolArray:
    """Return the one-hot encoding of a set of winners: Enc(w, d_z) in the paper.

    >>> encode([3, 1], 4).astype(int)
    array([0, 1, 0, 1])
    """
    winners = np.asarray(winners, dtype=np.int64)
    if winners.size and not (winners.min() >= 0 and winners.max() < n_units):
        raise ValueError(f"winners {winners.tolist()} do not all lie in 0..{n_units - 1}")
    code = np.zeros(n_units, np.bool_)
    code[winners] = True
    return code


def similarities(X: FloatArray, prototypes: FloatArray, epsilon: float, out: FloatArray) -> None:
    """Compute the cosine-like similarity of every row of ``X`` to every prototype."""
    _similarities(X, prototypes, epsilon, out, np.empty(len(prototypes)))


@kernel_in_place
def _similarities(X: FloatArray, prototypes: FloatArray, epsilon: float, out: FloatArray, h: FloatArray) -> None:
    n = prototypes.shape[0]
    for r in range(X.shape[0]):
        scale = unit_scale(X[r], epsilon)
        dots(prototypes, 0, n, X[r], h)
        for i in range(n):
            out[r, i] = h[i] * scale


def distances(X: FloatArray, prototypes: FloatArray, p: float, out: FloatArray) -> None:
    """Compute the p-norm distance of every row of ``X`` to every prototype."""
    _distances(X, prototypes, p, out, np.empty(len(prototypes)))


@kernel_in_place
def _distances(X: FloatArray, prototypes: FloatArray, p: float, out: FloatArray, h: FloatArray) -> None:
    n = prototypes.shape[0]
    for r in range(X.shape[0]):
        distance_powers(prototypes, n, X, r, p, h)
        for i in range(n):
            out[r, i] = root(h[i], p)


def most_similar(X: FloatArray, prototypes: FloatArray, competes: BoolArray, epsilon: float, winners: IntArray) -> None:
    """Find the most similar competing prototype of every row (-1 if none competes)."""
    _most_similar(X, prototypes, competes, epsilon, winners, np.empty(len(prototypes)))


@kernel_in_place
def _most_similar(
    X: FloatArray, prototypes: FloatArray, competes: BoolArray, epsilon: float, winners: IntArray, h: FloatArray
) -> None:
    n = prototypes.shape[0]
    for r in range(X.shape[0]):
        scale = unit_scale(X[r], epsilon)
        dots(prototypes, 0, n, X[r], h)
        best, best_score = -1, -np.inf
        for i in range(n):
            if competes[i] and h[i] * scale > best_score:
                best, best_score = i, h[i] * scale
        winners[r] = best


def nearest(X: FloatArray, prototypes: FloatArray, competes: BoolArray, p: float, winners: IntArray) -> None:
    """Find the nearest competing prototype of every row (-1 if none competes)."""
    _nearest(X, prototypes, competes, p, winners, np.empty(len(prototypes)))


@kernel_in_place
def _nearest(
    X: FloatArray, prototypes: FloatArray, competes: BoolArray, p: float, winners: IntArray, h: FloatArray
) -> None:
    n = prototypes.shape[0]
    for r in range(X.shape[0]):
        distance_powers(prototypes, n, X, r, p, h)
        best, best_score = -1, np.inf
        for i in range(n):
            if competes[i] and h[i] < best_score:
                best, best_score = i, h[i]
        winners[r] = best
