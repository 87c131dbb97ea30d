"""Compilation of ccmem: one decorator, a cache that cannot become stale, and a notice when compiling is slow.

Private parts of numba are used only here and in the modules ``cache_files`` and ``lanes`` of
:mod:`ccmem.kernels`; pyproject.toml restricts numba to the versions that have them.
"""

from __future__ import annotations

import gc
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba import types
from numba.core import caching, compiler, event
from numba.core.codegen import JITCodeLibrary
from numba.core.registry import CPUDispatcher
from numba.core.runtime import rtsys

from ccmem.kernels.cache_files import KernelFiles, KernelFolder, cache_of, cache_root, warn_once

Function = TypeVar("Function", bound=Callable[..., Any])

JIT_ENABLED = not numba.config.DISABLE_JIT
_SLOW_COMPILE_SECONDS = 1.0


def kernel(function: Function) -> Function:
    """Compile ``function`` with numba in nopython mode, without the interpreter lock, with IEEE float rules."""
    return _compiled(function, counts_references=True)


def kernel_in_place(function: Function) -> Function:
    """Compile like :func:`kernel`, without reference counting, for functions that allocate nothing.

    Refcounting a dozen arrays on every call costs several dot products.
    """
    return _compiled(function, counts_references=False)


def kernel_apart(function: Function) -> Function:
    """Compile like :func:`kernel_in_place`, for arguments whose arrays (alone or in tuples) share no memory.

    LLVM can then vectorise a loop over many arrays. Otherwise it would have to emit an overlap check for every pair of
    arrays, and it gives up beyond a few.
    """
    return _compiled(function, counts_references=False, apart=True)


def kernel_inlined(function: Function) -> Function:
    """Compile like :func:`kernel_in_place`, and inline every call: for functions that take a state for each row.

    A call with a state of a dozen arrays passes more than a hundred numbers.
    """
    return _compiled(function, counts_references=False, inlined=True)


def checked_kernel(function: Function, allocates: bool = False) -> Function:
    """Compile like :func:`kernel_in_place` (or :func:`kernel` if it ``allocates``), with IndexError for a bad index."""
    return _compiled(function, counts_references=allocates, checked=True)


def _compiled(
    function: Function, counts_references: bool, apart: bool = False, checked: bool = False, inlined: bool = False
) -> Function:
    if not JIT_ENABLED:
        return function
    options: dict[str, Any] = {"nopython": True, "boundscheck": checked or None, "nogil": True, "error_model": "numpy"}
    options["_nrt"] = counts_references
    if inlined:
        options["forceinline"] = True
    return _Kernel(function, options, _ApartCompiler if apart else _PartCompiler)


class _Kernel(CPUDispatcher):  # type: ignore[misc]
    """Function with a Python wrapper and a cache file, which other kernels inline as a part.

    numba would give every function that a kernel calls a wrapper, a separate optimisation and a cache file. A part has
    none of these: it is optimised inside the calling kernel. It is also not recompiled for every constant argument.
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
        with _gc_paused():
            return super().compile(signature)

    def _open_cache(self) -> None:
        folder = cache_of(self.py_func.__code__.co_filename)
        if folder is None:
            return
        try:
            self._cache = _KernelCache(self.py_func, folder)
        except (OSError, RuntimeError) as problem:
            warn_once(f"kernels cannot be kept in {folder.parent} ({problem}): make room there")

    # Methods that numba calls when it compiles a caller

    def get_call_template(self, arguments: Any, keywords: Any) -> Any:
        return self._part.get_call_template(tuple(map(types.unliteral, arguments)), keywords)

    def get_overload(self, signature: Any) -> Any:
        return self._part.get_overload(signature)


class _StoredKernel(caching.CompileResultCacheImpl):  # type: ignore[misc]
    """Cached form of a kernel, without the environments that only errors inside numba's functions need."""

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        self._locator = KernelFolder(function, folder)
        self._filename_base = self.get_filename_base(f"{folder.name.split('-')[0]}.{function.__qualname__}", "")

    def reduce(self, result: Any) -> Any:
        *kept, environments = result._reduce()
        return *kept, tuple(one for one in environments if not one.globals["__name__"].startswith("numba."))

    def rebuild(self, target_context: Any, stored: Any) -> Any:
        if b"NRT_" in pickle.dumps(stored[0]):  # the kernel allocates
            rtsys.initialize(target_context)
        return super().rebuild(target_context, stored)


class _KernelCache(caching.FunctionCache):  # type: ignore[misc]
    """numba's cache without the eager loading of the compiler, which takes longer than loading a kernel."""

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        self._name, self._py_func = repr(function), function
        self._impl = _StoredKernel(function, folder)
        self._impl.locator.ensure_cache_path()
        self._cache_path = str(folder)
        self._cache_file = KernelFiles(self._cache_path, self._impl.filename_base, folder.name)
        self.enable()

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Return the stored kernel, or None; files that cannot be loaded, for any reason, are removed."""
        try:
            return self._load_overload(signature, target_context)
        except Exception:
            with suppress(OSError):
                self._cache_file.discard()
            return None

    def save_overload(self, signature: Any, data: Any) -> None:
        """Store a kernel; a failure such as a full disk only costs compile time in the next process."""
        try:
            self._save_overload(signature, data)
        except Exception as problem:
            self.disable()
            warn_once(f"kernels cannot be kept in {cache_root()} ({problem}): make room there")


class _KernelLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code of a kernel with all its parts, each linked once."""

    def finalize(self) -> None:
        for library in self._linking_libraries:  # the list grows during the loop
            if isinstance(library, _PartLibrary):
                self._linking_libraries += [
                    part for part in library._linking_libraries if part not in self._linking_libraries
                ]
        super().finalize()


class _LeanLibrary(_KernelLibrary):
    """Code of a kernel without reference counting, which needs no passes before optimisation."""

    def _optimize_final_module(self) -> None:
        optimise, options = self._codegen._module_pass_manager()
        optimise.run(self._final_module, options)


class _PartLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code that is only linked into kernels: neither optimised separately nor compiled to machine code."""

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
        """Do nothing: only code that raises errors or prints needs an environment, and kernels do neither."""


class _KernelCompiler(compiler.Compiler):  # type: ignore[misc]
    """Compiler that produces a :class:`_KernelLibrary`, or a :class:`_LeanLibrary` without reference counting."""

    def __init__(
        self, typing_context: Any, target_context: Any, library: Any, args: Any, result: Any, flags: Any, *rest: Any
    ) -> None:
        library = (_KernelLibrary if flags.nrt else _LeanLibrary)(target_context.codegen(), "kernel")
        library.enable_object_caching()
        super().__init__(typing_context, target_context, library, args, result, flags, *rest)


class _PartCompiler(compiler.Compiler):  # type: ignore[misc]
    """Compiler that produces a :class:`_PartLibrary`."""

    def __init__(self, typing_context: Any, target_context: Any, library: Any, *rest: Any) -> None:
        super().__init__(typing_context, target_context, _PartLibrary(target_context.codegen(), "part"), *rest)


class _ApartCompiler(_PartCompiler):
    """Compiler of parts whose arguments share no memory."""

    def __init__(
        self, typing_context: Any, target_context: Any, library: Any, args: Any, result: Any, flags: Any, *rest: Any
    ) -> None:
        flags.noalias = True
        super().__init__(typing_context, target_context, library, args, result, flags, *rest)


@contextmanager
def _gc_paused() -> Iterator[None]:
    """Pause garbage collection: numba creates a great many objects, and nearly all of them stay alive."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def compiled_for(function: Function, *arguments: Any) -> Function:
    """Return the machine code of a kernel for arguments of exactly these types, without type dispatch on each call.

    For a state of a dozen arrays, type dispatch takes longer than learning a sample. A plain function is returned as it
    is.
    """
    return function.compile(tuple(map(numba.typeof, arguments))) if isinstance(function, CPUDispatcher) else function


def in_python(function: Function) -> Function:
    """Return the Python function of a kernel: for scalars, once per decision, where compiling would take longer."""
    return getattr(function, "py_func", function)


def _count_functions(function: Callable[..., Any]) -> int:
    """Return the number of functions that a kernel is compiled from: itself and the parts it may call."""
    found, waiting = {function}, [function]
    while waiting:
        caller = waiting.pop()
        named = [caller.__globals__.get(name) for name in caller.__code__.co_names]
        new = {part.py_func for part in named if isinstance(part, _Kernel)} - found
        found |= new
        waiting += new
    return len(found)


class _Progress(event.Listener):  # type: ignore[misc]
    """Listener that reports a slow compilation: its progress on a terminal, elsewhere one line per process."""

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None
        self._depth = self._done = self._all = 0
        self._began = 0.0
        self._said = False

    def on_start(self, event: Any) -> None:
        function = event.data["dispatcher"].py_func
        if not (function.__module__ or "").startswith("ccmem."):
            return
        self._depth += 1
        if self._depth == 1:
            self._done, self._all, self._began = 0, _count_functions(function), time.monotonic()
            if not self._said:
                self._timer = threading.Timer(_SLOW_COMPILE_SECONDS, self._say)
                self._timer.daemon = True
                self._timer.start()
        if sys.stderr.isatty() and time.monotonic() - self._began > _SLOW_COMPILE_SECONDS:
            text = f"compiling kernels ({_how_often()}): {self._done} of {self._all} functions, now {function.__name__}"
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()

    def on_end(self, event: Any) -> None:
        if not self._depth or not (event.data["dispatcher"].py_func.__module__ or "").startswith("ccmem."):
            return
        self._depth -= 1
        self._done += 1
        if self._depth == 0:
            if self._timer is not None:
                self._timer.cancel()
            if sys.stderr.isatty() and time.monotonic() - self._began > _SLOW_COMPILE_SECONDS:
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()

    def _say(self) -> None:
        if not sys.stderr.isatty():
            self._said = True
            print(f"ccmem: compiling kernels for this processor ({_how_often()}) ...", file=sys.stderr, flush=True)


def _how_often() -> str:
    return "once per machine" if cache_root() is not None else "every time: the kernel cache cannot be written"


if JIT_ENABLED:
    event.register("numba:compile", _Progress())
