"""Runs are stored as they finish and resume after an interruption."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import ccmem
from ccmem import datasets, experiments
from ccmem.kernels.sources import source_files
from ccmem.paper.experiments import runs
from ccmem.paper.experiments.progress import Progress
from ccmem.paper.experiments.protocol import Benchmark


@pytest.fixture(scope="module")
def digits():
    return datasets.load("digits")


@pytest.fixture(scope="module")
def benchmark(digits):
    return Benchmark.of(digits)


@pytest.fixture
def rows():
    return experiments.rows("digits", ["iwta", "ccm"], ["paper"])


@pytest.fixture
def calls(monkeypatch):
    found = []
    real = runs.run_trial

    def counted(row, benchmark, seed, *more, **options):
        found.append((row.name, seed))
        return real(row, benchmark, seed, *more, **options)

    monkeypatch.setattr(runs, "run_trial", counted)
    return found


def test_resume_runs_only_what_is_missing(tmp_path, digits, benchmark, rows, calls):
    first = runs.Results(tmp_path, digits, benchmark, rows, 2, 0)
    runs.run_all(first, rows, benchmark, jobs=2)
    assert sorted(calls) == [("ccm", 0), ("ccm", 1), ("iwta", 0), ("iwta", 1)]
    calls.clear()
    more = runs.Results(tmp_path, digits, benchmark, rows, 3, 0)
    runs.run_all(more, rows, benchmark)
    assert sorted(calls) == [("ccm", 2), ("iwta", 2)]
    content = json.loads((tmp_path / "digits.json").read_text())
    ccm = content["rows"]["ccm"]
    assert list(ccm["trials"]) == ["0", "1", "2"]
    assert ccm["trials"]["0"]["blocks"] == len(ccm["trials"]["0"]["events"]) + 1
    assert np.array(ccm["trials"]["0"]["protocols"]["strict"]["R"], float).shape == (5, 5)
    assert content["dataset"]["sha256"] == dict(digits.sha256)
    assert content["versions"]["numpy"] == np.__version__


def test_same_seed_same_numbers_whatever_the_jobs(tmp_path, digits, benchmark, rows):
    metrics = []
    for jobs in (1, 2):
        results = runs.Results(tmp_path / str(jobs), digits, benchmark, rows, 2, 5)
        runs.run_all(results, rows, benchmark, jobs)
        metrics.append(
            {
                name: {trial: record["protocols"] for trial, record in row["trials"].items()}
                for name, row in results.content["rows"].items()
            }
        )
    assert metrics[0] == metrics[1]
    assert metrics[0]["ccm"]["0"] != metrics[0]["ccm"]["1"]


def test_other_settings_are_run_anew(tmp_path, digits, benchmark, rows, calls):
    runs.run_all(runs.Results(tmp_path, digits, benchmark, rows, 1, 0), rows, benchmark)
    calls.clear()
    other = [rows[0], experiments.changed(rows[1], rows[1].name, {"vigilance": 0.5})]
    runs.run_all(runs.Results(tmp_path, digits, benchmark, other, 1, 0), other, benchmark)
    assert calls == [("ccm", 0)]
    calls.clear()
    runs.run_all(runs.Results(tmp_path, digits, benchmark, other, 1, 0, fresh=True), other, benchmark)
    assert len(calls) == 2


def test_a_change_of_looks_throws_no_trial_away_and_compiles_nothing():
    """Hashes that decide whether trials or kernels are reused exclude figures, pages and commands."""
    rows = experiments.rows("mnist", kinds=["paper", "adaptive"])
    package = Path(ccmem.__file__).parent
    kernels = [file for file in package.rglob("*.py") if "kernels.jit import" in file.read_text(encoding="utf-8")]
    assert len(kernels) > 10
    looks = {"report", "plots", "watching", "commands", "cli.py", "summary.py", "colours.py"}
    for sources in [*(source_files(runs.__name__, *row.modules()) for row in rows), *map(source_files, kernels)]:
        parts = {file.relative_to(package).parts[0] for file in sources}
        assert parts
        assert not parts & looks


def test_rows_not_asked_for_stay_in_the_file(tmp_path, digits, benchmark, rows, calls):
    runs.run_all(runs.Results(tmp_path, digits, benchmark, rows, 1, 0), rows, benchmark)
    only = runs.Results(tmp_path, digits, benchmark, rows[:1], 2, 0)
    runs.run_all(only, rows[:1], benchmark)
    assert list(only.content["rows"]) == ["iwta"]
    calls.clear()
    runs.run_all(runs.Results(tmp_path, digits, benchmark, rows, 1, 0), rows, benchmark)
    assert calls == []


def test_a_fresh_run_keeps_rows_not_asked_for_and_replaces_a_broken_file(tmp_path, digits, benchmark, rows, calls):
    runs.run_all(runs.Results(tmp_path, digits, benchmark, rows, 1, 0), rows, benchmark)
    calls.clear()
    runs.run_all(runs.Results(tmp_path, digits, benchmark, rows[:1], 1, 0, fresh=True), rows[:1], benchmark)
    assert calls == [("iwta", 0)]
    path = tmp_path / "digits.json"
    assert sorted(json.loads(path.read_text())["rows"]) == ["ccm", "iwta"]
    path.write_text("[1, 2")
    runs.run_all(runs.Results(tmp_path, digits, benchmark, rows[:1], 1, 0, fresh=True), rows[:1], benchmark)
    assert list(json.loads(path.read_text())["rows"]) == ["iwta"]


def test_a_protocol_that_is_missing_is_run_alone(tmp_path, digits, benchmark, rows):
    asked = []
    for protocols in (["strict"], ["paper", "strict"]):
        results = runs.Results(tmp_path, digits, benchmark, rows, 1, 0, protocols=protocols)
        asked.append(results.missing(rows[0]))
        runs.run_all(results, rows, benchmark)
    assert asked == [{0: ["strict"]}, {0: ["paper"]}]
    both = runs.Results(tmp_path / "both", digits, benchmark, rows, 1, 0)
    runs.run_all(both, rows, benchmark)
    kept, whole = (json.loads((folder / "digits.json").read_text()) for folder in (tmp_path, tmp_path / "both"))
    for name in kept["rows"]:
        assert kept["rows"][name]["trials"]["0"]["protocols"] == whole["rows"][name]["trials"]["0"]["protocols"]


def test_trials_not_asked_for_stay_in_the_file(tmp_path, digits, benchmark, rows, calls):
    runs.run_all(runs.Results(tmp_path, digits, benchmark, rows, 3, 0), rows, benchmark)
    fewer = runs.Results(tmp_path, digits, benchmark, rows, 1, 0)
    runs.run_all(fewer, rows, benchmark)
    assert [list(row["trials"]) for row in fewer.content["rows"].values()] == [["0"], ["0"]]
    calls.clear()
    runs.run_all(runs.Results(tmp_path, digits, benchmark, rows, 3, 0), rows, benchmark)
    assert calls == []


def test_interrupted_runs_keep_what_is_finished(tmp_path, digits, benchmark, rows, monkeypatch):
    real = runs.Results.add

    def add(self, row, trial, record, arrays):
        real(self, row, trial, record, arrays)
        if sum(len(entry["trials"]) for entry in self.content["rows"].values()) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(runs.Results, "add", add)
    with pytest.raises(KeyboardInterrupt):
        runs.run_all(runs.Results(tmp_path, digits, benchmark, rows, 10, 0), rows, benchmark)
    monkeypatch.undo()
    kept = json.loads((tmp_path / "digits.json").read_text())["rows"]
    n_kept = sum(len(row["trials"]) for row in kept.values())
    assert 3 <= n_kept < 20
    done = []
    monkeypatch.setattr(
        runs, "run_trial", lambda row, benchmark, seed, *more: (done.append(seed), ({"seconds": 0.0}, {}))[1]
    )
    results = runs.Results(tmp_path, digits, benchmark, rows, 10, 0)
    runs.run_all(results, rows, benchmark)
    assert len(done) == 20 - n_kept
    assert list(tmp_path.glob(".*")) == []


def test_kernels_are_compiled_for_rows_that_are_missing(tmp_path, digits, benchmark, rows, calls):
    runs.run_all(runs.Results(tmp_path, digits, benchmark, rows[:1], 1, 0), rows[:1], benchmark)
    calls.clear()
    runs.compile_kernels(runs.Results(tmp_path, digits, benchmark, rows, 1, 0), rows, benchmark)
    assert calls == [(rows[1].name, 0)]


def test_errors_in_a_trial_come_through(tmp_path, digits, benchmark, rows, monkeypatch):
    def fails(*args, **options):
        raise ValueError("no such thing")

    monkeypatch.setattr(runs, "run_trial", fails)
    with pytest.raises(ValueError, match="no such thing"):
        runs.run_all(runs.Results(tmp_path, digits, benchmark, rows, 2, 0), rows, benchmark)
    assert not (tmp_path / "digits.json").exists()


def test_a_file_that_is_no_result(tmp_path, digits, benchmark, rows):
    (tmp_path / "digits.json").write_text("[1, 2")
    with pytest.raises(ValueError, match=r"digits\.json is not a result file"):
        runs.Results(tmp_path, digits, benchmark, rows, 1, 0)
    assert (tmp_path / "digits.json").read_text() == "[1, 2"


def test_unwritable_folder(tmp_path, digits, benchmark, rows):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"cannot write .*free some space or choose another folder"):
        runs.run_all(runs.Results(tmp_path / "file" / "out", digits, benchmark, rows, 1, 0), rows, benchmark)


def test_progress_from_the_start_on_a_terminal_and_in_a_log(capsys, monkeypatch):
    in_a_log = Progress(["a"] * 4)
    in_a_log.show()
    in_a_log.show()  # a log gets an occasional line
    assert capsys.readouterr().err.count("0/4 trials, 0:00, estimating the time left") == 1
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    bar = Progress(["a"] * 4)
    bar.show()
    bar.finished("a", 1.0)
    bar.show()
    bar.close()
    told = capsys.readouterr().err
    assert "0/4 trials" in told
    assert "1/4 trials" in told


def test_the_time_left_knows_that_rows_differ():
    now = 0.0
    bar = Progress(["quick", "slow", "quick", "slow", "slow"], clock=lambda: now)
    assert bar.left() is None
    for row, seconds in (("quick", 2.0), ("slow", 10.0)):
        now += seconds
        bar.finished(row, seconds)
    assert bar.left() == 2 + 10 + 10
    now += 1.5
    assert bar.left() == 22 - 1.5
    now += 50
    assert bar.left() == 0  # longer than estimated, but not negative


def test_the_time_left_knows_how_many_run_at_a_time():
    now = 0.0
    bar = Progress(["a"] * 8, clock=lambda: now)
    now = 3.0
    for _ in range(2):
        bar.finished("a", 3.0)
    assert bar.left() == 9.0
