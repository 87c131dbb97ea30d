"""Explanation of a change of block: the samples of two blocks compared column by column.

A model describes its blocks by ``_profile``. The default here is valid for any block memory: the mean of the block's
units, weighted by the samples they have learned, and the spread of the units. A model that compares by direction knows
its columns only relative to each other; a model that keeps levels overrides ``_profile``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ccmem.core.events import Event
from ccmem.core.typing import FloatArray

if TYPE_CHECKING:
    from ccmem.models._blocks import BlockMemory

SHOWN = 5
"""Number of columns listed in the text of an explanation."""
LONGEST_NAME = 24


class Profile(NamedTuple):
    """Column statistics of a block."""

    level: FloatArray
    spread: FloatArray
    own_units: bool
    """True if levels are in the units of the data; False if rows were scaled to length 1 first."""


class ColumnChange(NamedTuple):
    """Difference of one column between two blocks."""

    name: str
    before: float
    after: float
    change: float
    """Level after the event minus level before it."""
    share: float
    """Fraction of the total squared change, each column in units of its spread."""
    spreads: float
    """Absolute change in standard deviations of the column within the two blocks."""


class Explanation(NamedTuple):
    """Result of :meth:`~ccmem.models._blocks.BlockMemory.explain`; ``str`` gives readable text."""

    event: Event
    columns: list[ColumnChange]
    """Changes of all columns, the largest in standard deviations first."""
    own_units: bool
    """True if values are in the units of the data; False if rows were scaled to length 1 first."""

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
    """Return mean and spread of a block's units, weighted by the samples that each unit has learned."""
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
    """Return the differences between the two blocks of an event, column by column, the largest first."""
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
    if before.own_units and after.own_units:  # columns with different units cannot share a floor
        floor = 1e-6 * (np.abs(before.level) + np.abs(after.level)) + np.finfo(float).tiny
    else:
        floor = np.full_like(spread, 0.1 * float(spread.mean()) or 1.0)  # a constant column would otherwise dominate
    spreads = np.nan_to_num(np.abs(change) / (spread + floor))  # NaN: a column that a block has never seen
    share = spreads**2 / ((spreads**2).sum() or 1.0)
    values = np.column_stack([before.level, after.level, change, share, spreads]).tolist()
    columns = [ColumnChange(_name(names, j), *values[j]) for j in np.argsort(-share, kind="stable")]
    return Explanation(event, columns, before.own_units and after.own_units)


def _name(names: Any, column: int) -> str:
    return f"column {column}" if names is None else str(names[column])
