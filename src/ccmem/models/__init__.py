"""The published models, one per file; ``ccmem/__init__.pyi`` lists them."""

from typing import Any

from ccmem import registry

__all__ = registry.names("ccmem.models")


def __getattr__(name: str) -> Any:
    if name in __all__:
        return registry.load(name)
    raise AttributeError(f"module 'ccmem.models' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
