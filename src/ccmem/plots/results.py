"""Task matrices, accuracies, and lines of a figure against a setting, a budget or time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from ccmem.core.colours import GREY, block_colour
from ccmem.plots._figure import BLUE, GREEN, ORANGE, new_axes, new_figure

MOST_MARKS = 20
"""Largest number of points with individual markers."""
MOST_TICKS = 8
"""Largest number of x values labelled on a logarithmic axis."""


def task_matrix(R: Any, *, task_names: Sequence[str] | None = None, ax: Any = None, title: str | None = None) -> Any:
    """Draw a task matrix as a heat map: accuracy on each task (column) after each visit (row); return the Axes."""
    R = np.array([[np.nan if value is None else value for value in line] for line in R], np.float64)
    ax = new_axes(ax, 0.62 * R.shape[1] + 1.2, 0.55 * R.shape[0] + 1.0)
    ax.imshow(R, cmap="viridis", vmin=0, vmax=1, aspect="auto")
    for (row, column), value in np.ndenumerate(R):
        if not np.isnan(value):
            colour = "white" if value < 0.6 else "black"
            ax.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=8, color=colour)
    names = list(task_names) if task_names is not None else [str(task + 1) for task in range(R.shape[1])]
    ax.set_xticks(range(R.shape[1]), names, fontsize=8)
    ax.set_yticks(range(R.shape[0]), [str(visit + 1) for visit in range(R.shape[0])], fontsize=8)
    ax.set_xlabel("accuracy on task", fontsize=8)
    ax.set_ylabel("after visit", fontsize=8)
    if title is not None:
        ax.set_title(title, fontsize=10)
    return ax


def task_matrices(
    matrices: Mapping[str, Any], *, task_names: Sequence[str] | None = None, columns: int = 4, title: str | None = None
) -> Any:
    """Draw several task matrices side by side; return the Figure."""
    rows = -(-len(matrices) // columns)
    columns = min(columns, len(matrices))
    figure = new_figure(3.3 * columns, 2.9 * rows + (0.3 if title else 0))
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax, (name, R) in zip(panels, matrices.items(), strict=False):
        task_matrix(R, task_names=task_names, ax=ax, title=name)
    for ax in panels[len(matrices) :]:
        ax.set_visible(False)
    if title is not None:
        figure.suptitle(title)
    return figure


def accuracy_chart(
    accuracies: Mapping[str, tuple[float, float]],
    *,
    published: Mapping[str, float] | None = None,
    ax: Any = None,
    title: str | None = None,
) -> Any:
    """Draw the ACC of models (name -> mean, standard deviation) as bars with published values; return the Axes."""
    published = published or {}
    names = list(accuracies)
    ax = new_axes(ax, 6, 0.34 * len(names) + 1.1)
    means, spreads = zip(*accuracies.values(), strict=True)
    places = np.arange(len(names))[::-1]
    colours = [ORANGE if "tuned" in name else GREEN if "adaptive" in name.lower() else BLUE for name in names]
    ax.barh(places, means, xerr=spreads, color=colours, height=0.65, error_kw={"elinewidth": 1, "ecolor": "#1a202c"})
    for name, place, mean, spread in zip(names, places, means, spreads, strict=True):
        end = max(mean + spread, published.get(name, 0.0))
        ax.text(min(end, 1.0) + 0.015, place, f"{mean:.3f}", va="center", fontsize=8)
    marks = [(published[name], place) for name, place in zip(names, places, strict=True) if name in published]
    if marks:
        ax.plot(*zip(*marks, strict=True), "|", color="black", markersize=14, markeredgewidth=2, label="paper")
        ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), fontsize=8, frameon=False)
    ax.set_yticks(places, names)
    ax.set_xlim(0, 1.1)
    ax.set_xlabel("ACC")
    ax.spines[["top", "right"]].set_visible(False)
    if title is not None:
        ax.set_title(title)
    return ax


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
