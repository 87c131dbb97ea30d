"""Competitive features that other models stand on: layers, and a stack of them that streams as one model.

A layer is a transformer that learns from the first samples of a stream and then stands still (``frozen_``), so that
what is learned from its features stays true.
"""

from __future__ import annotations

from ccmem.layers.patch import PatchLayer
from ccmem.layers.stack import Stack
from ccmem.layers.window import WindowLayer

__all__ = ["PatchLayer", "Stack", "WindowLayer"]
