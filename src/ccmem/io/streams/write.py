"""Writing rows to a file of any readable format, or as CSV to standard output."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ccmem.core.typing import FloatArray
from ccmem.io.persistence.atomic import atomic_file
from ccmem.io.streams.arrow import pyarrow
from ccmem.io.streams.sources import FORMATS, STDIN, format_of

LABEL = "state"
TABLES = ("csv", "ndjson", "parquet", "arrow")
"""Formats that are written row by row."""

Write = Callable[[Mapping[str, Any]], Any]
"""Function that writes rows, given as one list or array per column."""


def write_table(
    path: str | os.PathLike[str],
    names: Sequence[str],
    chunks: Iterable[tuple[FloatArray, list[str | None]]],
    label: str = LABEL,
) -> None:
    """Write ``chunks`` under the column ``names`` and ``label``; the file appears only when complete."""
    with open_writer(os.fspath(path), {**dict.fromkeys(names, float), label: str}, tuple(FORMATS)) as write:
        for X, y in chunks:
            write({**dict(zip(names, X.T, strict=True)), label: y})


@contextlib.contextmanager
def open_writer(out: str, kinds: Mapping[str, type], formats: Sequence[str] = TABLES) -> Iterator[Write]:
    """Yield a function that writes rows to a file, which appears only when complete, or as CSV to ``-``.

    ``kinds``: name of each column -> str, int or float.
    """
    if out == STDIN:
        yield _csv_writer(sys.stdout, kinds)
        return
    kind = format_of(out)
    if kind not in formats or out.endswith(".gz"):
        raise ValueError(f"{out}: the name must end in .{', .'.join(formats[:-1])} or .{formats[-1]}")
    with atomic_file(out) as temporary:
        if kind in ("parquet", "arrow"):
            with _arrow_writer(temporary, kind, kinds) as write:
                yield write
        elif kind in ("npy", "npz"):
            parts: list[Mapping[str, Any]] = []
            yield parts.append
            _write_numpy(temporary, kind, kinds, parts)
        else:
            with temporary.open("w", newline="", encoding="utf-8") as file:
                yield _csv_writer(file, kinds) if kind == "csv" else _ndjson_writer(file)


def _rows(columns: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Yield rows of plain values."""
    plain = (column.tolist() if hasattr(column, "tolist") else column for column in columns.values())
    return zip(*plain, strict=True)


def _csv_writer(file: Any, kinds: Mapping[str, type]) -> Write:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(kinds)

    def write(columns: Mapping[str, Any]) -> None:
        writer.writerows(_rows(columns))
        file.flush()

    return write


def _ndjson_writer(file: Any) -> Write:
    def write(columns: Mapping[str, Any]) -> None:
        file.writelines(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in _rows(columns))

    return write


@contextlib.contextmanager
def _arrow_writer(path: Path, kind: str, kinds: Mapping[str, type]) -> Iterator[Write]:
    pa = pyarrow()
    types = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    schema = pa.schema([(name, types[kind]) for name, kind in kinds.items()])
    if kind == "parquet":
        from pyarrow import parquet

        writer = parquet.ParquetWriter(path, schema)
    else:
        writer = pa.ipc.new_file(str(path), schema)
    with writer:
        yield lambda columns: writer.write_table(pa.table(dict(columns), schema=schema))


def _write_numpy(path: Path, kind: str, kinds: Mapping[str, type], parts: Sequence[Mapping[str, Any]]) -> None:
    """Write a structured array, or a table and vectors of texts; numpy needs all rows in memory."""
    columns: dict[str, Any] = {}
    for name, of_kind in kinds.items():
        values = [part[name] for part in parts]
        is_text = of_kind is str
        columns[name] = np.array([v or "" for some in values for v in some]) if is_text else np.concatenate(values)
    with path.open("wb") as file:
        if kind == "npz":
            X = np.stack([columns[name] for name in kinds if kinds[name] is not str], axis=1)
            np.savez(file, X=X, **{name: columns[name] for name in kinds if kinds[name] is str})
        else:
            np.save(file, np.rec.fromarrays(list(columns.values()), names=list(columns)))  # type: ignore[call-overload]
