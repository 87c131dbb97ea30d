"""Conversion of Python values to JSON plus arrays and back, for the types used in parameters and learned state.

An estimator is stored as its class name, its parameters and the dictionary from ``_export()``. When loading, the class
is looked up in :mod:`ccmem.registry` or among the classes that the reader names, and ``_import()`` receives and checks
the same dictionary. Any other type is refused.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from ccmem import registry
from ccmem.io.persistence.tensorfile import Array, storable

_PLAIN = {int, str, bool, type(None)}
_BIT_GENERATORS = ("PCG64", "PCG64DXSM", "SFC64", "MT19937", "Philox")


_OUTSIDE = ":"
"""Prefix of the name of a class outside ccmem, which the reader must name to load it."""
_outside: ContextVar[dict[str, Any]] = ContextVar("classes outside of ccmem", default={})  # noqa: B039


@contextmanager
def outside_classes(classes: Iterable[Any]) -> Iterator[None]:
    """Let :func:`unpack` build estimators of these classes inside the block, in addition to those of ccmem."""
    known = {}
    for kind in classes:
        if not (isinstance(kind, type) and hasattr(kind, "_import")):
            raise TypeError(f"classes holds {kind!r}, which is not a class of models, such as a subclass of ncl.Model")
        known[kind.__name__] = kind
    token = _outside.set(known)
    try:
        yield
    finally:
        _outside.reset(token)


def classes_in(value: Any) -> set[type]:
    """Return the classes outside ccmem among the estimators in ``value``."""
    if isinstance(value, dict):
        return set().union(*map(classes_in, value.values()))
    if isinstance(value, (list, tuple)):
        return set().union(*map(classes_in, value))
    if not hasattr(value, "_export"):
        return set()
    own = {type(value)} if not type(value).__module__.startswith("ccmem.") else set()
    return own.union(*map(classes_in, _parameters(value).values()))


@functools.cache
def parameter_names(kind: Any) -> tuple[str, ...]:
    """Return the parameter names of an estimator class."""
    return tuple(kind._get_param_names())  # cached, because scikit-learn inspects the signature on every call


def _parameters(estimator: Any) -> dict[str, Any]:
    return {name: getattr(estimator, name) for name in parameter_names(estimator.__class__)}


def pack(value: Any, place: str, arrays: dict[str, Array]) -> Any:
    """Return ``value`` as JSON; arrays are added to ``arrays``, named after ``place``."""
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
    own = name in registry.ESTIMATORS and type(value).__module__.startswith("ccmem.")
    if own or hasattr(type(value), "_export"):
        name = name if own else _OUTSIDE + name
        fitted = value._export() if value.__sklearn_is_fitted__() else None
        return {
            "$estimator": name,
            "parameters": pack(_parameters(value), f"{place}.parameters", arrays),
            "fitted": pack(fitted, f"{place}.fitted", arrays),
        }
    raise TypeError(f"{place} is of type {type(value).__name__}, which a checkpoint cannot hold")


def unpack(value: Any, arrays: dict[str, Array], build: bool = True) -> Any:
    """Return the value passed to :func:`pack`; ``build=False`` keeps estimators as dictionaries and imports nothing."""
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
        raise ValueError(f"{tag} is combined with other keys")
    inside = value[tag]
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
        if not isinstance(inside, dict) or inside.get("bit_generator") != "MT19937":
            raise ValueError("a RandomState must be of kind MT19937")
        state = np.random.RandomState()
        gauss = {"has_gauss": int(inside["has_gauss"]), "gauss": float(inside["gauss"])}
        state.set_state({**_bit_generator(inside).state, **gauss})
        return state
    raise ValueError(f"{tag} is unknown or holds the wrong thing")


def _pack_array(array: Array, place: str, arrays: dict[str, Array]) -> Any:
    if storable(array):
        arrays[place] = array
        return {"$array": place}
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


def _unpack_estimator(value: dict[str, Any], arrays: dict[str, Array], build: bool) -> Any:
    name = value["$estimator"]
    if set(value) != {"$estimator", "parameters", "fitted"} or not isinstance(name, str):
        raise ValueError(f"{name!r} is not a model that can be loaded")
    if name[:1] == _OUTSIDE and build and name[1:] not in _outside.get():
        raise ValueError(
            f"{name[1:]!r} is a class outside of ccmem; name the class to load it: ccmem.load(path, "
            f"classes=[{name[1:]}]) in Python, --model MODULE:{name[1:]} for ccmem learn and predict"
        )
    if name[:1] != _OUTSIDE and name not in registry.ESTIMATORS:
        raise ValueError(f"{name!r} is not a model that can be loaded; known are {', '.join(registry.ESTIMATORS)}")
    parameters = unpack(value["parameters"], arrays, build)
    fitted = unpack(value["fitted"], arrays, build)
    if not isinstance(parameters, dict) or not (fitted is None or isinstance(fitted, dict)):
        raise ValueError(f"{name} has no proper parameters or state")
    if not build:
        return {"class": name, "parameters": parameters, "fitted": fitted}
    kind = _outside.get()[name[1:]] if name[:1] == _OUTSIDE else registry.load(name)
    unknown = set(parameters) - set(parameter_names(kind))  # a missing parameter is newer than the file: default
    if unknown:
        raise ValueError(f"{name} has parameters in this file that this library does not know: {', '.join(unknown)}")
    estimator = kind(**parameters)
    if fitted is not None:
        estimator._import(fitted)
    return estimator


def _plain(state: Any) -> Any:
    """Return a bit generator's state with arrays as lists of integers."""
    if isinstance(state, dict):
        return {key: _plain(item) for key, item in state.items()}
    if isinstance(state, np.ndarray):
        return [int(item) for item in state]
    return state.item() if isinstance(state, np.generic) else state


def _bit_generator(state: Any) -> Any:
    """Return a bit generator in ``state``; buffer positions are checked here because numpy does not check them."""
    if not isinstance(state, dict) or state.get("bit_generator") not in _BIT_GENERATORS:
        raise ValueError("the random state is of an unknown kind")
    generator = getattr(np.random, state["bit_generator"])(0)
    found = _like(state, generator.state)
    position, last = found["state"].get("pos", 0), 624
    if position > last or found.get("buffer_pos", 0) > 4:
        raise ValueError("the random state is damaged")
    generator.state = found
    return generator


def _like(given: Any, model: Any) -> Any:
    """Return a part of a random state in the types of ``model``; raise if it does not fit."""
    if isinstance(model, dict) and isinstance(given, dict) and set(model) <= set(given):
        return {key: _like(given[key], model[key]) for key in model}
    if isinstance(model, np.ndarray) and isinstance(given, list) and len(given) == len(model):
        return np.array([_like(number, 0) for number in given], model.dtype)
    if type(given) is type(model) and (given == model if isinstance(model, str) else 0 <= given < 2**128):
        return given
    raise ValueError("the random state is damaged")
