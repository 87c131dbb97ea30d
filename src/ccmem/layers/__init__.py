"""Competitive features that other models stand on: layers, and a stack of them that streams as one model.

A layer is a transformer that learns from the first samples of a stream and then stands still (``frozen_``), so that
what is learned from its features stays true.
"""

from typing import Any

from ccmem import registry

__all__ = registry.names("ccmem.layers")


def __getattr__(name: str) -> Any:
    if name in __all__:
        return registry.load(name)
    raise AttributeError(f"module 'ccmem.layers' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
