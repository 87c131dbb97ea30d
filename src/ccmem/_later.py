"""scikit-learn without scipy.stats, which it imports for a function or two that memories never call.

That import takes as long as all others together. While ccmem loads one of its own names, a stand-in takes the place of
the module; scikit-learn keeps the stand-in, which gives way to the real module when something is looked up in it. Once
ccmem has loaded, nobody else gets to see it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any


class _Later(ModuleType):
    """A module that is imported when it is first looked into."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__path__", "__all__"):  # tools that look at every module
            raise AttributeError(f"module {self.__name__!r} has not been loaded yet")
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


@contextmanager
def put_off(module: str) -> Iterator[None]:
    """Leave ``module`` out of the imports in this block, unless it has been imported or something is needed of it."""
    if module in sys.modules:
        yield
        return
    stand_in = sys.modules[module] = _Later(module)
    try:
        yield
    finally:
        if sys.modules.get(module) is stand_in:
            del sys.modules[module]
