"""How far a file has been read, and how to know it again."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ccmem.streams.tables import SourceError

_PIECE = 4096
_PIECES = 32
_HEAD = 4096
_VERSION = "2:"


class Progress(NamedTuple):
    """How far a file has been read, and how to know it again."""

    rows: int = 0
    complete: bool = False
    anchor: tuple[int, int] | None = None
    """So many rows, and so many bytes at the beginning of the file that hold them."""
    size: int = 0
    """Of the file, when it was opened."""
    digest: str = ""
    """Of the bytes that hold the rows."""


def digest_of(file: BinaryIO, length: int) -> str:
    """A digest of the first ``length`` bytes of ``file``: all of them up to 128 KiB, else pieces spread evenly.

    The first and the last piece are always among them. Whatever moves the last row is noticed; a value changed in the
    middle of a large file, with every length as it was, may not be.
    """
    digest = hashlib.sha256(str(length).encode())
    pieces = 1 if length <= _PIECE * _PIECES else _PIECES
    size = length if pieces == 1 else _PIECE
    for i in range(pieces):
        file.seek((length - size) * i // max(pieces - 1, 1))
        digest.update(file.read(size))
    return _VERSION + digest.hexdigest()


def covered(file: str, progress: Progress) -> int:
    """How many bytes at the beginning of ``file`` the digest of its progress is about."""
    packed = file.lower().endswith(".gz")  # the anchor counts what is in it
    return progress.size if packed or progress.anchor is None else progress.anchor[1]


def begin(file: str, known: Progress | None) -> Progress | None:
    """Where to begin in a file of which ``known`` was read before; None if there is nothing new in it."""
    size = Path(file).stat().st_size
    if known is not None:
        if not _is_same(file, size, known):
            raise SourceError(
                f"{file} is not the file of which {known.rows} rows were learned before: its beginning has changed; "
                "learn it from its first row (--again), or under another name"
            )
        if known.complete and size == known.size:
            return None
    if size == 0:
        return None
    return (known or Progress())._replace(complete=False, size=size)


def _is_same(file: str, size: int, known: Progress) -> bool:
    """Whether the bytes that were read still stand there."""
    if not known.digest:
        return True  # nothing was read
    with open(file, "rb") as handle:  # noqa: PTH123
        if known.digest.startswith(_VERSION):
            return size >= covered(file, known) and digest_of(handle, covered(file, known)) == known.digest
        head = handle.read(min(known.size, _HEAD))  # as version 0.1 knew files
        return size >= known.size and hashlib.sha256(head).hexdigest() == known.digest


def is_regular(file: str) -> bool:
    """Whether ``file`` is a file that stays, and not a pipe or a device."""
    return file != "-" and stat.S_ISREG(os.stat(file).st_mode)  # noqa: PTH116
