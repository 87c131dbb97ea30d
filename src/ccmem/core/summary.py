"""Text and HTML summaries of a memory, as printed by ``memory.summary()`` and displayed in notebooks."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from ccmem.core.colours import GREY, SIGNS, block_colour

MOST_BLOCKS, MOST_EVENTS, MOST_STRETCHES = 12, 5, 2000


def summary(model: Any) -> str:
    """Summarise a fitted memory, or a classifier that holds one, in a few lines of at most 100 characters."""
    memory = getattr(model, "memory_", model)
    if not memory.__sklearn_is_fitted__():
        return f"{type(model).__name__}: nothing learned yet"
    lines = [f"{_title(model, memory)}: {_counts(memory)}"]
    if blind := getattr(memory, "blind_", ()):
        lines.append(f"blind to changes of {' and '.join(blind)}: see blind_")
    if hasattr(memory, "unit_blocks_"):
        lines += ["", f"{'block':<20} {'units':>6} {'samples':>12}  labels"]
        for block, name, units, wins, labels in _blocks(model, memory):
            mark = "*" if block == memory.task_pointer_ else " "
            lines.append(f"{name[:18]:<18} {mark} {units:>6} {wins:>12,}  {labels}"[:100].rstrip())
        if memory.n_blocks_ > MOST_BLOCKS:
            lines.append(f"... and {memory.n_blocks_ - MOST_BLOCKS} more blocks")
        if memory.events_:
            lines += ["", f"{len(memory.events_)} event{'' if len(memory.events_) == 1 else 's'}, the latest:"]
            lines += [f"  {SIGNS[event.kind][1]} {event}"[:100] for event in memory.events_[-MOST_EVENTS:]]
    return "\n".join(lines)


def html(model: Any) -> str | None:
    """Return the summary as HTML with a drawing of the timeline, or None before learning."""
    memory = getattr(model, "memory_", model)
    if not memory.__sklearn_is_fitted__():
        return None
    parts = [f"<b>{escape(_title(model, memory))}</b>: {escape(_counts(memory))}"]
    if hasattr(memory, "unit_blocks_"):
        parts.append(_drawing(memory))
        cells = "".join(
            f"<tr><td style='color:{block_colour(block)};text-align:left'><b>{escape(name)}</b></td><td>{units}</td>"
            f"<td>{wins:,}</td><td style='text-align:left'>{escape(labels)}</td></tr>"
            for block, name, units, wins, labels in _blocks(model, memory)
        )
        parts.append(f"<table><tr><th>block</th><th>units</th><th>samples</th><th>labels</th></tr>{cells}</table>")
    return f"<div>{''.join(parts)}</div>"


def _title(model: Any, memory: Any) -> str:
    return type(model).__name__ + ("" if model is memory else f" on {type(memory).__name__}")


def _counts(memory: Any) -> str:
    blocks = f"{memory.n_blocks_} block{'s' * (memory.n_blocks_ != 1)}, " if hasattr(memory, "n_blocks_") else ""
    parts = [(memory.n_samples_seen_, "sample"), (memory.n_features_in_, "column"), (memory.n_units_, "unit")]
    samples, columns, units = (f"{count:,} {word}{'' if count == 1 else 's'}" for count, word in parts)
    return f"{samples} of {columns}, {blocks}{units}"


def _blocks(model: Any, memory: Any) -> list[tuple[int, str, int, int, str]]:
    """Return block, name, units, samples and most frequent labels of the first blocks."""
    members, wins, votes = memory.unit_blocks_, memory.win_counts_, getattr(model, "votes_", None)
    lines = []
    for block in range(min(memory.n_blocks_, MOST_BLOCKS)):
        own = members == block
        labels = "-"
        if votes is not None and (counts := votes[own].sum(axis=0)).any():
            order = [i for i in np.argsort(-counts, kind="stable")[:3] if counts[i]]
            labels = ", ".join(f"{model.classes_[i]} {counts[i] / counts.sum():.1%}" for i in order)
        name = memory.block_names_.get(block, f"block {block}")
        lines.append((block, name, int((own & (wins > 0)).sum()), int(wins[own].sum()), labels))
    return lines


def _drawing(memory: Any) -> str:
    """Draw the timeline as a small SVG, without matplotlib."""
    events, rows = memory.events_[-MOST_STRETCHES:], max(1, memory.n_samples_seen_)
    n_blocks = min(memory.n_blocks_, MOST_BLOCKS)
    used = [events[0].from_block if events else memory.task_pointer_, *(event.to_block for event in events)]
    edges = [0, *(event.step for event in events), rows]
    bars = [
        f'<rect x="{100 * start / rows:.3f}%" y="{14 * block + 3}" height="9" rx="2" fill="{block_colour(block)}" '
        f'width="{max(0.1, 100 * (stop - start) / rows):.3f}%"/>'
        for block, start, stop in zip(used, edges[:-1], edges[1:], strict=True)
        if block < n_blocks
    ]
    lanes = [
        f'<rect x="0" y="{14 * block + 7}" width="100%" height="1" fill="{GREY}" fill-opacity="0.25"/>'
        for block in range(n_blocks)
    ]
    size = f'width="560" height="{14 * n_blocks + 4}"'
    return f'<svg {size} style="display:block;margin:6px 0">{"".join(lanes + bars)}</svg>'
