"""Competitive features that other models stand on."""

from __future__ import annotations

from ccmem.layers.window import WindowLayer

__all__ = ["WindowLayer"]
