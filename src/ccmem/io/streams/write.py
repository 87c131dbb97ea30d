"""Writing chunks of rows and labels to a file of any readable format."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ccmem.core.typing import FloatArray
from ccmem.io.persistence.atomic import atomic_file

LABEL = "state"

Chunks = Iterable[tuple[FloatArray, list[str | None]]]


def write_table(path: str | os.PathLike[str], names: Sequence[str], chunks: Chunks, label: str = LABEL) -> None:
    """Write ``chunks`` under the column ``names`` and ``label``; the file appears only when complete."""
    from ccmem.io.streams.sources import format_of

    kind = format_of(os.fspath(path))
    if kind is None or os.fspath(path).endswith(".gz"):
        raise ValueError(f"{path}: the name must end in .csv, .ndjson, .parquet, .arrow, .npy or .npz")
    with atomic_file(path) as temporary:
        if kind in ("parquet", "arrow"):
            _write_arrow(temporary, kind, names, chunks, label)
        elif kind in ("npy", "npz"):
            _write_numpy(temporary, kind, names, chunks, label)
        else:
            with temporary.open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file, lineterminator="\n")
                if kind == "csv":
                    writer.writerow([*names, label])
                for X, y in chunks:
                    rows = ([*x, state] for x, state in zip(X.tolist(), y, strict=True))
                    if kind == "csv":
                        writer.writerows(rows)
                    else:
                        keys = [*names, label]
                        file.writelines(json.dumps(dict(zip(keys, row, strict=True))) + "\n" for row in rows)


def _write_arrow(path: Path, kind: str, names: Sequence[str], chunks: Chunks, label: str) -> None:
    from ccmem.io.streams.arrow import pyarrow

    pa = pyarrow()
    schema = pa.schema([*((name, pa.float64()) for name in names), (label, pa.string())])
    if kind == "parquet":
        from pyarrow import parquet

        writer = parquet.ParquetWriter(path, schema)
    else:
        writer = pa.ipc.new_file(str(path), schema)
    with writer:
        for X, y in chunks:
            columns = [pa.array(np.ascontiguousarray(X[:, i])) for i in range(X.shape[1])]
            writer.write_table(pa.Table.from_arrays([*columns, pa.array(y, pa.string())], schema=schema))


def _write_numpy(path: Path, kind: str, names: Sequence[str], chunks: Chunks, label: str) -> None:
    """Write a structured array, or a table and a vector of labels; numpy needs all rows in memory."""
    parts = list(chunks)
    X = np.concatenate([x for x, _ in parts])
    y: Any = np.array([state or "" for _, states in parts for state in states])
    with path.open("wb") as file:
        if kind == "npz":
            np.savez(file, X=X, **{label: y})
            return
        table = np.empty(len(X), [*((name, "f8") for name in names), (label, y.dtype)])
        for i, name in enumerate(names):
            table[name] = X[:, i]
        table[label] = y
        np.save(file, table)
