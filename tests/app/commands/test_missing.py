"""Missing readings from file to events: every format, columns that die, timestamps that are not readings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ccmem import AdaptiveCCM
from ccmem.app.learner import Learner
from ccmem.cli import main
from ccmem.io.streams import as_chunks, read_files
from ccmem.io.streams.errors import BadRowError
from ccmem.layers.scaling import Scale

NAMES = ("heat", "flow", "hum")


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def rows(n_rows: int = 1200) -> Any:
    """Three sensors with occasional missing readings; one is silent at first, one dies."""
    rng = np.random.default_rng(0)
    X = rng.normal([20.0, 3.0, 0.5], [1.0, 0.1, 0.2], (n_rows, 3)).round(3)
    X[rng.random(X.shape) < 0.05] = np.nan
    X[:30, 1] = X[600:, 2] = np.nan
    X[:, 0] = np.where(np.isnan(X).all(axis=1), 20.0, X[:, 0])
    return X


def write(file: str, X: Any) -> None:
    """Write rows in the format given by the file name, with its representation of missing values."""
    kind = file.rpartition(".")[2]
    if kind == "csv":
        lines = [",".join("" if v != v else str(v) for v in row) for row in X.tolist()]
        Path(file).write_text("\n".join([",".join(NAMES), *lines]) + "\n")
    elif kind == "ndjson":
        named = [{k: None if v != v else v for k, v in zip(NAMES, row, strict=True)} for row in X.tolist()]
        Path(file).write_text("".join(json.dumps(record) + "\n" for record in named))
    elif kind == "npy":
        np.save(file, X)
    else:
        pa = pytest.importorskip("pyarrow")
        columns = {name: [None if v != v else v for v in X[:, j].tolist()] for j, name in enumerate(NAMES)}
        pytest.importorskip("pyarrow.parquet").write_table(pa.table(columns), file)


@pytest.mark.parametrize("kind", ["csv", "ndjson", "npy", "parquet"])
def test_gaps_are_learned_from_every_format(capsys: pytest.CaptureFixture[str], kind: str) -> None:
    X = rows()
    write(f"a.{kind}", X)
    assert main(["learn", f"a.{kind}", "--checkpoint", "m", "--events", "e.jsonl", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["rows"], facts["bad_rows"], facts["growing"]) == (1200, 0, [])
    memory, expected = Learner.load("m").memory, AdaptiveCCM().partial_fit(X)
    assert memory is not None
    np.testing.assert_array_equal(memory.prototypes_, expected.prototypes_)
    lines = [json.loads(line) for line in Path("e.jsonl").read_text().splitlines()]
    name = "2" if kind == "npy" else "hum"
    assert [(line["kind"], line["column"], line["column_name"]) for line in lines] == [("column_lost", 2, name)]
    assert main(["predict", f"a.{kind}", "--checkpoint", "m", "--out", "p.csv", "--json"]) == 0
    assert len(Path("p.csv").read_text().splitlines()) == 1201
    capsys.readouterr()
    assert main(["inspect", "m"]) == 0
    assert "lost" in capsys.readouterr().out


def test_rows_of_nothing_and_text_stay_bad(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.csv").write_text("a,b\n1,2\n,\n3,\n4,oops\n5,NA\n6,inf\n7,8\n")
    assert main(["learn", "a.csv", "--checkpoint", "m", "--on-bad-row", "skip", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["rows"], facts["bad_rows"]) == (4, 3)
    assert main(["learn", "a.csv", "--checkpoint", "n"]) != 0
    assert "row 2, column 'a': is missing or not a number" in capsys.readouterr().err
    assert main(["learn", "a.csv", "--checkpoint", "w", "--model", "wta", "--on-bad-row", "skip", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 2  # other models need every reading


def test_a_time_is_left_out_or_spoken_of(capsys: pytest.CaptureFixture[str]) -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    Path("a.csv").write_text("meter,a,b\n" + "".join(f"{100 + 1.5 * i},{a},{b}\n" for i, (a, b) in enumerate(X)))
    assert main(["learn", "a.csv", "--checkpoint", "m"]) == 0
    assert (
        "meter grows with every row; if it is a time or a row number, start again with --time meter"
        in capsys.readouterr().out
    )
    assert main(["learn", "a.csv", "--checkpoint", "n", "--time", "meter"]) == 0
    told = capsys.readouterr().out
    assert "grows" not in told
    assert "left out" not in told
    columns = Learner.load("n").columns
    assert columns is not None
    assert columns.features == ("a", "b")
    assert main(["learn", "a.csv", "--checkpoint", "o", "--time", "when"]) != 0
    assert "no column 'when' for the time" in capsys.readouterr().err


def test_streams_give_gaps_only_when_asked() -> None:
    write("a.csv", rows(50))
    with pytest.raises(BadRowError, match="is missing"):
        list(read_files("a.csv", features=NAMES))
    (X, y), *more = read_files("a.csv", missing=True)
    assert (X.shape, y, more) == ((50, 3), None, [])
    np.testing.assert_array_equal(np.isnan(X), np.isnan(rows(50)))
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": pandas.array([1, None, 3], "Int64"), "b": [0.5, 1.5, None]})
    ((X, _),) = as_chunks(frame, missing=True)
    np.testing.assert_array_equal(X, [[1, 0.5], [np.nan, 1.5], [3, np.nan]])


@pytest.mark.parametrize("kind", ["unit", "standard"])
def test_scaling_passes_over_gaps_however_rows_are_cut(kind: str) -> None:
    X = rows(200)
    whole, cut = Scale(kind, 3), Scale(kind, 3)
    expected = whole.learn(X)
    np.testing.assert_array_equal(np.isnan(expected), np.isnan(X))
    parts = []
    for part in np.split(X, [7, 90]):
        parts.append(cut.learn(part))
        cut = Scale.of(cut.export(), 3)
    np.testing.assert_array_equal(np.concatenate(parts), expected)
    there = X[~np.isnan(X[:, 1]), 1]
    if kind == "standard":
        np.testing.assert_allclose(whole.mean[1], there.mean())
        np.testing.assert_allclose(expected[199, 1], (X[199, 1] - there.mean()) / there.std())
