"""Conversion of a memory's state to named values and back, fully validated because kernels index by stored values.

Only the part in use is stored: unused rows beyond the units and blocks of a memory are omitted (see
``CompetitiveMemory._capacity_for``), integers take the fewest bytes that hold them, and an array of zeros is stored
without rows. The restored state is identical to the last bit.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ccmem.base.validation import check_finite
from ccmem.core.allocation import aligned_zeros_of
from ccmem.core.parameters import check_parameters
from ccmem.core.state import FIRST_JOURNAL_LINES, JOURNAL_COLUMNS, JOURNALED
from ccmem.io.persistence.tensorfile import narrowed as narrowed

if TYPE_CHECKING:
    from ccmem.base.memory import CompetitiveMemory

_COUNTERS = ("seen", "units")
MANY = 1 << 40
"""Sentinel capacity that no memory reaches: arrays whose layout begins with it have one row per unit."""


_NOT_DRAWN_FROM = np.random.default_rng(0)


def _has_blocks(memory: Any) -> bool:
    """True if the memory divides its units into blocks, and so has events, and names and times for them."""
    return hasattr(memory, "_export_events")


def export_memory(memory: Any) -> dict[str, Any]:
    """Return the learned state of ``memory``: arrays, counters by name, events, random state."""
    if memory._shape() != memory._began_with:
        values = zip(memory._shape_parameters, memory._began_with, memory._shape(), strict=True)
        changed = ", ".join(name for name, old, new in values if old != new)
        raise ValueError(f"{type(memory).__name__}: {changed} changed since learning began; set it back before saving")
    state = memory._state
    numbers = state.counters.tolist()
    counters = dict(zip((*_COUNTERS, *memory._own_counters), numbers[:2] + numbers[JOURNALED + 1 :], strict=True))
    arrays = {name: getattr(state, name) for name in _stored_names(memory._state_type, memory._derived)}
    if memory._capacity_for(counters["units"]) is not None:
        layout = memory._layout(MANY, state.prototypes.shape[1], state.prototypes.dtype)
        arrays = {name: _in_use(name, array, layout[name][0][0], counters) for name, array in arrays.items()}
    has_blocks = _has_blocks(memory)
    events = memory._export_events() if has_blocks else np.empty((0, JOURNAL_COLUMNS), np.int64)
    fields: dict[str, Any] = {"state": arrays, "counters": counters, "events": narrowed(events)}
    if _draws(memory):
        fields["random_state"] = memory._rng
    fields |= memory._export_columns()
    if "labels_" in vars(memory):
        fields["labels_"] = memory.labels_
    if names := vars(memory).get("_block_names"):
        fields["block_names"] = [list(entry) for entry in names.items()]
    if has_blocks and (times := memory._export_times()) is not None:
        fields["times"] = times
    return fields


def _in_use(name: str, array: Any, rows: int | None, counters: dict[str, int]) -> Any:
    """Return the used part of an array; no rows if it is all zeros, except prototypes, whose rows are counted."""
    if rows is not None and rows != MANY:
        return array
    if rows is None:
        return array[: counters["blocks"]]
    array = array[: counters["units"]]
    return narrowed(array) if name == "prototypes" or np.logical_or.reduce(array, axis=None) else array[:0]


def widened(array: Any) -> Any:
    """Return the int64 array that :func:`narrowed` compressed; any other value unchanged."""
    return array.astype(np.int64) if isinstance(array, np.ndarray) and array.dtype.kind == "u" else array


def _draws(memory: CompetitiveMemory) -> bool:
    return "random_state" in vars(memory)


def import_memory(memory: Any, fields: dict[str, Any]) -> None:
    """Restore ``memory``, newly built from its parameters, from ``fields``; ValueError if the state is invalid."""
    owner = type(memory).__name__
    check_parameters(owner, memory._rules, vars(memory))
    needed = ("state", "counters", "events", *(("random_state",) if _draws(memory) else ()), "n_features_in_")
    check_names(owner, fields, needed, ("feature_names_in_", "labels_", "block_names", "times"))
    state = _check_arrays(memory, fields["state"], fields["counters"], fields["n_features_in_"])
    memory._check_state(state)
    events = widened(fields["events"])
    is_table = isinstance(events, np.ndarray) and events.dtype == np.int64 and events.ndim == 2
    if not is_table or events.shape[1] != JOURNAL_COLUMNS:
        raise ValueError(f"{owner}: its events are damaged")
    if _draws(memory):
        rng = fields["random_state"]
        if not isinstance(rng, np.random.Generator):
            raise ValueError(f"{owner}: its random state is missing")
        if isinstance(memory.random_state, np.random.Generator):
            rng = memory.random_state = memory.random_state if _same(memory.random_state, rng) else rng
        memory._rng = rng
    else:
        memory._rng = _NOT_DRAWN_FROM
    memory._import_columns(fields)
    if "labels_" in fields:
        check_vector("labels_", fields["labels_"])
        memory.labels_ = fields["labels_"]
    memory._began_with = memory._shape()
    memory._state = state
    if not _has_blocks(memory):
        if len(events) or "block_names" in fields or "times" in fields:
            raise ValueError(f"{owner}: it has no blocks, and so no events, names or times of blocks")
        return
    memory._import_events(events)
    if "block_names" in fields:
        memory._import_names(fields["block_names"])
    if "times" in fields:
        memory._import_times(fields["times"])


@functools.cache
def _stored_names(state_type: Any, derived: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the arrays of a state that are part of a checkpoint."""
    return tuple(name for name in state_type._fields if name not in ("counters", "journal", *derived))


def _check_arrays(memory: CompetitiveMemory, arrays: Any, counts: Any, n_features: Any) -> Any:
    """Return the state if every array has the shape, type and range that the parameters imply; otherwise raise."""
    owner = type(memory).__name__
    names = _stored_names(memory._state_type, memory._derived)
    check_names(owner, arrays, names, memory._derived)  # 0.1 stored arrays that are derived now
    check_names(owner, counts, (*_COUNTERS, *memory._own_counters))
    values = [*counts.values()]
    if set(map(type, values)) != {int} or not 0 <= min(values) <= max(values) < 2**62:
        raise ValueError(f"{owner}: its counters are damaged")
    prototypes = arrays["prototypes"]
    if not (
        isinstance(prototypes, np.ndarray) and prototypes.ndim == 2 and prototypes.dtype in (np.float32, np.float64)
    ):
        raise ValueError(f"{owner}: prototypes are not a table of float32 or float64")
    capacity = memory._capacity_for(min(counts["units"], len(prototypes)))
    trimmed = capacity is not None
    if capacity is None:
        capacity = len(prototypes)
    if type(n_features) is not int or prototypes.shape[1] != n_features or n_features < 1 or capacity < 1:
        raise ValueError(f"{owner}: prototypes of shape {prototypes.shape} do not fit n_features_in_={n_features!r}")
    if counts["units"] > len(prototypes):
        raise ValueError(f"{owner}: {counts['units']} units do not fit a memory of {len(prototypes)}")
    layout = memory._layout(MANY if trimmed else capacity, n_features, prototypes.dtype)
    wholes = [_whole(owner, name, arrays[name], layout[name], counts, capacity) for name in names]
    given = {name: arrays[name] for name in names}
    for name, array in given.items():
        if array.dtype.kind == "f":
            if not np.isfinite(array).all():
                raise ValueError(f"{owner}: {name} holds NaN or infinity")
        elif array.dtype.itemsize == 8:
            given[name] = array = widened(array)
            if array.size and array.min() < 0:
                raise ValueError(f"{owner}: {name} holds negative counts")
    journal_layout = (FIRST_JOURNAL_LINES, JOURNAL_COLUMNS), np.int64
    *made, counters, journal = aligned_zeros_of([*(whole[:2] for whole in wholes), layout["counters"], journal_layout])
    for whole, array, (_, _, used) in zip(made, given.values(), wholes, strict=True):
        if len(whole) == len(array):
            whole[...] = array
        elif len(array):
            whole[:used] = array[:used]
    known = dict(zip(names, made, strict=True))
    check_finite(known["prototypes"])
    if np.minimum.reduce(known["rates"]) < 0 or np.maximum.reduce(known["rates"]) > 1:
        raise ValueError(f"{owner}: rates lie outside [0, 1]")
    counters[:2], counters[JOURNALED + 1 :] = values[:2], values[2:]
    known.update(memory._derive(known["prototypes"], known["wins"]))
    return memory._state_type(**known, counters=counters, journal=journal)


def _whole(
    owner: str, name: str, given: Any, layout: tuple[Any, Any], counts: dict[str, int], capacity: int
) -> tuple[tuple[int, ...], Any, int]:
    """Return the full shape and type of an array of the state, and the number of its used rows."""
    shape, dtype = layout
    kind, have = (given.dtype, given.shape) if isinstance(given, np.ndarray) else (None, ())
    rows, n = shape[0], have[0] if have else -1
    if isinstance(rows, tuple):  # either number is valid
        rows = n if n in rows else rows[-1]
    used = counts["units"] if rows == MANY else counts["blocks"] if rows is None else rows
    fits = kind == dtype or (dtype == np.int64 and kind is not None and kind.kind == "u")
    if fits and have and have[1:] == shape[1:]:
        zeros = n == 0 and rows == MANY and name != "prototypes"
        fits = zeros or (n == used if rows == used else n >= used)
    else:
        fits = False
    if not fits:
        raise ValueError(f"{owner}: {name} is not an array of {np.dtype(dtype)} of shape {(used, *shape[1:])}")
    return (capacity if rows == MANY else used, *shape[1:]), dtype, used


def check_names(owner: str, fields: Any, needed: Iterable[str], optional: Iterable[str] = ()) -> None:
    """Raise ValueError unless ``fields`` is a dictionary with the needed names in order, and optional ones anywhere."""
    needed = list(needed)
    if isinstance(fields, dict) and list(fields) == needed:
        return
    optional = tuple(optional)
    if not isinstance(fields, dict) or [name for name in fields if name not in optional] != needed:
        raise ValueError(
            f"{owner}: has {list(fields) if isinstance(fields, dict) else 'nothing'} where {needed} belong"
        )


def check_array(owner: str, name: str, array: Any, shape: tuple[int, ...], dtype: Any) -> None:
    """Raise ValueError unless ``array`` is an array of this shape and type."""
    if not (isinstance(array, np.ndarray) and array.shape == shape and array.dtype == dtype):
        raise ValueError(f"{owner}: {name} is not an array of {np.dtype(dtype)} of shape {shape}")


def check_vector(name: str, array: Any, length: int | None = None) -> None:
    """Raise ValueError unless ``array`` is a vector (of ``length``)."""
    if not isinstance(array, np.ndarray) or array.ndim != 1 or (length is not None and len(array) != length):
        raise ValueError(f"{name} is not a list of {'values' if length is None else length}")


def _same(one: np.random.Generator, other: np.random.Generator) -> bool:
    """True if two generators have equal states, so that the memory can keep using the Generator it was given."""
    return str(one.bit_generator.state) == str(other.bit_generator.state)
