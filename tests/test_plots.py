"""Figures: elements and positions."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from ccmem import ARTC2A, CCM, AdaptiveCCM, IncrementalWTA, ModalClassifier, plots
from ccmem.core.colours import SIGNS, block_colour
from ccmem.core.events import Event
from ccmem.plots._figure import _kinds, new_figure
from ccmem.plots.timelines import alarm_of

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
    axes = new_figure(3, 3).subplots()
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
    assert alarm_of(rejected, steps).tolist() == list(alarms)
    assert max(alarms) > 0


def test_timeline_fills_the_lane_of_the_block_in_use():
    turns = [("new_block", 160, 0, 1), ("recall", 310, 1, 0), ("new_block", 460, 0, 2)]
    events = [Event(*turn, count=10) for turn in turns]
    memory = SimpleNamespace(events_=events, n_samples_seen_=600, n_blocks_=3, block_names_={1: "five"})
    rejected = np.zeros(600, bool)
    figure = plots.timeline(memory, rejected=rejected, changes=[150, 300, 450], stream=np.zeros((600, 64)), title="run")
    lanes = figure.axes[1]
    assert [label.get_text() for label in lanes.get_yticklabels()] == ["block 0", "five", "block 2"]
    steps = [0, *[event.step for event in memory.events_], memory.n_samples_seen_]
    used = [memory.events_[0].from_block, *[event.to_block for event in memory.events_]]
    bars = {}
    for bar in lanes.collections[1::2]:  # each follows the pale lane since the onset of its block
        colour = matplotlib.colors.to_hex(bar.get_facecolor()[0]).upper()
        bars[colour] = [tuple(path.get_extents().intervalx) for path in bar.get_paths()]
    for block in range(3):
        parts = [(steps[i], steps[i + 1]) for i in range(len(used)) if used[i] == block]
        assert bars[block_colour(block).upper()] == parts
    words = {text.get_text() for text in lanes.get_legend().get_texts()}
    assert words == {"2 new blocks", "1 recalled"}


@pytest.mark.parametrize("told", [True, False])
def test_evidence_of_every_event_reaches_its_threshold(told):
    events = [Event("new_block", 160, 0, 1, 10, evidence=4.0), Event("recall", 310, 1, 0, 10)]
    memory = SimpleNamespace(events_=events, n_samples_seen_=600, n_blocks_=2)
    axes = plots.timeline(memory, evidence=True if told else np.full(600, 0.5)).axes[-1]
    stems = [segment[1].tolist() for segment in axes.collections[-1].get_segments()]
    assert stems == [[160, 4.0], [310, 1.0]]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["threshold", "evidence"]
    assert axes.figure._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize("n", [0, 4, 40, 400, 3000])
def test_timeline_of_any_number_of_events_and_blocks_can_be_drawn(n):
    turns = n // 4 + 1
    kinds = ["new_block"] * (n // 4) + ["recall"] * (n - n // 4)
    kept = SimpleNamespace(
        events_=[Event(kind, 10 * i + 9, i % turns, (i + 1) % turns, 5) for i, kind in enumerate(kinds)],
        n_samples_seen_=10 * n + 100,
    )
    figure = plots.timeline(kept)
    assert len(figure.axes[0].get_yticklabels()) <= 30
    assert figure._repr_png_().startswith(b"\x89PNG")
    with pytest.raises(TypeError, match="memory with blocks"):
        plots.timeline(object())


def test_blocks_shows_images_and_sensors(ccm):
    rng = np.random.default_rng(0)
    for width, panels in ((64, 40), (5, 8), (30, 1)):
        X = np.repeat(np.eye(width)[[0, 3]], 60, axis=0) + 0.01 * rng.random((120, width))
        memory = CCM(n_slots=4, alarm_limit=4, recall_limit=3, commit_limit=0, random_state=0).fit(X)
        figure = plots.blocks(memory, title="blocks")
        assert 1 <= len(figure.axes) <= max(panels, 10 * memory.n_blocks_)
    assert plots.memory_grid(ccm[0], (4, 4))._repr_png_().startswith(b"\x89PNG")


def test_one_sign_and_colour_for_every_kind_of_event_everywhere():
    from ccmem.app.watching.server import page
    from ccmem.core.colours import BLOCKS

    text = page("").decode()
    assert all(f'"{colour}"' in text for colour in BLOCKS)
    for kind, (_, sign, colour, _) in SIGNS.items():
        name = {"new_block": "new", "recall": "recall", "column_lost": "lost", "column_back": "back"}[kind]
        assert f"--{name}: {colour.lower()}" in text
        assert sign in text


def test_accuracy_chart_marks_published_values():
    axes = plots.accuracy_chart({"A": (0.5, 0.1), "A, tuned": (0.7, 0.0)}, published={"A": 0.55}, title="ACC")
    assert [bar.get_width() for bar in axes.patches] == [0.5, 0.7]
    assert axes.lines[-1].get_xdata().tolist() == [0.55]


def test_missing_matplotlib_is_named(monkeypatch):
    import sys

    _kinds.cache_clear()
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        plots.task_matrix(np.eye(2))


def test_lost_columns_have_a_mark_of_their_own():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    readings = pd.DataFrame(rng.normal([1.0, 50.0, 0.3], [0.1, 2.0, 0.05], (900, 3)), columns=["a", "b", "c"])
    readings.loc[300:600, "b"] = np.nan
    memory = AdaptiveCCM(n_slots=4).fit(readings)
    assert [(event.kind, event.column) for event in memory.events_] == [("column_lost", 1), ("column_back", 1)]
    axes = plots.timeline(memory).axes[0]
    assert [text.get_text() for text in axes.get_legend().texts][2:] == ["1 column lost", "1 column back"]
    assert [text.get_text() for text in axes.texts] == ["b", "b"]
    assert "b has no readings any more; in block 0 it is about 5" in str(memory.explain(memory.events_[0]))
    assert "b has readings again" in str(memory.explain(memory.events_[1]))


def test_curves_show_means_spreads_and_crosses():
    lines = {"a": ([1, 10], [[0.25, 0.75], [1.0, 1.0]]), "b": ([10], [0.5])}
    axes = plots.curves(lines, log=True, dashed=["a"], crossed={"a": [1]}, title="t")
    first, cross, single, _ = axes.lines
    assert first.get_ydata().tolist() == [0.5, 1.0]
    assert (first.get_linestyle(), single.get_linestyle()) == ("--", "None")
    assert cross.get_xydata().tolist() == [[10, 1.0]]
    (band,) = axes.collections
    assert band.get_paths()[0].vertices[:, 1].min() == 0.25
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "10"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "b"]


def test_regions_are_coloured_by_the_unit_that_wins_and_pale_where_none_is_near_enough():
    by_distance = IncrementalWTA(n_units=2).fit([[1.0, 0.0], [-1.0, 0.0]])
    axes = plots.regions(by_distance, [[1.0, 0.1]], reach=2.0)
    picture = np.asarray(axes.images[0].get_array())
    blue, orange = (matplotlib.colors.to_rgb(block_colour(unit)) for unit in by_distance.predict([[1, 0], [-1, 0]]))
    assert picture[150, 250] == pytest.approx(1 - 0.4 * (1 - np.array(blue)))
    assert picture[150, 50] == pytest.approx(1 - 0.4 * (1 - np.array(orange)))
    assert len(axes.texts) == 0
    by_direction = ARTC2A(max_units=None, vigilance=0.9).fit([[1.0, 0.0]])
    axes = plots.regions(by_direction, reach=2.0)
    picture = np.asarray(axes.images[0].get_array())
    assert picture[150, 50] == pytest.approx(1 - 0.1 * (1 - np.array(blue)))
    assert len(axes.texts) == 1
    with pytest.raises(ValueError, match="2 columns"):
        plots.regions(IncrementalWTA(n_units=1).fit(np.eye(3)))
