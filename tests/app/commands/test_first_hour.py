"""First commands of a new user: typing errors get a suggestion, and omissions are reported."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ccmem.cli import COMMANDS, main


def test_slips_are_answered_with_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lern", "x.csv"]) == 2
    assert "did you mean learn?" in capsys.readouterr().err
    assert main(["learn", "x.csv", "--chekpoint", "m"]) == 2
    assert "did you mean --checkpoint?" in capsys.readouterr().err


@pytest.mark.parametrize("columns", ["80", "200"])
@pytest.mark.parametrize("command", [*COMMANDS, "fleet learn", "fleet inspect", "fleet predict", "fleet export"])
def test_help_has_an_example_and_fits_a_terminal(
    command: str, columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    with pytest.raises(SystemExit, match="0"):
        main([*command.split(), "--help"])
    text = capsys.readouterr().out
    options, _, rest = text.partition("\nexample")
    assert f"ccmem {command}" in rest
    assert max(len(line) for line in options.splitlines()) <= min(int(columns), 100)
    prose = [line for line in rest.splitlines() if not line.startswith("  ")]
    assert max(len(line) for line in prose) <= min(int(columns), 100)
    assert max(len(line) for line in rest.splitlines()) <= 100


def test_columns_without_numbers_and_a_forgotten_label_are_mentioned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("site,a,b,kind\n" + "x,1.0,0.5,oak\nx,0.9,0.4,elm\n" * 5)
    assert main(["learn", "t.csv"]) == 0
    told = capsys.readouterr().out
    assert "left out:\n  site: text (such as 'x')\n  kind: text (such as 'oak')\n" in told
    assert "to use one of them as the label: --label kind" in told
    assert main(["learn", "t.csv", "--label", "kind"]) == 0
    told = capsys.readouterr().out
    assert "left out:\n  site: text (such as 'x')\nsaved" in told.replace("nothing saved", "saved")
    assert "kind: text" not in told


def test_the_digest_does_not_depend_on_where_files_lie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    digests = set()
    for place in ("here", "there"):
        folder = tmp_path / place
        folder.mkdir()
        monkeypatch.chdir(folder)
        Path(f"{place}.csv").write_text("a,b\n" + "1.0,0.5\n0.9,0.4\n" * 5)
        assert main(["learn", f"{place}.csv", "--checkpoint", "m"]) == 0
        capsys.readouterr()
        assert main(["inspect", "m", "--json"]) == 0
        digests.add(json.loads(capsys.readouterr().out)["digest"])
    assert len(digests) == 1


def test_a_signal_too_short_for_its_window_to_be_known_is_said_to_wait(tmp_path, capsys):
    rows = np.random.default_rng(0).normal(size=300)
    (tmp_path / "short.csv").write_text("v\n" + "\n".join(f"{x:.4f}" for x in rows) + "\n")
    assert main(["learn", str(tmp_path / "short.csv"), "--window", "auto"]) == 0
    assert "--window N" in capsys.readouterr().out
    assert main(["learn", str(tmp_path / "short.csv"), "--window", "20"]) == 0
    assert "--window N" not in capsys.readouterr().out
