"""Rows of the comparison at equal memory: possible, within budget, and given the information they declare."""

from __future__ import annotations

import inspect
import math
import sys
from dataclasses import replace

import numpy as np
import pytest

from ccmem import IncrementalWTA, ModalClassifier
from ccmem.paper import experiments, rivals
from ccmem.paper.datasets import catalogue, load
from ccmem.paper.experiments import runs
from ccmem.paper.experiments.floats import floats_held
from ccmem.paper.experiments.protocol import Benchmark, run
from ccmem.paper.rivals import FineTuning, ICaRL, NearestMean
from ccmem.readout import OnlineMLP

AT = {"50k": 11, "400k": 12}
BUDGETS = ("50k", "100k", "400k", "1M")
ROWS = {row.name: row for row in experiments.rows("mnist", kinds=["rivals"])}


@pytest.mark.parametrize("name", ROWS)
def test_every_row_can_be_built_and_fits_its_budget(name):
    row = ROWS[name]
    X = np.zeros((1300, 784), np.float32)
    model = row.build(X, np.arange(1300), seed=1)
    if isinstance(model, rivals.Rival):
        model.n_features_in_ = 784
        needs = sum(model._need(10).values()) if not row.is_told_tasks else 0
        assert row.standing.budget is None or needs <= row.standing.budget == model.max_floats
        assert ("boundaries" in row.standing.told) == row.is_told_tasks
    else:
        assert row.standing.ours
    if row.model == "Stack":  # its size does not depend on the data
        rng = np.random.default_rng(0)
        held = floats_held(model.partial_fit(rng.random((1300, 784), np.float32), np.arange(1300) % 10))
        assert held <= row.standing.budget  # at a million including its working space
    assert row.source


@pytest.mark.parametrize("dataset", catalogue())
def test_every_data_set_has_the_same_rows(dataset):
    assert [row.name for row in experiments.rows(dataset, kinds=["rivals"])] == list(ROWS)
    assert [row.name for row in experiments.rows(dataset, ["icarl"], ["paper", "rivals"])] == [
        f"icarl-{budget}" for budget in ("50k", "100k", "400k", "1m")
    ]


def test_the_paper_network_does_not_fit_where_the_settings_say_so():
    X, y = np.zeros((10, 784), np.float32), np.arange(10)
    for name in ("replay", "gdumb", "icarl"):
        facts = experiments.rivals()["rows"][name]
        for budget in ("50k", "100k"):
            assert facts["budgets"][budget]["hidden_sizes"] == [27, 26]
        model = getattr(rivals, facts["model"])(max_floats=experiments.rivals()["budgets"]["50k"])
        with pytest.raises(rivals.DoesNotFit, match="network 98,944"):
            model.partial_fit(X, y)


def test_search_spaces_are_parameters_and_equally_large():
    for facts in experiments.rivals()["rows"].values():
        if "search" in facts:
            allowed = inspect.signature(getattr(rivals, facts["model"])).parameters
            assert set(facts["search"]) | set(facts["parameters"]) <= set(allowed)
    for models in experiments.tuned().values():
        for name in set(models) & set(ROWS):
            search = experiments.rivals()["rows"][models[name]["command"].split()[4]]["search"]
            ways = math.prod(len(values) for values in search.values())
            assert len(models[name]["candidates"]) == 1 + min(7, ways)  # nearest class mean has two variants


def test_tuning_serves_its_budget_and_those_above(monkeypatch):
    found = {"mnist": {f"replay-{at}": {"parameters": {"n_replayed": n}, "command": "x"} for at, n in AT.items()}}
    monkeypatch.setitem(vars(sys.modules["ccmem.paper.experiments"]), "tuned", lambda: found)
    chosen = [experiments.rival_row("mnist", "replay", budget).parameters["n_replayed"] for budget in BUDGETS]
    assert chosen == [11, 11, 12, 12]
    assert [row.name for row in experiments.rows_to_tune("mnist", "replay")] == ["replay-50k", "replay-400k"]
    assert [row.name for row in experiments.rows_to_tune("mnist", "joint")] == ["joint"]
    with pytest.raises(ValueError, match="no search space for 'stack-at'"):
        experiments.rows_to_tune("mnist", "stack-at")


@pytest.fixture(scope="module")
def benchmark():
    return Benchmark.of(load("digits", pixels="unit"))


def test_a_rival_that_knows_tasks_learns_classes_under_both_protocols(benchmark):
    stream = benchmark.stream(0)
    ends = [*stream.change_points, len(stream)]
    outcomes = run(ICaRL((16,), task_ends=ends, max_floats=8_000, random_state=0), benchmark, stream)
    assert len(outcomes["paper"].model.classes_) == len(outcomes["strict"].model.classes_) == 10
    assert (outcomes["paper"].R[-1] >= outcomes["strict"].R[-1]).all()  # the correct class is in the correct position
    blind = run(FineTuning((16,), random_state=0), benchmark, stream)
    assert len(blind["paper"].model.classes_) == 2


def test_a_trial_tells_floats_and_time(benchmark):
    row = experiments.rival_row("digits", "icarl", "50k")
    assert row.is_told_tasks
    row = replace(row, parameters={**row.parameters, "n_epochs": 1})
    record, _ = runs.run_trial(row, benchmark, 0, ["strict"])
    assert list(record["protocols"]) == ["paper", "strict"]  # the second costs nothing
    assert 0 < record["floats"] <= 50_000
    assert record["microseconds"]["strict"] > 0


def test_floats_of_memories_and_networks(benchmark):
    model = experiments.rival_row("digits", "iwta-at", "50k").build(benchmark.X, benchmark.rows, 0)
    model.partial_fit(benchmark.X[:100], benchmark.y[:100])
    n_classes = len(model.classes_)
    assert floats_held(model) - 62 * (64 + 2 + n_classes) in range(1, 20)  # and a few counters
    own, shared = (
        ModalClassifier(IncrementalWTA(8), metric=metric).partial_fit(benchmark.X[:100], benchmark.y[:100])
        for metric in ("own", "shared")
    )
    assert floats_held(shared) == floats_held(own)  # the metric follows from units and votes
    net = OnlineMLP((5,), optimizer="adam").partial_fit(benchmark.X[:100], benchmark.y[:100])
    assert floats_held(net) >= 3 * (65 * 5 + 6 * 10)
    assert floats_held(NearestMean().fit(benchmark.X, benchmark.y)) == 650
    with pytest.raises(TypeError, match="does not report how many floats"):
        floats_held(object())
