"""Resolving user-specified sources to files in a defined order, recognising their format, and opening them."""

from __future__ import annotations

import codecs
import glob
import gzip
import io
import os
import re
import select
import sys
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ccmem.io.streams.arrays import open_npy, open_npz
from ccmem.io.streams.arrow import open_ipc, open_parquet, pyarrow
from ccmem.io.streams.csv import CSVTable
from ccmem.io.streams.dialect import SHOWN_LINES
from ccmem.io.streams.errors import SourceError, named
from ccmem.io.streams.lines import BLOCK
from ccmem.io.streams.ndjson import NDJSONTable
from ccmem.io.streams.progress import is_regular
from ccmem.io.streams.schema import SAMPLE_ROWS, Rules
from ccmem.io.streams.tables import Table

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
HEAD = 4096
"""Number of leading bytes from which the format of a file is recognised."""
_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\xff\xff\xff\xff": "arrow", b"\x93NUMPY": "npy"}
_FOREIGN = {
    b"\xd0\xcf\x11\xe0": ("an old Excel workbook", "save the sheet as CSV"),
    b"SQLite format 3": ("an SQLite database", "export the table as CSV"),
    b"%PDF": ("a PDF document", "export the data as CSV"),
    b"\x89HDF": ("an HDF5 file", "write the table as Parquet or CSV"),
    b"BZh": ("compressed with bzip2", "unpack it, or use gzip"),
    b"\xfd7zXZ": ("compressed with xz", "unpack it, or use gzip"),
    b"\x28\xb5\x2f\xfd": ("compressed with zstd", "unpack it, or use gzip"),
    b"MATLAB": ("a MATLAB file", "write the table as CSV"),
}
_UTF16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_GZIP = b"\x1f\x8b"
_OPENERS: dict[str, tuple[str, Callable[[str, Rules], Table]]] = {
    "parquet": ("a Parquet file", open_parquet),
    "arrow": ("an Arrow file or stream", open_ipc),
    "npz": ("an NPZ file", open_npz),
}
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
        if path.is_dir():
            visible = (f for f in path.rglob("*") if not any(p[0] in "._" for p in f.relative_to(path).parts))
            inside = [str(f) for f in visible if f.is_file()]
            known = [f for f in inside if format is not None or format_of(f) is not None]
            known = known or [f for f in inside if f.lower().removesuffix(".gz").endswith(TEXT_ENDINGS)]
            if not known:
                raise SourceError(f"the folder {source} holds no file that can be read ({', '.join(FORMATS)})")
            files.extend(sorted(known, key=_natural))
        elif source == STDIN or path.exists():
            files.append(source)
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


# Recognising ----------------------------------------------------------------------------------------------------------


def kind_of(file: str) -> str:
    """Return the format of a file, recognised from its first bytes."""
    with open(file, "rb") as stream, named(file):  # noqa: PTH123
        return _recognised(file, stream, None)[0]


def _recognised(file: str, stream: Any, format: str | None) -> tuple[str, Any, str | None]:
    """Return the format of an open file, the stream to read it from, inflated if need be, and its text encoding."""
    packed = stream.peek(2).startswith(_GZIP)
    content: Any = gzip.GzipFile(fileobj=stream) if packed else stream
    head = content.peek(HEAD)[:HEAD]
    kind = format or recognise("standard input" if file == STDIN else file, head, format_of(file))
    return kind, content, encoding_of(head)


def grows_by_lines(file: str) -> bool:
    """True if every line of a text file ends with a line feed byte: not in gzip and UTF-16."""
    with open(file, "rb") as stream:  # noqa: PTH123
        head = stream.read(HEAD)
    return not head.startswith(_GZIP) and encoding_of(head) is None


def recognise(file: str, head: bytes, by_name: str | None) -> str:
    """Return the format of a file from its first bytes, or ``by_name`` if the bytes are inconclusive.

    >>> recognise("a.txt", b'{"a": 1}', None), recognise("a.dat", b"1 2 3", None)
    ('ndjson', 'csv')
    """
    for magic, kind in _MAGIC.items():
        if head.startswith(magic):
            return kind
    if head.startswith(b"PK\x03\x04"):
        return _archive(file, by_name)
    if by_name in ("parquet", "arrow", "npy", "npz"):
        return by_name  # the reader of that format reports the fault
    for magic, (what, remedy) in _FOREIGN.items():
        if head.startswith(magic):
            raise SourceError(f"{file} is {what}; {remedy}")
    text = head.removeprefix(codecs.BOM_UTF8).lstrip()
    if text.lower().startswith((b"<!doctype", b"<html", b"<?xml")):
        raise SourceError(f"{file} is a web page or XML, not a table; export the data as CSV")
    if text.startswith(b"["):
        raise SourceError(f"{file} is a JSON array; write one object per line (jq -c '.[]' {file} > rows.ndjson)")
    if text.startswith(b"{"):
        return "ndjson"
    if b"\0" in head and encoding_of(head) is None:
        raise SourceError(f"{file} is a binary file of unknown format; known are {', '.join(FORMATS)}")
    return by_name or "csv"


def _archive(file: str, by_name: str | None) -> str:
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return by_name or "npz"
    if "[Content_Types].xml" in names:
        raise SourceError(f"{file} is an Excel workbook; save the sheet as CSV")
    if not any(name.endswith(".npy") for name in names):
        raise SourceError(f"{file} is a zip archive; unpack it first")
    return "npz"


def encoding_of(head: bytes) -> str | None:
    """Return the encoding of UTF-16 text, with or without a byte order mark; None for other text."""
    if (known := _UTF16.get(head[:2])) is not None:
        return known
    pairs = head[: len(head) // 2 * 2]
    if len(pairs) >= 8:
        for name, high, low in (("utf-16-le", pairs[1::2], pairs[::2]), ("utf-16-be", pairs[::2], pairs[1::2])):
            if high.count(0) > 0.9 * len(high) and low.count(0) == 0:
                return name
    return None


def _as_utf8(read: Callable[[int], bytes], encoding: str) -> Callable[[int], bytes]:
    """Return a function that reads like ``read``, but converts ``encoding`` to UTF-8."""
    decoder = codecs.getincrementaldecoder(encoding)("replace")

    def read_text(most: int) -> bytes:
        while data := read(most):
            if text := decoder.decode(data):
                return text.encode()
        return decoder.decode(b"", final=True).encode()

    return read_text


# Opening --------------------------------------------------------------------------------------------------------------


def open_table(
    file: str,
    format: str | None = None,
    accept_last_line: bool = False,
    rules: Rules = Rules(),  # noqa: B008
    size: int | None = None,
) -> Table:
    """Open a file, a pipe or standard input, in ``format`` or in the format recognised from its first bytes.

    ``size``: number of bytes to read of a text file that may have grown since.
    """
    regular = is_regular(file)
    stream: Any = open(file, "rb") if file != STDIN else open(_stdin(), "rb", closefd=False)  # noqa: SIM115, PTH123
    close = stream.close if file != STDIN else lambda: None
    try:
        kind, content, encoding = _recognised(file, stream, format)
        if kind in ("csv", "ndjson"):
            make = CSVTable if kind == "csv" else NDJSONTable
            read = content.read if regular else content.read1
            read = read if encoding is None else _as_utf8(read, encoding)
            if not regular:
                return _open_pipe(make, file, read, stream.fileno(), close, rules)
            in_place = encoding is None and content is stream
            read = read if size is None or not in_place else _limited(read, size)
            hold = content is stream and not accept_last_line  # a file may still grow; a gzip file is complete
            table = make(file, read, stream.seek if in_place else None, close, hold, rules)
            table.offsets_in_file = in_place
            return table
        if kind == "npy":
            return open_npy(file, stream, regular, rules)
        if not regular:
            if kind != "arrow":
                what = "standard input" if file == STDIN else "a pipe"
                raise SourceError(f"{kind} cannot be read from {what}; give it as a file, or pipe csv, ndjson or arrow")
            return open_ipc(file, rules, pyarrow().PythonFile(stream, "r"))
        close()
        what, opener = _OPENERS[kind]
        with named(file, f"is not {what} that can be read"):
            return opener(file, rules)
    except BaseException:
        close()
        raise


def _limited(read: Callable[[int], bytes], size: int) -> Callable[[int], bytes]:
    left = size

    def read_some(most: int) -> bytes:
        nonlocal left
        data = read(min(most, left))
        left -= len(data)
        return data

    return read_some


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


def _stdin() -> int:
    try:
        return sys.stdin.fileno()
    except (AttributeError, ValueError, OSError) as problem:
        raise SourceError("standard input is closed; pipe something into it, or name a file") from problem
