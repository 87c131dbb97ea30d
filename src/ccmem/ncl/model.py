"""Memory composed of parts: kernel, reference, state, parameters and prediction are derived from the parts."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np

from ccmem.base.matching import in_slabs
from ccmem.base.matching import nearest as nearest_units
from ccmem.base.memory import ChunkResult, CompetitiveMemory
from ccmem.base.validation import check_finite
from ccmem.core.parameters import Rule
from ccmem.core.sklearn import NotFittedError, clone
from ccmem.core.state import SEEN, UNITS, new_units
from ccmem.core.typing import BoolArray, FloatArray, IntArray
from ccmem.kernels.competition import distances
from ccmem.ncl import activations, competitions, growths, neighbourhoods, rates, updates
from ccmem.ncl.compose import Composition
from ccmem.ncl.errors import FAILURES, explained
from ccmem.ncl.parts import PLACES, Choice, Parameter, declared_by

_FIRST_ROOM = 64
"""First capacity of a memory that grows; it doubles whenever it is full."""
LARGEST_TO_RAISE = 1e15
"""Largest absolute value for which sums of differences raised to the highest order are finite."""
_SCRATCH: dict[str, Callable[[Any, int], Any]] = {
    "h": lambda model, capacity: np.empty(capacity),
    "best": lambda model, capacity: np.empty(max(2, min(capacity, getattr(model, "n_winners", 1))), np.int64),
    "units": lambda model, capacity: np.empty(max(2, capacity), np.int64),
    "strengths": lambda model, capacity: np.empty(max(2, capacity)),
}
"""Arrays of ``settings`` that every kernel has."""


class Model(CompetitiveMemory):
    """Base of composed memories. A subclass names the parts that differ from winner-take-all.

    A class without ``__init__`` gets one with the parameters that its parts declare, and those in ``parameters``.

    Attributes
    ----------
    activation, competition, neighbourhood, rate, update, growth
        Parts (see :mod:`ccmem.ncl.parts`), or several of them to choose from by a parameter
        (:func:`ccmem.ncl.by_parameter`).
    parameters : dict
        Further parameters, by name.
    """

    activation: ClassVar[Any] = activations.p_norm
    competition: ClassVar[Any] = competitions.nearest
    neighbourhood: ClassVar[Any] = neighbourhoods.winners
    rate: ClassVar[Any] = rates.decaying
    update: ClassVar[Any] = updates.hebbian
    growth: ClassVar[Any] = growths.first_samples
    parameters: ClassVar[dict[str, Parameter]] = {"n_units": growths.N_UNITS}

    _declared: ClassVar[dict[str, Parameter]]
    _compositions: ClassVar[dict[tuple[Any, ...], Composition]]
    _rules: ClassVar[dict[str, Rule]]
    _in_python = False

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        parts = [declared_by(getattr(cls, place)) for place in PLACES]
        cls._declared = {name: p for part in reversed(parts) for name, p in part.items()} | cls.parameters
        order = dict.fromkeys([*cls.parameters, *(name for part in parts for name in part)])
        cls._compositions = {}
        if cls.__init__ is Model.__init__ or hasattr(cls.__init__, "__signature__"):
            cls.__init__ = _initialiser({name: cls._declared[name].default for name in order})  # type: ignore[method-assign]
        names = [name for name in inspect.signature(cls.__init__).parameters if name in cls._declared]
        cls._rules = {name: cls._declared[name].rule for name in names}
        cls._shape_parameters = tuple(name for name in names if cls._declared[name].fixed)

    def __init__(self, **parameters: Any) -> None:
        raise TypeError("ccmem.ncl.Model is a base class; name the parts of a model in a subclass")

    def _composed(self) -> Composition:
        """Return the kernels for the current parameters."""
        known = self.__dict__.get("_composition")
        if known is None:
            named = [getattr(type(self), place) for place in PLACES]
            functions = tuple(f.options[getattr(self, f.parameter)] if isinstance(f, Choice) else f for f in named)
            if functions not in self._compositions:
                names = dict.fromkeys([*self.parameters, *(name for f in functions for name in f.part.parameters)])
                read = {name: self._declared[name] for name in names}
                self._compositions[functions] = Composition(functions, read, _SCRATCH)
            known = self.__dict__["_composition"] = self._compositions[functions]
        return known

    @property
    def kernel_source(self) -> str:
        """Source of the composed kernel, exactly as compiled."""
        return self._composed().source

    def plain(self) -> Self:
        """Return an unfitted copy whose loop and parts run in plain Python, the reference of the kernel."""
        copy = clone(self)
        copy.__dict__["_in_python"] = True
        return copy

    # Required by CompetitiveMemory ------------------------------------------------------------------------------------

    @property
    def _state_type(self) -> Any:  # type: ignore[override]
        return self._composed().module.State

    @property
    def _by_distance(self) -> bool:  # type: ignore[override]
        return not self._composed().parts["activation"].similarity

    @property
    def _per_column(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("prototypes", *(name for name, array in self._composed().arrays.items() if array.axes == "column"))

    @property
    def _learn_kernel(self) -> Any:
        return self._composed().plain()["learn"] if self._in_python else self._composed().module.learn

    def _limit(self) -> int:
        """Return the largest number of units."""
        if hasattr(self, "rows"):
            return int(self.rows * self.columns)
        return int(getattr(self, "n_units", None) or getattr(self, "max_units", None) or 2**62)

    def _gradual(self) -> bool:
        return self._composed().parts["growth"].gradual

    def _empty_state(self, capacity: int, n_features: int, dtype: np.dtype[Any]) -> Any:
        rate = float(getattr(self, "learning_rate", 1.0))
        units = new_units(capacity, n_features, dtype, rate, len(self._own_counters))
        arrays = {name: array.new(capacity, n_features, dtype) for name, array in self._composed().arrays.items()}
        return self._state_type(*units, **arrays)

    def _new_state(self, n_features: int, dtype: np.dtype[Any], rng: np.random.Generator) -> Any:
        self._check_winners()
        capacity = min(_FIRST_ROOM, self._limit()) if self._gradual() else self._limit()
        state = self._empty_state(capacity, n_features, dtype)
        if not isinstance(getattr(self, "init", "first"), str):
            given, shape = np.asarray(self.init), state.prototypes.shape
            if given.shape != shape or not np.isfinite(given.astype(np.float64)).all():
                raise ValueError(
                    f"{type(self).__name__}: init has shape {given.shape}; it must hold finite prototypes of shape "
                    f"(n_units, n_features) = {shape}"
                )
            state.prototypes[:] = given
            check_finite(state.prototypes)
            state.counters[UNITS] = len(given)
        return state

    def _check_winners(self) -> None:
        if getattr(self, "n_winners", 1) > self._limit():
            raise ValueError(f"{type(self).__name__}: n_winners={self.n_winners} cannot exceed n_units={self.n_units}")

    def _settings(self) -> Any:
        composed, capacity = self._composed(), len(self._state.prototypes)
        values: dict[str, Any] = {"limit": self._limit(), "learning_rate": float(getattr(self, "learning_rate", 1.0))}
        values |= {name: kind(getattr(self, name)) for name, kind in composed.kinds.items()}
        values |= {name: make(self, capacity) for name, make in composed.scratch.items()}
        return composed.module.Settings(**values)

    def _layout(self, capacity: int, n_features: int, dtype: np.dtype[Any]) -> dict[str, Any]:
        arrays = self._composed().arrays.items()
        own = {name: (array.shape(capacity, n_features), array.dtype or dtype) for name, array in arrays}
        return {**super()._layout(capacity, n_features, dtype), **own}

    def _grow(self, row: FloatArray) -> None:
        state = self._state
        n, n_features = state.prototypes.shape
        if state.counters[UNITS] < n or n >= self._limit():
            raise explained(self, row)
        wider = self._empty_state(min(2 * n, self._limit()), n_features, state.prototypes.dtype)
        wider = wider._replace(counters=state.counters, journal=state.journal)
        for old, new in zip(state, wider, strict=True):
            new[tuple(map(slice, old.shape))] = old
        self._state = wider

    def _widen(self, n_features: int) -> None:
        before = self._started().prototypes.shape[1]
        super()._widen(n_features)
        for name, array in self._composed().arrays.items():
            if array.axes == "column" and array.fill:
                getattr(self._state, name)[:, before:] = array.fill

    def _check_state(self, state: Any) -> None:
        n = len(state.prototypes)
        if n > self._limit() or (not self._gradual() and n != self._limit()):
            raise ValueError(f"a state of {n} units does not fit a limit of {self._limit()}")
        self._check_winners()
        self._check_powers(state.prototypes)

    def _check(self, X: Any, reset: bool, finite: bool = True, missing: bool = True) -> FloatArray:
        rows = super()._check(X, reset, finite, missing)
        for numbers in (rows,) if reset else (rows, self._state.prototypes):
            self._check_powers(numbers)
        return rows

    def _check_powers(self, numbers: FloatArray) -> None:
        """Raise if differences of these values could overflow when raised to the power p."""
        p = getattr(self, "p", 2.0)
        if p not in (1.0, 2.0, np.inf) and (np.abs(numbers) > LARGEST_TO_RAISE).any():
            raise ValueError(
                f"{type(self).__name__}: numbers beyond {LARGEST_TO_RAISE:.0e} are too large for distances of order "
                f"p={p}; rescale the data, or take p=1, 2 or inf"
            )

    # Learning and predicting ----------------------------------------------------------------------------------------

    def _learn_all(self, X: FloatArray, learn: Callable[..., int] | None) -> ChunkResult:
        first = int(self._state.counters[SEEN])
        try:
            return super()._learn_all(X, learn)
        except FAILURES as problem:
            raise explained(self, X[int(self._state.counters[SEEN]) - first], problem) from problem

    def _learn_row(self, row: FloatArray) -> ChunkResult:
        if self._in_python:
            return self._learn(row)
        try:
            return super()._learn_row(row)
        except FAILURES as problem:
            raise explained(self, row[0], problem) from problem

    def _order(self) -> float | None:
        """Return the order of the distance if the activation is a p-norm, which has faster kernels."""
        function = self._composed().parts["activation"].function
        if function is activations.p_norm:
            return float(self.p)
        return 2.0 if function is activations.euclidean else None

    def _activate(self, X: FloatArray, n: int, out: FloatArray) -> None:
        done = self._composed().module.score(self._state, self._settings(), X, n, out)
        if done < len(X):
            raise explained(self, X[done])

    def _score(self, X: FloatArray, prototypes: FloatArray, out: FloatArray) -> None:
        p = self._order()
        if p is not None:
            in_slabs(lambda s: distances(X[s], prototypes, p, out[s]), len(X), len(X) * prototypes.size)
            return
        self._activate(X, len(prototypes), out)
        if not self._by_distance:
            np.negative(out, out)

    def _match(self, X: FloatArray, prototypes: FloatArray, competes: BoolArray, winners: IntArray) -> None:
        p = self._order()
        if p is not None:
            nearest_units(X, prototypes, competes, p, winners)
            return
        check_finite(X)
        h = np.empty((min(len(X), 1024), len(prototypes)))
        for start in range(0, len(X), len(h)):
            rows = X[start : start + len(h)]
            self._activate(rows, len(prototypes), h)
            h[:, ~competes] = np.inf
            winners[start : start + len(h)] = h[: len(rows)].argmin(axis=1) if competes.any() else -1

    def _require_units(self) -> None:
        if self._started().counters[UNITS] == 0:
            raise NotFittedError(f"This {type(self).__name__} has no unit at the moment; let it learn more rows first")

    # Copies ---------------------------------------------------------------------------------------------------------

    _not_pickled: ClassVar[tuple[str, ...]] = (*CompetitiveMemory._not_pickled, "_composition", "_paused")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._shape_parameters:
            self.__dict__.pop("_composition", None)
        super().__setattr__(name, value)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        if "_state" in state:  # its type is in a module that other processes cannot import
            state["_state"] = tuple(state["_state"])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        arrays = state.pop("_state", None)
        self.__dict__.update(state)
        if arrays is not None:
            state["_state"] = self._state_type._make(arrays)
        super().__setstate__(state)


def _initialiser(defaults: dict[str, Any]) -> Callable[..., None]:
    """Return an ``__init__`` with these parameters, all but the first by keyword alone."""

    def initialise(self: Any, *first: Any, **given: Any) -> None:
        values = signature.bind(self, *first, **given)
        values.apply_defaults()
        self._assign(values.arguments)

    kind = inspect.Parameter
    listed = [kind(name, kind.KEYWORD_ONLY, default=default) for name, default in defaults.items()]
    listed[:1] = [one.replace(kind=kind.POSITIONAL_OR_KEYWORD) for one in listed[:1]]
    signature = inspect.Signature([kind("self", kind.POSITIONAL_OR_KEYWORD), *listed])
    initialise.__signature__ = signature  # type: ignore[attr-defined]
    return initialise
