"""Source dependencies of a module: its file and every file of the package that it imports, transitively."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

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
