"""ccmem: learning from an endless stream without forgetting.

Names are loaded when they are first used, so that ``import ccmem`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ccmem.fleet.merge import merge as merge
    from ccmem.layers import PatchLayer as PatchLayer
    from ccmem.layers import Stack as Stack
    from ccmem.layers import WindowLayer as WindowLayer
    from ccmem.memory import Event as Event
    from ccmem.models import ARTC2A as ARTC2A
    from ccmem.models import CCM as CCM
    from ccmem.models import AdaptiveCCM as AdaptiveCCM
    from ccmem.models import IncrementalGMM as IncrementalGMM
    from ccmem.models import IncrementalWTA as IncrementalWTA
    from ccmem.persistence import CheckpointError as CheckpointError
    from ccmem.persistence import from_bytes as from_bytes
    from ccmem.persistence import load as load
    from ccmem.persistence import save as save
    from ccmem.predictors import DiscriminantClassifier as DiscriminantClassifier
    from ccmem.predictors import GatedMLP as GatedMLP
    from ccmem.predictors import OnlineMLP as OnlineMLP
    from ccmem.readout import ModalClassifier as ModalClassifier
    from ccmem.watching import watch as watch

_HOME = {
    "ARTC2A": "ccmem.models",
    "AdaptiveCCM": "ccmem.models",
    "CCM": "ccmem.models",
    "CheckpointError": "ccmem.persistence",
    "DiscriminantClassifier": "ccmem.predictors",
    "Event": "ccmem.memory",
    "GatedMLP": "ccmem.predictors",
    "IncrementalGMM": "ccmem.models",
    "IncrementalWTA": "ccmem.models",
    "ModalClassifier": "ccmem.readout",
    "OnlineMLP": "ccmem.predictors",
    "PatchLayer": "ccmem.layers",
    "Stack": "ccmem.layers",
    "WindowLayer": "ccmem.layers",
    "from_bytes": "ccmem.persistence",
    "load": "ccmem.persistence",
    "merge": "ccmem.fleet.merge",
    "save": "ccmem.persistence",
    "watch": "ccmem.watching",
}
"""Public name -> the module it lives in."""

__all__ = [
    "ARTC2A",
    "CCM",
    "AdaptiveCCM",
    "CheckpointError",
    "DiscriminantClassifier",
    "Event",
    "GatedMLP",
    "IncrementalGMM",
    "IncrementalWTA",
    "ModalClassifier",
    "OnlineMLP",
    "PatchLayer",
    "Stack",
    "WindowLayer",
    "__version__",
    "from_bytes",
    "load",
    "merge",
    "save",
    "watch",
]
_MODULES = ("datasets", "metrics", "plots", "river", "streams", "torch")
"""Modules that may be reached as attributes without an import of their own."""


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"ccmem.{name}")
    raise AttributeError(f"module 'ccmem' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])
