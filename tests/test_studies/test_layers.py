"""Study of layers: order of streams, other data that can be learned, and tables of stored results."""

from __future__ import annotations

import numpy as np
import pytest
from studies import layers, layers_other, layers_report


@pytest.mark.parametrize(
    ("name", "first"),
    [("standard", {0, 1}), ("reversed", {8, 9}), ("one class at a time", {0}), ("joint", set(range(10)))],
)
def test_a_stream_has_every_row_once_in_the_order_that_it_says(name: str, first: set[int]) -> None:
    y = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 40))
    rows = layers.orders(y, name, seed=1)
    assert sorted(rows) == list(range(400))
    assert set(y[rows[: 40 * len(first)]]) == first


def test_every_line_of_the_study_can_be_built() -> None:
    for _, _, line, _, arguments in layers.runs():
        if line not in layers_other.MODELS:
            assert layers.new(arguments["model"], seed=0).get_params()


@pytest.mark.parametrize("case", layers_other.CASES)
def test_other_data_come_class_by_class_and_can_be_told_apart(case: str) -> None:
    data = layers_other.stream(case, seed=0)
    assert len(data.X) == len(data.y) > len(data.X_test) == len(data.y_test)
    assert np.isfinite(data.X).all()
    assert set(data.y_test) <= set(data.y)
    if "," not in case:
        assert (np.diff(data.y // 2) >= 0).all()
    assert layers_other.accuracy(case, "readout", seed=0)["ACC"] > 0.8


def test_the_tables_are_those_of_the_kept_trials() -> None:
    assert (layers.FOLDER / "tables.md").read_text(encoding="utf-8") == layers_report.markdown()
