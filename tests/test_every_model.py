"""Guarantees of all models in the registry."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from ccmem import ARTMAP, CCM, LVQ, AdaptiveCCM, ModalClassifier, registry
from ccmem.kernels.jit import JIT_ENABLED
from zoo import ALL, PARAMETERS, assert_same, estimators, seeded, snapshot, streams, twin

every_model = pytest.mark.parametrize("model", ALL, ids=lambda m: m.__name__)


def some_rows(n=40, width=5, dtype=np.float64):
    return np.random.default_rng(1).normal(size=(n, width)).astype(dtype)


def test_every_model_is_tried_here():
    assert set(PARAMETERS) <= {model.__name__ for model in ALL} == set(registry.MEMORIES)


@every_model
@given(data=st.data())
def test_kernel_equals_naive_twin(model, data):
    X = data.draw(streams())
    memory = data.draw(estimators(model))
    winners = memory._learn(memory._check_chunk(X)).winners
    expected = twin(memory, X)
    assert memory.n_samples_seen_ == len(X)
    np.testing.assert_array_equal(winners, expected.pop("winners"))
    if memory.n_units_ == 0:
        assert len(expected["prototypes_"]) == 0
        return
    assert memory.prototypes_.dtype == X.dtype
    for name, value in expected.items():
        np.testing.assert_array_equal(getattr(memory, name), value, err_msg=name)


@every_model
@given(data=st.data())
def test_a_stream_may_be_cut_anywhere(model, data):
    X = data.draw(streams())
    memory = data.draw(estimators(model))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(X)), max_size=4)))
    whole, cut, single = clone(memory).partial_fit(X), clone(memory), clone(memory)
    for part in np.split(X, cuts):
        if len(part):
            cut.partial_fit(part)
    for x in X:
        single.learn_one(x)
    assert_same(snapshot(whole), snapshot(cut))
    assert_same(snapshot(whole), snapshot(single))


@every_model
@given(data=st.data())
def test_reading_changes_nothing_and_agrees_with_itself(model, data):
    X = data.draw(streams())
    memory = data.draw(estimators(model)).partial_fit(X)
    if memory.n_units_ == 0:
        with pytest.raises(NotFittedError, match="no unit"):
            memory.predict(X)
        return
    before = snapshot(memory)
    units, scores = memory.predict(X), memory.transform(X)
    assert_same(before, snapshot(memory))
    assert scores.dtype == X.dtype
    assert np.isfinite(scores).all()
    assert np.isfinite(memory.prototypes_).all()
    np.testing.assert_array_equal(units, [memory.predict_one(x) for x in X])
    np.testing.assert_array_equal(units[::-1], memory.predict(X[::-1]))
    best = scores.min(axis=1) if memory._by_distance else scores.max(axis=1)
    np.testing.assert_array_equal(scores[np.arange(len(X)), units], best)


@every_model
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_memory_holds_no_view_of_the_data(model, dtype):
    X = some_rows(dtype=dtype)
    memory = seeded(model).partial_fit(X)
    memory.learn_one(X[0])
    before = snapshot(memory)
    X[:] = 7.0
    assert_same(before, snapshot(memory))
    held = memory.prototypes_
    held[:] = 7.0
    assert_same(before, snapshot(memory))


@every_model
def test_the_data_is_never_changed(model):
    X = some_rows()
    kept = X.copy()
    seeded(model).fit(X).predict(X)
    np.testing.assert_array_equal(X, kept)


@every_model
def test_refit_equals_fit(model):
    X, other = some_rows(), some_rows(60, width=3)
    again = seeded(model).fit(other).fit(X)
    assert_same(snapshot(seeded(model).fit(X)), snapshot(again))
    assert again.n_features_in_ == X.shape[1]


@every_model
def test_fit_is_one_partial_fit(model):
    X = some_rows()
    assert_same(snapshot(seeded(model).fit(X)), snapshot(seeded(model).partial_fit(X)))


@every_model
def test_pickle_and_copy_go_on_alike(model):
    X = some_rows(80)
    memory = seeded(model).partial_fit(X[:40])
    twins = [pickle.loads(pickle.dumps(memory)), copy.deepcopy(memory)]
    memory.partial_fit(X[40:])
    for other in twins:
        assert_same(snapshot(memory), snapshot(other.partial_fit(X[40:])))


@every_model
def test_clone_takes_parameters_and_leaves_knowledge(model):
    memory = seeded(model).fit(some_rows())
    fresh = clone(memory)
    assert fresh.get_params() == memory.get_params()
    assert not fresh.__sklearn_is_fitted__()
    with pytest.raises(NotFittedError, match="learned nothing yet"):
        _ = fresh.prototypes_


@every_model
def test_float32_stays_float32(model):
    X = some_rows(dtype=np.float32)
    memory = seeded(model).fit(X)
    assert memory.prototypes_.dtype == np.float32
    assert memory.transform(X.astype(np.float64)).dtype == np.float32


@every_model
def test_read_only_and_strange_layouts_give_the_same(model):
    X = some_rows()
    expected = snapshot(seeded(model).fit(X))
    locked = X.copy()
    locked.flags.writeable = False
    for variant in (locked, np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], X.tolist()):
        assert_same(expected, snapshot(seeded(model).fit(variant)))
    one_by_one = seeded(model)
    for row in locked:
        one_by_one.learn_one(row)
    assert_same(expected, snapshot(one_by_one))


@every_model
def test_learn_one_takes_lists_and_integers(model):
    memory, other = seeded(model), seeded(model)
    for row in [[1, 2, 3], [3, 2, 1], [1, 2, 2]]:
        memory.learn_one(row)
        other.learn_one(np.array(row, np.float64))
    assert_same(snapshot(memory), snapshot(other))
    assert memory.predict_one([1, 2, 3]) == other.predict([[1, 2, 3]])[0]


def unaligned(x):
    return np.frombuffer(b"?" + x.tobytes(), np.uint8)[1:].view(x.dtype)


@every_model
def test_single_samples_of_any_kind_and_after_any_change_are_learned_as_chunks_are(model):
    kinds = [
        np.copy,
        lambda x: np.repeat(x, 2)[::2],
        lambda x: x.astype(">f8"),
        unaligned,
        lambda x: np.vstack([x, x]).view(np.recarray)[0],
        np.copy,
        list,
    ]
    X = some_rows()
    singly, chunked = seeded(model), seeded(model)
    for k, x in enumerate(X):
        if k == len(X) // 2:
            for memory in (singly, chunked):
                memory.set_params(
                    **{"learning_rate": 0.011} if "learning_rate" in memory.get_params() else {"max_age": 3}
                )
        singly.learn_one(kinds[k % len(kinds)](x))
        chunked.partial_fit(x[np.newaxis])
    assert_same(snapshot(singly), snapshot(chunked))


@every_model
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_zero_vectors_are_no_error_and_make_no_nan(model, dtype):
    X = np.vstack([np.zeros((30, 4)), some_rows(5, 4), np.zeros((30, 4))]).astype(dtype)
    memory = seeded(model).partial_fit(X)
    for values in (memory.prototypes_, memory.transform(X)):
        assert np.isfinite(values).all()
    memory.predict(np.zeros((2, 4), dtype))


@every_model
def test_constant_columns_and_equal_rows_are_learned(model):
    X = some_rows(30, 3)
    X[:, 1] = 0.5
    for rows in (X, np.full((30, 3), 0.5)):
        memory = seeded(model).fit(rows)
        assert np.isfinite(memory.prototypes_).all()
        assert (memory.predict(rows) < memory.n_units_).all()


BAD_ROWS = {
    "NaN": (np.array([[0.0, 1.0, np.nan]]), "NaN at row 0, column 2"),
    "infinity": (np.array([[0.0, -np.inf, 1.0]]), "-inf at row 0, column 1"),
    "overflow": (np.array([[0.0, 1e200, 1.0]]), "too large for float64"),
    "width": (np.ones((2, 4)), "4 features, but .* is expecting 3"),
    "empty": (np.empty((0, 3)), "0 sample"),
    "no columns": (np.empty((3, 0)), "0 feature"),
    "one dimension": (np.ones(3), "Expected 2D array, got 1D array"),
    "three dimensions": (np.ones((2, 3, 1)), "dim"),
    "complex": (np.ones((2, 3), complex), "Complex data not supported"),
    "text": (np.array([["a", "b", "c"]], dtype=object), "could not convert string to float"),
    "sparse": (sparse.csr_array(np.ones((2, 3))), "[Ss]parse"),
}


@every_model
@pytest.mark.parametrize("case", BAD_ROWS)
def test_bad_rows_are_named_and_change_nothing(model, case):
    X, message = BAD_ROWS[case]
    if case == "NaN" and model._takes_missing:
        X, message = BAD_ROWS["infinity"]
    good = some_rows(10, 3)
    memory = seeded(model).partial_fit(good)
    before = snapshot(memory)
    calls = [memory.partial_fit, memory.predict, memory.transform]
    if case not in ("width", "empty", "no columns"):
        calls.append(clone(memory).fit)
    for call in calls:
        with pytest.raises((ValueError, TypeError), match=message):
            call(X)
        assert_same(before, snapshot(memory))
    if X.shape[0] == 1 and X.ndim == 2:
        for call in (memory.learn_one, memory.predict_one):
            with pytest.raises(ValueError, match=message):
                call(X[0])
            assert_same(before, snapshot(memory))
    fresh = seeded(model)
    if case not in ("width",):
        with pytest.raises((ValueError, TypeError)):
            fresh.partial_fit(X)
        assert not hasattr(fresh, "n_features_in_")
        assert_same(before, snapshot(fresh.partial_fit(good)))


@every_model
def test_a_bad_row_late_in_a_chunk_is_found_before_anything_is_learned(model):
    X = some_rows(30, 3)
    memory = seeded(model).partial_fit(X)
    before = snapshot(memory)
    X[17, 1] = np.inf if model._takes_missing else np.nan
    with pytest.raises(ValueError, match="row 17, column 1"):
        memory.partial_fit(X)
    assert_same(before, snapshot(memory))


BAD_PARAMETERS = [
    ("learning_rate", 0.0),
    ("learning_rate", -0.1),
    ("learning_rate", 1.5),
    ("learning_rate", "fast"),
    ("learning_rate", float("nan")),
    ("rate_decay", 0.0),
    ("rate_decay", 1.1),
    ("n_units", 0),
    ("n_units", 2.5),
    ("n_units", True),
    ("n_winners", 0),
    ("p", 0.5),
    ("p", 16.5),
    ("p", 2**40),
    ("p", float("nan")),
    ("precision", 0.0),
    ("temperature", -1.0),
    ("init", "magic"),
    ("max_units", 0),
    ("vigilance", 1.1),
    ("vigilance", -2),
    ("vigilance_reset", "never"),
    ("n_slots", 0),
    ("recall_vigilance", 3.0),
    ("alarm_limit", -1),
    ("recall_limit", 1.5),
    ("commit_limit", -1),
    ("counters", "sometimes"),
]


@every_model
@pytest.mark.parametrize(("name", "value"), BAD_PARAMETERS, ids=lambda v: str(v))
def test_bad_parameters_are_named(model, name, value):
    memory = seeded(model)
    if name not in memory.get_params():
        with pytest.raises(TypeError, match=name):
            model(**{name: value})
        return
    learned = seeded(model).fit(some_rows())
    before = snapshot(learned)
    for each in (memory, learned):
        each.set_params(**{name: value})
        for call in (each.fit, each.partial_fit):
            with pytest.raises(ValueError, match=f"{name}={value!r}"):
                call(some_rows())
    assert not memory.__sklearn_is_fitted__()
    assert_same(before, snapshot(learned))


@every_model
def test_unknown_options_are_refused(model):
    with pytest.raises(ValueError, match="Invalid parameter 'volume'"):
        model().set_params(volume=11)


@every_model
def test_the_shape_of_a_memory_cannot_change_under_way(model):
    name = model._shape_parameters[0]
    memory = seeded(model).partial_fit(some_rows())
    before = snapshot(memory)
    memory.set_params(**{name: 3})
    for learn in (memory.partial_fit, lambda X: memory.learn_one(X[0])):
        with pytest.raises(ValueError, match=f"{name} from .* to 3 cannot change"):
            learn(some_rows())
    assert_same(before, snapshot(memory.set_params(**{name: model().get_params()[name]})))


@every_model
def test_labels_are_those_of_predict_without_gaps(model):
    X = some_rows(60, 2)
    memory = seeded(model).fit(X)
    _, expected = np.unique(memory.predict(X), return_inverse=True)
    np.testing.assert_array_equal(memory.labels_, expected)


@every_model
def test_classifier_memory_learns_the_same_with_and_without_labels(model):
    X = some_rows(60)
    y = np.arange(60) % 3
    with_labels = ModalClassifier(seeded(model)).fit(X, y)
    without = ModalClassifier(seeded(model)).partial_fit(X, None)
    assert_same(snapshot(with_labels.memory_), snapshot(without.memory_))
    assert_same(snapshot(with_labels.memory_), snapshot(seeded(model).fit(X)))


SETTINGS = {"SOINN": {"max_units": 8}}  # scikit-learn expects few clusters in 50 rows; SOINN prunes after 100
MEMORIES = [*(model(**SETTINGS.get(model.__name__, {})) for model in ALL), AdaptiveCCM(max_units=40)]
CHECKED = [*MEMORIES, *map(ModalClassifier, MEMORIES), LVQ(), LVQ(rule="glvq", gain=4.0), LVQ(rule="attract"), ARTMAP()]


@pytest.mark.skipif(not JIT_ENABLED, reason="the same code paths as with the JIT on, many times slower")
@parametrize_with_checks(CHECKED)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_a_generator_or_random_state_seeds_too():
    X = some_rows()
    for make in (lambda: np.random.RandomState(3), lambda: np.random.default_rng(3)):
        assert_same(snapshot(CCM(random_state=make()).fit(X)), snapshot(CCM(random_state=make()).fit(X)))
