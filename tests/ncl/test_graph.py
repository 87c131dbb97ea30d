"""Graphs of units: removals between rows, at any size and however the stream is cut."""

from __future__ import annotations

import numpy as np
import pytest

from ccmem import SOINN, GrowingNeuralGas, ModalClassifier, ncl
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
