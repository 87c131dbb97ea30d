"""What a page shows of a model, read from another thread while the model learns.

Nothing is locked and nothing waits: arrays are read as they are, at worst in the middle of a step, and what does not
fit together (``Moving``) is simply read again at the next look. Only the blocks that are shown are copied.
"""

from __future__ import annotations

import base64
from typing import Any, NamedTuple

import numpy as np

from ccmem.base import CompetitiveMemory
from ccmem.memory import Event
from ccmem.models._blocks import BlockMemory

MOST_UNITS, MOST_COLUMNS, MOST_LABELS = 25, 512, 6
"""Of a block: units that are drawn, columns that are sent, labels that are named."""
Moving = (IndexError, ValueError, AttributeError, RuntimeError, TypeError)
"""What reading a model in the middle of a step may raise."""


class Glance(NamedTuple):
    """The few numbers that are read at every look."""

    rows: int
    block: int
    n_blocks: int
    n_units: int
    alarm: int
    limit: int | None


def memory_of(model: Any) -> CompetitiveMemory | None:
    """The memory that learns, if it has begun to: that inside a classifier or a gated network, or the model itself."""
    memory = getattr(model, "memory_", model)
    return memory if isinstance(memory, CompetitiveMemory) and memory.__sklearn_is_fitted__() else None


def glance(memory: CompetitiveMemory) -> Glance:
    """Where learning is just now."""
    if isinstance(memory, BlockMemory):
        block, blocks, alarm, limit = memory.task_pointer_, memory.n_blocks_, memory.alarm_, memory._alarm_limit()
    else:
        block, blocks, alarm, limit = 0, 1, 0, None
    return Glance(memory.n_samples_seen_, block, blocks, memory.n_units_, alarm, limit)


def events_of(memory: CompetitiveMemory) -> list[Event]:
    """The events that a memory keeps."""
    return memory.events_ if isinstance(memory, BlockMemory) else []


def names_of(memory: CompetitiveMemory) -> dict[int, str]:
    """The names that were given to blocks."""
    return memory.block_names_ if isinstance(memory, BlockMemory) else {}


def columns_of(memory: CompetitiveMemory) -> list[str] | None:
    """Names of the columns, if they have any."""
    names = getattr(memory, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names[:MOST_COLUMNS]]


def image_shape(memory: CompetitiveMemory, given: tuple[int, int] | None = None) -> tuple[int, int] | None:
    """Height and width if rows are images: those given, or a square of at least 8 by 8 whose columns have no names."""
    width = int(memory.n_features_in_)
    if given is not None:
        if given[0] * given[1] != width:
            raise ValueError(f"image_shape={given} does not fit {width} columns; give (height, width) of the images")
        return given
    side = round(width**0.5)
    named = getattr(memory, "feature_names_in_", None) is not None
    return (side, side) if side * side == width and side >= 8 and not named else None


def majority(model: Any, block: int) -> list[list[Any]]:
    """Labels of a block and their shares, the most frequent first; empty without labels."""
    votes, classes, memory = getattr(model, "_votes", None), getattr(model, "classes_", None), memory_of(model)
    if votes is None or classes is None or memory is None:
        return []
    units = units_of(memory, block)
    counts = votes[units[units < len(votes)]].sum(axis=0)
    order = np.argsort(-counts, kind="stable")[:MOST_LABELS]
    total = int(counts.sum())
    return [[str(classes[i]), round(int(counts[i]) / total, 4)] for i in order if counts[i]] if total else []


def units_of(memory: CompetitiveMemory, block: int) -> Any:
    """Indices of the units of a block."""
    if not isinstance(memory, BlockMemory):
        return np.arange(memory.n_units_)
    return np.flatnonzero(memory.unit_blocks_ == block)


def card(model: Any, memory: CompetitiveMemory, block: int, shape: tuple[int, int] | None) -> dict[str, Any]:
    """What a block looks like: its busiest units as grey images, or its columns as bars; wins, labels, name."""
    state, units = memory._state, units_of(memory, block)
    units = units[units < len(state.wins)]
    wins = state.wins[units]
    units, wins = units[wins > 0], wins[wins > 0]
    drawn = units[np.argsort(-wins, kind="stable")[:MOST_UNITS]]
    facts: dict[str, Any] = {
        "block": block,
        "name": names_of(memory).get(block, ""),
        "wins": int(wins.sum()),
        "units": len(units),
        "labels": majority(model, block),
        "drawn": drawn.tolist(),
        "won": state.wins[drawn].tolist(),
    }
    if shape is not None:
        facts["images"] = base64.b64encode(_grey(state.prototypes[drawn]).tobytes()).decode()
    elif isinstance(memory, BlockMemory):
        profile = memory._profile(block)
        facts["bars"] = _rounded(profile.level)
        facts["spread"] = _rounded(profile.spread)
    else:
        facts["bars"] = _rounded(state.prototypes[units].mean(axis=0)) if len(units) else []
    return facts


def explanation(memory: BlockMemory, event: Event, samples: dict[str, Any] | None) -> dict[str, Any]:
    """Why an event happened, as plain values; ``samples`` are rows from before and after it, if some were kept."""
    why = memory.explain(event)
    return {
        "text": str(event),
        "onset": event.onset,
        "uncertainty": event.uncertainty,
        "evidence": event.evidence,
        "own_units": why.own_units,
        "columns": [[c.name, *_rounded([c.before, c.after, c.change, c.share, c.spreads])] for c in why.columns[:12]],
        "n_columns": len(why.columns),
        "samples": samples,
    }


def _grey(rows: Any) -> Any:
    """Rows as bytes, each stretched to its own darkest and brightest."""
    rows = np.asarray(rows, np.float64)
    low = rows.min(axis=1, keepdims=True)
    height = np.maximum(rows.max(axis=1, keepdims=True) - low, 1e-300)
    return ((rows - low) / height * 255).astype(np.uint8)


def _rounded(values: Any) -> list[float]:
    return [float(f"{value:.5g}") if np.isfinite(value) else 0.0 for value in list(values)[:MOST_COLUMNS]]
