"""Prototypes as grids of images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ccmem.core.typing import FloatArray
from ccmem.plots._figure import memory_of, new_axes, new_figure, without_frame


def memory_grid(
    model: Any,
    image_shape: tuple[int, int] | None = None,
    *,
    columns: int | None = None,
    ax: Any = None,
    title: str | None = None,
) -> Any:
    """Draw the prototypes of a memory as a grid of images, each on its own grey scale; unused slots stay blank.

    Parameters
    ----------
    model : fitted memory, or a classifier that holds one
    image_shape : (height, width), optional
        Needed unless the images are square.
    columns : int, optional
        Images in a row; by default the slots of a block, or a number that makes the grid about square.
    ax, title : optional

    Returns
    -------
    matplotlib Axes
    """
    memory = memory_of(model)
    prototypes, used = memory.prototypes_, memory.win_counts_ > 0
    if image_shape is None:
        side = round(prototypes.shape[1] ** 0.5)
        image_shape = (side, side)
    height, width = image_shape
    if height * width != prototypes.shape[1]:
        raise ValueError(
            f"image_shape={image_shape} does not fit {prototypes.shape[1]} columns; give (height, width) of the images"
        )
    if columns is None:
        blocks = getattr(memory, "unit_blocks_", None)
        columns = int(np.bincount(blocks).max()) if blocks is not None else int(np.ceil(len(prototypes) ** 0.5))
    rows = -(-len(prototypes) // columns)
    mosaic = np.full((rows * (height + 1) - 1, columns * (width + 1) - 1), np.nan)
    for unit, prototype in enumerate(prototypes):
        if used[unit]:
            top, left = (unit // columns) * (height + 1), (unit % columns) * (width + 1)
            mosaic[top : top + height, left : left + width] = stretched(prototype).reshape(image_shape)
    ax = new_axes(ax, columns * _side(columns), rows * _side(columns) + 0.3)
    ax.set_facecolor("#edf2f7")
    ax.imshow(mosaic, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    return without_frame(ax, title)


def _side(columns: int) -> float:
    """Return the size of an image in inches; larger if there are few per row."""
    return max(0.32, min(0.8, 5 / columns))


def stretched(image: FloatArray) -> FloatArray:
    low, high = image.min(), image.max()
    return (image - low) / (high - low) if high > low else np.zeros_like(image)


def memories(
    models: Mapping[str, Any],
    image_shape: tuple[int, int] | None = None,
    *,
    columns: int = 25,
    title: str | None = None,
) -> Any:
    """Draw the memories of several models one below the other, as in the paper; return the Figure."""
    heights = [-(-len(memory_of(model).prototypes_) // columns) for model in models.values()]
    side = _side(columns)
    figure = new_figure(columns * side, sum(heights) * (side + 0.01) + 0.45 * len(heights) + 0.3)
    panels = figure.subplots(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    for ax, (name, model) in zip(panels, models.items(), strict=True):
        used = int((memory_of(model).win_counts_ > 0).sum())
        memory_grid(model, image_shape, columns=columns, ax=ax)
        ax.set_title(f"{name}: {used} units", fontsize=10, loc="left")
    if title is not None:
        figure.suptitle(title)
    return figure
