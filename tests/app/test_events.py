"""Places of events in the files of a run."""

from __future__ import annotations

import numpy as np
import pytest

from ccmem import Event
from ccmem.app.events import place_of
from ccmem.io.streams.tables import Chunk


@pytest.mark.parametrize(("step", "row"), [(100, 11), (101, 12), (103, 15), (90, 11)])
def test_an_event_is_placed_at_its_row_or_at_the_start_of_a_chunk_that_reports_it_late(step: int, row: int) -> None:
    rows = np.array([11, 12, 14, 15])  # row 13 is bad
    chunk = Chunk(np.zeros((4, 1)), None, "a.csv", rows, first=10, n_rows=5, ends=None)
    assert place_of(Event("new_block", step, 0, 1, 5), chunk, 100) == {"file": "a.csv", "row": row}
