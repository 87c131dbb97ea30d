"""OnlineMLP: reference and PyTorch, chunk invariance, new classes, missing labels, bad input."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from ccmem import CCM, GatedMLP, OnlineMLP
from ccmem.kernels.jit import JIT_ENABLED
from ccmem.readout.network import unpack
from naive.mlp import naive

OPTIMIZERS = [{"optimizer": "sgd"}, {"optimizer": "sgd", "momentum": 0.9}, {"optimizer": "adam"}]
every_activation = pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid"])
every_optimizer = pytest.mark.parametrize("options", OPTIMIZERS, ids=["sgd", "momentum", "adam"])


def rows_and_codes(n=60, width=6, n_classes=4, seed=0, dtype=np.float64):
    """Random rows; classes appear one after the other."""
    rng = np.random.default_rng(seed)
    codes = np.minimum(rng.integers(n_classes, size=n), np.arange(n) // 8)
    codes = np.unique(codes, return_index=True)[1].argsort().argsort()[np.unique(codes, return_inverse=True)[1]]
    return rng.normal(size=(n, width)).astype(dtype), codes


def first_layers(net, width, n_classes):
    """Return the initial weights of ``net``: a matrix and a bias per layer, output units in order of appearance."""
    return layers(OnlineMLP(**net.get_params()).partial_fit(np.zeros((1, width)), None, classes=range(n_classes)))


def layers(net):
    matrices = [rows.copy() for rows in unpack(net._state)]
    return [m[:, :-1].copy() for m in matrices], [m[:, -1].copy() for m in matrices]


def flat(weights_and_biases):
    return weights_and_biases[0] + weights_and_biases[1]


def state_of(net):
    return {name: array.tobytes() for name, array in net._state._asdict().items()}


@every_optimizer
@every_activation
@pytest.mark.parametrize("hidden", [(), (5,), (40, 3)])
def test_kernel_equals_naive_twin(hidden, activation, options):
    X, codes = rows_and_codes()
    net = OnlineMLP(hidden, activation=activation, learning_rate=0.05, random_state=3, **options)
    W, b = first_layers(net, X.shape[1], 4)
    net.partial_fit(X, codes)
    naive(X, codes, W, b, activation, options["optimizer"], 0.05, options.get("momentum", 0.0))
    for got, expected in zip(flat(layers(net)), W + b, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-11)


@every_optimizer
@every_activation
def test_steps_equal_pytorch(activation, options):
    torch = pytest.importorskip("torch")
    X, codes = rows_and_codes(n=30)
    net = OnlineMLP((7, 5), activation=activation, learning_rate=0.02, random_state=0, **options)
    W, b = first_layers(net, X.shape[1], 4)
    net.partial_fit(X[:1], None, classes=range(4))
    parameters = [torch.tensor(p, requires_grad=True) for p in W + b]
    phi = {"relu": torch.relu, "tanh": torch.tanh, "sigmoid": torch.sigmoid}[activation]
    make = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[options["optimizer"]]
    optimizer = make(parameters, lr=0.02, **{k: v for k, v in options.items() if k == "momentum"})
    for x, code in zip(X, codes, strict=True):
        z = torch.tensor(x)
        for layer in range(3):
            z = parameters[layer] @ z + parameters[3 + layer]
            z = phi(z) if layer < 2 else z
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(z[None], torch.tensor([int(code)])).backward()
        optimizer.step()
        net.learn_one(x, code)
        for got, expected in zip(flat(layers(net)), parameters, strict=True):
            np.testing.assert_allclose(got, expected.detach().numpy(), rtol=1e-7, atol=1e-9)


@given(
    cuts=st.lists(st.integers(0, 40), max_size=4),
    dtype=st.sampled_from([np.float32, np.float64]),
    options=st.sampled_from(OPTIMIZERS),
    labels=st.lists(st.sampled_from(["a", "b", "c", None]), min_size=40, max_size=40),
)
def test_a_stream_may_be_cut_anywhere(cuts, dtype, options, labels):
    X = rows_and_codes(n=40)[0].astype(dtype)
    labels = np.array(labels, dtype=object)
    make = lambda: OnlineMLP((33, 4), learning_rate=0.05, random_state=1, **options)  # noqa: E731
    whole, cut, single = make().partial_fit(X, labels), make(), make()
    for part, own in zip(np.split(X, sorted(cuts)), np.split(labels, sorted(cuts)), strict=True):
        if len(part):
            cut.partial_fit(part, own)
    for x, label in zip(X, labels, strict=True):
        single.learn_one(x.copy(), label)
    assert state_of(whole) == state_of(cut) == state_of(single)
    assert list(whole.classes_) == list(cut.classes_) == list(single.classes_)
    if len(whole.classes_):
        assert [single.predict_one(x.copy()) for x in X] == list(whole.predict(X))


def test_new_classes_take_their_place_in_sorted_order():
    X = np.eye(3).repeat(40, axis=0)
    net = OnlineMLP((8,), learning_rate=0.5, random_state=0)
    net.partial_fit(X[80:], ["c"] * 40).partial_fit(X[:40], ["a"] * 40).partial_fit(X[40:80], ["b"] * 40)
    order = np.random.default_rng(0).permutation(120)
    net.partial_fit(X[order], np.array(list("abc")).repeat(40)[order])
    assert net.classes_.tolist() == ["a", "b", "c"]
    assert net.predict(np.eye(3)).tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(net.predict_proba(np.eye(3)).argmax(axis=1), [0, 1, 2])
    np.testing.assert_allclose(net.predict_proba(X).sum(axis=1), 1.0)
    assert [w.shape for w in net.coefs_] == [(3, 8), (8, 3)]
    assert [b.shape for b in net.intercepts_] == [(8,), (3,)]
    z = np.maximum(np.eye(3) @ net.coefs_[0] + net.intercepts_[0], 0)
    scores = np.exp(z @ net.coefs_[1] + net.intercepts_[1])
    np.testing.assert_allclose(net.predict_proba(np.eye(3)), scores / scores.sum(axis=1, keepdims=True))


def test_announced_classes_take_part_at_once():
    X = np.ones((1, 2))
    silent = OnlineMLP((3,), random_state=0).partial_fit(X, [1])
    told = OnlineMLP((3,), random_state=0).partial_fit(X, [1], classes=[0, 1, 2])
    assert told.predict_proba(X).shape == (1, 3)
    assert silent.predict_proba(X).tolist() == [[1.0]]
    assert silent.n_samples_taught_ == told.n_samples_taught_ == 1


def test_missing_labels_teach_nothing():
    X, codes = rows_and_codes()
    labels = codes.astype(float)
    labels[::3] = np.nan
    net = OnlineMLP(random_state=0).partial_fit(X, labels)
    kept = OnlineMLP(random_state=0).partial_fit(X[labels == labels], labels[labels == labels])
    assert (net.n_samples_seen_, net.n_samples_taught_) == (60, 40)
    np.testing.assert_array_equal(net._state.parameters, kept._state.parameters)
    with pytest.raises(NotFittedError, match="seen no label"):
        OnlineMLP().partial_fit(X, None).predict(X)
    with pytest.raises(ValueError, match="every label in y is missing"):
        OnlineMLP().fit(X, np.full(60, np.nan))


BAD = [
    (np.array([[np.nan] * 6]), [0], "row 0, column 0"),
    (np.ones((2, 6)), [0], "1 labels for 2 rows"),
    (np.ones((2, 6)), [0, "a"], "sorted together"),
    (np.ones((1, 6)), [np.inf], "infinity"),
]


@pytest.mark.parametrize(("X", "y", "message"), BAD)
def test_a_rejected_chunk_leaves_no_trace(X, y, message):
    fresh = OnlineMLP(random_state=0)
    with pytest.raises(ValueError, match=message):
        fresh.partial_fit(X, y)
    assert fresh.__getstate__() == OnlineMLP(random_state=0).__getstate__()  # the state contains no lock
    net = OnlineMLP(random_state=0).partial_fit(*rows_and_codes())
    before, classes = state_of(net), net.classes_.copy()
    with pytest.raises(ValueError, match=message):
        net.partial_fit(X, y)
    with pytest.raises(ValueError, match="5 features"):
        net.partial_fit(np.ones((1, 5)), [0])
    assert state_of(net) == before
    np.testing.assert_array_equal(net.classes_, classes)


@pytest.mark.parametrize(
    "wrong",
    [
        {"hidden_sizes": (3, 0)},
        {"hidden_sizes": 5},
        {"activation": "gelu"},
        {"optimizer": "lbfgs"},
        {"learning_rate": 0},
        {"learning_rate": np.nan},
        {"momentum": 1.0},
    ],
)
def test_parameters_are_checked(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        OnlineMLP(**wrong).fit(np.ones((2, 2)), [0, 1])
    assert OnlineMLP(hidden_sizes=[4]).fit(np.ones((2, 2)), [0, 1]).n_features_in_ == 2


def test_the_shape_cannot_change_but_the_rate_may():
    X, codes = rows_and_codes()
    net = OnlineMLP((4,), random_state=0).fit(X, codes)
    net.set_params(learning_rate=0.5).partial_fit(X, codes)
    with pytest.raises(ValueError, match=r"hidden_sizes from \(4,\) to \(5,\)"):
        net.set_params(hidden_sizes=(5,)).partial_fit(X, codes)
    assert net.fit(X, codes).coefs_[0].shape == (6, 5)


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")  # numpy warns too, if kernels are not compiled
def test_divergence_is_an_error_that_names_the_row():
    net = OnlineMLP((4,), learning_rate=1e10, activation="relu", random_state=0)
    X, codes = rows_and_codes(n=200)
    with pytest.raises(ValueError, match=r"diverged at row \d+.*learning_rate below"):
        net.partial_fit(X * 1e10, codes)


def test_pickle_and_go_on():
    X, codes = rows_and_codes()
    net = OnlineMLP(optimizer="adam", random_state=0).partial_fit(X[:30], codes[:30])
    copy = pickle.loads(pickle.dumps(net)).partial_fit(X[30:], codes[30:])
    assert state_of(copy) == state_of(net.partial_fit(X[30:], codes[30:]))


def test_float32_stays_float32_and_close():
    X, codes = rows_and_codes()
    single = OnlineMLP(random_state=0).fit(X.astype(np.float32), codes)
    double = OnlineMLP(random_state=0).fit(X.astype(np.float32).astype(float), codes)
    assert single.coefs_[0].dtype == np.float32
    np.testing.assert_allclose(single.predict_proba(X), double.predict_proba(X), atol=1e-4)


if JIT_ENABLED:

    @parametrize_with_checks([OnlineMLP(), OnlineMLP(optimizer="adam", activation="tanh", random_state=0)])
    def test_sklearn(estimator, check):
        check(estimator)


@pytest.mark.parametrize("make", [lambda: OnlineMLP((4,), random_state=0), lambda: GatedMLP(random_state=0)])
def test_one_sample_is_answered_like_many(make):
    X = np.random.default_rng(0).random((30, 3))
    network = make().partial_fit(X, np.arange(30) % 3)
    answers = network.predict(X).tolist()
    assert [network.predict_one(x) for x in X] == answers
    assert [network.predict_one(x.tolist()) for x in X] == answers  # rows that need conversion take another path


@pytest.mark.parametrize(
    "make",
    [
        lambda: OnlineMLP((4,), random_state=0),
        lambda: OnlineMLP((), random_state=0),
        lambda: OnlineMLP((4, 3), optimizer="adam", random_state=0),
        lambda: GatedMLP(CCM(2, random_state=0), hidden_sizes=(5,), gated_units=2, random_state=0),
    ],
)
def test_columns_that_come_later_were_nought_so_far(make):
    X, y = np.random.default_rng(0).random((30, 3)), np.arange(30) % 3
    network = make().partial_fit(X, y)
    before = network.predict_proba(X)
    network._widen(5)
    wide = np.pad(X, [(0, 0), (0, 2)])
    assert network.n_features_in_ == 5
    np.testing.assert_array_equal(network.predict_proba(wide), before)
    other = make().partial_fit(X, y).partial_fit(X, y)
    np.testing.assert_allclose(network.partial_fit(wide, y).predict_proba(wide), other.predict_proba(X), rtol=1e-9)


@pytest.mark.parametrize(
    "make", [lambda: OnlineMLP((4,)), lambda: GatedMLP(CCM(n_slots=2), hidden_sizes=[4], gated_units=2)]
)
def test_one_sample_of_another_width_is_refused(make):
    """The fast path passes the sample to a kernel without bounds checks."""
    net = make().partial_fit(np.eye(3), [0, 1, 2])
    before = net.to_bytes()
    for width in (1, 2, 4, 5):
        with pytest.raises(ValueError, match="features"):
            net.learn_one(np.ones(width), 0)
    assert net.to_bytes() == before


@pytest.mark.parametrize(("activation", "gain"), [("relu", 6.0), ("tanh", 3.0), ("sigmoid", 3.0)])
def test_first_weights_lie_within_the_bound_of_the_activation(activation, gain):
    weights, _ = first_layers(OnlineMLP((400,), activation=activation, random_state=0), 25, 3)
    for matrix in weights:
        bound = np.sqrt(gain / matrix.shape[1])
        assert 0.95 * bound < np.abs(matrix).max() <= bound


def test_the_smallest_layer_has_one_unit():
    assert OnlineMLP((1,)).partial_fit(np.eye(2), [0, 1]).predict(np.eye(2)).shape == (2,)
    with pytest.raises(ValueError, match="hidden_sizes"):
        OnlineMLP((0,)).partial_fit(np.eye(2), [0, 1])
