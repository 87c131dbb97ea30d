"""Every model with strategies for its parameters, and calls of its reference implementation."""

from __future__ import annotations

import importlib.util
import re
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from ccmem import models, registry
from naive import ccm
from naive.adaptive import naive as adaptive_twin

ALL = [getattr(models, name) for name in registry.MEMORIES]

_rates = {"learning_rate": st.sampled_from([0.01, 0.35, 0.5, 1.0]), "rate_decay": st.sampled_from([0.9, 0.998, 1.0])}
_orders = st.sampled_from([1.0, 2.0, 3.0, np.inf])

PARAMETERS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "IncrementalWTA": {
        "n_units": st.integers(2, 6),
        "n_winners": st.integers(1, 2),
        "p": _orders,
        "step": st.sampled_from(["hebbian", "adam", "rmsprop"]),
        **_rates,
    },
    "FrequencySensitiveWTA": {
        "n_units": st.integers(1, 6),
        "fairness": st.sampled_from(["wins", "conscience"]),
        "share_rate": st.sampled_from([0.01, 0.5]),
        "p": _orders,
        **_rates,
    },
    "SelfOrganisingMap": {
        "rows": st.integers(1, 4),
        "columns": st.integers(1, 2),
        "topology": st.sampled_from(["rectangular", "hexagonal"]),
        "schedule": st.sampled_from(["fading", "elastic"]),
        "sigma": st.sampled_from([0.2, 1.0]),
        "horizon": st.sampled_from([10.0, np.inf]),
        "p": _orders,
        **_rates,
    },
    "NeuralGas": {
        "n_units": st.integers(1, 12),
        "reach": st.sampled_from([0.1, 0.5, 2.0]),
        "horizon": st.sampled_from([10.0, np.inf]),
        "p": _orders,
        **_rates,
    },
    "GrowingNeuralGas": {
        "n_units": st.integers(1, 8),
        "neighbour_rate": st.sampled_from([0.0, 0.1]),
        "insert_every": st.integers(1, 8),
        "max_age": st.integers(1, 6),
        "utility": st.sampled_from([None, 1.0, 3.0]),
        **_rates,
    },
    "SOINN": {
        "max_units": st.sampled_from([None, 1, 4]),
        "max_age": st.integers(1, 6),
        "prune_every": st.sampled_from([3, 7, 100]),
        "noise": st.sampled_from([0.0, 1.0]),
    },
    "FuzzyART": {
        "max_units": st.sampled_from([None, 1, 4]),
        "vigilance": st.sampled_from([0.0, 0.3, 0.8]),
        "learning_rate": st.sampled_from([0.5, 1.0]),
    },
    "IncrementalGMM": {
        "n_units": st.integers(1, 6),
        "precision": st.sampled_from([0.5, 1.0, 4.0]),
        "temperature": st.sampled_from([0.0285, 0.5, 20.0]),
        "p": _orders,
        **_rates,
    },
    "ARTC2A": {
        "max_units": st.sampled_from([None, 1, 2, 3, 8]),
        "vigilance": st.sampled_from([-1.0, 0.0, 0.7, 0.95, 1.0]),
        "vigilance_reset": st.sampled_from(["input", "pair"]),
        **_rates,
    },
    "CCM": {
        "n_slots": st.integers(1, 3),
        "vigilance": st.sampled_from([0.0, 0.7, 0.9]),
        "recall_vigilance": st.sampled_from([None, 0.5]),
        "alarm_limit": st.integers(0, 3),
        "recall_limit": st.integers(0, 2),
        "commit_limit": st.integers(0, 3),
        "counters": st.sampled_from(["consecutive", "cumulative"]),
        "fair": st.booleans(),
        "init": st.sampled_from(["uniform", "normal"]),
        "random_state": st.integers(0, 3),
        **_rates,
    },
    "AdaptiveCCM": {
        "n_slots": st.integers(1, 4),
        "max_units": st.sampled_from([None, 1, 2, 3, 8]),
        "false_alarm_every": st.sampled_from([100.0, 1e6]),
        "learning_rate": _rates["learning_rate"],
    },
}
"""Parameter strategies for models with invalid combinations of parameters, or where small numbers find more errors."""

_VALUES = [None, False, True, 1, 2, 3, 8, 0.01, 0.35, 0.5, 0.9, 1.0, 100.0]


def parameters(model: type) -> dict[str, st.SearchStrategy[Any]]:
    """Return strategies for the parameters of a model: those above, or those that the rules allow."""
    if model.__name__ in PARAMETERS:
        return PARAMETERS[model.__name__]
    found = {}
    for name, (test, text) in model._rules.items():
        values = [value for value in [*_VALUES, *re.findall(r"'(\w+)'", text)] if test(value)]
        if values:
            found[name] = st.sampled_from(values)
    return found


@st.composite
def streams(draw: st.DrawFn, max_rows: int = 50) -> np.ndarray:
    """Short integer-valued rows, full of ties, repeats and zeros; sometimes wider than the lanes of a sum."""
    width = draw(st.one_of(st.integers(1, 4), st.sampled_from([31, 32, 33, 70])))
    n_rows = draw(st.integers(1, max_rows))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    patterns = draw(npst.arrays(np.int64, (draw(st.integers(1, 6)), width), elements=st.integers(-2, 2)))
    order = draw(st.lists(st.integers(0, len(patterns) - 1), min_size=n_rows, max_size=n_rows))
    return np.ascontiguousarray(patterns[order], dtype=dtype)


def seeded(model: type) -> Any:
    """Create the model with its defaults and a fixed seed, if it uses one."""
    return model(**{"random_state": 0} if "random_state" in model._get_param_names() else {})


def estimators(model: type) -> st.SearchStrategy[Any]:
    """Return a strategy for the model with varied parameters."""
    seeded = {"random_state": st.just(0)} if "random_state" in model._get_param_names() else {}
    return st.builds(model, **{**seeded, **parameters(model)})


def twin(estimator: Any, X: np.ndarray) -> dict[str, Any]:
    """Run the reference implementation of the model on the stream."""
    settings = estimator.get_params()
    if type(estimator).__name__ == "AdaptiveCCM":
        known = adaptive_twin(X, estimator)
        del known["twin"]
        return known
    random_state, init = settings.pop("random_state", None), settings.pop("init", "first")
    if type(estimator).__name__ == "CCM":
        n_slots = settings.pop("n_slots")
        rng = np.random.default_rng(random_state)
        shape = (len(X) + 1, n_slots, X.shape[1])
        slots = rng.random(shape) if init == "uniform" else rng.standard_normal(shape)
        slots /= np.linalg.norm(slots, axis=-1, keepdims=True)
        if settings["recall_vigilance"] is None:
            settings["recall_vigilance"] = settings["vigilance"]
        return ccm.naive(X, list(slots.astype(X.dtype)), **settings)
    module = type(estimator).__module__.rpartition(".")[2]
    folder = "naive" if importlib.util.find_spec(f"naive.{module}") else type(estimator).__module__.rpartition(".")[0]
    return importlib.import_module(f"{folder}.{module}").naive(X, **settings)


def snapshot(estimator: Any) -> dict[str, Any]:
    """Return the complete state of a memory as plain values."""
    state = estimator._state
    used = estimator.n_units_
    per_unit = [
        name
        for name in ("prototypes", "rates", "wins", "unit_blocks", "errors", "complements", "shares", "edges")
        if hasattr(state, name)
    ]
    known: dict[str, Any] = {name: getattr(state, name)[:used].copy() for name in per_unit}
    for name in ("blocks", "ages"):
        if hasattr(state, name):
            known[name] = getattr(state, name)[: estimator.n_blocks_].copy()
    for name in ("scalars", "stream", "gaps"):
        if hasattr(state, name):
            known[name] = getattr(state, name).copy()
    known["counters"] = state.counters.copy()
    known["history"] = list(getattr(estimator, "events_", []))
    known["rng"] = str(estimator._rng.bit_generator.state)
    for name in ("vigilance_", "recall_counts_"):
        if hasattr(estimator, name):
            known[name] = np.array(getattr(estimator, name))
    return known


def assert_same(first: dict[str, Any], second: dict[str, Any]) -> None:
    """Check equality bit for bit."""
    assert first.keys() == second.keys()
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name], err_msg=name, strict=isinstance(value, np.ndarray))
