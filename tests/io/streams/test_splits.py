"""Streams of tasks: every sample once, in the order that the arrangement says."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccmem.io.streams import class_tasks, recurring_tasks, shuffled, split_by_class

labels = st.lists(st.integers(0, 5), min_size=12, max_size=80).map(np.array)


def visited(stream):
    edges = [0, *stream.change_points, len(stream)]
    return [stream.indices[a:b] for a, b in pairwise(edges)]


@given(labels, st.integers(1, 3), st.integers(1, 50), st.integers(0, 3))
def test_every_sample_once_in_its_task(y, n_tasks, chunk_size, seed):
    n_tasks = min(n_tasks, len(np.unique(y)))
    stream = replace(split_by_class(y, n_tasks, random_state=seed), chunk_size=chunk_size)
    assert sorted(stream.indices) == list(range(len(y)))
    for classes, part in zip(stream.tasks, visited(stream), strict=True):
        assert set(y[part]) <= set(classes)
    chunks = list(stream)
    assert np.array_equal(np.concatenate([chunk.indices for chunk in chunks]), stream.indices)
    assert max(len(chunk.indices) for chunk in chunks) <= chunk_size
    for chunk in chunks:
        assert set(y[chunk.indices]) <= set(stream.tasks[chunk.visit])


def test_seed_decides_the_order():
    y = np.arange(100) % 10
    first, same, other = (split_by_class(y, random_state=seed).indices for seed in (1, 1, 2))
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)


def test_class_order_and_uneven_tasks():
    y = np.arange(35) % 7
    assert class_tasks(y, 3) == ((0, 1, 2), (3, 4), (5, 6))
    stream = split_by_class(y, 2, class_order=[6, 0, 3], random_state=0)
    assert stream.tasks == ((6, 0), (3,))
    assert set(y[stream.indices]) == {0, 3, 6}
    assert stream.change_points == (10,)


def test_blurred_boundary_grows_from_old_to_new():
    y = np.repeat([0, 1], 2000)
    stream = split_by_class(y, 2, blur=0.5, random_state=0)
    new = stream.sample_tasks
    assert sorted(stream.indices) == list(range(4000))
    assert stream.change_points == (2000,)
    assert not new[:1500].any()
    assert new[2500:].all()
    shares = [new[start : start + 250].mean() for start in range(1500, 2500, 250)]
    assert shares == sorted(shares)
    assert 0 < shares[0] < shares[-1] < 1
    assert new[1900:2000].any()


def test_recurring_tasks_share_out_their_samples():
    y = np.arange(120) % 6
    stream = recurring_tasks(y, [0, 1, 0, 2, 1], 3, random_state=0)
    assert stream.visits == (0, 1, 0, 2, 1)
    assert [len(part) for part in visited(stream)] == [20, 20, 20, 40, 20]
    assert sorted(stream.indices) == list(range(120))
    for task, part in zip(stream.visits, visited(stream), strict=True):
        assert set(y[part]) == set(stream.tasks[task])


def test_shuffled_has_no_structure():
    y = np.repeat([0, 1, 2], 100)
    stream = shuffled(y, random_state=0)
    assert stream.change_points == ()
    assert set(y[stream.indices[:50]]) == {0, 1, 2}
    assert sorted(stream.indices) == list(range(300))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda y: split_by_class(y, 11), "n_tasks=11"),
        (lambda y: split_by_class(y, 2, class_order=[0, 0]), "each once"),
        (lambda y: split_by_class(y, 2, class_order=[0, 77]), "must name classes"),
        (lambda y: split_by_class(y, 2, blur=2), "blur=2"),
        (lambda y: recurring_tasks(y, [0, 5], 2), "visits"),
        (lambda y: recurring_tasks(y, [], 2), "visits"),
        (lambda y: recurring_tasks(y, [0, 0, 1], 2), "one visit"),
        (lambda y: recurring_tasks(np.array([0, 1]), [0, 1, 0], 2), "1 samples for 2 visits"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call(np.arange(40) % 4)


def test_the_least_blur_mixes_the_two_samples_at_the_border():
    y = np.repeat([0, 1, 2], [20, 20, 1])
    swapped = 0
    for seed in range(20):
        sharp, blurred = (split_by_class(y, 3, blur=blur, random_state=seed).indices for blur in (0.0, 1e-6))
        assert sorted(blurred) == list(range(41))
        inside = np.isin(np.arange(41), [19, 20, 39, 40])
        np.testing.assert_array_equal(sharp[~inside], blurred[~inside])
        swapped += bool((sharp != blurred).any())
    assert swapped > 0
