"""Windows of a signal: features against numpy's Fourier transform, streams cut anywhere, checkpoints, period."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from ccmem import AdaptiveCCM, Stack, WindowLayer, load
from ccmem.core.events import Event
from ccmem.layers._signal import BAND_EDGES, bands, find_period


def twin(X: Any, window: int, hop: int) -> Any:
    """Compute the features of every window from the module's equations, with numpy's Fourier transform."""
    found = []
    for start in range(0, len(X) - window + 1, hop):
        row: list[float] = []
        shapes = []
        for x in X[start : start + window].T:
            mean, spread = x.mean(), x.std()
            still = spread <= max(1e-9 * abs(mean), 1e-150)
            spread = max(1e-9 * abs(mean), 1e-150) if still else spread
            z = np.zeros(window) if still else (x - mean) / spread
            power = np.abs(np.fft.rfft(z)) ** 2 / window
            row += [mean, np.log(spread), (z**3).mean(), np.log((z**4).mean() + 1e-3)]
            for a, b in itertools.pairwise(BAND_EDGES):
                if a <= window // 2:
                    row.append(np.log(power[a : min(b, window // 2 + 1)].mean() + 1e-3))
            shapes.append(z)
        correlations = np.array([[(a * b).mean() for b in shapes] for a in shapes])
        for i, r in enumerate(correlations):
            if len(shapes) <= 8:
                row += [fisher(value) for value in r[i + 1 :]]
            else:
                near = np.array([r[j] for j in range(len(r)) if j != i and abs(j - i) <= 64])
                row += [near.mean(), np.log((near**2).mean() + 1e-3), fisher(abs(near).max())]
        found.append(row)
    return np.array(found)


def fisher(r: float) -> float:
    return 0.5 * float(np.log((1 + r + 1e-3) / (1 - r + 1e-3)))


def signal(n: int, n_channels: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_channels)) + np.sin(np.arange(n) / 3)[:, None]
    X[:, -1] = 5.0  # a constant channel
    X[n // 2 :, -1] += rng.normal(size=n - n // 2)
    return X * 10.0 ** rng.integers(-6, 6, n_channels)


@pytest.mark.parametrize(("window", "hop"), [(8, 1), (9, 4), (33, 5), (64, 64), (131, 2), (140, 100)])
def test_features_are_those_of_the_equations(window: int, hop: int) -> None:
    X = signal(400, 3, window)
    layer = WindowLayer(window, hop=hop)
    found = layer.push(X)
    np.testing.assert_allclose(found, twin(X, window, hop), rtol=1e-9, atol=1e-9)
    assert found.shape == (layer.n_windows_, len(layer.get_feature_names_out()))
    np.testing.assert_array_equal(layer.transform(X), found)
    first, last = layer.rows_of(2)
    np.testing.assert_array_equal(layer.transform(X[first : last + 1])[0], found[2])


@pytest.mark.parametrize("n_channels", [1, 2, 8, 9, 70, 140])
def test_channels_together_come_after_each_alone(n_channels: int) -> None:
    X = signal(60, n_channels, n_channels)
    X[:, 0] = X[:, n_channels // 2]  # perfectly correlated
    layer = WindowLayer(20, hop=15)
    found = layer.push(X)
    np.testing.assert_allclose(found, twin(X, 20, 15), rtol=1e-9, atol=1e-9)
    assert found.shape[1] == len(set(layer.get_feature_names_out()))
    alone = np.hstack([WindowLayer(20, hop=15).push(x) for x in X.T])
    np.testing.assert_array_equal(found[:, : alone.shape[1]], alone)
    assert np.isfinite(found).all()


def test_a_change_of_correlation_alone_is_a_change() -> None:
    rng, changed = np.random.default_rng(1), slice(3000, 6000)
    X = rng.normal(size=(9000, 8))
    X[changed, 1] = 0.9 * X[changed, 0] + np.sqrt(0.19) * X[changed, 1]
    rows = AdaptiveCCM().partial_fit(X)
    windows = Stack([WindowLayer()], AdaptiveCCM()).partial_fit(X)
    assert [(event.kind, event.step // 1000) for event in windows.events_] == [("new_block", 3), ("recall", 6)]
    assert rows.events_ == []


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(1, 400), max_size=8), st.sampled_from(["auto", 8, 30]), st.sampled_from([None, 1, 7, 30]))
def test_a_stream_may_be_cut_anywhere(cuts: list[int], window: Any, hop: int | None) -> None:
    X = signal(700, 2, 3)
    whole = WindowLayer(window, hop=hop)
    expected = whole.push(X)
    layer = WindowLayer(window, hop=hop)
    parts = [layer.push(part) for part in np.split(X, np.unique(cuts)) if len(part)]
    found = np.concatenate([part for part in parts if len(part)] or [expected[:0]])
    np.testing.assert_array_equal(found, expected)
    assert (layer.window_, layer.n_windows_, layer.n_samples_seen_) == (whole.window_, len(found), 700)
    np.testing.assert_array_equal(layer._rows, whole._rows)


def test_what_is_kept_stays_small() -> None:
    layer = WindowLayer()
    rng, sizes = np.random.default_rng(0), set()
    for _ in range(200):
        layer.push(rng.normal(size=(100, 2)))
        sizes.add(len(layer._rows))
    assert max(sizes) <= 1024
    assert len(layer._rows) < layer.window_ == 100  # noise has no period


@pytest.mark.parametrize("period", [7, 24, 50, 96, 240])
@pytest.mark.parametrize("shape", [np.sin, lambda a: np.sign(np.sin(a)), lambda a: (a / (2 * np.pi)) % 1])
def test_the_period_is_found(period: int, shape: Any) -> None:
    time, rng = np.arange(1024), np.random.default_rng(period)
    X = shape(2 * np.pi * (time + 0.3) / period) + 0.1 * rng.normal(size=1024)
    layer = WindowLayer()
    layer.push(X)
    assert layer.window_ == pytest.approx(max(8, 2 * period), abs=2)
    assert find_period(np.column_stack([X, np.zeros(1024)]))[0] == pytest.approx(period, abs=1)


def test_a_clear_period_is_believed_early_and_short_recordings_can_be_fitted() -> None:
    X = np.sin(2 * np.pi * np.arange(300) / 20)
    layer = WindowLayer()
    assert layer.push(X[:255]).shape == (0, 0)
    with pytest.raises(NotFittedError, match="needs more rows"):
        layer.transform(X)
    assert len(layer.push(X[255:256])) == 256 - 40 + 1
    assert WindowLayer().fit(X[:120]).window_ == 40
    assert WindowLayer().fit_transform(X).shape == (261, 9)


@pytest.mark.parametrize("n", [0, 100, 900])
@pytest.mark.parametrize("window", ["auto", 50])
def test_saved_and_loaded_it_goes_on_as_if_nothing_had_been(tmp_path: Any, n: int, window: Any) -> None:
    X, layer = signal(1500, 2, 1), WindowLayer(window)
    if n:
        layer.push(X[:n])
    layer.save(tmp_path / "front")
    again = load(tmp_path / "front")
    np.testing.assert_array_equal(again.push(X[n:]), layer.push(X[n:]))
    assert (again.window_, again.hop_, again.n_windows_) == (layer.window_, layer.hop_, layer.n_windows_)


@pytest.mark.parametrize(
    "damage",
    [
        {"rows": np.zeros((3, 1))},
        {"rows": np.full((40, 2), np.nan)},
        {"rows": np.zeros((40, 2), np.float32)},
        {"window_": 10**9},
        {"window_": 49},
        {"seen": 11},
        {"windows": -1},
        {"n_features_in_": 3},
    ],
)
def test_a_damaged_checkpoint_is_refused(damage: dict[str, Any]) -> None:
    layer = WindowLayer(50)
    layer.push(signal(200, 2, 1))
    with pytest.raises(ValueError, match="WindowLayer"):
        WindowLayer(50)._import(layer._export() | damage)


def test_bad_input_is_refused_and_changes_nothing() -> None:
    X = signal(300, 2, 0)
    for bad in ({"window": 7}, {"window": "long"}, {"hop": 0}, {"window": True}):
        with pytest.raises(ValueError, match="is not possible"):
            WindowLayer(**bad).push(X)
    layer, same = WindowLayer(20), WindowLayer(20)
    for front in (layer, same):
        front.push(X[:150])
    worse = X[150:].copy()
    worse[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN at row 3, column 1"):
        layer.push(worse)
    with pytest.raises(ValueError, match="features"):
        layer.push(X[150:, :1])
    np.testing.assert_array_equal(layer.push(X[150:]), same.push(X[150:]))
    layer.hop = 3
    with pytest.raises(ValueError, match="cannot change"):
        layer.push(X)
    with pytest.raises(ValueError, match="counted from 0"):
        same.rows_of(-1)


def test_bands_cover_every_frequency_once() -> None:
    for window in range(8, 200):
        edges = bands(window)
        assert edges[0] == 1
        assert (np.diff(edges) > 0).all()
        assert edges[-1] == min(window // 2 + 1, BAND_EDGES[-1])


def test_a_plain_sequence_is_one_channel_and_names_say_which() -> None:
    layer = WindowLayer(16)
    layer.push(np.arange(40.0))
    names = layer.get_feature_names_out()
    assert names[:6].tolist() == [
        "x0 level",
        "x0 spread",
        "x0 skewness",
        "x0 kurtosis",
        "x0 1-2 cycles",
        "x0 3-4 cycles",
    ]
    assert layer.n_floats_ == 15 + 2 * 8 * 16


def test_names_say_which_channels_go_together() -> None:
    layer = WindowLayer(16)
    layer.push(np.eye(40, 3))
    assert layer.get_feature_names_out()[-3:].tolist() == ["x0 with x1", "x0 with x2", "x1 with x2"]
    many = WindowLayer(16)
    many.push(np.eye(40, 9))
    assert many.get_feature_names_out()[-3:].tolist() == [
        "x8 with others",
        "x8 with others either way",
        "x8 with its nearest",
    ]


@pytest.mark.parametrize("window", [8, 9, 10, 11])
def test_the_onset_of_an_event_lies_within_its_window(window: int) -> None:
    layer = WindowLayer(window, hop=3)
    layer.push(signal(200, 2, 0))
    found = layer.event_in_rows(Event("new_block", step=20, from_block=0, to_block=1, count=6, uncertainty=2))
    first, last = layer.rows_of(15)
    assert (first, last) == (45, 45 + window - 1)
    assert found.step == layer.rows_of(20)[1]
    assert found.onset == (first + last) // 2
    assert found.uncertainty == 2 * 3 + window // 2
