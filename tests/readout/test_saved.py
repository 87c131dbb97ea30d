"""Networks through a file: bit-identical, and no file is loaded that could break a kernel."""

from __future__ import annotations

import numpy as np
import pytest

from ccmem import CCM, GatedMLP, OnlineMLP, load, save

X = np.random.default_rng(0).normal(size=(90, 6)) + np.repeat(np.eye(6)[:3] * 6, 30, axis=0)
LABELS = np.array(["oak", "ash", "elm"], dtype=object)[np.random.default_rng(1).integers(3, size=90)]


def networks():
    memory = CCM(n_slots=2, alarm_limit=1, commit_limit=1, random_state=0)
    return [
        OnlineMLP((5, 4), random_state=0),
        OnlineMLP((), optimizer="adam", random_state=0),
        OnlineMLP((5,), momentum=0.5, random_state=0),
        GatedMLP(memory, hidden_sizes=(9, 7), gated_units=(3, 2), random_state=0),
        GatedMLP(memory, hidden_sizes=(9,), gated_units=3, optimizer="adam", random_state=0),
        GatedMLP(memory, hidden_sizes=(9,), gated_units=3, undo=4, random_state=0),
    ]


@pytest.mark.parametrize("net", networks(), ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_save_load_and_go_on_equals_never_having_stopped(net, dtype, tmp_path):
    rows = X.astype(dtype)
    net.partial_fit(rows[:50], LABELS[:50])
    net.save(tmp_path / "net.safetensors")
    again = load(tmp_path / "net.safetensors")
    assert again.get_params(deep=False).keys() == net.get_params(deep=False).keys()
    for model in (net, again):
        model.partial_fit(rows[50:], LABELS[50:])
    for one, other in zip(net._state, again._state, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)
    np.testing.assert_array_equal(net.predict_proba(rows), again.predict_proba(rows))
    assert again.classes_.tolist() == net.classes_.tolist()


def test_a_network_that_has_learned_nothing(tmp_path):
    save(OnlineMLP((3,), learning_rate=0.5), tmp_path / "net.safetensors")
    assert load(tmp_path / "net.safetensors").learning_rate == 0.5


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("parameters", lambda a: a[:-1]),
        ("parameters", lambda a: a * np.nan),
        ("velocity", lambda a: np.zeros(3, a.dtype)),
        ("gates", lambda a: a + 7),
        ("gates", lambda a: a[..., ::-1].copy()),
        ("gates", lambda a: a[:1]),
        ("steps", lambda a: a[:1]),
        ("steps", lambda a: a.astype(float)),
        ("class_rows", lambda a: a + 1),
        ("membership", lambda a: a[:1]),
        ("membership", lambda a: a.astype(float)),
        ("seed", lambda a: -1 - a),
    ],
)
def test_damaged_state_is_refused(name, wrong):
    net = networks()[3].partial_fit(X, LABELS)
    assert net.memory_.n_blocks_ > 1
    fields = net._export()
    fields["state"][name] = wrong(fields["state"][name])
    with pytest.raises(ValueError, match="GatedMLP"):
        GatedMLP(**net.get_params(deep=False))._import(fields)


@pytest.mark.parametrize("change", [{"taught": -1}, {"current": 1}, {"current": -2}, {"seen": 2.0}])
def test_damaged_counters_are_refused(change):
    net = networks()[0].partial_fit(X, LABELS)
    fields = net._export()
    fields["counters"] |= change
    with pytest.raises(ValueError, match="OnlineMLP"):
        OnlineMLP(**net.get_params())._import(fields)


def test_parameters_that_changed_since_are_refused(tmp_path):
    net = networks()[0].partial_fit(X, LABELS).set_params(hidden_sizes=(3,))
    with pytest.raises(ValueError, match=r"hidden_sizes.* changed since"):
        net.save(tmp_path / "net.safetensors")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("net", networks()[:3], ids=repr)
def test_rows_are_counted_with_and_without_a_label(net):
    y = LABELS.copy()
    y[::3] = None
    counters = net.partial_fit(X, y)._export()["counters"]
    assert (counters["seen"], counters["taught"]) == (90, 60)
