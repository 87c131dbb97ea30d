"""Committed settings: complete, valid, and sufficient for the printed tables."""

from __future__ import annotations

import numpy as np
import pytest

from ccmem import experiments
from ccmem.paper.datasets import catalogue

KINDS = experiments.KINDS[:-1]  # rivals are in test_rival_rows.py
ROWS = [(dataset, row.name) for dataset in catalogue() for row in experiments.rows(dataset, kinds=KINDS)]


@pytest.mark.parametrize(("dataset", "name"), ROWS)
def test_every_row_builds_and_learns(dataset, name):
    row = next(row for row in experiments.rows(dataset, kinds=KINDS) if row.name == name)
    rng = np.random.default_rng(0)
    X = rng.random((600, 100), dtype=np.float32)  # rows that are also images, for layers
    model = row.build(X, np.arange(600), seed=1)
    model.partial_fit(X, rng.integers(0, 2, 600))
    assert set(model.predict(X[:5])) <= {0, 1}
    assert row.source


def test_every_data_set_has_settings():
    assert set(experiments.settings()["datasets"]) == set(catalogue())


def test_printed_tables_have_a_row_and_a_tolerance_each():
    paper = experiments.paper()
    for dataset in ("mnist", "notmnist"):
        assert list(paper[dataset]) == [*experiments.model_names(), *paper["quoted"]]
        for name, cells in paper[dataset].items():
            assert set(cells) <= set(paper["tolerance"][name])


def test_changed_puts_parameters_where_they_belong():
    row = experiments.changed(
        experiments.named_row("mnist", "ccm-mlp"), "x", {"learning_rate": 0.5, "memory.vigilance": 0.1, "start": "own"}
    )
    assert row.parameters["learning_rate"] == 0.5
    assert row.parameters["memory"]["vigilance"] == 0.1
    assert "vigilance" not in row.parameters
    assert experiments.named_row("mnist", "ccm-mlp").parameters["memory"]["vigilance"] == 0.8


def test_unknown_names():
    with pytest.raises(ValueError, match="unknown model 'svm'; there are iwta"):
        experiments.rows("mnist", ["svm"])
    with pytest.raises(ValueError, match="unknown kind of rows 'best'"):
        experiments.rows("mnist", kinds=["best"])
    with pytest.raises(ValueError, match="no model 'Nothing'"):
        experiments.model_class("Nothing")


def test_tuned_rows_stay_within_the_same_number_of_units():
    for dataset, models in experiments.tuned().items():
        for model, found in models.items():
            assert found["validation_score"] >= found["untuned_score"]
            name = found["command"].split()[4]
            assert found["command"].startswith(f"ccmem tune {dataset} --models {name} ")
            assert model in [name, *(row.name for row in experiments.rows(dataset, [name], ["rivals"]))]
            assert not {"n_units", "max_units", "n_slots"} & set(found["parameters"])
