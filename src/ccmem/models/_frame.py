"""Events of a memory as a table with readable columns."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ccmem.models._blocks import BlockMemory

MOVED = 3
"""Number of columns listed as having moved most."""


def events_table(memory: BlockMemory) -> dict[str, list[Any]]:
    """Return a list of values per column: one entry per event, oldest first."""
    names, events = memory.block_names_, memory.events_
    turns = [event for event in events if event.changes_block]
    following = dict(pairwise(turns))
    lines: list[dict[str, Any]] = []
    for event in events:
        then = following.get(event)
        duration = None
        if then is not None and then.onset_time is not None and event.onset_time is not None:
            duration = then.onset_time - event.onset_time
        line = {
            **event.record(),
            "time": event.time,
            "onset_time": event.onset_time,
            "onset": event.onset,
            "block": names.get(event.to_block, f"block {event.to_block}"),
            "before": names.get(event.from_block, f"block {event.from_block}"),
            "duration": duration,
            "moved": ", ".join(change.name for change in memory.explain(event).columns[:MOVED]),
            "evidence": event.evidence or None,
        }
        lines.append(line)
    return {name: [line[name] for line in lines] for name in COLUMNS}


COLUMNS = (
    *("time", "kind", "block", "before", "moved", "duration", "onset_time", "step", "onset", "uncertainty"),
    *("evidence", "from_block", "to_block"),
)
"""Columns of the table. Times are seconds since 1970, ``duration`` is seconds until the next change of block."""


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
