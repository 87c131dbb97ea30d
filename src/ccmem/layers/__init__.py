"""Competitive feature layers, and a stack that streams layers and a model as one.

A layer is a transformer that learns from the first samples of a stream. After that it is fixed (``frozen_``), so that
models trained on its features remain valid.
"""

from ccmem import registry

__all__, __getattr__, __dir__ = registry.lazily(__name__)
