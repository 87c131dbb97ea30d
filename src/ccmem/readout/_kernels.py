"""Compiled kernels of the networks: forward, backward, learn and predict. See :mod:`ccmem.readout.network`."""

from __future__ import annotations

from functools import lru_cache
from threading import get_ident
from typing import Any, NamedTuple

import numpy as np

from ccmem.core.codes import UNLABELED
from ccmem.core.state import SEEN
from ccmem.core.typing import FloatArray, IntArray
from ccmem.kernels.competition import dot
from ccmem.kernels.jit import kernel_in_place
from ccmem.readout._optimizers import move_layer, move_row
from ccmem.readout._vector import activate, activate_all, add_rows, add_to_rows, copy, fill, multiply_by_slope, softmax
from ccmem.readout.network import CURRENT, RELU, SGD, SINCE, STAY, TAUGHT, NetworkSettings, NetworkState, hidden_shape


class Work(NamedTuple):
    """Scratch space for one sample: the inputs of all layers in one vector, each layer followed by a constant 1."""

    z: FloatArray
    is_open: FloatArray
    """1 for inputs that are open in the current block, 0 for the others."""
    deltas: FloatArray
    rows: IntArray
    """Per layer, the indices of the weight rows to visit, stored in parallel to the inputs."""
    factors: FloatArray
    """Factor of each row listed in ``rows``."""
    counts: IntArray
    """Length of each list in ``rows``; the last entry is the length of ``members``."""
    members: IntArray
    """Output units of the classes that the current block can predict."""
    gains: FloatArray
    """Factors of the list that is being processed."""
    steps: FloatArray
    scores: FloatArray


def work_of(state: NetworkState) -> Work:
    """Return the scratch space of this thread for a network."""
    n_layers = len(state.sizes)
    return _work(
        get_ident(), n_layers, int(state.sizes.sum()) + n_layers, len(state.class_rows), state.parameters.dtype
    )


@lru_cache(maxsize=4)
def _work(thread: int, n_layers: int, n_inputs: int, n_classes: int, dtype: Any) -> Work:
    """Allocate scratch space; allocations and array expressions in the kernels would double their compile time."""
    return Work(
        z=np.zeros(n_inputs, dtype),
        is_open=np.zeros(n_inputs, dtype),
        deltas=np.zeros(n_inputs, dtype),
        rows=np.zeros(n_inputs, np.int64),
        factors=np.zeros(n_inputs, dtype),
        counts=np.zeros(n_layers, np.int64),
        members=np.zeros(n_classes, np.int64),
        gains=np.zeros(n_inputs + n_classes, dtype),
        steps=np.zeros(n_inputs + n_classes, dtype),
        scores=np.zeros(n_classes),
    )


@kernel_in_place
def open_gates(state: NetworkState, block: int, work: Work) -> None:
    """Mark the open inputs of ``block`` in every layer, and set all others to 0."""
    sizes, n_open = state.sizes, state.gates.shape[2]
    fill(work.z[sizes[0] :], 0.0)
    fill(work.is_open[: sizes[0]], 1.0)
    fill(work.is_open[sizes[0] :], 0.0 if n_open > 0 else 1.0)
    place = 0
    for layer in range(sizes.shape[0]):
        if layer > 0:
            for k in range(n_open):
                unit = state.gates[block, layer - 1, k]
                if unit >= 0:
                    work.is_open[place + unit] = 1.0
        place += sizes[layer] + 1
        work.is_open[place - 1] = 1.0
        work.z[place - 1] = 1.0


@kernel_in_place
def list_members(state: NetworkState, block: int, work: Work) -> None:
    """List the classes that ``block`` can predict; all known classes if it has learned none."""
    count = 0
    for row in range(work.members.shape[0]):
        if state.membership[1 + block, row]:
            work.members[count] = row
            count += 1
    if count == 0:
        for row in range(work.members.shape[0]):
            work.members[row] = row
        count = work.members.shape[0]
    work.counts[-1] = count


@kernel_in_place
def list_inputs(inputs: FloatArray, rows: IntArray, factors: FloatArray) -> int:
    """List the nonzero inputs without a branch, which would be mispredicted because positions are irregular."""
    count = 0
    for i in range(inputs.shape[0]):
        rows[count] = i
        factors[count] = inputs[i]
        count += int(inputs[i] != 0.0)
    return count


@kernel_in_place
def forward(state: NetworkState, kind: int, block: int, work: Work) -> None:
    """Compute the hidden activations and the scores (logits) of one sample, whose inputs are already in ``z``."""
    sizes, gates, z = state.sizes, state.gates, work.z
    gated = gates.shape[2] > 0
    start, place = 0, 0
    for layer in range(sizes.shape[0] - 1):
        above = place + sizes[layer] + 1
        inputs, units = z[place:above], z[above : above + sizes[layer + 1]]
        n_rows, stride = hidden_shape(sizes, layer, gated)
        weights = state.parameters[start : start + n_rows * stride]
        if gated:
            for k in range(gates.shape[2]):
                unit = gates[block, layer, k]
                if unit < 0:
                    break
                row = weights[unit * stride : (unit + 1) * stride]
                units[unit] = activate(kind, dot(row, inputs))
        else:
            rows, factors = work.rows[place:above], work.factors[place:above]
            work.counts[layer] = list_inputs(inputs, rows, factors)
            fill(units, 0.0)
            add_rows(units, weights, rows, factors, stride, work.counts[layer])
            activate_all(kind, units)
        start += n_rows * stride
        place = above
    width = sizes[-1] + 1
    for k in range(work.counts[-1]):
        row = state.parameters[start + work.members[k] * width : start + (work.members[k] + 1) * width]
        work.scores[k] = dot(row, z[place : place + width])


@kernel_in_place
def teach_rows(
    state: NetworkState,
    settings: NetworkSettings,
    block: int,
    start: int,
    place: int,
    width: int,
    rows: IntArray,
    count: int,
    goes_back: bool,
    work: Work,
) -> None:
    """Propagate the deltas of units (``gains``) back to their inputs at ``place``, then move the units by ``steps``."""
    inputs, weights = work.z[place : place + width], state.parameters[start:]
    if goes_back:
        add_rows(work.deltas[place : place + width], weights, rows, work.gains, width, count)
    if settings.optimizer == SGD:
        add_to_rows(inputs, weights, rows, work.steps, width, count)
    else:
        is_open = work.is_open[place : place + width]
        for k in range(count):
            row = start + rows[k] * width
            move_row(state, settings, row, inputs, is_open, work.gains[k], state.steps[block])


@kernel_in_place
def teach_outputs(
    state: NetworkState, settings: NetworkSettings, block: int, start: int, place: int, work: Work
) -> None:
    """Update the output units; their weights begin at ``start``, their inputs at ``place``."""
    width, count = state.sizes[-1] + 1, work.counts[-1]
    for k in range(count):
        work.gains[k] = work.scores[k]
        work.steps[k] = -settings.learning_rate * work.scores[k]
    teach_rows(state, settings, block, start, place, width, work.members, count, True, work)


@kernel_in_place
def teach_open_units(
    state: NetworkState, settings: NetworkSettings, block: int, layer: int, start: int, place: int, work: Work
) -> None:
    """Update the open units of a gated hidden layer; weights are stored as one row per unit."""
    _, width = hidden_shape(state.sizes, layer, True)
    plain, count = settings.optimizer == SGD, 0
    for k in range(state.gates.shape[2]):
        unit = state.gates[block, layer, k]
        if unit < 0:
            break
        delta = work.deltas[place + width + unit]
        if plain and delta == 0.0:
            continue
        work.rows[count] = unit
        work.gains[count] = delta
        work.steps[count] = -settings.learning_rate * np.float64(delta)
        count += 1
    teach_rows(state, settings, block, start, place, width, work.rows, count, layer > 0, work)


@kernel_in_place
def teach_all_units(
    state: NetworkState, settings: NetworkSettings, block: int, layer: int, start: int, place: int, work: Work
) -> None:
    """Update a hidden layer without gates, stored as one row per input; the nonzero inputs are already listed."""
    n_units, count = state.sizes[layer + 1], work.counts[layer]
    width, stride = hidden_shape(state.sizes, layer, False)
    above, stop = place + width, start + width * stride
    below, own = work.deltas[place:above], work.deltas[above : above + n_units]
    rows, factors = work.rows[place:above], work.factors[place:above]
    weights = state.parameters[start:stop]
    if layer > 0:
        only_listed = settings.activation == RELU  # the derivative of all other units is 0
        for k in range(count if only_listed else width):
            i = rows[k] if only_listed else k
            below[i] = dot(weights[i * stride : i * stride + n_units], own)
    if settings.optimizer == SGD:
        for k in range(count):
            work.steps[k] = -settings.learning_rate * np.float64(factors[k])
        add_to_rows(own, weights, rows, work.steps, stride, count)
    else:
        move_layer(state, settings, start, stop, stride, own, rows, factors, count, state.steps[block])


@kernel_in_place
def backward(state: NetworkState, settings: NetworkSettings, block: int, work: Work) -> None:
    """Update all weights between open units; ``scores`` hold softmax minus target."""
    sizes, deltas = state.sizes, work.deltas
    hidden, gated = sizes.shape[0] - 1, state.gates.shape[2] > 0
    start, place = 0, 0
    for layer in range(hidden):
        n_rows, stride = hidden_shape(sizes, layer, gated)
        start += n_rows * stride
        place += sizes[layer] + 1
    fill(deltas, 0.0)
    teach_outputs(state, settings, block, start, place, work)
    for layer in range(hidden - 1, -1, -1):
        n_units = sizes[layer + 1]
        multiply_by_slope(settings.activation, deltas[place : place + n_units], work.z[place : place + n_units])
        n_rows, stride = hidden_shape(sizes, layer, gated)
        start -= n_rows * stride
        place -= sizes[layer] + 1
        if gated:
            teach_open_units(state, settings, block, layer, start, place, work)
        else:
            teach_all_units(state, settings, block, layer, start, place, work)


@kernel_in_place
def enter(state: NetworkState, block: int) -> None:
    """Switch to another block; undo the last updates of the old block, whose samples belonged to the new one."""
    before = state.counters[CURRENT]
    state.counters[CURRENT], state.counters[STAY], state.counters[SINCE] = block, 0, 0
    if state.kept.shape[0] > 0:
        if before >= 0:
            copy(state.kept[0], state.parameters)
            copy(state.kept_membership[0], state.membership[1 + before])
        for k in range(2):
            copy(state.parameters, state.kept[k])
            copy(state.membership[1 + block], state.kept_membership[k])


@kernel_in_place
def keep(state: NetworkState, undo: int) -> None:
    """Count an update, and save the weights after every ``undo`` updates, so that the older copy predates the change.

    In a short stay the weights are also saved each time the number of updates has doubled, so that undoing does not
    erase all that the block has learned.
    """
    state.counters[TAUGHT] += 1
    state.counters[STAY] += 1
    state.counters[SINCE] += 1
    if state.kept.shape[0] > 0 and state.counters[SINCE] >= min(undo, (state.counters[STAY] + 1) // 2):
        state.counters[SINCE] = 0
        copy(state.kept[1], state.kept[0])
        copy(state.parameters, state.kept[1])
        copy(state.kept_membership[1], state.kept_membership[0])
        copy(state.membership[1 + state.counters[CURRENT]], state.kept_membership[1])


@kernel_in_place
def learn(
    state: NetworkState, settings: NetworkSettings, X: FloatArray, codes: IntArray, blocks: IntArray, work: Work
) -> int:
    """Learn the rows of ``X`` in order, each by the units of its block; return how many were learned before overflow.

    Rows without a label are skipped. A class takes part from its first sample on.
    """
    opened = -1
    for r in range(X.shape[0]):
        state.counters[SEEN] += 1
        code, block = codes[r], blocks[r]
        if block != state.counters[CURRENT]:
            enter(state, block)
            opened = -1
        if code == UNLABELED:
            continue
        if block != opened:
            open_gates(state, block, work)
        if block != opened or not state.membership[1 + block, code]:
            state.membership[1 + block, code] = True
            list_members(state, block, work)
            opened = block
        copy(X[r], work.z)
        forward(state, settings.activation, block, work)
        probabilities = work.scores[: work.counts[-1]]
        if not softmax(probabilities):
            return r
        for k in range(probabilities.shape[0]):
            probabilities[k] -= 1.0 if work.members[k] == code else 0.0
        state.steps[block] += 1
        backward(state, settings, block, work)
        keep(state, settings.undo)
    return X.shape[0]


@kernel_in_place
def predict_rows(
    state: NetworkState,
    activation: int,
    X: FloatArray,
    blocks: IntArray,
    columns: IntArray,
    out: FloatArray,
    work: Work,
) -> int:
    """Store the class probabilities of every row in ``out``; return the number of rows completed.

    ``columns`` holds the column of every output unit, and ``out`` is 0 before.
    """
    current = -1
    for r in range(X.shape[0]):
        if blocks[r] != current:
            current = blocks[r]
            open_gates(state, current, work)
            list_members(state, current, work)
        copy(X[r], work.z)
        forward(state, activation, current, work)
        probabilities = work.scores[: work.counts[-1]]
        if not softmax(probabilities):
            return r
        for k in range(probabilities.shape[0]):
            out[r, columns[work.members[k]]] = probabilities[k]
    return X.shape[0]
