"""AdaptiveCCM in a hurry, and short streams of tasks to try it with."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from ccmem import AdaptiveCCM
from ccmem.models.adaptive.columns import FRESH, REFERENCE_AGE, RUNNING, STAYED, WATCHED
from ccmem.models.adaptive.decision import AGAINST, BATCHES
from ccmem.models.adaptive.state import Tuning


class QuickCCM(AdaptiveCCM):
    """The same kernel in a hurry, so that short streams full of ties reach every branch."""

    _tuning = Tuning(
        recent_rate=0.1, slowest_rate=0.01, batch=4, recall_batches=4, most_batches=5, youngest=6, growth=1.0
    )


@st.composite
def task_streams(draw):
    """Integer-valued rows in segments, each drawn from a few patterns; and a label (or none) for every row."""
    width = draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    patterns = rng.integers(-2, 3, (draw(st.integers(2, 6)), width))
    parts = []
    for _ in range(draw(st.integers(1, 6))):
        some = rng.integers(0, len(patterns), 2)
        parts.append(rng.choice(some, draw(st.integers(5, 40))))
    which = np.concatenate(parts)
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    return patterns[which].astype(dtype), np.where(rng.random(len(which)) < 0.2, -1, which % 3)


memories = st.builds(
    QuickCCM,
    n_slots=st.integers(1, 4),
    max_units=st.sampled_from([None, 1, 2, 3, 8]),
    false_alarm_every=st.sampled_from([100.0, 1e4, 1e6]),
    learning_rate=st.sampled_from([0.1, 0.35, 1.0]),
)


def assert_is_twin(memory, expected):
    statistics, columns = expected.pop("statistics"), expected.pop("columns")
    running, counted, state = expected.pop("running"), expected.pop("counted"), memory._state
    np.testing.assert_array_equal(state.means[: memory.n_blocks_], expected.pop("means"))
    np.testing.assert_array_equal(state.readings[RUNNING:], running)
    assert [
        int(state.counters[place]) for place in (STAYED, FRESH, REFERENCE_AGE, WATCHED, BATCHES, AGAINST)
    ] == counted
    if len(expected["prototypes_"]):
        np.testing.assert_array_equal(memory._state.statistics[: memory.n_blocks_], statistics)
        np.testing.assert_array_equal(memory._state.columns[: memory.n_blocks_], columns)
    for name, value in expected.items():
        if len(expected["prototypes_"]):
            np.testing.assert_array_equal(getattr(memory, name), value, err_msg=name)
