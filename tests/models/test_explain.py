"""Explanations of events: shares and spreads by their formulas, the text, and the table of events."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ccmem import CCM
from ccmem.core.events import Event
from ccmem.models._explain import SHOWN, Profile, explain, profile_of_units
from ccmem.models._frame import events_table

EVENT = Event("new_block", step=90, from_block=0, to_block=1, count=11)


def memory_of(before: Any, after: Any, spreads: tuple[Any, Any], own_units: bool, names: Any = None) -> Any:
    profiles = [Profile(np.array(level, float), np.array(spread, float), own_units) for level, spread in
                zip((before, after), spreads, strict=True)]  # fmt: skip
    named = {} if names is None else {"feature_names_in_": names}
    return SimpleNamespace(n_blocks_=2, _profile=profiles.__getitem__, **named)


SAME: Any = ([1.0], [2.0], ([0.1], [0.1]), True)
BEFORE, AFTER, SPREADS = [1.0, 2.0, 3.0], [1.5, 6.0, 3.0], ([0.1, 0.6, 0.0], [0.7, 0.8, 0.0])


@pytest.mark.parametrize("own_units", [True, False])
def test_columns_are_compared_in_units_of_their_spread(own_units: bool) -> None:
    found = explain(memory_of(BEFORE, AFTER, SPREADS, own_units, ["a", "b", "c"]), EVENT)
    change, spread = np.subtract(AFTER, BEFORE), np.sqrt((np.square(SPREADS[0]) + np.square(SPREADS[1])) / 2)
    floor = 1e-6 * np.add(BEFORE, AFTER) if own_units else 0.1 * spread.mean()
    spreads = np.abs(change) / (spread + floor)
    assert [column.name for column in found.columns] == ["b", "a", "c"]
    order = [1, 0, 2]
    np.testing.assert_allclose([column.spreads for column in found.columns], spreads[order])
    np.testing.assert_allclose([column.share for column in found.columns], (spreads**2 / (spreads**2).sum())[order])
    np.testing.assert_allclose([column.change for column in found.columns], change[order])
    assert (found.columns[1].before, found.columns[1].after) == (1.0, 1.5)
    assert found.own_units == own_units


@pytest.mark.parametrize("own_units", [True, False])
def test_nothing_that_moved_and_nothing_that_varies_gives_numbers(own_units: bool) -> None:
    still = explain(memory_of(BEFORE, BEFORE, ([0.0] * 3, [0.0] * 3), own_units), EVENT)
    assert [column.share for column in still.columns] == [0.0] * 3
    assert [column.name for column in still.columns] == ["column 0", "column 1", "column 2"]
    unseen = explain(memory_of([np.nan, 1.0], [1.0, 2.0], ([0.0, 0.0], [0.0, 0.0]), own_units), EVENT)
    assert [column.share for column in unseen.columns] == [1.0, 0.0]
    if not own_units:
        assert unseen.columns[0].spreads == 1.0  # without any spread, in units of the data


def test_the_text_shows_the_columns_that_moved_most() -> None:
    n = SHOWN + 3
    names = [f"sensor of bearing {i}" for i in range(n)]
    found = explain(memory_of(np.zeros(n), np.arange(n) + 1.0, (np.ones(n), np.ones(n)), True, names), EVENT)
    lines = str(found).splitlines()
    assert len(lines) == 1 + SHOWN + 1
    assert lines[-1] == "  ... and 3 more columns"
    assert lines[1].startswith(f"  sensor of bearing {n - 1}  ")
    assert f"-> {n:10.4g}  {n:+10.4g}" in lines[1]
    few = explain(memory_of(BEFORE, AFTER, SPREADS, True), EVENT)
    assert len(str(few).splitlines()) == 4
    assert "more columns" not in str(few)
    assert str(few).splitlines()[1].startswith(f"  column 1  {2.0:10.4g} -> {6.0:10.4g}")  # no wider than the names
    assert str(explain(memory_of(*SAME, ["n" * 30]), EVENT)).splitlines()[1].startswith(f"  {'n' * 24}  ")


def test_blocks_and_events_that_are_not_there_are_refused() -> None:
    memory = memory_of(BEFORE, AFTER, SPREADS, True)
    for wrong in (EVENT._replace(to_block=2), EVENT._replace(from_block=-1)):
        with pytest.raises(ValueError, match="there is no block"):
            explain(memory, wrong)
    with pytest.raises(TypeError, match="explain needs an event"):
        explain(memory, "new_block")  # type: ignore[arg-type]


def turning() -> CCM:
    """Return a memory with three events: block 1 begins, block 0 comes back, block 1 comes back."""
    rng = np.random.default_rng(0)
    a, b = np.array([1.0, 0.0, 0.1]), np.array([0.0, 1.0, 0.1])
    X = np.concatenate([part + 0.01 * rng.random((40, 3)) for part in (a, b, a, b)])
    model = CCM(
        n_slots=1, vigilance=0.9, alarm_limit=3, recall_limit=1, commit_limit=9, learning_rate=0.5, random_state=0
    )
    return model.partial_fit(X, times=np.arange(160.0) * 60)


def test_the_table_has_durations_names_and_no_evidence_where_there_is_none() -> None:
    memory = turning()
    assert [event.kind for event in memory.events_] == ["new_block", "recall", "recall"]
    memory.name_block(1, "x" * 80)
    table = events_table(memory)
    onsets = [event.onset_time for event in memory.events_]
    assert table["duration"] == [onsets[1] - onsets[0], onsets[2] - onsets[1], None]
    assert table["block"] == ["x" * 80, "block 0", "x" * 80]
    assert table["before"] == ["block 0", "x" * 80, "block 0"]
    assert table["evidence"] == [event.evidence or None for event in memory.events_]
    assert table["moved"][0].split(", ")[-1] == "column 2"
    with pytest.raises(ValueError, match="at most 80 characters, not 81"):
        memory.name_block(1, "x" * 81)


def test_a_profile_weighs_units_by_their_wins() -> None:
    memory = turning()
    state, units = memory._started(), np.flatnonzero(memory.unit_blocks_ == 1)
    weights = state.wins[units] / state.wins[units].sum()
    level = weights @ state.prototypes[units]
    found = profile_of_units(memory, 1)
    np.testing.assert_allclose(found.level, level)
    np.testing.assert_allclose(found.spread, np.sqrt(weights @ (state.prototypes[units] - level) ** 2))
    assert not found.own_units
