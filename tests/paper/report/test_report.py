"""Tables, verdicts and the page."""

from __future__ import annotations

import re

import pytest

from ccmem.paper import experiments, report
from ccmem.paper.report.tables import BETTER, MISSED, QUOTED, VERIFIED, _verdict, compared, measured, tables, verdicts


def trial(acc, seed=0, **more):
    metrics = {"ACC": acc, "BWT": -0.02, "FMI": 0.9, "ARI": 0.89, "V-M": 0.91}
    R = [[acc, None], [acc, acc]]
    protocols = {name: {"metrics": dict(metrics), "R": R} for name in ("paper", "strict")}
    return {"seed": seed, "seconds": 1.0, "protocols": protocols, **more}


@pytest.fixture
def result():
    row = {"source": "says <so>", "settings": {}, "key": "k"}
    return {
        "dataset": {
            "name": "notmnist",
            "title": "NotMNIST",
            "source": "here",
            "notes": ["odd & even"],
            "sha256": {},
            "pixels": "unit",
            "image_shape": [2, 2],
            "class_names": list("ABCD"),
            "n_train": 10,
            "n_test": 4,
            "tasks": [[0, 1], [2, 3]],
            "change_points": [5],
        },
        "versions": {"ccmem": "0"},
        "base_seed": 0,
        "rows": {
            "ccm": {
                **row,
                "title": "CCM",
                "trials": {
                    "0": trial(0.86, units=10, used_units=9, blocks=2, events=[]),
                    "1": trial(0.90, units=10, used_units=10, blocks=3, events=[]),
                },
            },
            "ccm-tuned": {**row, "title": "CCM, tuned", "trials": {"0": trial(0.95)}},
            "mlp": {**row, "title": "MLP", "trials": {}},
        },
    }


def test_cells_hold_means_and_verdicts(result):
    paper, strict = tables(result)
    lines = {line.name: line for line in paper.lines}
    assert list(lines) == ["icarl", "mnemonics", "ccm", "ccm-tuned"]
    cell = lines["ccm"].cells[0]
    assert cell.mean == pytest.approx(0.88)
    assert cell.std == pytest.approx(0.0283, abs=1e-4)
    assert cell.paper == tuple(experiments.paper()["notmnist"]["ccm"]["ACC"])
    assert cell.difference == pytest.approx(0.0016)
    assert cell.verdict == BETTER
    assert lines["icarl"].cells[0].verdict == QUOTED
    assert lines["ccm"].units == "9 to 10 in 2 to 3 blocks"
    assert lines["ccm-tuned"].cells[0].paper is None
    assert any("100,000" in note for note in paper.notes)
    assert all(cell.paper is None for line in strict.lines for cell in line.cells)


@pytest.mark.parametrize(
    ("dataset", "name", "metric", "ours", "verdict"),
    [
        ("mnist", "iwta", "ACC", 0.8285 + 0.0199, VERIFIED),
        ("mnist", "iwta", "ACC", 0.8285 + 0.0201, MISSED),
        ("mnist", "iwta", "ACC", 0.8285 - 0.0201, MISSED),
        ("mnist", "ccm", "ACC", 0.95, BETTER),
        ("mnist", "ccm", "ACC", 0.9367, MISSED),
        ("mnist", "ccm-mlp", "BWT", -0.002, VERIFIED),
        ("mnist", "ccm-mlp", "BWT", -0.0021, MISSED),
        ("notmnist", "ccm", "ACC", 0.85, VERIFIED),
        ("notmnist", "ccm", "ACC", 0.8498, MISSED),
    ],
)
def test_verdicts(dataset, name, metric, ours, verdict):
    printed = experiments.paper()[dataset][name][metric][0]
    assert _verdict(dataset, name, metric, ours, printed) == verdict


def test_text(result):
    paper, strict = tables(result)
    assert [line[0] for line in compared(paper.lines)] == ["iCaRL", "", "Mnemonics", "", "CCM", "", "", "", ""]
    assert [line[0] for line in measured(paper.lines, only_new=True)] == ["CCM, tuned"]
    assert [line[0] for line in measured(strict.lines, only_new=False)] == ["CCM", "CCM, tuned"]
    text = report.for_terminal(paper)
    assert "0.8784 ± 0.0110" in text
    assert "quoted, not run" in text
    assert "the paper learned from 100,000 training images, these runs from 10" in text
    assert verdicts(paper.lines) in text
    assert verdicts(strict.lines) == ""
    assert report.for_markdown(strict).count("\n|---|") == 1


def test_page_is_self_contained_and_escaped(result, tmp_path):
    path = report.write_report({"notmnist": result}, tmp_path, "ccmem reproduce <x>", seconds=3.0)
    html = path.read_text()
    assert "<x>" not in html
    assert "odd &amp; even" in html
    assert not re.search(r'(src|href)="(?!data:|#)', html)
    assert "@import" not in html
    assert html.count("data:image/png;base64,") == len(list((tmp_path / "figures").glob("*.png"))) == 4
    assert (tmp_path / "tables.md").read_text().startswith("### NotMNIST, paper protocol")
    assert list(tmp_path.rglob(".*")) == []


def test_the_verdict_comes_first(result, tmp_path):
    said = report.headline(result)
    assert said.startswith("NotMNIST (2 trials): 4 of 5 printed figures reached, 1 missed (CCM BWT -0.0200, printed ")
    html = report.write_report({"notmnist": result}, tmp_path, "c").read_text()
    places = [
        html.index(part) for part in (said[:40], "ACC of every model, paper protocol", "<table>", "Task matrices")
    ]
    assert places == sorted(places)
    chart = report.bars(result).splitlines()
    assert len(chart) == 3  # models with results
    assert chart[1].index("|") == chart[1].index("CCM") + len("CCM, tuned") + 2 + round(40 * 0.8784)
    no_twin = {**result, "dataset": {**result["dataset"], "name": "digits", "title": "digits"}}
    assert report.headline(no_twin).endswith("the best ACC is 0.9500, of CCM, tuned")


def test_terminals_are_100_wide(result):
    result["rows"]["ccm"]["title"] = "a model with a long name of its own"
    result["dataset"]["notes"] = ["a note " * 30]
    for table in tables(result):
        text = report.for_terminal(table)
        assert max(map(len, text.splitlines())) <= 100
        assert "9 to 10 in 2 to 3 blocks" in text or table.protocol == "paper"  # nothing is omitted


def test_a_report_of_one_protocol(result, tmp_path):
    for row in result["rows"].values():
        for one in row["trials"].values():
            del one["protocols"]["paper"]
    html = report.write_report({"notmnist": result}, tmp_path, "c").read_text()
    assert "ACC of every model, strict protocol" in html


def test_page_without_figures(result, tmp_path, monkeypatch, capsys):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    html = report.write_report({"notmnist": result}, tmp_path, "c").read_text()
    assert "pip install matplotlib" in html
    assert "no figures" in capsys.readouterr().err


def test_summary_is_json(result):
    import json

    found = json.loads(json.dumps(report.summary(result)))
    assert found["protocols"]["paper"]["ccm"]["metrics"]["ACC"]["verdict"] == BETTER
    assert found["protocols"]["strict"]["ccm"]["metrics"]["ACC"]["paper"] is None
