"""Pictures of what a memory holds and of what happened on a stream, by matplotlib (``pip install "ccmem[plot]"``).

Every function takes a fitted model (or a result) and returns the matplotlib Axes or Figure it drew, for the caller to
save, show or change. Nothing here touches pyplot's global state, so it works in servers, threads and notebooks alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ccmem._typing import FloatArray, IntArray

BLUE, ORANGE, GREEN, GREY, RED = "#2b6cb0", "#dd6b20", "#2f855a", "#a0aec0", "#c53030"


def new_figure(width: float, height: float) -> Any:
    """An empty matplotlib Figure, in inches."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as problem:
        raise ImportError('figures need matplotlib: pip install "ccmem[plot]"') from problem
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _axes(ax: Any, width: float, height: float) -> Any:
    return new_figure(width, height).subplots() if ax is None else ax


def _memory_of(model: Any) -> Any:
    """The memory inside a classifier or a gated network, or the memory itself."""
    return getattr(model, "memory_", model)


def memory_grid(
    model: Any,
    image_shape: tuple[int, int] | None = None,
    *,
    columns: int | None = None,
    ax: Any = None,
    title: str | None = None,
) -> Any:
    """The prototypes of a memory as a grid of images, each on its own grey scale; slots never used stay blank.

    Parameters
    ----------
    model : fitted memory, or a classifier that holds one
    image_shape : (height, width), optional
        Needed unless the images are square.
    columns : int, optional
        Images in a row; as many as a block has slots for a CCM, else what makes the grid about square.
    ax, title : optional

    Returns
    -------
    matplotlib Axes
    """
    memory = _memory_of(model)
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
            mosaic[top : top + height, left : left + width] = _stretched(prototype).reshape(image_shape)
    ax = _axes(ax, columns * 0.32, rows * 0.32 + 0.3)
    ax.set_facecolor("#edf2f7")
    ax.imshow(mosaic, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_visible(False)
    if title is not None:
        ax.set_title(title)
    return ax


def _stretched(image: FloatArray) -> FloatArray:
    low, high = image.min(), image.max()
    return (image - low) / (high - low) if high > low else np.zeros_like(image)


def memories(
    models: Mapping[str, Any],
    image_shape: tuple[int, int] | None = None,
    *,
    columns: int = 25,
    title: str | None = None,
) -> Any:
    """The memories of several models, one below the other (the paper's figure); returns the Figure."""
    heights = [-(-len(_memory_of(model).prototypes_) // columns) for model in models.values()]
    figure = new_figure(columns * 0.32, sum(heights) * 0.33 + 0.45 * len(heights) + 0.3)
    panels = figure.subplots(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    for ax, (name, model) in zip(panels, models.items(), strict=True):
        used = int((_memory_of(model).win_counts_ > 0).sum())
        memory_grid(model, image_shape, columns=columns, ax=ax)
        ax.set_title(f"{name}: {used} units", fontsize=10, loc="left")
    if title is not None:
        figure.suptitle(title)
    return figure


def task_matrix(R: Any, *, task_names: Sequence[str] | None = None, ax: Any = None, title: str | None = None) -> Any:
    """A task matrix as a heat map: accuracy on each task (column) after each visit (row); returns the Axes."""
    R = np.array([[np.nan if value is None else value for value in line] for line in R], np.float64)
    ax = _axes(ax, 0.62 * R.shape[1] + 1.2, 0.55 * R.shape[0] + 1.0)
    ax.imshow(R, cmap="viridis", vmin=0, vmax=1, aspect="auto")
    for (row, column), value in np.ndenumerate(R):
        if not np.isnan(value):
            ax.text(
                column,
                row,
                f"{value:.2f}",
                ha="center",
                va="center",
                fontsize=8,
                color="white" if value < 0.6 else "black",
            )
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
    """Several task matrices side by side; returns the Figure."""
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


def stream_trace(
    model: Any, *, rejected: Any = None, change_points: Sequence[int] = (), title: str | None = None
) -> Any:
    """Task pointer, alarm and events of a CCM over the stream; returns the Figure.

    Parameters
    ----------
    model : fitted CCM, or a classifier or gated network that holds one
    rejected : array of bool, optional
        Which steps the memory rejected; with it the alarm and the share of rejected samples are drawn too.
    change_points : steps at which the task really changed, drawn as dotted lines
    """
    memory = _memory_of(model)
    events, steps = memory.events_, memory.n_samples_seen_
    figure = new_figure(10, 4.6 if rejected is not None else 2.6)
    panels = figure.subplots(
        1 if rejected is None else 2, 1, sharex=True, squeeze=False, height_ratios=None if rejected is None else (3, 2)
    )[:, 0]
    ax = panels[0]
    edges = [0, *[event.step for event in events], steps]
    pointers = [events[0].from_block if events else 0, *[event.to_block for event in events]]
    ax.stairs(pointers, edges, baseline=None, color=BLUE, linewidth=2, label="task pointer")
    for kind, marker, colour in (("new_block", "o", ORANGE), ("recall", "^", RED)):
        places = [(event.step, event.to_block) for event in events if event.kind == kind]
        if places:
            ax.plot(*zip(*places, strict=True), marker, color=colour, label=kind.replace("_", " "), markersize=7)
    ax.set_yticks(range(max(pointers) + 1))
    ax.set_ylabel("block in use")
    ax.margins(x=0.01, y=0.15)
    if rejected is not None:
        rejected = np.asarray(rejected, np.bool_)
        lower = panels[1]
        lower.plot(_alarm(rejected, [event.step for event in events]), color=GREY, linewidth=0.6, label="alarm")
        lower.set_ylabel("alarm")
        share = lower.twinx()
        window = max(1, min(500, len(rejected) // 50))
        smooth = np.convolve(rejected, np.ones(window) / window)[: len(rejected)]  # of the steps up to each
        share.plot(smooth, color=RED, linewidth=1.2, label="share rejected")
        share.set_ylim(0, max(0.05, 1.1 * float(smooth.max())))
        share.set_ylabel(f"rejected, of last {window}", color=RED)
    for panel in panels:
        for number, step in enumerate(change_points):
            panel.axvline(
                step,
                color="black",
                linestyle=":",
                linewidth=1,
                label="task changes" if number == 0 and panel is ax else None,
            )
    ax.legend(loc="upper left", fontsize=8, framealpha=0.9)
    panels[-1].set_xlabel("sample")
    if title is not None:
        figure.suptitle(title)
    return figure


def _alarm(rejected: Any, resets: Sequence[int]) -> IntArray:
    """Rejections in a row up to each step; a change of blocks starts the count anew."""
    step = np.arange(len(rejected))
    start = np.where(rejected, -1, step)
    start[[reset for reset in resets if reset < len(start)]] = [reset for reset in resets if reset < len(start)]
    return step - np.maximum.accumulate(start)


def accuracy_chart(
    accuracies: Mapping[str, tuple[float, float]],
    *,
    published: Mapping[str, float] | None = None,
    ax: Any = None,
    title: str | None = None,
) -> Any:
    """ACC of models (name -> mean, standard deviation) as bars, published values marked; returns the Axes."""
    published = published or {}
    names = list(accuracies)
    ax = _axes(ax, 7, 0.36 * len(names) + 1.1)
    means, spreads = zip(*accuracies.values(), strict=True)
    places = np.arange(len(names))[::-1]
    colours = [ORANGE if "tuned" in name else GREEN if "signature" in name else BLUE for name in names]
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
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    if title is not None:
        ax.set_title(title)
    return ax
