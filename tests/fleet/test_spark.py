"""A fleet on Spark: the bytes of a plain loop, also when the driver dies. Needs extra and Java: make test SPARK=1."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
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
    """Write three files, one batch each, with shuffled rows of four keys; return the rows of every key."""
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


class State:
    """The value state of one key, with the interface of Spark."""

    def __init__(self) -> None:
        self.value: Any = None

    def getValueState(self, name: str, schema: str) -> State:  # noqa: N802
        return self

    def exists(self) -> bool:
        return self.value is not None

    def get(self) -> Any:
        return self.value

    def update(self, value: Any) -> None:
        self.value = value


def test_bad_rows_are_told_with_their_key_and_change_nothing() -> None:
    import pandas as pd

    from ccmem.fleet.spark import Recipe, _processor
    from ccmem.fleet.step import LateRowsError

    def frame(order: list[Any], x0: list[Any]) -> pd.DataFrame:
        return pd.DataFrame({"order": order, "x0": x0, "x1": 1.0})

    for late in ("stop", "drop"):
        state, processor = State(), _processor(Recipe(), 2, True, late)
        processor.init(state)
        list(processor.handleInputRows(("pump",), iter([frame([2, 1], [1.0, 0.5])]), None))
        learned, infinite = state.value, frame([3, 4], [float("inf"), 1.0])
        assert learned is not None
        for bad, why in ((frame([3, None], [1.0, 1.0]), "key 'pump': a row has no order"), (infinite, "inf")):
            with pytest.raises(ValueError, match=why):
                list(processor.handleInputRows(("pump",), iter([bad]), None))
        with pytest.raises(ValueError, match="no key"):
            list(processor.handleInputRows((None,), iter([frame([3], [1.0])]), None))
        again = iter([frame([2, 1], [1.0, 0.5])])
        if late == "stop":
            with pytest.raises(LateRowsError, match=r"key 'pump': 2 of 2 rows .* last one learned \(2\)"):
                list(processor.handleInputRows(("pump",), again, None))
        else:
            assert not list(processor.handleInputRows(("pump",), again, None))
        assert state.value == learned
        list(processor.handleInputRows(("pump",), iter([frame([3], [1.0])]), None))
        assert state.value != learned


def test_columns_that_are_missing_or_of_the_wrong_type_are_named() -> None:
    from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

    from ccmem.fleet.spark import learn

    kinds = {"machine": StringType(), "time": LongType(), "note": StringType(), "a": DoubleType()}
    rows = SimpleNamespace(schema=StructType([StructField(name, kind) for name, kind in kinds.items()]))
    for key, order, features, late, why in (
        ("machin", "time", ["a"], "drop", "no column 'machin'; its columns are 'machine', 'time'"),
        ("machine", "when", ["a"], "drop", "no column 'when'"),
        ("machine", "time", ["a", "b"], "drop", "no column 'b'"),
        ("a", "time", ["a"], "drop", "the key 'a' is of type double"),
        ("machine", "note", ["a"], "drop", "the order 'note' is of type string"),
        ("machine", "time", ["a"], "wait", "late='wait' is unknown"),
    ):
        with pytest.raises(ValueError, match=why):
            learn(rows, key=key, order=order, features=features, late=late)


def outcome(folder: Path, printed: str) -> tuple[dict[int, bytes], list[Any]]:
    """Return the states and events left by a driver."""
    from pyarrow import parquet

    found = {int(key): bytes.fromhex(state) for key, state in map(str.split, printed.splitlines())}
    parts = [parquet.read_table(part) for part in sorted((folder / "events").glob("batch-*"))]
    return found, sorted(tuple(row.values()) for part in parts for row in part.to_pylist())


def plain_loop(given: dict[int, Any]) -> tuple[dict[int, bytes | None], list[Any]]:
    from ccmem import AdaptiveCCM
    from ccmem.fleet import Recipe, Rows, step

    states, events = {}, []
    for key, (time, X) in given.items():
        states[key], more = step(key, None, Rows(time, X), Recipe(AdaptiveCCM(n_slots=5)))
        events += [tuple(event) for event in more]
    assert events
    return states, sorted(events)


def test_memories_and_events_are_those_of_a_plain_loop_though_the_driver_was_killed(tmp_path: Path) -> None:
    given = write_rows(tmp_path / "rows")
    command = [sys.executable, DRIVER, *(str(tmp_path / name) for name in ("rows", "events", "checkpoint")), "3"]
    for more, code in ((["after", "2"], -9), (["before", "1"], -9), ([], 0)):
        done = subprocess.run([*command, *more], capture_output=True, text=True, check=False, start_new_session=True)
        assert done.returncode == code, done.stderr[-3000:]
    assert outcome(tmp_path, done.stdout) == plain_loop(given)


def test_messages_as_of_kafka_are_learned_like_rows(tmp_path: Path) -> None:
    from pyarrow import parquet

    given = write_rows(tmp_path / "rows")
    for file in (tmp_path / "rows").iterdir():
        lines = [json.dumps(row) for row in parquet.read_table(file).to_pylist()]
        file.with_suffix(".json").write_text("\n".join(lines))
        os.utime(file.with_suffix(".json"), (file.stat().st_mtime,) * 2)
        file.unlink()
    command = [sys.executable, DRIVER, *(str(tmp_path / name) for name in ("rows", "events", "checkpoint")), "3"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, start_new_session=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert outcome(tmp_path, done.stdout) == plain_loop(given)
