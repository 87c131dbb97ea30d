"""Classifiers that learn online: networks, alone or gated by a memory's task pointer, and a discriminant readout."""

from ccmem import registry

__all__, __getattr__, __dir__ = registry.lazily(__name__)
