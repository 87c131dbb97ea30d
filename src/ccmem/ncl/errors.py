"""Errors of parts, with part and line: found at the declaration, or by running a row again in plain Python."""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numba.core.errors import NumbaError

from ccmem.base.arrays import AXES, Array
from ccmem.core.state import UnitState
from ccmem.kernels.jit import JIT_ENABLED

if TYPE_CHECKING:
    from ccmem.ncl.parts import Part

ARGUMENTS = {
    "activation": ("settings, x, prototype", "state, settings, X, row, n"),
    "competition": ("state, settings, h, unit", "state, settings, n"),
    "neighbourhood": ("state, settings, winner, unit", "state, settings, n, k"),
    "rate": ("state, settings, unit",),
    "update": ("state, settings, unit, x, amount",),
    "growth": ("state, settings, n, k",),
    "after": ("state, settings, X, row, n, winner",),
    "won": ("state, settings, unit",),
    "start": ("state, settings, unit, x",),
    "place": ("state, settings, n",),
}
"""Arguments of the function of a place or hook, for one unit and for all units."""
TAKEN = {
    "parameters": ("limit", "h", "best", "units", "strengths"),
    "scratch": ("limit", "learning_rate", "h", "best", "units", "strengths"),
    "state": UnitState._fields,
}
"""Names that every model has, which a part cannot declare again."""
_NOISE = re.compile(
    r"\s*($|\W|Failed in|During|File |def |No implementation|There are|Overload|With argument|No match)"
)
"""Lines of a compiler's message that do not give the reason."""


class PartError(RuntimeError):
    """A part of a composed model is wrong or failed; the message names the part and the line."""


def check_part(part: Part) -> None:
    """Raise PartError if the declarations of a part are wrong."""
    for place, function in ((part.place, part.function), *part.hooks.items()):
        if place not in ARGUMENTS:
            raise PartError(f"{part}: there is no hook {place!r}, only after, won, start and place")
        code, forms = getattr(function, "py_func", function).__code__, ARGUMENTS[place]
        takes, needed = code.co_varnames[: code.co_argcount], forms[-1 if part.whole else 0].split(", ")
        known = {"state", "settings", *needed}
        if len(takes) != len(needed) or any(a != b and a in known for a, b in zip(takes, needed, strict=True)):
            other = f" (with whole={not part.whole}: {forms[0 if part.whole else 1]})" if len(forms) > 1 else ""
            name = "" if place == part.place else f" its hook {place!r}"
            raise PartError(f"{part}:{name} takes ({', '.join(takes)}), but must take ({', '.join(needed)}){other}")
    for kind, taken in TAKEN.items():
        for name, value in getattr(part, kind).items():
            if name in taken:
                raise PartError(f"{part} declares {name!r}, which every model has already; choose another name")
            if problem := _problem_of(kind, value):
                raise PartError(f"{part}: {kind}[{name!r}] {problem}")
    if JIT_ENABLED and "print" in part.code.co_names:
        raise PartError(f"{part}: print does not work in compiled functions; set NUMBA_DISABLE_JIT=1 to use it")


def check_names(cls: type, places: tuple[str, ...]) -> None:
    """Raise PartError if a class names a part that nothing reads, such as a misspelt place."""
    for name, value in vars(cls).items():
        if name not in places and hasattr(value, "part"):
            raise PartError(f"{cls.__name__}.{name} is {value.part}; a model has the parts {', '.join(places)}")


def check_places(cls: type, places: tuple[str, ...]) -> None:
    """Raise PartError unless a class has a part of the right kind for every place."""
    for place in places:
        value = getattr(cls, place)
        for option in getattr(value, "options", {"": value}).values():
            part = getattr(option, "part", None)
            if part is None or part.place != place:
                shown = getattr(option, "__name__", option) if part is None else part
                raise PartError(f"{cls.__name__}.{place} is {shown}; it must be a function decorated with ncl.{place}")
            if part.labelled and not hasattr(cls, "_learn_labelled"):
                raise PartError(f"{cls.__name__}.{place} is {part}, which compares labels: derive from ncl.Classifier")


def check_parameters_taken(cls: Any, declared: Iterable[str]) -> None:
    """Raise PartError if ``__init__`` lacks a declared parameter that is no class attribute either."""
    takes = inspect.signature(cls.__init__).parameters
    if missing := [name for name in declared if name not in takes and not hasattr(cls, name)]:
        raise PartError(
            f"{cls.__name__}.__init__ lacks {', '.join(missing)}, which its parts read; add as parameters, set as "
            "class attributes, or leave out __init__ to have one made"
        )


def _problem_of(kind: str, value: Any) -> str | None:
    """Return the error of a declared parameter, array of the state or scratch array; None if it is correct."""
    if kind == "state":
        if not isinstance(value, Array) or not (callable(value.axes) or value.axes in AXES):
            return (
                f"must be ncl.Array(axes), with axes one of {', '.join(map(repr, AXES))}, or a function for the shape"
            )
    elif kind == "scratch":
        if not callable(value):
            return "must be a function of model and capacity, such as ncl.per_unit()"
    elif not hasattr(value, "rule"):
        return f"is {value!r}; it must be an ncl.Parameter, such as ncl.Parameter(1.0, ncl.number(0.0))"
    elif not value.rule[0](value.default):
        return f"has the default {value.default!r}, which must be {value.rule[1]}"
    elif value.kind is not None:
        try:
            value.kind(value.default)
        except (TypeError, ValueError):
            text = f"has the default {value.default!r}, which is no number, as kernels need"
            return f"{text}; give Parameter a kind, such as kind=lambda value: value == {value.default!r}"
    return None


def explained(model: Any, row: Any, codes: Any, problem: Exception) -> Exception:
    """Return the error that names the part of ``model`` that fails for ``row``, or ``problem`` if no part does."""
    composed, uncompiled = model._composed(), isinstance(problem, NumbaError)
    state = model._state._make(array.copy() for array in model._state)
    X = np.repeat([row], 1 + uncompiled, axis=0)  # twice, so that there is a unit
    kernels, winners, h = composed.plain(_watched), np.empty(len(X), np.int64), np.empty((len(X), len(state[0])))
    try:
        with np.errstate(all="ignore"):
            kernels["learn"](state, model._settings(), X, winners, *(np.repeat(code, len(X)) for code in codes))
            kernels["score"](state, model._settings(), X, model.n_units_, h)
    except PartError as found:
        return found
    parts = [part for part in composed.parts.values() if not part.own]
    return _not_compiled(parts, problem) if parts and uncompiled else problem


def _watched(part: Part, function: Any) -> Any:
    """Return a function of a part that raises PartError if it fails or returns an invalid value."""
    if part.own:
        return function

    def run(*arguments: Any) -> Any:
        try:
            value = function(*arguments)
        except Exception as problem:
            frames = traceback.extract_tb(problem.__traceback__)
            lines = [frame.lineno for frame in frames if frame.filename == function.__code__.co_filename]
            line = (lines and lines[-1]) or part.code.co_firstlineno
            raise PartError(f"{part.at(line)}: {_remedy(f'{type(problem).__name__}: {problem}')}") from problem
        if function.__code__ is part.code and (wrong := _fault(part, arguments, value)):
            raise PartError(f"{part} {wrong}")
        return value

    return run


def _fault(part: Part, arguments: Any, value: Any) -> str | None:
    """Return the error in what a part returned or wrote; None if there is none."""
    if part.place == "update":
        new = arguments[0].prototypes[arguments[2]]
        return None if (new * new).sum() < np.inf else f"moved unit {arguments[2]} to {new}; it must stay finite"
    if part.place == "activation" and part.whole:
        h = arguments[1].h[: arguments[4]]
        return None if np.isfinite(h).all() else f"set settings.h to {h}; it must be finite"
    if not isinstance(value, (int, float, np.number, np.bool_)) or not np.isfinite(value):
        return f"returned {value}; it must return a finite number"
    if part.place == "growth" and value and arguments[2] == len(arguments[0].prototypes):
        return "asks for more units than there is room for; it must return False unless n < settings.limit"
    if part.whole and part.place in ("competition", "neighbourhood"):
        settings, n = arguments[1:3]
        units = settings.best if part.place == "competition" else settings.units
        if not 0 <= value <= min(n, len(units)) or not all(0 <= unit < n for unit in units[: int(value)]):
            return f"selects {value} units, {units[: max(int(value), 0)].tolist()}, but there are units 0 to {n - 1}"
        if part.place == "neighbourhood" and not np.isfinite(settings.strengths[: int(value)]).all():
            return f"gives strengths {settings.strengths[: int(value)]}; they must be finite"
    return None


def _remedy(text: str) -> str:
    """Add how to declare an attribute of the state or settings, if an undeclared one caused the error."""
    for kind, where in (("State", "state"), ("Settings", "parameters (or scratch)")):
        if f"{kind!r} object has no attribute" in text or f"of type {kind}(" in text:
            return f"{text.partition(' of type ')[0]}; declare it with {where}={{...}} of the decorator"
    return text


def _not_compiled(parts: list[Part], problem: BaseException) -> PartError:
    """Return the error of a part that Python accepts and the compiler does not."""
    text = str(problem)
    reasons = (line.strip() for line in text.splitlines() if not _NOISE.match(line))
    reason = next(reasons, "numba cannot compile it (functions that make arrays need allocates=True)")
    if "NRT" in text:
        reason = "it makes an array; say allocates=True in the decorator, or write loops"
    elif "Numba type of <class 'function'>" in text:
        reason += "; numba compiles only functions decorated with numba.njit"
    for part in parts:
        lines = re.findall(rf'File "[^"]*{re.escape(Path(part.code.co_filename).name)}", line (\d+)', text)
        lines += re.findall(rf"{re.escape(Path(part.code.co_filename).name)}\W+\(?(\d+)", text)
        if lines:
            return PartError(f"{part.at(int(lines[-1]))}: {_remedy(reason)}")
    return PartError(f"{', '.join(map(str, parts))}: {_remedy(reason)}")
