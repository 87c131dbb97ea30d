"""Files and pipes as streams: CSV, NDJSON, Parquet, Arrow, NPY and NPZ, one or many, in constant memory.

The order is stated: sources as they are named; the files of a folder or of a pattern in natural order of their paths
(``part2`` before ``part10``), folders with all that is in them except names that begin with a dot or an underscore.

>>> import pathlib, tempfile
>>> path = pathlib.Path(tempfile.mkdtemp()) / "a.csv"
>>> _ = path.write_text("height,width,kind\\n1,2,oak\\n3,4,\\n")
>>> for X, y in read_files(path, label="kind"):
...     print(X.tolist(), y.tolist())
[[1.0, 2.0], [3.0, 4.0]] ['oak', None]
"""

from __future__ import annotations

import contextlib
import glob
import gzip
import hashlib
import os
import re
import stat
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ccmem.streams.arrays import open_array, open_npy, open_npz
from ccmem.streams.arrow import open_frame, open_ipc, open_parquet, pyarrow
from ccmem.streams.lines import CSVTable, LineTable, NDJSONTable
from ccmem.streams.prefetch import Prefetch
from ccmem.streams.tables import (
    Chunk,
    Columns,
    Labels,
    SourceError,
    Table,
    check_batch,
    check_columns,
    choose_columns,
    code_labels,
)

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
_HEAD = 4096
_MOST_ROWS = 65_536
_MOST_REMEMBERED = 10_000
STDIN = "-"

Source = str | os.PathLike[str]


class Progress(NamedTuple):
    """How far a file has been read, and how to know it again."""

    rows: int = 0
    complete: bool = False
    anchor: tuple[int, int] | None = None
    """A row and the offset in the file where it begins, near the place to go on from."""
    size: int = 0
    head: str = ""
    """Digest of the first bytes."""


class FileStream:
    """Chunks of rows of one file after another. Made by :func:`read_files`, which explains the parameters."""

    def __init__(
        self,
        sources: Source | Sequence[Source],
        *,
        features: Sequence[str] | None = None,
        label: str | None = None,
        format: str | None = None,
        on_bad_row: str = "stop",
        dtype: Any = None,
        resume: Mapping[str, Progress] | None = None,
        columns: Columns | None = None,
        skip_seen: bool = False,
        chunk_rows: int | None = None,
    ) -> None:
        if on_bad_row not in ("stop", "skip"):
            raise ValueError(f"on_bad_row={on_bad_row!r} is unknown; say 'stop' or 'skip'")
        if format is not None and format not in FORMATS:
            raise ValueError(f"format={format!r} is unknown; known are {', '.join(FORMATS)}")
        self.files = expand(sources, format)
        self.columns = columns
        self.bad_rows = 0
        """How many rows were skipped because they could not be learned from."""
        self.progress: dict[str, Progress] = dict(resume or {})
        """How far every file has been handed over; give it to ``resume`` to go on from there."""
        self._skip_bad = on_bad_row == "skip"
        self._skip_seen = skip_seen
        self._chunk_rows = chunk_rows or _MOST_ROWS
        self._format, self._features, self._label, self._dtype = format, features, label, dtype
        self.left_out: tuple[str, ...] = ()  # columns of the first file that hold no numbers and are not the label

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        """Pairs of rows and labels (None where there is no label column)."""
        for chunk in self.chunks():
            yield chunk.X, chunk.y

    def chunks(self, max_rows: int | None = None) -> Iterator[Chunk]:
        """The same as records that know their file and rows; at most ``max_rows`` rows."""
        return (chunk for chunk in self._hand_over(self._read(), max_rows) if chunk is not None)

    def chunks_read_ahead(self, max_rows: int | None, idle: float) -> Iterator[Chunk | None]:
        """As :meth:`chunks`, read by a thread while others learn; None whenever ``idle`` seconds bring nothing."""
        return self._hand_over(Prefetch(self._read()).each(idle), max_rows)

    def _hand_over(self, items: Iterator[Any], max_rows: int | None) -> Iterator[Chunk | None]:
        """Keep ``progress`` in step with what the user gets (and not with what may have been read ahead)."""
        left = max_rows
        key = ""
        for item in items:
            if item is None:
                yield None
            elif isinstance(item, Chunk):
                chunk = item if left is None else item.head(left)
                if left is not None:
                    left -= len(chunk.X)
                self.bad_rows += chunk.n_rows - len(chunk.X)
                progress = self.progress[key]
                anchor = progress.anchor if chunk.offset is None else (chunk.first, chunk.offset)
                self.progress[key] = progress._replace(rows=chunk.first + chunk.n_rows, anchor=anchor)
                if len(chunk.X):
                    yield chunk
            else:
                key, progress = item
                self.progress.pop(key, None)  # last in, so that the files longest out of use are forgotten first
                self.progress[key] = progress
                while len(self.progress) > max(_MOST_REMEMBERED, len(self.files)):
                    del self.progress[next(iter(self.progress))]
            if left == 0:
                return

    def _read(self) -> Iterator[Any]:
        """For every file with something to read: its key and progress, its chunks, its key and final progress."""
        known = dict(self.progress)
        for file in self.files:
            progress = self._begin(file, known.get(file_key(file)))
            if progress is None:
                continue
            yield file_key(file), progress
            with _named(file):
                table = open_table(file, self._format)
            try:
                if self.columns is None:
                    may_miss = isinstance(table, NDJSONTable)
                    self.columns = choose_columns(table, file, self._features, self._label, self._dtype, may_miss)
                    if self._features is None:
                        used = {*self.columns.features, self.columns.label}
                        self.left_out = tuple(name for name in table.columns if name not in used)
                columns = check_columns(table, file, self.columns)
                first = progress.rows
                batches = table.batches(columns, progress.rows, progress.anchor)
                while True:
                    with _named(file):
                        batch = next(batches, None)
                    if batch is None:
                        break
                    columns = columns.knowing(batch.labels)
                    self.columns = self.columns.knowing(batch.labels)
                    chunk, error = check_batch(batch, columns, file, first, self._skip_bad)
                    first += chunk.n_rows
                    yield from chunk.pieces(self._chunk_rows)
                    if error is not None:
                        raise error
            finally:
                table.close()
            end = (first, table.offset) if isinstance(table, LineTable) and _is_regular(file) else None
            yield file_key(file), progress._replace(rows=first, complete=True, anchor=end)

    def _begin(self, file: str, known: Progress | None) -> Progress | None:
        """Where to begin in ``file``; None if there is nothing to read in it."""
        if not _is_regular(file):
            return Progress(rows=known.rows) if known is not None and self._skip_seen else Progress()
        size = Path(file).stat().st_size
        if known is not None:
            if size < known.size or _head(file, min(known.size, _HEAD)) != known.head:
                raise SourceError(
                    f"{file} is not the file of which {known.rows} rows were learned before: its beginning has "
                    "changed; learn it from its first row (--again), or under another name"
                )
            if known.complete and size == known.size:
                return None
        if size == 0:
            return None
        return (known or Progress())._replace(complete=False, size=size, head=_head(file, min(size, _HEAD)))


def read_files(
    sources: Source | Sequence[Source],
    *,
    features: Sequence[str] | None = None,
    label: str | None = None,
    format: str | None = None,
    on_bad_row: str = "stop",
    dtype: Any = None,
    resume: Mapping[str, Progress] | None = None,
    chunk_rows: int | None = None,
) -> FileStream:
    """A stream of (rows, labels) from files: ``for X, y in read_files("data/*.parquet", label="state"): ...``.

    Parameters
    ----------
    sources : path, pattern, folder, ``"-"`` for standard input, or a list of them
    features : names of the numeric columns to learn from; None takes all numeric columns of the first file
    label : name of the label column, if any; a missing label is None (text) or NaN (numbers). CSV labels are text.
    format : one of csv, ndjson, parquet, arrow, npy, npz; None goes by the file name
    on_bad_row : "stop" raises :class:`BadRowError` at the first row with a missing, non-numeric or infinite value;
        "skip" leaves such rows out and counts them in ``bad_rows``
    dtype : float32 or float64; None takes float32 if all columns of the first file fit in it
    resume : the ``progress`` of an earlier stream, to go on from there
    chunk_rows : most rows in a chunk; None takes what is convenient (a few megabytes)
    """
    return FileStream(
        sources,
        features=features,
        label=label,
        format=format,
        on_bad_row=on_bad_row,
        dtype=dtype,
        resume=resume,
        chunk_rows=chunk_rows,
    )


def as_chunks(
    data: Any,
    *,
    y: Any = None,
    features: Sequence[str] | None = None,
    label: str | None = None,
    on_bad_row: str = "stop",
) -> Iterator[tuple[Any, Any]]:
    """Pairs of rows and labels of what is in memory: a numpy array, a pandas or polars frame, an Arrow table, or
    anything else with ``__arrow_c_stream__``, ``__dataframe__`` or ``__array__``. ``y`` may hold the labels apart.

    >>> import numpy as np
    >>> [(X.shape, y.tolist()) for X, y in as_chunks(np.eye(3), y=["a", None, "b"])]
    [((3, 3), ['a', None, 'b'])]
    """
    speaks_arrow = hasattr(data, "__arrow_c_stream__") or hasattr(data, "__dataframe__")
    table: Table = open_frame(data) if speaks_arrow else open_array(data)
    columns = check_columns(table, "the data", choose_columns(table, "the data", features, label, None, False))
    given: Labels | None = None
    if y is not None:
        given, wrong = code_labels(y.tolist() if hasattr(y, "tolist") else list(y))
        if wrong:
            raise ValueError(f"y: {next(iter(wrong.values()))}")
    first = 0
    for batch in table.batches(columns, 0, None):
        chunk, error = check_batch(batch, columns, "the data", first, on_bad_row == "skip")
        first += chunk.n_rows
        if len(chunk.X):
            yield chunk.X, chunk.y if given is None else given.take(chunk.rows - 1).array()
        if error is not None:
            raise error


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


def format_of(file: str) -> str | None:
    """The format that a file's name tells."""
    name = file.lower().removesuffix(".gz")
    return next((known for known, endings in FORMATS.items() if name.endswith(endings)), None)


def file_key(file: str) -> str:
    """The name under which progress is kept: the absolute path, or ``-``."""
    return file if file == STDIN else os.path.abspath(file)  # noqa: PTH100


def open_table(file: str, format: str | None = None) -> Table:
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
        return open_ipc(file, pyarrow().PythonFile(_Whole(sys.stdin.fileno()), "r") if file == STDIN else None)
    if kind == "npy":
        return open_npy(file)
    if kind == "npz":
        return open_npz(file)
    make = CSVTable if kind == "csv" else NDJSONTable
    if file == STDIN:
        handle = sys.stdin.fileno()
        return make(file, lambda most: os.read(handle, most), None, lambda: None)
    source: Any = gzip.open(file) if file.lower().endswith(".gz") else open(file, "rb", buffering=0)  # noqa: SIM115, PTH123
    seek: Callable[[int], Any] | None = source.seek if _is_regular(file) else None
    try:
        return make(file, source.read, seek, source.close)
    except BaseException:
        source.close()
        raise


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
def _named(file: str) -> Iterator[None]:
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


def _is_regular(file: str) -> bool:
    return file != STDIN and stat.S_ISREG(Path(file).stat().st_mode)


def _head(file: str, length: int) -> str:
    with open(file, "rb") as handle:  # noqa: PTH123
        return hashlib.sha256(handle.read(length)).hexdigest()


def _natural(path: str) -> list[Any]:
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"([0-9]+)", path)]
