"""Events: scoring, and delivery to listeners."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from ccmem import CCM, Event, ModalClassifier, load
from ccmem.metrics import score_events


def new(step: int, block: int) -> Event:
    return Event("new_block", step, 0, block, 5)


def back(step: int, block: int) -> Event:
    return Event("recall", step, 0, block, 5)


@pytest.mark.parametrize(
    ("events", "found", "missed", "false_alarms", "delays", "right"),
    [
        ([new(10, 1), back(21, 0), back(33, 1)], 3, 0, 0, (0, 1, 3), 2),
        ([], 0, 3, 0, (), 0),
        ([new(5, 1), new(12, 2), back(21, 1), back(31, 2)], 3, 0, 1, (2, 1, 1), 2),  # block 1 was made during "a" too
        ([new(12, 1), back(21, 1), back(31, 0)], 3, 0, 0, (2, 1, 1), 0),  # found, but the wrong blocks
        ([new(12, 1), back(14, 0), back(31, 1)], 2, 1, 1, (2, 1), 1),
        ([new(12, 1), new(21, 2), new(31, 3)], 3, 0, 0, (2, 1, 1), 0),  # nothing recalled
    ],
)
def test_scores_by_hand(
    events: list[Event], found: int, missed: int, false_alarms: int, delays: tuple[int, ...], right: int
) -> None:
    score = score_events(events, [10, 20, 30], tasks="abab")
    assert (score.changes, score.found, score.missed, score.false_alarms) == (3, found, missed, false_alarms)
    assert (score.delays, score.returns, score.right_recalls) == (delays, 2, right)
    assert score.mean_delay == (sum(delays) / len(delays) if delays else None)


def test_options_of_the_score() -> None:
    late = score_events([new(19, 1)], [10], max_delay=5)
    assert (late.found, late.missed, late.false_alarms, late.returns, late.right_recalls) == (0, 1, 1, None, None)
    just = score_events([new(15, 1)], [10], max_delay=5)
    assert (just.found, just.delays) == (1, (5,))
    lines = [{**new(12, 1)._asdict(), "file": "a.csv", "row": 13}]
    assert score_events(lines, [10]).delays == (2,)
    assert score_events([new(3, 1)], []).false_alarms == 1
    assert score_events([new(12, 1), new(14, 2), new(40, 3)], [10, 30]).median_delay == 6
    for events, changes, tasks in (
        ([new(2, 1), new(1, 2)], [1], None),
        ([], [3, 2], None),
        ([], [2, 2], None),
        ([], [3], "abc"),
    ):
        with pytest.raises(ValueError, match=r"order|lie between"):
            score_events(events, changes, tasks=tasks)


def test_onsets_are_compared_with_the_changes() -> None:
    events = [Event("new_block", 14, 0, 1, 5, 1), Event("new_block", 26, 1, 2, 5, 2), Event("new_block", 33, 2, 3, 5)]
    score = score_events(events, [11, 20, 30])
    assert (score.onset_errors, score.onsets_covered, score.median_onset_error) == ((-1, 2, -1), 2, 1)
    assert score_events([], [10]).onsets_covered == 0
    assert score_events([event.record() for event in events], [11, 20, 30]) == score


@given(st.lists(st.integers(0, 60), max_size=12), st.sets(st.integers(1, 60), max_size=6))
def test_every_event_is_either_a_find_or_a_false_alarm(steps: list[int], changes: set[int]) -> None:
    score = score_events([new(step, 1) for step in sorted(steps)], sorted(changes))
    assert score.found + score.false_alarms == len(steps)
    assert score.found + score.missed == len(changes)


# Listening ----------------------------------------------------------------------------------------------------------

STREAM = np.repeat(np.eye(3), 40, axis=0)[np.r_[0:120, 0:40]]


def small() -> CCM:
    return CCM(n_slots=1, alarm_limit=2, recall_limit=1, commit_limit=0, random_state=0)


@pytest.mark.parametrize(
    "how", ["fit", "partial_fit", "learn_one", "classifier", "classifier, one by one", "classifier, fit"]
)
def test_every_event_is_told_once_in_order(how: str) -> None:
    told: list[Event] = []
    memory: Any = small()
    memory.on_event(told.append)
    if how.startswith("classifier"):
        classifier = ModalClassifier(memory)
        if how == "classifier":
            classifier.partial_fit(STREAM[:50], np.zeros(50)).partial_fit(STREAM[50:], np.ones(110))
        elif how == "classifier, fit":
            classifier.fit(STREAM, np.zeros(160))
        else:
            for x in STREAM:
                classifier.learn_one(x, "a")
        memory = classifier.memory_
    elif how == "learn_one":
        for x in STREAM:
            memory.learn_one(x)
    else:
        getattr(memory, how)(STREAM)
    assert told == memory.events_
    assert [event.kind for event in told].count("recall") == 1


def test_a_listener_sees_a_whole_memory_and_may_use_it(tmp_path: Any) -> None:
    classifier = ModalClassifier(small())
    seen = []

    @classifier.memory.on_event
    def look(event: Event) -> None:
        assert classifier.votes_.sum() > 0
        classifier.predict(STREAM)
        classifier.save(tmp_path / "m")
        seen.append((event, load(tmp_path / "m").memory_.n_blocks_))

    classifier.partial_fit(STREAM, np.arange(160) // 40)
    assert [event for event, _ in seen] == classifier.memory_.events_
    assert all(n_blocks == classifier.memory_.n_blocks_ for _, n_blocks in seen)  # delivered after the chunk


def test_an_error_in_a_listener_surfaces_and_harms_nothing() -> None:
    def fail(event: Event) -> None:
        raise RuntimeError("the pager is down")

    classifier = ModalClassifier(small())
    classifier.memory.on_event(fail)
    with pytest.raises(RuntimeError, match="pager"):
        classifier.partial_fit(STREAM, np.arange(160) // 40)
    other = ModalClassifier(small()).partial_fit(STREAM, np.arange(160) // 40)
    np.testing.assert_array_equal(classifier.votes_, other.votes_)
    assert classifier.memory_.events_ == other.memory_.events_


def test_listeners_stay_behind_when_a_memory_is_copied_or_stored(tmp_path: Any) -> None:
    told: list[Event] = []
    memory = small()
    memory.on_event(lambda event: told.append(event))  # a lambda does not pickle
    memory.partial_fit(STREAM[:60])
    n = len(told)
    memory.save(tmp_path / "m")
    for other in (pickle.loads(pickle.dumps(memory)), copy.deepcopy(memory), load(tmp_path / "m")):
        other.partial_fit(STREAM)
    assert len(told) == n
    clone(memory).partial_fit(STREAM)
    assert len(told) > n
    with pytest.raises(TypeError, match="function of one event"):
        memory.on_event("print")  # type: ignore[arg-type]
