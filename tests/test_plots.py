"""Figures: the right things in the right places."""

from __future__ import annotations

import numpy as np
import pytest

from ccmem import ARTC2A, CCM, IncrementalWTA, ModalClassifier, plots

matplotlib = pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def ccm():
    X = np.repeat(np.eye(16)[[0, 5, 0, 9]], 150, axis=0)
    memory = CCM(n_slots=4, alarm_limit=4, recall_limit=3, commit_limit=0, random_state=0)
    return memory, np.array([memory.learn_one(x) < 0 for x in X])


def test_memory_grid_shows_used_units_only(ccm):
    memory = ccm[0]
    axes = plots.memory_grid(memory, (4, 4), title="memory")
    picture = np.ma.filled(axes.images[0].get_array().astype(float), np.nan)
    assert picture.shape == (memory.n_blocks_ * 5 - 1, 4 * 5 - 1)
    for unit, used in enumerate(memory.win_counts_ > 0):
        tile = picture[(unit // 4) * 5 :, (unit % 4) * 5 :][:4, :4]
        assert np.isnan(tile).all() != used
        if used:
            expected = memory.prototypes_[unit].reshape(4, 4)
            assert np.unravel_index(np.nanargmax(tile), (4, 4)) == np.unravel_index(expected.argmax(), (4, 4))
    assert axes.get_title() == "memory"


def test_memory_grid_takes_classifiers_and_given_axes():
    X = np.random.default_rng(0).random((20, 9))
    classifier = ModalClassifier(IncrementalWTA(n_units=5)).fit(X, np.arange(20) % 2)
    axes = plots._figure(3, 3).subplots()
    assert plots.memory_grid(classifier, ax=axes) is axes
    assert axes.images[0].get_array().shape == (2 * 4 - 1, 3 * 4 - 1)
    with pytest.raises(ValueError, match=r"image_shape=\(2, 2\) does not fit 9 columns"):
        plots.memory_grid(classifier, (2, 2))


def test_memories_stacks_models(ccm):
    X = np.random.default_rng(0).random((20, 16))
    figure = plots.memories({"one": ccm[0], "two": ARTC2A().fit(X)}, (4, 4), title="all")
    assert [axes.get_title("left").split(":")[0] for axes in figure.axes] == ["one", "two"]


def test_task_matrix_leaves_gaps_blank():
    axes = plots.task_matrix([[1.0, None], [0.5, 0.25]], task_names=["a", "b"], title="R")
    assert [text.get_text() for text in axes.texts] == ["1.00", "0.50", "0.25"]
    figure = plots.task_matrices({"x": np.eye(2), "y": np.eye(2)}, title="both")
    assert [axes.get_title() for axes in figure.axes if axes.get_visible()] == ["x", "y"]


def test_alarm_is_rebuilt_from_rejections():
    X = np.repeat(np.eye(3)[[0, 2, 0]], 40, axis=0)
    memory = CCM(n_slots=1, alarm_limit=1, recall_limit=1, commit_limit=0, random_state=0)
    rejected, alarms = zip(*[(memory.learn_one(x) < 0, memory.alarm_) for x in X], strict=True)
    steps = [event.step for event in memory.events_]
    assert {event.kind for event in memory.events_} == {"new_block", "recall"}
    assert plots._alarm(rejected, steps).tolist() == list(alarms)
    assert max(alarms) > 0


def test_stream_trace_follows_events(ccm):
    memory, rejected = ccm
    figure = plots.stream_trace(memory, rejected=rejected, change_points=[150, 300, 450], title="trace")
    stairs = figure.axes[0].patches[0].get_data()
    assert stairs.values.tolist() == [0, *[event.to_block for event in memory.events_]]
    assert stairs.edges[1:-1].tolist() == [event.step for event in memory.events_]
    assert len(plots.stream_trace(memory).axes) == 1


def test_accuracy_chart_marks_published_values():
    axes = plots.accuracy_chart({"A": (0.5, 0.1), "A, tuned": (0.7, 0.0)}, published={"A": 0.55}, title="ACC")
    assert [bar.get_width() for bar in axes.patches] == [0.5, 0.7]
    assert axes.lines[-1].get_xdata().tolist() == [0.55]


def test_missing_matplotlib_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r'pip install "ccmem\[plot\]"'):
        plots.task_matrix(np.eye(2))
