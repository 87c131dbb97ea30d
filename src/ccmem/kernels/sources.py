"""Source dependencies of a module: its file and every file of the package that it imports, transitively."""

from __future__ import annotations

import hashlib
import marshal
import re
import sys
import types
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np

_VERSIONS = sys.version, np.__version__, numba.__version__, llvmlite.__version__
_PACKAGE = Path(__file__).parents[1]
_IMPORT = re.compile(r"^(?:from (ccmem[\w.]*) import (\([^)]*\)|.*)|import (ccmem[\w.]*))", re.MULTILINE)


def source_digest(*places: str | Path) -> str:
    """Return a digest of the source of these modules or files and their imports, as 16 hexadecimal digits."""
    digest = hashlib.sha256(repr(_VERSIONS).encode())
    for file in source_files(*places):
        digest.update(file.name.encode() + b"\0" + _content(file))
    return digest.hexdigest()[:16]


def source_files(*places: str | Path) -> list[Path]:
    """Return the files of these modules and of their imports.

    Imports inside functions do not count: they do not affect results.
    """
    files: set[Path] = set()
    found = [place if isinstance(place, Path) else _file_of(place) for place in places]
    while found:
        file = found.pop()
        if file is not None and file not in files:
            files.add(file)
            found.extend(_imported_by(file))
    return sorted(files)


@cache
def _content(file: Path) -> bytes:
    return file.read_bytes()


def _imported_by(file: Path) -> Iterator[Path | None]:
    for module, names, plain in _IMPORT.findall(_content(file).decode()):
        if plain:
            yield _file_of(plain)
            continue
        for name in re.findall(r"\w+", re.sub(r"#.*| as \w+", "", names)):
            yield _file_of(f"{module}.{name}") or _file_of(module)


@cache
def _file_of(module: str) -> Path | None:
    """Return the file of a module of the package, or None if the name is not a module."""
    path = _PACKAGE.joinpath(*module.split(".")[1:])
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return file
    return None


def function_digest(*functions: Any, options: tuple[Any, ...] = ()) -> str:
    """Return a digest of everything that these functions are compiled from, wherever it is defined."""
    digest = hashlib.sha256(repr(options).encode())
    for function in functions:
        for piece in _pieces(function, (), set()):
            digest.update(piece + b"\0")
    return digest.hexdigest()[:16]


def _names_in(code: types.CodeType) -> Iterator[str]:
    """Yield the names of globals, attributes and outer variables of a function and of its inner functions."""
    yield from (*code.co_names, *code.co_freevars)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names_in(constant)


def _pieces(value: Any, names: tuple[str, ...], seen: set[int]) -> Iterator[bytes]:
    """Yield the content of a value that affects a compiled function; ``names``: attributes that it may look up."""
    if id(value) in seen:
        return
    function = getattr(value, "py_func", value)
    module = getattr(function, "__module__", None) or ""
    if isinstance(value, types.ModuleType):
        seen.add(id(value))
        for name in names:
            if hasattr(value, name) and not value.__name__.startswith(("numpy", "numba", "math")):
                yield from _pieces(getattr(value, name), (), seen)
    elif module.startswith("ccmem."):
        yield source_digest(Path(sys.modules[module].__file__ or "")).encode()
    elif isinstance(function, types.FunctionType):
        seen.add(id(value))
        yield marshal.dumps(function.__code__, 2)  # version 2 does not depend on reference counts
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        variables = {**function.__globals__, **{name: cell.cell_contents for name, cell in cells}}
        used = tuple(_names_in(function.__code__))
        for name in used:
            if name in variables:
                yield from _pieces(variables[name], used, seen)
    elif isinstance(value, np.ndarray):
        yield value.dtype.str.encode() + repr(value.shape).encode() + value.tobytes()
    else:
        yield repr(value).encode() if isinstance(value, (int, float, str, tuple, bool)) else module.encode()
