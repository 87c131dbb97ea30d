"""What is public and where it stands, read from ``ccmem/__init__.pyi``: a class has its one line there.

From that line follow the lazy names of ``ccmem``, ``ccmem.models``, ``ccmem.predictors`` and ``ccmem.layers``, the
classes that a checkpoint may name, the words of the command, the pages of the reference and the zoo of the tests. What
a class is good for is told by the package it stands in.

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


def _read() -> dict[str, str]:
    """Name -> module, from lines ``from MODULE import NAME as NAME``."""
    lines = Path(__file__).with_name("__init__.pyi").read_text(encoding="utf-8").splitlines()
    imports = [line.split() for line in lines if line.startswith("from ")]
    return {words[3]: words[1] for words in imports}


def load(name: str) -> Any:
    """The public thing of this name."""
    module = _LISTED[name]
    if module in sys.modules and module != "ccmem":
        return getattr(sys.modules[module], name)
    return import_module(f"ccmem.{name}") if module == "ccmem" else getattr(import_module(module), name)


def names(package: str) -> list[str]:
    """Public classes of a package."""
    return [name for name, module in PUBLIC.items() if module.startswith(f"{package}.")]


def lazily(package: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """``__all__``, ``__getattr__`` and ``__dir__`` of a package whose public classes are loaded on first use."""
    own = names(package)

    def look_up(name: str) -> Any:
        if name in own:
            return load(name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return own, look_up, lambda: own


_LISTED = _read()
MODULES = [name for name, module in _LISTED.items() if module == "ccmem"]
"""Submodules that are loaded on first use, like the names."""
PUBLIC = {name: module for name, module in _LISTED.items() if module != "ccmem"}
"""Public name -> the module it stands in."""
MEMORIES = names("ccmem.models")
PREDICTORS = names("ccmem.predictors")
LAYERS = names("ccmem.layers")
ESTIMATORS = [*MEMORIES, *PREDICTORS, *LAYERS, "ModalClassifier"]
"""What a checkpoint may hold. Nothing else is ever looked up by name."""
COMMAND_WORDS = {PUBLIC[name].rpartition(".")[2].replace("_", "-"): name for name in [*MEMORIES, *PREDICTORS]}
"""Word on the command line (the file a model stands in) -> class."""
