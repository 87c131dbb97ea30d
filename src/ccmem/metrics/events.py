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
    borders = [*(bisect.bisect_left(steps, change) for change in changes), len(steps)]
    block_task: dict[int, Any] = {0: tasks[0]} if tasks is not None else {}
    seen = {tasks[0]} if tasks is not None else set()
    delays: list[int] = []
    onset_errors: list[int] = []
    covered = 0
    false_alarms = borders[0]
    returns = right = 0
    for event in records[: borders[0]]:
        if tasks is not None and event.kind == "new_block":
            block_task[event.to_block] = tasks[0]
    for i, change in enumerate(changes):
        here = records[borders[i] : borders[i + 1]]
        hit = here[0] if here and (max_delay is None or here[0].step - change <= max_delay) else None
        false_alarms += len(here) - (hit is not None)
        if hit is not None:
            delays.append(hit.step - change)
            onset_errors.append(hit.onset - change)
            covered += abs(hit.onset - change) <= hit.uncertainty
        if tasks is not None:
            task = tasks[i + 1]
            if task in seen:
                returns += 1
                right += hit is not None and block_task.get(hit.to_block) == task
            seen.add(task)
            for event in here:
                if event.kind == "new_block":
                    block_task[event.to_block] = task
    return EventScore(
        len(changes),
        len(delays),
        len(changes) - len(delays),
        false_alarms,
        tuple(delays),
        returns if tasks is not None else None,
        right if tasks is not None else None,
        tuple(onset_errors),
        covered,
    )


def _event(line: dict[str, Any]) -> Event:
    """Parse an event from a line of a file; older files lack the uncertainty."""
    return Event(**{name: line[name] for name in Event._fields if name in line or name not in Event._field_defaults})
