"""Every model with the ways to try it: parameters for hypothesis, and how to call its naive twin."""

from __future__ import annotations

import importlib
import re
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from ccmem import models
from ccmem.models import ccm
from ccmem.models.adaptive.twin import naive as adaptive_twin

ALL = [getattr(models, name) for name in models.__all__]

_rates = {"learning_rate": st.sampled_from([0.01, 0.35, 0.5, 1.0]), "rate_decay": st.sampled_from([0.9, 0.998, 1.0])}
_orders = st.sampled_from([1.0, 2.0, 3.0, np.inf])

PARAMETERS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "IncrementalWTA": {"n_units": st.integers(2, 6), "n_winners": st.integers(1, 2), "p": _orders, **_rates},
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
"""What to try where not every combination that the rules allow makes sense, or where small numbers find more."""

_VALUES = [None, False, True, 1, 2, 3, 8, 0.01, 0.35, 0.5, 0.9, 1.0, 100.0]


def parameters(model: type) -> dict[str, st.SearchStrategy[Any]]:
    """What to try a model with: as above, or whatever its rules allow."""
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
    """Short integer-valued rows, full of ties, repeats and zeros; now and then wider than the lanes of a sum."""
    width = draw(st.one_of(st.integers(1, 4), st.sampled_from([31, 32, 33, 70])))
    n_rows = draw(st.integers(1, max_rows))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    patterns = draw(npst.arrays(np.int64, (draw(st.integers(1, 6)), width), elements=st.integers(-2, 2)))
    order = draw(st.lists(st.integers(0, len(patterns) - 1), min_size=n_rows, max_size=n_rows))
    return np.ascontiguousarray(patterns[order], dtype=dtype)


def seeded(model: type) -> Any:
    """The model with its defaults, drawing the same numbers every time if it draws any."""
    return model(**{"random_state": 0} if "random_state" in model._get_param_names() else {})


def estimators(model: type) -> st.SearchStrategy[Any]:
    """The model under all sorts of parameters."""
    seeded = {"random_state": st.just(0)} if "random_state" in model._get_param_names() else {}
    return st.builds(model, **{**seeded, **parameters(model)})


def twin(estimator: Any, X: np.ndarray) -> dict[str, Any]:
    """What the model's naive twin makes of the stream."""
    settings = estimator.get_params()
    if type(estimator).__name__ == "AdaptiveCCM":
        known = adaptive_twin(X, tuning=estimator._tuning, **settings)
        del known["statistics"], known["columns"], known["running"], known["counted"], known["means"]
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
    return importlib.import_module(type(estimator).__module__).naive(X, **settings)


def snapshot(estimator: Any) -> dict[str, Any]:
    """Everything a memory knows, as plain values."""
    state = estimator._state
    used = estimator.n_units_
    per_unit = [name for name in ("prototypes", "rates", "wins", "unit_blocks", "errors") if hasattr(state, name)]
    known: dict[str, Any] = {name: getattr(state, name)[:used].copy() for name in per_unit}
    for name in ("means", "statistics", "columns", "ages"):
        if hasattr(state, name):
            known[name] = getattr(state, name)[: estimator.n_blocks_].copy()
    for name in ("vectors", "scalars", "readings", "ring", "missing"):
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
    """Equal bit for bit."""
    assert first.keys() == second.keys()
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name], err_msg=name, strict=isinstance(value, np.ndarray))
