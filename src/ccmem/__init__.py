"""ccmem: learning from an endless stream without forgetting.

Names are loaded when they are first used, so that ``import ccmem`` costs next to nothing; ``__init__.pyi`` lists them.
"""

from ccmem import registry as _registry

__version__ = "0.3.0"
__all__ = sorted([*_registry.PUBLIC, "__version__"])


def __getattr__(name: str) -> object:
    if name in _registry.PUBLIC or name in _registry.MODULES:
        return _registry.load(name)
    raise AttributeError(f"module 'ccmem' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_registry.MODULES])
