"""Studies of embeddings: rivals against references, the order of visits, the scores of monitors."""

from __future__ import annotations

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from studies import embedding_tasks, monitors

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 6)) + np.repeat(rng.normal(size=(3, 6)), 100, axis=0)
y = np.repeat([4, 7, 9], 100)


def test_joint_discriminant_equals_that_of_scikit_learn():
    ours = embedding_tasks.JointLDA().partial_fit(X[:150], y[:150]).partial_fit(X[150:], y[150:])
    centred = X - np.stack([X[y == label].mean(axis=0) for label in (4, 7, 9)])[np.repeat([0, 1, 2], 100)]
    covariance = centred.T @ centred / len(X)
    theirs = LinearDiscriminantAnalysis(solver="lsqr", priors=[1 / 3] * 3, covariance_estimator=_Shrunk(covariance))
    assert (ours.predict(X) == theirs.fit(X, y).predict(X)).all()
    assert ours.n_floats_ == 21 + 3 * 7


class _Shrunk:
    """Covariance shrunk by a tenth, whatever rows it is fitted to."""

    def __init__(self, covariance):
        self.covariance = covariance

    def fit(self, X):
        mean = np.trace(self.covariance) / len(self.covariance)
        self.covariance_ = 0.9 * self.covariance + 0.1 * mean * np.eye(len(self.covariance))
        return self


def test_random_ridge_equals_ridge_regression_on_its_features():
    model = embedding_tasks.RandomRidge(20, 1e-3, 0).partial_fit(X[:100], y[:100], classes=[4, 7, 9])
    model.partial_fit(X[100:], y[100:])
    h = np.maximum(X.astype(np.float32) @ model._projection, 0).astype(float)
    gram = h.T @ h
    weights = np.linalg.solve(
        gram + 1e-3 * np.trace(gram) / 20 * np.eye(20), h.T @ np.eye(3)[np.repeat([0, 1, 2], 100)]
    )
    assert (model.predict(X) == np.array([4, 7, 9])[(h @ weights).argmax(axis=1)]).all()
    assert model.n_floats_ == 210 + 60


def test_every_task_is_visited_three_times_with_new_rows():
    labels = np.repeat(np.arange(10), 30)
    for seed in range(5):
        rows, tasks = embedding_tasks.visits(labels, 5, seed)
        assert sorted(tasks.visits) == sorted([*range(5)] * 3)
        assert all(a != b for a, b in zip(tasks.visits, tasks.visits[1:], strict=False))
        assert len(set(rows.tolist())) == len(rows)
        assert (labels[rows] // 2 == np.repeat(tasks.visits, 20)).all()


def test_alarms_before_the_change_are_false_and_the_first_one_after_it_counts():
    rows = np.zeros((monitors.REFERENCE + monitors.CALM + monitors.AFTER, 2))
    rows[monitors.REFERENCE + 10] = 1.0
    rows[monitors.REFERENCE + monitors.CALM + 4 :] = 1.0
    found = monitors.watch(lambda reference: lambda row: bool(row[0] > 0), rows)
    assert (found["false"], found["delay"]) == (1, 5)
