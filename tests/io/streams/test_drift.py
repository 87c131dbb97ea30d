"""The synthetic sensor stream stays the one that published figures were measured on."""

from __future__ import annotations

import numpy as np

from ccmem.io.streams.drift import STATES, drifting_sensors


def test_the_stream_is_the_published_one() -> None:
    plan = drifting_sensors(n_rows=60_000, seed=3, recording=1)
    rows, labels = zip(*plan.chunks(), strict=True)
    X = np.concatenate(rows)
    assert [len(part) for part in rows] == [50_000, 10_000]
    assert plan.changes[:3] == [(4897, 1), (8538, 2), (12564, 3)]
    np.testing.assert_allclose(
        X.sum(axis=0), [33050.8, 35710.16, 26082.52, 32735.51, 32878.9, 46788.04, 39727.85, 28384.24], rtol=1e-6
    )
    np.testing.assert_allclose(X[12_345, :3], [0.13472, 1.06069, 0.68976], atol=2e-5)
    known = [label for part in labels for label in part]
    assert 0.09 < known.count(None) / len(known) < 0.11
    for start, state in [(0, 0), *plan.changes]:
        assert known[start] in (STATES[state], None)


def test_states_are_equally_strong_and_visits_have_rows() -> None:
    plan = drifting_sensors(n_rows=50, n_features=6, n_states=3, segment=1)
    np.testing.assert_allclose((plan.levels**2).sum(axis=1), 3.0)
    assert plan.starts.tolist() == list(range(50))
    assert plan.visits[:3].tolist() == [0, 1, 2]
    assert (np.diff(plan.visits) != 0).all()
