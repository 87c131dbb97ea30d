"""A memory's state as named values and back. Kernels index by what stands in a state, so all of it is checked.

What is stored is what is in use: rows beyond the units and blocks of a memory are left out where they hold nothing (see
``CompetitiveMemory._capacity_for``), whole numbers take the fewest bytes that hold them, and an array of zeros becomes
one without rows. What learning resumes with is the same to the last bit.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ccmem.kernels.rows import check_finite
from ccmem.memory import FIRST_JOURNAL_LINES, JOURNAL_COLUMNS, JOURNALED, SMALL, aligned_zeros_of
from ccmem.parameters import check_parameters

if TYPE_CHECKING:
    from ccmem.base import CompetitiveMemory

_COUNTERS = ("seen", "units")
MANY = 1 << 40
"""A capacity that no memory has: arrays whose layout begins with it have a row a unit."""
_SMALL = ((1 << 8, np.uint8), (1 << 16, np.uint16), (1 << 32, np.uint32))


_NOT_DRAWN_FROM = np.random.default_rng(0)


def export_memory(memory: CompetitiveMemory) -> dict[str, Any]:
    """What ``memory`` has learned: arrays of the state, counters by name, events, random state."""
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
    fields: dict[str, Any] = {"state": arrays, "counters": counters, "events": narrowed(memory._export_events())}
    if _draws(memory):
        fields["random_state"] = memory._rng
    fields["n_features_in_"] = int(memory.n_features_in_)
    for name in ("feature_names_in_", "labels_"):
        if name in vars(memory):
            fields[name] = vars(memory)[name]
    if names := vars(memory).get("_block_names"):
        fields["block_names"] = [list(entry) for entry in names.items()]
    return fields


def _in_use(name: str, array: Any, rows: int | None, counters: dict[str, int]) -> Any:
    """The part of an array that means something; none of it if that is zeros, except prototypes, which are counted."""
    if rows is not None and rows != MANY:
        return array
    if rows is None:
        return array[: counters["blocks"]]
    array = array[: counters["units"]]
    return narrowed(array) if name == "prototypes" or array.any() else array[:0]


def narrowed(array: Any) -> Any:
    """Whole numbers, none of them negative, in the smallest type that holds them all."""
    if array.dtype != np.int64:
        return array
    most = array.max(initial=0)
    return next((array.astype(kind) for bound, kind in _SMALL if most < bound), array)


def widened(array: Any) -> Any:
    """What :func:`_narrowed` was given; anything else as it is."""
    return array.astype(np.int64) if isinstance(array, np.ndarray) and array.dtype.kind == "u" else array


def _draws(memory: CompetitiveMemory) -> bool:
    return "random_state" in vars(memory)


def import_memory(memory: CompetitiveMemory, fields: dict[str, Any]) -> None:
    """Give ``memory``, fresh from its parameters, the state in ``fields``; ValueError if it cannot be its state."""
    owner = type(memory).__name__
    check_parameters(owner, memory._rules, vars(memory))
    needed = ("state", "counters", "events", *(("random_state",) if _draws(memory) else ()), "n_features_in_")
    spare = () if _draws(memory) else ("random_state",)  # files of 0.1 have one in any case
    check_names(owner, fields, needed, (*spare, "feature_names_in_", "labels_", "block_names"))
    state = _check_arrays(memory, fields["state"], fields["counters"], fields["n_features_in_"])
    memory._check_state(state)
    events = widened(fields["events"])
    if not (isinstance(events, np.ndarray) and events.dtype == np.int64 and events.ndim == 2):
        raise ValueError(f"{owner}: its events are damaged")
    if events.shape[1] == JOURNAL_COLUMNS - 1:  # files of earlier versions say nothing of uncertainty
        events = np.pad(events, ((0, 0), (0, 1)))
    if events.shape[1] != JOURNAL_COLUMNS:
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
    if "feature_names_in_" in fields:
        check_vector("feature_names_in_", fields["feature_names_in_"], fields["n_features_in_"])
        memory.feature_names_in_ = fields["feature_names_in_"]
    if "labels_" in fields:
        check_vector("labels_", fields["labels_"])
        memory.labels_ = fields["labels_"]
    memory.n_features_in_ = fields["n_features_in_"]
    memory._began_with = memory._shape()
    memory._import_events(events)
    memory._state = state
    if "block_names" in fields:
        memory._import_names(fields["block_names"])


@functools.cache
def _stored_names(state_type: Any, derived: tuple[str, ...]) -> tuple[str, ...]:
    """The arrays of a state that are part of a checkpoint."""
    return tuple(name for name in state_type._fields if name not in ("counters", "journal", *derived))


def _check_arrays(memory: CompetitiveMemory, arrays: Any, counts: Any, n_features: Any) -> Any:
    """The state, if every array has the shape, type and range that the parameters imply."""
    owner = type(memory).__name__
    names = _stored_names(memory._state_type, memory._derived)
    check_names(owner, arrays, names, memory._derived)  # files of 0.1 hold some that are derived now
    check_names(owner, counts, (*_COUNTERS, *memory._own_counters))
    if not all(type(count) is int and 0 <= count < 2**62 for count in counts.values()):
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
    checked = [_check_array(owner, name, arrays[name], layout[name], counts, capacity) for name in names]
    _check_finite(owner, names, [array for _, array, _ in checked])
    journal_layout = (FIRST_JOURNAL_LINES, JOURNAL_COLUMNS), np.int64
    shapes = [*(whole for whole, _, _ in checked), layout["counters"], journal_layout]
    *made, counters, journal = aligned_zeros_of(shapes)
    for whole, (_, array, used) in zip(made, checked, strict=True):
        if len(array):
            whole[:used] = array[:used]
    known = dict(zip(names, made, strict=True))
    check_finite(known["prototypes"])
    if known["rates"].min() < 0 or known["rates"].max() > 1:
        raise ValueError(f"{owner}: rates lie outside [0, 1]")
    values = list(counts.values())
    counters[:2], counters[JOURNALED + 1 :] = values[:2], values[2:]
    known.update(memory._derive(known["prototypes"], known["wins"]))
    return memory._state_type(**known, counters=counters, journal=journal)


def _check_array(
    owner: str, name: str, array: Any, layout: tuple[Any, Any], counts: dict[str, int], capacity: int
) -> tuple[tuple[tuple[int, ...], Any], Any, int]:
    """Shape and type that an array of the state has with all its rows; the array; and how many of its rows count."""
    shape, dtype = layout
    array = widened(array)
    rows = shape[0]
    if isinstance(rows, tuple):  # either number will do
        rows = len(array) if isinstance(array, np.ndarray) and array.ndim and len(array) in rows else rows[-1]
    used = counts["units"] if rows == MANY else counts["blocks"] if rows is None else rows
    fits = isinstance(array, np.ndarray) and array.dtype == dtype and array.shape[1:] == shape[1:] and array.ndim
    if fits and used is not None:
        zeros = len(array) == 0 and rows == MANY and name != "prototypes"
        fits = zeros or (len(array) == used if rows == used else len(array) >= used)
    else:
        fits = False
    if not fits:
        wanted = (used, *shape[1:])
        raise ValueError(f"{owner}: {name} is not an array of {np.dtype(dtype)} of shape {wanted}")
    if array.dtype.kind == "i" and array.size and array.min() < 0:
        raise ValueError(f"{owner}: {name} holds negative counts")
    whole = capacity if rows == MANY else used
    return ((whole, *shape[1:]), dtype), array, used


def _check_finite(owner: str, names: Sequence[str], arrays: list[Any]) -> None:
    """Raise if one of these holds NaN or infinity; if they are small, one look at all of them is quicker."""
    floats = {name: array for name, array in zip(names, arrays, strict=True) if array.dtype.kind == "f"}
    small = sum(array.nbytes for array in floats.values()) <= SMALL
    if small and np.isfinite(np.concatenate(list(floats.values()), axis=None)).all():
        return
    for name, array in floats.items():
        if not np.isfinite(array).all():
            raise ValueError(f"{owner}: {name} holds NaN or infinity")


def check_names(owner: str, fields: Any, needed: Iterable[str], optional: Iterable[str] = ()) -> None:
    """Raise ValueError unless ``fields`` is a dictionary with just these names, in this order where it matters."""
    needed, optional = list(needed), tuple(optional)
    if not isinstance(fields, dict) or [name for name in fields if name not in optional] != needed:
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
