"""Validation of stored states, and export and import of networks. Kernels use values of the state as indices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ccmem.base.storage import check_names, check_vector
from ccmem.core.allocation import aligned, grown
from ccmem.core.typing import IntArray
from ccmem.readout.network import ADAM, SGD, NetworkState, hidden_shape

if TYPE_CHECKING:
    from ccmem.base.memory import CompetitiveMemory
    from ccmem.readout._estimator import OnlineNetwork

_COUNTERS = ("seen", "taught", "current", "stay", "since")
_ARRAYS = (
    "parameters",
    "velocity",
    "power",
    "gates",
    "steps",
    "class_rows",
    "membership",
    "kept",
    "kept_membership",
    "seed",
)


def check_classes(owner: str, classes: Any, unlabeled: Any) -> None:
    """Raise ValueError unless ``classes`` are sorted and distinct, and ``unlabeled`` is None, text or a number."""
    check_vector("classes_", classes)
    if not np.array_equal(np.unique(classes), classes):
        raise ValueError(f"{owner}: its classes are not sorted and distinct")
    if not (unlabeled is None or isinstance(unlabeled, (str, int, float))):
        raise ValueError(f"{owner}: unlabeled is neither text nor a number")


def checked_arrays(
    owner: str, fields: dict[str, Any], like: dict[str, Any], may_be_infinite: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return copies of the arrays in ``fields``; ValueError unless they have the shapes and types of those in ``like``.

    Counters are stored by name, so a dictionary is read as an array of integers.
    """
    arrays = {}
    for name, wanted in like.items():
        array = fields[name]
        if isinstance(array, dict):
            if not all(type(count) is int and -1 <= count < 2**62 for count in array.values()):
                raise ValueError(f"{owner}: its counters are damaged")
            array = np.array(list(array.values()), np.int64)
        if not (isinstance(array, np.ndarray) and array.shape == wanted.shape and array.dtype == wanted.dtype):
            raise ValueError(f"{owner}: {name} is not an array of {wanted.dtype} of shape {wanted.shape}")
        if array.dtype.kind == "f" and (
            np.isnan(array).any() or (np.isinf(array).any() and name not in may_be_infinite)
        ):
            raise ValueError(f"{owner}: {name} holds NaN or infinity")
        arrays[name] = aligned(array)
    return arrays


def _like(shape: Any, dtype: Any) -> Any:
    """Return an array of this shape that takes no memory, however large a damaged file says it is."""
    return np.broadcast_to(np.empty((), dtype), shape)


def export_network(net: OnlineNetwork) -> dict[str, Any]:
    """Return the learned state of ``net`` without its memory: arrays, counters by name, classes."""
    if net._shape() != net._began_with:
        raise ValueError(
            f"{type(net).__name__}: {', '.join(net._shape_parameters)} changed since learning began; set it back "
            "before saving"
        )
    return {
        "state": {name: getattr(net._state, name) for name in _ARRAYS},
        "counters": dict(zip(_COUNTERS, net._state.counters.tolist(), strict=True)),
        "classes_": net.classes_,
    }


def import_network(
    net: OnlineNetwork, fields: dict[str, Any], n_features: Any, least_blocks: int, n_open: list[int]
) -> None:
    """Restore the state in ``fields`` into ``net``, a new network of equal parameters; ValueError if it is invalid.

    In a network without gates, ``n_open`` is empty.
    """
    owner = type(net).__name__
    net._check_settings()
    arrays, counts, classes = fields["state"], fields["counters"], fields["classes_"]
    check_names(owner, arrays, _ARRAYS)
    check_names(owner, counts, _COUNTERS)
    check_classes(owner, classes, net.unlabeled)
    if type(n_features) is not int or n_features < 1:
        raise ValueError(f"{owner}: n_features_in_={n_features!r} is not a number of columns")
    sizes = np.array([n_features, *net.hidden_sizes], np.int64)
    layers = [hidden_shape(sizes, layer, bool(n_open)) for layer in range(len(sizes) - 1)]
    n_weights = int(sum(n_rows * stride for n_rows, stride in [*layers, (len(classes), sizes[-1] + 1)]))
    n_blocks = len(arrays["steps"]) if isinstance(arrays["steps"], np.ndarray) and arrays["steps"].ndim == 1 else -1
    if n_blocks < least_blocks or (not n_open and n_blocks != 1):
        raise ValueError(f"{owner}: it has no gates for every block of its memory")
    optimizer = net._optimizer()
    parameters = arrays["parameters"]
    dtype = parameters.dtype if isinstance(parameters, np.ndarray) and parameters.dtype == np.float32 else np.float64
    n_kept = 2 * (net._undo() > 0)
    like = {
        "parameters": _like(n_weights, dtype),
        "velocity": _like(0 if optimizer == SGD else n_weights, dtype),
        "power": _like(n_weights if optimizer == ADAM else 0, dtype),
        "gates": _like((n_blocks, len(sizes) - 1, max(n_open, default=0)), np.int64),
        "steps": _like(n_blocks, np.int64),
        "class_rows": _like(len(classes), np.int64),
        "membership": _like((1 + n_blocks, len(classes)), np.bool_),
        "kept": _like((n_kept, n_weights), dtype),
        "kept_membership": _like((n_kept, len(classes)), np.bool_),
        "seed": _like(2, np.int64),
    }
    arrays = checked_arrays(owner, arrays, like)
    if not np.array_equal(np.sort(arrays["class_rows"]), np.arange(len(classes))):
        raise ValueError(f"{owner}: its output units do not belong to its classes")
    if min(arrays["seed"].min(), arrays["steps"].min(initial=0)) < 0:
        raise ValueError(f"{owner}: its seed or its step counts are negative")
    for layer, count in enumerate(n_open):
        units, padding = np.split(arrays["gates"][:, layer], [count], axis=1)
        distinct = (np.diff(units, axis=1) > 0).all()
        if not (distinct and units.min() >= 0 and units.max() < sizes[layer + 1] and (padding == -1).all()):
            raise ValueError(f"{owner}: its gates do not name units of hidden layer {layer}")
    least = {"current": -1}
    if not all(type(count) is int and least.get(name, 0) <= count < 2**62 for name, count in counts.items()):
        raise ValueError(f"{owner}: its counters are damaged")
    if counts["current"] >= n_blocks:
        raise ValueError(f"{owner}: its block in use is none of its {n_blocks} blocks")
    net._state = NetworkState(**arrays, sizes=sizes, counters=np.array(list(counts.values()), np.int64))
    net._began_with = net._shape()
    net.classes_ = classes


def fitting_votes(memory: CompetitiveMemory, classes: Any, votes: Any) -> IntArray:
    """Return saved votes with one row per unit of the memory; raise ValueError if they do not fit."""
    capacity = len(memory._state.prototypes)
    needed = capacity if memory._capacity_for(0) is None else memory.n_units_
    if not (isinstance(votes, np.ndarray) and votes.dtype == np.int64 and votes.shape[1:] == (len(classes),)):
        raise ValueError(f"ModalClassifier: votes are not whole numbers of shape {(needed, len(classes))}")
    if len(votes) < needed:
        raise ValueError(f"ModalClassifier: votes of {len(votes)} units do not fit a memory of {needed}")
    if votes.size and votes.min() < 0:
        raise ValueError("ModalClassifier: votes are negative")
    return grown(votes[:needed], capacity)
