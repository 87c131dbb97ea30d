"""Python values to JSON plus arrays and back: the few types that parameters and learned state are made of.

An estimator becomes its class name, its parameters and what ``_export()`` gives; on the way back the class is looked up
in :mod:`ccmem.registry` and ``_import()`` gets the same dictionary, to be checked there. Anything else is refused.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ccmem import registry
from ccmem.persistence.joined import Joined, Named, Separated
from ccmem.persistence.tensorfile import Array, narrowed, storable
from ccmem.persistence.upgrades import upgraded

_PLAIN = {int, str, bool, type(None)}
_BIT_GENERATORS = ("PCG64", "PCG64DXSM", "SFC64", "MT19937", "Philox")


@functools.cache
def parameter_names(kind: Any) -> tuple[str, ...]:
    """The parameters of a class of estimators."""
    return tuple(kind._get_param_names())  # scikit-learn reads the signature every time


def _parameters(estimator: Any) -> dict[str, Any]:
    return {name: getattr(estimator, name) for name in parameter_names(estimator.__class__)}


def pack(value: Any, place: str, arrays: Named | Joined) -> Any:
    """``value`` as JSON; arrays go to ``arrays``, under names made from ``place`` if they have any."""
    if type(value) in _PLAIN or (type(value) is float and math.isfinite(value)):
        return value
    if isinstance(value, np.ndarray):
        return _pack_array(value, place, arrays)
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": str(value)}
    if isinstance(value, tuple):
        return {"$tuple": [pack(item, f"{place}.{i}", arrays) for i, item in enumerate(value)]}
    if isinstance(value, list):
        return [pack(item, f"{place}.{i}", arrays) for i, item in enumerate(value)]
    if isinstance(value, dict):
        if isinstance(arrays, Joined):
            if (described := arrays.add_all(value)) is not None:
                return {"$arrays": described}
            if _are_counts(value):
                return {"$counts": [arrays.add(place, narrowed(np.array([*value.values()]))), *value]}
        packed, before = {}, f"{place}." if place else ""
        for key, item in value.items():
            if not isinstance(key, str) or key[:1] == "$":
                raise TypeError(f"{place} has keys that cannot be saved")
            packed[key] = item if type(item) in _PLAIN else pack(item, before + key, arrays)
        return packed
    if isinstance(value, np.random.Generator):
        return {"$generator": _plain(value.bit_generator.state)}
    if isinstance(value, np.random.RandomState):
        return {"$random_state": _plain(value.get_state(legacy=False))}
    name = type(value).__name__
    if name in registry.ESTIMATORS and type(value).__module__.startswith("ccmem."):
        fitted = value._export() if value.__sklearn_is_fitted__() else None
        return {
            "$estimator": name,
            "parameters": pack(_parameters(value), f"{place}.parameters", arrays),
            "fitted": pack(fitted, f"{place}.fitted", arrays),
        }
    raise TypeError(f"{place} is of type {type(value).__name__}, which a checkpoint cannot hold")


def _are_counts(value: dict[Any, Any]) -> bool:
    """Whether these are so many counts that they are better off as an array: memories of a fleet differ in them, and
    then have the same document."""
    counts = value.values()
    if len(counts) < 8 or set(map(type, counts)) != {int} or not 0 <= min(counts) <= max(counts) < 2**63:
        return False
    return all(type(key) is str and key[:1] != "$" for key in value)


def unpack(value: Any, arrays: dict[str, Array] | Separated, build: bool = True) -> Any:
    """What :func:`pack` was given; with ``build=False``, estimators stay dictionaries (nothing is imported)."""
    if isinstance(value, list):
        return [unpack(item, arrays, build) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and "$array" in value:
        return arrays[value["$array"]]
    for tag in value:
        if tag[:1] == "$":
            break
    else:
        return {key: item if type(item) in _PLAIN else unpack(item, arrays, build) for key, item in value.items()}
    if tag == "$estimator":
        return _unpack_estimator(value, arrays, build)
    if len(value) != 1:
        raise ValueError(f"{tag} stands beside other things")
    inside = value[tag]
    if tag == "$arrays" and isinstance(inside, dict) and isinstance(arrays, Separated):
        return {key: arrays[description] for key, description in inside.items()}
    if tag == "$counts" and isinstance(inside, list) and isinstance(arrays, Separated):
        return dict(zip(inside[1:], arrays[inside[0]].tolist(), strict=True))
    if tag == "$float" and inside in ("inf", "-inf", "nan"):
        return float(inside)
    if tag == "$tuple" and isinstance(inside, list):
        return tuple(unpack(item, arrays, build) for item in inside)
    if tag == "$strings" and isinstance(inside, list) and all(isinstance(item, str) for item in inside):
        return np.array(inside, dtype=np.str_) if inside else np.array([], dtype="U1")
    if tag == "$objects" and isinstance(inside, list):
        result = np.empty(len(inside), object)
        result[:] = [_scalar(item) for item in inside]
        return result
    if tag == "$generator":
        return np.random.Generator(_bit_generator(inside))
    if tag == "$random_state":
        state = np.random.RandomState()
        generator = _bit_generator(inside)
        if inside["bit_generator"] != "MT19937":
            raise ValueError("a RandomState must be of kind MT19937")
        state.set_state(
            (
                "MT19937",
                generator.state["state"]["key"],
                generator.state["state"]["pos"],
                int(inside["has_gauss"]),
                float(inside["gauss"]),
            )
        )
        return state
    raise ValueError(f"{tag} is unknown or holds the wrong thing")


def _pack_array(array: Array, place: str, arrays: Named | Joined) -> Any:
    if storable(array):
        return {"$array": arrays.add(place, array)}
    if array.ndim == 1 and array.dtype.kind == "U":
        return {"$strings": array.tolist()}
    if array.ndim == 1 and array.dtype.kind == "O":
        return {"$objects": [_scalar(item) for item in array]}
    raise TypeError(f"{place} is an array of type {array.dtype}, which a checkpoint cannot hold")


def _scalar(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (str, bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise TypeError(f"{value!r} is neither text nor a number")


def _unpack_estimator(value: dict[str, Any], arrays: dict[str, Array] | Separated, build: bool) -> Any:
    name = value["$estimator"]
    if (
        set(value) != {"$estimator", "parameters", "fitted"}
        or not isinstance(name, str)
        or name not in registry.ESTIMATORS
    ):
        raise ValueError(f"{name!r} is not a model that can be loaded; known are {', '.join(registry.ESTIMATORS)}")
    parameters = unpack(value["parameters"], arrays, build)
    fitted = unpack(value["fitted"], arrays, build)
    if not isinstance(parameters, dict) or not (fitted is None or isinstance(fitted, dict)):
        raise ValueError(f"{name} has no proper parameters or state")
    name, parameters = upgraded(name, parameters)
    if not build:
        return {"class": name, "parameters": parameters, "fitted": fitted}
    kind = registry.load(name)
    unknown = set(parameters) - set(parameter_names(kind))  # one that is missing is newer than the file: its default
    if unknown:
        raise ValueError(f"{name} has parameters in this file that this library does not know: {', '.join(unknown)}")
    estimator = kind(**parameters)
    if fitted is not None:
        estimator._import(fitted)
    return estimator


def _plain(state: Any) -> Any:
    """A bit generator's state with arrays as lists of whole numbers."""
    if isinstance(state, dict):
        return {key: _plain(item) for key, item in state.items()}
    if isinstance(state, np.ndarray):
        return [int(item) for item in state]
    return state.item() if isinstance(state, np.generic) else state


def _bit_generator(state: Any) -> Any:
    """A bit generator in ``state``; numpy checks little of it, so positions in buffers are checked here."""
    if not isinstance(state, dict) or state.get("bit_generator") not in _BIT_GENERATORS:
        raise ValueError("the random state is of an unknown kind")
    generator = getattr(np.random, state["bit_generator"])(0)
    model = _plain(generator.state)

    def alike(given: Any, wanted: Any) -> bool:
        if isinstance(wanted, dict):
            return (
                isinstance(given, dict)
                and set(wanted) <= set(given)
                and all(alike(given[k], wanted[k]) for k in wanted)
            )
        if isinstance(wanted, list):
            return isinstance(given, list) and len(given) == len(wanted) and all(alike(g, 0) for g in given)
        return (type(given) is int and 0 <= given < 2**128) if isinstance(wanted, int) else given == wanted

    position, last = state.get("state", {}).get("pos", 0), 624
    if not alike(state, model) or position > last or state.get("buffer_pos", 0) > 4:
        raise ValueError("the random state is damaged")

    def arrays(given: Any, like: Any) -> Any:
        if isinstance(like, dict):
            return {key: arrays(given[key], like[key]) for key in like}
        return np.array(given, like.dtype) if isinstance(like, np.ndarray) else given

    generator.state = arrays(state, generator.state)
    return generator
