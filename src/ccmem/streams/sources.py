"""Which files a user means, in which order and format, and opening them."""

from __future__ import annotations

import contextlib
import glob
import gzip
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ccmem.streams.arrays import open_npy, open_npz
from ccmem.streams.arrow import open_ipc, open_parquet, pyarrow
from ccmem.streams.csv import CSVTable
from ccmem.streams.ndjson import NDJSONTable
from ccmem.streams.progress import is_regular
from ccmem.streams.tables import SourceError, Table

FORMATS = {
    "csv": (".csv", ".tsv"),
    "ndjson": (".ndjson", ".jsonl"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".arrows", ".ipc", ".feather"),
    "npy": (".npy",),
    "npz": (".npz",),
}
"""Format -> endings of file names. CSV and NDJSON may be compressed (``.gz``)."""
_FAULTS = (ValueError, TypeError, LookupError, ArithmeticError, EOFError, NotImplementedError, MemoryError, zlib.error)
STDIN = "-"

Source = str | os.PathLike[str]


def expand(sources: Source | Sequence[Source], format: str | None = None) -> list[str]:
    """All files that ``sources`` mean, in order."""
    named = [sources] if isinstance(sources, (str, os.PathLike)) else list(sources)
    files: list[str] = []
    for source in (os.fspath(entry) for entry in named):
        path = Path(source)
        if source == STDIN or path.is_file() or (path.exists() and not path.is_dir()):
            files.append(source)
        elif path.is_dir():
            inside = [
                f
                for f in path.rglob("*")
                if f.is_file() and not any(part.startswith((".", "_")) for part in f.relative_to(path).parts)
            ]
            known = [str(f) for f in inside if format is not None or format_of(str(f)) is not None]
            if not known:
                raise SourceError(f"the folder {source} holds no file that can be read ({', '.join(FORMATS)})")
            files.extend(sorted(known, key=_natural))
        elif glob.has_magic(source):
            found = [f for f in glob.glob(source, recursive=True) if Path(f).is_file()]  # noqa: PTH207
            if not found:
                raise FileNotFoundError(f"no file matches {source}")
            files.extend(sorted(found, key=_natural))
        else:
            raise FileNotFoundError(f"there is no file {source}")
    if not files:
        raise SourceError("no source was named; name a file, a folder, a pattern, or - for standard input")
    twice = [f for i, f in enumerate(files) if f in files[:i]] if len(set(files)) < len(files) else []
    if twice or (STDIN in files and len(files) > 1):
        raise SourceError(f"{(twice or [STDIN])[0]} is named twice or beside others; name every source once, - alone")
    return files


def _natural(path: str) -> list[Any]:
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"([0-9]+)", path)]


def format_of(file: str) -> str | None:
    """The format that a file's name tells."""
    name = file.lower().removesuffix(".gz")
    return next((known for known, endings in FORMATS.items() if name.endswith(endings)), None)


def file_key(file: str) -> str:
    """The name under which progress is kept: the absolute path, or ``-``."""
    return file if file == STDIN else os.path.abspath(file)  # noqa: PTH100


def open_table(file: str, format: str | None = None, accept_last_line: bool = False) -> Table:
    """Open one file, or standard input."""
    kind = format or format_of(file)
    if kind is None:
        what = "standard input has no name that tells" if file == STDIN else f"the name of {file} does not tell"
        raise SourceError(f"{what} its format; say --format {'|'.join(FORMATS)}")
    if file == STDIN and kind not in ("csv", "ndjson", "arrow"):
        raise SourceError(f"{kind} cannot be read from standard input; give it as a file, or pipe csv, ndjson or arrow")
    if kind == "parquet":
        return open_parquet(file)
    if kind == "arrow":
        return open_ipc(file, pyarrow().PythonFile(_Whole(_stdin()), "r") if file == STDIN else None)
    if kind == "npy":
        return open_npy(file)
    if kind == "npz":
        return open_npz(file)
    make = CSVTable if kind == "csv" else NDJSONTable
    if file == STDIN:
        handle = _stdin()
        return make(file, lambda most: os.read(handle, most), None, lambda: None)
    packed, regular = file.lower().endswith(".gz"), is_regular(file)
    source: Any = gzip.open(file) if packed else open(file, "rb", buffering=0)  # noqa: SIM115, PTH123
    seek: Callable[[int], Any] | None = source.seek if regular else None
    try:
        # a file may still be written to; a pipe that ends, and a gzip file, have an end of their own
        return make(file, source.read, seek, source.close, hold=regular and not packed and not accept_last_line)
    except BaseException:
        source.close()
        raise


def _stdin() -> int:
    try:
        return sys.stdin.fileno()
    except (AttributeError, ValueError, OSError) as problem:
        raise SourceError("standard input is closed; pipe something into it, or name a file") from problem


class _Whole:
    """A pipe from which reading gives as much as is asked for, as pyarrow expects."""

    closed = False

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def read(self, size: int) -> bytes:
        parts = []
        while size > 0 and (part := os.read(self._handle, size)):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def flush(self) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Nothing to do."""


@contextlib.contextmanager
def named(file: str) -> Iterator[None]:
    """Turn whatever a reader raises over damaged data into one kind of error that names the file."""
    try:
        yield
    except SourceError:
        raise
    except OSError as problem:
        if problem.errno is not None:  # the system's own: no such file, no permission, a disk that fails
            raise
        raise SourceError(f"{file} is damaged: {str(problem)[:300]}") from problem
    except _FAULTS as problem:
        what = str(problem)[:300] or type(problem).__name__
        raise SourceError(f"{file} is damaged or not what its name says: {what}") from problem
