"""Public names, parsed from ``ccmem/__init__.pyi``, one import per name.

From these lines follow the lazy names of ``ccmem``, ``ccmem.models``, ``ccmem.readout`` and ``ccmem.layers``, the
classes that a checkpoint may name, the words of the command line, the pages of the reference and the models that the
generic tests try. The package of a class decides what the class is: a memory, a predictor or a layer.

>>> PUBLIC["IncrementalWTA"]
'ccmem.models.wta'
>>> COMMAND_WORDS["wta"]
'IncrementalWTA'
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def _read() -> tuple[dict[str, str], dict[str, str]]:
    """Return name -> module for names, and name -> path for modules, from lines ``from MODULE import X as NAME``."""
    lines = [line.partition("#")[0] for line in _LISTING.splitlines() if line.startswith("from ")]
    public, modules = {}, {}
    for _, package, _, original, _, name in map(str.split, lines):
        if original.islower() and package in _PACKAGES:
            modules[name] = f"{package}.{original}"
        else:
            public[name] = package
    return public, modules


def load(name: str) -> Any:
    """Return the public object or module of this name."""
    if name in MODULES:
        return import_module(MODULES[name])
    module = PUBLIC[name]
    return getattr(sys.modules.get(module) or import_module(module), name)


def names(package: str) -> list[str]:
    """Return the public classes of a package."""
    return [name for name, module in PUBLIC.items() if module.startswith(f"{package}.")]


def lazily(package: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__all__``, ``__getattr__`` and ``__dir__`` of a package that loads its public classes on first use."""
    own = names(package)

    def look_up(name: str) -> Any:
        if name in own:
            return load(name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return own, look_up, lambda: own


_LISTING = Path(__file__).with_name("__init__.pyi").read_text(encoding="utf-8")
_PACKAGES = ("ccmem", "ccmem.io", "ccmem.paper")
"""Packages whose lower-case public names are modules, loaded on first use like the classes."""
PUBLIC, MODULES = _read()
"""Public name -> the module that defines it; name of a public module -> its import path."""
_LABELLED = [name for name in names("ccmem.models") if f"as {name}  # learns from labels" in _LISTING]
MEMORIES = [name for name in names("ccmem.models") if name not in _LABELLED]
"""Models that learn without labels."""
PREDICTORS = [*_LABELLED, *(name for name in names("ccmem.readout") if name != "ModalClassifier")]
"""Classifiers that cannot learn without labels."""
LAYERS = names("ccmem.layers")
ESTIMATORS = [*MEMORIES, *PREDICTORS, *LAYERS, "ModalClassifier"]
"""Classes that a checkpoint may hold. No other name is ever looked up."""
COMMAND_WORDS = {PUBLIC[name].rpartition(".")[2].replace("_", "-"): name for name in [*MEMORIES, *PREDICTORS]}
"""Word on the command line (the file of a model) -> class."""
