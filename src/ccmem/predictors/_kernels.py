"""The kernels of a network: forward, backward, and the steps of the optimizers. See :mod:`ccmem.predictors.network`."""

from __future__ import annotations

import math

import numpy as np

from ccmem._jit import kernel
from ccmem._labels import UNLABELED
from ccmem._typing import FloatArray, IntArray
from ccmem.competition import dot
from ccmem.memory import SEEN
from ccmem.predictors._vector import add_scaled
from ccmem.predictors.network import ADAM, CLASSES, MOMENTUM, RELU, SGD, TANH, TAUGHT, NetworkSettings, NetworkState

BETA_1, BETA_2, ADAM_EPSILON = 0.9, 0.999, 1e-8


@kernel
def activate(kind: int, h: float) -> float:
    """phi(h)"""
    if kind == RELU:
        return h if h > 0.0 else 0.0
    if kind == TANH:
        return math.tanh(h)
    if h >= 0.0:  # both forms keep the exponential below one
        return 1.0 / (1.0 + math.exp(-h))
    return math.exp(h) / (1.0 + math.exp(h))


@kernel
def slope(kind: int, z: float) -> float:
    """phi'(h), from z = phi(h)."""
    if kind == RELU:
        return 1.0 if z > 0.0 else 0.0
    if kind == TANH:
        return 1.0 - z * z
    return z * (1.0 - z)


@kernel
def open_gates(state: NetworkState, block: int, is_open: FloatArray, z: FloatArray) -> None:
    """Mark the inputs that ``block`` lets through in every layer, and silence all others."""
    sizes, n_open = state.sizes, state.gates.shape[2]
    z[sizes[0] :] = 0.0
    is_open[: sizes[0]] = 1.0
    is_open[sizes[0] :] = 0.0 if n_open > 0 else 1.0
    place = 0
    for layer in range(sizes.shape[0]):
        if layer > 0:
            for k in range(n_open):
                unit = state.gates[block, layer - 1, k]
                if unit >= 0:
                    is_open[place + unit] = 1.0
        place += sizes[layer] + 1
        is_open[place - 1] = 1.0
        z[place - 1] = 1.0


@kernel
def forward(state: NetworkState, kind: int, block: int, z: FloatArray, scores: FloatArray) -> None:
    """Fill the hidden activities and the scores (logits) of one sample, whose inputs stand in ``z`` already."""
    sizes, gates, parameters = state.sizes, state.gates, state.parameters
    row, place = 0, 0
    for layer in range(sizes.shape[0] - 1):
        width, n_units = sizes[layer] + 1, sizes[layer + 1]
        inputs = z[place : place + width]
        place += width
        if gates.shape[2] > 0:
            for k in range(gates.shape[2]):
                unit = gates[block, layer, k]
                if unit < 0:
                    break
                start = row + unit * width
                z[place + unit] = activate(kind, dot(parameters[start : start + width], inputs))
        else:
            units = z[place : place + n_units]
            units[:] = 0.0
            for i in range(width):
                if inputs[i] != 0.0:
                    start = row + i * n_units
                    add_scaled(units, parameters[start : start + n_units], inputs[i])
            for unit in range(n_units):
                units[unit] = activate(kind, np.float64(units[unit]))
        row += n_units * width
    width = sizes[-1] + 1
    inputs = z[place : place + width]
    for c in range(scores.shape[0]):
        start = row + c * width
        scores[c] = dot(parameters[start : start + width], inputs)


@kernel
def softmax(scores: FloatArray) -> bool:
    """Turn scores into probabilities, in place; False if they are not finite."""
    most = -np.inf
    for c in range(scores.shape[0]):
        if not np.isfinite(scores[c]):
            return False
        most = max(most, scores[c])
    total = 0.0
    for c in range(scores.shape[0]):
        scores[c] = math.exp(scores[c] - most)
        total += scores[c]
    for c in range(scores.shape[0]):
        scores[c] /= total
    return True


@kernel
def descend_with_momentum(
    row: FloatArray, velocity: FloatArray, inputs: FloatArray, is_open: FloatArray, factor: float, keep: float,
    rate: float,
) -> None:  # fmt: skip
    """v <- keep * v + gradient, row <- row - rate * v, where the input is open."""
    for i in range(row.shape[0]):
        moved = keep * velocity[i] + factor * inputs[i]
        velocity[i] = moved if is_open[i] != 0.0 else velocity[i]
    for i in range(row.shape[0]):
        row[i] -= rate * is_open[i] * velocity[i]


@kernel
def descend_with_adam(
    row: FloatArray, velocity: FloatArray, power: FloatArray, inputs: FloatArray, is_open: FloatArray, factor: float,
    learning_rate: float, step: int,
) -> None:  # fmt: skip
    """Adam, where the input is open. Two loops: LLVM vectorises neither if they are one, for the arrays it touches."""
    number = row.dtype.type
    keep_1, keep_2, tiny = number(BETA_1), number(BETA_2), number(ADAM_EPSILON)
    gain_1, gain_2 = number(1.0 - BETA_1), number(1.0 - BETA_2)
    rate = number(learning_rate / (1.0 - math.pow(BETA_1, step)))
    shrink = number(1.0 / math.sqrt(1.0 - math.pow(BETA_2, step)))
    for i in range(row.shape[0]):
        gradient = factor * inputs[i]
        first = keep_1 * velocity[i] + gain_1 * gradient
        second = keep_2 * power[i] + gain_2 * gradient * gradient
        velocity[i] = first if is_open[i] != 0.0 else velocity[i]
        power[i] = second if is_open[i] != 0.0 else power[i]
    for i in range(row.shape[0]):
        row[i] -= rate * is_open[i] * velocity[i] / (np.sqrt(power[i]) * shrink + tiny)


@kernel
def move_row(
    state: NetworkState, settings: NetworkSettings, start: int, inputs: FloatArray, is_open: FloatArray, factor: float,
    step: int,
) -> None:  # fmt: skip
    """Move the row at ``start`` against its gradient, factor times inputs; the weights of closed inputs stay."""
    stop = start + inputs.shape[0]
    row = state.parameters[start:stop]
    number = row.dtype.type
    if settings.optimizer == MOMENTUM:
        keep, rate = number(settings.momentum), number(settings.learning_rate)
        descend_with_momentum(row, state.velocity[start:stop], inputs, is_open, number(factor), keep, rate)
    else:
        descend_with_adam(
            row, state.velocity[start:stop], state.power[start:stop], inputs, is_open, number(factor),
            settings.learning_rate, step,
        )  # fmt: skip


@kernel
def scale(vector: FloatArray, factor: float) -> None:
    for i in range(vector.shape[0]):
        vector[i] *= factor


@kernel
def move_layer(
    state: NetworkState, settings: NetworkSettings, row: int, inputs: FloatArray, deltas: FloatArray, step: int
) -> None:
    """The same for a whole hidden layer without gates, from ``row`` on: inputs of zero only let the means decay."""
    n_units = deltas.shape[0]
    stop = row + inputs.shape[0] * n_units
    weights, velocity = state.parameters[row:stop], state.velocity[row:stop]
    number, adam = weights.dtype.type, settings.optimizer == ADAM
    scale(velocity, number(BETA_1 if adam else settings.momentum))
    gain = 1.0 - BETA_1 if adam else 1.0
    for i in range(inputs.shape[0]):
        if inputs[i] != 0.0:
            start = i * n_units
            add_scaled(velocity[start : start + n_units], deltas, number(gain * np.float64(inputs[i])))
    if not adam:
        add_scaled(weights, velocity, number(-settings.learning_rate))
        return
    power = state.power[row:stop]
    scale(power, number(BETA_2))
    gain_2, tiny = number(1.0 - BETA_2), number(ADAM_EPSILON)
    for i in range(inputs.shape[0]):
        if inputs[i] != 0.0:
            squares = power[i * n_units : (i + 1) * n_units]
            for j in range(n_units):
                gradient = inputs[i] * deltas[j]
                squares[j] += gain_2 * gradient * gradient
    rate = number(settings.learning_rate / (1.0 - math.pow(BETA_1, step)))
    shrink = number(1.0 / math.sqrt(1.0 - math.pow(BETA_2, step)))
    for i in range(weights.shape[0]):
        weights[i] -= rate * velocity[i] / (np.sqrt(power[i]) * shrink + tiny)


@kernel
def teach_outputs(
    state: NetworkState, settings: NetworkSettings, block: int, row: int, inputs: FloatArray, is_open: FloatArray,
    errors: FloatArray, below: FloatArray,
) -> None:  # fmt: skip
    """Send the errors back to the layer ``below``, then move the output units."""
    number, width = below.dtype.type, inputs.shape[0]
    for c in range(errors.shape[0]):
        start = row + c * width
        weights = state.parameters[start : start + width]
        add_scaled(below, weights, number(errors[c]))
        if settings.optimizer == SGD:
            add_scaled(weights, inputs, number(-settings.learning_rate * errors[c]))
        else:
            move_row(state, settings, start, inputs, is_open, errors[c], state.steps[block])


@kernel
def teach_open_units(
    state: NetworkState, settings: NetworkSettings, block: int, layer: int, row: int, inputs: FloatArray,
    is_open: FloatArray, deltas: FloatArray, below: FloatArray,
) -> None:  # fmt: skip
    """The same for the open units of a hidden layer with gates: a row per unit."""
    number, width = below.dtype.type, inputs.shape[0]
    plain = settings.optimizer == SGD
    for k in range(state.gates.shape[2]):
        unit = state.gates[block, layer, k]
        if unit < 0:
            break
        delta = deltas[unit]
        if plain and delta == 0.0:
            continue
        start = row + unit * width
        weights = state.parameters[start : start + width]
        if layer > 0:
            add_scaled(below, weights, delta)
        if plain:
            add_scaled(weights, inputs, number(-settings.learning_rate * np.float64(delta)))
        else:
            move_row(state, settings, start, inputs, is_open, delta, state.steps[block])


@kernel
def teach_all_units(
    state: NetworkState, settings: NetworkSettings, block: int, layer: int, row: int, inputs: FloatArray,
    deltas: FloatArray, below: FloatArray,
) -> None:  # fmt: skip
    """The same for a hidden layer without gates: a row per input."""
    number, n_units = below.dtype.type, deltas.shape[0]
    plain = settings.optimizer == SGD
    for i in range(inputs.shape[0]):
        goes_back = layer > 0 and slope(settings.activation, np.float64(inputs[i])) != 0.0
        if plain and not goes_back and inputs[i] == 0.0:
            continue
        start = row + i * n_units
        weights = state.parameters[start : start + n_units]
        if goes_back:
            below[i] = dot(weights, deltas)
        if plain:
            add_scaled(weights, deltas, number(-settings.learning_rate * np.float64(inputs[i])))
    if not plain:
        move_layer(state, settings, row, inputs, deltas, state.steps[block])


@kernel
def backward(
    state: NetworkState, settings: NetworkSettings, block: int, z: FloatArray, is_open: FloatArray, errors: FloatArray,
    deltas: FloatArray,
) -> None:  # fmt: skip
    """Move all weights between open units; ``errors`` are softmax minus target."""
    sizes = state.sizes
    hidden = sizes.shape[0] - 1
    row, place = 0, 0
    for layer in range(hidden):
        row += sizes[layer + 1] * (sizes[layer] + 1)
        place += sizes[layer] + 1
    deltas[:] = 0.0
    end = place + sizes[hidden] + 1
    teach_outputs(state, settings, block, row, z[place:end], is_open[place:end], errors, deltas[place:end])
    for layer in range(hidden - 1, -1, -1):
        n_units = sizes[layer + 1]
        for unit in range(place, place + n_units):
            deltas[unit] = np.float64(deltas[unit]) * slope(settings.activation, np.float64(z[unit]))
        above, own = place, deltas[place : place + n_units]
        row -= n_units * (sizes[layer] + 1)
        place -= sizes[layer] + 1
        inputs, below = z[place:above], deltas[place:above]
        if state.gates.shape[2] > 0:
            teach_open_units(state, settings, block, layer, row, inputs, is_open[place:above], own, below)
        else:
            teach_all_units(state, settings, block, layer, row, inputs, own, below)


@kernel
def learn(state: NetworkState, settings: NetworkSettings, X: FloatArray, codes: IntArray, blocks: IntArray) -> int:
    """Teach rows of ``X`` in order, each to the units of its block; return how many, fewer than all if it diverged.

    Rows without a label, or with a negative block, are passed over. A class takes part from its first sample on.
    """
    length = state.sizes.sum() + state.sizes.shape[0]
    z, is_open, deltas = np.zeros(length, X.dtype), np.zeros(length, X.dtype), np.zeros(length, X.dtype)
    scores = np.zeros(state.class_rows.shape[0])
    current = -1
    for r in range(X.shape[0]):
        state.counters[SEEN] += 1
        code, block = codes[r], blocks[r]
        state.counters[CLASSES] = max(state.counters[CLASSES], code + 1)
        if code == UNLABELED or block < 0:
            continue
        if block != current:
            open_gates(state, block, is_open, z)
            current = block
        z[: X.shape[1]] = X[r]
        probabilities = scores[: state.counters[CLASSES]]
        forward(state, settings.activation, block, z, probabilities)
        if not softmax(probabilities):
            return r
        probabilities[code] -= 1.0
        state.counters[TAUGHT] += 1
        state.steps[block] += 1
        backward(state, settings, block, z, is_open, probabilities, deltas)
    return X.shape[0]


@kernel
def predict_rows(state: NetworkState, activation: int, X: FloatArray, blocks: IntArray, out: FloatArray) -> int:
    """Fill ``out`` with the probability of every class, in sorted order; return how many rows could be answered."""
    length = state.sizes.sum() + state.sizes.shape[0]
    z, is_open = np.zeros(length, X.dtype), np.zeros(length, X.dtype)
    scores = np.zeros(state.class_rows.shape[0])
    current = -1
    for r in range(X.shape[0]):
        if blocks[r] != current:
            current = blocks[r]
            open_gates(state, current, is_open, z)
        z[: X.shape[1]] = X[r]
        forward(state, activation, current, z, scores)
        if not softmax(scores):
            return r
        for c in range(scores.shape[0]):
            out[r, c] = scores[state.class_rows[c]]
    return X.shape[0]
