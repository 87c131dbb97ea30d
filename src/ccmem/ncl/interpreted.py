"""Compiled functions as plain Python: a reference for kernels, and a way to find the line that fails."""

from __future__ import annotations

import dis
import types
from collections.abc import Iterator, Mapping
from typing import Any


def names_in(code: types.CodeType) -> Iterator[str]:
    """Yield the names of globals, attributes and outer variables of a function and of its inner functions."""
    yield from (*code.co_names, *code.co_freevars)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from names_in(constant)


def rebound(function: Any, names: Mapping[str, Any]) -> Any:
    """Return ``function`` in plain Python, with some global names rebound."""
    plain = getattr(function, "py_func", function)
    variables = {**plain.__globals__, **names}
    return types.FunctionType(plain.__code__, variables, plain.__name__, plain.__defaults__, plain.__closure__)


def interpreted(value: Any, replaced: Mapping[str, Any] | None = None) -> Any:
    """Return a function, and all compiled functions that it calls, as plain Python.

    ``replaced`` maps global names to the functions to use for them.
    """
    if hasattr(value, "in_python"):
        return value.in_python
    if not hasattr(value, "py_func") and replaced is None:
        return value
    code = getattr(value, "py_func", value).__code__
    variables = getattr(value, "py_func", value).__globals__
    names = {}
    for name in {line.argval for line in dis.get_instructions(code) if line.opname == "LOAD_GLOBAL"} & variables.keys():
        found = variables[name]
        if isinstance(found, types.ModuleType) and found.__name__.startswith("ccmem."):
            used = {attribute: getattr(found, attribute, None) for attribute in names_in(code)}
            names[name] = types.SimpleNamespace(**{key: interpreted(item) for key, item in used.items()})
        else:
            names[name] = interpreted(found)
    return rebound(value, {**names, **(replaced or {})})
