"""Decision regions of memories with two columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem.core.colours import INK, block_colour
from ccmem.plots._figure import memory_of, new_axes, without_frame

POINTS = 300
"""Grid points per side at which the memory is evaluated."""


def regions(model: Any, X: Any = None, *, reach: float | None = None, ax: Any = None, title: str | None = None) -> Any:
    """Draw the region of the plane that each unit wins, coloured by unit, or by block if there are several.

    Units that compare by distance are drawn as dots, units that compare by direction as arrows. If the memory has a
    vigilance, points where no unit is similar enough are pale.

    Parameters
    ----------
    model : fitted memory of two columns, or a classifier that holds one
    X : samples to draw as dots, optional
    reach : float, optional
        The plane is drawn from -reach to reach; by default as far as samples and units lie.
    ax, title : optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from ccmem import IncrementalWTA, plots
    >>> memory = IncrementalWTA(n_units=2).fit([[1.0, 0.0], [-1.0, 0.0]])
    >>> plots.regions(memory).get_xlim() == (-1.25, 1.25)
    True
    """
    from ccmem.models import ARTC2A
    from ccmem.models._blocks import BlockMemory

    memory = memory_of(model)
    if memory.n_features_in_ != 2:
        raise ValueError(f"regions needs a memory of 2 columns, not of {memory.n_features_in_}")
    used = np.flatnonzero(memory.win_counts_ > 0)
    units = memory.prototypes_[used]
    by_direction = isinstance(memory, (ARTC2A, BlockMemory))
    colours = memory.unit_blocks_ if isinstance(memory, BlockMemory) else np.arange(memory.n_units_)
    if reach is None:
        reach = 1.25 * float(np.abs(units if X is None else np.concatenate([np.asarray(X), units])).max())
    side = np.linspace(-reach, reach, POINTS)
    plane = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    won = memory.predict(plane)
    shade: Any = np.full(len(plane), 0.4)
    if by_direction and (vigilance := getattr(memory, "vigilance", None)) is not None:
        shade[memory.transform(plane)[:, used].max(axis=1) < vigilance] = 0.1
    won, shade = won.reshape(POINTS, POINTS), shade.reshape(POINTS, POINTS, 1)
    shade[:, 1:][won[:, 1:] != won[:, :-1]] = 0.0  # a white line between units
    shade[1:][won[1:] != won[:-1]] = 0.0
    tones = np.array([[int(block_colour(int(c))[i : i + 2], 16) / 255 for i in (1, 3, 5)] for c in colours])
    ax = new_axes(ax, 4.0, 4.2)
    ax.imshow(1 - shade * (1 - tones[won]), origin="lower", extent=(-reach, reach, -reach, reach))
    if X is not None:
        ax.plot(*np.asarray(X).T, ".", color=INK, ms=2.5, alpha=0.5)
    for unit, place in zip(used, units, strict=True):
        tone = block_colour(int(colours[unit]))
        if by_direction:
            tip = place / np.linalg.norm(place) * 0.88 * reach
            ax.annotate("", tip, (0, 0), arrowprops={"arrowstyle": "-|>", "color": tone, "lw": 2, "shrinkA": 0})
        else:
            ax.plot(*place, "o", color=tone, mec="white", mew=1.2, ms=9)
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach))
    return without_frame(ax, title, fontsize=11)
