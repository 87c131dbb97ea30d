"""Sketches of a large memory: most of it is skipped at a miss, with the same result as a full search."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccmem import CCM, load
from ccmem.base import matching
from ccmem.core.allocation import aligned
from ccmem.core.state import UNITS
from ccmem.kernels import competition, sketch
from ccmem.models._blocks import BLOCKS, POINTER
from ccmem.models._recall import find_by_sketches
from naive.plain import dot, unit_scale
from zoo import assert_same, snapshot, twin


def first_match(memory, x, threshold):
    """Search every slot of every other block in order."""
    state, n_slots = memory._state, memory.n_slots
    for block in range(memory.n_blocks_):
        for i in range(block * n_slots, (block + 1) * n_slots):
            match = dot(state.prototypes[i], x) * unit_scale(x, memory._epsilon)
            if block != memory.task_pointer_ and state.wins[i] > 0 and match > threshold:
                return block
    return -1


def large_memory(rng, n_blocks, n_slots, width, dtype, spread, fitted):
    """Blocks of slots around a few directions, as if learned; some slots are unused."""
    memory = CCM(n_slots=n_slots, random_state=0).partial_fit(np.ones((1, width), dtype))
    n = n_blocks * n_slots
    slots = np.repeat(rng.normal(size=(n_blocks, width)), n_slots, axis=0) + spread * rng.normal(size=(n, width))
    slots[: n // 4] = slots[rng.integers(0, n, n // 4)]  # the same slot in several blocks
    slots /= np.linalg.norm(slots, axis=1, keepdims=True)
    state = memory._state
    wins = (rng.random(n) < 0.8).astype(np.int64)
    counters = state.counters.copy()
    counters[[UNITS, BLOCKS, POINTER]] = n, n_blocks, rng.integers(n_blocks)
    prototypes = aligned(slots.astype(dtype))
    derived = memory._derive(prototypes, wins)
    if not fitted:
        derived["basis"] = np.zeros_like(derived["basis"])
    memory._state = state._replace(
        prototypes=prototypes,
        wins=wins,
        counters=counters,
        rates=np.ones(n),
        recalls=np.zeros(n_blocks + 1, np.int64),
        **derived,
    )
    return memory


@given(data=st.data())
@settings(max_examples=40)
def test_pruned_and_plain_search_agree_also_at_the_threshold(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    width = data.draw(st.sampled_from([1, 2, 31, 32, 40, 100]))
    n_slots = data.draw(st.sampled_from([1, 3, 4]))
    memory = large_memory(
        rng,
        sketch.WORTH_IT + data.draw(st.integers(1, 8)),
        n_slots,
        width,
        dtype,
        data.draw(st.sampled_from([0.0, 0.01, 0.5])),
        data.draw(st.booleans()),
    )
    state = memory._state
    for _ in range(3):
        slot = state.prototypes[rng.integers(len(state.prototypes))]
        x = (10.0 ** rng.integers(-6, 7) * (slot + rng.choice([0.0, 0.1]) * rng.normal(size=width))).astype(dtype)
        scale = unit_scale(x, memory._epsilon)
        match = dot(slot, x) * scale
        for threshold in (match, np.nextafter(match, -1), np.nextafter(match, 1), 0.9, -0.5):
            changed = memory._settings()._replace(recall_vigilance=float(threshold))
            assert find_by_sketches(state, changed, x, scale, np.empty(n_slots)) == first_match(memory, x, threshold)


@given(data=st.data())
@settings(max_examples=15)
def test_streams_that_fill_many_blocks_equal_the_naive_twin(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    width = data.draw(st.sampled_from([3, 40]))
    X = rng.normal(size=(90, width)).astype(data.draw(st.sampled_from([np.float32, np.float64])))
    order = data.draw(st.lists(st.integers(0, 89), min_size=40, max_size=40))
    X = np.vstack([X, X[order]])  # earlier rows return: recalls, and blocks that learn again
    memory = CCM(
        n_slots=data.draw(st.sampled_from([1, 4])),
        vigilance=0.95,
        alarm_limit=0,
        commit_limit=0,
        recall_limit=data.draw(st.sampled_from([0, 5])),
        random_state=0,
    )
    memory.partial_fit(X)
    expected = twin(memory, X)
    expected.pop("winners")
    for name, value in expected.items():
        np.testing.assert_array_equal(getattr(memory, name), value, err_msg=name)


def test_a_block_that_was_recalled_and_moved_on_is_found_where_it_is_now():
    axes = np.eye(20)
    corners = np.repeat(np.vstack([axes[:19], -axes[:19]]), 3, axis=0)  # 38 blocks, one direction each
    turn = np.vstack([axes[0], axes[0], axes[0] + axes[19], axes[19]])  # block 0 returns and turns to a new direction
    X = np.vstack([corners, turn, axes[1], axes[1], axes[19], axes[19]])
    memory = CCM(
        n_slots=1,
        vigilance=0.5,
        alarm_limit=0,
        recall_limit=0,
        commit_limit=0,
        learning_rate=1.0,
        rate_decay=1.0,
        random_state=0,
    ).partial_fit(X)
    assert memory.n_blocks_ == 38 > sketch.WORTH_IT
    assert [event.to_block for event in memory.events_[-3:]] == [0, 1, 0]
    np.testing.assert_array_equal(memory.prototypes_, twin(memory, X)["prototypes_"])


@pytest.mark.parametrize("n_slots", [1, 5])
def test_most_of_a_large_memory_is_not_looked_at(n_slots):
    """Check that prototypes set to NaN stay unread behind their sketches."""
    rng = np.random.default_rng(0)
    memory = large_memory(rng, 60, n_slots, 100, np.float64, 0.01, fitted=True)
    memory._state = memory._state._replace(wins=np.ones_like(memory._state.wins))
    x = memory._state.prototypes[-1].copy()
    if memory.task_pointer_ == 59:
        memory._state.counters[POINTER] = 0
    scale = unit_scale(x, memory._epsilon)
    ask = memory._settings()._replace(recall_vigilance=0.99)
    found = find_by_sketches(memory._state, ask, x, scale, np.empty(n_slots))
    hidden = memory._state.prototypes @ x < 0.5
    assert hidden.sum() > 0.8 * len(hidden)
    memory._state.prototypes[hidden] = np.inf * x  # would match anything
    assert find_by_sketches(memory._state, ask, x, scale, np.empty(n_slots)) == found


def test_what_is_derived_can_be_dropped_and_comes_back():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 50))
    whole, dropped = (CCM(n_slots=4, vigilance=0.9, alarm_limit=1, commit_limit=0, random_state=0) for _ in range(2))
    whole.partial_fit(X)
    dropped.partial_fit(X[:150])
    state = dropped._state
    dropped._state = state._replace(**dropped._derive(state.prototypes, state.wins))
    dropped.partial_fit(X[150:])
    assert whole.n_blocks_ > sketch.WORTH_IT
    assert_same(snapshot(whole), snapshot(dropped))


def test_a_large_memory_that_was_loaded_predicts_by_its_sketches_and_learns_on(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(250, 50))
    memory = CCM(n_slots=4, vigilance=0.9, alarm_limit=1, commit_limit=0, random_state=0).partial_fit(X[:200])
    memory.save(tmp_path / "memory")
    loaded = load(tmp_path / "memory")
    ready = loaded._state.radii[: loaded.n_blocks_] >= 0
    assert loaded.n_blocks_ > sketch.WORTH_IT
    assert np.flatnonzero(~ready).tolist() == [loaded.task_pointer_]
    monkeypatch.setattr(matching, "most_similar", None)  # which would search everything
    found = loaded.predict(X)
    monkeypatch.undo()
    np.testing.assert_array_equal(found, memory.predict(X))
    assert_same(snapshot(memory.partial_fit(X)), snapshot(loaded.partial_fit(X)))


@given(data=st.data())
@settings(max_examples=30)
def test_prediction_over_a_large_memory_equals_the_plain_kernel(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    width, n_slots = data.draw(st.sampled_from([2, 33, 70])), data.draw(st.sampled_from([1, 4]))
    memory = large_memory(rng, 60, n_slots, width, dtype, data.draw(st.sampled_from([0.0, 0.05, 0.5])), True)
    state = memory._state
    X = np.vstack([state.prototypes[rng.integers(0, len(state.prototypes), 10)], rng.normal(size=(10, width))])
    X = np.ascontiguousarray(X, dtype=dtype)
    never = memory._settings()._replace(recall_vigilance=1.1)
    find_by_sketches(state, never, X[0], 1.0, np.empty(n_slots))  # sketches all blocks except the current one
    assert (state.radii >= 0).mean() > 0.9
    for competes in (state.wins > 0, (state.wins > 0) & (rng.random(len(state.wins)) < 0.5)):
        expected, found = np.empty(20, np.int64), np.empty(20, np.int64)
        competition.most_similar(X, state.prototypes, competes, memory._epsilon, expected)
        ready = np.repeat(state.radii >= 0, n_slots)
        matching.most_similar_sketched(
            X, state.prototypes, competes, memory._epsilon, state.basis, state.sketches, ready, found
        )
        np.testing.assert_array_equal(found, expected)
    competition.most_similar(X, state.prototypes, state.wins > 0, memory._epsilon, expected)
    np.testing.assert_array_equal(memory.predict(X), expected)
