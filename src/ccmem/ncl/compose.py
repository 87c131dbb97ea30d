"""Composition of the parts of a model into one compiled kernel with generated, readable and cached source.

The source of a kernel is written to a file in the kernel cache, named after a digest of the parts and all their
dependencies. A kernel is therefore compiled once per machine and never stale.
"""

from __future__ import annotations

import hashlib
import linecache
import marshal
import os
import re
import sys
import types
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ccmem.core.codes import REJECTED
from ccmem.core.state import SEEN, UNITS, UnitState
from ccmem.kernels.cache_files import cache_root
from ccmem.kernels.competition import dot, lowest
from ccmem.kernels.jit import kernel, kernel_in_place
from ccmem.kernels.sources import source_digest
from ccmem.ncl.interpreted import names_in
from ccmem.ncl.parts import Part

_HEAD = '''"""Kernel composed by ccmem.ncl:

{parts}
"""

from typing import Any, NamedTuple


class State(NamedTuple):
    {state}


class Settings(NamedTuple):
    {settings}

'''

_LOOP = """
@compiled
def learn(state, settings, X, winners{codes}):
    counters, h, best = state.counters, settings.h, settings.best
    units, strengths = settings.units, settings.strengths
    resolution = 2.0**-23 if X.itemsize == 4 else 2.0**-52
    for r in range(X.shape[0]):
        n = counters[UNITS]
        {room}
        {label}
        {activation}
        {competition}
        grows = growth(state, settings, n, h, k)
        {growth}
        if grows:
            start(state, settings, n, X[r])
            state.rates[n] = settings.learning_rate
            won(state, settings, n)
            counters[UNITS] = n + 1
            winners[r] = n
        elif k == 0:
            winners[r] = REJECTED
        else:
            {neighbourhood}
            for j in range(m):
                {move}
            for j in range(k):
                won(state, settings, best[j])
            winners[r] = best[0]
        {after}
        counters[SEEN] += 1
        {pause}
    return X.shape[0]
"""

_READ = """
@compiled
def score(state, settings, X, n, out):
    h = settings.h
    for r in range(X.shape[0]):
        {activation}
        for i in range(n):
            out[r, i] = {sign}h[i]
    return X.shape[0]


@compiled
def match(state, settings, X, competes, winners):
    n, h = competes.shape[0], settings.h
    for r in range(X.shape[0]):
        {activation}
        winners[r] = -1
        for i in range(n):
            if competes[i] and (winners[r] < 0 or h[i] < h[winners[r]]):
                winners[r] = i
    return X.shape[0]
"""

_FOR_ONE_UNIT = {
    "activation": """for i in range(n):
    h[i] = activation(settings, X[r], state.prototypes[i]){check}""",
    "competition": """for i in range(n):
    strengths[i] = competition(state, settings, h, i){check}
best[0] = lowest(strengths, n)
k = min(n, 1)""",
    "neighbourhood": """m = 0
for i in range(n):
    strength = neighbourhood(state, settings, best[0], i){check}
    units[m], strengths[m] = i, strength
    m += abs(strength) >= resolution""",
}
_FOR_ALL_UNITS = {
    "activation": "activation(state, settings, X, r, n, h)",
    "competition": "k = competition(state, settings, n, h, best)",
    "neighbourhood": "m = neighbourhood(state, settings, n, h, k, best, units, strengths)",
}
_CHECK = {
    "activation": "\n    if not abs(h[i]) < INFINITY:\n        return r",
    "competition": "\n    if not abs(strengths[i]) < INFINITY:\n        return r",
    "neighbourhood": "\n    if not abs(strength) < INFINITY:\n        return r",
}
_CHECK_ALL = {
    "activation": "\nfor i in range(n):" + _CHECK["activation"],
    "competition": """
if not 0 <= k <= min(n, best.shape[0]):
    return r
for j in range(k):
    if not 0 <= best[j] < n:
        return r""",
    "neighbourhood": """
if not 0 <= m <= n:
    return r
for j in range(m):
    if not (0 <= units[j] < n and abs(strengths[j]) < INFINITY):
        return r""",
}
_CHECK_GROWTH = "if grows and n == state.prototypes.shape[0]:\n            return r"
_CHECK_MOVE = """
                if not dot(state.prototypes[units[j]], state.prototypes[units[j]]) < INFINITY:
                    return r"""
"""Checks for parts outside ccmem: a row that fails is not learned, and :mod:`ccmem.ncl.errors` finds the part."""


class Composition(NamedTuple):
    """Kernels and types made from parts."""

    parts: dict[str, Part]
    source: str
    module: types.ModuleType


def _step(part: Part, indent: int) -> str:
    """Return the lines of the loop that call a part, and check its results unless it is a part of ccmem."""
    checks = ("", "") if part.own else (_CHECK[part.place], _CHECK_ALL[part.place])
    text = _FOR_ALL_UNITS[part.place] + checks[1] if part.whole else _FOR_ONE_UNIT[part.place].format(check=checks[0])
    return text.replace("\n", "\n" + " " * indent)


def _source(parts: dict[str, Part], settings: tuple[str, ...]) -> str:
    """Return the source of the module with the kernels of these parts."""
    listed = [f"{place:14} {p.function.__module__}.{p.name} {_digest(p)}" for place, p in parts.items()]
    fields = [*UnitState._fields, *(name for part in parts.values() for name in part.state)]
    lines = _HEAD.format(
        parts="\n".join(listed),
        state="\n    ".join(f"{name}: Any" for name in dict.fromkeys(fields)),
        settings="\n    ".join(f"{name}: Any" for name in settings),
    )
    look = parts["activation"]
    lines += _READ.format(activation=_step(look, 8), sign="-" if look.similarity else "")
    labelled = any(part.labelled for part in parts.values())
    hooked = any("after" in part.hooks for part in parts.values())
    amount = "strengths[j] * rate(state, settings, units[j])"
    check = "\n                if not abs(amount) < INFINITY:\n                    return r"
    return lines + _LOOP.format(
        codes=", codes" if labelled else "",
        room="if n == state.prototypes.shape[0] and n < settings.limit:\n            return r"
        if parts["growth"].gradual
        else "",
        label="""settings.label[0] = codes[r]
        if codes[r] < 0:
            winners[r] = REJECTED
            counters[SEEN] += 1
            continue"""
        if labelled
        else "",
        activation=_step(look, 8),
        competition=_step(parts["competition"], 8),
        neighbourhood=_step(parts["neighbourhood"], 12),
        growth="" if parts["growth"].own else _CHECK_GROWTH,
        move=f"amount = {amount}{'' if parts['rate'].own else check}\n"
        "                update(state, settings, units[j], X[r], amount)"
        + ("" if parts["update"].own else _CHECK_MOVE),
        after="pauses = after(state, settings, n, h, winners[r])" if hooked else "",
        pause="if pauses:\n            return r + 1" if hooked else "",
    )


@cache
def compose(functions: tuple[Any, ...], settings: tuple[str, ...]) -> Composition:
    """Return the kernels of a model composed of these functions, which read ``settings`` with these names."""
    parts = {function.part.place: function.part for function in functions}
    source = re.sub(r"\n +\n", "\n", _source(parts, settings))
    name = f"ccmem.ncl.composed_{hashlib.sha256(source.encode()).hexdigest()[:16]}"
    module = sys.modules.get(name) or types.ModuleType(name)
    if name not in sys.modules:
        allocates = any(part.allocates for part in parts.values())
        module.__dict__.update(_names(parts), compiled=kernel if allocates else kernel_in_place)
        file = _written(name, source)
        linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
        sys.modules[name] = module  # before compiling: numba finds the types of a cached kernel by name
        exec(compile(source, file, "exec"), module.__dict__)
    return Composition(parts, source, module)


def _names(parts: dict[str, Part]) -> dict[str, Any]:
    """Return the names that the source of a kernel refers to, with their values."""
    hooks = {name: hook for part in parts.values() for name, hook in part.hooks.items()}
    known = {"REJECTED": REJECTED, "SEEN": SEEN, "UNITS": UNITS, "INFINITY": np.inf, "lowest": lowest, "dot": dot}
    return {**known, **hooks, **{place: part.function for place, part in parts.items()}}


def _written(name: str, source: str) -> str:
    """Write the source to the kernel cache if there is one; return its file name."""
    root = cache_root()
    if root is None:
        return f"<{name}>"
    folder = root / name.rpartition("_")[2]
    file = folder / "composed.py"
    try:
        folder.mkdir(exist_ok=True)
        os.utime(folder)
        if not file.is_file():
            part = folder / f"{os.getpid()}.part"
            part.write_text(source, encoding="utf-8")
            part.replace(file)  # atomic: other processes may write the same file
    except OSError:
        return f"<{name}>"
    return str(file)


def _digest(part: Part) -> str:
    """Return a digest of everything that the functions of a part are compiled from."""
    digest = hashlib.sha256(repr((part.whole, part.allocates)).encode())
    for function in (part.function, *part.hooks.values()):
        for piece in _pieces(function, (), set()):
            digest.update(piece + b"\0")
    return digest.hexdigest()[:16]


def _pieces(value: Any, names: tuple[str, ...], seen: set[int]) -> Iterator[bytes]:
    """Yield the content of a value that affects a compiled function; ``names``: attributes that it may look up."""
    if id(value) in seen:
        return
    function = getattr(value, "py_func", value)
    module = getattr(function, "__module__", None) or ""
    if isinstance(value, types.ModuleType):
        seen.add(id(value))
        for name in names:
            if hasattr(value, name) and not value.__name__.startswith(("numpy", "numba", "math")):
                yield from _pieces(getattr(value, name), (), seen)
    elif module.startswith("ccmem."):
        yield source_digest(Path(sys.modules[module].__file__ or "")).encode()
    elif isinstance(function, types.FunctionType):
        seen.add(id(value))
        yield marshal.dumps(function.__code__, 2)  # version 2 does not depend on reference counts
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        variables = {**function.__globals__, **{name: cell.cell_contents for name, cell in cells}}
        used = tuple(names_in(function.__code__))
        for name in used:
            if name in variables:
                yield from _pieces(variables[name], used, seen)
    elif isinstance(value, np.ndarray):
        yield value.dtype.str.encode() + repr(value.shape).encode() + value.tobytes()
    else:
        yield repr(value).encode() if isinstance(value, (int, float, str, tuple, bool)) else module.encode()
