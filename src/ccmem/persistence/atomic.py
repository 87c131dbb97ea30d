"""Files that are whole or absent, and a lock that dies with its process."""

from __future__ import annotations

import contextlib
import glob
import itertools
import json
import os
import socket
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_HOST = socket.gethostname().replace("/", "_")
_numbers = itertools.count()
"""So that two threads never write to the same temporary file."""


def atomic_write(path: str | os.PathLike[str], parts: Iterable[bytes | memoryview]) -> None:
    """Write ``parts`` to ``path``: to a temporary file beside it, to the disk, and only then under its name."""
    with atomic_file(path) as temporary, temporary.open("wb") as file:
        for part in parts:
            file.write(part)


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """The name of a temporary file that takes the place of ``path`` if the block ends without an error."""
    target = file_to_write(path)
    _remove_abandoned(target)
    temporary = target.with_name(f".{target.name}.{_HOST}.{os.getpid()}-{next(_numbers)}.tmp")
    try:
        _create(temporary, target)
        yield temporary
        _sync(temporary, os.O_RDWR)  # a rename may reach the disk before what the file holds
        if target.exists():
            temporary.chmod(target.stat().st_mode & 0o777)
        temporary.replace(target)
    except BaseException as problem:
        temporary.unlink(missing_ok=True)
        if isinstance(problem, OSError) and problem.errno is not None and problem.filename is None:
            problem.filename = str(target)  # a disk that is full does not say what it was asked to hold
        raise
    if os.name == "posix":  # so that the rename survives a power cut; Windows cannot sync folders
        _sync(target.parent, os.O_RDONLY)


def _create(temporary: Path, target: Path) -> None:
    """Make a temporary file anew, never through a link that someone put there, and private if ``target`` may be."""
    temporary.unlink(missing_ok=True)  # of a process that had our number
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600 if target.exists() else 0o666))


def file_to_write(path: str | os.PathLike[str]) -> Path:
    """Where ``path`` leads (a link stays a link); raises unless a file is there or can be made there."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; name a file")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} does not exist; create it first")
    if target.exists() and not target.is_file():
        raise ValueError(f"{target} is a pipe or a device, which a file cannot take the place of; name a file")
    return target


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Remove temporary files that killed processes left beside ``path``; the caller holds its lock."""
    target = Path(os.path.realpath(path))
    for left in target.parent.glob(f".{glob.escape(target.name)}.*.tmp"):
        left.unlink(missing_ok=True)


def _remove_abandoned(target: Path) -> None:
    """Remove temporary files of this machine's processes that are no more."""
    for left in target.parent.glob(f".{glob.escape(target.name)}.{glob.escape(_HOST)}.*.tmp"):
        number = left.name.removesuffix(".tmp").rpartition(".")[2].partition("-")[0]
        if number.isdigit() and not _is_alive(int(number)):
            with contextlib.suppress(OSError):
                left.unlink()


def _is_alive(process: int) -> bool:
    if sys.platform == "win32":
        return False  # a file that is in use cannot be removed there anyway
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _sync(path: Path, how: int) -> None:
    """Bring a file or a folder to the disk."""
    handle = os.open(path, how)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class BusyError(OSError):
    """Another process works on the same checkpoint."""


@contextlib.contextmanager
def locked(path: str | os.PathLike[str]) -> Iterator[str | None]:
    """Hold the lock of ``path``, or raise :class:`BusyError` naming who does.

    The lock is the operating system's, on ``<path>.lock``: it ends with the process that holds it, however that ends.
    A file that a killed process left behind is therefore known to be stale: its text is yielded, and it is taken over.
    """
    target = file_to_write(path)
    name = target.with_name(target.name + ".lock")
    while True:
        handle = os.open(name, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            lock(handle)
        except OSError:
            holder = _read_holder(handle)
            os.close(handle)
            raise BusyError(
                f"{target} is in use by {holder or 'another process'}; wait for it to end, stop it, or name another "
                "checkpoint"
            ) from None
        try:
            current = name.stat()
        except FileNotFoundError:
            current = None
        if current is not None and os.path.samestat(current, os.fstat(handle)):
            break
        os.close(handle)  # its holder removed the file between our opening and locking it
    try:
        stale = _read_holder(handle)
        own = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
        os.ftruncate(handle, 0)
        os.lseek(handle, 0, os.SEEK_SET)
        os.write(handle, json.dumps(own).encode())
        yield stale
    finally:
        with contextlib.suppress(OSError):
            name.unlink()
        os.close(handle)


def lock(handle: int) -> None:
    """Lock an open file for this process, or raise OSError at once if another has."""
    if sys.platform == "win32":
        os.lseek(handle, 1 << 30, os.SEEK_SET)  # far behind the text, which others must be able to read
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    else:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _read_holder(handle: int) -> str | None:
    """Who wrote the lock file, in words."""
    os.lseek(handle, 0, os.SEEK_SET)
    try:
        holder = json.loads(os.read(handle, 1000))
        return f"process {int(holder['pid'])} on {holder['host']} (since {holder['since']})"
    except (ValueError, TypeError, KeyError, OSError):
        return None


def write_whole(path: Path, content: bytes) -> None:
    """Put ``content`` in the place of ``path``, making its folder if need be; on failure nothing is left behind."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, [content])
    except OSError as problem:
        raise OSError(
            f"cannot write {path} ({problem.strerror or problem}); free some space or choose another folder"
        ) from problem
