"""How ccmem compiles: one decorator, a cache that cannot go stale, a word when compiling takes long.

numba's own file cache looks only at the file a kernel stands in, so that editing a helper elsewhere can leave a
stale kernel behind. Here the cache folder is named after the content of every source file of the package: change
one character anywhere and the old folder is simply never looked at again.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import event

Function = TypeVar("Function", bound=Callable[..., Any])

JIT_ENABLED = not numba.config.DISABLE_JIT
_PACKAGE = Path(__file__).parents[1]
_SLOW_COMPILE_SECONDS = 1.0
_KEEP_SECONDS = 30 * 24 * 3600


def source_digest() -> str:
    """Name of this exact source tree (and numba version), as 16 hexadecimal digits."""
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(_PACKAGE.rglob("*.py")):
        digest.update(path.relative_to(_PACKAGE).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def cache_folder() -> Path:
    """Where compiled kernels are kept: ``CCMEM_KERNEL_CACHE``, or the user's cache folder."""
    chosen = os.environ.get("CCMEM_KERNEL_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or (os.environ.get("LOCALAPPDATA") if sys.platform == "win32" else None)
    return (Path(base) if base else Path.home() / ".cache") / "ccmem" / "kernels"


def _open_cache() -> Path | None:
    """The folder for this source tree, or None when nothing can be written; folders long out of use are removed."""
    try:
        root = cache_folder()
        folder = root / source_digest()
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        if not os.access(folder, os.W_OK):
            return None
        long_ago = time.time() - _KEEP_SECONDS
        for old in root.iterdir():
            if old.stat().st_mtime < long_ago:
                shutil.rmtree(old, ignore_errors=True)
        return folder
    except (OSError, RuntimeError):  # RuntimeError: no home folder
        return None


_CACHE = _open_cache() if JIT_ENABLED else None


def kernel(function: Function) -> Function:
    """Compile ``function`` with numba: no Python inside, the interpreter lock released, IEEE float rules kept."""
    return _compiled(function, counts_references=True)


def kernel_in_place(function: Function) -> Function:
    """As :func:`kernel`, for what allocates nothing: no references to arrays are counted then.

    To count them, for a state of a dozen arrays that is handed from function to function, takes as long as several dot
    products.
    """
    return _compiled(function, counts_references=False)


def _compiled(function: Function, counts_references: bool) -> Function:
    options = {"nogil": True, "error_model": "numpy", "_nrt": counts_references}
    if _CACHE is None:
        return numba.njit(**options)(function)
    previous = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(_CACHE)  # read once, while the decorator makes the kernel's cache
    try:
        return numba.njit(cache=True, **options)(function)
    finally:
        numba.config.CACHE_DIR = previous


def compiled_for(function: Function, *arguments: Any) -> Function:
    """The machine code of a kernel for arguments of just these types, which it does not look at again.

    For a state of a dozen arrays that look takes longer than learning a sample does.
    """
    return function.compile(tuple(map(numba.typeof, arguments))) if JIT_ENABLED else function  # type: ignore[attr-defined]


class _SayWhenSlow(event.Listener):  # type: ignore[misc]
    """Tells a waiting person, once a process, that a compile and not the data is what takes time."""

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None
        self._depth = 0
        self._said = False

    def on_start(self, event: Any) -> None:
        function = event.data["dispatcher"].py_func
        if self._said or not (function.__module__ or "").startswith("ccmem."):
            return
        self._depth += 1
        if self._depth == 1:
            self._timer = threading.Timer(_SLOW_COMPILE_SECONDS, self._say)
            self._timer.daemon = True
            self._timer.start()

    def on_end(self, event: Any) -> None:
        if self._depth and (event.data["dispatcher"].py_func.__module__ or "").startswith("ccmem."):
            self._depth -= 1
            if self._depth == 0 and self._timer is not None:
                self._timer.cancel()

    def _say(self) -> None:
        self._said = True
        kept = "once per machine" if _CACHE is not None else "every time: the kernel cache cannot be written"
        print(f"ccmem: compiling kernels for this processor ({kept}) ...", file=sys.stderr, flush=True)


if JIT_ENABLED:
    event.register("numba:compile", _SayWhenSlow())
