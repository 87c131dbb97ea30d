"""Update steps of the optimizers that average gradients: momentum and Adam. Plain SGD does not use this module."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ccmem.core.typing import FloatArray, IntArray
from ccmem.kernels.jit import kernel_in_place
from ccmem.readout._vector import add_to_rows
from ccmem.readout.network import ADAM, NetworkSettings, NetworkState

BETA_1, BETA_2, ADAM_EPSILON = 0.9, 0.999, 1e-8
FADED = 2.0**-63
"""Threshold below which running means of gradients become 0. The mean of an input that is always 0 would otherwise
decay to subnormal numbers, which are about a hundred times slower to process.
"""


@kernel_in_place
def fade(means: FloatArray, keep: float) -> None:
    """Decay running means of gradients."""
    number = means.dtype.type
    keep, faded, zero = number(keep), number(FADED), number(0.0)
    for i in range(means.shape[0]):
        less = keep * means[i]
        means[i] = less if abs(less) >= faded else zero


@kernel_in_place
def adam_scales(number: Any, learning_rate: float, step: int) -> tuple[Any, Any, Any]:
    """Return the bias corrections of Adam's running means, and the constant that prevents division by 0."""
    n = float(step)  # with an integer exponent numba multiplies repeatedly, which rounds differently from Python
    rate, shrink = learning_rate / (1.0 - math.pow(BETA_1, n)), 1.0 / math.sqrt(1.0 - math.pow(BETA_2, n))
    return number(rate), number(shrink), number(ADAM_EPSILON)


@kernel_in_place
def move_row(
    state: NetworkState,
    settings: NetworkSettings,
    start: int,
    inputs: FloatArray,
    is_open: FloatArray,
    factor: float,
    step: int,
) -> None:
    """Update the row at ``start`` against its gradient (factor times inputs); weights of closed inputs are unchanged.

    Each loop touches few arrays, because LLVM does not vectorise loops over many arrays.
    """
    stop = start + inputs.shape[0]
    row, velocity = state.parameters[start:stop], state.velocity[start:stop]
    number, adam = row.dtype.type, settings.optimizer == ADAM
    factor, faded, zero = number(factor), number(FADED), number(0.0)
    keep, gain = number(BETA_1 if adam else settings.momentum), number(1.0 - BETA_1 if adam else 1.0)
    for i in range(row.shape[0]):
        mean = keep * velocity[i] + gain * (factor * inputs[i])
        mean = mean if abs(mean) >= faded else zero
        velocity[i] = mean if is_open[i] != 0.0 else velocity[i]
    if not adam:
        rate = number(settings.learning_rate)
        for i in range(row.shape[0]):
            row[i] -= rate * is_open[i] * velocity[i]
        return
    power, keep, gain = state.power[start:stop], number(BETA_2), number(1.0 - BETA_2)
    for i in range(row.shape[0]):
        gradient = factor * inputs[i]
        mean = keep * power[i] + gain * (gradient * gradient)
        mean = mean if mean >= faded else zero
        power[i] = mean if is_open[i] != 0.0 else power[i]
    rate, shrink, tiny = adam_scales(number, settings.learning_rate, step)
    for i in range(row.shape[0]):
        row[i] -= rate * is_open[i] * velocity[i] / (np.sqrt(power[i]) * shrink + tiny)


@kernel_in_place
def move_layer(
    state: NetworkState,
    settings: NetworkSettings,
    start: int,
    stop: int,
    stride: int,
    deltas: FloatArray,
    rows: IntArray,
    inputs: FloatArray,
    count: int,
    step: int,
) -> None:
    """Update a whole layer without gates; inputs that are not listed are 0, so their running means only decay."""
    weights, velocity = state.parameters[start:stop], state.velocity[start:stop]
    number, adam = weights.dtype.type, settings.optimizer == ADAM
    fade(velocity, BETA_1 if adam else settings.momentum)
    if not adam:
        add_to_rows(deltas, velocity, rows, inputs, stride, count)
        rate = number(settings.learning_rate)
        for i in range(weights.shape[0]):
            weights[i] -= rate * velocity[i]
        return
    power = state.power[start:stop]
    fade(power, BETA_2)
    gain_1, gain_2, n_units = number(1.0 - BETA_1), number(1.0 - BETA_2), deltas.shape[0]
    for k in range(count):
        first = rows[k] * stride
        means, squares = velocity[first : first + n_units], power[first : first + n_units]
        for j in range(n_units):
            means[j] += gain_1 * (inputs[k] * deltas[j])
        for j in range(n_units):
            gradient = inputs[k] * deltas[j]
            squares[j] += gain_2 * (gradient * gradient)
    rate, shrink, tiny = adam_scales(number, settings.learning_rate, step)
    for i in range(weights.shape[0]):
        weights[i] -= rate * velocity[i] / (np.sqrt(power[i]) * shrink + tiny)
