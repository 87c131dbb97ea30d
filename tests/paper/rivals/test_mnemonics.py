"""Learned exemplars are better than the same number of random ones."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from sklearn.datasets import load_digits

pytest.importorskip("torch")

import torch

from ccmem.paper.rivals import Mnemonics
from ccmem.paper.rivals._network import Network
from ccmem.paper.rivals.mnemonics import Adam

X, Y = load_digits(return_X_y=True)
X, Y = np.ascontiguousarray(X / 16.0, np.float32), Y.astype(np.int64)
ONE_HOT = np.eye(10, dtype=np.float32)
TRAIN, TEST = np.arange(0, len(X), 2), np.arange(1, len(X), 2)


def accuracy_after(network: Network, rows: np.ndarray, labels: np.ndarray) -> float:
    """Return the accuracy of a copy of a network after further training on exemplars only."""
    network = copy.deepcopy(network)
    for epoch in range(5):
        network.learn_targets(rows, ONE_HOT[labels], np.random.default_rng(epoch).permutation(len(rows)), 0.05)
    return float(np.mean(network.answer(X[TEST]) == Y[TEST]))


def test_learned_exemplars_teach_more_than_random_ones() -> None:
    gains = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        network = Network(64, (32, 24), 10, np.float32, seed)
        network.learn_targets(X[TRAIN], ONE_HOT[Y[TRAIN]], rng.permutation(len(TRAIN)), 0.05)
        chosen = np.concatenate([rng.choice(TRAIN[Y[TRAIN] == c], 2, replace=False) for c in range(10)])
        model = Mnemonics(n_outer=80, n_inner=10, learning_rate=0.05, outer_rate=0.01)
        model._network, model._rng, model._bounds = network, rng, (0.0, 1.0)
        model._kept, model._kept_codes = X[chosen], Y[chosen]
        model._learn_exemplars(np.arange(len(chosen)), X[TRAIN], Y[TRAIN])
        gains.append(accuracy_after(network, model._kept, Y[chosen]) - accuracy_after(network, X[chosen], Y[chosen]))
    assert np.mean(gains) > 0.01, gains


def test_no_moves_leaves_rows_of_the_data() -> None:
    order = np.argsort(Y // 5, kind="stable")
    model = Mnemonics((24, 16), n_outer=0, n_epochs=2, max_floats=6_000, random_state=0)
    model.partial_fit(X[order], Y[order]).end_task()
    kept = np.concatenate(model.exemplars_)
    assert all((row == X).all(axis=1).any() for row in kept)


def test_exemplars_move_and_stay_within_the_data() -> None:
    model = Mnemonics((24, 16), n_outer=5, n_epochs=2, max_floats=6_000, random_state=0)
    for low in (0, 5):
        mine = (low <= Y) & (low + 5 > Y)
        model.partial_fit(X[mine], Y[mine]).end_task()
    kept = np.concatenate(model.exemplars_)
    assert not any((row == X).all(axis=1).any() for row in kept)
    assert kept.min() >= 0
    assert kept.max() <= 1


def test_moves_are_adams() -> None:
    rng = np.random.default_rng(0)
    ours = rng.random((5, 7), dtype=np.float32)
    theirs = torch.tensor(ours, requires_grad=True)
    adam, ours_adam = torch.optim.Adam([theirs], lr=0.05), Adam((5, 7), 0.05, (0.2, 0.8))
    for step in range(1, 9):
        slopes = rng.normal(size=(5, 7)).astype(np.float32)
        slopes[step % 5] = 0.0  # a row without a gradient continues with its momentum
        theirs.grad = torch.tensor(slopes)
        adam.step()
        with torch.no_grad():
            theirs.clamp_(0.2, 0.8)
        ours_adam.move(ours, slopes)
    np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=1e-5)
    assert {0.2, 0.8} <= set(np.round(ours.ravel().astype(float), 6))
