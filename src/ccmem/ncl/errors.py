"""Errors of parts: found by running the row again in plain Python, and named with part, file and line."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numba.core.errors import NumbaError

from ccmem.ncl.interpreted import interpreted
from ccmem.ncl.parts import Part

FAILURES = (NumbaError, IndexError, ZeroDivisionError, AttributeError, NameError)
"""Errors that a part can cause in a kernel."""


class PartError(RuntimeError):
    """A part of a composed model failed; the message names the part and the line."""


def explained(model: Any, row: Any, problem: BaseException | None = None) -> BaseException:
    """Return the error that names the part of ``model`` that fails for ``row``, which the kernel could not learn."""
    parts = {place: part for place, part in model._parts.items() if not part.own}
    replaced = {place: _watched(part) for place, part in parts.items()}
    state = model._state._make(array.copy() for array in model._state)
    X, winners = np.ascontiguousarray(row).reshape(1, -1), np.empty(1, np.int64)
    module = model._composed().module
    try:
        with np.errstate(all="ignore"):
            codes = getattr(model, "_codes_of_row", ())
            done = interpreted(module.learn, replaced)(state, model._settings(), X, winners, *codes)
            interpreted(module.score, replaced)(
                state, model._settings(), X, model.n_units_, np.empty((1, len(state[0])))
            )
    except PartError as found:
        return found
    if parts and problem is None and done == 0:
        places = ("competition", "neighbourhood", "growth", "update", "activation")
        part = next(parts[place] for place in places if place in parts)
        code = getattr(part.function, "py_func", part.function).__code__
        return PartError(
            f"{part.place} {part.name!r} ({_place(code.co_filename, code.co_firstlineno)}) gives units that do not "
            "exist, more units than there is room for, or prototypes that are not finite"
        )
    if problem is None:
        problem = RuntimeError(f"{type(model).__name__}: its kernel could not learn a row")
    if not parts:
        return problem
    return _from_message(parts, problem)


def _watched(part: Part) -> Callable[..., Any]:
    """Return the function of a part in plain Python; it raises PartError if the part fails or returns NaN."""
    plain = interpreted(part.function)
    called = f"{part.place} {part.name!r}"

    def run(*arguments: Any) -> Any:
        try:
            value = plain(*arguments)
        except Exception as problem:
            frames = [
                f for f in traceback.extract_tb(problem.__traceback__) if f.filename == plain.__code__.co_filename
            ]
            place = _place(plain.__code__.co_filename, frames[-1].lineno if frames else plain.__code__.co_firstlineno)
            raise PartError(f"{called} ({place}): {_remedy(problem)}") from problem
        if isinstance(value, (float, np.floating)) and not np.isfinite(value):
            place = _place(plain.__code__.co_filename, plain.__code__.co_firstlineno)
            raise PartError(f"{called} ({place}) returned {value}; it must return a finite number")
        return value

    return run


def _place(file: str, line: int | None) -> str:
    return f"{Path(file).name}, line {line}"


def _remedy(problem: BaseException) -> str:
    """Return the message of an error, with a remedy."""
    return _with_declaration(f"{type(problem).__name__}: {problem}")


def _with_declaration(text: str) -> str:
    """Add instructions for declaring an attribute of the state or settings, if an undeclared one caused the error."""
    for kind, where in (("State", "state"), ("Settings", "parameters (or scratch)")):
        for missing in (f"{kind!r} object has no attribute", f"of type {kind}("):
            if missing in text:
                return f"{text.partition(' of type ')[0]}; declare it with {where}={{...}} of the decorator"
    return text


def _from_message(parts: dict[str, Part], problem: BaseException) -> PartError:
    """Return the error of a part that Python accepts and the compiler does not."""
    text = str(problem)
    for part in parts.values():
        file = part.function.__code__.co_filename
        lines = re.findall(rf'File "{re.escape(file)}", line (\d+)', text) + re.findall(
            rf"{re.escape(Path(file).name)}\W+\(?(\d+)", text
        )
        if lines:
            hint = "; say allocates=True in the decorator if it makes arrays" if "NRT" in text else ""
            first = next((line for line in text.splitlines() if line.strip() and "pipeline" not in line), "")
            problem_text = _with_declaration(first.strip()) + hint
            return PartError(f"{part.place} {part.name!r} ({_place(file, int(lines[-1]))}): {problem_text}")
    names = ", ".join(f"{part.place} {part.name!r}" for part in parts.values())
    return PartError(f"{names}: {text}")


def wrapped(model: Any, learn: Callable[..., int]) -> Callable[..., int]:
    """Return a kernel for single rows whose errors name the part that failed."""

    def guarded(state: Any, settings: Any, row: Any, winner: Any) -> int:
        try:
            return learn(state, settings, row, winner)
        except FAILURES as problem:
            raise explained(model, row[0], problem) from problem

    return guarded
