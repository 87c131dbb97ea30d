"""Events at the end of a run: alerts, exit codes, comparison, metrics, and messages for typing errors."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pytest

import ccmem
from ccmem.cli import main


@pytest.fixture(autouse=True)
def recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    levels = np.repeat([[1.0, 1.0, 0.2], [1.0, 0.1, 0.2], [1.0, 1.0, 0.2]], 300, axis=0)
    minutes = np.datetime64("2015-02-05T00:00") + np.arange(900)
    rows = [f"{t},{a:.4f},{b:.4f},{c:.4f}" for t, (a, b, c) in zip(minutes, rng.normal(levels, 0.1), strict=True)]
    Path("a.csv").write_text("\n".join(["time,a,b,c", *rows]) + "\n")
    Path("half.csv").write_text("\n".join(["time,a,b,c", *rows[:280]]) + "\n")


def test_a_run_ends_with_its_events(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["learn", "a.csv", "--checkpoint", "m"]) == 0
    text = capsys.readouterr().out
    assert "time time: from 5 Feb 2015 00:00 to 5 Feb 2015 14:59 (14 h 59 min), a row every 1 min" in text
    first, second = text.partition("events (2):\n")[2].splitlines()
    assert first.split()[:6] == ["5", "Feb", "2015", first.split()[3], "◆", "new"]
    assert "new block 1" in first
    assert "after block 0" in first
    assert "for 5 h" in first
    assert first.endswith("  b")  # the only column that moved
    assert "back to block 0" in second
    memory = ccmem.load("m")
    memory.name_block(1, "valve shut")
    memory.save("named")
    assert main(["inspect", "named"]) == 0
    text = capsys.readouterr().out
    assert "0 -> valve shut" in text
    assert "began 5 Feb 2015 05:00" in text
    assert main(["inspect", "named", "--json"]) == 0
    event = json.loads(capsys.readouterr().out)["events"][0]
    assert event["block_name"] == "valve shut"
    assert event["when"].startswith(("5 Feb 2015 05:", "5 Feb 2015 06:"))
    assert event["onset_time"] == np.datetime64("2015-02-05T05:00", "s").astype(int)


def test_exit_codes_tell_of_new_blocks_and_recalls() -> None:
    assert main(["learn", "half.csv", "--checkpoint", "m", "--quiet", "--exit-code"]) == 0
    assert main(["learn", "a.csv", "--checkpoint", "n", "--quiet", "--exit-code"]) == 10
    lines = Path("a.csv").read_text().splitlines(keepends=True)
    Path("back.csv").write_text("".join([lines[0], *lines[301:601]]))
    assert main(["learn", "back.csv", "--checkpoint", "n", "--quiet", "--exit-code"]) == 11
    assert main(["learn", "back.csv", "--checkpoint", "n", "--quiet", "--exit-code"]) == 0


def test_alerts_run_a_command_without_a_shell(capfd: pytest.CaptureFixture[str]) -> None:
    code = "import json, sys; r = json.load(sys.stdin); open('log', 'a').write(sys.argv[1] + '|' + r['when'] + chr(10))"
    assert main(["learn", "a.csv", "--quiet", "--alert", shlex.join([sys.executable, "-c", code])]) == 0
    lines = Path("log").read_text().splitlines()
    assert [line.partition(" at ")[0] for line in lines] == ["new block 1", "recall of block 0"]
    assert "|5 Feb 2015" in lines[0]
    assert main(["learn", "a.csv", "--quiet", "--alert", "no-such-command; touch hacked"]) == 0
    assert "--alert no-such-command;" in capfd.readouterr().err
    assert not Path("hacked").exists()
    assert main(["learn", "a.csv", "--quiet", "--alert", "'"]) == 1


def test_two_checkpoints_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["learn", "a.csv", "--checkpoint", "whole", "--quiet"]) == 0
    assert main(["learn", "half.csv", "--checkpoint", "half", "--quiet"]) == 0
    capsys.readouterr()
    assert main(["compare", "half", "whole", "--json", "--exit-code"]) == 10
    facts = json.loads(capsys.readouterr().out)
    assert [(pair["a"]["block"], pair["b"]["block"]) for pair in facts["common"]] == [(0, 0)]
    assert [block["block"] for block in facts["new"]] == [1]
    assert facts["missing"] == []
    assert main(["compare", "whole", "half", "--exit-code"]) == 0
    assert "1 common, 0 new, 1 missing" in capsys.readouterr().out
    ccmem.AdaptiveCCM().partial_fit(np.eye(2)).save("other")
    assert main(["compare", "whole", "other"]) == 1
    assert "same columns" in capsys.readouterr().err


def test_the_page_serves_metrics() -> None:
    X = np.repeat(np.eye(3), 200, axis=0) + np.random.default_rng(0).normal(0, 0.05, (600, 3))
    memory = ccmem.AdaptiveCCM().partial_fit(X, times=1.7e9 + np.arange(600.0))
    with ccmem.watch(memory, browser=False, title='line "7"') as page:
        page._observer.look()
        with urllib.request.urlopen(page.url + "metrics") as answer:
            assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
            text = answer.read().decode()
    assert text.endswith("# EOF\n")
    assert 'ccmem_rows_total{stream="line \\"7\\""} 600' in text
    assert f'ccmem_blocks{{stream="line \\"7\\""}} {memory.n_blocks_}' in text
    assert 'kind="new_block"} 2' in text
    assert "ccmem_seconds_since_event" in text


def test_slips_get_an_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["learn", "half.csv", "--checkpoint", "m.safetensors", "--quiet"]) == 0
    for words, message in (
        (["inspect", "m.safetensor"], "there is no file m.safetensor; did you mean m.safetensors?"),
        (["predict", "a.csv", "--checkpoint", "x/m"], "there is no folder x"),
        (["watch", "n"], "there is no file n"),
        (["learn", "a.csv", "--model", "adaptve"], "did you mean adaptive?"),
    ):
        assert main(words) == 1
        assert message in capsys.readouterr().err


def test_a_closed_pipe_is_no_error() -> None:
    assert main(["learn", "a.csv", "--checkpoint", "m", "--quiet"]) == 0
    words = [sys.executable, "-m", "ccmem.cli", "predict", *["a.csv"] * 1, "--checkpoint", "m"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


def test_python_names_what_is_wrong() -> None:
    pd = pytest.importorskip("pandas")
    memory = ccmem.AdaptiveCCM()
    with pytest.raises(ValueError, match="column 'b', row 1 holds 'off'"):
        memory.partial_fit(pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, "off"]}))
    with pytest.raises(ValueError, match="column '1', row 0 holds 'x'"):
        memory.partial_fit([[1, "x"]])
    with pytest.raises(ValueError, match="X is None"):
        memory.partial_fit(None)
    with pytest.raises(ValueError, match="X is empty"):
        memory.partial_fit([])
    with pytest.raises(TypeError, match=r"ccmem\.river"):
        memory.learn_one({"a": 1.0})
    memory.partial_fit(np.eye(3))
    with pytest.raises(ValueError, match="2 features, but AdaptiveCCM is expecting 3"):
        memory.partial_fit([[1.0, 2.0]])


def test_the_dashboard_asks_for_metrics_that_exist() -> None:
    import re

    from ccmem.app.watching.server import metrics_text

    memory = ccmem.AdaptiveCCM().partial_fit(np.repeat(np.eye(3), 200, axis=0), times=np.arange(600.0))
    served = set(re.findall(r"^(ccmem_\w+)", metrics_text(memory, "a"), re.MULTILINE))
    text = (Path(__file__).parents[3] / "examples/grafana/ccmem.json").read_text()
    json.loads(text)
    asked = set(re.findall(r"ccmem_\w+", text))
    assert asked == served


def test_a_fleet_tells_when_its_events_were(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow")
    lines = Path("a.csv").read_text().splitlines()
    rows = [f"pump,{line.replace('T', ' ')}:00{rest}" for line, rest in ((x[:16], x[16:]) for x in lines[1:])]
    Path("fleet.csv").write_text("\n".join(["key,time,a,b,c", *rows]) + "\n")
    words = ["--key", "key", "--order", "time", "--store", "s", "--workers", "1"]
    assert main(["fleet", "learn", "fleet.csv", *words]) == 0
    capsys.readouterr()
    assert main(["fleet", "inspect", "pump", "--store", "s", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["last_time"] == "5 Feb 2015 14:59"
    assert facts["events"][0]["when"].startswith(("5 Feb 2015 05:", "5 Feb 2015 06:"))
    assert main(["fleet", "inspect", "pump", "--store", "s"]) == 0
    assert "new_block 0 -> 1 at 5 Feb 2015 0" in capsys.readouterr().out


def test_columns_that_surely_moved_are_named_beside_a_switch(capsys: pytest.CaptureFixture[str]) -> None:
    """A column of 0 and 1 moves by very many of its standard deviations."""
    rng = np.random.default_rng(0)
    levels = np.repeat([[0.0, 21.0, 5.0], [1.0, 24.0, 5.0]], 300, axis=0)
    rows = [f"{a:.0f},{b:.4f},{c:.4f}" for a, b, c in rng.normal(levels, [0.0, 0.4, 0.4])]
    Path("pump.csv").write_text("\n".join(["pump,temperature,flow", *rows]) + "\n")
    assert main(["learn", "pump.csv"]) == 0
    assert capsys.readouterr().out.rstrip().endswith("  pump, temperature")
