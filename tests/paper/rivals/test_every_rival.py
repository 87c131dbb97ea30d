"""Guarantees of every rival: budget, pure predictions, chunk invariance, bad input that changes nothing."""

from __future__ import annotations

import copy
import importlib.util
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.utils.estimator_checks import parametrize_with_checks

from ccmem.paper import rivals
from ccmem.paper.rivals import DoesNotFit

X, Y = load_digits(return_X_y=True)
X = np.ascontiguousarray(X / 16.0, np.float32)
ORDER = np.argsort(Y // 2, kind="stable")
X, Y = X[ORDER], Y[ORDER]
ENDS = np.cumsum(np.bincount(Y // 2)).tolist()

BUDGET = 6_000
SMALL: dict[str, Any] = {"hidden_sizes": (24, 16), "learning_rate": 0.05, "max_floats": BUDGET, "random_state": 0}
WITH_TASKS = {"task_ends": ENDS, "n_epochs": 3}
MODELS = {
    "NearestMean": rivals.NearestMean(max_floats=BUDGET),
    "StreamingLDA": rivals.StreamingLDA(max_floats=BUDGET),
    "NearestNeighbour": rivals.NearestNeighbour(max_floats=BUDGET, random_state=0),
    "FlyModel": rivals.FlyModel(n_active=16, max_floats=BUDGET, random_state=0),
    "Replay": rivals.Replay(**SMALL),
    "GDumb": rivals.GDumb(n_epochs=40, **SMALL),
    "FineTuning": rivals.FineTuning(**SMALL),
    "ICaRL": rivals.ICaRL(**SMALL, **WITH_TASKS),
    "Mnemonics": rivals.Mnemonics(**SMALL, **WITH_TASKS, n_outer=2),
    "Joint": rivals.Joint(**{**SMALL, "max_floats": None}, n_epochs=2),
}
LEAST = {"FineTuning": 0.15}
"""Required accuracy after five tasks of rivals that forget; all others need 0.6."""


def test_every_rival_is_here() -> None:
    assert sorted(MODELS) == sorted(set(rivals.__all__) - {"DoesNotFit", "Rival", "TaskRival"})


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> Any:
    if request.param == "Mnemonics" and importlib.util.find_spec("torch") is None:
        pytest.skip("Mnemonics needs PyTorch")
    return clone(MODELS[request.param])


def test_learns_tasks_within_its_budget(model: Any) -> None:
    for start in range(0, len(X), 100):
        model.partial_fit(X[start : start + 100], Y[start : start + 100], classes=range(10))
        if model.max_floats is not None:
            assert 0 < model.n_floats_ <= BUDGET
    assert model.score(X, Y) > LEAST.get(type(model).__name__, 0.6)
    assert model.told


def test_how_a_stream_is_cut_changes_nothing(model: Any) -> None:
    whole = clone(model).partial_fit(X, Y, classes=range(10))
    for rows, labels in zip(np.array_split(X, 4), np.array_split(Y, 4), strict=True):
        model.partial_fit(rows, labels, classes=range(10))
    np.testing.assert_array_equal(whole.predict(X), model.predict(X))
    assert whole.n_floats_ == model.n_floats_


def test_answers_are_pure(model: Any) -> None:
    model.partial_fit(X[: ENDS[2]], Y[: ENDS[2]], classes=range(10))
    asked = copy.deepcopy(model)
    first = asked.predict(X)
    np.testing.assert_array_equal(first, asked.predict(X))
    asked.partial_fit(X[ENDS[2] :], Y[ENDS[2] :])
    model.partial_fit(X[ENDS[2] :], Y[ENDS[2] :])
    np.testing.assert_array_equal(asked.predict(X), model.predict(X))


def test_bad_input_changes_nothing(model: Any) -> None:
    model.partial_fit(X[: ENDS[0]], Y[: ENDS[0]], classes=range(10))
    before = model.predict(X), model.n_floats_
    hole = X[:3].copy()
    hole[1, 2] = np.nan
    for rows, labels in ((hole, Y[:3]), (X[:3], [1, None, 2]), (X[:3, :5], Y[:3]), (X[:3], ["a", "b", "c"])):
        with pytest.raises(ValueError, match=r"NaN|missing|features|mixes|label"):
            model.partial_fit(rows, labels)
    np.testing.assert_array_equal(before[0], model.predict(X))
    assert before[1] == model.n_floats_


def test_says_that_it_cannot_run(model: Any) -> None:
    model.set_params(max_floats=300)
    with pytest.raises(DoesNotFit, match=r"cannot run in max_floats=300: with 64 columns and 10 classes"):
        model.partial_fit(X, Y, classes=range(10))
    assert not hasattr(model, "classes_")


def test_new_classes_may_come_at_any_time(model: Any) -> None:
    names = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])[Y]
    for begin, end in zip([0, *ENDS], ENDS, strict=False):
        model.partial_fit(X[begin:end], names[begin:end])
        assert model.max_floats is None or model.n_floats_ <= BUDGET
    assert list(model.classes_) == sorted(set(names))
    assert set(model.predict(X)) <= set(names)


CHECKED = [
    rivals.NearestMean(),
    rivals.StreamingLDA(),
    rivals.NearestNeighbour(),
    rivals.FlyModel(n_active=8, max_floats=2_000),
    rivals.Replay((16,), max_floats=2_000, learning_rate=0.05),
    rivals.GDumb((16,), max_floats=2_000),
    rivals.ICaRL((16,), max_floats=2_000, n_epochs=20),
]


def may_fail(estimator: Any) -> dict[str, str]:
    if isinstance(estimator, rivals.FlyModel):
        return {"check_classifiers_train": "a choice of two columns at random is no expansion"}
    return {}


@parametrize_with_checks(CHECKED, expected_failed_checks=may_fail)
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)
