"""Published models, one per file; ``ccmem/__init__.pyi`` lists them."""

from ccmem import registry

__all__, __getattr__, __dir__ = registry.lazily(__name__)
