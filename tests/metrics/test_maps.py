"""Quantisation and topographic error against MiniSom and by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from ccmem import SelfOrganisingMap
from ccmem.metrics import maps, quantisation_error, topographic_error

X = np.random.default_rng(0).random((200, 3))


@pytest.mark.parametrize("topology", ["rectangular", "hexagonal"])
def test_errors_equal_minisom(topology):
    minisom = pytest.importorskip("minisom")
    som = SelfOrganisingMap(5, 4, topology=topology).fit(X)
    other = minisom.MiniSom(5, 4, 3, topology=topology)
    other._weights = som.prototypes_.reshape(5, 4, 3).copy()
    assert quantisation_error(som, X) == pytest.approx(other.quantization_error(X))
    if topology == "rectangular":  # MiniSom stores hexagonal maps column by column
        assert topographic_error(som, X) == pytest.approx(other.topographic_error(X))


def test_chunks_do_not_change_the_errors(monkeypatch):
    som = SelfOrganisingMap(4, 4, topology="hexagonal").fit(X)
    whole = quantisation_error(som, X), topographic_error(som, X)
    monkeypatch.setattr(maps, "ROWS_AT_ONCE", 7)
    assert (quantisation_error(som, X), topographic_error(som, X)) == pytest.approx(whole)


def test_hexagons_have_six_neighbours():
    som = SelfOrganisingMap(5, 5, topology="hexagonal").fit(X)
    assert maps.neighbours(som).sum(axis=1).max() == 6
    assert maps.neighbours(SelfOrganisingMap(5, 5).fit(X)).sum(axis=1).max() == 8


def test_graphs_count_their_edges():
    chain = SimpleNamespace(prototypes_=np.array([[0.0], [1.0], [5.0]]), edges_=[[0, 1]])
    assert topographic_error(chain, [[0.2], [4.0]]) == 0.5  # 5 and 1 are no neighbours


@pytest.mark.parametrize("error", [quantisation_error, topographic_error])
def test_bad_samples_are_refused(error):
    som = SelfOrganisingMap(2, 2).fit(X)
    with pytest.raises(ValueError, match=r"shape \(0,\)"):
        error(som, [])
    with pytest.raises(ValueError, match="2 columns, but the model learned 3"):
        error(som, [[1.0, 2.0]])


def test_other_memories_have_no_neighbours():
    with pytest.raises(TypeError, match="neither positions_ nor edges_"):
        maps.neighbours(SimpleNamespace(prototypes_=np.eye(2)))
