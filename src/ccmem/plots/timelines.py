"""Timeline of the blocks in use."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ccmem.base.images import image_shape as shape_of
from ccmem.core.colours import ALARM, GREY, INK, PALE, SIGNS, block_colour
from ccmem.core.times import format_time
from ccmem.core.typing import FloatArray, IntArray
from ccmem.plots._figure import column_names, memory_of, new_figure, note
from ccmem.plots.units import stretched

WORDS, ARROWS, MARKS = 14, 60, 160
"""Largest number of events drawn with words, arrows and markers; beyond that, ticks."""
MOST_LABELS = 30
MOST_COLUMNS = 12
"""Largest number of columns drawn."""
_THUMBNAILS = 24
_WHITE = {"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.85}
"""Background of text that is drawn over lines."""


def timeline(
    model: Any,
    *,
    changes: Sequence[int] = (),
    alarm: Any = None,
    rejected: Any = None,
    evidence: Any = None,
    stream: Any = None,
    image_shape: tuple[int, int] | None = None,
    title: str | None = None,
    figure: Any = None,
) -> Any:
    """Draw the block in use over the stream with new blocks and recalls.

    Parameters
    ----------
    model : fitted memory with blocks, or a classifier or gated network that holds one
    changes : steps at which the stream really changed, optional
        Drawn as dotted lines.
    alarm : array, one value per step, optional
        Drawn below the blocks, with its limit.
    rejected : array of bool, one value per step, optional
        True at the steps that a CCM rejected; the alarm is computed from it.
    evidence : array, one value per step, or True, optional
        Evidence for a change in multiples of its threshold, drawn below; True draws only the evidence of the events.
    stream : array of the rows, optional
        Drawn above the blocks: as images if the rows are images, otherwise one line per column.
    image_shape : (height, width), optional
        Needed for images that are not square.
    title : str, optional
    figure : Figure or SubFigure to draw into, optional

    Returns
    -------
    matplotlib Figure, which a notebook shows

    Examples
    --------
    >>> import numpy as np
    >>> from ccmem import AdaptiveCCM, plots
    >>> rng = np.random.default_rng(0)
    >>> levels = np.repeat([[1.0, 0.0, 0.1], [0.0, 1.0, 0.9], [1.0, 0.0, 0.1]], 300, axis=0)
    >>> memory = AdaptiveCCM(n_slots=5).fit(rng.normal(levels, 0.2))
    >>> figure = plots.timeline(memory, changes=[300, 600])  # doctest: +SKIP
    """
    memory = memory_of(model)
    if not hasattr(memory, "events_"):
        raise TypeError(f"a timeline needs a memory with blocks, such as AdaptiveCCM, not {type(memory).__name__}")
    if rejected is not None:
        alarm = alarm_of(np.asarray(rejected, np.bool_), [event.step for event in memory.events_])
    rows, shape = (None, None) if stream is None else _rows_of(stream, image_shape)
    stream_high = 0.75 if shape is not None or rows is None else 0.35 + 0.13 * min(rows.shape[1], MOST_COLUMNS)
    n_below = (alarm is not None) + (evidence is not None)
    heights = [stream_high] * (rows is not None) + [min(6.0, max(1.2, 0.55 * _n_blocks(memory)))] + [0.75] * n_below
    figure = new_figure(11, sum(heights) + 1.0) if figure is None else figure
    panels = list(figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0])
    for panel in panels:
        panel.spines[:].set_visible(False)
        panel.tick_params(length=0, labelcolor=GREY)
        for step in changes:
            panel.axvline(step, color=GREY, linewidth=0.8, linestyle=(0, (1, 3)), zorder=0)
    below = panels[-1]
    if rows is not None:
        _draw_stream(panels.pop(0), rows, shape, [str(name) for name in getattr(stream, "columns", [])])
    draw_lanes(panels.pop(0), memory)
    if alarm is not None:
        _draw_alarm(panels.pop(0), np.asarray(alarm), _limit(memory))
    if evidence is not None:
        _draw_evidence(panels.pop(0), memory, None if evidence is True else np.asarray(evidence, np.float64))
    below.set_xlim(0, max(1, memory.n_samples_seen_))
    clock = getattr(memory, "time_at", None)
    if clock is not None and clock(memory.n_samples_seen_ - 1) is not None:
        below.set_xlabel("time", color=INK)
        below.xaxis.set_major_formatter(lambda x, _: format_time(clock(min(int(x), memory.n_samples_seen_ - 1))))
    else:
        below.set_xlabel("samples seen", color=INK)
        below.xaxis.set_major_formatter("{x:,.0f}")
    if title is not None:
        figure.suptitle(title, color=INK, weight="bold")
    return figure


def draw_lanes(axes: Any, memory: Any) -> None:
    """Draw one lane per block, filled while in use, with events between the lanes."""
    events = [event for event in memory.events_ if event.from_block != event.to_block]  # skip events of columns
    rows, n_blocks = memory.n_samples_seen_, _n_blocks(memory)
    names = getattr(memory, "block_names_", {})
    start_block = events[0].from_block if events else getattr(memory, "task_pointer_", 0)
    edges = [0, *(event.step for event in events), rows]
    used = [start_block, *(event.to_block for event in events)]
    stretches: dict[int, list[tuple[int, int]]] = {}
    for block, start, stop in zip(used, edges[:-1], edges[1:], strict=True):
        stretches.setdefault(block, []).append((start, stop - start))
    thick = 0.5 if n_blocks <= MOST_LABELS else 0.9
    many = len(events) > MARKS
    for block, parts in stretches.items():
        colour, first = block_colour(block), parts[0][0]
        axes.broken_barh([(first, rows - first)], (block - 0.07, 0.14), color=colour, alpha=0.22)
        axes.broken_barh(parts, (block - thick / 2, thick), color=colour, linewidth=0.5 if many else 0)
    for kind, (mark, _, colour, words) in SIGNS.items():
        some = [event for event in memory.events_ if event.kind == kind]
        if kind.startswith("column") and not some:
            continue
        word = f"{len(some)} {words + 's' if kind == 'new_block' and len(some) != 1 else words}"
        axes.plot([], [], mark, color=colour, label=word, markersize=6)
        if kind.startswith("column"):
            _draw_columns(axes, memory, some, mark, colour)
        elif len(events) <= ARROWS and n_blocks <= MOST_LABELS:
            _draw_arrows(axes, some, colour, words if len(events) <= WORDS else None, kind == "recall", rows)
        elif not many:
            axes.plot([e.step for e in some], [e.to_block for e in some], mark, color=colour, markersize=4, mec="white")
        else:
            axes.plot([e.step for e in some], [-1.0 if kind == "new_block" else -0.7] * len(some), "|", color=colour)
    axes.set_ylim(n_blocks - 0.4, -1.4 if many else -0.6)
    every = -(-n_blocks // MOST_LABELS)
    shown = range(0, n_blocks, every)
    axes.set_yticks(list(shown), [_short(names.get(block, f"block {block}")) for block in shown])
    for label, block in zip(axes.get_yticklabels(), shown, strict=True):
        label.set(color=block_colour(block), weight="bold")
    if memory.events_:
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=4, frameon=False, fontsize=9, labelcolor=GREY)


def alarm_of(rejected: Any, resets: Sequence[int]) -> IntArray:
    """Return the number of consecutive rejections at each step; a change of block resets it."""
    step = np.arange(len(rejected))
    start = np.where(rejected, -1, step)
    start[[reset for reset in resets if reset < len(start)]] = [reset for reset in resets if reset < len(start)]
    return step - np.maximum.accumulate(start)


def _draw_arrows(axes: Any, events: Any, colour: str, words: str | None, bold: bool, rows: int) -> None:
    for event in events:
        down = event.to_block > event.from_block
        gap = 0.3 if down else -0.3
        arrow = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.4, "shrinkA": 0, "shrinkB": 0}
        ends = (event.step, event.to_block - gap), (event.step, event.from_block + gap)
        axes.annotate("", *ends, arrowprops=arrow)
        if words is not None and event.step < 0.93 * rows:
            total = event.from_block + event.to_block
            middle = total / 2 + (0.5 if total % 2 == 0 else 0)  # between two lanes
            style = {"fontsize": 9, "color": colour, "weight": "bold" if bold else "normal"}
            note(axes, words, (event.step, middle), (5, 0), va="center", bbox=_WHITE, **style)


def _draw_columns(axes: Any, memory: Any, events: Any, mark: str, colour: str) -> None:
    """Draw lost and recovered columns as markers above the current lane, with names if there are few."""
    names = column_names(memory)
    steps, heights = [event.step for event in events], [event.to_block - 0.38 for event in events]
    axes.plot(steps, heights, mark, color=colour, mec="white", markersize=8)
    for event, height in zip(events if len(events) <= WORDS else (), heights, strict=False):
        text = _short(names[event.column])
        note(axes, text, (event.step, height), (7, 0), va="center", fontsize=8, color=colour, bbox=_WHITE)


def _draw_alarm(axes: Any, alarm: Any, limit: int | None) -> None:
    steps, peaks = _peaks(alarm)
    axes.fill_between(steps, peaks, color=ALARM, step="mid", linewidth=0.6, alpha=0.85)
    top = float(max(peaks.max(), 1))
    if limit:
        axes.axhline(limit, color=ALARM, linewidth=0.9, linestyle=":")
        right = {"xycoords": ("axes fraction", "data"), "ha": "right"}
        note(axes, "limit", (1.0, limit), (0, 2), **right, color=ALARM, fontsize=9)
        top = max(top, float(limit))
    axes.set(ylim=(0, top * 1.3), yticks=[])
    axes.set_ylabel("alarm", color=ALARM, weight="bold", rotation=0, ha="right", va="center")
    axes.axhline(0, color=PALE, linewidth=1)


def _draw_evidence(axes: Any, memory: Any, evidence: FloatArray | None) -> None:
    """Draw the evidence against its threshold, with a stem per event: linear up to 1, logarithmic beyond."""
    events = [event for event in memory.events_ if event.changes_block]
    axes.set_yscale("symlog", base=np.e, linthresh=1, linscale=1 - 1 / np.e)  # the same slope at 1 from both sides
    if evidence is not None:
        axes.fill_between(*_peaks(np.nan_to_num(evidence)), color=ALARM, linewidth=0.6, alpha=0.45)
    axes.vlines([e.step for e in events], 0, [e.evidence or 1.0 for e in events], color=ALARM, linewidth=2)
    for event in events if len(events) <= WORDS else ():
        place = (event.step, event.evidence or 1.0)
        note(axes, f"{place[1]:.2g}", place, (4, -2), va="bottom", color=ALARM, fontsize=9)
    axes.axhline(1, color=ALARM, linewidth=0.9, linestyle=":")
    top = max([4.0, *(1.6 * event.evidence for event in events)])
    axes.minorticks_off()
    axes.set(ylim=(0, top), yticks=[1, top**0.8], yticklabels=["threshold", "evidence"])
    axes.tick_params(axis="y", labelcolor=ALARM)
    for label, size, weight in zip(axes.get_yticklabels(), (9, 10), ("normal", "bold"), strict=True):
        label.set(fontsize=size, fontweight=weight)
    axes.spines["bottom"].set(visible=True, color=PALE)


def _peaks(values: Any) -> tuple[Any, Any]:
    """Return at most about 4,000 steps and the largest value from each to the next: more points only slow drawing."""
    steps = np.arange(0, len(values), max(1, len(values) // 4000))
    return steps, np.maximum.reduceat(values, steps)


def _rows_of(stream: Any, shape: tuple[int, int] | None) -> tuple[FloatArray, tuple[int, int] | None]:
    """Return a stream as an array, and the image shape if it holds images."""
    rows = np.asarray(stream)
    facts: Any = SimpleNamespace(n_features_in_=rows.shape[1], feature_names_in_=getattr(stream, "columns", None))
    return rows, shape_of(facts, shape)


def _draw_stream(axes: Any, rows: FloatArray, shape: tuple[int, int] | None, names: list[str]) -> None:
    """Draw some of the images, or one trace per column scaled to its range."""
    if shape is None:
        every = max(1, len(rows) // 2000)
        some = rows[::every, :MOST_COLUMNS].astype(np.float64)
        some[:, np.isnan(some).all(axis=0)] = 0.0  # a column without readings
        low, high = np.nanmin(some, axis=0), np.nanmax(some, axis=0)
        traces = (some - low) / np.where(high > low, high - low, 1) - 1.25 * np.arange(some.shape[1])
        axes.plot(np.arange(len(some)) * every, traces, linewidth=0.5, color=INK, alpha=0.75)
        named = names[: some.shape[1]] or [f"column {j}" for j in range(some.shape[1])]
        axes.set_yticks(0.5 - 1.25 * np.arange(some.shape[1]), [_short(name) for name in named], fontsize=7)
        return
    axes.set_ylabel("stream", color=INK, weight="bold", rotation=0, ha="right", va="center")
    axes.set_yticks([])
    wide = len(rows) / _THUMBNAILS
    for number in range(_THUMBNAILS):
        middle = (number + 0.5) * wide
        image = stretched(rows[int(middle)]).reshape(shape)
        place = (middle - 0.42 * wide, middle + 0.42 * wide, 0.0, 1.0)
        axes.imshow(image, cmap="Greys", extent=place, aspect="auto", interpolation="nearest", vmin=0, vmax=1.05)
    axes.set_ylim(-0.55, 1.55)  # about square


def _n_blocks(memory: Any) -> int:
    seen = [block + 1 for event in memory.events_ for block in (event.from_block, event.to_block)]
    return max([getattr(memory, "n_blocks_", 1), *seen])


def _limit(memory: Any) -> int | None:
    limit = getattr(memory, "_alarm_limit", None)
    return None if limit is None else limit()


def _short(name: str) -> str:
    return name if len(name) <= 18 else name[:17] + "…"
