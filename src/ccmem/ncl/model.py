"""Memory composed of parts: kernel, reference, state, parameters and prediction are derived from the parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from ccmem.base.arrays import Array
from ccmem.base.matching import in_slabs
from ccmem.base.matching import nearest as nearest_units
from ccmem.base.memory import ChunkResult, CompetitiveMemory
from ccmem.base.validation import check_finite
from ccmem.core.codes import MERGE, MOVE, REMOVE
from ccmem.core.parameters import Rule, declare
from ccmem.core.sklearn import clone
from ccmem.core.state import JOURNAL_COLUMNS, JOURNALED, SEEN, UNITS
from ccmem.core.typing import BoolArray, FloatArray, IntArray
from ccmem.kernels.competition import distances
from ccmem.ncl import activations, competitions, growths, neighbourhoods, rates, updates
from ccmem.ncl.compose import Composition
from ccmem.ncl.errors import PartError, check_names, check_parameters_taken, check_places, explained
from ccmem.ncl.parts import PLACES, Choice, Parameter, declared_by, with_defaults

_UNITS = {"prototypes": Array("column"), "rates": Array("unit"), "wins": Array("unit", fill=0)}
_SCRATCH: dict[str, Callable[[Any, int], Any]] = {
    "h": lambda model, capacity: np.empty(capacity),
    "best": lambda model, capacity: np.empty(max(2, min(capacity, getattr(model, "n_winners", 1))), np.int64),
    "units": lambda model, capacity: np.empty(max(2, capacity), np.int64),
    "strengths": lambda model, capacity: np.empty(max(2, capacity)),
}
"""Arrays of ``settings`` that every kernel has."""


class Model(CompetitiveMemory):
    """Base of composed memories. A subclass names the parts that differ from winner-take-all.

    A class without ``__init__`` gets one with the parameters in ``parameters`` and those that its parts declare. Their
    defaults may be replaced in the class statement: ``class Slow(ncl.Model, learning_rate=0.01)``.

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
    _defaults: ClassVar[dict[str, Any]] = {}
    _compositions: ClassVar[dict[tuple[Any, ...], Composition]]
    _rules: ClassVar[dict[str, Rule]]
    _in_python = False
    _codes: tuple[IntArray, ...] = ()
    """Label codes of the chunk that is being learned, if parts see labels."""

    def __init_subclass__(cls, **defaults: Any) -> None:
        super().__init_subclass__()
        check_names(cls, PLACES)
        check_places(cls, PLACES)
        parts = [declared_by(getattr(cls, place)) for place in PLACES]
        declared = {name: p for part in reversed(parts) for name, p in part.items()} | cls.parameters
        cls._defaults = {**cls._defaults, **defaults}
        cls._declared = with_defaults(cls, declared, cls._defaults)
        cls._compositions = {}
        sizes = [name for own in (cls.parameters, parts[-1]) for name, p in own.items() if p.fixed]
        order = dict.fromkeys([*sizes, *cls.parameters, *(name for part in parts for name in part)])
        declare(cls, Model, {name: cls._declared[name] for name in order})
        check_parameters_taken(cls, order)

    def __init__(self, *sizes: Any, **parameters: Any) -> None:
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
    def _state_type(self) -> Any:
        return self._composed().module.State

    @property
    def _by_distance(self) -> bool:  # type: ignore[override]
        return not self._composed().parts["activation"].similarity

    @property
    def _arrays(self) -> dict[str, Array]:  # type: ignore[override]
        return self._composed().arrays

    @property
    def _gradual(self) -> bool:  # type: ignore[override]
        return self._composed().parts["growth"].gradual

    @property
    def _learn_kernel(self) -> Any:
        return self._composed().plain()["learn"] if self._in_python else self._composed().module.learn

    def _settings(self) -> Any:
        composed, capacity = self._composed(), len(self._state.prototypes)
        values: dict[str, Any] = {"limit": self._limit(), "learning_rate": float(getattr(self, "learning_rate", 1.0))}
        try:
            values |= {name: kind(getattr(self, name)) for name, kind in composed.kinds.items()}
            values |= {name: make(self, capacity) for name, make in composed.scratch.items()}
        except AttributeError as problem:
            how = "ncl.GRID" if problem.name in neighbourhoods.GRID else f"{{{problem.name!r}: ncl.Parameter(...)}}"
            text = f"{type(self).__name__} has no {problem.name!r}, which its parts need; write parameters = {how}"
            raise PartError(f"{text} in the class") from problem
        return composed.module.Settings(**values)

    def _grow(self, row: FloatArray) -> None:
        n = len(self._state.prototypes)
        if self._state.counters[UNITS] < n or n >= self._limit():  # the kernel stopped although there is room
            raise RuntimeError(f"the kernel of {type(self).__name__} could not learn a row")
        super()._grow(row)

    def _remove(self, units: Iterable[int], into: int | None = None) -> None:
        """Remove units, from the last to the first, or merge them ``into`` one; the last unit takes the free index."""
        state, lines = self._state, []
        for unit in sorted(units, reverse=True):
            last, step = state.counters[UNITS] - 1, state.counters[SEEN] - 1
            kind, target = (REMOVE, unit) if into is None else (MERGE, into)
            lines.append((kind, step, unit, target, state.wins[target], 0, 0))
            if unit != last:
                lines.append((MOVE, step, last, unit, state.wins[last], 0, 0))
            for name, array in {**_UNITS, **self._arrays}.items():
                values = getattr(state, name)
                if array.axes != "one":
                    values[unit], values[last] = values[last].copy(), array.fill
                if array.axes == "pair":
                    values[:, unit], values[:, last] = values[:, last].copy(), array.fill
                    values[unit, unit] = array.fill
            state.counters[UNITS] = last
        if lines:
            written = state.journal[: state.counters[JOURNALED]]
            journal = np.concatenate([written, np.array(lines, np.int64).reshape(-1, JOURNAL_COLUMNS)])
            self._state = state._replace(journal=journal)
            state.counters[JOURNALED] = len(journal)

    # Learning and predicting ----------------------------------------------------------------------------------------

    def _learn_all(self, X: FloatArray, learn: Callable[..., int] | None) -> ChunkResult:
        first = int(self._state.counters[SEEN])
        try:
            return super()._learn_all(X, learn)
        except Exception as problem:
            failed = slice(int(self._state.counters[SEEN]) - first, None)
            raise self._explained(X[failed], problem, [codes[failed] for codes in self._codes]) from problem

    def _learn_row(self, row: FloatArray) -> ChunkResult:
        self._check_unchanged()  # before the row is learned again to explain an error
        if self._in_python:
            return self._learn(row)
        try:
            return super()._learn_row(row)
        except Exception as problem:
            raise self._explained(row, problem) from problem

    def _explained(self, X: FloatArray, problem: Exception, codes: Sequence[IntArray] = ()) -> Exception:
        """Return the error of the part that failed at the first row of ``X``."""
        known = isinstance(problem, PartError) or not len(X)
        return problem if known else explained(self, X[0], [each[:1] for each in codes], problem)

    def _compared_by(self) -> Any:
        part = self._composed().parts["activation"]
        return part.like or part.function

    def _order(self) -> float | None:
        """Return the order of the distance if the activation is a p-norm, which has faster kernels."""
        function = self._compared_by()
        if function is activations.p_norm:
            return float(self.p)
        return 2.0 if function is activations.euclidean else None

    def _activate(self, X: FloatArray, n: int, out: FloatArray) -> None:
        done = self._composed().module.score(self._state, self._settings(), X, n, out)
        if done < len(X):
            without = [np.full(1, -1) for _ in self._codes]
            raise self._explained(X[done:], ValueError("a distance is not finite"), without)

    def _score(self, X: FloatArray, prototypes: FloatArray, out: FloatArray) -> None:
        p = self._order()
        if p is not None:
            in_slabs(lambda s: distances(X[s], prototypes, p, out[s]), len(X), len(X) * prototypes.size)
            return
        if self._compared_by() is activations.cosine:
            super()._score(X, prototypes, out)
            return
        self._activate(X, len(prototypes), out)
        if not self._by_distance:
            np.negative(out, out)

    def _match(self, X: FloatArray, prototypes: FloatArray, competes: BoolArray, winners: IntArray) -> None:
        p = self._order()
        if p is not None:
            nearest_units(X, prototypes, competes, p, winners)
            return
        if self._compared_by() is activations.cosine:
            super()._match(X, prototypes, competes, winners)
            return
        check_finite(X)
        h = np.empty((min(len(X), 1024), len(prototypes)))
        for start in range(0, len(X), len(h)):
            rows = X[start : start + len(h)]
            self._activate(rows, len(prototypes), h)
            h[:, ~competes] = np.inf
            winners[start : start + len(h)] = h[: len(rows)].argmin(axis=1) if competes.any() else -1

    # Copies ---------------------------------------------------------------------------------------------------------

    _not_pickled: ClassVar[tuple[str, ...]] = (*CompetitiveMemory._not_pickled, "_composition")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._shape_parameters:
            self.__dict__.pop("_composition", None)
        super().__setattr__(name, value)
