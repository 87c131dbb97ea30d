"""pandas, polars and Arrow input: names are kept and checked, labels keep their type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ccmem import IncrementalWTA, ModalClassifier, models, registry
from zoo import seeded

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

NAMES = ["width", "height", "weight"]
X = np.random.default_rng(0).random((60, 3))
FRAMES: dict[str, Callable[[np.ndarray], Any]] = {
    "pandas": lambda x: pd.DataFrame(x, columns=NAMES),
    "polars": lambda x: pl.DataFrame(x, schema=NAMES),
    "arrow": lambda x: pa.table({name: x[:, i] for i, name in enumerate(NAMES)}),
}
SERIES: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "pandas": pd.Series,
    "pandas-category": lambda y: pd.Series(y, dtype="category"),
    "pandas-nullable": lambda y: pd.Series(y).convert_dtypes(),
    "polars": pl.Series,
    "arrow": pa.array,
    "arrow-chunks": lambda y: pa.chunked_array([y[:10], y[10:]]),
}


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("name", registry.MEMORIES)
def test_a_frame_is_its_numbers(name: str, kind: str) -> None:
    frame, make = FRAMES[kind](X), getattr(models, name)
    model = seeded(make).partial_fit(frame)
    plain = seeded(make).partial_fit(X)
    assert model.feature_names_in_.tolist() == NAMES
    assert np.array_equal(model.prototypes_, plain.prototypes_)
    assert np.array_equal(model.predict(frame), plain.predict(X))
    assert np.array_equal(model.transform(frame), plain.transform(X))


@pytest.mark.parametrize("kind", FRAMES)
def test_integers_and_booleans_in_a_frame(kind: str) -> None:
    columns = {"count": np.arange(20), "flag": np.arange(20) % 2 == 0, "share": np.linspace(0, 1, 20)}
    frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}[kind](columns)
    model = IncrementalWTA(n_units=4).fit(frame)
    plain = IncrementalWTA(n_units=4).fit(np.column_stack([*columns.values()]))
    assert np.array_equal(model.prototypes_, plain.prototypes_)


@pytest.mark.parametrize("wanted", ["pandas", "polars"])
@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("name", registry.MEMORIES)
def test_set_output(name: str, kind: str, wanted: str) -> None:
    model = seeded(getattr(models, name)).set_output(transform=wanted).fit(FRAMES[kind](X))
    out = model.transform(FRAMES[kind](X))
    assert isinstance(out, {"pandas": pd.DataFrame, "polars": pl.DataFrame}[wanted])
    assert (
        list(out.columns)
        == model.get_feature_names_out().tolist()
        == [f"{name.lower()}{i}" for i in range(model.n_units_)]
    )
    assert np.array_equal(out.to_numpy(), seeded(getattr(models, name)).fit(X).transform(X))


def test_pandas_index_survives_a_pipeline() -> None:
    frame = FRAMES["pandas"](X).set_index(pd.Index([f"row {i}" for i in range(60)]))
    pipeline = make_pipeline(StandardScaler(), IncrementalWTA(n_units=3)).set_output(transform="pandas").fit(frame)
    assert pipeline.transform(frame).index.equals(frame.index)


@pytest.mark.parametrize("kind", FRAMES)
def test_wrong_columns_are_refused(kind: str) -> None:
    model = ModalClassifier(IncrementalWTA()).fit(FRAMES[kind](X), np.arange(60) % 3)
    seen = model.memory_.n_samples_seen_
    swapped = FRAMES[kind](X).to_pandas() if kind != "pandas" else FRAMES[kind](X)
    for act in (model.predict, lambda frame: model.partial_fit(frame, np.arange(60) % 3)):
        with pytest.raises(ValueError, match="feature names should match"):
            act(swapped[NAMES[::-1]])
        with pytest.raises(ValueError, match="feature names should match"):
            act(swapped.rename(columns={"width": "breadth"}))
    assert model.memory_.n_samples_seen_ == seen


@pytest.mark.parametrize("labels", [["red", "green", "blue"], [3, 1, 2], [True, False, True]], ids=repr)
@pytest.mark.parametrize("missing", [False, True], ids=["all", "some missing"])
@pytest.mark.parametrize("kind", SERIES)
def test_labels_come_back_as_they_went_in(kind: str, missing: bool, labels: list[Any]) -> None:
    y: list[Any] = labels * 20
    if missing:
        y[7] = y[23] = None
    frame, series = FRAMES["pandas"](X), SERIES[kind](y)
    model = ModalClassifier(IncrementalWTA(n_units=20)).fit(frame, series)
    assert model.classes_.tolist() == sorted(set(labels))
    assert model.votes_.sum() == 60 - 2 * missing
    first = model.predict(frame).tolist()
    made_float_by_pandas = missing and kind == "pandas" and type(labels[0]) is int
    assert {type(label) for label in first} == {float if made_float_by_pandas else type(labels[0])}
    later = ModalClassifier(IncrementalWTA(n_units=20))
    for start in range(0, 60, 20):
        later.partial_fit(frame[start : start + 20], SERIES[kind](y[start : start + 20]))
    assert later.predict(frame).tolist() == first
