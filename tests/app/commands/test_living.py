"""The commands generate, learn, predict and inspect, as a user calls them."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ccmem import CCM, ModalClassifier, ShapeLayer, load
from ccmem.app.learner import Learner
from ccmem.cli import main
from ccmem.io.persistence.atomic import BusyError, locked
from ccmem.metrics import score_events

pytest.importorskip("pyarrow")

CLEAN = [
    "--model",
    "ccm",
    "--param",
    "n_slots=1",
    "--param",
    "vigilance=0.85",
    "--param",
    "commit_limit=10",
    "--param",
    "recall_limit=15",
]
"""Settings that separate the states of the generated stream without errors."""


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def generate(name: str, rows: int = 6000, *more: str) -> None:
    assert main(["generate", "drift", name, "--rows", str(rows), "--segment", "800", *more]) == 0


def summary(capsys: pytest.CaptureFixture[str], words: list[str], code: int = 0) -> dict[str, Any]:
    capsys.readouterr()
    assert main([*words, "--json"]) == code
    return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]


def failure(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert main(list(words)) == 1
    return capsys.readouterr().err


def test_generate_learn_go_on_predict_inspect(capsys: pytest.CaptureFixture[str]) -> None:
    generate("a.parquet", 6000, "--changes", "changes.json")
    facts = summary(
        capsys, ["learn", "a.parquet", "--label", "state", "--checkpoint", "m", "--events", "e.jsonl", *CLEAN]
    )
    assert (facts["rows"], facts["bad_rows"], facts["blocks"], facts["stopped_by"]) == (6000, 0, 4, None)

    changes = json.loads(Path("changes.json").read_text())["changes"]
    events = [json.loads(line) for line in Path("e.jsonl").read_text().splitlines()]
    score = score_events(events, [change["step"] for change in changes], tasks=["idle", *(c["state"] for c in changes)])
    assert (score.missed, score.false_alarms) == (0, 0)
    assert score.right_recalls == score.returns == facts["events"] - 3
    assert all(event["row"] == event["step"] + 1 and event["file"] == "a.parquet" for event in events)

    scored = summary(capsys, ["inspect", "m", "--changes", "changes.json"])["score"]
    assert (scored["found"], scored["false_alarms"]) == (score.found, 0)
    Path("wrong.json").write_text("[1]")
    assert "not a list of changes" in failure(capsys, "inspect", "m", "--changes", "wrong.json")

    generate("b.csv", 2000, "--seed", "0")
    facts = summary(capsys, ["learn", "a.parquet", "b.csv", "--checkpoint", "m"])
    assert (facts["rows"], facts["total_rows"]) == (2000, 8000)  # a.parquet is known already
    assert summary(capsys, ["learn", "b.csv", "--checkpoint", "m"])["rows"] == 0
    assert summary(capsys, ["learn", "b.csv", "--checkpoint", "m", "--again"])["total_rows"] == 10_000

    facts = summary(capsys, ["predict", "a.parquet", "--checkpoint", "m", "--out", "p.csv", "--units"])
    assert facts["rows"] == 6000
    assert facts["accuracy"] > 0.99
    lines = Path("p.csv").read_text().splitlines()
    assert lines[0] == "label,unit,block"
    assert len(lines) == 6001

    facts = summary(capsys, ["inspect", "m"])
    assert facts["rows_seen"] == facts["learner"]["rows_learned"] == 10_000
    assert [block["labels"] for block in facts["blocks"]] != []
    assert sum(block["wins"] for block in facts["blocks"]) > 9000
    assert main(["inspect", "m", "--plot", "m.png"]) == 0
    assert "block  units" in capsys.readouterr().out
    assert Path("m.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("scale", ["none", "unit", "standard"])
def test_the_command_equals_the_library_and_scaling_is_kept(scale: str) -> None:
    from ccmem.io.streams import read_files
    from ccmem.layers.scaling import Scale

    generate("a.npy", 3000)
    assert (
        main(["learn", "a.npy", "--label", "state", "--checkpoint", "m", "--scale", scale, "--every", "700", *CLEAN])
        == 0
    )
    scaler = Scale(scale, 8)
    classifier = ModalClassifier(CCM(n_slots=1, vigilance=0.85, commit_limit=10, recall_limit=15, random_state=0))
    for X, y in read_files("a.npy", label="state"):
        for start in range(0, len(X), 37):  # chunks must not matter
            classifier.partial_fit(scaler.learn(X[start : start + 37]), y[start : start + 37])
    by_command = load("m")
    np.testing.assert_array_equal(by_command.memory_.prototypes_, classifier.memory_.prototypes_)
    np.testing.assert_array_equal(by_command.votes_, classifier.votes_)
    assert by_command.memory_.events_ == classifier.memory_.events_
    assert main(["predict", "a.npy", "--checkpoint", "m", "--out", "p.ndjson"]) == 0
    answers = [json.loads(line)["label"] for line in Path("p.ndjson").read_text().splitlines()]
    X = np.concatenate([X for X, _ in read_files("a.npy", label="state")])
    assert answers == classifier.predict(scaler.apply(X)).tolist()


@pytest.mark.parametrize("kind", ["csv", "ndjson", "parquet", "arrow", "npy", "npz"])
def test_every_format_leads_to_the_same_memory(kind: str) -> None:
    generate(f"a.{kind}", 1500)
    assert main(["learn", f"a.{kind}", "--label", "state", "--checkpoint", "m", *CLEAN]) == 0
    generate("reference.csv", 1500)
    assert main(["learn", "reference.csv", "--label", "state", "--checkpoint", "r", *CLEAN]) == 0
    np.testing.assert_array_equal(load("m").memory_.prototypes_, load("r").memory_.prototypes_)
    np.testing.assert_array_equal(load("m").votes_, load("r").votes_)


@pytest.mark.parametrize(
    "words",
    [
        ["mlp", "--param", "hidden_sizes=(6,)"],
        ["gated-mlp", "--param", "gated_units=5"],
        ["wta"],
        ["gmm"],
        ["artc2a", "--param", "max_units=20"],
        ["ccm"],
        ["adaptive", "--param", "max_units=40"],
    ],
    ids=lambda words: words[0],
)
def test_every_model_is_learned_gone_on_with_and_inspected(
    capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    generate("a.csv", 600)
    start = ["learn", "a.csv", "--label", "state", "--scale", "standard", "--model", *words, "--checkpoint"]
    assert main([*start, "whole"]) == 0
    assert main([*start, "parts", "--max-rows", "250"]) == 0
    assert main(["learn", "a.csv", "--checkpoint", "parts"]) == 0
    assert Path("parts").read_bytes() == Path("whole").read_bytes()
    assert summary(capsys, ["predict", "a.csv", "--checkpoint", "whole", "--out", "p.csv"])["rows"] == 600
    assert summary(capsys, ["inspect", "whole"])["rows_seen"] == 600
    assert main(["inspect", "whole"]) == 0


def test_limits_and_bad_rows(capsys: pytest.CaptureFixture[str]) -> None:
    generate("a.csv", 3000)
    lines = Path("a.csv").read_text().splitlines()
    lines[2001] = "oops" + lines[2001][lines[2001].index(",") :]
    Path("a.csv").write_text("\n".join(lines) + "\n")
    facts = summary(capsys, ["learn", "a.csv", "--label", "state", "--checkpoint", "m", "--max-rows", "500"])
    assert (facts["rows"], facts["stopped_by"]) == (500, "max-rows")
    facts = summary(capsys, ["learn", "a.csv", "--checkpoint", "m", "--max-seconds", "0"])
    assert facts["stopped_by"] == "max-seconds"
    told = failure(capsys, "learn", "a.csv", "--checkpoint", "m")
    assert "a.csv, row 2001, column 'sensor_0': 'oops' is not a number" in told
    assert Learner.load("m").rows == 2000  # everything before it
    facts = summary(capsys, ["learn", "a.csv", "--checkpoint", "m", "--on-bad-row", "skip"])
    assert (facts["rows"], facts["bad_rows"], facts["total_rows"]) == (999, 1, 2999)
    assert "row 2001" in failure(capsys, "predict", "a.csv", "--checkpoint", "m", "--out", "p.csv")
    assert not Path("p.csv").exists()
    facts = summary(capsys, ["predict", "a.csv", "--checkpoint", "m", "--out", "p.parquet", "--on-bad-row", "skip"])
    assert facts["rows"] == 3000
    from pyarrow import parquet

    answers = parquet.read_table("p.parquet").column("label").to_pylist()
    assert [row for row, answer in enumerate(answers) if answer is None] == [2000]


def test_a_model_of_another_make_is_not_gone_on_with(capsys: pytest.CaptureFixture[str]) -> None:
    generate("a.csv", 1000)
    assert main(["learn", "a.csv", "--label", "state", "--checkpoint", "m", *CLEAN]) == 0
    for words, told in (
        (["--model", "wta"], "--model wta (it holds CCM)"),
        (["--param", "vigilance=0.5"], "it has 0.85"),
        (["--scale", "unit"], "it has none"),
        (["--label", "sensor_0"], "--label sensor_0 (it has state)"),
        (["--features", "sensor_1"], "it has sensor_0,"),
    ):
        assert told in failure(capsys, "learn", "a.csv", "--checkpoint", "m", *words)
    assert main(["learn", "a.csv", "--checkpoint", "m", "--model", "ccm", "--param", "vigilance=0.85"]) == 0


@pytest.mark.parametrize(
    "words",
    [
        ["--model", "svm"],
        ["--param", "slots=3"],
        ["--param", "n_slots"],
        ["--param", "n_slots=-1"],
        ["--label", "nothing"],
        ["--features", "sensor_0,sensor_99"],
    ],
    ids=" ".join,
)
def test_a_wrong_start_is_explained_and_may_be_corrected(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    generate("a.csv", 200)
    told = failure(capsys, "learn", "a.csv", "--checkpoint", "m", *words)
    assert words[1].split("=")[0].split(",")[-1] in told
    assert "Traceback" not in told
    assert main(["learn", "a.csv", "--checkpoint", "m", "--label", "state", "--scale", "unit"]) == 0


def test_damaged_and_foreign_checkpoints_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    generate("a.csv", 200)
    assert main(["learn", "a.csv", "--checkpoint", "m"]) == 0
    good = Path("m").read_bytes()
    for data in (b"", b"hello", good[:-1], good[:500] + b"x" + good[501:]):
        Path("m").write_bytes(data)
        for words in (["learn", "a.csv"], ["predict", "a.csv"]):
            assert "m cannot be loaded" in failure(capsys, *words, "--checkpoint", "m")
        assert "m cannot be loaded" in failure(capsys, "inspect", "m")
        assert Path("m").read_bytes() == data
    assert "there is no file absent" in failure(capsys, "inspect", "absent")


def test_a_checkpoint_made_in_python_is_gone_on_with_and_the_other_way_round(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pandas = pytest.importorskip("pandas")
    generate("a.csv", 1000)
    frame = pandas.read_csv("a.csv")
    names = [f"sensor_{i}" for i in range(8)]
    CCM(random_state=0).partial_fit(frame[names]).save("m")
    assert summary(capsys, ["learn", "a.csv", "--checkpoint", "m"])["rows"] == 1000
    memory = load("m")
    assert memory.n_samples_seen_ == 2000
    assert memory.partial_fit(frame[names]).n_samples_seen_ == 3000


def test_events_files_that_were_changed_are_not_touched(capsys: pytest.CaptureFixture[str]) -> None:
    generate("a.csv", 4000)
    words = ["learn", "a.csv", "--checkpoint", "m", "--events", "e.jsonl", *CLEAN]
    assert main([*words, "--max-rows", "2000"]) == 0
    Path("e.jsonl").write_text("something else\n" * 30)
    assert "not the events file" in failure(capsys, *words)
    assert Path("e.jsonl").read_text() == "something else\n" * 30
    assert main([*words[:-10], "--events", "f.jsonl"]) == 0
    assert Path("f.jsonl").read_text().count("\n") >= 1


# Concurrent runs ----------------------------------------------------------------------------------------------------


def test_a_second_process_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    generate("a.csv", 200)
    with locked("m"):
        told = failure(capsys, "learn", "a.csv", "--checkpoint", "m")
        assert f"m is in use by process {os.getpid()}" in told
        with pytest.raises(BusyError), locked("m"):
            pass
    assert main(["learn", "a.csv", "--checkpoint", "m"]) == 0
    assert not Path(".m.ccmem-lock").exists()


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_lock_left_by_a_killed_process_is_recognised_and_its_litter_removed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    generate("a.csv", 200)
    code = """
from ccmem.io.persistence.atomic import locked
with locked("m"):
    print("held", flush=True)
    input()
"""
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert f"process {holder.pid}" in failure(capsys, "learn", "a.csv", "--checkpoint", "m")
        holder.kill()
    assert Path(".m.ccmem-lock").exists()
    Path(f".m.host.{holder.pid}-0.tmp").write_bytes(b"half a checkpoint")
    assert main(["learn", "a.csv", "--checkpoint", "m"]) == 0
    assert f"taking over the lock that process {holder.pid} on" in capsys.readouterr().err
    assert {file.name for file in Path().iterdir()} == {"a.csv", "m"}


# Pipes and signals --------------------------------------------------------------------------------------------------


def start(*words: str) -> subprocess.Popen[bytes]:
    """Start the command in a separate process; without the JIT, which starts sooner."""
    return subprocess.Popen(
        [sys.executable, "-m", "ccmem.cli", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    )


def wait_for_rows(rows: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until the checkpoint has ``rows`` rows, without a time limit; the process must not end before."""
    while not (Path("m").exists() and Learner.load("m").rows >= rows):
        assert process.poll() is None, f"it ended before its checkpoint had {rows} rows"
        time.sleep(0.05)  # yields the processor; the test does not depend on the duration


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.usefixtures("hang_up_heard")
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (getattr(signal, "SIGHUP", 1), 129)]
)
def test_a_slow_pipe_is_learned_at_once_and_a_signal_saves(number: int, code: int) -> None:
    generate("a.ndjson", 50)
    lines = Path("a.ndjson").read_bytes().splitlines(keepends=True)
    with start(
        "learn",
        "-",
        "--format",
        "ndjson",
        "--features",
        "sensor_0,sensor_1",
        "--checkpoint",
        "m",
        "--every",
        "10",
        "--json",
    ) as process:
        assert process.stdin is not None
        process.stdin.write(b"".join(lines[:10]))
        process.stdin.flush()
        wait_for_rows(10, process)  # although the pipe stays open
        process.stdin.write(lines[10][:20])
        process.stdin.flush()
        process.send_signal(number)
        out, err = process.communicate()
    assert process.returncode == code, err
    facts = json.loads(out)
    assert (facts["rows"], facts["stopped_by"]) == (10, signal.Signals(number).name)
    assert not Path(".m.ccmem-lock").exists()
    assert Learner.load("m").rows == 10
    with start("learn", "-", "--format", "ndjson", "--checkpoint", "m", "--skip-seen") as process:
        _, err = process.communicate(b"".join(lines))
    assert process.returncode == 0, err
    assert b"\r" not in err  # no progress line in a pipe
    learner = Learner.load("m")
    assert learner.rows == 50
    assert main(["learn", "a.ndjson", "--features", "sensor_0,sensor_1", "--checkpoint", "whole"]) == 0
    np.testing.assert_array_equal(learner.model.prototypes_, load("whole").prototypes_)


def test_other_formats_on_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import pyarrow as pa

    generate("a.csv", 300)
    generate("a.arrow", 300)
    table = pa.ipc.open_file("a.arrow").read_all()
    with pa.ipc.new_stream("a.arrows", table.schema) as writer:
        writer.write_table(table)

    def piped(file: str, *words: str) -> int:
        with Path(file).open("rb") as source:
            monkeypatch.setattr(sys, "stdin", source)
            return main(list(words))

    for kind, file in (("csv", "a.csv"), ("arrow", "a.arrows")):
        assert piped(file, "learn", "-", "--format", kind, "--label", "state", "--checkpoint", f"m-{kind}") == 0
    np.testing.assert_array_equal(load("m-csv").memory_.prototypes_, load("m-arrow").memory_.prototypes_)
    capsys.readouterr()
    assert piped("a.csv", "predict", "-", "--format", "csv", "--checkpoint", "m-csv") == 0
    assert len(capsys.readouterr().out.splitlines()) == 301
    assert piped("a.csv", "learn", "-", "--format", "parquet") == 1
    assert "cannot be read from standard input" in capsys.readouterr().err
    assert piped("a.csv", "learn", "-", "--label", "state", "--checkpoint", "m-any") == 0
    np.testing.assert_array_equal(load("m-csv").memory_.prototypes_, load("m-any").memory_.prototypes_)
    Path("packed").write_bytes(gzip.compress(Path("a.csv").read_bytes()))
    assert piped("packed", "learn", "-", "--label", "state", "--checkpoint", "m-gz") == 0
    np.testing.assert_array_equal(load("m-csv").memory_.prototypes_, load("m-gz").memory_.prototypes_)
    np.save("a.npy", np.eye(3).repeat(9, axis=0))
    assert piped("a.npy", "learn", "-", "--checkpoint", "m-npy") == 0


@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals")
def test_progress_is_shown_on_a_terminal() -> None:
    import pty

    generate("a.ndjson", 20)
    lines = Path("a.ndjson").read_bytes().splitlines(keepends=True)
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "ccmem.cli", "learn", "-", "--format", "ndjson"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    ) as process:
        os.close(theirs)  # the process has the only other end: if it ends too early, reading fails
        assert process.stdin is not None
        process.stdin.write(b"".join(lines))
        process.stdin.flush()
        seen = b""
        while (
            b"20 rows" not in seen or b" block" not in seen
        ):  # the pipe stays open: the line must be shown nevertheless
            seen += os.read(ours, 1000)
        process.stdin.close()
        process.wait()
    os.close(ours)
    assert b"rows/s" in seen


def waves(n_rows: int = 12_000) -> Any:
    """A hum of one period that changes its waveform in the middle third, at constant level and variance."""
    time, rng = 2 * np.pi * np.arange(n_rows) / 30, np.random.default_rng(0)
    square = np.sqrt(0.5) * np.sign(np.sin(time))
    middle = (np.arange(n_rows) // (n_rows // 3)) == 1
    return np.where(middle, square, np.sin(time)) + 0.05 * rng.normal(size=n_rows)


def test_a_signal_is_learned_in_windows_and_events_count_rows(capsys: pytest.CaptureFixture[str]) -> None:
    X = waves()
    np.savetxt("hum.csv", X[:, None], header="hum", comments="")
    words = ["learn", "hum.csv", "--model", "adaptive", "--window", "auto", "--checkpoint", "m", "--events"]
    facts = summary(capsys, [*words, "e.jsonl", "--every", "1000"])
    assert facts["rows"] == 12_000
    learner = Learner.load("m")
    assert learner.front is not None
    assert (learner.front.window_, learner.front.n_samples_seen_) == (60, 12_000)
    events = [json.loads(line) for line in Path("e.jsonl").read_text().splitlines()]
    assert all(event["row"] == event["step"] + 1 for event in events)
    assert [event.step for event in learner.model.events_] == [event["step"] - 59 for event in events]

    for part in range(3):  # the result is the same when stopped and resumed
        summary(capsys, [*words[:7], "parts", "--events", "p.jsonl", "--max-rows", "5000"][: None if part < 2 else -2])
    assert Path("p.jsonl").read_text().replace('"parts"', '"m"') == Path("e.jsonl").read_text()
    assert "--window 50 (it has auto)" in failure(capsys, "learn", "hum.csv", "--window", "50", "--checkpoint", "m")
    assert "not rows" in failure(capsys, "predict", "hum.csv", "--checkpoint", "m")
    assert main(["inspect", "m"]) == 0
    assert "Layer: windows of " in capsys.readouterr().out
    assert "without labels" in failure(capsys, "learn", "hum.csv", "--window", "50", "--label", "hum")


def test_a_signal_is_learned_by_its_shapes_and_may_have_gaps(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"{x:.4f},{y:.4f}" for x, y in zip(waves(9000), np.roll(waves(9000), 7), strict=True)]
    lines[2000] = ",0.5"
    Path("hum.csv").write_text("\n".join(["hum,buzz", *lines, ""]))
    words = ["learn", "hum.csv", "--window", "auto", "--shapes", "--checkpoint"]
    summary(capsys, [*words, "m"])
    for _ in range(3):
        summary(capsys, [*words, "parts", "--max-rows", "3000"])
    whole, parts = Learner.load("m"), Learner.load("parts")
    assert isinstance(whole.front, ShapeLayer)
    assert (whole.front.window_, whole.rows) == (60, 9000)
    assert whole.model.events_ == parts.model.events_ != []
    np.testing.assert_array_equal(whole.model.prototypes_, parts.model.prototypes_)
    assert "add --window auto" in failure(capsys, "learn", "hum.csv", "--shapes")
    Path("short.csv").write_text("\n".join(["hum,buzz", *lines[:300], ""]))
    summary(capsys, ["learn", "short.csv", "--window", "auto", "--checkpoint", "plain"])
    assert "--shapes (it has none)" in failure(capsys, *words, "plain")
