"""Models equal independent packages: MiniSom and artlib."""

from __future__ import annotations

import numpy as np
import pytest

from ccmem import ARTMAP, FuzzyART, SelfOrganisingMap

rng = np.random.default_rng(0)
X = rng.integers(0, 257, (300, 5)) / 256


@pytest.mark.parametrize("topology", ["rectangular", "hexagonal"])
def test_som_equals_minisom(topology):
    minisom = pytest.importorskip("minisom")
    rows, columns = 5, 4  # MiniSom shifts the last row of hexagons and every second before it
    start = rng.random((rows * columns, 5))
    theirs = minisom.MiniSom(columns, rows, 5, sigma=1.3, learning_rate=0.5, topology=topology)
    theirs._weights = start.reshape(rows, columns, 5).transpose(1, 0, 2).copy()
    theirs.train(X, len(X))
    ours = SelfOrganisingMap(rows, columns, topology=topology, sigma=1.3, horizon=len(X), init=start)
    for part in np.split(X, [13, 200]):  # the schedule is not restarted
        ours.partial_fit(part)
    expected = theirs._weights.transpose(1, 0, 2).reshape(-1, 5)
    np.testing.assert_allclose(ours.prototypes_, expected, rtol=0, atol=1e-12)


def coded(X):
    return np.hstack([X, 1 - X])


@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_fuzzy_art_equals_artlib(rate):
    artlib = pytest.importorskip("artlib")
    theirs = artlib.FuzzyART(rho=0.7, alpha=1e-3, beta=rate).fit(coded(X))
    ours = FuzzyART(vigilance=0.7, learning_rate=rate)
    np.testing.assert_array_equal(ours.learn_many(X), theirs.labels_)
    weights = np.array(theirs.W)
    np.testing.assert_array_equal(ours.prototypes_, weights[:, :5])
    np.testing.assert_array_equal(ours.upper_, 1 - weights[:, 5:])
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(coded(X)))


def test_artmap_equals_artlib():
    artlib = pytest.importorskip("artlib")
    y = (X[:, 0] > 0.5) + 2 * (X[:, 1] > 0.3)
    theirs = artlib.SimpleARTMAP(artlib.FuzzyART(rho=0.3, alpha=1e-3, beta=1.0)).fit(coded(X), y)
    ours = ARTMAP(vigilance=0.3).fit(X, y)
    weights = np.array(theirs.module_a.W)
    np.testing.assert_array_equal(ours.memory_.prototypes_, weights[:, :5])
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(coded(X)))
