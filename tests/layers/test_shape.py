"""Learned shapes: kernels against the naive reference, streams cut anywhere, gaps, constants, checkpoints, labels."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from tests.naive import shape as naive

from ccmem import AdaptiveCCM, DiscriminantClassifier, ModalClassifier, ShapeLayer, Stack, load
from ccmem.layers._shapes import smooth_shapes


def signal(n: int, n_channels: int, seed: int = 0) -> Any:
    rng, time = np.random.default_rng(seed), np.arange(n)[:, np.newaxis]
    X = np.sin(time / (3 + np.arange(n_channels))) + 0.3 * rng.normal(size=(n, n_channels))
    return 100 + X * 10.0 ** rng.integers(-3, 3, n_channels)


def waves(kind: str, n: int, seed: int) -> Any:
    """A wave of period 30 at a random phase, with noise."""
    rng = np.random.default_rng(seed)
    angle = 2 * np.pi * (np.arange(n) / 30 + rng.random())
    shape = {"sine": np.sin(angle), "square": np.sign(np.sin(angle)), "saw": 2 * (angle / (2 * np.pi) % 1) - 1}[kind]
    return (shape + 0.1 * rng.normal(size=n))[:, np.newaxis]


@pytest.mark.parametrize(
    ("window", "options"),
    [
        (8, {}),
        (8, {"spans": (0.125,)}),
        (33, {"hop": 7, "gain": "kept"}),
        (64, {"channels": "together"}),
        (100, {"hop": 100, "spans": (0.25,), "n_units": 5}),
        (150, {"hop": 13, "spans": (0.1, 0.3, 0.5)}),
    ],
)
def test_kernels_equal_the_naive_reference(window: int, options: dict[str, Any]) -> None:
    X = signal(400, 3, window)
    X[50:60, 1] = np.nan
    layer = ShapeLayer(window, learning_rows=200, **options)
    found = layer.push(X)
    rows = naive.prepare(X, layer._levels, layer._spreads)
    np.testing.assert_allclose(found, naive.features(rows, layer), rtol=2e-3, atol=1e-3)  # a square root near 0
    assert found.shape == (layer.n_windows_, len(set(layer.get_feature_names_out())))
    assert found.dtype == np.float32
    first, last = layer.rows_of(1)
    np.testing.assert_array_equal(layer.transform(rows[first : last + 1] * layer._spreads + layer._levels).shape[0], 1)
    n_channels = 3 if layer.channels == "together" else 1
    for scale, (taps, dilation) in enumerate(layer._scales):
        subsequences = naive.subsequences(rows[:200, :n_channels], taps, dilation)
        start = smooth_shapes(layer.n_units, n_channels, taps)
        units, wins = naive.learn(subsequences, start)
        np.testing.assert_allclose(layer._squares[scale, 0], (subsequences**2).sum(axis=1).mean(), rtol=1e-4)
        np.testing.assert_allclose(layer._units[scale][0], units, atol=2e-3)
        assert layer.win_counts_[scale, 0].tolist() == wins


@settings(deadline=None, max_examples=15)
@given(st.lists(st.integers(1, 699), max_size=8), st.sampled_from(["auto", 8, 60]), st.sampled_from([None, 1, 7, 60]))
def test_a_stream_may_be_cut_anywhere(cuts: list[int], window: Any, hop: int | None) -> None:
    X = signal(700, 2)
    X[::50, 0] = np.nan
    whole, layer = (ShapeLayer(window, hop=hop, learning_rows=300, n_units=6) for _ in range(2))
    expected = whole.push(X)
    parts = [layer.push(part) for part in np.split(X, np.unique(cuts)) if len(part)]
    found = np.concatenate([part for part in parts if len(part)])
    np.testing.assert_array_equal(found, expected)
    assert (layer.window_, layer.n_windows_, layer.n_samples_seen_) == (whole.window_, len(found), 700)
    np.testing.assert_array_equal(layer._rows, whole._rows)


@pytest.mark.parametrize("window", [*range(8, 36, 3), 100, 131, 1999])
@pytest.mark.parametrize("spans", [(0.125, 0.5), (0.01,), (0.5,)])
def test_subsequences_stay_inside_their_window(window: int, spans: tuple[float, ...]) -> None:
    layer = ShapeLayer(window, hop=window, spans=spans, n_units=4, learning_rows=8)
    layer.push(np.ones((window, 1)))
    row = naive.features(layer._prepare_recording(np.ones((window, 1))), layer)
    assert row.shape == (1, layer._n_features_out)
    assert np.isfinite(row).all()


def test_long_chunks_are_described_in_parts() -> None:
    X = signal(5000, 1)
    layer = ShapeLayer(16, hop=1)
    found = layer.push(X)
    assert len(found) == 4985
    np.testing.assert_array_equal(layer.transform(X[1000:3000]), found[1000:2985])


def test_offset_does_not_matter_and_gain_only_if_it_is_kept() -> None:
    X = waves("saw", 3000, 0)
    for gain, same in (("free", True), ("kept", False)):
        layer = ShapeLayer(gain=gain).fit(X)
        n_shapes = 3 * layer.n_units
        first = layer.transform(X)[:, :n_shapes]
        np.testing.assert_allclose(layer.transform(X + 7)[:, :n_shapes], first, atol=1e-2)
        assert bool(np.abs(layer.transform(X * 3)[:, :n_shapes] - first).max() < 0.05) is same


def test_constant_channels_and_those_that_start_late() -> None:
    X = np.column_stack([waves("sine", 3000, 0), np.full(3000, 5.0)])
    layer = ShapeLayer().fit(X)
    names = layer.get_feature_names_out().tolist()
    still = layer.transform(X)[:, [i for i, name in enumerate(names) if name.startswith("x1 shape")]]
    assert not still.any()
    assert layer.transform(X)[0, names.index("x1 energy")] == pytest.approx(np.log(1e-4) / 2)
    X[:, 1] = 5 + X[:, 0]
    later = layer.transform(X)[:, [i for i, name in enumerate(names) if name.startswith("x1 shape")]]
    assert later.max() > 0.1
    assert np.isfinite(ShapeLayer().fit_transform(np.zeros((2000, 1)))).all()


@pytest.mark.parametrize(("period", "most"), [(23, 1e-4), (30, 1e-4), (50, 0.05)])
def test_the_phase_of_a_periodic_signal_does_not_matter(period: int, most: float) -> None:
    turns = np.arange(4000) / period
    features = ShapeLayer().fit(turns % 1).transform(turns % 1)
    assert np.ptp(features[:, :48], axis=0).max() < most


def test_all_units_of_a_noisy_wave_learn() -> None:
    for wins in ShapeLayer().fit(waves("sine", 2000, 0)).win_counts_:
        assert wins.min() > 0


def test_gaps_hold_the_last_reading() -> None:
    X = signal(2000, 2)
    gappy, filled = X.copy(), X.copy()
    gappy[1500:1503, 0], filled[1500:1503, 0] = np.nan, X[1499, 0]
    one, other = ShapeLayer(40), ShapeLayer(40)
    np.testing.assert_array_equal(one.push(gappy), other.push(filled))
    empty = X.copy()
    empty[:, 1] = np.nan
    features = ShapeLayer(40).push(empty)
    assert np.isfinite(features).all()
    with pytest.raises(ValueError, match="inf"):
        one.push([[np.inf, 0.0]])


def test_fewer_rows_than_a_window() -> None:
    layer = ShapeLayer(50)
    assert layer.push(signal(1000, 1)).shape == (0, 0)
    with pytest.raises(NotFittedError, match="needs more rows"):
        layer.transform(signal(100, 1))
    short = ShapeLayer(50).fit(signal(20, 1))
    assert short.transform(signal(20, 1)).shape == (0, 50)
    assert len(short.push(signal(40, 1))) == 11
    assert ShapeLayer(2000).push(signal(1999, 1)).shape == (0, 0)
    stack = Stack([ShapeLayer(50)], DiscriminantClassifier()).fit(signal(1100, 1), np.arange(1100) // 550)
    with pytest.raises(ValueError, match="40 rows are fewer than a window of 50"):
        stack.predict(signal(40, 1))


def test_a_new_sampling_rate_looks_like_a_new_period_and_resampling_undoes_it() -> None:
    X = waves("sine", 4000, 0)
    layer = ShapeLayer().fit(X)
    usual = layer.transform(X)
    twice = np.interp(np.arange(0, 3000, 0.5), np.arange(4000), X[:, 0])[:, np.newaxis]
    away = np.abs(layer.transform(twice).mean(axis=0) - usual.mean(axis=0)).max()
    back = np.abs(layer.transform(twice[::2]).mean(axis=0) - usual.mean(axis=0)).max()
    assert away > 10 * back


@pytest.mark.parametrize("n", [0, 100, 1500])
@pytest.mark.parametrize("options", [{}, {"window": 50, "channels": "together"}])
def test_saved_and_loaded_it_continues_as_if_never_stopped(tmp_path: Any, n: int, options: dict[str, Any]) -> None:
    X, layer = signal(2000, 2), ShapeLayer(**options)
    X[5, 0] = X[1499, 1] = np.nan
    if n:
        layer.push(X[:n])
    layer.save(tmp_path / "front")
    again, copied = load(tmp_path / "front"), pickle.loads(pickle.dumps(layer))
    expected = layer.push(X[n:])
    for other in (again, copied):
        np.testing.assert_array_equal(other.push(X[n:]), expected)
        assert other.n_floats_ == layer.n_floats_


@pytest.mark.parametrize(
    "damage",
    [
        {"rows": np.zeros((3, 2), np.float32)},
        {"rows": np.full((49, 2), np.nan, np.float32)},
        {"window_": 49},
        {"window_": None},
        {"seen": 11},
        {"units": np.zeros(2 * 4 * (6 + 12 + 12), np.float32)},
        {"units": np.zeros(7, np.float32)},
        {"spreads": np.zeros(2)},
        {"latest": np.full(2, np.inf, np.float32)},
        {"wins": np.full((3, 2, 4), -1)},
    ],
)
def test_a_damaged_checkpoint_is_refused(damage: dict[str, Any]) -> None:
    layer = ShapeLayer(50, n_units=4, learning_rows=100)
    layer.push(signal(200, 2))
    with pytest.raises(ValueError, match="ShapeLayer"):
        ShapeLayer(50, n_units=4, learning_rows=100)._import(layer._export() | damage)


def test_bad_settings_are_refused_and_change_nothing() -> None:
    X = signal(300, 2)
    for bad in ({"window": 7}, {"n_units": 3}, {"spans": ()}, {"spans": (1.5,)}, {"gain": "loud"}, {"channels": "two"}):
        with pytest.raises(ValueError, match="is not possible"):
            ShapeLayer(**bad).push(X)
    layer = ShapeLayer(20, learning_rows=100)
    layer.push(X)
    layer.spans = (0.3,)
    with pytest.raises(ValueError, match="spans from"):
        layer.push(X)


def test_what_is_kept_is_bounded() -> None:
    layer, sizes = ShapeLayer(), set()
    rng = np.random.default_rng(0)
    for _ in range(60):
        layer.push(rng.normal(size=(100, 2)))
        sizes.add(layer.n_floats_)
    assert max(sizes) <= 2 * 1024 + 2 * 3 * 16 * (16 + 1) + 20
    assert layer.overlap_ == layer.window_ - layer.hop_ == 97


def test_labels_of_windows_are_those_of_most_labelled_rows() -> None:
    layer = ShapeLayer(10, hop=5, learning_rows=10, n_units=4).fit(signal(30, 1))
    codes = np.array([0] * 10 + [-1] * 9 + [1] + [1] * 5 + [0] * 5)
    assert layer.labels_of_windows(codes).tolist() == [0, 0, 1, 1, -1]


def test_a_classifier_learns_waveforms_from_labelled_rows(tmp_path: Any) -> None:
    kinds = ["sine", "square", "saw"]
    X = np.concatenate([waves(kind, 1500, i) for i, kind in enumerate(kinds * 2)])
    y = np.repeat(kinds * 2, 1500).astype(object)
    y[np.random.default_rng(0).random(len(y)) < 0.9] = None
    whole = Stack([ShapeLayer()], DiscriminantClassifier()).partial_fit(X, y)
    stack = Stack([ShapeLayer()], DiscriminantClassifier())
    for part in np.array_split(np.arange(len(X)), 7):
        stack.partial_fit(X[part], y[part])
        stack.save(tmp_path / "stack")
        stack = load(tmp_path / "stack")
    new = np.concatenate([waves(kind, 600, 10 + i) for i, kind in enumerate(kinds)])
    labels = np.repeat(kinds, 600)
    np.testing.assert_array_equal(stack.predict(new), whole.predict(new))
    assert stack.score(new, labels) > 0.95
    assert len(stack.predict(new)) == len(stack.transform(new))
    assert stack.classes_.tolist() == sorted(kinds)
    memory = Stack([ShapeLayer()], ModalClassifier(AdaptiveCCM())).partial_fit(X, y)
    assert memory.score(new, labels) > 0.8


def test_a_change_of_waveform_is_an_event_in_rows() -> None:
    X = np.concatenate([waves("sine", 3000, 0), waves("saw", 3000, 1)])
    stack = Stack([ShapeLayer()], AdaptiveCCM()).partial_fit(X)
    assert stack.events_[0].kind == "new_block"
    assert 3000 <= stack.events_[0].step < 3300
    with pytest.raises(ValueError, match="without labels"):
        stack.partial_fit(X, np.zeros(len(X)))


def test_untrained_shapes_are_smooth_level_and_of_unit_length() -> None:
    n, n_channels, taps = 40, 2, 64
    curves = smooth_shapes(n, n_channels, taps).reshape(n, n_channels, taps).astype(np.float64)
    np.testing.assert_allclose(curves.sum(axis=2), 0.0, atol=1e-5)
    np.testing.assert_allclose((curves**2).sum(axis=(1, 2)), 1.0, rtol=1e-5)
    power = np.abs(np.fft.rfft(curves, axis=2)) ** 2
    assert power[:, :, :5].sum() > 0.95 * power.sum()  # at most two turns
    assert power[:, :, 2].sum() > 0.25 * power.sum()  # and many with as many
    assert len(np.unique(curves.round(6), axis=0)) == n


def test_a_channel_with_one_reading_has_the_level_of_the_reading() -> None:
    X = signal(300, 2)
    X[:200, 1] = np.nan
    X[7, 1] = 40.0
    layer = ShapeLayer(16, learning_rows=200)
    layer.push(X)
    np.testing.assert_allclose(layer._levels, [X[:200, 0].mean(), 40.0])
    assert layer._spreads[1] == 1.0
