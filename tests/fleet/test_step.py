"""The step function: pure, idempotent, and independent of the batching of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccmem import CCM, AdaptiveCCM, CheckpointError, IncrementalWTA, ModalClassifier, OnlineMLP
from ccmem.fleet import Member, Recipe, Rows, step
from ccmem.fleet.step import KEPT_EVENTS, LateRowsError, advance, seed_of

RECIPES = {
    "adaptive": Recipe(AdaptiveCCM(n_slots=3)),
    "bounded": Recipe(AdaptiveCCM(n_slots=3, max_units=5), "standard"),
    "paper": Recipe(CCM(n_slots=2, alarm_limit=3, recall_limit=2, commit_limit=1), "unit"),
    "wta": Recipe(IncrementalWTA(n_units=3)),
    "classifier": Recipe(ModalClassifier(AdaptiveCCM(n_slots=3))),
}


def stream(n_rows: int = 1200, seed: int = 0) -> Rows:
    """Three tasks in turn."""
    rng = np.random.default_rng(seed)
    centres = np.array([[1.0, 0, 0, 0.2], [0, 1, 0.5, 0], [0, 0, 1, 1]])
    X = centres[np.arange(n_rows) // 300 % 3] + rng.normal(0, 0.1, (n_rows, 4))
    return Rows(np.arange(n_rows) * 10, X.astype(np.float32), np.array(list("abc"))[np.arange(n_rows) // 300 % 3])


@pytest.mark.parametrize("name", RECIPES)
@settings(max_examples=5)
@given(st.data())
def test_batches_repeats_and_order_within_a_batch_change_nothing(name: str, data: st.DataObject) -> None:
    recipe, rows = RECIPES[name], stream()
    whole, events = step("pump", None, rows, recipe)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows.order)), max_size=5)))
    shuffle = np.random.default_rng(data.draw(st.integers(0, 9)))
    state: bytes | None = None
    found: list[Any] = []
    for part in np.split(np.arange(len(rows.order)), cuts):
        again = part if not len(part) else np.append(part, np.arange(max(0, part[0] - 7), part[0]))
        for _ in range(2):  # repeated rows, as after a crash
            state, more = step("pump", state, rows.take(shuffle.permutation(again)), recipe)
            found += more
    assert state == whole
    assert found == events
    assert name == "wta" or events
    assert all(rows.order[event.step] == event.order and event.key == "pump" for event in events)


def test_a_state_is_that_of_a_memory_that_learned_alone() -> None:
    rows = stream()
    state, _ = step("pump", None, rows, RECIPES["adaptive"])
    memory = AdaptiveCCM(n_slots=3).partial_fit(rows.X)
    member = Member(RECIPES["adaptive"], "pump", state)
    np.testing.assert_array_equal(member.memory.prototypes_, memory.prototypes_)
    assert member.model.events_ == memory.events_
    assert (member.rows, member.last) == (len(rows.X), rows.order[-1])


def test_seeds_come_from_the_key() -> None:
    assert len({seed_of(key) for key in (1, "1", 2, "pump", "pump ")}) == 5
    assert (seed_of(1), seed_of("pump")) == (40236951852475, 233900141574533)  # in every version and on every machine
    first, second, third = (step(key, None, stream(50), RECIPES["paper"])[0] for key in ("a", "b", "a"))
    assert first != second
    assert first == third


def test_a_state_keeps_few_events() -> None:
    recipe = Recipe(CCM(n_slots=1, alarm_limit=0, recall_limit=0, commit_limit=0, vigilance=0.9))
    X = np.eye(4, dtype=np.float32)[np.arange(400) // 3 % 4]
    state, events = step("k", None, Rows(np.arange(400), X), recipe)
    assert len(events) > 2 * KEPT_EVENTS
    kept = Member(recipe, "k", state).model.events_
    assert [event[2:] for event in events[-KEPT_EVENTS:]] == [tuple(event)[:8] for event in kept]


def test_rows_without_order_and_damaged_states_are_refused() -> None:
    rows = stream(10)
    with pytest.raises(ValueError, match="int64 or float64"):
        step("k", None, rows._replace(order=rows.order.astype(np.int32)))
    with pytest.raises(ValueError, match="order of row 3"):
        step("k", None, rows._replace(order=np.where(np.arange(10) == 3, np.nan, 1.0)))
    with pytest.raises(ValueError, match="inf"):
        step("k", None, rows._replace(X=rows.X + np.inf))
    state, _ = step("k", None, rows)
    assert state is not None
    with pytest.raises(CheckpointError, match="the state of 'k' cannot be loaded"):
        step("k", state[:-1], rows)
    with pytest.raises(CheckpointError, match="the state of 'k'"):
        step("k", AdaptiveCCM().to_bytes(), rows)
    with pytest.raises(CheckpointError, match="the state of 'k'"):
        step("k", state, rows, RECIPES["wta"])
    with pytest.raises(TypeError, match="OnlineMLP"):
        Recipe(OnlineMLP())


def test_late_rows_can_be_an_error() -> None:
    member = Member(Recipe(), "k")
    assert advance(member, stream(10), "stop")[1] == 0
    before = member.to_bytes()
    with pytest.raises(LateRowsError, match=r"key 'k': 10 of 10 rows .* last one learned \(90\)"):
        advance(member, stream(10), "stop")
    assert advance(member, stream(12), "drop")[1] == 10
    assert Member(Recipe(), "k", before).rows == 10
