"""Events of a memory as a table with readable columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ccmem.core.events import Event
    from ccmem.models._blocks import BlockMemory

SHOWN_COLUMNS = 3
"""Maximum number of moved columns that the description of an event names."""
_SURELY_MOVED = 2.0
"""Change in standard deviations from which a column is named, however far another one has moved: that of a constant
column, such as a switch, is many."""


def described_events(
    memory: BlockMemory, events: Sequence[Event], last_time: float | None = None, least: float = 0.0
) -> list[dict[str, Any]]:
    """Return the fields of events with names of blocks and columns, and the time until the next change of block.

    ``last_time``: end of the stream, until which the last block stayed in use. ``least``: smallest change of a column
    that is named, in units of the largest, both in standard deviations of their columns; two deviations suffice.
    """
    names = memory.block_names_
    turns = [event for event in events if event.changes_block]
    ends = dict(zip(turns, [*(turn.onset_time for turn in turns[1:]), last_time], strict=False))
    lines: list[dict[str, Any]] = []
    for event in events:
        end = ends.get(event)
        stayed = None if end is None or event.onset_time is None else end - event.onset_time
        line = {
            **event.record(),
            "time": event.time,
            "onset_time": event.onset_time,
            "onset": event.onset,
            "block": names.get(event.to_block, f"block {event.to_block}"),
            "before": names.get(event.from_block, f"block {event.from_block}"),
            "duration": stayed if stayed is not None and stayed >= 0 else None,
            "moved": ", ".join(_moved(memory, event, least)),
            "evidence": event.evidence or None,
        }
        lines.append(line)
    return lines


def _moved(memory: BlockMemory, event: Event, least: float) -> list[str]:
    """Return the names of the columns that differ most between the block of ``event`` and the block before."""
    try:
        columns = memory.explain(event).columns
    except (ValueError, LookupError):  # the block has been merged or removed since the event
        return []
    enough = min(least * columns[0].spreads, _SURELY_MOVED)
    return [column.name for column in columns[:SHOWN_COLUMNS] if column.spreads >= enough]


COLUMNS = (
    *("time", "kind", "block", "before", "moved", "duration", "onset_time", "step", "onset", "uncertainty"),
    *("evidence", "from_block", "to_block"),
)
"""Columns of the table. Times are seconds since 1970, ``duration`` is seconds until the next change of block."""


def events_table(memory: BlockMemory) -> dict[str, list[Any]]:
    """Return a list of values per column: one entry per event, oldest first."""
    lines = described_events(memory, memory.events_)
    return {name: [line[name] for line in lines] for name in COLUMNS}


def events_frame(memory: BlockMemory) -> Any:
    """Return the events as a pandas frame with dates, or as a dict of columns if pandas is not installed."""
    table = events_table(memory)
    try:
        import pandas as pd
    except ImportError:
        return table
    frame = pd.DataFrame(table, columns=list(COLUMNS))
    for name in ("time", "onset_time"):
        frame[name] = (1e6 * frame[name].to_numpy(np.float64)).astype("datetime64[us]")  # NaN becomes NaT
    frame["duration"] = pd.to_timedelta(frame["duration"].astype(np.float64), unit="s")
    return frame
