"""Units as images, and the content of each block as images or columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ccmem.base.images import image_shape as shape_of
from ccmem.core.colours import GREY, INK, PALE, block_colour
from ccmem.core.typing import FloatArray
from ccmem.plots._figure import column_names, memory_of, new_axes, new_figure, without_frame

MOST_BLOCKS, MOST_BARS = 24, 24
_UNITS = 10


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
    side = round(prototypes.shape[1] ** 0.5)
    height, width = image_shape or (side, side)
    if height * width != (n_columns := prototypes.shape[1]):
        raise ValueError(
            f"image_shape={height, width} does not fit {n_columns} columns; give (height, width) of the images"
        )
    if columns is None:
        blocks = getattr(memory, "unit_blocks_", None)
        columns = int(np.bincount(blocks).max()) if blocks is not None else int(np.ceil(len(prototypes) ** 0.5))
    rows = -(-len(prototypes) // columns)
    mosaic = np.full((rows * (height + 1) - 1, columns * (width + 1) - 1), np.nan)
    for unit, prototype in enumerate(prototypes):
        if used[unit]:
            top, left = (unit // columns) * (height + 1), (unit % columns) * (width + 1)
            mosaic[top : top + height, left : left + width] = stretched(prototype).reshape(height, width)
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
    side = _side(columns)
    heights = [-(-len(memory_of(model).prototypes_) // columns) * side for model in models.values()]
    figure = new_figure(columns * side, sum(heights) + 0.35 * len(heights) + (0.3 if title else 0))
    panels = figure.subplots(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    for ax, (name, model) in zip(panels, models.items(), strict=True):
        used = int((memory_of(model).win_counts_ > 0).sum())
        memory_grid(model, image_shape, columns=columns, ax=ax)
        ax.set_title(f"{name}: {used} units", fontsize=10, loc="left")
    if title is not None:
        figure.suptitle(title)
    return figure


def blocks(
    model: Any, image_shape: tuple[int, int] | None = None, *, title: str | None = None, figure: Any = None
) -> Any:
    """Draw the content of each block: its most active units as images, or its mean as one bar per column.

    Parameters
    ----------
    model : fitted memory with blocks, or a classifier or gated network that holds one
        At most 24 blocks are drawn, those with the most samples.
    image_shape : (height, width), optional
        Needed for images that are not square. Rows with named columns are not drawn as images.
    title : str, optional
    figure : Figure or SubFigure to draw into, optional

    Returns
    -------
    matplotlib Figure, which a notebook shows
    """
    memory = memory_of(model)
    if not hasattr(memory, "unit_blocks_"):
        raise TypeError(f"blocks needs a memory with blocks, such as AdaptiveCCM, not {type(memory).__name__}")
    wins = np.bincount(memory.unit_blocks_, memory.win_counts_, minlength=memory.n_blocks_)
    shown = np.sort(np.argsort(-wins, kind="stable")[:MOST_BLOCKS])
    shape = shape_of(memory, image_shape)
    names = [memory.block_names_.get(block, f"block {block}") for block in shown.tolist()]
    if shape is not None:
        figure = _images(memory, shown, names, shape, figure)
    elif memory.n_features_in_ <= MOST_BARS and len(shown) <= 8:
        figure = _bars(memory, shown, names, figure)
    else:
        figure = _shades(memory, shown, names, figure)
    if title is not None:
        figure.suptitle(title, color=INK, weight="bold")
    return figure


def _images(memory: Any, shown: Any, names: list[str], shape: tuple[int, int], figure: Any) -> Any:
    prototypes, wins, members = memory.prototypes_, memory.win_counts_, memory.unit_blocks_
    columns = int(min(_UNITS, max(1, max(((members == block) & (wins > 0)).sum() for block in shown))))
    figure = figure or new_figure(0.62 * columns + 1.4, 0.68 * len(shown) + 0.5)
    grid = figure.subplots(len(shown), columns, squeeze=False)
    for line, block, name in zip(grid, shown.tolist(), names, strict=True):
        units = np.flatnonzero((members == block) & (wins > 0))
        units = units[np.argsort(-wins[units], kind="stable")][:columns]
        for axes, unit in zip(line, [*units.tolist(), *[None] * columns], strict=False):
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set(visible=unit is not None, color=block_colour(block), linewidth=1.6)
            if unit is not None:
                image = stretched(prototypes[unit]).reshape(shape)
                axes.imshow(image, cmap="Greys", interpolation="nearest", vmin=0, vmax=1.05)
        line[0].set_ylabel(name, color=block_colour(block), weight="bold", rotation=0, ha="right", va="center")
    return figure


def _bars(memory: Any, shown: Any, names: list[str], figure: Any) -> Any:
    """Draw one bar per column, scaled to the range over all blocks because units differ."""
    columns, profiles = column_names(memory), [memory._profile(block) for block in shown.tolist()]
    levels, spreads = (np.array([profile[part] for profile in profiles]) for part in (0, 1))
    low, high = (levels - spreads).min(axis=0), (levels + spreads).max(axis=0)
    width = np.where(high > low, high - low, 1)
    figure = figure or new_figure(1.6 + 1.9 * len(shown), 0.9 + 0.27 * len(columns))
    row = figure.subplots(1, len(shown), sharex=True, sharey=True, squeeze=False)[0]
    places = np.arange(len(columns))
    for axes, block, name, level, spread in zip(row, shown.tolist(), names, levels, spreads, strict=True):
        shares = (level - low) / width
        axes.barh(places, 1, color=PALE, alpha=0.45, height=0.7)
        axes.barh(places, shares, color=block_colour(block), height=0.7)
        axes.errorbar(shares, places, xerr=spread / width, fmt="none", ecolor=INK, elinewidth=0.8)
        for place, value in zip(places, level, strict=True):
            axes.text(1.04, place, f"{value:.4g}", va="center", fontsize=8, color=GREY)
        axes.set_title(name, color=block_colour(block), weight="bold", fontsize=10, loc="left")
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0, labelsize=8, labelcolor=GREY)
        axes.set(xlim=(0, 1.35), xticks=[])
    row[0].set_yticks(places, columns)
    row[0].invert_yaxis()
    return figure


def _shades(memory: Any, shown: Any, names: list[str], figure: Any) -> Any:
    levels = np.array([memory._profile(block).level for block in shown.tolist()])
    low, high = levels.min(axis=0), levels.max(axis=0)
    figure = figure or new_figure(9, 0.9 + 0.3 * len(shown))
    axes = figure.subplots()
    shares = (levels - low) / np.where(high > low, high - low, 1)
    axes.imshow(shares, cmap="viridis", aspect="auto", interpolation="nearest", vmin=0, vmax=1)
    axes.set_yticks(range(len(shown)), names)
    for label, block in zip(axes.get_yticklabels(), shown.tolist(), strict=True):
        label.set(color=block_colour(block), weight="bold")
    columns = column_names(memory)
    if len(columns) <= 40:
        axes.set_xticks(range(len(columns)), columns, rotation=40, ha="right", fontsize=8)
    else:
        axes.set_xlabel("column", color=GREY)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.set_title("every column from its lowest block to its highest", loc="left", color=GREY, fontsize=9)
    return figure
