"""Competitive features that other models stand on: layers, and a stack of them that streams as one model.

A layer is a transformer that learns from the first samples of a stream and then stands still (``frozen_``), so that
what is learned from its features stays true.
"""

from ccmem import registry

__all__, __getattr__, __dir__ = registry.lazily(__name__)
