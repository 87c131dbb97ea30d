"""Parts of a competitive model: functions with a place in the row loop, and the parameters and arrays that they need.

A part is a plain function. A decorator named after its place (:func:`activation`, :func:`competition`,
:func:`neighbourhood`, :func:`rate`, :func:`update`, :func:`growth`) compiles it and records its declarations:

=============  ===========================================  ============================================================
place          function for one unit                        function for all ``n`` units (``whole=True``)
=============  ===========================================  ============================================================
activation     f(settings, x, prototype) -> h               f(state, settings, X, row, n) fills settings.h
competition    f(state, settings, h, unit) -> score         f(state, settings, n) -> k, winners in settings.best
neighbourhood  f(state, settings, winner, unit) -> strength f(state, settings, n, k) -> m, units that move in
                                                            settings.units, their strengths in settings.strengths
rate           f(state, settings, unit) -> rate
update         f(state, settings, unit, x, amount)
growth                                                      f(state, settings, n, k) -> True if the row becomes a unit
=============  ===========================================  ============================================================

``state`` holds the arrays that learning changes, ``settings`` the parameters of the model and scratch arrays. The unit
with the lowest h (or score) wins, so a similarity is returned with a minus. A competition runs once there is a unit. A
unit moves by ``amount`` = strength times rate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar, cast, overload

import numpy as np

from ccmem.base.arrays import Array as Array
from ccmem.core.parameters import Parameter as Parameter
from ccmem.core.parameters import choice
from ccmem.core.typing import FloatArray
from ccmem.kernels.jit import checked_kernel, kernel_inlined
from ccmem.kernels.update import copy_scaled
from ccmem.ncl.errors import PartError, check_part

_Function = TypeVar("_Function", bound=Callable[..., Any])
PLACES = ("activation", "competition", "neighbourhood", "rate", "update", "growth")


@dataclass(frozen=True)
class Part:
    """A function and its declarations, kept as the attribute ``part`` of the function."""

    place: str
    function: Any
    name: str
    own: bool
    """True for a part of ccmem, which has tests; other parts are checked while they run."""
    whole: bool = False
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    state: Mapping[str, Array] = field(default_factory=dict)
    scratch: Mapping[str, Callable[[Any, int], Any]] = field(default_factory=dict)
    """Arrays of ``settings``, by name: made from the model and its capacity before each chunk."""
    hooks: Mapping[str, Any] = field(default_factory=dict)
    """Further functions: ``after`` each row (True stops the kernel for :meth:`CompetitiveMemory._decide`), ``won`` by a
    winner (rate; default: :func:`count`), ``start`` of a unit (update; default: :func:`start_at`), ``place`` of a new
    unit (growth; default: after the last)."""
    similarity: bool = False
    """True if an activation is the negative of a similarity."""
    like: Any = None
    """Activation by which prediction compares rows with all units, if not by this one."""
    rejects: bool = False
    """True if an activation (``whole=True``) returns False for a row that it cannot compare, which is not learned."""
    labelled: bool = False
    """True if the part reads ``settings.label[0]``, the code of the label of the row."""
    gradual: bool = False
    """True if a growth part needs room for one more unit at any row, False if all units are allocated at once."""
    allocates: bool = False
    """True if the function allocates arrays; array expressions do."""

    def __str__(self) -> str:
        return self.at(self.code.co_firstlineno)

    def at(self, line: int) -> str:
        """Return place, name, file and line of the function."""
        return f"{self.place} {self.name!r} ({Path(self.code.co_filename).name}, line {line})"

    @property
    def code(self) -> Any:
        """Code of the function in plain Python."""
        return getattr(self.function, "py_func", self.function).__code__


class Choice(NamedTuple):
    """Alternative parts for one place, chosen by the value of a parameter; the first is the default."""

    parameter: str
    options: dict[str, Any]
    about: str


def by_parameter(parameter: str, about: str = "", **options: Any) -> Any:
    """Choose the part for a place by the value of ``parameter``, described by ``about``; the first is the default."""
    return Choice(parameter, options, about)


def declared_by(function: Any) -> dict[str, Parameter]:
    """Return the parameters that a part, or any part of a choice, declares."""
    if not isinstance(function, Choice):
        return dict(function.part.parameters)
    names = list(function.options)
    own = {function.parameter: Parameter(names[0], choice(*names), None, fixed=True, about=function.about)}
    return own | {name: p for option in function.options.values() for name, p in option.part.parameters.items()}


def with_defaults(cls: type, declared: dict[str, Parameter], defaults: Mapping[str, Any]) -> dict[str, Parameter]:
    """Return the declared parameters of a model with the defaults that its class statement gives."""
    if unknown := defaults.keys() - declared:
        raise PartError(f"{cls.__name__} sets {', '.join(unknown)}; its parts have {', '.join(declared)}")
    for name, value in defaults.items():
        if not declared[name].rule[0](value):
            raise PartError(f"{cls.__name__} sets {name}={value!r}; it must be {declared[name].rule[1]}")
    return declared | {name: declared[name]._replace(default=value) for name, value in defaults.items()}


class _Decorator(Protocol):
    @overload
    def __call__(self, function: _Function, /) -> _Function: ...
    @overload
    def __call__(self, /, **declared: Any) -> Callable[[_Function], _Function]: ...


def _decorator(place: str) -> _Decorator:
    def decorate(function: Any = None, /, **declared: Any) -> Any:
        if function is None:
            return lambda named: decorate(named, **declared)
        if not callable(function):
            raise PartError(f"ncl.{place} makes a part of a function, not of {function!r}")
        known = [each.name for each in fields(Part)][4:]
        if unknown := declared.keys() - known:
            raise PartError(f"ncl.{place} has no keyword {', '.join(unknown)}; it has {', '.join(known)}")
        own, allocates = function.__module__.startswith("ccmem."), declared.get("allocates", False)

        def compiled(function: Any) -> Any:
            if hasattr(function, "py_func"):
                return function
            return kernel_inlined(function) if own else checked_kernel(function, allocates)

        hooks = _DEFAULT_HOOKS.get(place, {}) | declared.pop("hooks", {})
        part = compiled(function)
        hooks = {name: compiled(hook) for name, hook in hooks.items()}
        found = Part(place, part, function.__name__, own, hooks=hooks, **declared)
        check_part(found)
        part.part = found
        return part

    decorate.__name__ = decorate.__qualname__ = place
    decorate.__doc__ = f"Make a function the {place} of models; keywords are fields of :class:`ccmem.ncl.parts.Part`."
    return cast(_Decorator, decorate)


@kernel_inlined
def count(state: Any, settings: Any, unit: int) -> None:
    """Count a win."""
    state.wins[unit] += 1


@kernel_inlined
def start_at(state: Any, settings: Any, unit: int, x: FloatArray) -> None:
    """Set M <- x."""
    copy_scaled(state.prototypes[unit], x, 1.0)


_DEFAULT_HOOKS = {"rate": {"won": count}, "update": {"start": start_at}}

activation, competition, neighbourhood, rate, update, growth = map(_decorator, PLACES)


def per_unit(dtype: Any = np.float64) -> Callable[[Any, int], Any]:
    """Return a scratch array with one number per unit."""
    return lambda model, capacity: np.empty(capacity, dtype)
