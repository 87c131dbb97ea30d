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
from ccmem.core.allocation import aligned_zeros
from ccmem.core.parameters import Rule
from ccmem.core.sklearn import NotFittedError, clone
from ccmem.core.state import UNITS, new_units
from ccmem.core.typing import BoolArray, FloatArray, IntArray
from ccmem.kernels.competition import distances
from ccmem.ncl import activations, competitions, growths, neighbourhoods, rates, updates
from ccmem.ncl.compose import Composition, compose
from ccmem.ncl.errors import FAILURES, explained, wrapped
from ccmem.ncl.interpreted import interpreted
from ccmem.ncl.parts import PLACES, Array, Choice, Parameter, Part

_FIRST_ROOM = 64
"""First capacity of a memory that grows; it doubles whenever it is full."""
_UNLIMITED = 2**62
LARGEST_TO_RAISE = 1e15
"""Largest absolute value for which sums of differences raised to the highest order are finite."""
_CORE: dict[str, Callable[[Any, int], Any]] = {
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
    _rules: ClassVar[dict[str, Rule]]
    _in_python = False

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls._declared = dict(cls.parameters)
        for function in cls._every_function():
            if isinstance(function, Choice):
                cls._declared.setdefault(function.parameter, function.declared())
            else:
                for name, parameter in function.part.parameters.items():
                    cls._declared.setdefault(name, parameter)
        if cls.__init__ is Model.__init__ or hasattr(cls.__init__, "__signature__"):
            cls.__init__ = _initialiser(cls._declared)  # type: ignore[method-assign]
        names = list(inspect.signature(cls.__init__).parameters)[1:]
        cls._rules = {name: cls._declared[name].rule for name in names if name in cls._declared}
        cls._shape_parameters = tuple(name for name in names if name in cls._rules and cls._declared[name].fixed)

    def __init__(self, **parameters: Any) -> None:
        raise TypeError("ccmem.ncl.Model is a base class; name the parts of a model in a subclass")

    @classmethod
    def _every_function(cls) -> list[Any]:
        """Return the choices and all part functions that the class may use."""
        named = [getattr(cls, place) for place in PLACES]
        found = []
        for function in named:
            if isinstance(function, Choice):
                found += [function, *function.options.values()]
            else:
                found.append(function)
        return found

    # Composition ----------------------------------------------------------------------------------------------------

    def _composed(self) -> Composition:
        """Return the kernels for the current parameters."""
        known = self.__dict__.get("_composition")
        if known is None:
            chosen = [getattr(type(self), place) for place in PLACES]
            chosen = [c.options[getattr(self, c.parameter)] if isinstance(c, Choice) else c for c in chosen]
            known = self.__dict__["_composition"] = compose(tuple(chosen), self._names_of_settings(chosen))
        return known

    def _names_of_settings(self, functions: list[Any]) -> tuple[str, ...]:
        names = ["limit", "learning_rate", *(n for n, p in self._rules_of(functions).items() if p.kind is not None)]
        scratch = [name for function in functions for name in function.part.scratch]
        return tuple(dict.fromkeys([*names, *_CORE, *scratch]))

    def _rules_of(self, functions: Any) -> dict[str, Parameter]:
        """Return the declarations of the parameters that the kernel of these functions reads, by name."""
        declared = dict(type(self).parameters)
        for function in functions:
            declared.update({name: self._declared[name] for name in function.part.parameters})
        return declared

    @property
    def _parts(self) -> dict[str, Part]:
        return self._composed().parts

    @property
    def kernel_source(self) -> str:
        """Source of the composed kernel, exactly as compiled."""
        return self._composed().source

    def plain(self) -> Self:
        """Return an unfitted copy that learns in plain Python, the reference of the kernel."""
        copy = clone(self)
        copy.__dict__["_in_python"] = True
        return copy

    # Required by CompetitiveMemory ------------------------------------------------------------------------------------

    @property
    def _state_type(self) -> Any:  # type: ignore[override]
        return self._composed().module.State

    @property
    def _by_distance(self) -> bool:  # type: ignore[override]
        return not self._parts["activation"].similarity

    @property
    def _arrays(self) -> dict[str, Array]:
        """Arrays of the state that parts declare."""
        return {name: array for part in self._parts.values() for name, array in part.state.items()}

    @property
    def _per_column(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("prototypes", *(name for name, array in self._arrays.items() if array.axes == "column"))

    @property
    def _learn_kernel(self) -> Any:
        learn = self._composed().module.learn
        return interpreted(learn) if self._in_python else learn

    def _limit(self) -> int:
        """Return the largest number of units."""
        if hasattr(self, "rows"):
            return int(self.rows * self.columns)
        most = getattr(self, "n_units", None) or getattr(self, "max_units", None)
        return _UNLIMITED if most is None else int(most)

    def _gradual(self) -> bool:
        return self._parts["growth"].gradual

    def _new_state(self, n_features: int, dtype: np.dtype[Any], rng: np.random.Generator) -> Any:
        self._check_winners()
        capacity = min(_FIRST_ROOM, self._limit()) if self._gradual() else self._limit()
        units = new_units(
            capacity, n_features, dtype, float(getattr(self, "learning_rate", 1.0)), len(self._own_counters)
        )
        arrays = {name: _filled(array, capacity, n_features, dtype) for name, array in self._arrays.items()}
        state = self._state_type(*units, **arrays)
        if not isinstance(getattr(self, "init", "first"), str):
            self._start_given(state)
        return state

    def _check_winners(self) -> None:
        if getattr(self, "n_winners", 1) > self._limit():
            raise ValueError(f"{type(self).__name__}: n_winners={self.n_winners} cannot exceed n_units={self.n_units}")

    def _start_given(self, state: Any) -> None:
        """Store the prototypes given by ``init`` in a new state."""
        given, shape = np.asarray(self.init), state.prototypes.shape
        if given.shape != shape or not np.isfinite(given.astype(np.float64)).all():
            raise ValueError(
                f"{type(self).__name__}: init has shape {given.shape}; it must hold finite prototypes of shape "
                f"(n_units, n_features) = {shape}"
            )
        state.prototypes[:] = given
        check_finite(state.prototypes)
        state.counters[UNITS] = len(given)

    def _settings(self) -> Any:
        composed, capacity = self._composed(), len(self._state.prototypes)
        values: dict[str, Any] = {"limit": self._limit(), "learning_rate": float(getattr(self, "learning_rate", 1.0))}
        for name, parameter in self._rules_of([part.function for part in composed.parts.values()]).items():
            if parameter.kind is not None:
                values[name] = parameter.kind(getattr(self, name))
        scratch = {name: make for part in composed.parts.values() for name, make in part.scratch.items()}
        for name, make in {**_CORE, **scratch}.items():
            values[name] = make(self, capacity)
        return composed.module.Settings(**values)

    def _layout(self, capacity: int, n_features: int, dtype: np.dtype[Any]) -> dict[str, Any]:
        arrays = {n: (a.shape(capacity, n_features), a.dtype or dtype) for n, a in self._arrays.items()}
        return {**super()._layout(capacity, n_features, dtype), **arrays}

    def _grow(self, row: FloatArray) -> None:
        state = self._state
        n, n_features = state.prototypes.shape
        if state.counters[UNITS] < n or n >= self._limit():
            raise explained(self, row)
        capacity = min(2 * n, self._limit())
        wider = new_units(capacity, n_features, state.prototypes.dtype, 1.0, len(self._own_counters))
        fresh = wider._asdict() | {
            k: _filled(a, capacity, n_features, state.prototypes.dtype) for k, a in self._arrays.items()
        }
        for name, array in fresh.items():
            old = getattr(state, name)
            if name in ("counters", "journal"):
                fresh[name] = old
            else:
                array[tuple(map(slice, old.shape))] = old
        self._state = type(state)(**fresh)

    def _widen(self, n_features: int) -> None:
        before = self._started().prototypes.shape[1]
        super()._widen(n_features)
        for name, array in self._arrays.items():
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
        self._check_powers(rows)
        if not reset:
            self._check_powers(self._state.prototypes)
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
        first = int(self._state.counters[0])
        try:
            return super()._learn_all(X, learn)
        except FAILURES as problem:
            raise explained(self, X[int(self._state.counters[0]) - first], problem) from problem

    def _prepare_single_sample(self, row: FloatArray) -> tuple[Callable[..., int], tuple[Any, ...], IntArray]:
        try:
            learn, settings, winner = super()._prepare_single_sample(row)
        except FAILURES as problem:
            raise explained(self, row[0], problem) from problem
        if self._in_python or not all(part.own for part in self._parts.values()):
            learn = wrapped(self, learn)
            self.__dict__["_single_sample_call"] = learn, settings, winner
        return learn, settings, winner

    def _order(self) -> float | None:
        """Return the order of the distance if the activation is a p-norm, which has faster kernels."""
        function = self._parts["activation"].function
        if function is activations.p_norm:
            return float(self.p)
        return 2.0 if function is activations.euclidean else None

    def _score(self, X: FloatArray, prototypes: FloatArray, out: FloatArray) -> None:
        p = self._order()
        if p is not None:
            in_slabs(lambda s: distances(X[s], prototypes, p, out[s]), len(X), len(X) * prototypes.size)
            return
        done = self._composed().module.score(self._state, self._settings(), X, len(prototypes), out)
        if done < len(X):
            raise explained(self, X[done])

    def _match(self, X: FloatArray, prototypes: FloatArray, competes: BoolArray, winners: IntArray) -> None:
        p = self._order()
        if p is not None:
            nearest_units(X, prototypes, competes, p, winners)
            return
        check_finite(X)
        done = self._composed().module.match(self._state, self._settings(), X, competes, winners)
        if done < len(X):
            raise explained(self, X[done])

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


def _filled(array: Array, capacity: int, n_features: int, dtype: Any) -> Any:
    made = aligned_zeros(array.shape(capacity, n_features), array.dtype or dtype)
    made[...] = array.fill
    return made


def _initialiser(declared: dict[str, Parameter]) -> Callable[..., None]:
    """Return an ``__init__`` with these parameters, all but the first by keyword alone."""

    def initialise(self: Any, *first: Any, **given: Any) -> None:
        values = signature.bind(self, *first, **given)
        values.apply_defaults()
        self._assign(values.arguments)

    kinds = inspect.Parameter
    by_place = [kinds("self", kinds.POSITIONAL_OR_KEYWORD)]
    for name, parameter in declared.items():
        kind = kinds.KEYWORD_ONLY if len(by_place) > 1 else kinds.POSITIONAL_OR_KEYWORD
        by_place.append(kinds(name, kind, default=parameter.default))
    signature = inspect.Signature(by_place)
    initialise.__signature__ = signature  # type: ignore[attr-defined]
    return initialise
