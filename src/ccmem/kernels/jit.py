"""How ccmem compiles: one decorator, a cache that cannot go stale, a word when compiling takes long.

numba's own file cache looks only at the file a kernel stands in, so that editing a helper elsewhere can leave a
stale kernel behind. Here the cache folder is named after the content of that file and of all that it imports from the
package: change one character there and the old folder is simply never looked at again.

Private parts of numba are used here and in :mod:`ccmem.kernels.lanes` only; pyproject.toml names the versions that have
them.
"""

from __future__ import annotations

import gc
import os
import pickle
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba import types
from numba.core import caching, compiler, event
from numba.core.codegen import JITCodeLibrary
from numba.core.registry import CPUDispatcher
from numba.core.runtime import rtsys

from ccmem._cache import cache_folder
from ccmem.kernels.sources import source_digest

Function = TypeVar("Function", bound=Callable[..., Any])

JIT_ENABLED = not numba.config.DISABLE_JIT
_SLOW_COMPILE_SECONDS = 1.0
_KEEP_SECONDS = 30 * 24 * 3600


@cache
def _cache_root() -> Path | None:
    """Where compiled kernels are kept, or None if nothing can be written; what is long out of use is removed."""
    try:
        root = cache_folder("kernel")
        root.mkdir(parents=True, exist_ok=True)
        long_ago = time.time() - _KEEP_SECONDS
        for old in root.iterdir():
            if old.stat().st_mtime < long_ago:
                shutil.rmtree(old, ignore_errors=True)
        return root if os.access(root, os.W_OK) else None
    except (OSError, RuntimeError):  # RuntimeError: no home folder
        return None


@cache
def _cache_of(source: str) -> Path | None:
    """The folder for kernels of a source file, named after the content of all it depends on, and how it is compiled."""
    root, file = _cache_root(), Path(source)
    if root is None or not file.is_file():  # typed into a notebook, say
        return None
    try:
        checked = "-checked" if numba.config.BOUNDSCHECK else ""  # numba's cache would take the one for the other
        folder = root / f"{file.stem}-{source_digest(file)}{checked}"
        folder.mkdir(exist_ok=True)
        os.utime(folder)
        return folder
    except OSError:
        return None


def kernel(function: Function) -> Function:
    """Compile ``function`` with numba: no Python inside, the interpreter lock released, IEEE float rules kept."""
    return _compiled(function, counts_references=True)


def kernel_in_place(function: Function) -> Function:
    """As :func:`kernel`, for what allocates nothing: no references to arrays are counted then.

    To count them, for a state of a dozen arrays that is handed from function to function, takes as long as several dot
    products.
    """
    return _compiled(function, counts_references=False)


def kernel_apart(function: Function) -> Function:
    """As :func:`kernel_in_place`, for arrays that share no memory, alone or in tuples.

    A loop over many of them then becomes vector instructions. Otherwise LLVM would have to compare every pair of them
    first, and gives up on more than a few.
    """
    return _compiled(function, counts_references=False, apart=True)


def _compiled(function: Function, counts_references: bool, apart: bool = False) -> Function:
    if not JIT_ENABLED:
        return function
    options = {"nopython": True, "boundscheck": None, "nogil": True, "error_model": "numpy", "_nrt": counts_references}
    return _Kernel(function, options, _ApartCompiler if apart else _PartCompiler)


class _Kernel(CPUDispatcher):  # type: ignore[misc]
    """A function that Python calls through a wrapper, from the cache, and other kernels as a part of themselves.

    numba would give every function that a kernel calls a wrapper, an optimisation and a cache file of its own. A part
    has none of them: it is optimised where it ends up. Neither is it compiled once more for every constant it is
    called with.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any], part_compiler: Any) -> None:
        whole = {**options, "no_cfunc_wrapper": True}
        super().__init__(function, targetoptions=whole, pipeline_class=_KernelCompiler)
        part = {**whole, "no_cpython_wrapper": True}
        self._part = CPUDispatcher(function, targetoptions=part, pipeline_class=part_compiler)
        self._cache_is_open = False

    def compile(self, signature: Any) -> Any:
        if not self._cache_is_open:
            self._cache_is_open = True
            self._open_cache()
        with _garbage_left_lying():
            return super().compile(signature)

    def _open_cache(self) -> None:
        folder = _cache_of(self.py_func.__code__.co_filename)
        if folder is None:
            return
        previous = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(folder)  # read once, while the cache is made
        try:
            self._cache = _KernelCache(self.py_func)
        finally:
            numba.config.CACHE_DIR = previous

    # What numba asks when it compiles a caller

    def get_call_template(self, arguments: Any, keywords: Any) -> Any:
        return self._part.get_call_template(tuple(map(types.unliteral, arguments)), keywords)

    def get_overload(self, signature: Any) -> Any:
        return self._part.get_overload(signature)


class _StoredKernel(caching.CompileResultCacheImpl):  # type: ignore[misc]
    """What numba keeps of a kernel, without what only errors raised inside of numba's own functions would need."""

    def reduce(self, result: Any) -> Any:
        *kept, environments = result._reduce()
        return *kept, tuple(one for one in environments if not one.globals["__name__"].startswith("numba."))

    def rebuild(self, target_context: Any, stored: Any) -> Any:
        if b"NRT_" in pickle.dumps(stored[0]):  # it allocates
            rtsys.initialize(target_context)
        return super().rebuild(target_context, stored)


class _KernelCache(caching.FunctionCache):  # type: ignore[misc]
    """numba's cache, without what numba loads first to be able to compile: that takes longer than all the rest."""

    _impl_class = _StoredKernel

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        with self._guard_against_spurious_io_errors():
            return self._load_overload(signature, target_context)


class _KernelLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code of a kernel with all its parts, each linked once."""

    def finalize(self) -> None:
        for library in self._linking_libraries:  # which grows meanwhile
            if isinstance(library, _PartLibrary):
                self._linking_libraries += [
                    part for part in library._linking_libraries if part not in self._linking_libraries
                ]
        super().finalize()


class _LeanLibrary(_KernelLibrary):
    """Likewise, of what counts no references: nothing is to be done before optimisation then."""

    def _optimize_final_module(self) -> None:
        optimise, options = self._codegen._module_pass_manager()
        optimise.run(self._final_module, options)


class _PartLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code that is only linked into kernels: neither optimised by itself nor made into machine code."""

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        self._raise_if_finalized()
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Only what raises errors or prints needs an environment; kernels do neither."""


class _KernelCompiler(compiler.Compiler):  # type: ignore[misc]
    """Compiles into a :class:`_KernelLibrary`, or a lean one."""

    def __init__(
        self, typing_context: Any, target_context: Any, library: Any, args: Any, result: Any, flags: Any, *rest: Any
    ) -> None:
        library = (_KernelLibrary if flags.nrt else _LeanLibrary)(target_context.codegen(), "kernel")
        library.enable_object_caching()
        super().__init__(typing_context, target_context, library, args, result, flags, *rest)


class _PartCompiler(compiler.Compiler):  # type: ignore[misc]
    """Compiles into a :class:`_PartLibrary`."""

    def __init__(self, typing_context: Any, target_context: Any, library: Any, *rest: Any) -> None:
        super().__init__(typing_context, target_context, _PartLibrary(target_context.codegen(), "part"), *rest)


class _ApartCompiler(_PartCompiler):
    """The same, the arguments of which share no memory."""

    def __init__(
        self, typing_context: Any, target_context: Any, library: Any, args: Any, result: Any, flags: Any, *rest: Any
    ) -> None:
        flags.noalias = True
        super().__init__(typing_context, target_context, library, args, result, flags, *rest)


@contextmanager
def _garbage_left_lying() -> Iterator[None]:
    """No garbage collection meanwhile: numba makes a great many objects, nearly all of which stay."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


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
        kept = "once per machine" if _cache_root() is not None else "every time: the kernel cache cannot be written"
        print(f"ccmem: compiling kernels for this processor ({kept}) ...", file=sys.stderr, flush=True)


if JIT_ENABLED:
    event.register("numba:compile", _SayWhenSlow())
