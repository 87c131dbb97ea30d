"""CCM: alarm, new blocks, recall, and the stream of the paper."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccmem import CCM, Event, ModalClassifier
from ccmem.models._blocks import EVENT_HISTORY
from zoo import twin

A, B, C = np.eye(3)


def stream(*parts):
    return np.concatenate([np.repeat([x], n, axis=0) for x, n in parts])


def small(**changes):
    settings = {"n_slots": 1, "alarm_limit": 4, "recall_limit": 4, "commit_limit": 5, "random_state": 0}
    return CCM(**{**settings, **changes})


def test_more_than_the_limit_makes_a_block():
    memory = small().partial_fit(stream((A, 30), (B, 4)))
    assert (memory.n_blocks_, memory.alarm_) == (1, 4)
    memory.learn_one(B)
    assert (memory.n_blocks_, memory.alarm_, memory.task_pointer_) == (2, 0, 1)
    assert memory.events_ == [Event("new_block", 34, 0, 1, 5, 1)]


def test_the_sample_of_a_miss_is_not_learned():
    memory = small().partial_fit(stream((A, 30)))
    before = memory.prototypes_
    assert memory.learn_one(B) == -1
    np.testing.assert_array_equal(memory.prototypes_, before)
    assert memory.n_samples_seen_ == 31


def test_an_old_block_is_recalled_not_made_again():
    memory = small().partial_fit(stream((A, 30), (B, 30), (C, 30), (A, 30), (C, 30)))
    assert memory.n_blocks_ == 3
    assert [(e.kind, e.from_block, e.to_block) for e in memory.events_] == [
        ("new_block", 0, 1),
        ("new_block", 1, 2),
        ("recall", 2, 0),
        ("recall", 0, 2),
    ]
    assert memory.recall_counts_.tolist() == [0, 0, 0]


def test_consecutive_counters_forgive_and_cumulative_do_not():
    mixed = np.concatenate([stream((A, 30)), *[np.stack([B, B, A])] * 10])
    assert small().partial_fit(mixed).n_blocks_ == 1
    assert small(counters="cumulative").partial_fit(mixed).n_blocks_ == 2


def test_a_hit_forgives_recalls_too():
    memory = small(recall_limit=2).partial_fit(stream((A, 30), (B, 30), (A, 2)))
    assert memory.recall_counts_.tolist() == [2, 0]
    memory.learn_one(B)
    assert memory.recall_counts_.tolist() == [0, 0]
    assert memory.partial_fit(stream((A, 2))).task_pointer_ == 1
    assert memory.partial_fit(stream((A, 1))).task_pointer_ == 0


def test_consecutive_recall_needs_a_limit_within_the_alarm():
    parts = (A, 30), (B, 30), (A, 30)
    assert small(recall_limit=5).partial_fit(stream(*parts)).n_blocks_ == 3
    assert small(recall_limit=4).partial_fit(stream(*parts)).n_blocks_ == 2


def test_open_slots_take_anything_until_they_are_committed():
    memory = small(commit_limit=5)
    memory.partial_fit(stream((A, 3), (B, 3)))
    assert memory.win_counts_.tolist() == [6]
    assert memory.learn_one(C) == -1


def test_slots_that_never_learned_do_not_answer():
    memory = CCM(n_slots=25, random_state=0).fit(stream((A, 40)))
    unused = memory.win_counts_ == 0
    assert unused.any()
    assert not unused[memory.predict(np.random.default_rng(0).normal(size=(200, 3)))].any()
    assert (memory.transform([B])[0, unused] == -1).all()


def test_pointers_and_pools():
    memory = small(n_slots=2, commit_limit=0, learning_rate=1.0).partial_fit(stream((A, 30), (B, 30), (C, 30)))
    assert memory.unit_blocks_.tolist() == [0, 0, 1, 1]
    assert memory.task_pointers([A, C]).tolist() == [0, 1]
    assert memory.pool_task([A, C, C]) == 1
    assert memory.pool_task([C, A]) == 0  # a tie goes to the older block


def test_growth_is_not_limited_by_the_first_room():
    X = np.repeat(np.eye(40), 12, axis=0)
    memory = small().partial_fit(X)
    assert memory.n_blocks_ == 40
    np.testing.assert_array_equal(memory.task_pointers(np.eye(40)), np.arange(40))


def test_history_is_bounded():
    flips = np.tile(stream((A, 8), (B, 8)), (EVENT_HISTORY // 2 + 200, 1))
    memory = small(commit_limit=2).partial_fit(flips)
    assert len(memory.events_) == EVENT_HISTORY
    assert memory.n_blocks_ == 2
    assert memory.events_[-1].step == len(flips) - 4


@pytest.mark.data
def test_split_mnist_is_the_papers_model(mnist):
    """Expect 4 to 6 blocks and a modal ACC near 0.9425 (paper 0.9418)."""
    X, y = mnist.X_train, mnist.y_train
    accuracies = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        classifier = ModalClassifier(CCM(random_state=seed))
        for task in range(5):
            rows = rng.permutation(np.flatnonzero(y // 2 == task))
            classifier.partial_fit(X[rows], y[rows] % 2)
        assert 4 <= classifier.memory_.n_blocks_ <= 6
        right = classifier.predict(mnist.X_test) == mnist.y_test % 2
        accuracies.append(np.mean([right[mnist.y_test // 2 == task].mean() for task in range(5)]))
    assert np.mean(accuracies) == pytest.approx(0.9425, abs=0.01)


def test_a_memory_that_cannot_recall_says_so_once() -> None:
    tasks = np.repeat(np.eye(3)[[0, 2, 1]], 30, axis=0)
    memory = CCM(1, alarm_limit=2, recall_limit=3, commit_limit=0, random_state=0)
    with pytest.warns(UserWarning, match="CCM cannot recall a block: with recall_limit=3 above alarm_limit=2") as said:
        memory.partial_fit(tasks[:60])  # two blocks are enough
    assert memory.n_blocks_ == 2
    assert [line.filename for line in said] == [__file__]  # it points to the caller
    with warnings.catch_warnings(action="error"):
        memory.partial_fit(tasks[60:])
    with warnings.catch_warnings(action="error"):
        for possible in ({"recall_limit": 2}, {"counters": "cumulative"}):
            CCM(1, alarm_limit=2, commit_limit=0, random_state=0).set_params(**possible).fit(tasks)
        CCM(1, alarm_limit=2, recall_limit=3, random_state=0).fit(tasks[:30])  # one block: nothing to recall yet


def test_names_are_for_blocks_that_are_there() -> None:
    memory = CCM(1, random_state=0).partial_fit(np.eye(3))
    for block in (1, -1, "0", 0.0, None):
        with pytest.raises(ValueError, match=f"there is no block {block!r}; blocks are numbered from 0 to 0"):
            memory.name_block(block, "pump")
    memory.name_block(0, "pump")
    assert memory.block_names_ == {0: "pump"}


@pytest.mark.parametrize(("n_rejected", "says"), [(3, True), (4, False)])
def test_rejecting_half_the_alarm_limit_is_hardly_any(
    monkeypatch: pytest.MonkeyPatch, n_rejected: int, says: bool
) -> None:
    monkeypatch.setattr("ccmem.models.ccm.MANY", 60)
    memory = CCM(1, vigilance=0.5, alarm_limit=6, recall_limit=6, commit_limit=0, random_state=0)
    rows = np.repeat(np.eye(3)[[0]], 70, axis=0)
    rows[10 : 10 + 2 * n_rejected : 2] = np.eye(3)[1]
    with warnings.catch_warnings(record=True, action="always") as said:
        memory.partial_fit(rows)
    assert 70 - memory.win_counts_.sum() == n_rejected
    assert [str(line.message).startswith("CCM has rejected 3 of 70") for line in said] == [True] * says


def test_a_memory_that_notices_nothing_says_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ccmem.models.ccm.MANY", 60)
    memory = CCM(vigilance=-1.0, random_state=0)
    with pytest.warns(UserWarning, match=r"CCM has rejected 0 of 60 samples.*raise vigilance=-1\.0") as said:
        [memory.learn_one(row) for row in np.repeat(np.eye(3), 30, axis=0)]
    assert len(said) == 1


@given(data=st.data())
@settings(max_examples=15)
def test_streams_that_fill_many_blocks_equal_the_naive_twin(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    width = data.draw(st.sampled_from([3, 40]))
    X = rng.normal(size=(90, width)).astype(data.draw(st.sampled_from([np.float32, np.float64])))
    order = data.draw(st.lists(st.integers(0, 89), min_size=40, max_size=40))
    X = np.vstack([X, X[order]])  # earlier rows return: recalls, and blocks that learn again
    memory = CCM(
        n_slots=data.draw(st.sampled_from([1, 4])),
        vigilance=0.95,
        alarm_limit=0,
        commit_limit=0,
        recall_limit=data.draw(st.sampled_from([0, 5])),
        random_state=0,
    )
    memory.partial_fit(X)
    expected = twin(memory, X)
    expected.pop("winners")
    for name, value in expected.items():
        np.testing.assert_array_equal(getattr(memory, name), value, err_msg=name)


def test_a_block_that_was_recalled_and_moved_on_is_found_where_it_is_now():
    axes = np.eye(20)
    corners = np.repeat(np.vstack([axes[:19], -axes[:19]]), 3, axis=0)  # 38 blocks, one direction each
    turn = np.vstack([axes[0], axes[0], axes[0] + axes[19], axes[19]])  # block 0 returns and turns to a new direction
    X = np.vstack([corners, turn, axes[1], axes[1], axes[19], axes[19]])
    memory = CCM(
        n_slots=1,
        vigilance=0.5,
        alarm_limit=0,
        recall_limit=0,
        commit_limit=0,
        learning_rate=1.0,
        rate_decay=1.0,
        random_state=0,
    ).partial_fit(X)
    assert memory.n_blocks_ == 38
    assert [event.to_block for event in memory.events_[-3:]] == [0, 1, 0]
    np.testing.assert_array_equal(memory.prototypes_, twin(memory, X)["prototypes_"])


def test_with_fair_slots_a_matching_slot_with_fewer_wins_learns():
    near, far, none = np.eye(3)[0], np.array([0.9, 0.3, 0.0]) / np.hypot(0.9, 0.3), np.eye(3)[2]
    x = np.array([0.99, 0.1, 0.0])
    for fair, slot in ((False, 0), (True, 1)):
        memory = CCM(n_slots=3, vigilance=0.7, commit_limit=0, learning_rate=0.1, fair=fair, random_state=0)
        memory.partial_fit([near])
        memory._state.prototypes[:3] = near, far, none
        memory._state.wins[:3] = 100, 1, 0  # the last slot has the fewest wins, but does not match
        assert memory.learn_one(x) == slot


def test_the_plain_reference_is_the_kernel():
    X = np.abs(np.random.default_rng(0).normal(np.repeat(np.eye(4), 40, axis=0), 0.1))
    memory = CCM(3, alarm_limit=3, recall_limit=2, commit_limit=2, random_state=0)
    plain, compiled = memory.plain().partial_fit(X), memory.partial_fit(X)
    assert compiled.n_blocks_ > 1
    assert plain.events_ == compiled.events_
    np.testing.assert_array_equal(plain.prototypes_, compiled.prototypes_)
