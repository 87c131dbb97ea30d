"""Events of a stream: a block began or came back, a column was lost or came back."""

from __future__ import annotations

from typing import Any, NamedTuple

from ccmem.core.codes import EVIDENCE_UNIT
from ccmem.core.times import format_time

BLOCK_KINDS = ("new_block", "recall")
EVENT_KINDS = (*BLOCK_KINDS, "column_lost", "column_back")
"""Kinds of events, in the order of their codes in :mod:`ccmem.core.codes`."""


class Event(NamedTuple):
    """A change in a stream: a block began or came back, or a column was lost or came back.

    >>> print(Event("recall", step=900, from_block=1, to_block=0, count=101, uncertainty=8))
    recall of block 0 at sample 900, from block 1 (since sample 800 ± 8)
    >>> print(Event("column_lost", step=900, from_block=1, to_block=1, count=201, uncertainty=20, column=3))
    column 3 lost at sample 900 (since sample 700 ± 20)
    >>> print(Event("new_block", 900, 0, 1, count=101, time=1423128240.0, onset_time=1423122240.0))
    new block 1 at 5 Feb 2015 09:24 (sample 900), from block 0 (since about 5 Feb 2015 07:44)
    """

    kind: str
    """``"new_block"`` or ``"recall"``; ``"column_lost"`` or ``"column_back"``, which change no block."""
    step: int
    """Index of the sample (from 0, since learning began) at which the memory detected the change."""
    from_block: int
    to_block: int
    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody needs here
    """Samples since the estimated onset, including this one."""
    uncertainty: int = 0
    """Half-width of the interval around ``onset``, in samples, for an abrupt change; a gradual change began earlier."""
    column: int = -1
    """Index of the lost or recovered column; -1 for changes of block."""
    evidence: float = 0.0
    """Evidence in multiples of the detection threshold, capped at 50; at least 0.5 for a return; 0 if the model reports
    none."""
    time: float | None = None
    """Time of the sample at which it was noticed, in seconds since 1970; None if the rows have no times."""
    onset_time: float | None = None
    """Time of ``onset``."""

    @property
    def changes_block(self) -> bool:
        """True if the current block changed, as for new blocks and recalls."""
        return self.kind in BLOCK_KINDS

    @property
    def onset(self) -> int:
        """Estimated first sample of the new regime."""
        return max(0, self.step - self.count + 1)

    def record(self) -> dict[str, Any]:
        """Return the fields as a dict for export; omits what does not apply."""
        absent = {"column"} if self.column < 0 else set()
        absent |= set() if self.evidence else {"evidence"}
        absent |= set() if self.time is not None else {"time"}
        absent |= set() if self.onset_time is not None else {"onset_time"}
        return {name: value for name, value in self._asdict().items() if name not in absent}

    def __repr__(self) -> str:
        return f"Event({', '.join(f'{name}={value!r}' for name, value in self.record().items())})"

    def __str__(self) -> str:
        place = f"sample {self.step:,}"
        since = f"sample {self.onset:,} ± {self.uncertainty:,}" if self.uncertainty else f"about sample {self.onset:,}"
        if self.time is not None:
            place = f"{format_time(self.time)} ({place})"
            since = since if self.onset_time is None else f"about {format_time(self.onset_time)}"
        if not self.changes_block:
            return f"column {self.column} {self.kind.removeprefix('column_')} at {place} (since {since})"
        what = "new block" if self.kind == "new_block" else "recall of block"
        return f"{what} {self.to_block} at {place}, from block {self.from_block} (since {since})"


def event_of(line: list[int]) -> Event:
    """Return the event of a journal line: kind, step, block left (or column), current block, remaining fields."""
    kind, step, origin, block, count, uncertainty, evidence = line
    if kind < len(BLOCK_KINDS):
        return Event(EVENT_KINDS[kind], step, origin, block, count, uncertainty, evidence=evidence / EVIDENCE_UNIT)
    return Event(EVENT_KINDS[kind], step, block, block, count, uncertainty, column=origin)


def line_of(event: Event) -> list[int]:
    """Return the journal line of an event, the inverse of :func:`event_of`."""
    origin = event.from_block if event.changes_block else event.column
    evidence = round(EVIDENCE_UNIT * event.evidence)
    kind = EVENT_KINDS.index(event.kind)
    return [kind, event.step, origin, event.to_block, event.count, event.uncertainty, evidence]
