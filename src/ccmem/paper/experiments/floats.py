"""Number of floats a model holds between samples, the unit in which memories and other learners are compared."""

from __future__ import annotations

from typing import Any

from ccmem.base.memory import CompetitiveMemory
from ccmem.readout._estimator import OnlineNetwork
from ccmem.readout.modal import ModalClassifier
from ccmem.readout.network import unpack

_NOT_COUNTED = ("journal", "seed")
"""Excluded: the journal, which is emptied after every chunk, and the seed."""


def floats_held(model: Any) -> int:
    """Count weights, prototypes, exemplars, statistics, votes and optimizer state, integers included.

    Room to grow, padding and what is derived from the rest to save time are not counted (``n_floats_`` of a memory or
    network counts some of it): the same could be had without them.
    """
    if isinstance(model, ModalClassifier):
        metric = model._evidence.n_floats if model._evidence else 0
        return _of_memory(model.memory_) + int(model.votes_.size) + metric
    if isinstance(model, OnlineNetwork):
        return _of_network(model)
    if isinstance(model, CompetitiveMemory):
        return _of_memory(model)
    if hasattr(model, "n_floats_"):
        return int(model.n_floats_)
    raise TypeError(f"{type(model).__name__} does not report how many floats it holds; define n_floats_")


def _of_memory(memory: CompetitiveMemory) -> int:
    state = memory._state._asdict()
    prototypes = state["prototypes"]
    capacity, used = len(prototypes), int(memory.n_units_)
    layout = memory._layout(capacity, prototypes.shape[1], prototypes.dtype)
    total = 0
    for name, array in state.items():
        if name in (*memory._derived, *_NOT_COUNTED):
            continue
        if len(array) == capacity:
            total += array.size // capacity * used
        elif name in layout and layout[name][0][0] is None:  # one row per block
            total += array.size // len(array) * int(memory.n_blocks_)
        else:
            total += array.size
    return total


def _of_network(network: OnlineNetwork) -> int:
    state = network._state
    weights = sum(layer.size for layer in unpack(state))
    copies = 1 + len(state.kept) + (state.velocity.size > 0) + (state.power.size > 0)
    memory = getattr(network, "memory_", None)
    others = state.gates.size + state.steps.size + state.membership.size
    return weights * copies + others + (0 if memory is None else _of_memory(memory))
