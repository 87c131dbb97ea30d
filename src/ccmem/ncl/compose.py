"""Composition of the parts of a model into one compiled kernel with generated, readable and cached source."""

from __future__ import annotations

import hashlib
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

from ccmem.core.state import UnitState
from ccmem.kernels.cache_files import kept_source
from ccmem.kernels.jit import kernel, kernel_in_place
from ccmem.kernels.sources import function_digest
from ccmem.ncl.parts import Parameter, Part

_SOURCE = '''"""Kernel composed by ccmem.ncl:

<parts>
"""

from collections import namedtuple

from ccmem.core.codes import REJECTED
from ccmem.core.state import SEEN, UNITS
from ccmem.kernels.competition import all_below, all_finite, lowest
from ccmem.kernels.rows import sum_of_squares

State = namedtuple("State", "<state>", module=__name__)
Settings = namedtuple("Settings", "<settings>", module=__name__)


@compiled
def learn(state, settings, X, winners<codes>):
    counters, h, best = state.counters, settings.h, settings.best
    units, strengths = settings.units, settings.strengths
    resolution = 2.0**-23 if X.itemsize == 4 else 2.0**-52
    for r in range(X.shape[0]):
        n = counters[UNITS]
        if n == state.prototypes.shape[0] and n < settings.limit:  #? gradual
            return r
        settings.label[0] = codes[r]  #? labelled
        if codes[r] < 0:  #? labelled
            winners[r] = REJECTED
            counters[SEEN] += 1
            continue
        <activate>
        if not comparable:  #? rejecting
            winners[r] = REJECTED
            counters[SEEN] += 1
            continue
        k = competition(state, settings, n) if n > 0 else 0  #? competition for all
        k = min(n, 1)  #? competition for one
        for i in range(n):  #? competition for one
            strengths[i] = competition(state, settings, h, i)
        if not all_finite(strengths, n):  #? competition for one
            return r
        best[0] = lowest(strengths, n)  #? competition for one
        if not (0 <= k <= min(n, best.shape[0]) and all_below(best, k, n)):  #? check competition
            return r
        grows = growth(state, settings, n, k)
        if grows and n == state.prototypes.shape[0]:  #? check growth
            return r
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
            m = neighbourhood(state, settings, n, k)  #? neighbourhood for all
            m = 0  #? neighbourhood for one
            winner = best[0]  #? neighbourhood for one
            for i in range(n):  #? neighbourhood for one
                strengths[i] = neighbourhood(state, settings, winner, i)
            for i in range(n):  #? neighbourhood for one
                if not abs(strengths[i]) < resolution:
                    units[m], strengths[m] = i, strengths[i]
                    m += 1
            if not (0 <= m <= n and all_below(units, m, n) and all_finite(strengths, m)):  #? check neighbourhood
                return r
            for j in range(m):
                amount = strengths[j] * rate(state, settings, units[j])
                if not abs(amount) < float("inf"):  #? check rate
                    return r
                update(state, settings, units[j], X[r], amount)
                if not sum_of_squares(state.prototypes[units[j]]) < float("inf"):  #? check update
                    return r
            for j in range(k):
                won(state, settings, best[j])
            winners[r] = best[0]
        pauses = after(state, settings, X, r, n, winners[r])  #? after
        counters[SEEN] += 1
        if pauses:  #? after
            return r + 1
    return X.shape[0]


@compiled
def score(state, settings, X, n, out):
    h = settings.h
    for r in range(X.shape[0]):
        <activate>
        for i in range(n):
            out[r, i] = h[i]
    return X.shape[0]
'''.replace(
    "<activate>",
    """activation(state, settings, X, r, n)  #? activation for all
        comparable = activation(state, settings, X, r, n)  #? rejecting
        for i in range(n):  #? activation for one
            h[i] = activation(settings, X[r], state.prototypes[i])
        if not all_finite(h, n):  #? check activation
            return r""",
)
"""Source of every kernel. A line that ends with ``#?`` and a condition, with the lines indented below it, belongs to
kernels that meet the condition. Parts outside ccmem are checked: a row that fails is not learned, and
:mod:`ccmem.ncl.errors` finds the part."""


class Composition:
    """Kernels ``learn`` and ``score`` made from part functions, which read ``parameters`` as settings."""

    def __init__(self, functions: tuple[Any, ...], parameters: dict[str, Parameter], core: Mapping[str, Any]) -> None:
        self.parts: dict[str, Part] = {function.part.place: function.part for function in functions}
        parts = self.parts.values()
        self.kinds = {name: parameter.kind for name, parameter in parameters.items() if parameter.kind is not None}
        self.scratch = {**core, **{name: make for part in parts for name, make in part.scratch.items()}}
        self.arrays = {name: array for part in parts for name, array in part.state.items()}
        settings = dict.fromkeys(["limit", "learning_rate", *self.kinds, *self.scratch])
        self.source = _source(self.parts, [*UnitState._fields, *self.arrays], [*settings])
        self.name = f"ccmem.ncl.composed_{hashlib.sha256(self.source.encode()).hexdigest()[:16]}"
        if self.name not in sys.modules:
            module = types.ModuleType(self.name)
            sys.modules[self.name] = module  # before compiling: numba finds the types of a cached kernel by name
            compiled = kernel if any(part.allocates for part in parts) else kernel_in_place
            self._run(module.__dict__, compiled, lambda part, function: function)
        self.module = sys.modules[self.name]

    def plain(self, wrapped: Callable[[Part, Any], Any] = lambda part, function: function) -> dict[str, Any]:
        """Return the kernels with loop and parts in plain Python; ``wrapped`` may replace the function of a part."""
        found: dict[str, Any] = {"__name__": self.name}
        self._run(found, lambda f: f, lambda part, f: wrapped(part, _in_python(f)))
        return found

    def _run(self, names: dict[str, Any], compiled: Any, bound: Callable[[Part, Any], Any]) -> None:
        for place, part in self.parts.items():
            names |= {place: bound(part, part.function), **{name: bound(part, f) for name, f in part.hooks.items()}}
        names["compiled"] = compiled
        exec(compile(self.source, kept_source(self.name, self.source), "exec"), names)


def _in_python(function: Any) -> Any:
    """Return a function in plain Python; it calls intrinsics in their plain form, and other kernels as they are."""
    plain = getattr(function, "py_func", function)
    names = {name: value.in_python for name, value in plain.__globals__.items() if hasattr(value, "in_python")}
    return types.FunctionType(
        plain.__code__, {**plain.__globals__, **names}, plain.__name__, plain.__defaults__, plain.__closure__
    )


def _source(parts: dict[str, Part], state: list[str], settings: list[str]) -> str:
    """Return the source of the module with the kernels of these parts."""
    met = {flag for flag in ("labelled", "gradual") if any(getattr(part, flag) for part in parts.values())}
    for place, part in parts.items():
        form = "rejecting" if part.rejects else f"{place} for {'all' if part.whole else 'one'}"
        met |= {form, *part.hooks, "" if part.own else f"check {place}"}
    lines, dropped = [], None
    for line in _SOURCE.splitlines():
        code, _, condition = line.partition("  #? ")
        indent = len(code) - len(code.lstrip())
        if dropped is None or indent <= dropped:
            dropped = indent if condition and condition not in met else None
            lines += [code] if dropped is None else []
    listed = [f"{place:14} {p.function.__module__}.{p.name} {_digest(p)}" for place, p in parts.items()]
    source = "\n".join(lines).replace("<parts>", "\n".join(listed)) + "\n"
    source = source.replace("<codes>", ", codes" if "labelled" in met else "")
    return source.replace("<state>", " ".join(state)).replace("<settings>", " ".join(settings))


def _digest(part: Part) -> str:
    return function_digest(part.function, *part.hooks.values(), options=(part.whole, part.allocates))
