"""scikit-learn without scipy.stats, which it imports for a function or two that memories never call.

That import takes as long as all others together. A stand-in takes its place and gives way to the real module as soon as
anybody, here or elsewhere, looks into it.
"""

from __future__ import annotations

import sys
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


def put_off(module: str) -> None:
    """Have ``module`` imported when it is needed, unless it has been imported."""
    if module not in sys.modules:
        sys.modules[module] = _Later(module)
