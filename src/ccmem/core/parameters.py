"""Rules for parameter values, declared next to each class; an invalid value raises an error listing the valid ones."""

from __future__ import annotations

import inspect
import math
import numbers
import textwrap
from collections.abc import Callable, Mapping
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

Rule = tuple[Callable[[Any], bool], str]
"""A test of a parameter's value, and a description of valid values."""


def _is(value: Any, kind: type) -> bool:
    """True if ``value`` is a number of this kind; booleans do not count as numbers."""
    return isinstance(value, kind) and not isinstance(value, bool)


_MOST = 2**62
"""Largest integer parameter; anything larger would overflow counters."""


def integer(least: int) -> Rule:
    """Accept integers of at least ``least``."""
    return lambda v: _is(v, numbers.Integral) and least <= int(v) <= _MOST, f"a whole number >= {least}"


def number(least: float, most: float = math.inf, *, open_below: bool = False, open_above: bool = False) -> Rule:
    """Accept numbers between two bounds, inclusive unless marked open."""

    def fits(v: Any) -> bool:
        if not _is(v, numbers.Real):
            return False
        try:
            value = float(v)
        except OverflowError:
            return False
        return (value > least if open_below else value >= least) and (value < most if open_above else value <= most)

    return fits, f"a number in {'(' if open_below else '['}{least}, {most}{')' if open_above else ']'}"


def exactly(value: float) -> Rule:
    """Accept exactly this number."""
    return lambda v: _is(v, numbers.Real) and v == value, str(value)


def choice(*names: str) -> Rule:
    """Accept one of these names."""
    return lambda v: isinstance(v, str) and v in names, "one of " + ", ".join(map(repr, names))


def boolean() -> Rule:
    """Accept True or False."""
    return lambda v: isinstance(v, (bool, np.bool_)), "True or False"


def optional(rule: Rule) -> Rule:
    """Accept None or anything that ``rule`` accepts."""
    test, text = rule
    return lambda v: v is None or test(v), f"{text}, or None"


def either(first: Rule, second: Rule) -> Rule:
    """Accept anything that one of two rules accepts."""
    return lambda v: first[0](v) or second[0](v), f"{first[1]}, or {second[1]}"


def array() -> Rule:
    """Accept a numpy array or nested list; its content is checked where it is used."""
    return lambda v: isinstance(v, (np.ndarray, list, tuple)), "an array"


def check_parameters(owner: str, rules: Mapping[str, Rule], values: Mapping[str, Any]) -> None:
    """Raise for the first parameter that violates its rule."""
    for name, (test, text) in rules.items():
        if not test(values[name]):
            raise ValueError(f"{owner}: {name}={_shown(values[name])} is not possible; it must be {text}")


class Parameter(NamedTuple):
    """A parameter of a model. Parts of composed models declare what they read as ``settings.<name>``."""

    default: Any
    rule: Rule
    kind: Callable[[Any], Any] | None = float
    """Converter of the value for the kernel; None if the kernel does not see the parameter."""
    fixed: bool = False
    """True if the parameter cannot change once learning has begun."""
    about: str = ""
    """Meaning of the parameter, for the documentation of every model that has it."""


def declare(cls: Any, base: type, parameters: Mapping[str, Parameter]) -> None:
    """Give a model rules and documentation of its parameters, and an ``__init__`` unless it has one of its own."""
    own: Any = cls.__init__
    if own is base.__init__ or hasattr(own, "__signature__"):  # type: ignore[misc]
        cls.__init__ = _initialiser({name: parameter.default for name, parameter in parameters.items()})
    known = {name: parameters[name] for name in inspect.signature(cls.__init__).parameters if name in parameters}
    cls._rules = {name: parameter.rule for name, parameter in known.items()}
    cls._shape_parameters = tuple(name for name, parameter in known.items() if parameter.fixed)
    _document(cls, parameters)


def _document(cls: type, declared: Mapping[str, Parameter]) -> None:
    """Add the parameters of a model to its docstring: valid values, default and meaning."""
    text = inspect.cleandoc(vars(cls).get("__doc__") or "")
    lines = []
    for name, given in inspect.signature(cls).parameters.items():
        known = declared.get(name)
        rule, about = ("", "") if known is None else (f"{known.rule[1]}, ", known.about)
        lines += [
            f"{name} : {rule}default={given.default!r}",
            *textwrap.wrap(about, 110, initial_indent=" " * 4, subsequent_indent=" " * 4),
        ]
    cls.__doc__ = "\n".join([text, "", "Parameters", "----------", *lines]).lstrip() if lines else text


def _initialiser(defaults: dict[str, Any]) -> Callable[..., None]:
    """Return an ``__init__`` with these parameters: the first, and whole numbers that follow it, may be positional."""

    def initialise(self: Any, *first: Any, **given: Any) -> None:
        try:
            values = signature.bind(self, *first, **given)
        except TypeError as problem:
            raise TypeError(f"{type(self).__name__}: {problem}; it has {', '.join(defaults)}") from None
        values.apply_defaults()
        self._assign(values.arguments)

    kind = inspect.Parameter
    listed = [kind(name, kind.KEYWORD_ONLY, default=default) for name, default in defaults.items()]
    sizes = max(1, len(list(takewhile(lambda value: type(value) is int, defaults.values()))))
    listed[:sizes] = [one.replace(kind=kind.POSITIONAL_OR_KEYWORD) for one in listed[:sizes]]
    signature = inspect.Signature([kind("self", kind.POSITIONAL_OR_KEYWORD), *listed])
    initialise.__signature__ = signature  # type: ignore[attr-defined]
    return initialise


def _shown(value: Any) -> str:
    """Format a value for an error message; integers with thousands of digits cannot be printed."""
    if isinstance(value, int) and abs(value) > 10**30:
        return f"{'-' if value < 0 else ''}10**{math.floor(math.log10(abs(value)))} or so"
    return repr(value)
