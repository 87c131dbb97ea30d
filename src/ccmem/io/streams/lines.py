"""Shared base of CSV and NDJSON: cut a byte stream after complete records, so that each is learned on arrival.

pyarrow parses a block if it is installed and finds no fault; otherwise Python parses the block record by record, which
defines the correct result and locates the faulty row and column. Both parsers return the same values, and the result
does not depend on how the bytes arrive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ccmem.io.streams.errors import SourceError
from ccmem.io.streams.records import LONGEST_LINE
from ccmem.io.streams.schema import Columns, Rules, Schema
from ccmem.io.streams.tables import Batch, Table

BLOCK = 1 << 20

Read = Callable[[int], bytes]
"""Function that returns up to the given number of bytes as soon as some are available; empty at the end."""


class Block(NamedTuple):
    """Bytes of complete records."""

    data: bytes
    start: int
    """Offset of the records in the file."""
    fault: str | None
    """Fault of the only record, if already known."""
    ended: bool
    """True if the last record has a line end."""


class LineTable(Table):
    """A table whose records are lines. ``hold`` leaves a last line without line end unread until more data arrives."""

    schema: Schema = Schema([])
    in_place = True

    def __init__(
        self,
        file: str,
        read: Read,
        seek: Callable[[int], Any] | None,
        close: Callable[[], Any],
        hold: bool = False,
        rules: Rules = Rules(),  # noqa: B008
    ) -> None:
        """Open a table; its layout and the roles of its columns are inferred from the first rows."""
        self._file, self._read, self._seek, self.close, self._hold = file, read, seek, close, hold
        self._rules = rules
        self.columns, self.single = [], set()
        self.has_rows = False
        self.offsets_in_file = True  # False if bytes are decompressed or decoded, not those of the file
        self.offset = 0  # of the first byte not yet returned
        self._pending = bytearray()
        self._without_end = 0  # length of the prefix known to hold no line end
        self._body = 0
        self._finished = False
        self._open()

    def _open(self) -> None:
        """Read the first rows; set ``columns``, ``schema`` and ``has_rows``."""
        raise NotImplementedError

    @property
    def held_back(self) -> int:  # type: ignore[override]
        return len(self._pending)

    @property
    def held_lines(self) -> int:  # type: ignore[override]
        return self._pending.count(b"\n")

    @property
    def end(self) -> int | None:  # type: ignore[override]
        return self.offset if self.offsets_in_file else None

    def expect_more(self) -> None:
        """Continue after the end of the data read so far; the end of a pipe also ends its last line."""
        self._finished = self._hold = False

    def batches(self, columns: Columns, skip: int, end: int | None) -> Iterator[Batch]:
        """Yield batches of rows."""
        row = 0
        self.text_labels = columns.text_labels
        if self._seek is not None and end is not None and self._body <= end:
            row = skip
            self._seek(end)
            self._restart(b"", end)
            self._finished = False
        while (block := self._block()) is not None:
            batch = self._parse(block, columns._replace(text_labels=self.text_labels))
            if not self.offsets_in_file:
                batch = batch._replace(ends=None)  # offsets in decompressed or decoded data are not file offsets
            n_rows = len(batch.X)
            if row + n_rows > skip:
                yield batch.after(max(skip - row, 0))
            row += n_rows

    def _restart(self, pending: bytes, offset: int) -> None:
        self._pending, self._without_end, self.offset = bytearray(pending), 0, offset

    def _block(self) -> Block | None:
        """Return the next complete records, at least one; None at the end."""
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
        """Return the fault of a last record beyond its missing line end; None if there is none."""
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
        """Return the end of the last complete record read so far (0 if none), and the fault of that record or None."""
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
