"""GatedMLP: reference, gates, routing, chunk invariance, and Split MNIST if available."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from ccmem import CCM, GatedMLP, IncrementalWTA
from ccmem.kernels.jit import JIT_ENABLED
from ccmem.readout import gated
from ccmem.readout.network import unpack
from naive.mlp import naive
from zoo import snapshot


def small(memory=None, **options):
    """Create a network on a memory that changes blocks easily."""
    memory = memory or CCM(n_slots=2, vigilance=0.9, alarm_limit=1, recall_limit=0, commit_limit=1, random_state=0)
    return GatedMLP(
        memory,
        **{"hidden_sizes": (9, 7), "gated_units": 3, "undo": 0, "learning_rate": 0.1, "random_state": 0} | options,
    )


def task_stream(n_tasks=6, n=30, width=8, seed=0, dtype=np.float64):
    """Distant tasks, each with two close classes; the first task returns at the end."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_tasks, 2, width)) * 0.4 + np.eye(width)[:n_tasks, None] * 4
    tasks = np.repeat([*range(n_tasks), 0], n)
    labels = rng.integers(2, size=len(tasks))
    X = centres[tasks, labels] + rng.normal(size=(len(tasks), width)) * 0.05
    return X.astype(dtype), labels, tasks


def layers(net):
    matrices = [rows.copy() for rows in unpack(net._state)]
    return [m[:, :-1].copy() for m in matrices], [m[:, -1].copy() for m in matrices]


def flat(weights_and_biases):
    return weights_and_biases[0] + weights_and_biases[1]


def state_of(net):
    n_blocks = net.memory_.n_blocks_
    used = {"gates": n_blocks, "steps": n_blocks, "membership": n_blocks + 1}
    known = {name: array[: used.get(name)].tobytes() for name, array in net._state._asdict().items()}
    return known | {
        f"memory {k}": v.tobytes() if hasattr(v, "tobytes") else v for k, v in snapshot(net.memory_).items()
    }


def pointers_one_by_one(memory, X):
    """Return the task pointer after every sample, and whether the memory learned the sample."""
    memory = clone(memory)
    learned = [memory.learn_one(x) for x in X[:1]]
    pointers = [memory.task_pointer_]
    for x in X[1:]:
        learned.append(memory.learn_one(x.copy()))
        pointers.append(memory.task_pointer_)
    return np.array(pointers), np.array(learned) >= 0


@pytest.mark.parametrize("options", [{}, {"momentum": 0.8}, {"optimizer": "adam", "learning_rate": 0.01}])
@pytest.mark.parametrize("learn", ["accepted", "all"])
@pytest.mark.parametrize(("activation", "announced"), [("relu", True), ("tanh", True), ("relu", False)])
def test_kernel_equals_naive_twin(activation, announced, learn, options):
    X, labels, tasks = task_stream()
    if not announced:  # a pair of classes for every task, numbered as they appear
        codes = labels + 2 * tasks
        labels = np.array([list(dict.fromkeys(codes)).index(code) for code in codes])
    n_classes = labels.max() + 1
    net = small(activation=activation, learn=learn, **options)
    W, b = layers(clone(net).partial_fit(X[:1], None, classes=range(n_classes)))
    net.partial_fit(X, labels, classes=[0, 1] if announced else None)
    pointers, learned = pointers_one_by_one(net.memory, X)
    assert len(set(pointers)) > 3
    assert 0 < learned.sum() < len(X)
    if learn == "all":
        learned[:] = True
    Q = [q.astype(float) for q in net.gates_]
    gates = [[q[t] for q in Q] for t in pointers[learned]]
    naive(
        X[learned],
        labels[learned],
        W,
        b,
        activation,
        options.get("optimizer", "sgd"),
        net.learning_rate,
        options.get("momentum", 0.0),
        gates,
        n_announced=2 * announced,
    )
    for got, expected in zip(flat(layers(net)), W + b, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-11)
    assert net.n_samples_taught_ == learned.sum()


def test_the_memory_learns_as_if_alone():
    X, labels, _ = task_stream()
    net = small().partial_fit(X, labels)
    alone = clone(net.memory).partial_fit(X)
    assert net.memory_.events_ == alone.events_
    np.testing.assert_array_equal(net.memory_.prototypes_, alone.prototypes_)
    assert not hasattr(net.memory, "_state")


@pytest.mark.parametrize("n_open", [1, 3, (4, 2)])
def test_gates_are_unique_and_disjoint_while_units_last(n_open):
    net = small(gated_units=n_open).partial_fit(*task_stream()[:2])
    net._make_gates(40)
    for layer, (size, open_units) in enumerate(zip((9, 7), np.broadcast_to(n_open, 2), strict=True)):
        units = net._state.gates[:40, layer, :open_units]
        assert (net._state.gates[:40, layer, open_units:] == -1).all()
        assert (np.diff(units, axis=1) > 0).all()
        assert ((units >= 0) & (units < size)).all()
        private = size // open_units
        assert len(np.unique(units[:private])) == private * open_units
        assert len({tuple(u) for u in units.tolist()}) == min(40, math.comb(size, open_units))


def test_gates_of_every_block_of_the_memory():
    net = small().partial_fit(*task_stream()[:2])
    assert net.memory_.n_blocks_ > 4
    assert [q.shape for q in net.gates_] == [(net.memory_.n_blocks_, 9), (net.memory_.n_blocks_, 7)]
    assert all((q.sum(axis=1) == 3).all() for q in net.gates_)


def test_learning_in_one_block_leaves_the_units_of_others_alone():
    X, labels, _ = task_stream()
    pointers, learned = pointers_one_by_one(small().memory, X)
    net = small(hidden_sizes=(40, 40)).partial_fit(X[:100], labels[:100])
    n_blocks, (W, b) = net.memory_.n_blocks_, layers(net)
    net.partial_fit(X[100:], labels[100:])
    assert net.memory_.n_blocks_ * 3 <= 40
    idle = sorted(set(range(n_blocks)) - set(pointers[100:][learned[100:]]))
    assert idle
    new_W, new_b = layers(net)
    for layer, Q in enumerate(net.gates_):
        units = Q[idle].any(axis=0)
        np.testing.assert_array_equal(new_W[layer][units], W[layer][units])
        np.testing.assert_array_equal(new_b[layer][units], b[layer][units])
        assert (new_W[layer] != W[layer]).any()
    np.testing.assert_array_equal(new_W[2][:, units], W[2][:, units])


@given(
    cuts=st.lists(st.integers(0, 84), max_size=5),
    dtype=st.sampled_from([np.float32, np.float64]),
    learn=st.sampled_from(["accepted", "all"]),
    undo=st.sampled_from([0, 3]),
    seed=st.integers(0, 5),
)
def test_a_stream_may_be_cut_anywhere(cuts, dtype, learn, undo, seed):
    X, codes, tasks = task_stream(n=12, seed=seed, dtype=dtype)
    labels = np.where(np.arange(len(X)) % 7 == 3, None, np.array(list("abcdefgh"), dtype=object)[(tasks + codes) % 8])
    whole, cut, single = (small(learn=learn, undo=undo) for _ in range(3))
    whole.partial_fit(X, labels)
    for part, own in zip(np.split(X, sorted(cuts)), np.split(labels, sorted(cuts)), strict=True):
        if len(part):
            cut.partial_fit(part, own)
    for x, label in zip(X, labels, strict=True):
        single.learn_one(x.copy(), label)
    assert state_of(whole) == state_of(cut) == state_of(single)
    assert list(whole.classes_) == list(single.classes_)
    assert [single.predict_one(x.copy()) for x in X] == list(whole.predict(X))


@pytest.mark.parametrize("options", [{}, {"optimizer": "adam", "learning_rate": 0.01}])
def test_a_visit_without_labels_may_be_cut_anywhere_too(options):
    """The previous block is left and entered again, without any training in between."""
    X = np.repeat(np.eye(6)[[0, 3, 0]] * 4, [40, 12, 40], axis=0) + np.random.default_rng(0).random((92, 6)) * 0.3
    labels = np.array([0] * 36 + [1, 1, 2, 2] + [np.nan] * 12 + [0] * 40)
    memory = CCM(n_slots=1, alarm_limit=2, recall_limit=1, commit_limit=2, vigilance=0.7, random_state=0)
    whole, single = (small(memory=memory, undo=3, **options) for _ in range(2))
    whole.partial_fit(X, labels)
    for x, label in zip(X, labels, strict=True):
        single.learn_one(x.copy(), label)
    assert [event.to_block for event in whole.memory_.events_] == [1, 0]
    assert state_of(whole) == state_of(single)


def test_the_memory_of_a_network_cannot_change_its_shape():
    X, labels, _ = task_stream()
    net = small().partial_fit(X, labels)
    net.memory_.set_params(n_slots=5)
    with pytest.raises(ValueError, match="n_slots from 2 to 5 cannot change"):
        net.learn_one(X[0], 0)


def test_more_events_than_the_history_holds(monkeypatch):
    X, labels, _ = task_stream()
    expected = small(learn="all").partial_fit(X, labels)
    monkeypatch.setattr(gated, "EVENT_HISTORY", 16)
    assert state_of(small(learn="all").partial_fit(X, labels)) == state_of(expected)


def test_learn_one_tells_the_block():
    X, labels, _ = task_stream()
    net = small()
    blocks = [net.learn_one(x.copy(), label) for x, label in zip(X, labels, strict=True)]
    pointers, learned = pointers_one_by_one(net.memory, X)
    assert blocks == np.where(learned, pointers, -1).tolist()


def test_rows_and_pools_are_routed_by_the_memory():
    X, labels, _ = task_stream()
    net = small().partial_fit(X, labels)
    pointers = net.memory_.task_pointers(X)
    assert len(set(pointers)) > 3
    W, b = net.coefs_, net.intercepts_
    for block in set(pointers):
        z = X[pointers == block]
        for layer in (0, 1):
            z = np.maximum(z @ W[layer] + b[layer], 0) * net.gates_[layer][block]
        scores = np.exp(z @ W[2] + b[2])
        np.testing.assert_allclose(net.predict_proba(X)[pointers == block], scores / scores.sum(axis=1, keepdims=True))
    modal, other = np.bincount(pointers).argsort()[[-1, -2]]
    mixed = np.concatenate([X[pointers == modal], X[pointers == other][:5]])
    alone = net.memory_.task_pointers(mixed) == modal
    assert net.memory_.pool_task(mixed) == modal
    np.testing.assert_array_equal(net.predict_proba_pool(mixed)[alone], net.predict_proba(mixed)[alone])
    assert (net.predict_proba_pool(mixed)[~alone] != net.predict_proba(mixed)[~alone]).any()
    np.testing.assert_array_equal(net.predict_pool(mixed), net.classes_[net.predict_proba_pool(mixed).argmax(axis=1)])


def test_a_block_answers_with_the_classes_it_has_learned():
    X, labels, tasks = task_stream()
    names = np.array([f"{task}{'ab'[label]}" for task, label in zip(tasks, labels, strict=True)])
    net = small(hidden_sizes=(60, 60)).partial_fit(X[:-30], names[:-30])
    first, proba = X[tasks == 0], net.predict_proba(X[tasks == 0])
    learned = set(np.flatnonzero(proba.any(axis=0)))
    assert {"0a", "0b"} <= set(net.classes_[list(learned)]) < set(net.classes_)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    announced = small(hidden_sizes=(60, 60)).partial_fit(X[:-30], names[:-30], classes=np.unique(names))
    assert (announced.predict_proba(first) > 0).all()
    silent = small().partial_fit(X[:30], names[:30]).partial_fit(X[30:60], None)  # a block without any label
    assert silent.memory_.task_pointers(X[30:60]).min() > 0
    assert (silent.predict_proba(X[30:60]) > 0).all()


@pytest.mark.parametrize("undo", [1, 7, 20, 1000])
def test_what_a_block_was_taught_last_is_taken_back_when_it_is_left(undo):
    X, labels, _ = task_stream(n=45)
    labels = np.array(list("abcd"))[labels + 2 * (np.arange(len(X)) % 45 > 40)]  # two classes at the end of a task
    pointers, learned = pointers_one_by_one(small().memory, X)
    change = np.flatnonzero(np.diff(pointers))[0] + 1
    left = pointers[0]
    taught = np.flatnonzero(learned[:change])
    kept = [0, 0]
    for n in range(1, len(taught) + 1):
        if n - kept[1] >= min(undo, n / 2):
            kept = [kept[1], n]
    n_kept = kept[0]
    assert n_kept == 0 or n_kept >= len(taught) / 4
    assert len(taught) - n_kept >= min(undo, len(taught) / 2)
    keeps_to = taught[n_kept] if n_kept < len(taught) else change
    options = {"hidden_sizes": (40, 40), "undo": undo}
    net = small(**options).partial_fit(X[: change + 1], labels[: change + 1])
    early = small(**options).partial_fit(X[:1], None, classes=np.unique(labels[: change + 1]))
    early._state.membership[:] = False
    early = small(**options).partial_fit(X[:keeps_to], labels[:keeps_to]) if n_kept else early
    (W, b), (early_W, early_b) = layers(net), layers(early)
    for layer, Q in enumerate(net.gates_):
        np.testing.assert_array_equal(W[layer][Q[left]], early_W[layer][Q[left]])
        np.testing.assert_array_equal(b[layer][Q[left]], early_b[layer][Q[left]])
    rows = net._state.class_rows
    assert set(np.flatnonzero(net._state.membership[1 + left])) <= set(rows)
    if n_kept:
        answers = net.classes_[np.isin(rows, np.flatnonzero(net._state.membership[1 + left]))]
        assert set(answers) == set(labels[taught[:n_kept]])
    else:
        assert not net._state.membership[1 + left].any()


def test_one_seed_is_enough():
    X, labels, _ = task_stream()
    first, second, third = (GatedMLP(CCM(n_slots=2), random_state=s).fit(X, labels) for s in (5, 5, 6))
    assert state_of(first) == state_of(second) != state_of(third)
    kept = GatedMLP(CCM(n_slots=2, random_state=3), random_state=5).fit(X, labels)
    assert kept.memory_.random_state == 3


def test_pickle_and_go_on():
    X, labels, _ = task_stream()
    net = small().partial_fit(X[:100], labels[:100])
    copy = pickle.loads(pickle.dumps(net)).partial_fit(X[100:], labels[100:])
    assert state_of(copy) == state_of(net.partial_fit(X[100:], labels[100:]))


def test_a_rejected_chunk_leaves_no_trace():
    X, labels, _ = task_stream()
    fresh, net = small(), small().partial_fit(X, labels)
    before = state_of(net)
    for bad_X, bad_y in [(X[:2] * np.nan, [0, 1]), (X[:2], [0]), (X[:2], [0, "a"]), (X[:2, :3], [0, 1])]:
        with pytest.raises(ValueError, match=r"NaN|labels|features"):
            net.partial_fit(bad_X, bad_y)
        if bad_X.shape == X[:2].shape:
            with pytest.raises(ValueError, match=r"NaN|labels"):
                fresh.partial_fit(bad_X, bad_y)
    assert state_of(net) == before
    assert fresh.__getstate__().keys() == small().__getstate__().keys()


def test_wrong_parameters():
    X, labels, _ = task_stream()
    for wrong in (
        {"gated_units": 8},
        {"gated_units": (3, 3, 3)},
        {"gated_units": 0},
        {"hidden_sizes": ()},
        {"learn": "no"},
    ):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            small(**wrong).fit(X, labels)
    with pytest.raises(TypeError, match="task pointer"):
        GatedMLP(IncrementalWTA()).fit(X, labels)


@pytest.mark.data
def test_split_mnist_is_learned_without_forgetting(mnist):
    X, y, X_test, y_test = mnist.X_train, mnist.y_train, mnist.X_test, mnist.y_test
    net = GatedMLP(CCM(random_state=0), random_state=0)
    rng = np.random.default_rng(0)
    for task in range(5):
        rows = rng.permutation(np.flatnonzero(y // 2 == task))
        net.partial_fit(X[rows], y[rows] % 2)
    pools = [y_test // 2 == task for task in range(5)]
    assert np.mean([(net.predict_pool(X_test[p]) == y_test[p] % 2).mean() for p in pools]) > 0.98


if JIT_ENABLED:

    @parametrize_with_checks([GatedMLP(), GatedMLP(CCM(n_slots=5, commit_limit=5), learn="all", random_state=0)])
    def test_sklearn(estimator, check):
        check(estimator)
