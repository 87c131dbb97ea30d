"""Events file: one line of JSON per event, consistent with the checkpoints."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from ccmem.io.persistence import CheckpointError
from ccmem.io.persistence.atomic import BusyError, file_to_write, lock

_TAIL = 4096
_BEGINNING = b'{"kind": "'
"""First bytes of every event line, used to recognise a truncated line."""


class EventsMark(NamedTuple):
    """Position in an events file up to which a checkpoint counts its lines."""

    path: str
    size: int
    tail: str
    """Digest of the last bytes before the position."""


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
        if size < mark.size or self._tail(mark.size) != mark.tail:
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
        self._file.seek(max(0, size - _TAIL))
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
        return EventsMark(self.path, size, self._tail(size))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _tail(self, size: int) -> str:
        start = max(0, size - _TAIL)
        self._file.seek(start)
        return hashlib.sha256(self._file.read(size - start)).hexdigest()


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
