"""The events file: a line of JSON per event, in step with the checkpoints."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from ccmem.persistence import CheckpointError
from ccmem.persistence.atomic import BusyError, file_to_write, lock

_TAIL = 4096


class EventsMark(NamedTuple):
    """How far an events file had been written when a checkpoint was."""

    path: str
    size: int
    tail: str
    """Digest of the bytes before that place."""


class EventsFile:
    """Events as lines of JSON, appended at once, in step with the checkpoints.

    A line is on disk before a checkpoint that counts it; lines that no checkpoint counts are cut off when learning goes
    on from the last one, because the same events will come again. Every line names its checkpoint, as seen from the
    file's folder: a file belongs to one checkpoint, and lines of another are never cut off.
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
        """Cut off what came after ``mark``."""
        size = os.fstat(self._file.fileno()).st_size
        if size < mark.size or self._tail(mark.size) != mark.tail:
            raise CheckpointError(
                f"{path} is not the events file that this checkpoint was writing: it has been changed; move it away, "
                "or name another (--events)"
            )
        self._file.seek(mark.size)
        if any(_owner(line, self.owner) != self.owner for line in self._file):
            raise CheckpointError(
                f"{path} holds events of another checkpoint since this one wrote to it; name another (--events)"
            )
        self._file.truncate(mark.size)

    def _check_owner(self, path: Any) -> None:
        size = self._file.seek(0, os.SEEK_END)
        self._file.seek(max(0, size - _TAIL))
        last = self._file.read().rstrip(b"\n").rpartition(b"\n")[2]
        owner = _owner(last, self.owner)
        if size and owner is not None and owner != self.owner:
            raise CheckpointError(f"{path} holds the events of {owner}; move it away, or name another (--events)")
        self._file.seek(0, os.SEEK_END)

    def write(self, record: dict[str, Any]) -> None:
        """Append a line."""
        self._file.write(json.dumps({**record, "checkpoint": self.owner}).encode() + b"\n")
        self._file.flush()

    def mark(self) -> EventsMark:
        """Bring all lines to the disk and say how far they reach."""
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
    except ValueError:  # another drive
        return target


def _owner(line: bytes, otherwise: str | None) -> str | None:
    """Which checkpoint wrote a line; ``otherwise`` for half a line, and for lines that do not tell."""
    try:
        record = json.loads(line)
        return record.get("checkpoint", otherwise) if isinstance(record, dict) else otherwise
    except (ValueError, RecursionError):
        return otherwise
