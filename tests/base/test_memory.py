"""Promises of every memory to scikit-learn, and seeds that a classifier hands on to its memory."""

from __future__ import annotations

from sklearn.utils import get_tags

from ccmem import CCM
from ccmem.base.memory import seeded_clone


def test_equal_seeds_give_equal_results_and_scikit_learn_may_check_that() -> None:
    assert get_tags(CCM()).non_deterministic is False


def test_a_seed_is_handed_on_to_a_memory_without_one() -> None:
    memory = CCM(n_slots=3)
    assert seeded_clone(memory, 7).random_state == 7
    assert seeded_clone(CCM(random_state=0), 7).random_state == 0
    assert seeded_clone(memory, None).random_state is None
    assert memory.random_state is None
    assert seeded_clone(memory, 7).n_slots == 3
