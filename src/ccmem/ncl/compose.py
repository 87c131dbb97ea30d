"""Composition of the parts of a model into one compiled kernel with generated, readable and cached source.

The source of a kernel is written to a file in the kernel cache, named after a digest of the parts and all their
dependencies. A kernel is therefore compiled once per machine and never stale.
"""

from __future__ import annotations

import hashlib
import linecache
import marshal
import os
import sys
import types
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ccmem.core.state import UnitState
from ccmem.kernels.cache_files import cache_root
from ccmem.kernels.jit import kernel, kernel_in_place
from ccmem.kernels.sources import source_digest
from ccmem.ncl.interpreted import names_in
from ccmem.ncl.parts import Part

_ACTIVATE = """
        activation(state, settings, X, r, n, h)  #? activation for all
        for i in range(n):  #? activation for one
            h[i] = activation(settings, X[r], state.prototypes[i])  #? activation for one
        for i in range(n):  #? check activation
            if not abs(h[i]) < INFINITY:  #? check activation
                return r  #? check activation""".strip()

_SOURCE = """\"""Kernel composed by ccmem.ncl:

<parts>
\"""

from collections import namedtuple

from ccmem.core.codes import REJECTED
from ccmem.core.state import SEEN, UNITS
from ccmem.kernels.competition import dot, lowest

INFINITY = float("inf")
State = namedtuple("State", "<state>", module=__name__)
Settings = namedtuple("Settings", "<settings>", module=__name__)


@compiled
def learn(state, settings, X, winners):  #? unlabelled
def learn(state, settings, X, winners, codes):  #? labelled
    counters, h, best = state.counters, settings.h, settings.best
    units, strengths = settings.units, settings.strengths
    resolution = 2.0**-23 if X.itemsize == 4 else 2.0**-52
    for r in range(X.shape[0]):
        n = counters[UNITS]
        if n == state.prototypes.shape[0] and n < settings.limit:  #? gradual
            return r  #? gradual
        settings.label[0] = codes[r]  #? labelled
        if codes[r] < 0:  #? labelled
            winners[r] = REJECTED  #? labelled
            counters[SEEN] += 1  #? labelled
            continue  #? labelled
        <activate>
        k = competition(state, settings, n, h, best)  #? competition for all
        k = min(n, 1)  #? competition for one
        for i in range(n):  #? competition for one
            strengths[i] = competition(state, settings, h, i)  #? competition for one
            if not abs(strengths[i]) < INFINITY:  #? competition for one
                return r  #? competition for one
        best[0] = lowest(strengths, n)  #? competition for one
        if not 0 <= k <= min(n, best.shape[0]):  #? check competition
            return r  #? check competition
        for j in range(k):  #? check competition
            if not 0 <= best[j] < n:  #? check competition
                return r  #? check competition
        grows = growth(state, settings, n, h, k)
        if grows and n == state.prototypes.shape[0]:  #? check growth
            return r  #? check growth
        if grows:
            new = n
            new = place(state, settings, n)  #? place
            start(state, settings, new, X[r])
            state.rates[new] = settings.learning_rate
            won(state, settings, new)
            counters[UNITS] = max(n, new + 1)
            winners[r] = new
        elif k == 0:
            winners[r] = REJECTED
        else:
            m = neighbourhood(state, settings, n, h, k, best, units, strengths)  #? neighbourhood for all
            m = 0  #? neighbourhood for one
            for i in range(n):  #? neighbourhood for one
                strength = neighbourhood(state, settings, best[0], i)  #? neighbourhood for one
                units[m], strengths[m] = i, strength  #? neighbourhood for one
                m += not abs(strength) < resolution  #? neighbourhood for one
            if not 0 <= m <= n:  #? check neighbourhood
                return r  #? check neighbourhood
            for j in range(m):
                if not (0 <= units[j] < n and abs(strengths[j]) < INFINITY):  #? check neighbourhood
                    return r  #? check neighbourhood
                amount = strengths[j] * rate(state, settings, units[j])
                if not abs(amount) < INFINITY:  #? check rate
                    return r  #? check rate
                update(state, settings, units[j], X[r], amount)
                if not dot(state.prototypes[units[j]], state.prototypes[units[j]]) < INFINITY:  #? check update
                    return r  #? check update
            for j in range(k):
                won(state, settings, best[j])
            winners[r] = best[0]
        pauses = after(state, settings, n, h, winners[r])  #? after
        counters[SEEN] += 1
        if pauses:  #? after
            return r + 1  #? after
    return X.shape[0]


@compiled
def score(state, settings, X, n, out):
    h = settings.h
    for r in range(X.shape[0]):
        <activate>
        for i in range(n):
            out[r, i] = -h[i]  #? similarity
            out[r, i] = h[i]  #? distance
    return X.shape[0]


@compiled
def match(state, settings, X, competes, winners):
    n, h = competes.shape[0], settings.h
    for r in range(X.shape[0]):
        <activate>
        winners[r] = -1
        for i in range(n):
            if competes[i] and (winners[r] < 0 or h[i] < h[winners[r]]):
                winners[r] = i
    return X.shape[0]
""".replace("<activate>", _ACTIVATE)
"""Source of every kernel; a line that ends with ``#?`` and a condition belongs to kernels that meet the condition.

Parts outside ccmem are checked: a row that fails is not learned, and :mod:`ccmem.ncl.errors` finds the part.
"""


class Composition(NamedTuple):
    """Kernels and types made from parts."""

    parts: dict[str, Part]
    source: str
    module: types.ModuleType


def _source(parts: dict[str, Part], settings: tuple[str, ...]) -> str:
    """Return the source of the module with the kernels of these parts."""
    met = {"labelled" if any(part.labelled for part in parts.values()) else "unlabelled"}
    met |= {"similarity" if parts["activation"].similarity else "distance"}
    met |= {"gradual"} if parts["growth"].gradual else set()
    for place, part in parts.items():
        met |= {f"{place} for {'all' if part.whole else 'one'}", *part.hooks, "" if part.own else f"check {place}"}
    found = []
    for line in _SOURCE.splitlines():
        code, _, condition = line.partition("  #? ")
        if not condition or condition in met:
            found.append(code + "\n")
    listed = [f"{place:14} {p.function.__module__}.{p.name} {_digest(p)}" for place, p in parts.items()]
    fields = dict.fromkeys([*UnitState._fields, *(name for part in parts.values() for name in part.state)])
    filled = {"<parts>": "\n".join(listed), "<state>": " ".join(fields), "<settings>": " ".join(settings)}
    source = "".join(found)
    for gap, text in filled.items():
        source = source.replace(gap, text)
    return source


@cache
def compose(functions: tuple[Any, ...], settings: tuple[str, ...]) -> Composition:
    """Return the kernels of a model composed of these functions, which read ``settings`` with these names."""
    parts = {function.part.place: function.part for function in functions}
    source = _source(parts, settings)
    name = f"ccmem.ncl.composed_{hashlib.sha256(source.encode()).hexdigest()[:16]}"
    module = sys.modules.get(name) or types.ModuleType(name)
    if name not in sys.modules:
        allocates = any(part.allocates for part in parts.values())
        module.__dict__.update(
            **{name: hook for part in parts.values() for name, hook in part.hooks.items()},
            **{place: part.function for place, part in parts.items()},
            compiled=kernel if allocates else kernel_in_place,
        )
        file = _written(name, source)
        linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
        sys.modules[name] = module  # before compiling: numba finds the types of a cached kernel by name
        exec(compile(source, file, "exec"), module.__dict__)
    return Composition(parts, source, module)


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
