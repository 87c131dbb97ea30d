"""Facts about the layer of windows before a memory: what the page counts, and the shape that each column measures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def windows_of(learner: Any) -> Callable[[], dict[str, Any]]:
    """Return a function that gives the length and the hop of windows, and the learned shape of each column by name."""
    known: dict[str, Any] = {}

    def facts() -> dict[str, Any]:
        layer = learner.front
        if not known and layer is not None and layer.frozen_ and learner.columns is not None:
            known.update(window=layer.window_, hop=layer.hop_, shapes={})
            if hasattr(layer, "shapes_"):
                units = [unit for scale in layer.shapes_ for group in scale for unit in group]
                names = layer.get_feature_names_out(learner.columns.features)
                known["shapes"] = {name: unit.round(3).tolist() for name, unit in zip(names, units, strict=False)}
        return known

    return facts
