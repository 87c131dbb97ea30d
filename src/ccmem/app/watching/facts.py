"""Facts about a model for the page, read from another thread while the model learns.

Reading takes no lock and never waits, so arrays may be read in the middle of a step. If the arrays are inconsistent
(``Moving``), the observer reads them again at its next look. Only the displayed blocks are copied.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ccmem.base.memory import CompetitiveMemory
from ccmem.core.events import Event
from ccmem.models._blocks import BlockMemory

MOST_UNITS, MOST_COLUMNS, MOST_LABELS = 25, 512, 6
"""Largest number of units drawn, columns sent and labels named for one block."""
MOST_PROFILES, MOST_PROFILED = 12, 64
"""Prototypes of a block that are drawn as profiles, and the most columns of such a profile."""
MOST_TIMES = 128
"""Steps whose times are sent to a page, which interpolates between them."""
Moving = (IndexError, ValueError, AttributeError, RuntimeError, TypeError)
"""Exceptions that reading a model in the middle of a step may raise."""


class Glance(NamedTuple):
    """Values that the observer reads at every look."""

    rows: int
    block: int
    n_blocks: int
    n_units: int
    alarm: int
    evidence: float | None
    """Evidence for a change relative to its threshold; None if the memory does not provide evidence."""


def memory_of(model: Any) -> CompetitiveMemory | None:
    """Return the fitted memory inside a classifier or a gated network, or the model itself; None before learning."""
    memory = getattr(model, "memory_", model)
    return memory if isinstance(memory, CompetitiveMemory) and memory.__sklearn_is_fitted__() else None


def glance(memory: CompetitiveMemory) -> Glance:
    """Return the current values of a memory; the evidence is ``evidence_``, or CCM's alarm in terms of its limit."""
    block, blocks, alarm = 0, 1, 0
    if isinstance(memory, BlockMemory):
        block, blocks, alarm = memory.task_pointer_, memory.n_blocks_, memory.alarm_
    evidence, limit = getattr(memory, "evidence_", None), getattr(memory, "alarm_limit", None)
    if evidence is None and limit is not None:
        evidence = alarm / (limit + 1)  # a block begins when the alarm exceeds its limit
    if evidence is not None:
        evidence = float(evidence) if np.isfinite(evidence) else None
    return Glance(memory.n_samples_seen_, block, blocks, memory.n_units_, alarm, evidence)


def times_of(memory: CompetitiveMemory) -> list[tuple[int, float]]:
    """Return steps at even distances and their times in seconds since 1970; empty if the rows have no times."""
    clock = getattr(memory, "_clock", None)
    if clock is None or not clock.steps:
        return []
    steps = sorted({i * (clock.steps - 1) // MOST_TIMES for i in range(MOST_TIMES + 1)})
    return [(step, time) for step in steps if (time := clock.at(step)) is not None]


def described(learner: Any) -> dict[str, Any]:
    """Return the facts of a learner about its stream that the model lacks: the name of the label."""
    return {"label": getattr(getattr(learner, "columns", None), "label", None)}


def windows_of(learner: Any) -> Callable[[], dict[str, Any]]:
    """Return a function that gives the length and the hop of windows, and the learned shape of each column by name."""
    known: dict[str, Any] = {}

    def facts() -> dict[str, Any]:
        layer = learner.front
        if not known and layer is not None and layer.frozen_ and learner.columns is not None:
            known.update(window=layer.window_, hop=layer.hop_, shapes={})
            if hasattr(layer, "shapes_"):
                units = [unit for scale in layer.shapes_ for group in scale for unit in group]
                names = layer.get_feature_names_out(learner.columns.features)
                known["shapes"] = {name: unit.round(3).tolist() for name, unit in zip(names, units, strict=False)}
        return known

    return facts


def majority(model: Any, block: int) -> list[list[Any]]:
    """Return the labels of a block and their shares, the most frequent first; empty without labels."""
    votes, classes, memory = getattr(model, "_votes", None), getattr(model, "classes_", None), memory_of(model)
    if votes is None or classes is None or memory is None:
        return []
    units = units_of(memory, block)
    counts = votes[units[units < len(votes)]].sum(axis=0)
    order = np.argsort(-counts, kind="stable")[:MOST_LABELS]
    total = int(counts.sum())
    return [[str(classes[i]), round(int(counts[i]) / total, 4)] for i in order if counts[i]] if total else []


def units_of(memory: CompetitiveMemory, block: int) -> Any:
    """Return the indices of the units of a block."""
    if not isinstance(memory, BlockMemory):
        return np.arange(memory.n_units_)
    return np.flatnonzero(memory.unit_blocks_ == block)


def card(model: Any, memory: CompetitiveMemory, block: int, shape: tuple[int, int] | None) -> dict[str, Any]:
    """Return the content of a block: busiest units as grey images, or columns and profiles; wins, labels, name."""
    state, units = memory._state, units_of(memory, block)
    units = units[units < len(state.wins)]
    wins = state.wins[units]
    units, wins = units[wins > 0], wins[wins > 0]
    drawn = units[np.argsort(-wins, kind="stable")[:MOST_UNITS]]
    facts: dict[str, Any] = {
        "block": block,
        "name": getattr(memory, "block_names_", {}).get(block, ""),
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
    if shape is None and state.prototypes.shape[1] <= MOST_PROFILED:
        facts["profiles"] = [_rounded(row) for row in state.prototypes[drawn[:MOST_PROFILES]]]
    return facts


def explanation(memory: BlockMemory, event: Event, samples: dict[str, Any] | None) -> dict[str, Any]:
    """Return the explanation of an event as plain values; ``samples`` are rows kept from before and after it."""
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
    """Return rows as bytes, each stretched from its lowest to its highest value."""
    rows = np.asarray(rows, np.float64)
    low = rows.min(axis=1, keepdims=True)
    height = np.maximum(rows.max(axis=1, keepdims=True) - low, 1e-300)
    return ((rows - low) / height * 255).astype(np.uint8)


def _rounded(values: Any) -> list[float]:
    return [float(f"{value:.7g}") if np.isfinite(value) else 0.0 for value in list(values)[:MOST_COLUMNS]]
