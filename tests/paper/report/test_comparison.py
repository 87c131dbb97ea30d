"""Comparison at equal memory: table and pictures of a result file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ccmem import experiments
from ccmem.paper.report import for_terminal, page, sections, tables
from ccmem.paper.report.comparison import at_equal_memory, by_budget, contenders, front
from ccmem.paper.report.comparison_figures import draw_comparison

KEPT = Path(__file__).parents[3] / "studies" / "evidence" / "rivals"


def row(name: str, accuracy: float, budget: int | None, *, regime: str = "one pass", ours: bool = False):
    family = name.rsplit("-", 1)[0]
    R = [[accuracy + 0.1, None], [accuracy - 0.1, accuracy + 0.1]]
    values = {"ACC": accuracy, "BWT": -0.2, "FMI": 0.5, "ARI": 0.5, "V-M": 0.5}
    trial = {"seed": 0, "seconds": 1.0, "floats": budget or 7, "microseconds": {"paper": 4.0, "strict": 2.0}}
    trial["protocols"] = {protocol: {"metrics": values, "R": R} for protocol in ("paper", "strict")}
    standing = {"family": family, "title": family, "regime": regime, "told": "labels", "budget": budget, "ours": ours}
    return {"title": name, "source": "", "settings": {}, "key": "", "standing": standing, "trials": {"0": trial}}


@pytest.fixture
def result():
    rows = {
        "replay-50k": row("replay-50k", 0.5, 50_000),
        "replay-100k": row("replay-100k", 0.7, 100_000),
        "ccm-100k": row("ccm-100k", 0.8, 100_000, ours=True),
        "icarl-1m": row("icarl-1m", 0.93, 1_000_000, regime="own"),
        "joint": row("joint", 0.97, None, regime="all data"),
    }
    about = {"name": "mnist", "title": "MNIST", "source": "", "notes": [], "sha256": {}, "pixels": "unit"}
    about |= {"image_shape": [28, 28], "class_names": list("0123"), "n_train": 60000, "n_test": 4}
    about |= {"tasks": [[0, 1], [2, 3]], "change_points": [5]}
    return {"format": 1, "dataset": about, "versions": {}, "base_seed": 0, "rows": rows}


def test_contenders_hold_what_the_trials_say(result):
    found = {one.name: one for one in contenders(result)}
    assert len(found) == 5
    assert found["replay-50k"].accuracy["strict"] == (0.5, None)
    assert found["replay-50k"].microseconds == 2.0
    np.testing.assert_allclose(found["replay-50k"].over_time["strict"], [0.6, 0.5])
    result["rows"]["replay-50k"]["trials"]["0"]["microseconds"] = {"paper": 1.0, "strict": 2.0}
    assert contenders(result)[0].microseconds == 2.0  # two labels may be less work than ten
    result["rows"]["replay-50k"]["trials"]["0"]["microseconds"] = {"paper": 1.0}
    assert contenders(result)[0].microseconds == 1.0


def test_the_order_is_that_of_the_settings(result):
    backwards = {**result, "rows": dict(reversed(result["rows"].items()))}
    order = ["replay-50k", "replay-100k", "icarl-1m", "joint", "ccm-100k"]  # rows unknown to the settings come last
    assert [one.name for one in contenders(backwards)] == order


def test_a_protocol_that_was_not_run_is_not_an_empty_cell(result):
    del result["rows"]["joint"]["trials"]["0"]["protocols"]["paper"]
    (line,) = [line for line in at_equal_memory(result).parts[0][0] if line[0] == "joint"]
    assert line[5] == "not run"


def test_the_table_keeps_regimes_apart(result):
    text = for_terminal(at_equal_memory(result))
    order = [text.index(word) for word in ("replay-50k", "ccm-100k (ours)", "icarl-1m", "joint")]
    assert order == sorted(order)
    assert sections({**result, "rows": {}}) == []


def test_budgets_that_do_not_fit_say_so(result):
    head, *lines = by_budget(result)
    cells = {line[0]: line[1:] for line in lines}
    assert head == ("model", "50k", "100k", "400k", "1M", "fixed size", "trials")
    assert cells["replay"] == ("0.500", "0.700", "not run", "not run", "", "1")
    assert cells["icarl, told tasks"][3] == "0.930"
    result["rows"]["joint"]["trials"]["0"]["floats"] = 200_000
    (joint,) = [line for line in by_budget(result) if line[0] == "joint"]
    assert joint[1:] == ("does not fit", "does not fit", "", "", "0.970 with 200,000", "1")
    assert by_budget({**result, "rows": {}}) == []


def test_one_trial_has_no_spread(result):
    assert "±" not in for_terminal(at_equal_memory(result))
    assert "0.9300 (1 trial)" in for_terminal(tables(result)[0])
    again = result["rows"]["icarl-1m"]["trials"]
    again["1"] = json.loads(json.dumps(again["0"]))
    assert "0.9300 ± 0.0000" in for_terminal(at_equal_memory(result))


def test_rows_the_paper_quotes_are_compared_where_they_ran(result):
    (paper,) = tables(result)
    assert [line.name for line in paper.lines] == ["mnemonics", "icarl-1m"]
    text = for_terminal(paper)
    assert text.count("quoted, not run") == 2
    assert "0.9300" in text
    assert "verified" in text
    assert "At equal memory" in page({"mnist": result}, {}, "ccmem")


def test_every_budget_of_a_quoted_row_is_held_against_it_as_the_mlp_is(result):
    printed, allowed = (experiments.paper()["mnist"]["icarl"]["ACC"][0], experiments.paper()["tolerance"]["mlp"])
    for budget, gap in (("50k", -1.01), ("100k", 1.01), ("400k", 0.99)):
        accuracy = printed + gap * allowed["ACC"]
        result["rows"][f"icarl-{budget}"] = row(f"icarl-{budget}", accuracy, 1_000 * int(budget[:-1]), regime="own")
    (paper,) = tables(result)
    found = {line.name: line.cells[0].verdict for line in paper.lines if line.name.startswith("icarl")}
    assert found == {"icarl-1m": "verified", "icarl-50k": "missed", "icarl-100k": "missed", "icarl-400k": "verified"}


def test_pictures_are_drawn(result):
    pytest.importorskip("matplotlib")
    names = [name for name, caption, figure in draw_comparison(result) if caption and figure.axes]
    assert names == ["mnist-memory", "mnist-over-time", "mnist-cost"]
    assert list(draw_comparison({**result, "rows": {}})) == []
    for name, entry in result["rows"].items():  # strict was requested; rows that receive task boundaries have both
        if name != "icarl-1m":
            del entry["trials"]["0"]["protocols"]["paper"]
    _, _, memory = next(iter(draw_comparison(result)))
    assert [panel.get_title() for panel in memory.axes] == ["MNIST, strict protocol"]
    only = {**result, "rows": {"icarl-1m": result["rows"]["icarl-1m"]}}
    assert len(list(draw_comparison(only))) == 3


def test_no_point_of_the_front_is_beaten():
    rng = np.random.default_rng(0)
    points = [tuple(point) for point in rng.random((50, 2))]
    best = front(points)
    for floats, accuracy in points:
        assert any(f <= floats and a >= accuracy for f, a in best)
    assert [f for f, _ in best] == sorted(f for f, _ in best)
    assert [a for _, a in best] == sorted(a for _, a in best)


@pytest.mark.parametrize("name", ["mnist", "notmnist", "fashion-mnist"])
def test_kept_results_are_within_their_budgets(name):
    path = KEPT / f"{name}.json"
    if not path.is_file():
        pytest.skip("no kept results beside this copy")
    found = contenders(json.loads(path.read_text()))
    assert {one.name for one in found} <= {row.name for row in experiments.rows(name, kinds=["rivals"])}
    assert all(one.budget is None or one.floats <= one.budget for one in found)
