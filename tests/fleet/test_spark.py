"""A fleet on Spark: the bytes of a plain loop, also when the driver dies. Needs extra and Java: make test SPARK=1."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

if importlib.util.find_spec("pyspark") is None:
    pytest.skip("Spark is not installed: make test SPARK=1", allow_module_level=True)
if shutil.which("java") is None:
    pytest.skip("Spark needs Java 17 (Debian: openjdk-17-jre-headless)", allow_module_level=True)

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]

DRIVER = str(Path(__file__).with_name("spark_driver.py"))


def write_rows(folder: Path) -> dict[int, Any]:
    """Three files, one batch each, with rows of four keys, shuffled; and the rows of every key."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    key, time = np.tile(np.arange(4), 240), np.repeat(np.arange(240), 4)
    X = rng.normal(size=(4, 2, 3))[key, time // 90 % 2] + 0.1 * rng.normal(size=(960, 3))
    folder.mkdir()
    for i, part in enumerate(np.split(np.arange(960), 3)):
        mixed = rng.permutation(part)
        columns = {f"x{j}": X[mixed, j].astype(np.float32) for j in range(3)}
        file = folder / f"{i}.parquet"
        parquet.write_table(pa.table({"machine": key[mixed], "time": time[mixed], **columns}), file)
        os.utime(file, (1_000_000_000 + i,) * 2)
    return {k: (time[key == k], X[key == k].astype(np.float32)) for k in range(4)}


def test_memories_and_events_are_those_of_a_plain_loop_though_the_driver_was_killed(tmp_path: Path) -> None:
    from pyarrow import parquet

    from ccmem import AdaptiveCCM
    from ccmem.fleet import Recipe, Rows, step

    given = write_rows(tmp_path / "rows")
    command = [sys.executable, DRIVER, *(str(tmp_path / name) for name in ("rows", "events", "checkpoint")), "3"]
    for more, code in ((["after", "2"], -9), (["before", "1"], -9), ([], 0)):
        done = subprocess.run([*command, *more], capture_output=True, text=True, check=False, start_new_session=True)
        assert done.returncode == code, done.stderr[-3000:]
    lines = [line.split() for line in done.stdout.splitlines()]
    found = {int(key): bytes.fromhex(state) for key, state in lines}
    parts = [parquet.read_table(part) for part in sorted((tmp_path / "events").glob("batch-*"))]
    happened = sorted(tuple(row.values()) for part in parts for row in part.to_pylist())
    states, events = {}, []
    for key, (time, X) in given.items():
        states[key], more = step(key, None, Rows(time, X), Recipe(AdaptiveCCM(n_slots=5)))
        events += [tuple(event) for event in more]
    assert found == states
    assert happened == sorted(events)
    assert events
