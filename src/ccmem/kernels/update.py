"""Updates: the Hebbian move, the renormalising move and the bookkeeping of a win.

Moves are computed in the type of the data; rates and scales are doubles, rounded once. Numbers whose square would be
subnormal (below 2^-63 in float32, 2^-511 in float64) become 0: weights of inputs that are always 0 would otherwise
shrink until they are subnormal, which slows processors down many times.
"""

from __future__ import annotations

import numpy as np

from ccmem.core.typing import FloatArray, IntArray
from ccmem.kernels.competition import dot
from ccmem.kernels.jit import kernel_in_place
from ccmem.kernels.lanes import blend

TINY = 1e-8
"""Added to the root of a second moment, which may be 0."""


@kernel_in_place
def hebbian_move(prototype: FloatArray, x: FloatArray, rate: float) -> None:
    """Move a prototype: M <- M + rate (x - M), in place. A rate times a posterior gives the soft move of the iGMM."""
    number = prototype.dtype.type
    step, zero, least = number(rate), number(0.0), number(2.0**-63 if prototype.itemsize == 4 else 2.0**-511)
    for i in range(prototype.shape[0]):
        moved = prototype[i] + step * (x[i] - prototype[i])
        prototype[i] = zero if abs(moved) < least else moved


@kernel_in_place
def _shrink(prototype: FloatArray, squared_length: float, epsilon: float) -> None:
    length = np.sqrt(squared_length) + epsilon
    if length > 0.0:
        shrink = prototype.dtype.type(1.0 / length)
        for i in range(prototype.shape[0]):
            prototype[i] = prototype[i] * shrink


@kernel_in_place
def renormalising_move(prototype: FloatArray, x: FloatArray, scale: float, rate: float, epsilon: float) -> None:
    """Move a prototype: M <- ((1 - rate) M + rate x') / (|...| + epsilon), in place, with x' = scale * x."""
    keep = prototype.dtype.type(1.0 - rate)
    gain = prototype.dtype.type(rate * scale)
    _shrink(prototype, blend(prototype, x, keep, gain), epsilon)


@kernel_in_place
def renormalise(prototype: FloatArray, epsilon: float) -> None:
    """Scale ``prototype`` to unit length; a zero vector stays zero, even if ``epsilon`` is 0."""
    _shrink(prototype, dot(prototype, prototype), epsilon)


@kernel_in_place
def copy_scaled(prototype: FloatArray, x: FloatArray, scale: float) -> None:
    """Copy a scaled sample: M <- scale * x, in place."""
    factor = prototype.dtype.type(scale)
    for i in range(prototype.shape[0]):
        prototype[i] = factor * x[i]


@kernel_in_place
def adam_move(
    M: FloatArray,
    first: FloatArray,
    second: FloatArray,
    x: FloatArray,
    rate: float,
    beta_1: float,
    beta_2: float,
    step: float,
) -> None:
    """Move a prototype by Adam: M <- M + |rate| m' / (sqrt(v') + e), with moments m, v of sign(rate) (x - M)."""
    number = M.dtype.type
    keep_1, keep_2, sign = number(beta_1), number(beta_2), number(1.0 if rate >= 0.0 else -1.0)
    one, tiny = number(1.0), number(TINY)
    size = number(abs(rate) / (1.0 - beta_1**step))
    scale = number(1.0 / np.sqrt(1.0 - beta_2**step))
    for i in range(M.shape[0]):
        gradient = sign * (x[i] - M[i])
        first[i] = keep_1 * first[i] + (one - keep_1) * gradient
        second[i] = keep_2 * second[i] + (one - keep_2) * gradient * gradient
        M[i] += size * first[i] / (number(np.sqrt(second[i])) * scale + tiny)


@kernel_in_place
def rmsprop_move(M: FloatArray, second: FloatArray, x: FloatArray, rate: float, beta_2: float) -> None:
    """Move a prototype by RMSprop: M <- M + rate (x - M) / (sqrt(v) + e), v the running mean of (x - M)^2."""
    number = M.dtype.type
    keep, size, one, tiny = number(beta_2), number(rate), number(1.0), number(TINY)
    for i in range(M.shape[0]):
        gradient = x[i] - M[i]
        second[i] = keep * second[i] + (one - keep) * gradient * gradient
        M[i] += size * gradient / (number(np.sqrt(second[i])) + tiny)


@kernel_in_place
def complement(x: FloatArray, out: FloatArray) -> None:
    """Compute out = 1 - x, the second half of a complement coded row."""
    one = x.dtype.type(1.0)
    for i in range(x.shape[0]):
        out[i] = one - x[i]


@kernel_in_place
def shrink_to(weights: FloatArray, x: FloatArray, rate: float) -> None:
    """Shrink weights: w <- rate (x min w) + (1 - rate) w, in place."""
    gain, keep = weights.dtype.type(rate), weights.dtype.type(1.0 - rate)
    for i in range(weights.shape[0]):
        lesser = x[i] if x[i] < weights[i] else weights[i]  # min() of Python prevents vectorisation
        weights[i] = gain * lesser + keep * weights[i]


@kernel_in_place
def count_win(rates: FloatArray, wins: IntArray, unit: int, decay: float) -> None:
    """Count a win of ``unit`` and decay its rate."""
    rates[unit] *= decay
    wins[unit] += 1
