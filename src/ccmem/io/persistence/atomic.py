"""Atomic file replacement, and a file lock that the operating system releases when its process ends."""

from __future__ import annotations

import contextlib
import errno
import glob
import itertools
import json
import os
import re
import socket
import stat
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_HOST = socket.gethostname().replace("/", "_")
_WRITER = re.compile(r"\.([0-9]+)-[0-9]+\.tmp$", re.ASCII)
"""Pattern for the end of a temporary file's name: id of the process that wrote the file, and a serial number."""
_LOCK_MARK = "locked by ccmem"
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP)
_numbers = itertools.count()
"""Serial numbers of temporary files, so that two threads never write to the same one."""


def atomic_write(
    path: str | os.PathLike[str],
    parts: Iterable[bytes | memoryview],
    verify: Callable[[Path], Any] = lambda temporary: None,
) -> None:
    """Write ``parts`` to ``path``: into a temporary file beside it, synced to disk, then renamed to ``path``.

    If ``verify`` raises an error for the temporary file, ``path`` keeps its previous content.
    """
    with atomic_file(path) as temporary:
        with temporary.open("wb") as file:
            for part in parts:
                file.write(part)
        verify(temporary)


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the name of a temporary file that replaces ``path`` if the block ends without an error."""
    target = file_to_write(path)
    _remove_abandoned(target)
    temporary = target.with_name(f".{target.name}.{_HOST}.{os.getpid()}-{next(_numbers)}.tmp")
    try:
        _create(temporary, target)
        yield temporary
        _sync(temporary, os.O_RDWR)  # the rename could otherwise reach the disk before the content
        if target.exists():
            temporary.chmod(target.stat().st_mode & 0o777)
        temporary.replace(target)
    except BaseException as problem:
        temporary.unlink(missing_ok=True)
        if isinstance(problem, OSError) and problem.errno is not None and problem.filename is None:
            problem.filename = str(target)  # "disk full" errors do not name the file
        raise
    if os.name == "posix":  # makes the rename survive a power cut; Windows cannot sync folders
        _sync(target.parent, os.O_RDONLY)


def _create(temporary: Path, target: Path) -> None:
    """Create a new temporary file, never through an existing link, readable by its owner alone if ``target`` exists."""
    temporary.unlink(missing_ok=True)  # left by an earlier process with the same id
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600 if target.exists() else 0o666))


def file_to_write(path: str | os.PathLike[str]) -> Path:
    """Return the target of ``path`` with links resolved; raise unless a file exists or can be created there."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; name a file")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} does not exist; create it first")
    if target.exists() and not target.is_file():
        raise ValueError(f"{target} is a pipe or a device, which a file cannot take the place of; name a file")
    return target


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Remove temporary files that killed processes left beside ``path``; the caller must hold the lock of ``path``."""
    target = Path(os.path.realpath(path))
    for left in target.parent.glob(f".{glob.escape(target.name)}.*.tmp"):
        if _WRITER.search(left.name):
            left.unlink(missing_ok=True)


def _remove_abandoned(target: Path) -> None:
    """Remove temporary files written by processes of this machine that no longer exist."""
    for left in target.parent.glob(f".{glob.escape(target.name)}.{glob.escape(_HOST)}.*.tmp"):
        writer = _WRITER.search(left.name)
        if writer and not _is_alive(int(writer[1])):
            with contextlib.suppress(OSError):
                left.unlink()


def _is_alive(process: int) -> bool:
    if sys.platform == "win32":
        return False  # Windows refuses to remove a file in use anyway
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _sync(path: Path, how: int) -> None:
    """Flush a file or a folder to the disk."""
    handle = os.open(path, how)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class BusyError(OSError):
    """Another process is using the same checkpoint."""


@contextlib.contextmanager
def locked(path: str | os.PathLike[str]) -> Iterator[str | None]:
    """Hold the lock of ``path``, or raise :class:`BusyError` naming the process that holds the lock.

    The operating system locks the file ``.<name>.ccmem-lock`` beside ``path`` and releases the lock when the process
    ends for any reason. A lock file without a lock is therefore stale: its text is yielded and the file is taken over.
    Links, pipes and files with any other content are refused and left unchanged.
    """
    target = file_to_write(path)
    name = lock_name(target)
    while True:
        handle = _open_lock(name)
        try:
            if not lock(handle):
                warnings.warn(
                    f"the file system of {target} has no locks; make sure that one process at a time writes to it",
                    stacklevel=3,
                )
        except OSError:
            holder = _read_holder(handle)
            os.close(handle)
            raise BusyError(
                f"{target} is in use by {holder or 'another process'}; wait for it to end, stop it, or name another "
                "checkpoint"
            ) from None
        try:
            current = name.lstat()
        except FileNotFoundError:
            current = None
        if current is not None and os.path.samestat(current, os.fstat(handle)):
            break
        os.close(handle)  # the holder removed the file between our open and our lock
    stale = _read_holder(handle)
    if stale is None and os.fstat(handle).st_size:
        os.close(handle)
        raise FileExistsError(f"{name} was not written by ccmem; move it away, or name another checkpoint")
    try:
        own = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
        os.ftruncate(handle, 0)
        os.lseek(handle, 0, os.SEEK_SET)
        os.write(handle, json.dumps({_LOCK_MARK: own}).encode())
        yield stale
    finally:
        with contextlib.suppress(OSError):
            name.unlink()
        os.close(handle)


def lock_name(path: Path) -> Path:
    """Return the lock file of ``path``, under a name that no other program uses."""
    return path.with_name(f".{path.name}.ccmem-lock")


def _open_lock(name: Path) -> int:
    """Open a lock file, which must be a regular file, without following links or blocking on a pipe."""
    how = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        handle = os.open(name, how, 0o666)
    except OSError as problem:
        what = {errno.ELOOP: "link", errno.EISDIR: "folder"}.get(problem.errno or 0)
        if what is None:
            raise
        raise FileExistsError(f"{name} is a {what}, which a lock must not be; remove it") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise FileExistsError(f"{name} is a pipe or a device, which a lock must not be; remove it")
    return handle


def lock(handle: int) -> bool:
    """Lock an open file, or raise OSError at once if another process has; return False if locks are unsupported."""
    if sys.platform == "win32":
        os.lseek(handle, 1 << 30, os.SEEK_SET)  # far beyond the text, which other processes must be able to read
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as problem:
        if problem.errno in _NO_LOCKS:
            return False
        raise
    return True


def _read_holder(handle: int) -> str | None:
    """Return a description of the process that wrote the lock file; None if the file is empty or not a ccmem lock."""
    os.lseek(handle, 0, os.SEEK_SET)
    try:
        holder = json.loads(os.read(handle, 4096))[_LOCK_MARK]
        return f"process {int(holder['pid'])} on {holder['host']} (since {holder['since']})"
    except (ValueError, TypeError, KeyError, OSError):
        return None


def write_whole(path: Path, content: bytes) -> None:
    """Replace the content of ``path`` atomically, creating its folder if necessary; a failure leaves nothing behind."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, [content])
    except OSError as problem:
        raise OSError(
            f"cannot write {path} ({problem.strerror or problem}); free some space or choose another folder"
        ) from problem
