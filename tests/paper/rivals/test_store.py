"""Reservoirs are uniform and equal a plain loop; the store of GDumb is balanced."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ccmem.paper.rivals import GDumb
from ccmem.paper.rivals._store import BalancedStore, Reservoir


def plain_reservoir(seen, held, X, codes, capacity, draws):
    """Run algorithm R and replay, one sample at a time, with the same random numbers."""
    replayed = []
    for x, code, (keep, *others) in zip(X, codes, draws, strict=True):
        replayed.append((x, code))
        replayed += [held[int(u * len(held))] for u in others if held]
        if len(held) < capacity:
            held.append((x, code))
        elif (slot := int(keep * (seen + 1))) < capacity:
            held[slot] = (x, code)
        seen += 1
    return replayed


@given(st.integers(1, 6), st.lists(st.integers(1, 12), min_size=1, max_size=4), st.integers(0, 3), st.integers(0, 99))
def test_reservoir_is_a_plain_loop(capacity: int, chunks: list[int], n_replayed: int, seed: int) -> None:
    store = Reservoir(capacity, 2, np.float64, np.random.default_rng(seed))
    twin_draws = np.random.default_rng(seed)
    held: list = []
    seen = 0
    for size in chunks:
        X = np.arange(seen, seen + size)[:, None] * np.ones(2)
        codes = np.arange(seen, seen + size)
        rows, row_codes = store.add(X, codes, n_replayed)
        draws = twin_draws.random((size, 1 + n_replayed)).tolist()
        expected = plain_reservoir(seen, held, X, codes, capacity, draws)
        seen += size
        assert row_codes.tolist() == [code for _, code in expected]
        np.testing.assert_array_equal(rows, [row for row, _ in expected])
        assert store.codes[: len(store)].tolist() == [code for _, code in held]
        np.testing.assert_array_equal(store.X[: len(store)], [row for row, _ in held])


def test_reservoir_is_uniform() -> None:
    """Check that all of 40 samples are equally likely to be kept: chi-square over 4,000 reservoirs of 10."""
    kept = np.zeros(40)
    for seed in range(4_000):
        store = Reservoir(10, 1, np.float64, np.random.default_rng(seed))
        store.add(np.zeros((25, 1)), np.arange(25))
        store.add(np.zeros((15, 1)), np.arange(25, 40))
        kept[store.codes] += 1
    expected = 4_000 * 10 / 40
    statistic = ((kept - expected) ** 2 / (expected * (1 - 10 / 40))).sum() * 39 / 40
    assert statistic < 72.1  # 39 degrees of freedom, one in a thousand
    assert kept.min() > 0.85 * expected


def test_shrinking_keeps_a_uniform_part() -> None:
    kept = np.zeros(20)
    for seed in range(2_000):
        store = Reservoir(12, 1, np.float64, np.random.default_rng(seed))
        store.add(np.zeros((20, 1)), np.arange(20))
        store.shrink(5)
        assert len(store) == 5
        kept[store.codes] += 1
    assert abs(kept / 2_000 - 0.25).max() < 0.05


@given(st.integers(1, 9), st.lists(st.integers(0, 4), min_size=1, max_size=60), st.integers(0, 9))
def test_balanced_store_is_as_even_as_the_stream_allows(capacity: int, codes: list[int], seed: int) -> None:
    store = BalancedStore(capacity, 1, np.float64, np.random.default_rng(seed))
    store.add(np.arange(len(codes), dtype=np.float64)[:, None], np.array(codes))
    held = store.codes[: len(store)]
    assert len(store) == min(capacity, len(codes))
    assert all(codes[int(x)] == code for x, code in zip(store.X[: len(store), 0], held, strict=True))
    came, count = np.bincount(codes, minlength=5), np.bincount(held, minlength=5)
    present = came > 0
    if capacity >= present.sum():  # no class that could have more has less than a fair share
        share = capacity // present.sum()
        assert (count[present] >= np.minimum(came[present], share)).all()
    smaller = max(1, capacity - 2)
    store.shrink(smaller)
    held = store.codes[: len(store)]
    assert len(store) == min(smaller, len(codes))
    assert all(codes[int(x)] == code for x, code in zip(store.X[: len(store), 0], held, strict=True))
    assert sorted(slot for member in store.members for slot in member) == list(range(len(store)))


def test_gdumb_trains_anew_only_if_its_store_changed() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    model = GDumb((3,), n_epochs=2, max_floats=60, random_state=0).partial_fit(X, y)
    model.predict(X)
    (network,) = model._trained
    model.partial_fit(X[:6], y[:6])  # both classes have their share: nothing is accepted
    model.predict(X)
    assert model._trained == [network]
    model.partial_fit(X[:1], [2])
    assert model._trained == []
