"""Covering and the scores of a recording, compared with sets of rows and counts by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from studies.segments import covering, score_recording

CHANGES = st.lists(st.integers(-2, 24), max_size=6)


def segments(changes: list[int], n_rows: int) -> list[set[int]]:
    """Return the rows of every segment as sets."""
    parts: list[set[int]] = [set()]
    for row in range(n_rows):
        if row in changes and parts[-1]:
            parts.append(set())
        parts[-1].add(row)
    return parts


@given(CHANGES, CHANGES, st.integers(1, 20))
def test_covering_equals_counting_rows_in_sets(true: list[int], found: list[int], n_rows: int) -> None:
    expected = sum(
        len(a) * max(len(a & b) / len(a | b) for b in segments(found, n_rows)) for a in segments(true, n_rows)
    )
    assert covering(true, found, n_rows) == pytest.approx(expected / n_rows)


@given(CHANGES, st.integers(1, 20))
def test_covering_of_the_truth_is_one(true: list[int], n_rows: int) -> None:
    assert covering(true, true, n_rows) == pytest.approx(1.0)


@given(st.lists(st.integers(0, 30), max_size=8), st.integers(5, 15), st.none() | st.integers(16, 25), st.integers(0, 5))
def test_every_event_after_the_warm_up_counts_once(steps: list[int], onset: int, back: int | None, warm: int) -> None:
    score = score_recording(steps, onset, back, warm_up=warm)
    counted = [step for step in steps if step >= warm]
    assert score.false + score.repeated + score.onset + bool(score.returned) == len(counted)
    fault = [step for step in counted if step >= onset and (back is None or step < back)]
    assert score.onset == bool(fault)
    assert score.delay == (min(fault) - onset if fault else None)
    assert score.false == sum(step < onset for step in counted)
    returns = [step for step in counted if back is not None and step >= back]
    assert score.return_delay == (min(returns) - (back or 0) if returns else None)
    assert (score.returned is None) == (back is None)


def test_the_delay_of_a_return_is_counted_from_it() -> None:
    assert score_recording([12, 26, 29], 10, 20).return_delay == 6


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one row"):
        covering([1], [1], 0)
    with pytest.raises(ValueError, match="does not come after"):
        score_recording([1], 5, 5)
