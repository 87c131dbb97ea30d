"""Image shape of rows."""

from __future__ import annotations

from ccmem.base.memory import CompetitiveMemory


def image_shape(memory: CompetitiveMemory, given: tuple[int, int] | None = None) -> tuple[int, int] | None:
    """Return height and width if rows are images: as given, or a square of at least 8 by 8 for unnamed columns."""
    width = int(memory.n_features_in_)
    if given is not None:
        if given[0] * given[1] != width:
            raise ValueError(f"image_shape={given} does not fit {width} columns; give (height, width) of the images")
        return given
    side = round(width**0.5)
    named = getattr(memory, "feature_names_in_", None) is not None
    return (side, side) if side * side == width and side >= 8 and not named else None
