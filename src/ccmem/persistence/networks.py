"""A network's state as named values and back; its kernels index by what stands there, so all of it is checked."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ccmem.memory import SEEN
from ccmem.persistence.memories import check_names, check_vector
from ccmem.predictors.network import ADAM, CLASSES, SGD, TAUGHT, NetworkState

if TYPE_CHECKING:
    from ccmem.predictors._estimator import OnlineNetwork

_COUNTERS = {"seen": SEEN, "taught": TAUGHT, "classes": CLASSES}
_ARRAYS = ("parameters", "velocity", "power", "gates", "steps", "class_rows", "seed")


def export_network(network: OnlineNetwork) -> dict[str, Any]:
    """What ``network`` has learned."""
    if network._shape() != network._began_with:
        raise ValueError(
            f"{type(network).__name__}: {', '.join(network._shape_parameters)} changed since learning began; set it "
            "back before saving"
        )
    state = network._state
    fields: dict[str, Any] = {"memory_": network.memory_} if hasattr(network, "memory_") else {}
    fields |= {
        "state": {name: getattr(state, name) for name in _ARRAYS},
        "counters": {name: int(state.counters[place]) for name, place in _COUNTERS.items()},
        "classes_": network.classes_,
        "n_features_in_": int(state.sizes[0]),
    }
    if "feature_names_in_" in vars(network):
        fields["feature_names_in_"] = vars(network)["feature_names_in_"]
    return fields


def import_network(network: OnlineNetwork, fields: dict[str, Any], memory: Any = None) -> None:
    """Give ``network``, fresh from its parameters, the state in ``fields``; ValueError if it cannot be its state.

    ``memory`` is the memory that opens its gates, already checked, or None for a network without gates.
    """
    owner = type(network).__name__
    network._check_settings()
    if not (network.unlabeled is None or isinstance(network.unlabeled, (str, int, float))):
        raise ValueError(f"{owner}: unlabeled is neither text nor a number")
    needed = ("state", "counters", "classes_", "n_features_in_")
    check_names(owner, fields, needed if memory is None else ("memory_", *needed), ("feature_names_in_",))
    classes, n_features = fields["classes_"], fields["n_features_in_"]
    check_vector("classes_", classes)
    if not np.array_equal(np.unique(classes), classes):
        raise ValueError(f"{owner}: its classes are not sorted and distinct")
    if type(n_features) is not int or not 1 <= n_features < 2**31:
        raise ValueError(f"{owner}: n_features_in_={n_features!r} is not possible")
    state = _check_state(network, fields["state"], fields["counters"], n_features, len(classes), memory)
    if memory is None:
        network.n_features_in_ = n_features
        if "feature_names_in_" in fields:
            check_vector("feature_names_in_", fields["feature_names_in_"], n_features)
            network.feature_names_in_ = fields["feature_names_in_"]
    else:
        network.memory_ = memory
    network.classes_, network._began_with, network._state = classes, network._shape(), state


def _check_state(
    network: OnlineNetwork, arrays: Any, counts: Any, n_features: int, n_classes: int, memory: Any
) -> NetworkState:
    owner = type(network).__name__
    check_names(owner, arrays, _ARRAYS)
    check_names(owner, counts, _COUNTERS)
    sizes = [n_features, *map(int, network.hidden_sizes)]
    n_parameters = sum(units * (inputs + 1) for inputs, units in pairwise([*sizes, n_classes]))
    optimizer = network._optimizer()
    parameters, gates = arrays["parameters"], arrays["gates"]
    if not (isinstance(parameters, np.ndarray) and parameters.dtype in (np.float32, np.float64)):
        raise ValueError(f"{owner}: its parameters are not float32 or float64")
    n_open = [0] * (len(sizes) - 1) if memory is None else network._open_units()
    n_blocks = len(gates) if isinstance(gates, np.ndarray) and gates.ndim == 3 else 0
    shapes = {
        "parameters": (n_parameters,), "velocity": (0 if optimizer == SGD else n_parameters,),
        "power": (n_parameters if optimizer == ADAM else 0,), "gates": (n_blocks, len(n_open), max(n_open, default=0)),
        "steps": (n_blocks,), "class_rows": (n_classes,),
    }  # fmt: skip
    for name, shape in shapes.items():
        dtype = parameters.dtype if name in ("parameters", "velocity", "power") else np.dtype(np.int64)
        array = arrays[name]
        if not (isinstance(array, np.ndarray) and array.shape == shape and array.dtype == dtype):
            raise ValueError(f"{owner}: {name} is not an array of {dtype} of shape {shape}")
        if not np.isfinite(array).all():
            raise ValueError(f"{owner}: {name} holds NaN or infinity; the network had diverged")
    seed = arrays["seed"]
    if not (isinstance(seed, np.ndarray) and seed.dtype == np.int64 and seed.ndim == 1 and 1 <= seed.size <= 64):
        raise ValueError(f"{owner}: its seed is damaged")
    least = min(a.min(initial=0) for a in (seed, arrays["power"], arrays["steps"]))
    if least < 0 or sorted(arrays["class_rows"].tolist()) != list(range(n_classes)):
        raise ValueError(f"{owner}: its seed, steps or rows of classes are damaged")
    if not all(type(count) is int and 0 <= count < 2**62 for count in counts.values()) or counts["classes"] > n_classes:
        raise ValueError(f"{owner}: its counters are damaged")
    if memory is None:
        if n_blocks != 1:
            raise ValueError(f"{owner}: it has {n_blocks} blocks of units instead of one")
    else:
        _check_gates(owner, gates, sizes[1:], n_open, memory, n_features, parameters.dtype)
    counters = np.zeros(len(_COUNTERS), np.int64)
    for name, place in _COUNTERS.items():
        counters[place] = counts[name]
    return NetworkState(**arrays, sizes=np.array(sizes, np.int64), counters=counters)


def _check_gates(
    owner: str, gates: Any, sizes: list[int], n_open: list[int], memory: Any, n_features: int, dtype: Any
) -> None:
    if memory.n_features_in_ != n_features or memory._state.prototypes.dtype != dtype:
        raise ValueError(f"{owner}: memory and network are made for different data")
    if len(gates) < memory.n_blocks_:
        raise ValueError(f"{owner}: {len(gates)} gates do not serve {memory.n_blocks_} blocks")
    for layer, (size, count) in enumerate(zip(sizes, n_open, strict=True)):
        units, padding = gates[:, layer, :count], gates[:, layer, count:]
        inside = units.size == 0 or (units.min() >= 0 and units.max() < size and (np.diff(units, axis=1) > 0).all())
        if not inside or (padding != -1).any():
            raise ValueError(f"{owner}: its gates name units that layer {layer} does not have")
