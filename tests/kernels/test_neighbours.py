"""Densities from kept rows, compared with sorting all of them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ccmem.kernels.neighbours import AGE, CODE, FARTHEST, NEAREST, NEIGHBOURS, keep_row, neighbour_scores


@pytest.mark.parametrize("order", ["012122001112", "101010101010", "221100210210"])
def test_the_oldest_row_of_the_largest_class_makes_room(order: str) -> None:
    n = 4
    kept, labels, sizes = np.zeros((2, n)), np.zeros((2, n), np.int64), np.full(3, 9)
    expected: list[tuple[int, int]] = []
    for taught, own in enumerate(map(int, order)):
        keep_row(np.array([taught, -taught], np.float64), own, taught, kept, labels, sizes)
        if taught < n:
            expected.append((own, taught))
        else:
            counts = np.bincount([code for code, _ in expected], minlength=3)
            largest = expected[0][0] if counts[expected[0][0]] == counts.max() else int(counts.argmax())
            place = min((age, i) for i, (code, age) in enumerate(expected) if code == largest)[1]
            expected[place] = (own, taught)
        assert list(zip(labels[CODE], labels[AGE], strict=True))[: taught + 1] == expected
        assert kept[:, : len(expected)].tolist() == [[age for _, age in expected], [-age for _, age in expected]]


@pytest.mark.parametrize("n", [1, 4, 5, 6, 30])
def test_densities_are_those_of_the_nearest_rows(n: int) -> None:
    rng = np.random.default_rng(n)
    d, classes = 3, 4  # no row of class 3
    kept, labels = rng.normal(size=(d, 40)), np.zeros((2, 40), np.int64)
    labels[CODE] = rng.integers(0, 3, 40)
    kept[:, 0] = rng.normal(size=d) * 1e9  # beyond FARTHEST
    x, inverse, scores = rng.normal(size=d), np.array([0.5, 2.0, 1.0]), np.full(classes, np.nan)
    far, near, sizes = np.empty(40), np.empty((classes, NEIGHBOURS)), np.empty(classes, np.int64)
    neighbour_scores(x, n, inverse, kept, labels, far, near, sizes, scores)
    for c in range(classes):
        rows = np.flatnonzero(labels[CODE, :n] == c)
        distances = np.sort(NEAREST + inverse @ (x[:, np.newaxis] - kept[:, rows]) ** 2).clip(max=FARTHEST)[:NEIGHBOURS]
        k = len(distances)
        expected = math.log(k / len(rows)) - d / 2 * math.log(distances.mean()) if k else -math.inf
        assert scores[c] == pytest.approx(expected, rel=1e-12)
