"""The events file: a line of JSON per event, in step with the checkpoints."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any, NamedTuple

from ccmem.persistence import CheckpointError

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
    on from the last one, because the same events will come again.
    """

    def __init__(self, path: str | os.PathLike[str], mark: EventsMark | None) -> None:
        self.path = os.path.abspath(path)  # noqa: PTH100
        self._file = open(self.path, "a+b")  # noqa: SIM115, PTH123
        if mark is not None and mark.path == self.path:
            size = os.fstat(self._file.fileno()).st_size
            if size < mark.size or self._tail(mark.size) != mark.tail:
                self._file.close()
                raise CheckpointError(
                    f"{path} is not the events file that this checkpoint was writing: it has been changed; move it "
                    "away, or name another (--events)"
                )
            self._file.truncate(mark.size)
        self._file.seek(0, os.SEEK_END)

    def write(self, record: dict[str, Any]) -> None:
        """Append a line."""
        self._file.write(json.dumps(record).encode() + b"\n")
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
