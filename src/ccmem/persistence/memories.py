"""A memory's state as named values and back. Kernels index by what stands in a state, so all of it is checked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ccmem.kernels.rows import check_finite
from ccmem.memory import JOURNALED, UNITS, aligned
from ccmem.parameters import check_parameters

if TYPE_CHECKING:
    from ccmem.base import CompetitiveMemory

_COUNTERS = ("seen", "units")
_FIELDS = ("state", "counters", "events", "random_state", "n_features_in_")


def export_memory(memory: CompetitiveMemory) -> dict[str, Any]:
    """What ``memory`` has learned: arrays of the state, counters by name, events, random state."""
    if memory._shape() != memory._began_with:
        values = zip(memory._shape_parameters, memory._began_with, memory._shape(), strict=True)
        changed = ", ".join(name for name, old, new in values if old != new)
        raise ValueError(f"{type(memory).__name__}: {changed} changed since learning began; set it back before saving")
    state, left_out = memory._state, ("counters", "journal", *memory._derived)
    counters = state.counters.tolist()
    fields = {
        "state": {name: array for name, array in state._asdict().items() if name not in left_out},
        "counters": dict(
            zip((*_COUNTERS, *memory._own_counters), counters[:2] + counters[JOURNALED + 1 :], strict=True)
        ),
        "events": memory._export_events(),
        "random_state": memory._rng,
        "n_features_in_": int(memory.n_features_in_),
    }
    for name in ("feature_names_in_", "labels_"):
        if name in vars(memory):
            fields[name] = vars(memory)[name]
    return fields


def import_memory(memory: CompetitiveMemory, fields: dict[str, Any]) -> None:
    """Give ``memory``, fresh from its parameters, the state in ``fields``; ValueError if it cannot be its state."""
    owner = type(memory).__name__
    check_parameters(owner, memory._rules, vars(memory))
    check_names(owner, fields, _FIELDS, ("feature_names_in_", "labels_"))
    state = _check_arrays(memory, fields["state"], fields["counters"], fields["n_features_in_"])
    memory._check_state(state)
    events = fields["events"]
    if not (isinstance(events, np.ndarray) and events.dtype == np.int64 and events.ndim == 2 and events.shape[1] == 5):
        raise ValueError(f"{owner}: its events are damaged")
    rng = fields["random_state"]
    if not isinstance(rng, np.random.Generator):
        raise ValueError(f"{owner}: its random state is missing")
    if isinstance(memory.random_state, np.random.Generator):
        rng = memory.random_state = memory.random_state if _same(memory.random_state, rng) else rng
    if "feature_names_in_" in fields:
        check_vector("feature_names_in_", fields["feature_names_in_"], fields["n_features_in_"])
        memory.feature_names_in_ = fields["feature_names_in_"]
    if "labels_" in fields:
        check_vector("labels_", fields["labels_"])
        memory.labels_ = fields["labels_"]
    memory.n_features_in_ = fields["n_features_in_"]
    memory._rng = rng
    memory._began_with = memory._shape()
    memory._import_events(events)
    memory._state = state


def _check_arrays(memory: CompetitiveMemory, arrays: Any, counts: Any, n_features: Any) -> Any:
    """The state, if every array has the shape, type and range that the parameters imply."""
    owner = type(memory).__name__
    left_out = ("counters", "journal", *memory._derived)
    names = tuple(name for name in memory._state_type._fields if name not in left_out)  # type: ignore[attr-defined]
    check_names(owner, arrays, names)
    check_names(owner, counts, (*_COUNTERS, *memory._own_counters))
    prototypes = arrays["prototypes"]
    if not (
        isinstance(prototypes, np.ndarray) and prototypes.ndim == 2 and prototypes.dtype in (np.float32, np.float64)
    ):
        raise ValueError(f"{owner}: prototypes are not a table of float32 or float64")
    if type(n_features) is not int or prototypes.shape[1] != n_features or n_features < 1 or len(prototypes) < 1:
        raise ValueError(f"{owner}: prototypes of shape {prototypes.shape} do not fit n_features_in_={n_features!r}")
    layout = memory._layout(len(prototypes), n_features, prototypes.dtype)
    for name in names:
        shape, dtype = layout[name]
        array = arrays[name]
        if not (isinstance(array, np.ndarray) and _has_shape(array, shape) and array.dtype == dtype):
            raise ValueError(f"{owner}: {name} is not an array of {np.dtype(dtype)} of shape {shape}")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"{owner}: {name} holds NaN or infinity")
        if array.dtype.kind == "i" and array.size and array.min() < 0:
            raise ValueError(f"{owner}: {name} holds negative counts")
    check_finite(prototypes)
    if arrays["rates"].min() < 0 or arrays["rates"].max() > 1:
        raise ValueError(f"{owner}: rates lie outside [0, 1]")
    if not all(type(count) is int and 0 <= count < 2**62 for count in counts.values()):
        raise ValueError(f"{owner}: its counters are damaged")
    counters = np.zeros(layout["counters"][0], np.int64)
    values = list(counts.values())
    counters[:2], counters[JOURNALED + 1 :] = values[:2], values[2:]
    if counters[UNITS] > len(prototypes):
        raise ValueError(f"{owner}: {counters[UNITS]} units do not fit a memory of {len(prototypes)}")
    settled_arrays = {name: aligned(array) for name, array in arrays.items()}
    derived = memory._derive(prototypes, arrays["wins"])
    return memory._state_type(**settled_arrays, **derived, counters=counters, journal=np.zeros(*layout["journal"]))


def _has_shape(array: Any, shape: tuple[int | None, ...]) -> bool:
    """Whether an array has this shape, where None stands for any number of at least 1."""
    return array.ndim == len(shape) and all(
        n >= 1 if wanted is None else n == wanted for n, wanted in zip(array.shape, shape, strict=True)
    )


def check_names(owner: str, fields: Any, needed: Iterable[str], optional: Iterable[str] = ()) -> None:
    """Raise ValueError unless ``fields`` is a dictionary with just these names, in this order where it matters."""
    needed = list(needed)
    if not isinstance(fields, dict) or [name for name in fields if name not in set(optional)] != needed:
        raise ValueError(
            f"{owner}: has {list(fields) if isinstance(fields, dict) else 'nothing'} where {needed} belong"
        )


def check_vector(name: str, array: Any, length: int | None = None) -> None:
    """Raise ValueError unless ``array`` is a vector (of ``length``)."""
    if not isinstance(array, np.ndarray) or array.ndim != 1 or (length is not None and len(array) != length):
        raise ValueError(f"{name} is not a list of {'values' if length is None else length}")


def _same(one: np.random.Generator, other: np.random.Generator) -> bool:
    """Whether two generators stand at the same place: a memory draws from the very Generator it was given."""
    return str(one.bit_generator.state) == str(other.bit_generator.state)
