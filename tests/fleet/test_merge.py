"""Merged shards: the blocks of one stream, added votes, bounds kept, and further learning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ccmem import CCM, AdaptiveCCM, ModalClassifier, from_bytes, merge

CENTRES = np.array([[1.0, 0, 0, 0.2], [0, 1, 0.5, 0], [0, 0, 1, 1], [1, 1, 0, 0]])


def tasks(order: Any, n_rows: int = 200, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Consecutive tasks, with their names as labels."""
    rng = np.random.default_rng(seed)
    X = np.concatenate([CENTRES[task] + rng.normal(0, 0.1, (n_rows, 4)) for task in order])
    return X, np.repeat(np.array(list("abcd"))[list(order)], n_rows)


def shards(orders: Any, **parameters: Any) -> list[Any]:
    made = []
    for seed, order in enumerate(orders):
        X, y = tasks(order, seed=seed)
        made.append(ModalClassifier(AdaptiveCCM(**{"n_slots": 4, **parameters})).partial_fit(X, y))
    return made


@pytest.mark.parametrize("max_units", [None, 9])
def test_shards_become_the_memory_of_one_stream(max_units: int | None) -> None:
    parts = shards([(0, 1), (1, 2, 0), (2, 3)], max_units=max_units)
    before = [part.to_bytes() for part in parts]
    whole = merge(parts)
    assert [part.to_bytes() for part in parts] == before
    memory = whole.memory_
    assert memory.n_blocks_ == 4
    assert memory.n_samples_seen_ == 7 * 200
    assert memory.n_units_ <= (max_units or 4 * 4)
    assert np.bincount(memory.unit_blocks_).min() >= 1
    assert whole.votes_.sum() == sum(part.votes_.sum() for part in parts)
    assert memory.win_counts_.sum() == sum(part.memory_.win_counts_.sum() for part in parts)
    X, y = tasks((0, 1, 2, 3), seed=9)
    assert (whole.predict(X) == y).mean() > 0.97
    assert whole.to_bytes() == from_bytes(whole.to_bytes()).to_bytes()
    whole.partial_fit(X, y)  # further learning recalls all four blocks and makes no new one
    assert memory.n_blocks_ == 4
    assert [event.kind for event in memory.events_[-4:]] == ["recall"] * 4


def test_statistics_are_those_of_all_samples() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal([1, 0, 0.5], 0.2, (900, 3))
    apart = [AdaptiveCCM(n_slots=3).partial_fit(part) for part in np.split(X, [300, 500])]
    pooled, whole = merge(apart), AdaptiveCCM(n_slots=3).partial_fit(X)
    assert pooled.n_blocks_ == 1
    np.testing.assert_allclose(pooled.block_levels_, whole.block_levels_, atol=0.05)
    np.testing.assert_allclose(pooled.block_spreads_, whole.block_spreads_, rtol=0.1)


def test_one_memory_is_itself_and_tasks_that_differ_stay_apart() -> None:
    one = shards([(0, 1)])[0].memory_
    assert merge([one]).to_bytes() == one.to_bytes()
    two = merge([part.memory_ for part in shards([(0,), (3,)])])
    assert two.n_blocks_ == 2
    assert two.task_pointer_ == 1


def test_what_cannot_be_merged_is_named() -> None:
    X, _ = tasks((0,))
    memory = AdaptiveCCM(n_slots=2).partial_fit(X)
    with pytest.raises(ValueError, match="at least one"):
        merge([])
    with pytest.raises(TypeError, match="memory 1 is a CCM"):
        merge([memory, CCM().partial_fit(X)])
    with pytest.raises(ValueError, match="memory 1 has learned nothing"):
        merge([memory, AdaptiveCCM(n_slots=2)])
    with pytest.raises(ValueError, match="memory 1 has other parameters"):
        merge([memory, AdaptiveCCM(n_slots=3).partial_fit(X)])
    with pytest.raises(ValueError, match="memory 1 learned 3 columns"):
        merge([memory, AdaptiveCCM(n_slots=2).partial_fit(X[:, :3])])
    bounded = [AdaptiveCCM(n_slots=2, max_units=1).partial_fit(tasks((task,))[0]) for task in (0, 2)]
    with pytest.raises(ValueError, match="2 different blocks, which do not fit max_units=1"):
        merge(bounded)


def test_events_name_the_blocks_of_the_whole() -> None:
    """The blocks of the second shard come in another order than those of the first."""
    memory = merge(shards([(0, 1, 2), (2, 1, 0, 1)])).memory_
    names = [int(np.abs(memory.block_levels_ - centre).max(axis=1).argmin()) for centre in CENTRES[:3]]
    assert sorted(names) == [0, 1, 2]
    entered = [(event.from_block, event.to_block) for event in memory.events_]
    task_pairs = [(0, 1), (1, 2), (2, 1), (1, 0), (0, 1)]
    assert entered == [(names[old], names[new]) for old, new in task_pairs]
    assert [event.step // 200 for event in memory.events_] == [1, 2, 4, 5, 6]


def test_a_column_that_one_shard_never_had_is_as_in_the_other() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal([1.0, -2.0, 5.0], 0.2, (600, 3))
    first, second = X[:300].copy(), X[300:].copy()
    first[:, 1], second[:, 2] = np.nan, np.nan
    for parts in ((first, second), (second, first)):
        pooled = merge([AdaptiveCCM(n_slots=2).partial_fit(part) for part in parts])
        assert pooled.n_blocks_ == 1
        np.testing.assert_allclose(pooled.block_levels_, [[1.0, -2.0, 5.0]], atol=0.05)
        np.testing.assert_allclose(pooled.block_spreads_, 0.2, rtol=0.2)


def test_a_shard_that_still_compares_directions_is_brought_to_columns() -> None:
    rng = np.random.default_rng(0)
    X = (rng.normal(3.0, 0.2, (700, 40))) * np.logspace(0, 4, 40)
    young, old = AdaptiveCCM(n_slots=3).partial_fit(X[:200]), AdaptiveCCM(n_slots=3).partial_fit(X[200:])
    assert (young._by_distance, old._by_distance) == (False, True)
    pooled = merge([young, old])
    np.testing.assert_allclose(pooled.prototypes_ / np.logspace(0, 4, 40), 3.0, atol=0.7)
