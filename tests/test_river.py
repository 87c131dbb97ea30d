"""River adapters: River's checks, and the guarantees of the module docstring."""

from __future__ import annotations

import importlib
import pickle
import random
import sys
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from ccmem import (
    ARTC2A,
    CCM,
    AdaptiveCCM,
    FuzzyART,
    GatedMLP,
    IncrementalWTA,
    ModalClassifier,
    OnlineMLP,
    ShapeLayer,
    WindowLayer,
    registry,
)
from zoo import seeded

river = pytest.importorskip("river")
from river import checks, compose, datasets, evaluate, metrics, preprocessing  # noqa: E402

from ccmem.river import ConceptDetector, MemoryClassifier, MemoryClusterer  # noqa: E402

CLUSTERERS = [MemoryClusterer(**params) for params in MemoryClusterer._unit_test_params()]
CLASSIFIERS = [MemoryClassifier(**params) for params in MemoryClassifier._unit_test_params()]
MODELS = CLUSTERERS + CLASSIFIERS


def name_of(model: Any) -> str:
    inner = model.memory if isinstance(model, MemoryClusterer) else model.classifier
    memory = getattr(inner, "memory", None)
    return "-".join(type(part).__name__ for part in (model, inner, memory) if part is not None)


def test_every_memory_is_there() -> None:
    assert [type(model.memory).__name__ for model in CLUSTERERS] == registry.MEMORIES
    assert len({name_of(model) for model in CLASSIFIERS}) >= len(registry.MEMORIES)


@pytest.mark.parametrize("model", MODELS, ids=name_of)
def test_river_checks(model: Any) -> None:
    """Run River's checks; growth, the longest, is that of the memory, which the clusterers are checked for."""
    inner = model.classifier if isinstance(model, MemoryClassifier) else None
    repeated = isinstance(inner, ModalClassifier) and not isinstance(inner.memory, CCM | AdaptiveCCM)
    skipped = {*model._unit_test_skips(), *(["check_bounded_memory_growth"] if repeated else [])}
    for check in checks.yield_checks(model):
        if check.__name__ not in skipped:
            check(model.clone())


@pytest.mark.parametrize("model", [CLASSIFIERS[1], CLASSIFIERS[-1]], ids=name_of)
def test_river_checks_in_a_pipeline(model: Any) -> None:
    pipeline = preprocessing.StandardScaler() | model.clone()
    for check in checks.yield_checks(model):
        if "dataset" in getattr(check, "keywords", {}) and check.__name__ != "check_bounded_memory_growth":
            check(pipeline.clone())


def samples(n: int, seed: int = 0) -> list[dict[str, float]]:
    """A stream of dictionaries with varying features, a new one every few samples."""
    rng = random.Random(seed)
    return [{f"f{j}": rng.gauss(j, 1) for j in range(2 + i // 8) if rng.random() < 0.8} for i in range(n)]


MEMORIES = [registry.load(name)() for name in registry.MEMORIES]


@pytest.mark.parametrize("memory", MEMORIES, ids=repr)
def test_late_features_count_as_zero(memory: Any) -> None:
    """A new feature equals a column of zeros, bit for bit; or of missing readings, if the memory accepts them."""
    xs = samples(120)
    model = MemoryClusterer(memory, seed=0)
    for x in xs:
        model.learn_one(x)
    columns = list(model._columns)
    assert set(columns) == {feature for x in xs for feature in x}
    absent = np.nan if memory._takes_missing else 0.0
    table = np.array([[x.get(feature, absent) for feature in columns] for x in xs])
    if isinstance(memory, FuzzyART):  # it measures boxes against the number of columns
        return
    if isinstance(memory, CCM):  # unused slots are drawn for the columns known so far: compare the used ones
        assert model.memory_.prototypes_.shape == (model.memory_.n_units_, len(columns))
        return
    whole = clone(memory).partial_fit(table)
    if memory._takes_missing:
        np.testing.assert_array_equal(model.memory_.prototypes_, whole.prototypes_)
        np.testing.assert_array_equal(model.memory_.block_levels_, whole.block_levels_)
        return
    for field, ours, theirs in zip(whole._state._fields, model.memory_._state, whole._state, strict=True):
        assert field == "journal" or np.array_equal(ours, theirs), field  # lines already read stay in the journal
    for x, row in zip(xs, table, strict=True):
        assert model.predict_one(x) == whole.predict_one(row)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("network", [GatedMLP(CCM(random_state=0)), OnlineMLP(), OnlineMLP(hidden_sizes=())], ids=repr)
def test_widened_networks_answer_as_before(network: Any, optimizer: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.random((300, 5))
    y = X.argmax(axis=1)
    model = clone(network).set_params(optimizer=optimizer, learning_rate=0.02, random_state=0).fit(X, y)
    before = model.predict_proba(X)
    model._widen(8)
    wide = np.hstack([X, np.zeros((300, 3))])
    # not bit-identical: the bias follows the inputs, so it is added at another position
    np.testing.assert_allclose(model.predict_proba(wide), before, rtol=1e-12)
    wide[:, 5:] = np.eye(3)[rng.integers(3, size=300)]
    for _ in range(30):
        model.partial_fit(wide, wide[:, 5:].argmax(axis=1))
    assert np.abs(model.coefs_[0][5:]).max() > 0.01  # the new columns are learned


@pytest.mark.parametrize("memory", MEMORIES, ids=repr)
def test_widening_leaves_every_score_as_it_was(memory: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    memory = seeded(type(memory)).fit(X)
    before, units = memory.transform(X), memory.predict(X)
    memory._widen(9)
    wide = np.hstack([X, np.zeros((200, 4))])
    if not isinstance(memory, FuzzyART):  # it measures boxes against the number of columns
        assert np.array_equal(memory.transform(wide), before)
        assert np.array_equal(memory.predict(wide), units)
    memory.partial_fit(rng.normal(size=(300, 9)))
    assert memory.prototypes_.shape[1] == 9


def test_order_of_names_means_nothing() -> None:
    first, second = (MemoryClassifier(ModalClassifier(CCM()), seed=1) for _ in range(2))
    for i, x in enumerate(samples(100)):
        first.learn_one(x, i % 3)
        second.learn_one(dict(reversed(x.items())), i % 3)
    assert all(first.predict_proba_one(x) == second.predict_proba_one(x) for x in samples(50, seed=1))


def test_names_of_several_types() -> None:
    model = MemoryClusterer(IncrementalWTA())
    model.learn_one({1: 1.0, "one": 2.0, ("a", "b"): 3.0})
    assert model.centers == {0: {("a", "b"): 3.0, 1: 1.0, "one": 2.0}}


@pytest.mark.parametrize("value", ["red", float("nan"), None, float("inf"), [1.0, 2.0]])
def test_a_bad_value_is_named_and_changes_nothing(value: Any) -> None:
    model = MemoryClusterer(IncrementalWTA())
    model.learn_one({"a": 1.0})
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="feature 'b' is"):
        model.learn_one({"a": 1.0, "b": value})
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("value", [None, float("nan"), "absent"])
def test_a_missing_feature_is_a_missing_reading_for_a_detector(value: Any) -> None:
    rng = np.random.default_rng(0)
    detector = ConceptDetector()
    told = []
    for step in range(900):
        x: dict[Any, Any] = dict(zip("abc", rng.normal([5.0, 3.0, 1.0], 0.2), strict=True))
        if step >= 400:
            x["b"] = value
            if value == "absent":
                del x["b"]
        detector.update(x)
        assert not detector.drift_detected
        if detector.event is not None:
            told.append((detector.event.kind, detector.event.column))
    assert told == [("column_lost", 1)]
    assert detector.memory_.n_samples_seen_ == 900


def test_nothing_learned_yet() -> None:
    clusterer, classifier = MemoryClusterer(CCM()), MemoryClassifier(ModalClassifier(ARTC2A()))
    clusterer.learn_one({})
    assert clusterer.predict_one({"a": 1.0}) == -1
    assert clusterer.centers == {}
    classifier.learn_one({"a": 0.0}, "x")  # a zero vector: ART has no unit for it
    classifier.learn_one({"a": 0.0}, "y")
    assert classifier.predict_proba_one({"a": 1.0}) == {"x": 0.5, "y": 0.5}
    assert classifier.predict_one({"a": 1.0}) == "x"


def test_labels_keep_their_type_and_may_be_missing() -> None:
    model = MemoryClassifier(ModalClassifier(IncrementalWTA(n_units=2)))
    for x, y in [(0.0, True), (9.0, False), (1.0, None)]:
        model.learn_one({"x": x}, y)
    assert model.predict_one({"x": 0.4}) is True
    assert model.classifier_.memory_.n_samples_seen_ == 3


def test_unlabelled_samples_still_teach() -> None:
    """Progressive validation on a real stream, scaled in a pipeline, beats the majority class."""
    model = preprocessing.StandardScaler() | MemoryClassifier(ModalClassifier(IncrementalWTA(n_units=50)))
    score = evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    commoner = max(np.bincount([y for _, y in datasets.Phishing()])) / 1250
    assert score.get() > commoner + 0.2


def test_compose_and_clustering_metrics() -> None:
    model = compose.SelectType(float) | MemoryClusterer(IncrementalWTA(n_units=3))
    stream = [(x, None) for x in samples(200)]
    assert 0 < evaluate.progressive_val_score(stream, model, metrics.Silhouette()).get() < 1
    union = compose.SelectType(float) + (compose.SelectType(bool) | preprocessing.MinMaxScaler())
    classifier = union | MemoryClassifier(ModalClassifier(CCM(n_slots=5)), seed=0)
    for x, _ in stream:
        classifier.learn_one(x, "f1" in x)
    assert classifier.predict_one({"f0": 1.0, "f1": 1.0}) in (True, False)


class TestConceptDetector:
    def test_tells_new_from_known(self) -> None:
        """Three concepts, then the first again: two new concepts, one recall, each soon after the change."""
        rng = np.random.default_rng(0)
        kinds = np.eye(6).reshape(3, 2, 6)  # each concept holds two kinds of samples
        order = [0, 1, 2, 0, 2]
        X = np.concatenate([kinds[c, rng.integers(2, size=300)] + rng.normal(0, 0.05, (300, 6)) for c in order])
        detector = ConceptDetector(CCM(n_slots=2, commit_limit=20, recall_limit=8), seed=0)
        seen = []
        for step, x in enumerate(X):
            detector.update(dict(enumerate(x)))
            assert detector.drift_detected == (detector.event is not None)
            assert detector.drift_detected == (detector.new_concept_detected or detector.recall_detected)
            if detector.event is not None:
                assert detector.event.step == step
                seen.append((detector.event.kind, detector.concept, step // 300))
                assert step % 300 < 25
        assert seen == [("new_block", 1, 1), ("new_block", 2, 2), ("recall", 0, 3), ("recall", 2, 4)]

    def test_default_needs_no_thresholds(self) -> None:
        rng = np.random.default_rng(0)
        X = np.concatenate(
            [rng.gamma(shape, size=(400, 12)) for shape in np.repeat([[1.0, 5.0], [5.0, 1.0], [1.0, 5.0]], 6, 1)]
        )
        detector, seen = ConceptDetector(), []
        for x in X:
            detector.update(x)
            if detector.drift_detected:
                seen.append((detector.new_concept_detected, detector.concept))
        assert seen == [(True, 1), (False, 0)]

    def test_vectors_and_dictionaries_agree(self) -> None:
        rng = np.random.default_rng(1)
        X = rng.random((400, 4)) ** np.repeat([1, 30], 200)[:, None]
        first, second = (ConceptDetector(CCM(n_slots=3, vigilance=0.97, commit_limit=5), seed=3) for _ in range(2))
        drifts = 0
        for x in X:
            first.update(x)
            second.update(dict(zip("abcd", x.tolist(), strict=True)))
            assert first.event == second.event
            drifts += first.drift_detected
        assert drifts > 0

    def test_clone_and_default(self) -> None:
        detector = ConceptDetector(seed=2)
        detector.update([1.0, 2.0])
        assert (detector.concept, detector.drift_detected) == (0, False)
        assert isinstance(detector.memory_, AdaptiveCCM)
        assert not hasattr(detector.clone().memory_, "_state")

    def test_needs_blocks(self) -> None:
        with pytest.raises(TypeError, match="has no blocks"):
            ConceptDetector(IncrementalWTA())  # type: ignore[arg-type]


def test_wrong_kind_of_model() -> None:
    with pytest.raises(TypeError, match="not a memory"):
        MemoryClusterer(ModalClassifier(CCM()))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not a classifier"):
        MemoryClassifier(CCM())


def test_missing_river_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "river", None)
    monkeypatch.delitem(sys.modules, "ccmem.river")
    with pytest.raises(ImportError, match="pip install river"):
        importlib.import_module("ccmem.river")


def test_a_signal_is_watched_in_windows() -> None:
    time, rng = 2 * np.pi * np.arange(3000) / 20, np.random.default_rng(0)
    hum = np.sin(time) + 0.05 * rng.normal(size=3000)
    front, memory = WindowLayer(), AdaptiveCCM(n_slots=10)
    windows = front.push(hum[:, None])
    front.set_overlap(memory)
    memory.partial_fit(windows)
    detector, told = ConceptDetector(window="auto"), []
    for x in hum:
        detector.update({"hum": x})
        if detector.drift_detected:
            assert detector.event is not None
            told.append(detector.event.step)
    assert told == [front.rows_of(event.step)[1] for event in memory.events_]
    np.testing.assert_array_equal(detector.memory_.prototypes_, memory.prototypes_)
    with pytest.raises(ValueError, match="'buzz' is new"):
        detector.update({"hum": 1.0, "buzz": 2.0})


def test_a_signal_is_watched_by_its_shapes() -> None:
    time, rng = 2 * np.pi * np.arange(2500) / 20, np.random.default_rng(0)
    hum = np.sin(time) + 0.05 * rng.normal(size=2500)
    hum[1500] = np.nan
    front, memory = ShapeLayer(), AdaptiveCCM(n_slots=10)
    windows = front.push(hum[:, None])
    front.set_overlap(memory)
    memory.partial_fit(windows)
    given = ShapeLayer()
    detector = ConceptDetector(window=given)
    for x in hum:
        detector.update({"hum": x} if x == x else {})
    assert not given.__sklearn_is_fitted__()
    np.testing.assert_array_equal(detector.memory_.prototypes_, memory.prototypes_)
