"""Real-world files are read as they are, or refused with advice."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from ccmem.cli import main
from ccmem.io.streams import sources
from ccmem.io.streams.files import FileStream

sys.path.insert(0, str(Path(__file__).parent))
from cases import Case, cases

CASES = {case.name: case for case in cases()}


def test_there_are_at_least_forty_files() -> None:
    assert len(CASES) >= 40


@pytest.mark.parametrize("name", CASES)
def test_a_file_is_read_as_it_is(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    case: Case = CASES[name]
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(case.content)
    code = main(["learn", name, *case.options, "--events", "e.jsonl", "--json"])
    out, err = capsys.readouterr()
    assert code == case.exit_code, err
    if code:
        assert case.says in err
        return
    facts = json.loads(out)
    assert tuple(facts["columns"]) == case.columns
    assert facts["rows"] == case.rows
    assert facts["time"] == case.time
    assert case.says in json.dumps([*facts["left_out"].values(), *facts["timing"]])
    events = [json.loads(line) for line in Path("e.jsonl").read_text().splitlines()]
    assert [event["kind"] for event in events] == ["new_block", "recall"]
    assert abs(events[0]["onset"] - 300) <= 60
    if case.time is None:
        assert all(event["time"] is None for event in events)
    else:
        assert case.first_event is not None
        assert events[0]["when"].startswith(case.first_event), events[0]["when"]


@pytest.mark.parametrize("name", ["pandas.csv", "r-write-table.txt", "excel-de.csv", "texts.csv", "mqtt.jsonl"])
def test_look_agrees_with_learn(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    case: Case = CASES[name]
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(case.content)
    assert main(["look", name, *case.options, "--json"]) == case.exit_code
    facts = json.loads(capsys.readouterr().out)
    assert tuple(facts["learn"]) == (() if case.exit_code else case.columns)
    assert facts["time"] == case.time
    assert main(["look", name, *case.options]) == case.exit_code
    text = capsys.readouterr().out
    assert all(column["name"] in text for column in facts["columns"])
    if case.time is not None:
        assert "a row every 1 min" in text


@pytest.mark.skipif(os.name != "posix", reason="waits for a pipe")
@pytest.mark.parametrize(
    "name", ["pandas-missing-first.csv", "r-write-table.txt", "excel-de-unicode.txt", "plc-preamble.csv", "mqtt.jsonl"]
)
def test_a_pipe_is_read_like_a_file(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / name).write_bytes(CASES[name].content)
    ours, theirs = os.pipe()

    def write() -> None:
        with os.fdopen(theirs, "wb") as pipe:
            pipe.write(CASES[name].content)

    writer = threading.Thread(target=write)
    writer.start()
    with os.fdopen(ours) as pipe:
        monkeypatch.setattr(sys, "stdin", pipe)
        columns, X = read_all("-")
    writer.join()
    expected, whole = read_all(str(tmp_path / name))
    assert columns == expected
    np.testing.assert_array_equal(X, whole)


def read_all(source: str) -> tuple[list[str], np.ndarray]:
    stream = FileStream([source], missing=True)
    X = np.concatenate([chunk.X for chunk in stream.chunks()])
    assert stream.columns is not None
    return [*stream.columns.features, *stream.columns.time], X


@pytest.mark.skipif(os.name != "posix", reason="waits for a pipe")
def test_a_slow_pipe_waits_until_every_column_has_had_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "PIPE_SECONDS", 0.01)
    ours, theirs = os.pipe()

    def write() -> None:
        with os.fdopen(theirs, "wb", buffering=0) as pipe:
            for line in (b"a,b\n", b"NA,1\n", b"5,", b"2\n6,3\n"):
                pipe.write(line)
                time.sleep(0.05)

    writer = threading.Thread(target=write)
    writer.start()
    with os.fdopen(ours) as pipe:
        monkeypatch.setattr(sys, "stdin", pipe)
        columns, X = read_all("-")
    writer.join()
    assert columns == ["a", "b"]
    np.testing.assert_array_equal(X, [[np.nan, 1], [5, 2], [6, 3]])
