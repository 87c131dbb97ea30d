"""Scores of events against known changes: delay, missed changes, false alarms, correct recalls.

A change at step c is found by the first event at or after c, before the next change and within ``max_delay`` samples;
every further event until the next change is a false alarm. Where the task that begins is known, each block represents
the task at whose beginning it was made (the first block: for the task that the stream began with); a return to a task
that already has a block is right if the found event leads to a block that represents it.
"""

from __future__ import annotations

import bisect
import statistics
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ccmem.core.events import Event


class EventScore(NamedTuple):
    """Result of :func:`score_events`."""

    changes: int
    found: int
    missed: int
    false_alarms: int
    delays: tuple[int, ...]
    """Samples between each found change and its event."""
    returns: int | None
    """Changes back to a task that had been seen before (None if tasks are not known)."""
    right_recalls: int | None
    """Returns that led to a block of the right task."""
    onset_errors: tuple[int, ...] = ()
    """Samples by which each detected change's onset is too late (negative: too early)."""
    onsets_covered: int = 0
    """Detected changes that lie within the event's uncertainty of its onset."""

    @property
    def mean_delay(self) -> float | None:
        """Mean delay, or None without detections."""
        return statistics.fmean(self.delays) if self.delays else None

    @property
    def median_delay(self) -> float | None:
        """Median delay, or None without detections."""
        return statistics.median(self.delays) if self.delays else None

    @property
    def median_onset_error(self) -> float | None:
        """Median absolute onset error, or None without detections."""
        return statistics.median(map(abs, self.onset_errors)) if self.onset_errors else None


def score_events(
    events: Iterable[Event | dict[str, Any]],
    changes: Sequence[int],
    *,
    tasks: Sequence[Any] | None = None,
    max_delay: int | None = None,
) -> EventScore:
    """Score ``events`` (records, or lines of an events file) against known change points.

    Columns that are lost or back are no changes, and neither found nor false.
    ``tasks``, if given, names the task before the first change and after each: one more than ``changes``.

    >>> events = [Event("new_block", 105, 0, 1, 6), Event("recall", 203, 1, 0, 4), Event("new_block", 250, 0, 2, 6)]
    >>> score = score_events(events, changes=[100, 200, 300], tasks=["a", "b", "a", "b"])
    >>> score.found, score.missed, score.false_alarms, score.delays, score.returns, score.right_recalls
    (2, 1, 1, (5, 3), 2, 1)
    >>> score.onset_errors
    (0, 0)
    """
    records = [event if isinstance(event, Event) else _event(event) for event in events]
    records = [event for event in records if event.changes_block]
    steps = [event.step for event in records]
    if sorted(steps) != steps or sorted(set(changes)) != list(changes):
        raise ValueError("events and changes must be in the order of the stream, without repeated changes")
    if tasks is not None and len(tasks) != len(changes) + 1:
        raise ValueError(f"{len(changes)} changes lie between {len(changes) + 1} tasks; tasks has {len(tasks)}")
    names = list(range(len(changes) + 1)) if tasks is None else list(tasks)  # unknown tasks never return
    borders = [0, *(bisect.bisect_left(steps, change) for change in changes), len(steps)]
    block_task: dict[int, Any] = {0: names[0]}
    hits: list[tuple[int, Event]] = []
    seen: set[Any] = set()
    false_alarms = returns = right = 0
    for i, task in enumerate(names):
        here = records[borders[i] : borders[i + 1]]
        found = bool(i and here and (max_delay is None or here[0].step - changes[i - 1] <= max_delay))
        false_alarms += len(here) - found
        if found:
            hits.append((changes[i - 1], here[0]))
        if task in seen:
            returns += 1
            right += found and block_task.get(here[0].to_block) == task
        seen.add(task)
        block_task |= {event.to_block: task for event in here if event.kind == "new_block"}
    return EventScore(
        changes=len(changes),
        found=len(hits),
        missed=len(changes) - len(hits),
        false_alarms=false_alarms,
        delays=tuple(event.step - change for change, event in hits),
        returns=None if tasks is None else returns,
        right_recalls=None if tasks is None else right,
        onset_errors=tuple(event.onset - change for change, event in hits),
        onsets_covered=sum(abs(event.onset - change) <= event.uncertainty for change, event in hits),
    )


def _event(line: dict[str, Any]) -> Event:
    """Parse an event from a line of a file; older files lack the uncertainty."""
    return Event(**{name: line[name] for name in Event._fields if name in line or name not in Event._field_defaults})
