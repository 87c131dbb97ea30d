"""Resolving user-specified sources to files in a defined order and format, and opening the files."""

from __future__ import annotations

import contextlib
import glob
import gzip
import io
import os
import re
import select
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ccmem.io.streams.arrays import open_npy, open_npz
from ccmem.io.streams.arrow import open_ipc, open_parquet, pyarrow
from ccmem.io.streams.content import HEAD, as_utf8, encoding_of, is_gzip, recognise
from ccmem.io.streams.csv import CSVTable
from ccmem.io.streams.dialect import SHOWN_LINES
from ccmem.io.streams.lines import BLOCK
from ccmem.io.streams.ndjson import NDJSONTable
from ccmem.io.streams.progress import is_regular
from ccmem.io.streams.schema import SAMPLE_ROWS, Rules
from ccmem.io.streams.tables import SourceError, Table

FORMATS = {
    "csv": (".csv", ".tsv", ".tab"),
    "ndjson": (".ndjson", ".jsonl"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".arrows", ".ipc", ".feather"),
    "npy": (".npy",),
    "npz": (".npz",),
}
"""Format -> file name suffixes. CSV and NDJSON may be compressed (``.gz``)."""
TEXT_ENDINGS = (".txt", ".dat", ".log", ".asc", ".prn")
"""Suffixes of text tables, searched for in a folder that holds no file with a known suffix."""
_FAULTS = (ValueError, TypeError, LookupError, ArithmeticError, EOFError, NotImplementedError, MemoryError, zlib.error)
STDIN = "-"
PIPE_SECONDS = 1.0
"""Longest time to wait for further rows of a pipe before the roles of its columns are inferred."""
LEAST_LINES = 100
"""Number of lines of a slow pipe after which a column without any value is taken to be empty."""

Source = str | os.PathLike[str]


def expand(sources: Source | Sequence[Source], format: str | None = None) -> list[str]:
    """Return all files that ``sources`` refer to, in order."""
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
            known = known or [str(f) for f in inside if f.name.lower().removesuffix(".gz").endswith(TEXT_ENDINGS)]
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
    """Return the format implied by a file name, None if the suffix is unknown."""
    name = file.lower().removesuffix(".gz")
    return next((known for known, endings in FORMATS.items() if name.endswith(endings)), None)


def file_key(file: str) -> str:
    """Return the key under which progress is stored: the absolute path, or ``-``."""
    return file if file == STDIN else os.path.abspath(file)  # noqa: PTH100


def open_table(
    file: str,
    format: str | None = None,
    accept_last_line: bool = False,
    rules: Rules = Rules(),  # noqa: B008
) -> Table:
    """Open one file, or standard input, in ``format`` or in the format recognised from its first bytes."""
    if file == STDIN:
        return _open_stdin(format, rules)
    regular = is_regular(file)
    head = _head(file) if regular else b""
    packed = is_gzip(head) if regular else file.lower().endswith(".gz")
    if packed and regular:
        with gzip.open(file) as content:
            head = content.read(HEAD)
    kind = format or (recognise(file, head, format_of(file)) if regular else format_of(file))
    if kind is None:
        raise SourceError(f"the name of {file} does not tell its format; say --format {'|'.join(FORMATS)}")
    if kind == "parquet":
        return open_parquet(file, rules)
    if kind == "arrow":
        return open_ipc(file, rules=rules)
    if kind == "npy":
        return open_npy(file, rules)
    if kind == "npz":
        return open_npz(file, rules)
    make = CSVTable if kind == "csv" else NDJSONTable
    source: Any = gzip.open(file) if packed else open(file, "rb", buffering=0)  # noqa: SIM115, PTH123
    encoding = encoding_of(head) if regular else None
    read = source.read if encoding is None else as_utf8(source.read, encoding)
    seek: Callable[[int], Any] | None = source.seek if regular and encoding is None and not packed else None
    try:
        if not regular:
            return _open_pipe(make, file, read, source.fileno(), source.close, rules)
        # a file may still grow; a gzip file is complete
        table = make(file, read, seek, source.close, not packed and not accept_last_line, rules)
        table.offsets_in_file = encoding is None and not packed
        return table
    except BaseException:
        source.close()
        raise


def _open_stdin(format: str | None, rules: Rules) -> Table:
    """Open standard input; without ``format``, its first bytes determine the format."""
    stream = open(_stdin(), "rb", closefd=False)  # noqa: SIM115
    head = b"" if format is not None else stream.peek(HEAD)[:HEAD]
    kind = format or recognise("standard input", head, None)
    if kind not in ("csv", "ndjson", "arrow"):
        raise SourceError(f"{kind} cannot be read from standard input; give it as a file, or pipe csv, ndjson or arrow")
    if kind == "arrow":
        return open_ipc(STDIN, pyarrow().PythonFile(stream, "r"), rules)
    encoding = encoding_of(head)
    make = CSVTable if kind == "csv" else NDJSONTable
    read = stream.read1 if encoding is None else as_utf8(stream.read1, encoding)
    return _open_pipe(make, STDIN, read, stream.fileno(), lambda: None, rules)


def _open_pipe(
    make: Any, file: str, read: Callable[[int], bytes], handle: int, close: Callable[[], Any], rules: Rules
) -> Table:
    """Open a pipe; the roles of its columns are inferred from the rows that arrive in the first second.

    If fewer than ``LEAST_LINES`` lines have arrived by then, wait until every column has had a value.
    """
    data, ended, live = b"", False, False
    source = io.BytesIO()

    def feed(most: int) -> bytes:
        return source.read(most) or (read(most) if live else b"")

    until, enough = None, SAMPLE_ROWS + SHOWN_LINES
    while True:
        while not ended and (until is None or (data.count(b"\n") < enough and _arrives(handle, until))):
            more = read(BLOCK)
            data, ended = data + more, not more
            until = until or time.monotonic() + PIPE_SECONDS
        source = io.BytesIO(data)
        table = make(file, feed, None, close, not ended, rules)
        empty = [column for column in table.schema.columns if column.kind == "empty"]
        if ended or (table.has_rows and (not empty or data.count(b"\n") >= LEAST_LINES)):
            live = not ended
            if live:
                table.expect_more()
            return table
        until = None  # wait for the next bytes, however long they take


def _arrives(handle: int, until: float) -> bool:
    """True if a pipe has something to read, or ends, before ``until``."""
    try:
        return bool(select.select([handle], [], [], max(until - time.monotonic(), 0.0))[0])
    except (OSError, ValueError):  # Windows cannot wait for pipes
        return False


def _head(file: str) -> bytes:
    with open(file, "rb") as handle:  # noqa: PTH123
        return handle.read(HEAD)


def _stdin() -> int:
    try:
        return sys.stdin.fileno()
    except (AttributeError, ValueError, OSError) as problem:
        raise SourceError("standard input is closed; pipe something into it, or name a file") from problem


@contextlib.contextmanager
def named(file: str) -> Iterator[None]:
    """Convert any exception that a reader raises for damaged data into a SourceError that names the file."""
    try:
        yield
    except SourceError:
        raise
    except OSError as problem:
        if problem.errno is not None:  # from the operating system: no such file, no permission, disk failure
            raise
        raise SourceError(f"{file} is damaged: {str(problem)[:300]}") from problem
    except _FAULTS as problem:
        what = str(problem)[:300] or type(problem).__name__
        raise SourceError(f"{file} is damaged or not what its name says: {what}") from problem
