"""Events of a run: described by file, row, time and columns; kept in a file; passed on to a user's command."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from ccmem.core.colours import SIGNS
from ccmem.core.events import Event
from ccmem.core.times import format_duration, format_time
from ccmem.io.persistence import CheckpointError
from ccmem.io.persistence.atomic import BusyError, file_to_write, lock
from ccmem.io.streams.progress import digest_of
from ccmem.io.streams.tables import Chunk
from ccmem.models._frame import described_events

LEAST_MOVED = 0.25
"""Smallest change of a column that a run names, in units of the largest, in standard deviations of their columns."""
PATIENCE = 60.0
"""Timeout of an alert command, in seconds; a hanging command must not block later alerts."""
_LONGEST = 4096
"""Bytes at the end of an events file in which its last line is looked for."""
_BEGINNING = b'{"kind": "'
"""First bytes of every event line, used to recognise a truncated line."""


def place_of(event: Event, chunk: Chunk, first_step: int) -> dict[str, Any]:
    """Return the file and the row (counted from 1) of an event in a chunk whose first sample has ``first_step``."""
    place = max(0, event.step - first_step)  # a window reported late may have ended in an earlier chunk
    return {"file": chunk.file, "row": int(chunk.rows[place])}


def event_record(event: Event, names: dict[int, str], columns: Sequence[str] | None) -> dict[str, Any]:
    """Return an event as a record for a file: its fields, block and column names, and its time as text."""
    record = {**event.record(), "onset": event.onset, "time": event.time, "onset_time": event.onset_time}
    record["block_name"] = names.get(event.to_block, f"block {event.to_block}")
    if event.time is not None:
        record["when"] = format_time(event.time)
    if event.column >= 0 and columns is not None:
        record["column_name"] = str(columns[event.column])
    return record


def event_lines(memory: Any, events: Sequence[Event], last_time: float | None = None) -> list[str]:
    """Return one line per event: time, kind, block, duration and moved columns."""
    lines = []
    for event, facts in zip(events, described_events(memory, events, last_time, LEAST_MOVED), strict=True):
        _, sign, _, what = SIGNS[event.kind]
        when = format_time(event.time) if event.time is not None else f"row {event.step + 1:,}"
        moved = facts["moved"]
        if not event.changes_block:
            lines.append(f"  {when:<20} {sign} {what} {moved}")
            continue
        stayed = "" if facts["duration"] is None else f"for {format_duration(facts['duration'])}"
        if event.onset_time is None:
            stayed = f"since row {event.onset + 1:,} ± {event.uncertainty:,}"
        what = f"{sign} {'new ' if event.kind == 'new_block' else 'back to '}{facts['block']}"
        lines.append(f"  {when:<20} {what:<22} after {facts['before']:<12} {stayed:<24} {moved}".rstrip())
    return lines


class EventsMark(NamedTuple):
    """Position in an events file up to which a checkpoint counts its lines."""

    path: str
    size: int
    digest: str
    """Digest of the bytes before the position."""


class EventsFile:
    """Events as lines of JSON, appended immediately and kept consistent with the checkpoints.

    A line is on disk before the checkpoint that counts it. When learning resumes from a checkpoint, lines that the
    checkpoint does not count are cut off, because the same rows produce the same events again. Every line names its
    checkpoint relative to the folder of the events file: an events file belongs to one checkpoint. Lines written by
    other programs are never cut off: they are kept, or the file is refused if they lie between lines to be cut off.
    """

    def __init__(self, path: str | os.PathLike[str], mark: EventsMark | None, checkpoint: str | None = None) -> None:
        self.path = os.fspath(file_to_write(path))
        self.owner = None if checkpoint is None else _seen_from(self.path, checkpoint)
        self._file = open(self.path, "a+b")  # noqa: SIM115, PTH123
        try:
            self._lock(path)
            if mark is not None and os.path.realpath(mark.path) == self.path:
                self._go_on(path, mark)
            self._check_owner(path)
        except BaseException:
            self._file.close()
            raise

    def _lock(self, path: Any) -> None:
        try:
            lock(self._file.fileno())
        except OSError as problem:
            raise BusyError(f"{path} is being written to by another process; name another (--events)") from problem

    def _go_on(self, path: Any, mark: EventsMark) -> None:
        """Cut off the lines after ``mark``."""
        size = os.fstat(self._file.fileno()).st_size
        if size < mark.size or digest_of(self._file, mark.size) != mark.digest:
            raise CheckpointError(
                f"{path} is not the events file that this checkpoint was writing: it has been changed; move it away, "
                "or name another (--events)"
            )
        self._file.seek(mark.size)
        ours, others = 0, 0
        for line in self._file:
            owner = _owner(line)
            if owner is not None and owner != self.owner:
                raise CheckpointError(
                    f"{path} holds events of another checkpoint since this one wrote to it; name another (--events)"
                )
            cut_off = not line.endswith(b"\n") and line.startswith(_BEGINNING[: len(line)])
            ours, others = (ours + 1, others) if owner is not None or cut_off else (ours, others + 1)
        if ours and others:
            raise CheckpointError(
                f"{path} holds {others} lines that ccmem did not write among events that would be written again; "
                "move them or the file away, or name another (--events)"
            )
        if ours:
            self._file.truncate(mark.size)
        elif others and not line.endswith(b"\n"):
            self._file.write(b"\n")

    def _check_owner(self, path: Any) -> None:
        size = self._file.seek(0, os.SEEK_END)
        self._file.seek(max(0, size - _LONGEST))
        last = self._file.read().rstrip(b"\n").rpartition(b"\n")[2]
        owner = _owner(last)
        if size and owner is not None and owner != self.owner:
            raise CheckpointError(f"{path} holds the events of {owner}; move it away, or name another (--events)")
        self._file.seek(0, os.SEEK_END)

    def write(self, record: dict[str, Any]) -> None:
        """Append a line."""
        self._file.write(json.dumps({**record, "checkpoint": self.owner}).encode() + b"\n")
        self._file.flush()

    def mark(self) -> EventsMark:
        """Sync all lines to disk and return the position after them."""
        self._file.flush()
        os.fsync(self._file.fileno())
        size = self._file.seek(0, os.SEEK_END)
        return EventsMark(self.path, size, digest_of(self._file, size))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _seen_from(file: str, checkpoint: str) -> str:
    target = os.path.realpath(checkpoint)
    try:
        return Path(os.path.relpath(target, os.path.dirname(file))).as_posix()  # noqa: PTH120
    except ValueError:  # no relative path exists between two Windows drives
        return target


def _owner(line: bytes) -> str | None:
    """Return the checkpoint that a line names; None if the line is incomplete or names none."""
    try:
        record = json.loads(line)
        return record.get("checkpoint") if isinstance(record, dict) else None
    except (ValueError, RecursionError):
        return None


class Alerts:
    """Runner of a command per event, one after the other: no shell, text as last argument, JSON on standard input."""

    def __init__(self, command: str) -> None:
        try:
            self._words = shlex.split(command)
        except ValueError as problem:
            raise ValueError(f"--alert {command}: {problem}") from problem
        if not self._words:
            raise ValueError("--alert names no command")
        self.failed = 0
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="ccmem-alerts")

    def send(self, text: str, record: dict[str, Any]) -> None:
        """Queue an event."""
        self._pool.submit(self._run, text, record)

    def close(self) -> None:
        """Wait until the commands of all queued events have ended."""
        self._pool.shutdown()

    def _run(self, text: str, record: dict[str, Any]) -> None:
        problem, command = "", [*self._words, text]
        try:
            ended = subprocess.run(command, input=json.dumps(record), text=True, timeout=PATIENCE, check=False)
            problem = f"it ended with {ended.returncode}" if ended.returncode else ""
        except (OSError, subprocess.SubprocessError, ValueError) as raised:
            problem = str(raised)
        if problem:
            self.failed += 1
            if self.failed == 1:
                print(f"ccmem learn: --alert {self._words[0]}: {problem}", file=sys.stderr, flush=True)
