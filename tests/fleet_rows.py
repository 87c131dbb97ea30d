"""Shared helpers of the fleet tests: rows of a few keys, results of a plain loop, contents of a store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ccmem import AdaptiveCCM
from ccmem.fleet import Recipe, Rows, step
from ccmem.fleet.store import Store

N_KEYS, N_ROWS = 7, 600
RECIPE = Recipe(AdaptiveCCM(n_slots=2), "standard")


def rows(text: bool = True) -> Any:
    """Rows of all keys, interleaved in time; a table with columns machine, time, a, b, c."""
    import pyarrow as pa

    rng = np.random.default_rng(3)
    key, time = np.tile(np.arange(N_KEYS), N_ROWS), np.repeat(np.arange(N_ROWS), N_KEYS)
    centres = rng.normal(size=(N_KEYS, 2, 3))
    X = (centres[key, time // 250 % 2] + 0.1 * rng.normal(size=(len(key), 3))).astype(np.float32)
    machine = [f"m{k}" for k in key] if text else key
    return pa.table({"machine": machine, "time": time, "a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})


def files(folder: Path) -> list[str]:
    """Write the rows as two files of several row groups, each shuffled."""
    import pyarrow as pa
    from pyarrow import parquet

    table = rows()
    half = table.num_rows // 2
    for name, part in (("a", table.slice(0, half)), ("b", table.slice(half))):
        places = np.lexsort((np.random.default_rng(0).random(part.num_rows), np.arange(part.num_rows) // 300))
        parquet.write_table(part.take(pa.array(places)), folder / f"{name}.parquet", row_group_size=300)
    return [str(folder / "a.parquet"), str(folder / "b.parquet")]


def plain_loop() -> tuple[dict[str, bytes], list[Any]]:
    """Compute states and events with a loop over keys."""
    table, states, events = rows(), {}, []
    names = np.array(table.column("machine").to_pylist())
    X = np.stack([table.column(name).to_numpy() for name in "abc"], axis=1)
    for name in sorted(set(names)):
        mine = names == name
        state, happened = step(name, None, Rows(table.column("time").to_numpy()[mine], X[mine]), RECIPE)
        assert state is not None
        states[name] = state
        events += happened
    return states, events


def content(store: Path) -> tuple[dict[Any, bytes], list[Any]]:
    """Return the states and events of a store."""
    from pyarrow import parquet

    opened = Store(store)
    states = {key: state for bucket in range(opened.buckets) for key, state in opened.states(bucket)}
    found = (
        parquet.read_table(store / "events", use_threads=False).to_pylist() if any((store / "events").iterdir()) else []
    )
    return states, sorted(tuple(event.values()) for event in found)
