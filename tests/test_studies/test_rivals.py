"""Rivals beside published figures: stored runs match the listed cases, and differences are small enough to explain."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from studies import rivals as study

from ccmem.paper.datasets import load
from ccmem.paper.experiments import rival_row
from ccmem.paper.experiments.protocol import Benchmark
from ccmem.paper.experiments.runs import row_key, run_trial

CASES = {entry["title"]: entry for entry in study._cases()}


@pytest.mark.parametrize("title", CASES)
def test_a_case_has_room_for_just_so_many_images(title: str) -> None:
    entry = CASES[title]
    model = study._model(entry)
    X, y = np.zeros((10, 784), np.float32), np.arange(10)
    model.partial_fit(X, y)
    store = model._store
    assert (store.capacity if hasattr(store, "capacity") else len(store.X)) == entry["stored"]


@pytest.mark.parametrize("title", CASES)
def test_kept_runs_are_near_the_published_figure(title: str) -> None:
    path = study.KEPT / "published.json"
    if not path.is_file():
        pytest.skip("no kept results beside this copy")
    kept = json.loads(path.read_text())
    if title not in kept:
        pytest.skip("not run yet")
    entry = CASES[title]
    assert kept[title]["stored"] == entry["stored"]
    assert kept[title]["parameters"] == entry["parameters"]
    assert abs(np.mean(kept[title]["ACC"]) - entry["figure"]) <= entry["within"]
    assert f"{entry['published']} {entry['figure']:.3f}" in study.published_table(kept)


def test_pages_show_what_was_kept() -> None:
    """If this fails after new runs: ``python -m studies.rivals report``."""
    results = study.kept_results()
    if not results:
        pytest.skip("no kept results beside this copy")
    root = study.HERE.parent
    assert study.short_table(results) in (root / "docs" / "results.md").read_text()
    for result in results:
        text = (root / "REPRODUCTION.md").read_text()
        assert study.for_markdown(study.strict_by_budget(result)) in text
        assert study.quoted_table(result) in text


def test_every_rival_has_five_trials_and_the_papers_rows_ten() -> None:
    for result in study.kept_results():
        for name, row in result["rows"].items():
            quoted = (
                row["standing"]["family"] in ("icarl", "mnemonics") and result["dataset"]["name"] != "fashion-mnist"
            )
            strict = [trial for trial in row["trials"].values() if "strict" in trial["protocols"]]
            assert row["standing"]["ours"] or len(strict) >= (10 if quoted else 5), name


def test_kept_trials_count_on_only_if_the_first_comes_out_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = load("digits", pixels="unit")
    benchmark = Benchmark.of(data)
    about = {"name": "digits", "sha256": {}, "pixels": "unit", "tasks": [], "n_train": len(benchmark.rows)}
    rows = {}
    for name in ("nearest-mean", "streaming-lda"):
        record, _ = run_trial(rival_row("digits", name), benchmark, 3)
        rows[name] = {"key": "old", "trials": {"0": record, "1": {}}}
    rows["streaming-lda"]["trials"]["0"]["protocols"]["strict"]["R"][4][0] += 1e-9
    rows["iwta-at-50k"] = {"key": "old", "trials": {"0": {}}}
    path = tmp_path / "digits.json"
    path.write_text(json.dumps({"dataset": about, "rows": rows}))
    monkeypatch.setattr(study, "KEPT", tmp_path)
    monkeypatch.setattr(study, "DATASETS", ("digits",))
    study.confirm(None)
    keys = {name: row["key"] for name, row in json.loads(path.read_text())["rows"].items()}
    assert keys["nearest-mean"] == row_key(rival_row("digits", "nearest-mean"), about)
    assert keys["streaming-lda"] == keys["iwta-at-50k"] == "old"


def test_text_goes_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- x -->\nold\n<!-- end of x -->\nafter\n")
    study.put_between(page, "x", "new\n")
    assert page.read_text() == "before\n<!-- x -->\n\nnew\n\n<!-- end of x -->\nafter\n"
    with pytest.raises(ValueError, match="has no place for y"):
        study.put_between(page, "y", "new")
