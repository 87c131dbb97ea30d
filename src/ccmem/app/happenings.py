"""Events of a run described by file, row, time, block names and the columns that moved most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ccmem.core.colours import SIGNS
from ccmem.core.events import Event
from ccmem.core.times import format_duration, format_time
from ccmem.io.streams.tables import Chunk, Columns

SHOWN_COLUMNS = 3
"""Maximum number of moved columns that the description of an event names."""
LEAST_MOVED = 0.25
"""Smallest change that is named, in units of the largest, both in standard deviations of their columns."""


def place_of(event: Event, chunk: Chunk, first_step: int) -> dict[str, Any]:
    """Return the file and the row (counted from 1) of an event in a chunk whose first sample has ``first_step``."""
    place = max(0, event.step - first_step)  # a window reported late may have ended in an earlier chunk
    return {"file": chunk.file, "row": int(chunk.rows[place])}


def block_name(names: dict[int, str], block: int) -> str:
    """Return the name of a block, or its number in words."""
    return names.get(block, f"block {block}")


def event_record(event: Event, names: dict[int, str], columns: Columns | None) -> dict[str, Any]:
    """Return an event as a record for a file: its fields, block and column names, and its time as text."""
    record = {**event.record(), "onset": event.onset, "time": event.time, "onset_time": event.onset_time}
    record["block_name"] = block_name(names, event.to_block)
    if event.time is not None:
        record["when"] = format_time(event.time)
    if event.column >= 0 and columns is not None:
        record["column_name"] = columns.features[event.column]
    return record


def moved_columns(memory: Any, event: Event) -> list[str]:
    """Return the names of the columns that differ most between the block of ``event`` and the block before."""
    try:
        columns = memory.explain(event).columns
        least = LEAST_MOVED * columns[0].spreads
        return [column.name for column in columns[:SHOWN_COLUMNS] if column.spreads >= least]
    except (ValueError, LookupError):  # the block has been merged or removed since the event
        return []


def event_lines(memory: Any, events: Sequence[Event], last_time: float | None = None) -> list[str]:
    """Return one line per event: time, kind, block, duration and moved columns."""
    names = memory.block_names_
    turns = [event for event in events if event.changes_block]
    ends = dict(zip(turns, [*(turn.onset_time for turn in turns[1:]), last_time], strict=False))
    lines = []
    for event in events:
        _, sign, _, what = SIGNS[event.kind]
        when = format_time(event.time) if event.time is not None else f"row {event.step + 1:,}"
        moved = moved_columns(memory, event)
        if not event.changes_block:
            lines.append(f"  {when:<20} {sign} {what} {', '.join(moved[:1])}")
            continue
        block, before = (block_name(names, number) for number in (event.to_block, event.from_block))
        stop = ends.get(event)
        stayed = ""
        if stop is not None and event.onset_time is not None and stop >= event.onset_time:
            stayed = f"for {format_duration(stop - event.onset_time)}"
        what = f"{sign} {'new ' if event.kind == 'new_block' else 'back to '}{block}"
        if event.onset_time is None:
            stayed = f"since row {event.onset + 1:,} ± {event.uncertainty:,}"
        lines.append(f"  {when:<20} {what:<22} after {before:<12} {stayed:<24} {', '.join(moved)}".rstrip())
    return lines
