"""Kernels equal their references on streams that reach the rare branches: removals, ties, bounds, far neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from ccmem import (
    ARTC2A,
    ARTMAP,
    CCM,
    LVQ,
    SOINN,
    FrequencySensitiveWTA,
    FuzzyART,
    GrowingNeuralGas,
    IncrementalGMM,
    IncrementalWTA,
    NeuralGas,
    SelfOrganisingMap,
)
from naive import artmap, lvq
from zoo import twin

WITHOUT_LABELS = [
    SOINN(prune_every=11, max_age=3),
    SOINN(prune_every=7, noise=0.3),
    SOINN(prune_every=23, noise=2.0, max_units=9),
    GrowingNeuralGas(8, insert_every=5, max_age=4, neighbour_rate=0.1, utility=1.5),
    GrowingNeuralGas(12, insert_every=3, max_age=2, utility=3.0, rate_decay=0.9),
    GrowingNeuralGas(6, insert_every=4, max_age=50),
    SelfOrganisingMap(3, 3, schedule="elastic"),
    SelfOrganisingMap(2, 4, schedule="elastic", topology="hexagonal", elasticity=0.3),
    SelfOrganisingMap(3, 2, topology="hexagonal", sigma=1.0, horizon=40.0, p=3.0),
    NeuralGas(12, reach=2.0, horizon=60.0),
    FrequencySensitiveWTA(5),
    FrequencySensitiveWTA(5, fairness="conscience", share_rate=0.3),
    FuzzyART(6, vigilance=0.6, learning_rate=0.5),
    IncrementalGMM(5, temperature=0.5),
    IncrementalGMM(5, temperature=20.0, p=1.0),
    IncrementalWTA(6, n_winners=2, step="adam", p=1.0),
    ARTC2A(4, vigilance=0.8, rate_decay=0.9),
    ARTC2A(5, vigilance=0.95, vigilance_reset="pair"),
    CCM(n_slots=3, vigilance=0.8, alarm_limit=2, commit_limit=1, fair=True, random_state=0),
    CCM(n_slots=2, vigilance=0.9, alarm_limit=1, counters="cumulative", random_state=0),
]
WITH_LABELS = [
    (ARTMAP(vigilance=0.4, max_units=7), artmap),
    (ARTMAP(vigilance=1.0, match_tracking=0.0), artmap),
    (ARTMAP(vigilance=0.0, match_tracking=0.1, learning_rate=0.5), artmap),
    (LVQ(2, rate_decay=0.9), lvq),
    (LVQ(3, rule="glvq", gain=4.0), lvq),
    (LVQ(2, rule="attract"), lvq),
]


def rows(dtype: Any) -> np.ndarray:
    """Return rows around a few places, some of them repeated; the later ones lie closer together."""
    rng = np.random.default_rng(4)
    places = rng.random((9, 3))
    X = places[rng.integers(0, 9, 150)] + rng.integers(-1, 2, (150, 3)) / 16
    X[50:] = X[rng.integers(0, 40, 100)] * 0.5 + 0.25 * X[50:]
    return np.ascontiguousarray(X.clip(0.0, 1.0), dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("model", WITHOUT_LABELS, ids=lambda model: " ".join(repr(model).split()))
def test_kernel_equals_naive_twin_on_a_longer_stream(model: Any, dtype: Any) -> None:
    X = rows(dtype)
    fresh = clone(model)
    winners, expected = fresh.learn_many(X), twin(model, X)
    np.testing.assert_array_equal(winners, expected.pop("winners"))
    for name, value in expected.items():
        np.testing.assert_array_equal(getattr(fresh, name), value, err_msg=name)


@pytest.mark.parametrize(("model", "reference"), WITH_LABELS, ids=lambda model: " ".join(repr(model).split()))
def test_kernel_with_labels_equals_naive_twin_on_a_longer_stream(model: Any, reference: Any) -> None:
    X = rows(np.float64)
    y = (X[:, 0] > 0.4).astype(int) + (X[:, 1] > 0.6) * (np.arange(len(X)) > 60)
    model.fit(X, y)
    expected = reference.naive(X, y=y, **model.get_params())
    assert model.unit_labels_.tolist() == expected["labels"]
    np.testing.assert_array_equal(model.memory_.prototypes_, expected["prototypes_"])
    np.testing.assert_array_equal(model.memory_.win_counts_, expected["win_counts_"])
