"""AdaptiveCCM in a hurry, and short streams of tasks to try it with."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from ccmem import AdaptiveCCM
from ccmem.models.adaptive.constants import Constants


class QuickCCM(AdaptiveCCM):
    """The same kernel in a hurry, so that short streams full of ties reach every branch."""

    _constants = Constants(batch=4, block_span=80.0, reference_span=20.0, young=12.0, growth=1.0)


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
    normalise=st.sampled_from(["auto", "none"]),
    fair=st.booleans(),
)
