"""Graphs of units: removals between rows, at any size and however the stream is cut."""

from __future__ import annotations

import numpy as np
import pytest

from ccmem import SOINN, CheckpointError, GrowingNeuralGas, ModalClassifier, from_bytes, ncl
from naive import soinn

# Every power is farther from the one before than that is from its neighbours, so 160 rows become units.
APART = np.concatenate([1.5 ** np.arange(160), np.tile([1.0, 1.5], 44), np.linspace(1.0, 2.0, 12)])[:, np.newaxis]


def test_many_units_leave_at_once():
    """More removals at one row than a journal ever has lines."""
    model = SOINN(prune_every=248)
    winners = model.learn_many(APART)
    expected = soinn.naive(APART, None, 50, 248, 1.0)
    assert winners.max() > 150
    assert 0 < model.n_units_ < 20
    np.testing.assert_array_equal(winners, expected["winners"])
    np.testing.assert_array_equal(model.prototypes_, expected["prototypes_"])
    single = SOINN(prune_every=248)
    for row in APART:
        single.learn_one(row)
    np.testing.assert_array_equal(single.edges_, model.edges_)
    np.testing.assert_array_equal(model.fit(APART).fit(APART).prototypes_, single.prototypes_)


def test_votes_follow_removed_units():
    labels = np.arange(len(APART)) % 3
    classifier = ModalClassifier(SOINN(prune_every=248)).fit(APART, labels)
    np.testing.assert_array_equal(classifier.votes_.sum(axis=1), classifier.memory_.win_counts_)


def test_votes_follow_removed_units_however_the_rows_are_cut():
    X = APART[np.r_[:12, 160:220]]
    labels = np.arange(len(X)) % 3
    whole, single = ModalClassifier(SOINN(prune_every=7)), ModalClassifier(SOINN(prune_every=7))
    whole.partial_fit(X, labels)
    for row, label in zip(X, labels, strict=True):
        single.partial_fit(row[np.newaxis], [label], classes=[0, 1, 2])
    assert whole.memory_.n_units_ < 12
    np.testing.assert_array_equal(whole.votes_, single.votes_)
    np.testing.assert_array_equal(single.votes_.sum(axis=1), single.memory_.win_counts_)


@pytest.mark.parametrize("prune_every", [1, 2, 7])
def test_soinn_never_removes_all_units(prune_every):
    model = SOINN(prune_every=prune_every)
    for row in APART:
        model.learn_one(row)
        assert model.n_units_ > 0


def test_a_broken_part_of_a_graph_is_named():
    @ncl.activation
    def broken(settings, x, prototype):
        return np.nan if x[0] > 50.0 else abs(x[0] - prototype[0])

    class Broken(GrowingNeuralGas):
        """A graph with a part that fails."""

        activation = broken

    with pytest.raises(ncl.PartError, match=r"activation 'broken' \(test_graph.py, line \d+\) returned nan"):
        Broken(10, insert_every=3).fit(APART)


@pytest.mark.parametrize("model", [SOINN(prune_every=100), GrowingNeuralGas(12, insert_every=10)], ids=repr)
def test_a_saved_graph_goes_on_and_damaged_edges_are_refused(model):
    model.partial_fit(APART[:200])
    again = from_bytes(model.to_bytes())
    np.testing.assert_array_equal(again.edges_, model.edges_)
    np.testing.assert_array_equal(again.partial_fit(APART).prototypes_, model.partial_fit(APART).prototypes_)
    edges, n = model._state.edges, model.n_units_
    one, other = model.edges_[0]
    for changes in (
        {(one, other): -1, (other, one): -1},
        {(one, other): 0},
        {(one, one): 1},
        {(n, one): 1, (one, n): 1} if n < len(edges) else {(one, one): 1},
    ):
        before = edges.copy()
        for place, value in changes.items():
            edges[place] = value
        with pytest.raises(CheckpointError, match="damaged"):
            from_bytes(model.to_bytes())
        edges[...] = before
