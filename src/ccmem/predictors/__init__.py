"""Classifiers that learn online: networks, alone or gated by a memory's task pointer, and a discriminant readout."""

from typing import Any

from ccmem import registry

__all__ = registry.names("ccmem.predictors")


def __getattr__(name: str) -> Any:
    if name in __all__:
        return registry.load(name)
    raise AttributeError(f"module 'ccmem.predictors' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
