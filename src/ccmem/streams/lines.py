"""What CSV and NDJSON share: cutting a stream of bytes after whole records, each learned as soon as it has arrived.

pyarrow parses a block where it is installed and finds nothing wrong; otherwise the block is parsed record by record in
Python, which defines what is right and knows which row and column is not. Both give the same values, and how the bytes
happen to arrive changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ccmem._typing import IntArray
from ccmem.streams.tables import Batch, Columns, Labels, SourceError, code_labels

BLOCK = 1 << 20
LONGEST_LINE = 64 << 20
LOOKED_AT = 100
"""How many records may pass before every column must have shown whether it holds numbers."""

Read = Callable[[int], bytes]
"""Some bytes, at most so many, as soon as there are any; none at the end."""


class Block(NamedTuple):
    """Whole records."""

    data: bytes
    start: int
    """Where they begin in the file."""
    fault: str | None
    """What is wrong with the only record, if that is known already."""
    ended: bool
    """Whether the last record has its line end."""


class LineTable:
    """A table whose records are lines. ``hold`` leaves a last line without its end for later, when more has come."""

    columns: list[str]
    numeric: list[str]
    undecided: list[str]
    single: set[str]
    open_ended = False
    in_place = True

    def __init__(
        self, file: str, read: Read, seek: Callable[[int], Any] | None, close: Callable[[], Any], hold: bool = False
    ) -> None:
        self._file, self._read, self._seek, self.close, self._hold = file, read, seek, close, hold
        self.columns, self.numeric, self.undecided, self.single = [], [], [], set()
        self.text_labels: bool | None = None
        self.has_rows = False
        self.ended = True  # whether the last record handed over had its line end
        self.offset = 0  # of the first byte not yet handed over
        self._pending = bytearray()
        self._without_end = 0  # so many bytes of it hold no line end
        self._body = 0
        self._finished = False

    @property
    def held_back(self) -> int:
        """How many bytes at the end are left for later, once everything has been read."""
        return len(self._pending)

    @property
    def held_lines(self) -> int:
        """How many of their lines are whole."""
        return self._pending.count(b"\n")

    def batches(self, columns: Columns, skip: int, anchor: tuple[int, int] | None) -> Iterator[Batch]:
        """See :class:`~ccmem.streams.tables.Table`."""
        row = 0
        self.text_labels = columns.text_labels
        if self._seek is not None and anchor is not None and self._body <= anchor[1] and anchor[0] <= skip:
            row = anchor[0]
            self._seek(anchor[1])
            self._restart(b"", anchor[1])
            self._finished = False
        while (block := self._block()) is not None:
            batch = self._parse(block, columns._replace(text_labels=self.text_labels))
            n_rows = len(batch.X)
            if row + n_rows > skip:
                yield batch.after(max(skip - row, 0))
            row += n_rows

    def _restart(self, pending: bytes, offset: int) -> None:
        self._pending, self._without_end, self.offset = bytearray(pending), 0, offset

    def _block(self) -> Block | None:
        """The next whole records that have been read, at least one; None at the end."""
        while True:
            end, fault = self._cut()
            if end:
                return self._take(end, fault)
            if self._finished:
                held = self._hold or not self._pending
                return None if held else self._take(len(self._pending), self._fault_at_end())
            self._read_more()

    def _read_more(self) -> None:
        if len(self._pending) > LONGEST_LINE:
            raise SourceError(f"{self._file}: a line is longer than {LONGEST_LINE >> 20} MiB; is this not a text file?")
        more = self._read(BLOCK)
        self._pending += more
        self._finished = not more

    def _fault_at_end(self) -> str | None:
        """What is wrong with a last record that has no line end, beyond that."""
        return None

    def _take(self, end: int, fault: str | None) -> Block:
        data = bytes(self._pending[:end])
        self.ended = data.endswith(b"\n")
        block = Block(data, self.offset, fault, self.ended)
        del self._pending[:end]
        self._without_end = 0
        self.offset += end
        return block

    def _cut(self) -> tuple[int, str | None]:
        """Where the last whole record read so far ends (0 if none does), and what is wrong with it, if anything."""
        end = self._pending.rfind(b"\n", self._without_end) + 1
        if not end:
            self._without_end = len(self._pending)
        return end, None

    def _parse(self, block: Block, columns: Columns) -> Batch:
        if block.fault is None:
            batch = self._parse_fast(block, columns)
            if batch is not None:
                return batch
        return self._parse_slowly(block, columns)

    def _parse_fast(self, block: Block, columns: Columns) -> Batch | None:
        raise NotImplementedError

    def _parse_slowly(self, block: Block, columns: Columns) -> Batch:
        raise NotImplementedError


class Records:
    """Rows in the making: numbers, label, fault and the place where each ends."""

    def __init__(self, columns: Columns, start: int) -> None:
        self._columns, self._start = columns, start
        self._rows: list[list[float]] = []
        self._labels: list[Any] = []
        self._ends: list[int] = []
        self._faults: dict[int, tuple[str | None, str]] = {}

    def add(self, numbers: list[float] | None, label: Any, fault: tuple[str | None, str] | None, end: int) -> None:
        """One more row, which ends ``end`` bytes after the block begins."""
        if fault is not None:
            self._faults[len(self._rows)] = fault
        self._rows.append(numbers if numbers is not None else [np.nan] * len(self._columns.features))
        self._labels.append(label)
        self._ends.append(self._start + end)

    def batch(self) -> Batch:
        """All of them."""
        coded: Labels | None = None
        if self._columns.label is not None:
            coded, wrong = code_labels(self._labels)
            for row, what in wrong.items():
                self._faults.setdefault(row, (self._columns.label, what))
        X = np.array(self._rows, np.float64).reshape(len(self._rows), len(self._columns.features))
        with np.errstate(over="ignore"):
            X = X.astype(self._columns.dtype, copy=False)
        return Batch(X, coded, self._faults, np.array(self._ends, np.int64))


def line_ends(data: bytes) -> IntArray:
    """Where every line of ``data`` ends; its last one may lack its end."""
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n")).astype(np.int64) + 1
    return ends if data.endswith(b"\n") else np.append(ends, len(data))


def is_number(text: str) -> bool:
    """Whether ``text`` is a number as other programs write them."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text and text.isascii()
