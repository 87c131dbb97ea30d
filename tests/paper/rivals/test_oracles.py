"""Rivals compared with independent packages, or with slow direct implementations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid

from ccmem.paper.rivals import FlyModel, ICaRL, NearestMean, NearestNeighbour, StreamingLDA
from ccmem.paper.rivals._network import Network, n_weights
from ccmem.paper.rivals.fly import fire
from ccmem.paper.rivals.icarl import herd

X, Y = load_digits(return_X_y=True)
X = X / 16.0


@pytest.mark.parametrize("shrinkage", [0.01, 0.3, 1.0])
def test_streaming_lda_is_scikit_learns(shrinkage: float) -> None:
    theirs = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage).fit(X, Y)
    ours = StreamingLDA(shrinkage)
    for rows, labels in zip(np.array_split(X, 23), np.array_split(Y, 23), strict=True):
        ours.partial_fit(rows, labels)
    order = np.argsort(ours._labels)
    weights, biases = ours._solve()
    np.testing.assert_allclose(weights[order], theirs.coef_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(biases[order], theirs.intercept_, rtol=1e-6)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_nearest_mean_is_scikit_learns() -> None:
    seen = X[:, X.std(axis=0) > 0.05]  # scikit-learn warns about columns that are constant within a class
    theirs = NearestCentroid().fit(seen, Y)
    ours = NearestMean()
    for rows, labels in zip(np.array_split(seen, 7), np.array_split(Y, 7), strict=True):
        ours.partial_fit(rows, labels)
    np.testing.assert_allclose(ours.means_, theirs.centroids_, rtol=1e-12)
    np.testing.assert_array_equal(ours.predict(seen), theirs.predict(seen))


@pytest.mark.parametrize("n_neighbours", [1, 5])
def test_nearest_neighbour_is_scikit_learns_on_what_it_keeps(n_neighbours: int) -> None:
    ours = NearestNeighbour(n_neighbours, max_floats=20_000, random_state=0).fit(X, Y)
    held, codes = ours._store.X, ours._store.codes
    theirs = KNeighborsClassifier(n_neighbours).fit(held, np.array(ours._labels)[codes])
    answers = ours.predict(X)
    even = np.array([len(np.unique(row)) != len(row) for row in codes[theirs.kneighbors(X)[1]]])
    agree = answers == theirs.predict(X)
    assert agree.mean() > 0.99  # scikit-learn breaks ties by label, ccmem by distance
    assert n_neighbours == 1 or even.any()


def herd_by_trying(features: np.ndarray, count: int) -> list[int]:
    """Try every row as the next one, and measure the gap by its definition."""
    chosen: list[int] = []
    while len(chosen) < min(count, len(features)):
        gaps = {}
        for row in range(len(features)):
            if row not in chosen:
                gap = features.mean(axis=0) - features[[*chosen, row]].mean(axis=0)
                gaps[row] = round(float(gap @ gap), 9)
        chosen.append(min(gaps, key=lambda row: (gaps[row], row)))
    return chosen


@given(
    npst.arrays(np.int64, st.tuples(st.integers(1, 9), st.integers(1, 3)), elements=st.integers(-3, 3)),
    st.integers(1, 9),
)
def test_herding_is_trying_every_row(values: np.ndarray, count: int) -> None:
    features = values.astype(np.float64)
    ours, theirs = herd(features, count), herd_by_trying(features, count)
    for k in range(len(theirs)):  # another order of sums may break ties differently: then the gaps must be equal
        if ours[k] != theirs[k]:
            gaps = [features.mean(axis=0) - features[list(rows[: k + 1])].mean(axis=0) for rows in (ours, theirs)]
            assert np.isclose(gaps[0] @ gaps[0], gaps[1] @ gaps[1])
            return


def test_herded_means_are_nearer_than_random_ones() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(300, 20))
    gap = np.linalg.norm(features[herd(features, 10)].mean(axis=0) - features.mean(axis=0))
    chance = [
        np.linalg.norm(features[rng.choice(300, 10, replace=False)].mean(axis=0) - features.mean(axis=0))
        for _ in range(50)
    ]
    assert gap < 0.5 * min(chance)


def naive_targets(
    X: np.ndarray, targets: np.ndarray, W: list[np.ndarray], b: list[np.ndarray], learning_rate: float
) -> None:
    """Reference implementation of ``Network.learn_targets``: one step per row, updating ``W`` and ``b`` in place."""
    for x, target in zip(X, targets, strict=True):
        z = [x]
        for w, c in zip(W[:-1], b[:-1], strict=True):
            z.append(np.maximum(w @ z[-1] + c, 0))
        d = [1 / (1 + np.exp(-(W[-1] @ z[-1] + b[-1]))) - target]
        for w, activity in zip(W[:0:-1], z[:0:-1], strict=True):
            d.insert(0, (activity > 0) * (w.T @ d[0]))
        for w, c, delta, activity in zip(W, b, d, z, strict=True):
            w -= learning_rate * np.outer(delta, activity)
            c -= learning_rate * delta


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-10), (np.float32, 1e-3)])
def test_network_with_targets_is_its_naive_twin(dtype: type, tolerance: float) -> None:
    rng = np.random.default_rng(1)
    rows = np.maximum(rng.normal(size=(40, 7)), 0).astype(dtype)
    targets = rng.random((40, 3)).astype(dtype)
    network = Network(7, (6, 5), 3, dtype, 0)
    from ccmem.readout.network import unpack

    layers = [layer.astype(np.float64) for layer in unpack(network.state)]
    W, b = [layer[:, :-1].copy() for layer in layers], [layer[:, -1].copy() for layer in layers]
    order = rng.permutation(40)
    naive_targets(rows[order].astype(np.float64), targets[order].astype(np.float64), W, b, 0.1)
    network.learn_targets(rows, targets, order, 0.1)
    for layer, w, c in zip(unpack(network.state), W, b, strict=True):
        np.testing.assert_allclose(layer[:, :-1], w, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(layer[:, -1], c, rtol=tolerance, atol=tolerance)
    assert network.n_floats == n_weights(7, (6, 5), 3) == 8 * 6 + 7 * 5 + 6 * 3


def test_network_with_labels_is_pytorchs() -> None:
    """One step per sample of softmax and cross-entropy, as used by replay, GDumb, fine-tuning and joint training."""
    torch = pytest.importorskip("torch")
    from ccmem.readout.network import unpack

    rows, codes = X[:200], Y[:200].astype(np.int64)
    network = Network(64, (12, 9), 10, np.float64, 0)
    parts = [torch.nn.Linear(64, 12), torch.nn.ReLU(), torch.nn.Linear(12, 9), torch.nn.ReLU(), torch.nn.Linear(9, 10)]
    theirs = torch.nn.Sequential(*parts).double()
    with torch.no_grad():
        for part, layer in zip(parts[::2], unpack(network.state), strict=True):
            part.weight.copy_(torch.tensor(layer[:, :-1].copy()))
            part.bias.copy_(torch.tensor(layer[:, -1].copy()))
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.05)
    for row, code in zip(torch.tensor(rows), torch.tensor(codes), strict=True):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(theirs(row), code).backward()
        optimizer.step()
    network.learn(rows, codes, 0.05)
    np.testing.assert_allclose(network.scores(X), theirs(torch.tensor(X)).detach().numpy(), rtol=1e-7, atol=1e-9)


def test_the_papers_network_takes_what_the_docs_say() -> None:
    assert n_weights(784, (110, 104), 10) == 98_944


@given(npst.arrays(np.int64, (3, 6), elements=st.integers(-2, 2)), st.integers(1, 8))
def test_cells_that_fire_are_those_with_the_largest_sums(values: np.ndarray, n_active: int) -> None:
    rows = values.astype(np.float64)
    inputs = np.random.default_rng(0).integers(0, 6, (8, 2))
    cells, activity = np.empty((3, n_active), np.int64), np.empty((3, n_active))
    fire(rows, np.sort(inputs), cells, activity)
    for row, mine, strength in zip(rows, cells, activity, strict=True):
        sums = np.full(8, -2 * (row.sum() / 6))
        for cell, columns in enumerate(inputs):
            for column in sorted(columns):  # in order: another order would round, and break ties, differently
                sums[cell] += row[column]
        best = np.argsort(-sums, kind="stable")[:n_active]
        assert sorted(mine) == sorted(best)
        top = max(sums[best].max(), 0)
        expected = np.maximum(sums[mine], 0) / top if top > 0 else np.zeros(n_active)
        np.testing.assert_allclose(strength, expected)


def test_fly_learns_and_answers_as_its_equations_say() -> None:
    rows, labels = X[:60].astype(np.float32), Y[:60]
    model = FlyModel(n_inputs=5, n_active=7, learning_rate=0.3, max_floats=1_500, random_state=0)
    model.partial_fit(rows, labels, classes=range(10))
    P = np.zeros((len(model._inputs), 64))
    np.put_along_axis(P, model._inputs, 1.0, axis=1)

    def expanded(x: np.ndarray) -> np.ndarray:
        h = P @ (x - x.mean())
        z = np.where(np.isin(np.arange(len(h)), np.argsort(-h, kind="stable")[:7]), np.maximum(h, 0), 0)
        return np.asarray(z / z.max())

    weights = np.zeros((10, len(P)))
    for x, label in zip(rows.astype(np.float64), labels, strict=True):
        weights[label] += 0.3 * expanded(x) * (1 - weights[label])
    scores = np.array([weights @ expanded(x) for x in rows.astype(np.float64)])
    agree = model.predict(rows) == scores.argmax(axis=1)
    assert agree.mean() >= 58 / 60  # single precision may choose differently between equal sums
    np.testing.assert_allclose(np.sort(model._weights.sum(axis=1)), np.sort(weights.sum(axis=1)), rtol=0.01)


def test_fly_leaves_other_classes_alone() -> None:
    model = FlyModel(n_active=16, max_floats=10_000, random_state=0).partial_fit(X, Y, classes=range(10))
    before = model._weights.copy()
    model.partial_fit(X[Y == 3], Y[Y == 3])
    changed = np.flatnonzero((model._weights != before).any(axis=1))
    assert changed.tolist() == [3]
    assert (model._weights <= 1).all()


def test_icarl_answers_with_the_nearest_mean_of_its_exemplars() -> None:
    model = ICaRL((32, 16), n_epochs=2, learning_rate=0.05, max_floats=8_000, random_state=0)
    for task in range(5):
        mine = task == Y // 2
        model.partial_fit(X[mine], Y[mine]).end_task()

    def features(rows: np.ndarray) -> np.ndarray:
        found = model._network.features(rows.astype(np.float32)).astype(np.float64)
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    means = np.array([features(rows).mean(axis=0) for rows in model.exemplars_])
    nearest = KNeighborsClassifier(1).fit(means / np.linalg.norm(means, axis=1, keepdims=True), np.arange(10))
    assert (model.predict(X) == nearest.predict(features(X))).mean() > 0.998
    assert {len(rows) for rows in model.exemplars_} == {len(model.exemplars_[0])}


def test_icarl_keeps_what_old_classes_score() -> None:
    """The targets of old classes are the old outputs; without distillation they would be 0."""
    first, second = Y < 5, Y >= 5
    model = ICaRL((32, 16), n_epochs=8, learning_rate=0.05, max_floats=8_000, random_state=0)
    model.partial_fit(X[first], Y[first]).end_task()
    before = 1 / (1 + np.exp(-model._network.scores(X[second])[:, :5]))
    model.partial_fit(X[second], Y[second]).end_task()
    after = 1 / (1 + np.exp(-model._network.scores(X[second])[:, :5]))
    assert np.corrcoef(before.ravel(), after.ravel())[0, 1] > 0.8
    assert model.score(X[first], Y[first]) > 0.8
