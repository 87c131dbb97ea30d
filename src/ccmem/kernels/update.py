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


@kernel_in_place
def hebbian_move(prototype: FloatArray, x: FloatArray, rate: float) -> None:
    """Move a prototype: M <- M + rate (x - M), in place. A rate times a posterior gives the soft move of the iGMM."""
    number = prototype.dtype.type
    step, zero, least = number(rate), number(0.0), number(2.0**-63 if prototype.itemsize == 4 else 2.0**-511)
    for i in range(prototype.shape[0]):
        moved = prototype[i] + step * (x[i] - prototype[i])
        prototype[i] = zero if abs(moved) < least else moved


@kernel_in_place
def renormalise(prototype: FloatArray, epsilon: float) -> None:
    """Scale ``prototype`` to unit length; a zero vector stays zero, even if ``epsilon`` is 0."""
    length = np.sqrt(dot(prototype, prototype)) + epsilon
    if length > 0.0:
        shrink = prototype.dtype.type(1.0 / length)
        for i in range(prototype.shape[0]):
            prototype[i] = prototype[i] * shrink


@kernel_in_place
def renormalising_move(prototype: FloatArray, x: FloatArray, scale: float, rate: float, epsilon: float) -> None:
    """Move a prototype: M <- ((1 - rate) M + rate x') / (|...| + epsilon), in place, with x' = scale * x."""
    number = prototype.dtype.type
    keep, gain, zero = number(1.0 - rate), number(rate * scale), number(0.0)
    least = number(2.0**-63 if prototype.itemsize == 4 else 2.0**-511)
    for i in range(prototype.shape[0]):
        moved = keep * prototype[i] + gain * x[i]
        prototype[i] = zero if abs(moved) < least else moved
    renormalise(prototype, epsilon)


@kernel_in_place
def copy_scaled(prototype: FloatArray, x: FloatArray, scale: float) -> None:
    """Copy a scaled sample: M <- scale * x, in place."""
    factor = prototype.dtype.type(scale)
    for i in range(prototype.shape[0]):
        prototype[i] = factor * x[i]


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
