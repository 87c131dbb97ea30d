"""Pictures of maps and graphs, and GraphML that other readers parse."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from ccmem import IncrementalWTA, SelfOrganisingMap, plots, write_graphml
from ccmem.plots.maps import components, layout

X = np.random.default_rng(0).random((300, 3))


@pytest.mark.parametrize("topology", ["rectangular", "hexagonal"])
@pytest.mark.parametrize("show", ["u_matrix", "hits", 2])
def test_every_unit_is_a_cell_with_its_value(topology, show):
    som = SelfOrganisingMap(3, 4, topology=topology).fit(X)
    (cells,) = plots.map(som, show, X).collections
    assert len(cells.get_paths()) == 12
    if show == "hits":
        assert cells.get_array().sum() == len(X)
    if show == 2:
        np.testing.assert_array_equal(cells.get_array(), som.prototypes_[:, 2])


def test_labels_are_written_on_the_units_that_win_them():
    som = SelfOrganisingMap(2, 2).fit(X)
    axes = plots.map(som, "labels", X, y=np.where(X[:, 0] > 0.5, "high", "low"))
    assert {text.get_text() for text in axes.texts} <= {"high", "low"}
    with pytest.raises(ValueError, match="needs the samples X and their labels y"):
        plots.map(som, "labels")


def test_an_unknown_property_is_named():
    with pytest.raises(ValueError, match="show='umatrix' is unknown"):
        plots.map(SelfOrganisingMap(2, 2).fit(X), "umatrix")
    with pytest.raises(TypeError, match="IncrementalWTA is no map"):
        plots.map(IncrementalWTA(n_units=4).fit(X))


def test_component_planes_have_a_panel_per_column():
    figure = plots.component_planes(SelfOrganisingMap(2, 2).fit(X))
    assert [axes.get_title() for axes in figure.axes[:3]] == ["column 0", "column 1", "column 2"]


def test_a_graph_is_laid_out_with_its_components_apart():
    pairs = [[0, 1], [1, 2], [3, 4]]
    points = np.random.default_rng(1).normal(size=(5, 6)) + np.array([[0.0] * 6] * 3 + [[9.0] * 6] * 2)
    places = layout(points, pairs)
    assert places.shape == (5, 2)
    assert np.isfinite(places).all()
    assert components(5, pairs).tolist() == [0, 0, 0, 1, 1]
    model = SimpleNamespace(prototypes_=points, edges_=pairs)
    assert len(plots.graph(model).lines) == 3


def test_graphml_has_nodes_and_edges(tmp_path):
    som = SelfOrganisingMap(2, 3).fit(X)
    write_graphml(som, tmp_path / "map.graphml")
    tree = ElementTree.parse(tmp_path / "map.graphml").getroot()
    space = "{http://graphml.graphdrawing.org/xmlns}"
    assert len(tree.findall(f".//{space}node")) == 6
    assert len(tree.findall(f".//{space}edge")) == 7
