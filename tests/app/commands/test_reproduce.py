"""The commands around the experiments, through the front door."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ccmem.cli import main
from ccmem.paper.datasets import entry_of, loading
from ccmem.paper.datasets.raw import FILES, digits, idx_bytes


@pytest.fixture(autouse=True)
def _offline(monkeypatch, tmp_path):
    monkeypatch.delenv("CCMEM_DATA", raising=False)
    monkeypatch.setenv("CCMEM_DATA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(loading, "remote_sources", lambda entry: [])


def test_digits(tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["reproduce", "digits", "--trials", "1", "--models", "ccm", "--rows", "paper", "--out", str(out)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Data set: digits")
    assert "digits, paper protocol" in text
    assert "digits, strict protocol" in text
    assert "| CCM |" in (out / "tables.md").read_text()
    for name in (
        "digits.json",
        "report.html",
        "figures/digits-memories.png",
        "figures/digits-stream-ccm.png",
        "figures/digits-R-strict.png",
        "figures/digits-acc-paper.png",
    ):
        assert (out / name).stat().st_size > 1000


def test_json_on_stdout_is_nothing_but_json(tmp_path, capsys):
    arguments = [
        "reproduce",
        "digits",
        "--trials",
        "1",
        "--models",
        "iwta",
        "--rows",
        "paper",
        "--no-figures",
        "--json",
    ]
    assert main([*arguments, "--out", str(tmp_path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert 0.5 < found["digits"]["protocols"]["strict"]["iwta"]["metrics"]["ACC"]["mean"] <= 1
    assert not (tmp_path / "figures").exists()


def test_a_data_set_may_follow_a_list_of_models(tmp_path, capsys):
    arguments = ["reproduce", "--no-figures", "--trials", "1", "--out", str(tmp_path), "--rows", "paper"]
    assert main([*arguments, "--models", "iwta", "digits"]) == 0
    assert capsys.readouterr().out.startswith("Data set: digits (")


def test_without_a_data_set_it_says_which(tmp_path, capsys):
    arguments = [
        "reproduce",
        "--trials",
        "1",
        "--models",
        "iwta",
        "--rows",
        "paper",
        "--no-figures",
        "--out",
        str(tmp_path),
    ]
    assert main(arguments) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines()[0].startswith("Data set: digits, because MNIST is not to be had")
    assert "Tried:" in captured.err


def test_own_mnist_is_taken_without_being_named(tmp_path, capsys):
    folder = tmp_path / "data" / "mnist"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for name, n in zip(FILES, (400, 400, 50, 50), strict=True):
        array = rng.integers(0, 256, (n, 5, 5)) if "images" in name else np.arange(n) % 10
        (folder / name).write_bytes(idx_bytes(array.astype(np.uint8)))
    arguments = [
        "reproduce",
        "--trials",
        "1",
        "--models",
        "ccm",
        "--rows",
        "paper",
        "--no-figures",
        "--data",
        str(tmp_path / "data"),
        "--out",
        str(tmp_path / "out"),
    ]
    assert main(arguments) == 0
    text = capsys.readouterr().out
    assert text.startswith("Data set: MNIST (400 training images; source: own folder)")
    assert "the paper learned from 60,000 training images, these runs from 400" in text
    assert "iCaRL" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce", "cifar"], "unknown data set 'cifar'"),
        (["reproduce", "digits", "--models", "svm"], "unknown model 'svm'"),
        (["reproduce", "digits", "--trials", "0"], "--trials 0"),
        (["reproduce", "digits", "--jobs", "0"], "--jobs 0"),
        (["reproduce", "digits", "--rows", "best"], "unknown kind of rows 'best'"),
        (["reproduce", "mnist", "--offline"], "MNIST is not to be had"),
        (["reproduce", "mnist", "--data", "no/such/folder"], "does not exist"),
        (["tune", "cifar"], "unknown data set 'cifar'"),
        (["tune", "digits", "--models", "svm"], "unknown model 'svm'"),
        (["tune", "digits", "--candidates", "0"], "--candidates 0"),
        (["datasets", "list", "cifar"], "unknown data set 'cifar'"),
    ],
)
def test_errors_are_told_and_leave_nothing(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 1
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_datasets_lists_and_verifies(capsys, tmp_path):
    assert main(["datasets"]) == 0
    text = capsys.readouterr().out
    assert "digits: " in text
    assert "checksums match" in text
    assert text.count("not on this machine") == 3
    assert main(["datasets", "verify", "digits", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found[0]["found_sha256"] == found[0]["sha256"]
    assert main(["datasets", "verify", "mnist"]) == 1
    assert "Tried:" in capsys.readouterr().out
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist" / FILES[0]).write_bytes(b"junk")
    assert main(["datasets", "--data", str(tmp_path)]) == 1
    assert "unusable" in capsys.readouterr().out


def test_datasets_fetch(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(loading, "remote_sources", lambda entry: [("a source", lambda: digits(entry_of("digits")))])
    assert main(["datasets", "fetch", "mnist"]) == 0
    assert "source: a source" in capsys.readouterr().out
    assert (tmp_path / "cache" / "mnist.npz").is_file()


def test_tune_finds_no_worse_settings(tmp_path, capsys):
    out = tmp_path / "tuned.json"
    assert main(["tune", "digits", "--models", "iwta", "--candidates", "4", "--out", str(out), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)["iwta"]
    kept = json.loads(out.read_text())["digits"]["iwta"]
    assert printed == kept
    assert kept["validation_score"] >= kept["untuned_score"]
    assert len(kept["candidates"]) == 4
    assert kept["candidates"][0]["parameters"] == {}
    assert kept["n_train"] + kept["n_validation"] == 1348
