"""Errors of parts: found by running the row again in plain Python, and named with part, file and line."""

from __future__ import annotations

import re
import traceback
from pathlib import Path
from typing import Any

import numpy as np
from numba.core.errors import NumbaError

from ccmem.ncl.parts import Part

FAILURES = (NumbaError, IndexError, ZeroDivisionError, AttributeError, NameError)
"""Errors that a part can cause in a kernel."""


class PartError(RuntimeError):
    """A part of a composed model failed; the message names the part and the line."""


def explained(model: Any, row: Any, problem: BaseException | None = None) -> BaseException:
    """Return the error that names the part of ``model`` that fails for ``row``, which the kernel could not learn."""
    composed = model._composed()
    parts = {place: part for place, part in composed.parts.items() if not part.own}
    state = model._state._make(array.copy() for array in model._state)
    X, winners, h = np.ascontiguousarray(row).reshape(1, -1), np.empty(1, np.int64), np.empty((1, len(state[0])))
    kernels = composed.plain(_watched)
    try:
        with np.errstate(all="ignore"):
            done = kernels["learn"](state, model._settings(), X, winners, *getattr(model, "_codes_of_row", ()))
            kernels["score"](state, model._settings(), X, model.n_units_, h)
    except PartError as found:
        return found
    if not parts:
        return problem or RuntimeError(f"{type(model).__name__}: its kernel could not learn a row")
    if problem is None and done == 0:
        places = ("competition", "neighbourhood", "growth", "update", "activation")
        part = next(parts[place] for place in places if place in parts)
        text = "gives units that do not exist, more units than there is room for, or prototypes that are not finite"
        return PartError(f"{_called(part)} {text}")
    return _not_compiled(parts, problem or RuntimeError("its kernel could not learn a row"))


def _watched(part: Part, function: Any) -> Any:
    """Return a function of a part that raises PartError if it fails or returns NaN."""
    if part.own:
        return function

    def run(*arguments: Any) -> Any:
        try:
            value = function(*arguments)
        except Exception as problem:
            frames = traceback.extract_tb(problem.__traceback__)
            lines = [frame.lineno for frame in frames if frame.filename == function.__code__.co_filename]
            raise PartError(
                f"{_called(part, lines[-1] if lines else None)}: {_remedy(f'{type(problem).__name__}: {problem}')}"
            ) from problem
        if isinstance(value, (float, np.floating)) and not np.isfinite(value):
            raise PartError(f"{_called(part)} returned {value}; it must return a finite number")
        return value

    return run


def _called(part: Part, line: int | None = None) -> str:
    code = getattr(part.function, "py_func", part.function).__code__
    return f"{part.place} {part.name!r} ({Path(code.co_filename).name}, line {line or code.co_firstlineno})"


def _remedy(text: str) -> str:
    """Add how to declare an attribute of the state or settings, if an undeclared one caused the error."""
    for kind, where in (("State", "state"), ("Settings", "parameters (or scratch)")):
        if f"{kind!r} object has no attribute" in text or f"of type {kind}(" in text:
            return f"{text.partition(' of type ')[0]}; declare it with {where}={{...}} of the decorator"
    return text


def _not_compiled(parts: dict[str, Part], problem: BaseException) -> PartError:
    """Return the error of a part that Python accepts and the compiler does not."""
    text = str(problem)
    for part in parts.values():
        file = part.function.__code__.co_filename
        lines = re.findall(rf'File "{re.escape(file)}", line (\d+)', text)
        lines += re.findall(rf"{re.escape(Path(file).name)}\W+\(?(\d+)", text)
        if lines:
            hint = "; say allocates=True in the decorator if it makes arrays" if "NRT" in text else ""
            first = next((line for line in text.splitlines() if line.strip() and "pipeline" not in line), "")
            return PartError(f"{_called(part, int(lines[-1]))}: {_remedy(first.strip())}{hint}")
    return PartError(f"{', '.join(map(_called, parts.values()))}: {text}")
