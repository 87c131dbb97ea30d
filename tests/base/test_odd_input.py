"""Odd values passed in Python: learned exactly, or refused with a message that says why, without a trace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ccmem import AdaptiveCCM, DiscriminantClassifier, Gated, ModalClassifier
from ccmem.core.labels import sorted_union

ROWS = np.random.default_rng(0).normal(size=(40, 3))
CLASSIFIERS = [lambda: ModalClassifier(AdaptiveCCM()), DiscriminantClassifier]


@pytest.mark.parametrize("make", CLASSIFIERS)
def test_announced_classes_of_another_kind_do_not_turn_labels_into_texts(make: Any) -> None:
    model = make().partial_fit(ROWS, np.arange(40) % 3)
    before = model.to_bytes()
    with pytest.raises(ValueError, match="0 and 'a'"):
        model.partial_fit(ROWS[:2], [0, 1], classes=["a"])
    assert model.to_bytes() == before
    assert model.classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("make", CLASSIFIERS)
def test_whole_numbers_stay_whole_when_a_later_chunk_has_floats(make: Any) -> None:
    large = 2**62
    model = make().partial_fit(ROWS, large + np.arange(40) % 3)
    model.partial_fit(ROWS[:3], np.array([1.0, np.nan, 1.0]))
    assert model.classes_.tolist() == [1, large, large + 1, large + 2]  # float64 cannot tell these apart
    assert model.classes_.dtype == np.int64
    with pytest.raises(ValueError, match=r"2\.3\d+e\+18 among labels of type int64"):
        model.partial_fit(ROWS[:2], np.array([2.0**61, 1.0]))


def test_labels_take_the_type_of_the_first_unless_that_is_impossible() -> None:
    assert sorted_union(np.array([1, 2]), np.array([2.5])).tolist() == [1.0, 2.0, 2.5]
    assert sorted_union(np.array([1.0]), np.array([5])).dtype == np.float64
    assert sorted_union(np.empty(0, np.int64), np.empty(0)).dtype == np.int64
    assert sorted_union(np.array([1], np.uint8), np.array([-3])).tolist() == [-3, 1]
    assert sorted_union(np.array([1], np.int8), np.array([300.0])).tolist() == [1, 300]
    for first, more in ((np.array([1.0]), np.array([2**62 + 1])), (np.array([1]), np.array([2**63], np.uint64))):
        with pytest.raises(ValueError, match="cannot hold it exactly"):
            sorted_union(first, more)


@pytest.mark.parametrize("scale", [1e3, 1e9])
def test_times_in_milliseconds_or_nanoseconds_are_refused(scale: float) -> None:
    memory, seconds = AdaptiveCCM().partial_fit(ROWS), 1.7e9 + np.arange(40)
    before = memory.to_bytes()
    with pytest.raises(ValueError, match=r"row 0 lies outside the years 1 to 9999 .* divide milliseconds by 1e3"):
        memory.partial_fit(ROWS, times=scale * seconds)
    with pytest.raises(ValueError, match="inf at row 3"):
        memory.partial_fit(ROWS, times=np.where(np.arange(40) == 3, np.inf, seconds))
    assert memory.to_bytes() == before
    memory.partial_fit(ROWS, times=np.where(np.arange(40) == 3, np.nan, seconds))


@pytest.mark.parametrize("year", [1200, 2026, 9000])
def test_events_of_any_year_make_a_frame(year: int) -> None:
    pytest.importorskip("pandas")
    X = np.random.default_rng(0).normal(np.repeat([0.0, 3.0], 300)[:, None], 0.1, (600, 2))
    days = np.datetime64(f"{year}-01-01") + np.arange(600).astype("timedelta64[D]")
    frame = AdaptiveCCM().partial_fit(X, times=days).events_frame()
    assert frame["time"].dt.year.tolist() == [year]


def test_what_is_no_table_is_named_in_the_message() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    for X, match in (
        ({"a": [1.0], "b": [2.0]}, "X is a dict; .* a data frame"),
        ({1.0, 2.0}, "X is a set"),
        ((row for row in ROWS), "X is a generator"),
        (polars.DataFrame({"a": [1.0]}).lazy(), r"LazyFrame; .* collect\(\)"),
        (pandas.Series([1.0, 2.0]), r"to_frame\(\)"),
        (polars.Series([1.0, 2.0]), r"to_frame\(\)"),
    ):
        with pytest.raises((TypeError, ValueError), match=match):
            AdaptiveCCM().partial_fit(X)


def test_samples_of_river_models_are_dictionaries_of_finite_numbers() -> None:
    pytest.importorskip("river")
    from ccmem.river import ConceptDetector, MemoryClassifier, MemoryClusterer

    for model in (MemoryClusterer(AdaptiveCCM()), MemoryClassifier(DiscriminantClassifier()), ConceptDetector()):
        learn = getattr(model, "learn_one", None) or model.update
        learn(*[{"a": 1.0, "b": 2.0}, "x"][: 1 + isinstance(model, MemoryClassifier)])
        for value in (10**400, np.datetime64("2026-01-01"), np.timedelta64(5, "s")):
            with pytest.raises(ValueError, match=r"feature 'a' is .*, which is not a finite number"):
                learn({"a": value, "b": 2.0})
        if hasattr(model, "learn_one"):
            for x in ([1.0, 2.0], None):
                for call in (model.learn_one, model.predict_one):
                    with pytest.raises(TypeError, match="a dictionary of features"):
                        call(x)


WIDTH = np.random.default_rng(1)
GROUPS = WIDTH.integers(3, size=500)
CLOUDS = WIDTH.normal(size=(500, 4)) + 4 * np.eye(4)[GROUPS]
ODD_TABLES = {
    "constant column": (np.c_[CLOUDS, np.full(500, 7.0)], 0.9),
    "column that is constant at first": (np.c_[CLOUDS, np.where(np.arange(500) < 250, 0, WIDTH.normal(size=500))], 0.9),
    "nothing but constants": (np.full((500, 3), 2.0), 0.0),
    "one column": (GROUPS[:, None] + 0.1 * CLOUDS[:, 3:], 0.9),
    "one constant": (np.zeros((500, 1)), 0.0),
    "category codes": (np.c_[WIDTH.integers(5, size=(500, 2)), GROUPS], 0.9),
    "large codes": (np.c_[CLOUDS, 1e9 * GROUPS], 0.9),
    "wide range": (CLOUDS * [1e-12, 1e12, 1, 1e6], 0.9),
    "whole numbers": (np.rint(10 * CLOUDS).astype(int), 0.9),
    "booleans": (CLOUDS > 2, 0.7),
}


@pytest.mark.parametrize("case", ODD_TABLES)
@pytest.mark.parametrize("make", [*CLASSIFIERS, lambda: DiscriminantClassifier(forgetting="none"), Gated])
def test_odd_columns_are_learned(make: Any, case: str) -> None:
    X, least = ODD_TABLES[case]
    model = make().partial_fit(X[:400], GROUPS[:400])
    p = model.predict_proba(X[400:])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert p.min() >= 0
    assert np.mean(model.predict(X[400:]) == GROUPS[400:]) >= least


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e308])
@pytest.mark.parametrize("make", [*CLASSIFIERS, lambda: DiscriminantClassifier(forgetting="none"), Gated])
def test_infinite_values_are_refused_by_place(make: Any, value: float) -> None:
    X = CLOUDS.copy()
    X[3, 1] = value
    with pytest.raises(ValueError, match="at row 3, column 1"):
        make().partial_fit(X, GROUPS)


@pytest.mark.parametrize("make", CLASSIFIERS)
def test_columns_that_appear_later_were_zero_before(make: Any) -> None:
    pytest.importorskip("river")
    from ccmem.river import MemoryClassifier

    model = MemoryClassifier(make())
    for i, (x, y) in enumerate(zip(CLOUDS[:400], GROUPS[:400].tolist(), strict=True)):
        model.learn_one(dict(enumerate(x[: 2 if i < 200 else 4].tolist())), y)
    answers = [model.predict_one(dict(enumerate(x.tolist()))) for x in CLOUDS[400:]]
    assert np.mean(answers == GROUPS[400:]) > 0.85
