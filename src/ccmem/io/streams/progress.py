"""Position reached in a file, and a digest that identifies the file later."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ccmem.io.streams.errors import SourceError

_PIECE = 4096
_PIECES = 32


class Progress(NamedTuple):
    """Position reached in a file, with the digest, size and time that identify the file later."""

    rows: int = 0
    complete: bool = False
    end: int | None = None
    """Number of leading bytes of the file that hold the rows."""
    size: int = 0
    """Size of the file in bytes when it was opened."""
    digest: str = ""
    """Digest of the bytes that hold the rows."""
    modified: int = 0
    """Modification time of the file when it was opened, in nanoseconds."""


def digest_of(file: BinaryIO, length: int) -> str:
    """Return a digest of the first ``length`` bytes of ``file``: all bytes up to 128 KiB, else evenly spaced pieces.

    The first and the last piece are always included. A change that moves the last row is always detected; a changed
    value in the middle of a large file that preserves all lengths may be missed.
    """
    digest = hashlib.sha256(str(length).encode())
    file.seek(0)
    head = _head_of(file.read(_PIECE), length)
    pieces = 1 if length <= _PIECE * _PIECES else _PIECES
    size = length if pieces == 1 else _PIECE
    for i in range(pieces):
        file.seek((length - size) * i // max(pieces - 1, 1))
        digest.update(file.read(size))
    return head + digest.hexdigest()


def _head_of(start: bytes, length: int) -> str:
    """Return the first part of a digest, over the first 4 KiB only, to compare many files cheaply."""
    return hashlib.sha256(start[:length]).hexdigest()[:16] + ":"


def covered(file: str, progress: Progress) -> int:
    """Return the number of leading bytes of ``file`` that the digest in its progress covers."""
    packed = file.lower().endswith(".gz")  # the end counts decompressed bytes
    return progress.size if packed or progress.end is None else progress.end


def renamed(files: Iterable[str], known: Mapping[str, Progress]) -> dict[str, str]:
    """Return a dictionary from new to previous name for files that were read before under another name.

    A file counts as renamed if it begins with the bytes read before, and the previous name is gone, holds other content
    or is a link to the same file. A copy beside the original is another file. Fewer than 4 KiB do not identify a file,
    because short files are often equal; short files must also have the same modification time.
    """
    found: dict[str, str] = {}
    candidates = {old: entry for old, entry in known.items() if entry.rows and entry.digest}
    for file in files if candidates else ():
        if not is_regular(file) or ((own := known.get(file)) is not None and _is_same(file, own)):
            continue
        status = os.stat(file)  # noqa: PTH116
        with open(file, "rb") as handle:  # noqa: PTH123
            start = handle.read(_PIECE)
        for old, entry in candidates.items():
            length = covered(old, entry)
            same_start = length <= status.st_size and entry.digest.startswith(_head_of(start, length))
            same_time = length >= _PIECE or entry.modified == status.st_mtime_ns
            if not (same_start and same_time and _is_same(file, entry)):
                continue
            if not (Path(old).is_file() and _is_same(old, entry)) or Path(file).samefile(old):
                found[file] = old
                del candidates[old]
                break
    return found


def begin(file: str, known: Progress | None) -> Progress | None:
    """Return the position at which to continue a file with progress ``known``; None if it has nothing new."""
    status = os.stat(file)  # noqa: PTH116
    size = status.st_size
    if known is not None:
        if not _is_same(file, known):
            raise SourceError(
                f"{file} is not the file of which {known.rows} rows were learned before: its beginning has changed; "
                "learn it from its first row (--again), or under another name"
            )
        if known.complete and size == known.size:
            return None
    if size == 0:
        return None
    return (known or Progress())._replace(complete=False, size=size, modified=status.st_mtime_ns)


def _is_same(file: str, known: Progress) -> bool:
    """True if ``file`` begins with the bytes that were read before."""
    if not known.digest:
        return True  # nothing was read
    length = covered(file, known)
    with open(file, "rb") as handle:  # noqa: PTH123
        return os.fstat(handle.fileno()).st_size >= length and digest_of(handle, length) == known.digest


def is_regular(file: str) -> bool:
    """True if ``file`` is a regular file and not a pipe or a device."""
    return file != "-" and stat.S_ISREG(os.stat(file).st_mode)  # noqa: PTH116
