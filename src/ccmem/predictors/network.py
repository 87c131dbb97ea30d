"""The network that all predictors share: its state, and the kernels that run it forward and teach it.

A unit owns one row of weights, its bias last: the bias is the weight of a constant input of one that stands behind the
activities of every layer. All rows lie one after the other in one vector, first hidden layer first, output units last
and in the order in which their classes appeared, so that a new class is one more row at the end. Which units of a
hidden layer take part is said by a list per block ("gate"); the rest are neither computed nor changed. A network
without gates has one block with every unit in it.

Activities, deltas and weights are in the type of the data, sums of products come from the lanes of
:mod:`ccmem.competition`, and softmax and activation functions are computed in double.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ccmem._jit import kernel
from ccmem._labels import UNLABELED
from ccmem._typing import FloatArray, IntArray
from ccmem.competition import dot
from ccmem.memory import SEEN, grown

ACTIVATIONS = ("relu", "tanh", "sigmoid")
RELU, TANH, SIGMOID = range(3)
OPTIMIZERS = ("sgd", "adam")
SGD, ADAM, MOMENTUM = range(3)

TAUGHT, CLASSES = 1, 2
"""Places in ``counters`` beside ``SEEN``: how many samples moved the weights, how many classes have appeared."""

OUTPUT_ROW, GATE_ORDER, GATE_DRAW = 1, 2, 3
"""What a random number is for; see :func:`draw`."""

BETA_1, BETA_2, ADAM_EPSILON = 0.9, 0.999, 1e-8


class NetworkState(NamedTuple):
    """All that changes while a network learns."""

    parameters: FloatArray
    """Rows of weights and bias, one per unit."""
    velocity: FloatArray
    """Running mean of the gradient, one entry per parameter (momentum, Adam); empty for plain SGD."""
    power: FloatArray
    """Running mean of the squared gradient (Adam); empty otherwise."""
    sizes: IntArray
    """Number of inputs, then of units in every hidden layer."""
    gates: IntArray
    """Units that take part, ascending: an array of shape (blocks, hidden layers, units), padded with -1."""
    steps: IntArray
    """How often each block was taught."""
    counters: IntArray
    class_rows: IntArray
    """Output unit of every class, in the sorted order of the classes."""
    seed: IntArray
    """Where all random numbers come from."""


class NetworkSettings(NamedTuple):
    activation: int
    optimizer: int
    learning_rate: float
    momentum: float


# Kernels -------------------------------------------------------------------------------------------------------------


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
    sizes = state.sizes
    z[sizes[0] :] = 0.0
    is_open[: sizes[0]] = 1.0
    is_open[sizes[0] :] = 0.0
    place = 0
    for layer in range(sizes.shape[0]):
        if layer > 0:
            for k in range(state.gates.shape[2]):
                unit = state.gates[block, layer - 1, k]
                if unit >= 0:
                    is_open[place + unit] = 1.0
        place += sizes[layer] + 1
        is_open[place - 1] = 1.0
        z[place - 1] = 1.0


@kernel
def forward(state: NetworkState, kind: int, block: int, z: FloatArray, scores: FloatArray) -> None:
    """Fill the hidden activities and the scores (logits) of one sample, whose inputs stand in ``z`` already."""
    sizes = state.sizes
    row, place = 0, 0
    for layer in range(sizes.shape[0] - 1):
        width = sizes[layer] + 1
        inputs = z[place : place + width]
        place += width
        for k in range(state.gates.shape[2]):
            unit = state.gates[block, layer, k]
            if unit < 0:
                break
            start = row + unit * width
            z[place + unit] = activate(kind, dot(state.parameters[start : start + width], inputs))
        row += sizes[layer + 1] * width
    width = sizes[-1] + 1
    inputs = z[place : place + width]
    for c in range(scores.shape[0]):
        start = row + c * width
        scores[c] = dot(state.parameters[start : start + width], inputs)


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
def move_row(
    state: NetworkState, settings: NetworkSettings, start: int, inputs: FloatArray, is_open: FloatArray, delta: float,
    step: int,
) -> None:  # fmt: skip
    """Move the row of weights at ``start`` against its gradient, delta times inputs; closed inputs' weights stay."""
    width = inputs.shape[0]
    row = state.parameters[start : start + width]
    number = row.dtype.type
    if settings.optimizer == SGD:
        change = number(settings.learning_rate * delta)
        for i in range(width):
            row[i] -= change * inputs[i]
        return
    velocity = state.velocity[start : start + width]
    factor = number(delta)
    if settings.optimizer == MOMENTUM:
        keep, rate = number(settings.momentum), number(settings.learning_rate)
        for i in range(width):
            moved = keep * velocity[i] + factor * inputs[i]
            velocity[i] = moved if is_open[i] != 0.0 else velocity[i]
            row[i] = row[i] - rate * moved if is_open[i] != 0.0 else row[i]
        return
    power = state.power[start : start + width]
    beta_1, beta_2, tiny = number(BETA_1), number(BETA_2), number(ADAM_EPSILON)
    gain_1, gain_2 = number(1.0 - BETA_1), number(1.0 - BETA_2)
    rate = number(settings.learning_rate / (1.0 - math.pow(BETA_1, step)))
    shrink = number(1.0 / math.sqrt(1.0 - math.pow(BETA_2, step)))
    for i in range(width):
        gradient = factor * inputs[i]
        first = beta_1 * velocity[i] + gain_1 * gradient
        second = beta_2 * power[i] + gain_2 * gradient * gradient
        velocity[i] = first if is_open[i] != 0.0 else velocity[i]
        power[i] = second if is_open[i] != 0.0 else power[i]
        moved = row[i] - rate * first / (np.sqrt(second) * shrink + tiny)
        row[i] = moved if is_open[i] != 0.0 else row[i]


@kernel
def send_back(row: FloatArray, delta: float, below: FloatArray) -> None:
    """Add a unit's share to the deltas of the layer below it."""
    factor = row.dtype.type(delta)
    for i in range(row.shape[0]):
        below[i] += factor * row[i]


@kernel
def backward(
    state: NetworkState, settings: NetworkSettings, block: int, z: FloatArray, is_open: FloatArray,
    probabilities: FloatArray, deltas: FloatArray,
) -> None:  # fmt: skip
    """Move all weights of the open units; ``probabilities`` holds softmax minus target."""
    sizes = state.sizes
    hidden = sizes.shape[0] - 1
    step = state.steps[block]
    skip_zero = settings.optimizer == SGD
    row, place = 0, 0
    for layer in range(hidden):
        row += sizes[layer + 1] * (sizes[layer] + 1)
        place += sizes[layer] + 1
    deltas[sizes[0] + 1 :] = 0.0
    width = sizes[hidden] + 1
    for c in range(probabilities.shape[0]):
        start = row + c * width
        delta = probabilities[c]
        if hidden > 0:
            send_back(state.parameters[start : start + width], delta, deltas[place : place + width])
        move_row(
            state, settings, start, z[place : place + width], is_open[place : place + width], delta, step
        )  # fmt: skip
    for layer in range(hidden - 1, -1, -1):
        above, width = place, sizes[layer] + 1
        row -= sizes[layer + 1] * width
        place -= width
        for k in range(state.gates.shape[2]):
            unit = state.gates[block, layer, k]
            if unit < 0:
                break
            delta = np.float64(deltas[above + unit]) * slope(settings.activation, np.float64(z[above + unit]))
            if delta == 0.0 and skip_zero:
                continue
            start = row + unit * width
            if layer > 0:
                send_back(state.parameters[start : start + width], delta, deltas[place : place + width])
            move_row(
                state, settings, start, z[place : place + width], is_open[place : place + width], delta, step
            )  # fmt: skip


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


# Making and growing --------------------------------------------------------------------------------------------------


def draw(seed: IntArray, *purpose: int) -> np.random.Generator:
    """Random numbers for one purpose, the same whenever they are asked for.

    What a class or block begins with then depends on the seed and on its number only, and not on what else was drawn
    before it or on how the stream was cut.
    """
    return np.random.default_rng([*seed.tolist(), *purpose])


def new_seed(random_state: Any) -> IntArray:
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31, size=4)
    return np.random.default_rng(random_state).integers(2**63 - 1, size=2)


def _rows(rng: np.random.Generator, n_units: int, n_inputs: int, bound: float, dtype: Any) -> FloatArray:
    """Weights uniform within ``bound``, biases zero."""
    rows = rng.uniform(-bound, bound, (n_units, n_inputs + 1))
    rows[:, -1] = 0.0
    return rows.ravel().astype(dtype)


def new_network(sizes: IntArray, bounds: list[float], optimizer: int, dtype: Any, seed: IntArray) -> NetworkState:
    """A network that knows no class and has no block yet."""
    rng = draw(seed)
    hidden = len(sizes) - 1
    parts = [_rows(rng, sizes[i + 1], sizes[i], bounds[i], dtype) for i in range(hidden)]
    parameters = np.concatenate([np.empty(0, dtype), *parts])
    return NetworkState(
        parameters=parameters,
        velocity=np.zeros(0 if optimizer == SGD else len(parameters), dtype),
        power=np.zeros(len(parameters) if optimizer == ADAM else 0, dtype),
        sizes=sizes.astype(np.int64),
        gates=np.empty((0, hidden, 0), np.int64),
        steps=np.zeros(0, np.int64),
        counters=np.zeros(3, np.int64),
        class_rows=np.empty(0, np.int64),
        seed=seed,
    )


def with_classes(state: NetworkState, class_rows: IntArray, bound: float, optimizer: int) -> NetworkState:
    """The network with an output unit for every class in ``class_rows``; those it has are kept."""
    known, width = len(state.class_rows), int(state.sizes[-1])
    dtype = state.parameters.dtype
    new = [_rows(draw(state.seed, OUTPUT_ROW, row), 1, width, bound, dtype) for row in range(known, len(class_rows))]
    parameters = np.concatenate([state.parameters, *new])
    return state._replace(
        parameters=parameters,
        velocity=state.velocity if optimizer == SGD else grown(state.velocity, len(parameters)),
        power=grown(state.power, len(parameters)) if optimizer == ADAM else state.power,
        class_rows=class_rows,
    )


def unpack(state: NetworkState) -> list[FloatArray]:
    """The rows of every layer as a matrix (units, inputs + 1): views, output units in the order of the classes."""
    layers = []
    start = 0
    for n_inputs, n_units in zip(state.sizes, [*state.sizes[1:], len(state.class_rows)], strict=True):
        stop = start + n_units * (n_inputs + 1)
        layers.append(state.parameters[start:stop].reshape(n_units, n_inputs + 1))
        start = stop
    return layers
