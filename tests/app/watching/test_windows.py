"""The page of a signal: length and hop of windows, and the shape that each column measures."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np

from ccmem import ShapeLayer, WindowLayer
from ccmem.app.watching.facts import windows_of


def test_shapes_are_sent_by_the_name_of_their_column() -> None:
    layer = ShapeLayer(32)
    learner = SimpleNamespace(front=layer, columns=SimpleNamespace(features=("a", "b")))
    facts = windows_of(learner)
    assert facts() == {}  # no row yet, so no window
    layer.push(np.random.default_rng(0).normal(size=(1100, 2)))
    found = facts()
    assert (found["window"], found["hop"]) == (32, 1)
    names = layer.get_feature_names_out(["a", "b"])
    assert len(found["shapes"]) == sum("shape" in name for name in names)
    np.testing.assert_allclose(found["shapes"]["b shape 1 of 4 rows"], layer.shapes_[0][1, 1], atol=1e-3)
    assert json.loads(json.dumps(found)) == found
    assert facts() is found  # the layer is fixed


def test_windows_without_shapes_and_rows_without_windows() -> None:
    layer = WindowLayer(32)
    layer.push(np.zeros((40, 1)))
    assert windows_of(SimpleNamespace(front=layer, columns=SimpleNamespace(features=("a",))))()["shapes"] == {}
    assert windows_of(SimpleNamespace(front=None, columns=None))() == {}
