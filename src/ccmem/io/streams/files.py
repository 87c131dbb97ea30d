"""Files and pipes as streams: CSV, NDJSON, Parquet, Arrow, NPY and NPZ, one or many, in constant memory.

The order is defined: sources in the order given; the files of a folder or pattern in natural order of their paths
(``part2`` before ``part10``). Folders are searched recursively, except names that begin with a dot or an underscore.

>>> import pathlib, tempfile
>>> path = pathlib.Path(tempfile.mkdtemp()) / "a.csv"
>>> _ = path.write_text("height,width,kind\\n1,2,oak\\n3,4,\\n")
>>> for X, y in read_files(path, label="kind"):
...     print(X.tolist(), y.tolist())
[[1.0, 2.0], [3.0, 4.0]] ['oak', None]
"""

from __future__ import annotations

import queue
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ccmem.io.streams.arrays import open_array
from ccmem.io.streams.arrow import open_frame
from ccmem.io.streams.errors import named
from ccmem.io.streams.progress import Progress, begin, covered, digest_of, is_regular, renamed
from ccmem.io.streams.schema import Column, Columns, Rules, check_columns, choose_columns, excluded, growing
from ccmem.io.streams.sources import FORMATS, Source, expand, file_key, open_table
from ccmem.io.streams.tables import Chunk, Labels, Table, code_labels, good_rows
from ccmem.io.streams.timestamps import Timing

_MOST_ROWS = 65_536
_MOST_REMEMBERED = 10_000
_END = object()


class Prefetch:
    """Items of an iterator, read by a separate thread, at most ``depth`` items ahead; waiting can be interrupted."""

    def __init__(self, items: Iterator[Any], depth: int = 2) -> None:
        self._queue: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue(depth)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(items,), daemon=True)
        self._thread.start()

    def _run(self, items: Iterator[Any]) -> None:
        problem: BaseException | None = None
        try:
            for item in items:
                if not self._put((item, None)):
                    return
        except BaseException as raised:
            problem = raised
        self._put((_END, problem))

    def _put(self, entry: tuple[Any, BaseException | None]) -> bool:
        while not self._stopped.is_set():
            try:
                self._queue.put(entry, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def each(self, idle: float) -> Iterator[Any]:
        """Yield items in order; None whenever ``idle`` seconds pass without an item."""
        try:
            while True:
                try:
                    item, problem = self._queue.get(timeout=idle)
                except queue.Empty:
                    yield None
                    continue
                if problem is not None:
                    raise problem
                if item is _END:
                    return
                yield item
        finally:
            self._stopped.set()


class _File:
    """A file being read, shared by the reader and the consumer of its chunks."""

    def __init__(self, name: str, progress: Progress) -> None:
        self.name, self.key, self.progress = name, file_key(name), progress
        self.witness = open(name, "rb") if is_regular(name) else None  # noqa: SIM115, PTH123
        """Second handle on the file, for digests of the bytes read so far; None for a pipe."""
        self.rows = progress.rows
        self.table = Table()


class FileStream:
    """Chunks of rows and labels from files: ``for X, y in read_files("data/*.parquet", label="state"): ...``.

    Parameters
    ----------
    sources : path, pattern, folder, ``"-"`` for standard input, or a list of them
    features : names of the numeric columns to learn from; None takes all numeric columns of the first file
    label : name of the label column, if any; a missing label is None (text) or NaN (numbers). CSV labels are text.
    format : one of csv, ndjson, parquet, arrow, npy, npz; None recognises the format from the content
    on_bad_row : "stop" raises :class:`BadRowError` at the first row with a missing, non-numeric or infinite value;
        "skip" omits such rows and counts them in ``bad_rows``
    dtype : float32 or float64; None takes float32 if all columns of the first file fit in it
    resume : the ``progress`` of an earlier stream, to continue from there
    chunk_rows : maximum number of rows in a chunk; None chooses chunks of a few megabytes
    accept_last_line : True if a last line without a line end is a row. By default it is left for later, because a
        file that is still being written may end anywhere; the end of a pipe always ends its last line
    missing : True if an empty cell, null or NaN is a missing reading, returned as NaN for AdaptiveCCM. A row
        without any reading is still bad
    time : name of the time column, which is not learned from (a date and a time of day: "Date,Time"); None recognises
        it. The chunks of the stream hold the times in ``times``
    decimal : "." or ",", the decimal sign of a text file; None recognises it
    markers : texts that mark a missing value, in addition to the usual ones (blank, NA, N/A, null, None, nan, -, ?)
    day_first : order of day and month in dates such as 4/2/2015; None infers it
    columns : the ``columns`` of an earlier stream, instead of ``features``, ``label`` and ``dtype``
    skip_seen : True to skip the first rows of a pipe, those that ``resume`` counts
    """

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
        chunk_rows: int | None = None,
        accept_last_line: bool = False,
        missing: bool = False,
        time: str | None = None,
        decimal: str | None = None,
        markers: Sequence[str] = (),
        day_first: bool | None = None,
        columns: Columns | None = None,
        skip_seen: bool = False,
    ) -> None:
        if on_bad_row not in ("stop", "skip"):
            raise ValueError(f"on_bad_row={on_bad_row!r} is unknown; use 'stop' or 'skip'")
        if format is not None and format not in FORMATS:
            raise ValueError(f"format={format!r} is unknown; known are {', '.join(FORMATS)}")
        self.files = expand(sources, format)
        self.columns = columns
        self.bad_rows = 0
        """Number of rows skipped because they could not be learned from."""
        self.held_back: dict[str, int] = {}
        """Files whose last line has no line end yet -> number of bytes of it left for later."""
        self.in_open_quote = 0
        """Number of complete lines among the bytes held back, because a quote opened before them is not closed."""
        self.renamed: dict[str, str] = {}
        """Files that were read before under another name -> that previous name."""
        self.first_table: Table | None = None
        """First table that was opened, for its layout and the roles of its columns."""
        self.left_out: list[Column] = []
        """Columns of the first file that are not learned from, each with the reason, unless the user named columns."""
        self.chosen: list[Column] = []
        """Columns of the first file that are learned from, unless the user named columns."""
        self.growing: tuple[str, ...] = ()
        """Those of ``chosen`` that grow with every row of the first chunk."""
        self.timing = Timing()
        self._progress: dict[str, Progress] = dict(resume or {})
        self._anew: set[str] = set()
        self._current: _File | None = None
        self._skip_bad, self._skip_seen, self._missing = on_bad_row == "skip", skip_seen, missing
        self._format, self._features, self._label, self._dtype = format, features, label, dtype
        self._chunk_rows, self._accept_last_line = chunk_rows or _MOST_ROWS, accept_last_line
        self._rules = Rules(decimal, tuple(markers), tuple(time.split(",")) if time else (), day_first)

    @property
    def progress(self) -> dict[str, Progress]:
        """Position reached in every file; pass it to ``resume`` to continue from there."""
        self._sign()
        return self._progress

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        """Yield pairs of rows and labels (None without a label column)."""
        for chunk in self.chunks():
            if len(chunk.X):
                yield chunk.X, chunk.y
        for file, n_bytes in self.held_back.items():
            warnings.warn(
                f"{file}: its last line has no end yet, {n_bytes} bytes were left for later; "
                "read_files(..., accept_last_line=True) takes them as they are",
                stacklevel=2,
            )

    def chunks(self, max_rows: int | None = None) -> Iterator[Chunk]:
        """Yield chunks with file and row numbers, also where all rows are bad; at most ``max_rows`` rows in all."""
        self._recognise()
        return (chunk for chunk in self._hand_over(self._read(), max_rows) if chunk is not None)

    def chunks_read_ahead(self, max_rows: int | None, idle: float) -> Iterator[Chunk | None]:
        """Yield chunks like :meth:`chunks`, read ahead by a thread; None after every ``idle`` seconds without data."""
        self._recognise()
        return self._hand_over(Prefetch(self._read()).each(idle), max_rows)

    def forget(self, files: Sequence[str]) -> None:
        """Discard the progress of these files, so that they are read from their first row."""
        for file in files:
            self._progress.pop(file_key(file), None)
            self._anew.add(file_key(file))

    def _recognise(self) -> None:
        """Transfer the progress of renamed files to their new names."""
        keys = [file_key(file) for file in self.files]
        self.renamed = renamed([key for key in keys if key not in self._anew], self._progress)
        self._progress |= {new: self._progress.pop(old) for new, old in self.renamed.items()}

    # Consumer: progress follows the chunks handed over, not those read ahead ------------------------------------------

    def _hand_over(self, items: Iterator[Any], max_rows: int | None) -> Iterator[Chunk | None]:
        """Yield the chunks of :meth:`_read`."""
        left = max_rows
        try:
            for item in items:
                if item is None:
                    yield None
                    continue
                file, chunk = item
                if chunk is None:
                    (self._leave if file is self._current else self._enter)(file)
                    continue
                if left is not None:
                    chunk = chunk.head(left)
                    left -= len(chunk.X)
                self._note(file, chunk)
                if chunk.n_rows:
                    yield chunk
                if left == 0:
                    return
        finally:
            self._close()

    def _enter(self, file: _File) -> None:
        self._current = file
        self._progress.pop(file.key, None)  # reinsert last, so that the least recently used files are dropped first
        self._progress[file.key] = file.progress
        while len(self._progress) > max(_MOST_REMEMBERED, len(self.files)):
            del self._progress[next(iter(self._progress))]

    def _note(self, file: _File, chunk: Chunk) -> None:
        self.bad_rows += chunk.n_rows - len(chunk.X)
        if chunk.times is not None:
            self.timing.add(chunk.times)
        progress, rows = self._progress[file.key], chunk.first + chunk.n_rows
        end = None
        if file.witness is not None:
            end = progress.size if chunk.ends is None else int(chunk.ends[-1]) if chunk.n_rows else progress.end
        self._progress[file.key] = progress._replace(rows=rows, end=end, digest="")

    def _leave(self, file: _File) -> None:
        table = file.table
        if table.held_back:
            self.held_back[file.key] = table.held_back
            self.in_open_quote += table.held_lines
        progress = self._progress[file.key]._replace(rows=file.rows, complete=not table.held_back)
        if file.witness is not None:
            end = progress.end if table.end is None else table.end
            progress = progress._replace(end=progress.size if end is None else end, digest="")
        self._progress[file.key] = progress
        self._close()

    def _close(self) -> None:
        self._sign()
        if self._current is not None and self._current.witness is not None:
            self._current.witness.close()
        self._current = None

    def _sign(self) -> None:
        """Store a digest of the rows yielded so far in the progress of the current file."""
        if (file := self._current) is not None and file.witness is not None:
            progress = self._progress[file.key]
            if progress.end is not None and not progress.digest:
                digest = digest_of(file.witness, covered(file.key, progress))
                self._progress[file.key] = progress._replace(digest=digest)

    # Reader, possibly in a thread -------------------------------------------------------------------------------------

    def _read(self) -> Iterator[tuple[_File, Chunk | None]]:
        """Yield every file with something to read: with None, then each of its chunks, and with None at its end."""
        known = dict(self._progress)
        for name in self.files:
            progress = self._begin(name, known.get(file_key(name)))
            if progress is None:
                continue
            file = _File(name, progress)
            yield file, None
            with named(name):
                table = file.table = open_table(name, self._format, self._accept_last_line, self._rules)
            self.first_table = self.first_table or table
            try:
                if table.has_rows:
                    for chunk in self._rows_of(table, file):
                        yield from ((file, piece) for piece in chunk.pieces(self._chunk_rows))
                yield file, None
            finally:
                table.close()

    def _begin(self, file: str, known: Progress | None) -> Progress | None:
        """Return the progress at which to begin reading ``file``; None if it has nothing new."""
        if is_regular(file):
            return begin(file, known)
        return Progress(rows=known.rows) if known is not None and self._skip_seen else Progress()

    def _rows_of(self, table: Table, file: _File) -> Iterator[Chunk]:
        unnamed = self.columns is None and self._features is None
        if self.columns is None:
            self.columns = choose_columns(
                table, file.name, self._features, self._label, self._dtype, label_may_miss=table.open_ended
            )
        if unnamed:
            used = set(self.columns.features)
            self.left_out = excluded(table.schema, self.columns.label)
            self.chosen = [column for column in table.schema.columns if column.name in used]
        columns = check_columns(table, file.name, self.columns)
        for chunk in good_rows(table, columns, file.name, file.rows, file.progress.end, self._skip_bad, self._missing):
            self.columns = self.columns.knowing(chunk.labels)
            file.rows += chunk.n_rows
            if unnamed:
                self.growing, unnamed = growing(chunk.X, columns), False
            yield chunk


read_files = FileStream


def as_chunks(
    data: Any,
    *,
    y: Any = None,
    features: Sequence[str] | None = None,
    label: str | None = None,
    on_bad_row: str = "stop",
    missing: bool = False,
) -> Iterator[tuple[Any, Any]]:
    """Yield pairs of rows and labels of data in memory.

    ``data`` is a numpy array, a pandas or polars frame, an Arrow table, or any other object with
    ``__arrow_c_stream__``, ``__dataframe__`` or ``__array__``. ``y`` may hold the labels separately; with ``missing``,
    NaN and null are missing readings, as for :func:`read_files`.

    >>> import numpy as np
    >>> [(X.shape, y.tolist()) for X, y in as_chunks(np.eye(3), y=["a", None, "b"])]
    [((3, 3), ['a', None, 'b'])]
    """
    speaks_arrow = hasattr(data, "__arrow_c_stream__") or hasattr(data, "__dataframe__")
    with named("the data"):
        table: Table = open_frame(data) if speaks_arrow else open_array(data)
    if features is None:  # includes counters and times: columns of a frame were chosen deliberately
        kinds = ("number", "counter")
        features = [column.name for column in table.schema.columns if column.kind in kinds and column.name != label]
        features = features or None
    columns = check_columns(table, "the data", choose_columns(table, "the data", features, label, None, False))
    given: Labels | None = None
    if y is not None:
        given, wrong = code_labels(y.tolist() if hasattr(y, "tolist") else list(y))
        if wrong:
            raise ValueError(f"y: {next(iter(wrong.values()))[1]}")
        n_rows = getattr(data, "num_rows", None) if not hasattr(data, "__len__") else len(data)
        if n_rows is not None and n_rows != len(given.codes):
            raise ValueError(f"y has {len(given.codes)} labels for {n_rows} rows; give one label per row")
    first = 0
    for chunk in good_rows(table, columns, "the data", skip_bad=on_bad_row == "skip", missing=missing):
        first += chunk.n_rows
        if given is not None and first > len(given.codes):
            raise ValueError(f"y has {len(given.codes)} labels for more rows than that; give one label per row")
        if len(chunk.X):
            yield chunk.X, chunk.y if given is None else given.take(chunk.rows - 1).array()
    if given is not None and first != len(given.codes):
        raise ValueError(f"y has {len(given.codes)} labels for {first} rows; give one label per row")
