"""State of the online networks: initial weights, layout, and growth with new classes.

All weights are in one vector, first hidden layer first. The bias of a unit is the weight of a constant input 1 that
follows the activations of every layer. Output units come last, one row of weights each, in the order in which their
classes appeared: a new class appends a row. Hidden layers have one of two layouts:

* with gates, a list of units per block, and one row per unit: only units of the current block are computed or moved;
* without gates, one row per *input*, so that an input of zero (a black pixel, an inactive ReLU) costs no time. Rows are
  padded with zeros to whole cache lines, so that no two rows share a cache line.

Activations, deltas and weights have the type of the data; sums have a fixed order (input by input, or in the lanes of
:mod:`ccmem.kernels.competition`); softmax and activation functions are computed in double precision.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable

from ccmem.core.allocation import CACHE_LINE, aligned, check_size, grown
from ccmem.core.typing import BoolArray, FloatArray, IntArray

ACTIVATIONS = ("relu", "tanh", "sigmoid")
RELU, TANH, SIGMOID = range(3)
OPTIMIZERS = ("sgd", "adam")
SGD, ADAM, MOMENTUM = range(3)

TAUGHT, CURRENT, STAY, SINCE = 1, 2, 3, 4
"""Indices into ``counters`` after ``SEEN``: samples that changed the weights, current block (-1: none yet), updates of
the current block since it was entered, and updates since its weights were last saved.
"""

OUTPUT_ROW, GATE_ORDER, GATE_DRAW = 1, 2, 3
"""Purposes of random numbers; see :func:`draw`."""


class NetworkState(NamedTuple):
    """Complete state that changes while a network learns."""

    parameters: FloatArray
    """Weights and biases of all layers; :func:`unpack` splits them."""
    velocity: FloatArray
    """Running mean of the gradient, one entry per parameter (momentum, Adam); empty for plain SGD."""
    power: FloatArray
    """Running mean of the squared gradient (Adam); empty otherwise."""
    sizes: IntArray
    """Number of inputs, then number of units of every hidden layer."""
    gates: IntArray
    """Open units, ascending: an array of shape (blocks, hidden layers, units), padded with -1. The last axis is empty
    in a network without gates, which has one block.
    """
    steps: IntArray
    """Number of updates of each block."""
    counters: IntArray
    class_rows: IntArray
    """Output unit of every class, in the sorted order of the classes."""
    membership: BoolArray
    """Output units that each block can predict, one row per block: classes that it has learned or that were announced.
    Row 0 is the initial row of new blocks, so block b has row 1 + b.
    """
    kept: FloatArray
    """Two earlier copies of ``parameters``, the older first, restored when the memory leaves the current block; empty
    if undoing is disabled.
    """
    kept_membership: BoolArray
    """The current block's row of ``membership`` at the time of each copy in ``kept``."""
    seed: IntArray
    """Seed of all random numbers."""


class NetworkSettings(NamedTuple):
    activation: int
    optimizer: int
    learning_rate: float
    momentum: float
    undo: int


def draw(seed: IntArray, *purpose: int) -> np.random.Generator:
    """Return random numbers for one purpose, reproducible at any time.

    The initial values of a class or block depend only on the seed and on its number, not on earlier draws or on chunk
    boundaries.
    """
    return np.random.default_rng([*seed.tolist(), *purpose])


def new_seed(random_state: Any) -> IntArray:
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31, size=4)
    return np.random.default_rng(random_state).integers(2**63 - 1, size=2)


@register_jitable  # type: ignore[untyped-decorator]
def hidden_shape(sizes: IntArray, layer: int, gated: bool) -> tuple[int, int]:
    """Return the number of rows of a hidden layer, and the number of floats per row."""
    n_inputs, n_units = sizes[layer] + 1, sizes[layer + 1]
    line = CACHE_LINE // 4
    return (n_units, n_inputs) if gated else (n_inputs, (n_units + line - 1) // line * line)


def _weights(rng: np.random.Generator, n_units: int, n_inputs: int, bound: float, dtype: Any) -> FloatArray:
    """Return one row per unit: weights uniform within ``bound``, and a bias of 0."""
    rows = rng.uniform(-bound, bound, (n_units, n_inputs + 1))
    rows[:, -1] = 0.0
    return rows.astype(dtype)


def new_network(
    sizes: IntArray, bounds: list[float], optimizer: int, dtype: Any, seed: IntArray, gated: bool, n_kept: int
) -> NetworkState:
    """Return a network without classes and, with gates, without blocks."""
    widths = sizes.tolist()
    n_weights = sum((a + 1) * b for a, b in pairwise(widths))
    check_size(n_weights * 8, f"{n_weights:,} weights")
    rng = draw(seed)
    hidden = len(sizes) - 1
    layers = [_weights(rng, sizes[i + 1], sizes[i], bounds[i], dtype) for i in range(hidden)]
    if not gated:
        layers = [np.pad(w.T, ((0, 0), (0, hidden_shape(sizes, i, gated)[1] - len(w)))) for i, w in enumerate(layers)]
    parameters = np.concatenate([np.empty(0, dtype), *(w.ravel() for w in layers)])
    return NetworkState(
        parameters=parameters,
        velocity=np.zeros(0 if optimizer == SGD else len(parameters), dtype),
        power=np.zeros(len(parameters) if optimizer == ADAM else 0, dtype),
        sizes=sizes.astype(np.int64),
        gates=np.empty((0 if gated else 1, hidden, 0), np.int64),
        steps=np.zeros(0 if gated else 1, np.int64),
        counters=np.array([0, 0, -1, 0, 0]),
        class_rows=np.empty(0, np.int64),
        membership=np.empty((1 if gated else 2, 0), np.bool_),
        kept=np.repeat(parameters[None], n_kept, axis=0),
        kept_membership=np.empty((n_kept, 0), np.bool_),
        seed=seed,
    )


def with_classes(state: NetworkState, class_rows: IntArray, bound: float, optimizer: int) -> NetworkState:
    """Return the network with an output unit for every class in ``class_rows``; existing units are kept."""
    known, width = len(state.class_rows), int(state.sizes[-1])
    dtype = state.parameters.dtype
    rngs = [draw(state.seed, OUTPUT_ROW, row) for row in range(known, len(class_rows))]
    more = np.concatenate([_weights(rng, 1, width, bound, dtype)[0] for rng in rngs])
    parameters = np.concatenate([state.parameters, more])
    no_member = ((0, 0), (0, len(rngs)))
    return state._replace(
        parameters=aligned(parameters),
        velocity=state.velocity if optimizer == SGD else grown(state.velocity, len(parameters)),
        power=grown(state.power, len(parameters)) if optimizer == ADAM else state.power,
        class_rows=class_rows,
        membership=np.pad(state.membership, no_member),
        kept=np.hstack([state.kept, np.repeat(more[None], len(state.kept), axis=0)]),
        kept_membership=np.pad(state.kept_membership, no_member),
    )


def unpack(state: NetworkState) -> list[FloatArray]:
    """Return the weights of every layer as views of shape (units, inputs + 1), biases last, outputs by appearance."""
    layers, start = [], 0
    gated = state.gates.shape[2] > 0
    for layer, n_units in enumerate(state.sizes[1:]):
        n_rows, stride = hidden_shape(state.sizes, layer, gated)
        part = state.parameters[start : start + n_rows * stride].reshape(n_rows, stride)
        layers.append(part if gated else part[:, :n_units].T)
        start += part.size
    return [*layers, state.parameters[start:].reshape(len(state.class_rows), -1)]
