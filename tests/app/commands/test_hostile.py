"""Commands under hostile conditions: full disks, signals, pipes and devices as files, misleading files."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ccmem import load
from ccmem.app.events import EventsFile
from ccmem.app.learner import Learner
from ccmem.cli import main
from ccmem.io.persistence import atomic
from ccmem.io.streams.files import FileStream
from forgery import forge

posix = pytest.mark.skipif(os.name != "posix", reason="pipes and signals")
WTA = ["--model", "wta", "--param", "n_units=3"]


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def generate(name: str, rows: int = 300, *more: str) -> None:
    assert main(["generate", "drift", name, "--rows", str(rows), "--segment", "100", *more]) == 0


def failure(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert main(list(words)) == 1
    return capsys.readouterr().err


def summary(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    capsys.readouterr()
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def learn(*words: str) -> list[str]:
    return ["learn", *words, "--checkpoint", "m"]


def learn_blocks(*words: str) -> list[str]:
    """Return a stream with events."""
    limits = ["n_slots=1", "vigilance=0.85", "commit_limit=10", "recall_limit=15"]
    return ["learn", *words, "--model", "ccm", *(word for limit in limits for word in ("--param", limit))]


# Output files -------------------------------------------------------------------------------------------------------


def test_half_a_last_line_is_told_and_learned_when_it_is_whole(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.csv").write_text("a,l\n1,run\n3,idl")
    facts = summary(capsys, *learn("a.csv", "--label", "l", *WTA))
    assert (facts["rows"], facts["held_back"]) == (1, 1)
    with Path("a.csv").open("a") as log:
        log.write("e\n5,run")
    assert summary(capsys, *learn("a.csv"))["rows"] == 1
    assert load("m").classes_.tolist() == ["idle", "run"]
    assert main(learn("a.csv")) == 0
    assert "--accept-last-line takes it" in capsys.readouterr().out
    assert summary(capsys, *learn("a.csv", "--accept-last-line"))["total_rows"] == 3


def test_lines_that_an_open_quote_holds_back_are_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    generate("rows.csv")
    lines = Path("rows.csv").read_text().splitlines(keepends=True)
    Path("rows.csv").write_text("".join([*lines[:100], '"' + lines[100], *lines[101:]]))
    assert "201 lines were not learned, because a quote is left open" in failure(capsys, *learn("rows.csv"), *WTA)
    assert load("m").n_samples_seen_ == 99  # saved, so that a file that still grows can go on
    Path("rows.csv").write_text("".join(lines))
    assert summary(capsys, *learn("rows.csv"))["rows"] == 201


def test_an_events_file_belongs_to_one_checkpoint(capsys: pytest.CaptureFixture[str]) -> None:
    generate("a.csv", 6000, "--segment", "800")
    options = ["--label", "state", "--events", "e.jsonl", "--max-rows", "3000"]
    assert main([*learn_blocks("a.csv", *options), "--checkpoint", "one"]) == 0
    lines = Path("e.jsonl").read_text()
    assert lines.count("\n") >= 2
    assert all(json.loads(line)["checkpoint"] == "one" for line in lines.splitlines())
    told = failure(capsys, *learn_blocks("a.csv", *options), "--checkpoint", "two")
    assert "e.jsonl holds the events of one; move it away, or name another" in told
    told = failure(capsys, *learn_blocks("a.csv", *options))
    assert "holds the events of one" in told
    assert Path("e.jsonl").read_text() == lines
    with Path("e.jsonl").open("a") as file:
        file.write('{"kind": "recall", "checkpoint": "two"}\n')
    assert "events of another checkpoint" in failure(capsys, "learn", "a.csv", *options, "--checkpoint", "one")
    Path("e.jsonl").write_text(lines + '{"kind": "recall", "checkpoint": "one"}\n{"kind": "rec')  # a simulated crash
    assert main(["learn", "a.csv", "--events", "e.jsonl", "--checkpoint", "one"]) == 0
    assert Path("e.jsonl").read_text().startswith(lines)
    assert Path("e.jsonl").read_text().count("\n") > lines.count("\n")


@posix
def test_an_events_file_is_written_by_one_process_at_a_time() -> None:
    file = EventsFile("e.jsonl", None, "one")
    with pytest.raises(atomic.BusyError, match="written to by another"):
        EventsFile("e.jsonl", None, "two")
    file.close()
    EventsFile("e.jsonl", None, "two").close()


def test_an_event_that_cannot_be_written_leaves_the_last_good_checkpoint(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    generate("a.csv", 4000, "--segment", "800")
    words = [*learn_blocks("a.csv", "--label", "state", "--events", "e.jsonl", "--every", "500"), "--checkpoint"]
    assert main([*words, "whole"]) == 0
    Path("e.jsonl").rename("whole.jsonl")
    write, written = EventsFile.write, 0

    def failing(self: EventsFile, record: dict[str, Any]) -> None:
        nonlocal written
        written += 1
        if written == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(self, record)

    with monkeypatch.context() as patch:
        patch.setattr(EventsFile, "write", failing)
        assert "No space left" in failure(capsys, *words, "m")
    saved = Learner.load("m")
    assert saved.memory is None or saved.rows == saved.memory.n_samples_seen_
    assert sum(done.rows for done in saved.progress.values()) == saved.rows
    assert main([*words, "m"]) == 0
    ours = Path("e.jsonl").read_text().replace('"m"', '"whole"')
    assert ours == Path("whole.jsonl").read_text()
    np.testing.assert_array_equal(load("m").memory_.prototypes_, load("whole").memory_.prototypes_)


@posix
def test_a_full_disk_leaves_the_last_checkpoint_whole(capsys: pytest.CaptureFixture[str]) -> None:
    generate("a.csv", 400)
    assert main(learn("a.csv", "--max-rows", "100", *WTA)) == 0
    before = Path("m").read_bytes()
    code = """
import resource, signal, sys
from ccmem.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (300, resource.RLIM_INFINITY))
sys.exit(main(sys.argv[1:]))
"""
    command = [sys.executable, "-c", code, *learn("a.csv", "--every", "100")]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 1
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert Path("m").read_bytes() == before
    assert {file.name for file in Path().iterdir()} == {"a.csv", "m"}
    assert main(learn("a.csv")) == 0
    assert Learner.load("m").rows == 400


def test_what_is_read_is_not_written_to(capsys: pytest.CaptureFixture[str]) -> None:
    generate("a.csv")
    before = Path("a.csv").read_bytes()
    for words in (
        learn("a.csv", "--events", "a.csv"),
        learn("a.csv", "--events", "m"),
        ["learn", "a.csv", "--checkpoint", "a.csv"],
        learn(".", "--format", "csv", "--events", str(Path("a.csv").resolve())),
    ):
        told = failure(capsys, *words)
        assert "name another file" in told or "cannot be loaded" in told
    assert main(learn("a.csv", *WTA)) == 0
    checkpoint = Path("m").read_bytes()
    Path("link.csv").symlink_to("a.csv")
    for out in ("a.csv", "link.csv", str(Path("a.csv").resolve())):
        told = failure(capsys, "predict", "a.csv", "--checkpoint", "m", "--out", out)
        assert "is a source or the checkpoint itself" in told
    assert Path("a.csv").read_bytes() == before
    assert Path("m").read_bytes() == checkpoint


@posix
def test_pipes_and_devices_are_no_checkpoints_and_no_outputs(capsys: pytest.CaptureFixture[str]) -> None:
    generate("a.csv")
    os.mkfifo("fifo")
    os.mkfifo("fifo.csv")
    for words in (["learn", "a.csv"], ["predict", "a.csv"]):
        assert "a pipe or a device" in failure(capsys, *words, "--checkpoint", "fifo")
    assert "a pipe or a device" in failure(capsys, "inspect", "fifo")
    assert "a pipe or a device" in failure(capsys, *learn("a.csv", "--events", "fifo"))
    assert main(learn("a.csv", *WTA)) == 0
    assert "a pipe or a device" in failure(capsys, "predict", "a.csv", "--checkpoint", "m", "--out", "fifo.csv")
    assert Path("fifo.csv").is_fifo()


def test_a_missing_folder_is_called_that(capsys: pytest.CaptureFixture[str]) -> None:
    generate("a.csv")
    told = failure(capsys, "learn", "a.csv", "--checkpoint", "nowhere/m")
    assert "nowhere does not exist" in told
    assert "lock" not in told


def test_temporary_files_of_processes_that_are_no_more_are_removed() -> None:
    gone = 2**31 - 1  # no system has process numbers this high
    host = atomic._HOST
    ours = Path(f".p.csv.{host}.{os.getpid()}-99.tmp")
    for name in (f".p.csv.{host}.{gone}-0.tmp", ".p.csv.elsewhere.1-0.tmp", str(ours)):
        Path(name).write_text("half")
    atomic.atomic_write("p.csv", [b"whole"])
    assert {file.name for file in Path().iterdir()} == {"p.csv", ".p.csv.elsewhere.1-0.tmp", ours.name}


@posix
def test_a_process_of_another_user_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def refuse(process: int, signal: int) -> None:
        asked.append((process, signal))
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    theirs = Path(f".p.csv.{atomic._HOST}.1-0.tmp")
    theirs.write_text("half")
    atomic.atomic_write("p.csv", [b"whole"])
    assert theirs.exists()
    assert asked == [(1, 0)]


@posix
def test_predict_cleans_up_when_it_is_told_to_stop() -> None:
    generate("a.ndjson", 50)
    assert main(learn("a.ndjson", *WTA)) == 0
    command = [sys.executable, "-m", "ccmem.cli", "predict", "-", "--format", "ndjson", "--checkpoint", "m"]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    with subprocess.Popen([*command, "--out", "p.csv"], stdin=subprocess.PIPE, env=environment) as process:
        while not list(Path().glob(".p.csv.*.tmp")):  # until it has started
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        process.wait()
    assert process.returncode == 143
    assert {file.name for file in Path().iterdir()} == {"a.ndjson", "m"}


def test_two_threads_that_write_one_file_leave_one_whole_file() -> None:
    def write(letter: bytes) -> None:
        for _ in range(50):
            atomic.atomic_write("f", [letter * 1000] * 20)

    threads = [threading.Thread(target=write, args=(letter,)) for letter in (b"a", b"b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    content = Path("f").read_bytes()
    assert len(content) == 20_000
    assert len(set(content)) == 1
    assert [file.name for file in Path().iterdir()] == ["f"]


# Signals ------------------------------------------------------------------------------------------------------------


@posix
@pytest.mark.usefixtures("hang_up_heard")
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_saves_what_has_been_learned(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str, code: int
) -> None:
    generate("a.csv", 300)
    learn_chunk = Learner.learn

    def learn_then_signal(self: Learner, *chunk: Any) -> None:
        learn_chunk(self, *chunk)
        if self.rows == 200:
            signal.raise_signal(getattr(signal, name))

    monkeypatch.setattr(Learner, "learn", learn_then_signal)
    capsys.readouterr()
    words = learn("a.csv", "--every", "100", "--json", *WTA)
    monkeypatch.setattr("ccmem.app.commands.learn._Run._save", _only_at_the_end(name))
    assert main(words) == code
    assert json.loads(capsys.readouterr().out)["stopped_by"] == name
    assert Learner.load("m").rows == 200


def _only_at_the_end(name: str) -> Any:
    from ccmem.app.commands.learn import _Run

    save = _Run._save

    def last(self: Any) -> None:
        if self.stop.number is not None or self.learner.rows == 0:
            save(self)

    return last


@posix
def test_half_a_line_from_a_pipe_that_ctrl_c_cut_off_is_not_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = os.pipe()
    os.write(theirs, b"a,l\n1,run\n2,idl")
    os.close(theirs)
    chunks = FileStream.chunks_read_ahead

    def chunks_then_signal(self: FileStream, *args: Any) -> Any:
        for chunk in chunks(self, *args):
            if chunk is not None and not chunk.ended:  # it was waiting for the pipe when both sides were closed
                signal.raise_signal(signal.SIGINT)
            yield chunk

    monkeypatch.setattr(FileStream, "chunks_read_ahead", chunks_then_signal)
    with os.fdopen(ours) as source:
        monkeypatch.setattr(sys, "stdin", source)
        assert main(learn("-", "--format", "csv", "--label", "l", *WTA)) == 130
    assert load("m").classes_.tolist() == ["run"]


# Answers ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "ndjson", "parquet", "arrow"])
def test_answers_line_up_with_rows_however_many_are_bad(capsys: pytest.CaptureFixture[str], kind: str) -> None:
    X = np.random.default_rng(0).random((1500, 2))
    rows = zip(X.tolist(), "pq" * 750, strict=True)
    Path("good.csv").write_text("a,b,l\n" + "".join(f"{a},{b},{label}\n" for (a, b), label in rows))
    assert main(learn("good.csv", "--label", "l", *WTA)) == 0
    text = ["a,b"] + [f"{a},{b}" if i // 500 == 2 else "oops,1" for i, (a, b) in enumerate(X)]
    Path("a.csv").write_text("\n".join(text))  # and no newline at the end: every row is predicted
    import ccmem.io.streams.files as files

    whole, files._MOST_ROWS = files._MOST_ROWS, 100
    try:
        words = ["predict", "a.csv", "--checkpoint", "m", "--units", "--on-bad-row", "skip", "--out", f"p.{kind}"]
        facts = summary(capsys, *words)
    finally:
        files._MOST_ROWS = whole
    assert (facts["rows"], facts["bad_rows"]) == (1500, 1000)
    if kind in ("parquet", "arrow"):
        pa = pytest.importorskip("pyarrow")
        read = pytest.importorskip("pyarrow.parquet").read_table
        table = read(f"p.{kind}") if kind == "parquet" else pa.ipc.open_file(f"p.{kind}").read_all()
        answers = table.column("label").to_pylist()
    elif kind == "csv":
        answers = [line.split(",")[0] or None for line in Path("p.csv").read_text().splitlines()[1:]]
    else:
        answers = [json.loads(line)["label"] for line in Path("p.ndjson").read_text().splitlines()]
    assert answers[:1000] == [None] * 1000
    assert answers[1000:] == Learner.load("m").predict(X[1000:])["label"].tolist()


@pytest.mark.parametrize("kind", ["csv", "ndjson", "parquet", "arrow"])
def test_no_rows_give_an_empty_table_that_can_be_read(kind: str) -> None:
    generate("a.csv")
    assert main(learn("a.csv", "--label", "state", *WTA)) == 0
    Path("none.csv").write_text(Path("a.csv").read_text().splitlines()[0] + "\n")
    assert main(["predict", "none.csv", "--checkpoint", "m", "--out", f"p.{kind}"]) == 0
    if kind == "parquet":
        table = pytest.importorskip("pyarrow.parquet").read_table("p.parquet")
        assert (table.num_rows, table.column_names) == (0, ["label"])
    elif kind == "arrow":
        assert pytest.importorskip("pyarrow").ipc.open_file("p.arrow").read_all().num_rows == 0
    else:
        assert Path(f"p.{kind}").read_text() == ("label\n" if kind == "csv" else "")


# Invalid input ------------------------------------------------------------------------------------------------------


def test_closed_standard_input_is_explained(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    for kind in ("csv", "ndjson", "arrow"):
        assert "standard input is closed" in failure(capsys, "learn", "-", "--format", kind)


@pytest.mark.parametrize("model", ["wta", "gmm", "artc2a", "ccm", "mlp"])
def test_absurd_sizes_are_refused_before_they_are_tried(capsys: pytest.CaptureFixture[str], model: str) -> None:
    generate("a.csv")
    name = {"wta": "n_units", "gmm": "n_units", "artc2a": "max_units", "ccm": "n_slots", "mlp": "hidden_sizes"}
    words = ["learn", "a.csv", "--label", "state", "--model", model, "--param"]
    value = {"artc2a": "-5", "mlp": "(2000000000,)"}.get(model, "2000000000")
    told = failure(capsys, *words, f"{name[model]}={value}")
    assert "more than this machine has" in told or "is not possible" in told
    big = "1" + "0" * 400
    value = f"({big},)" if model == "mlp" else big
    assert "is not possible" in failure(capsys, *words, f"{name[model]}={value}")


@pytest.mark.parametrize(
    ("option", "value"),
    [("--max-seconds", "nan"), ("--max-seconds", "-1"), ("--every-seconds", "soon"), ("--every", "x"), ("--every", "0"),
     ("--max-rows", "9.5"), ("--max-rows", "٣")],
)  # fmt: skip
def test_limits_are_numbers(capsys: pytest.CaptureFixture[str], option: str, value: str) -> None:
    with pytest.raises(SystemExit):
        main(learn("a.csv", option, value))
    assert f"argument {option}: {value} is not a" in capsys.readouterr().err


def test_absurd_windows_are_refused_before_they_are_tried(capsys: pytest.CaptureFixture[str]) -> None:
    generate("a.csv")
    assert "more than this machine has" in failure(capsys, "learn", "a.csv", "--window", "9999999999")


def test_numbers_too_large_for_a_float_are_refused_as_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    generate("a.csv")
    words = ["learn", "a.csv", "--model", "ccm", "--param"]
    assert "vigilance=10**400 or so is not possible" in failure(capsys, *words, "vigilance=1" + "0" * 400)


def test_labels_cannot_command_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.csv").write_text("a,l\n1,\x1b[31mred\x07\n2,\x1b]0;title\n")
    assert main(learn("a.csv", "--label", "l", "--model", "wta", "--param", "n_units=1")) == 0
    capsys.readouterr()
    assert main(["inspect", "m"]) == 0
    out = capsys.readouterr().out
    assert "\\x1b[31mred\\x07" in out
    assert "\x1b" not in out
    assert "\x07" not in out
    assert "\x1b" not in failure(capsys, "inspect", "\x1b[31m")


def test_column_names_cannot_command_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.csv").write_text("key,time,\x1b[31mred\x07\n" + "".join(f"k\x1b,{t},{t % 7}.5\n" for t in range(20)))
    assert main(["learn", "a.csv", "--features", "\x1b[31mred\x07", "--checkpoint", "m"]) == 0
    pytest.importorskip("pyarrow")
    named = ["--key", "key", "--order", "time", "--store", "s", "--workers", "1"]
    assert main(["fleet", "learn", "a.csv", *named]) == 0
    assert main(["fleet", "inspect", "--store", "s"]) == 0
    out = capsys.readouterr().out
    assert out.count("\\x1b[31mred\\x07") == 2
    assert "\x1b" not in out


ODD = {
    "blocks": lambda d, a, m: d["model"]["fitted"]["counters"].update(units=10**12),
    "text for a counter": lambda d, a, m: d["model"]["fitted"]["counters"].update(units="many"),
    "nothing for a counter": lambda d, a, m: d["model"]["fitted"]["counters"].update(seen=None),
    "floats for wins": lambda d, a, m: a.update({"model.fitted.state.wins": np.zeros(3)}),
    "parameters of lists": lambda d, a, m: d["model"].update(parameters=[1]),
    "events of one column": lambda d, a, m: a.update({"model.fitted.events": np.zeros((3, 1), np.int64)}),
    "an event of another kind": lambda d, a, m: a.update({"model.fitted.events": np.full((1, 5), 77)}),
    "a learner of text": lambda d, a, m: d.update(learner="no"),
    "columns of numbers": lambda d, a, m: d["learner"]["columns"].update(features=[1, 2]),
    "rows of text": lambda d, a, m: d["learner"].update(rows="1"),
    "progress of numbers": lambda d, a, m: d["learner"].update(progress=[1]),
    "a model of text": lambda d, a, m: d.update(model="CCM"),
}


@pytest.mark.parametrize("name", ODD)
def test_signed_nonsense_is_explained_by_inspect(capsys: pytest.CaptureFixture[str], name: str) -> None:
    generate("a.csv")
    assert main(learn("a.csv", *WTA)) == 0
    Path("odd").write_bytes(forge(Path("m").read_bytes(), ODD[name]))
    for words in (["inspect", "odd"], ["inspect", "odd", "--json"]):
        told = failure(capsys, *words)
        assert "does not hold the fields of a model" in told or "cannot be loaded" in told


# Data sets ----------------------------------------------------------------------------------------------------------


def test_checksums_that_differ_are_a_failure() -> None:
    from ccmem.paper.datasets.raw import FILES, idx_bytes

    Path("data/mnist").mkdir(parents=True)
    images, labels = np.zeros((3, 28, 28), np.uint8), np.zeros(3, np.uint8)
    for name, array in zip(FILES, (images, labels, images, labels), strict=True):
        Path("data/mnist", name).write_bytes(idx_bytes(array))
    assert main(["datasets", "list", "mnist", "--data", "data"]) == 0
    assert main(["datasets", "verify", "mnist", "--data", "data"]) == 1


@pytest.mark.parametrize("damage", ["empty", "text", "array", "no archive", "no arrays", "short"])
def test_damaged_caches_are_told(monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    from ccmem.paper.datasets.raw import FILES, entry_of
    from ccmem.paper.datasets.sources import from_cache

    monkeypatch.setenv("CCMEM_DATA_CACHE", "cache")
    path = Path("cache/mnist.npz")
    path.parent.mkdir()
    if damage == "array":
        with path.open("wb") as file:
            np.save(file, np.zeros(3))
    elif damage == "no arrays":
        np.savez(path, source=np.array("here"))
    elif damage == "short":
        np.savez(path, **dict.fromkeys(FILES, np.zeros(3, np.uint8)), source=np.array("x"), notes=np.array([], str))
    else:
        path.write_bytes({"empty": b"", "text": b"{}", "no archive": b"PK\x03\x04junk"}[damage])
    with pytest.raises(ValueError, match="is damaged"):
        from_cache(entry_of("mnist"))


def test_several_processes_may_fetch_one_data_set_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from ccmem.paper.datasets.raw import FILES, RawSet, digest, entry_of, idx_bytes
    from ccmem.paper.datasets.sources import from_cache, store

    monkeypatch.setenv("CCMEM_DATA_CACHE", "cache")
    images, labels = np.zeros((3, 28, 28), np.uint8), np.zeros(3, np.uint8)
    arrays = (images, labels, images, labels)
    sums = {name: digest(idx_bytes(array)) for name, array in zip(FILES, arrays, strict=True)}
    problems = []

    def fetch() -> None:
        try:
            for _ in range(20):
                store(entry_of("mnist"), RawSet(*arrays, sha256=sums), "here")
        except Exception as problem:
            problems.append(problem)

    threads = [threading.Thread(target=fetch) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert from_cache(entry_of("mnist")) is not None
    assert [file.name for file in Path("cache").iterdir()] == ["mnist.npz"]
    Path("cache/mnist.npz").write_text("damaged")
    store(entry_of("mnist"), RawSet(*arrays, sha256=sums), "here")
    assert from_cache(entry_of("mnist")) is not None


def test_bombs_are_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    import gzip
    import io
    import zipfile

    from ccmem.io.streams import SourceError, read_files
    from ccmem.paper.datasets import pictures, raw

    monkeypatch.setattr(raw, "LARGEST", 10_000)
    Path("bomb.gz").write_bytes(gzip.compress(bytes(1_000_000)))
    with pytest.raises(ValueError, match="holds more than"):
        raw.read_content(Path("bomb.gz"))
    image = pytest.importorskip("PIL.Image")
    packed = io.BytesIO()
    image.new("L", (9000, 9000)).save(packed, "PNG")
    assert pictures._decode(packed.getvalue()) is None
    header = b"\x93NUMPY\x02\x00" + (1 << 30).to_bytes(4, "little")
    with zipfile.ZipFile("bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", header + bytes(1_000_000))
    with pytest.raises(SourceError, match="a header of"):
        list(read_files("bomb.npz"))
    np.save("wide.npy", np.zeros((1, 2_000_000), np.uint8))
    with pytest.raises(SourceError, match="more than 1,000,000 columns"):
        list(read_files("wide.npy"))
    np.save("short.npy", np.zeros((10, 3)))
    Path("short.npy").write_bytes(Path("short.npy").read_bytes().replace(b"(10, 3)", b"(10,90)"))
    with pytest.raises(SourceError, match="ends early"):
        list(read_files("short.npy"))
