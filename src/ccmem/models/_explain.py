"""Why a memory changed its block: what the samples of two blocks look like, column by column.

A model answers for its blocks by ``_profile``. Here is what any block memory can say: the mean of the block's units,
each counting for the samples it has learned, and how far the units lie apart. A model that compares by direction knows
its columns relative to each other only; one that keeps levels of its own overrides ``_profile``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ccmem._typing import FloatArray
from ccmem.memory import Event

if TYPE_CHECKING:
    from ccmem.models._blocks import BlockMemory

SHOWN = 5
"""Columns that the text of an explanation names."""
LONGEST_NAME = 24


class Profile(NamedTuple):
    """A block, column by column."""

    level: FloatArray
    spread: FloatArray
    own_units: bool
    """Whether levels are in the units of the data; else rows were brought to length 1 first."""


class ColumnChange(NamedTuple):
    """How one column differs between two blocks."""

    name: str
    before: float
    after: float
    change: float
    """After less before."""
    share: float
    """Its part of the whole squared change, each column measured in its own spread."""
    spreads: float
    """The change in standard deviations of the column within the two blocks: how plain it is."""


class Explanation(NamedTuple):
    """What :meth:`~ccmem.models._blocks.BlockMemory.explain` found; ``str`` of it is made to be read."""

    event: Event
    columns: list[ColumnChange]
    """The column that says most first."""
    own_units: bool
    """Whether the values are in the units of the data; else rows were brought to length 1 first."""

    def __str__(self) -> str:
        lines = [str(self.event)]
        if not self.event.changes_block:
            (column,) = self.columns
            has = "has readings again" if self.event.kind == "column_back" else "has no readings any more"
            return f"{lines[0]}\n  {column.name} {has}; in block {self.event.to_block} it is about {column.before:.4g}"
        width = min(LONGEST_NAME, max((len(column.name) for column in self.columns[:SHOWN]), default=0))
        for column in self.columns[:SHOWN]:
            values = f"{column.before:10.4g} -> {column.after:10.4g}  {column.change:+10.4g}"
            plain = f"{column.spreads:6.1f} spreads {column.share:7.1%} of the change"
            lines.append(f"  {column.name[:width]:<{width}}  {values}  {plain}")
        if len(self.columns) > SHOWN:
            lines.append(f"  ... and {len(self.columns) - SHOWN} more columns")
        return "\n".join(lines)


def profile_of_units(memory: BlockMemory, block: int) -> Profile:
    """Mean of a block's units and their spread, each unit weighing as many samples as it has learned."""
    state = memory._started()
    blocks = memory.unit_blocks_
    units = np.flatnonzero(blocks == block)
    wins = state.wins[units].astype(np.float64)
    if not wins.sum():
        nothing = np.zeros(state.prototypes.shape[1])
        return Profile(nothing, nothing, own_units=False)
    prototypes, weights = state.prototypes[units].astype(np.float64), wins / wins.sum()
    level = weights @ prototypes
    return Profile(level, np.sqrt(weights @ (prototypes - level) ** 2), own_units=False)


def explain(memory: BlockMemory, event: Event) -> Explanation:
    """The columns by which the two blocks of an event differ, the most telling first."""
    if not isinstance(event, Event):
        raise TypeError(f"explain needs an event such as memory.events_[-1], not {event!r}")
    for block in (event.from_block, event.to_block):
        if not 0 <= block < memory.n_blocks_:
            raise ValueError(f"there is no block {block} in this memory: {event!r} is not one of its events")
    before, after = memory._profile(event.from_block), memory._profile(event.to_block)
    names = getattr(memory, "feature_names_in_", None)
    if not event.changes_block:
        level = float(before.level[event.column])
        only = ColumnChange(_name(names, event.column), level, level, change=0.0, share=1.0, spreads=0.0)
        return Explanation(event, [only], before.own_units)
    change = after.level - before.level
    spread = np.sqrt((before.spread**2 + after.spread**2) / 2)
    if before.own_units and after.own_units:  # columns of different units have no floor in common
        floor = 1e-6 * (np.abs(before.level) + np.abs(after.level)) + np.finfo(float).tiny
    else:
        floor = np.full_like(spread, 0.1 * float(spread.mean()) or 1.0)  # what never moved is not everything
    spreads = np.nan_to_num(np.abs(change) / (spread + floor))  # NaN: a block that never heard the column
    share = spreads**2 / ((spreads**2).sum() or 1.0)
    columns = [
        ColumnChange(
            _name(names, j),
            float(before.level[j]),
            float(after.level[j]),
            float(change[j]),
            float(share[j]),
            float(spreads[j]),
        )
        for j in np.argsort(-share, kind="stable")
    ]
    return Explanation(event, columns, before.own_units and after.own_units)


def _name(names: Any, column: int) -> str:
    return f"column {column}" if names is None else str(names[column])
