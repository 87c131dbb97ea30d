"""Files of compiled kernels: optional, verified by a digest, in a folder that no other user can write to.

numba's file cache checks only the source file of a kernel, so editing a helper in another file can leave a stale
kernel, and the path of the source, so that each environment compiles again. Here the name of the cache folder is a
digest of the source file, of all package files that it imports and of the versions of Python, numpy, numba and
llvmlite; the index inside lists argument types, processor and its features. Any change selects another kernel, and all
environments of a user with the same versions share theirs.

The files are pickles, which can execute any code when they are loaded. A folder that belongs to another user, or that
others can write to, is therefore not used. A failure of the cache is never an error: kernels are compiled instead.
"""

from __future__ import annotations

import hashlib
import linecache
import os
import pickle
import shutil
import stat
import time
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import caching

from ccmem.core.cache import cache_folder
from ccmem.kernels.sources import source_digest

_KEEP_SECONDS = 30 * 24 * 3600
_DIGEST_BYTES = 32


@cache
def cache_root() -> Path | None:
    """Return the folder of compiled kernels, or None if there can be none; remove folders unused for a long time."""
    try:
        root = cache_folder("kernel")
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        if (why := _why_unsafe(root)) is not None:
            warn_once(f"{root} {why}, and compiled code is not loaded from such a folder: remove it")
            return None
        long_ago = time.time() - _KEEP_SECONDS
        for old in root.iterdir():
            if old.stat().st_mtime < long_ago:
                shutil.rmtree(old, ignore_errors=True)
        return root if os.access(root, os.W_OK) else None
    except (OSError, RuntimeError):  # RuntimeError: no home folder
        return None


def _why_unsafe(folder: Path) -> str | None:
    """Return the reason why other users could modify or replace ``folder``; None if they cannot."""
    if os.name != "posix":
        return None
    folder = folder.resolve()
    own = folder.stat()
    if own.st_uid != os.geteuid():
        return "belongs to another user"
    if own.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "can be written to by other users"
    for parent in folder.parents:
        status = parent.stat()
        if status.st_uid not in (0, os.geteuid()):
            return f"is inside {parent}, which belongs to another user"
        if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
            return f"is inside {parent}, which other users can write to"
    return None


@cache
def cache_of(source: str) -> Path | None:
    """Return the folder for kernels of a source file, named after a digest of its dependencies and compile options."""
    root, file = cache_root(), Path(source)
    if root is None or not file.is_file():  # defined in a notebook, for example
        return None
    try:
        checked = "-checked" if numba.config.BOUNDSCHECK else ""  # numba's cache does not distinguish the two
        folder = root / f"{file.stem}-{source_digest(file)}{checked}"
        folder.mkdir(mode=0o700, exist_ok=True)
        os.utime(folder)
        return folder
    except OSError:
        return None


def kept_source(name: str, source: str) -> str:
    """Write generated source, whose ``name`` ends with its digest, to the cache if there is one; return its file name.

    Tracebacks show the lines of the source, also without a file.
    """
    file, root = f"<{name}>", cache_root()
    if root is not None:
        folder = root / name.rpartition("_")[2]
        with suppress(OSError):
            folder.mkdir(exist_ok=True)
            os.utime(folder)
            if not (folder / "composed.py").is_file():
                part = folder / f"{os.getpid()}.part"
                part.write_text(source, encoding="utf-8")
                part.replace(folder / "composed.py")  # atomic: other processes may write the same file
            file = str(folder / "composed.py")
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    return file


@cache
def warn_once(problem: str) -> None:
    """Warn that kernels are not cached, once per process for each problem."""
    warnings.warn(
        f"{problem}, or name another folder (CCMEM_KERNEL_CACHE); until then every process compiles its kernels",
        stacklevel=2,
    )


class KernelFolder(caching._CacheLocator):  # type: ignore[misc]
    """Place of a kernel's cache files for numba, which does not depend on the place of the source."""

    def __init__(self, function: Any, folder: Path) -> None:
        self._line, self._folder = function.__code__.co_firstlineno, folder

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self._folder.name

    def get_disambiguator(self) -> str:
        return str(self._line)


class KernelFiles(caching.IndexDataCacheFile):  # type: ignore[misc]
    """numba's cache files, each verified by a digest, and each kernel stored with the key it was compiled for.

    A damaged file raises ValueError, because loading it could execute arbitrary code.
    """

    def load(self, key: Any) -> Any:
        """Return the data stored for ``key``, or None."""
        name = self._load_index().get(key)
        if name is None:
            return None
        try:
            stored, data = self._read(self._data_path(name))
        except FileNotFoundError:
            return None
        return data if stored == key else None  # a process killed between two writes leaves other data

    def discard(self) -> None:
        """Remove the files of this kernel, so that they are written again."""
        index = Path(self._index_path)
        for file in [index, *index.parent.glob(index.stem.replace("[", "[[]") + ".*.nbc")]:
            file.unlink(missing_ok=True)

    def save(self, key: Any, data: Any) -> None:
        """Store ``data`` for ``key``."""
        super().save(key, (key, data))

    def _load_index(self) -> dict[Any, str]:
        try:
            version, stamp, names = self._read(self._index_path)
        except FileNotFoundError:
            return {}
        return names if (version, stamp) == (self._version, self._source_stamp) else {}

    def _save_index(self, names: dict[Any, str]) -> None:
        with self._open_for_write(self._index_path) as file:
            file.write(self._dump((self._version, self._source_stamp, names)))

    def _dump(self, content: Any) -> bytes:
        data: bytes = super()._dump(content)
        return hashlib.sha256(data).digest() + data

    def _read(self, path: str) -> Any:
        data = Path(path).read_bytes()
        if hashlib.sha256(data[_DIGEST_BYTES:]).digest() != data[:_DIGEST_BYTES]:
            raise ValueError(f"{path} does not match its digest")
        return pickle.loads(data[_DIGEST_BYTES:])
