"""Line plots of a figure against a setting, a budget or time."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from ccmem.core.colours import GREY, block_colour
from ccmem.plots._figure import new_axes

MOST_MARKS = 20
"""Largest number of points with individual markers."""
MOST_TICKS = 8
"""Largest number of x values labelled on a logarithmic axis."""


def curves(
    lines: Mapping[str, tuple[Any, Any]],
    *,
    xlabel: str | None = None,
    ylabel: str | None = None,
    log: bool = False,
    dashed: Collection[str] = (),
    crossed: Mapping[str, Any] | None = None,
    legend: bool = True,
    ax: Any = None,
    title: str | None = None,
) -> Any:
    """Draw one line per name; return the Axes.

    Parameters
    ----------
    lines : name -> (x, y)
        If y has two dimensions, its columns are trials: the mean is drawn with a band of one standard deviation.
        Points are marked unless there are many.
    xlabel, ylabel, title, ax : optional
    log : bool, default=False
        True for a logarithmic x axis.
    dashed : names, optional
    crossed : name -> indices of points to cross out, optional
    legend : bool, default=True

    Examples
    --------
    >>> from ccmem import plots
    >>> axes = plots.curves({"memory": ([1, 2, 4], [[0.75, 0.25], [1.0, 0.5], [1.0, 1.0]])}, xlabel="units")
    >>> axes.lines[0].get_ydata().tolist()
    [0.5, 0.75, 1.0]
    """
    ax = new_axes(ax, 7.5, 4.2)
    mark = "o" if max((len(x) for x, _ in lines.values()), default=0) <= MOST_MARKS else ""
    for number, (name, (x, y)) in enumerate(lines.items()):
        x, y, colour = np.asarray(x), np.asarray(y, np.float64), block_colour(number)
        middle = y.mean(axis=1) if y.ndim == 2 else y
        style = "" if len(x) == 1 else "--" if name in dashed else "-"
        ax.plot(x, middle, mark + style, color=colour, lw=2, ms=8 if len(x) == 1 else 5, label=name)
        if y.ndim == 2:
            spread = y.std(axis=1)
            ax.fill_between(x, middle - spread, middle + spread, color=colour, alpha=0.15, lw=0)
        some = np.asarray((crossed or {}).get(name, ()), int)
        ax.plot(x[some], middle[some], "x", color=colour, ms=11, mew=1.6)
    if log:
        ax.set_xscale("log")
        values = sorted({float(value) for x, _ in lines.values() for value in x})
        if len(values) <= MOST_TICKS:
            ax.set_xticks(values, [f"{value:g}" for value in values])
            ax.minorticks_off()
    ax.set(xlabel=xlabel, ylabel=ylabel)
    if title is not None:
        ax.set_title(title, loc="left", fontsize=11)
    ax.grid(color=GREY, alpha=0.18)
    ax.spines[["top", "right"]].set_visible(False)
    if legend:
        ax.legend(frameon=False, fontsize=9)
    return ax
