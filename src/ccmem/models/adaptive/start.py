"""Once per stream or column, in numpy: first batches, lost columns, and the choice of coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem.base.normalised import CENTRE, FEW_COLUMNS, INVERSE, VARIANCE, share_unit
from ccmem.core.allocation import grown
from ccmem.core.codes import COLUMN_BACK, COLUMN_LOST
from ccmem.core.state import JOURNALED, SEEN, UNITS
from ccmem.models.adaptive import state as s
from ccmem.models.adaptive.columns import set_inverse


def first_coordinates(normalise: str, n_features: int) -> int:
    """Return the coordinates that a stream begins with."""
    if normalise == "auto":
        return s.COLUMNS if n_features < FEW_COLUMNS else s.UNDECIDED
    return s.COLUMNS if normalise == "columns" else s.DIRECTIONS


def choose_coordinates(state: Any, settings: Any) -> None:
    """Choose directions if columns share a unit, judged by their largest magnitudes, otherwise columns."""
    if share_unit(state.columns[INVERSE]):
        state.counters[s.COORDINATES] = s.DIRECTIONS
        state.columns[:] = 0.0
    else:
        begin_in_columns(state, settings)


def begin_in_columns(state: Any, settings: Any) -> None:
    """Convert from directions to columns: units of a block get the length of its rows."""
    state.counters[s.COORDINATES] = s.COLUMNS
    set_inverse(state, settings)
    units = int(state.counters[UNITS])
    for block in range(int(state.counters[s.BLOCKS])):
        level, noise, sway = (rows[0] for rows in s.block_values(state, block))
        square = np.where(noise >= 0.0, settings.batch * noise + sway + level**2, 0.0).sum()
        state.prototypes[:units][state.unit_blocks[:units] == block] *= state.prototypes.dtype.type(np.sqrt(square))


def start_columns(state: Any, settings: Any) -> None:
    """Start columns without earlier readings in the block in use at the newest batch."""
    counters, stream, columns, units = state.counters, state.stream, state.columns, int(state.counters[UNITS])
    level, noise, sway = s.block_values(state, int(counters[s.POINTER]))
    new = noise[0] < 0.0
    if len(state.gaps):
        new &= state.gaps[s.HAS_BATCH] > 0.0
    batch = stream[s.SUM : s.SUM + 3, new]
    level[:, new] = stream[s.REFERENCE : s.ONE, new] = batch[:2]
    noise[:, new], sway[:, new] = (batch[1] ** 2 / settings.batch, batch[2]), 0.0
    stream[s.BATCHES : s.COLUMN_ROWS].reshape(s.RING, 3, -1)[:, :, new] = batch
    unseen = new & (stream[s.ONE] == 0.0)  # the stream has never had one either
    stream[s.ONE : s.FOUR, unseen], stream[s.FOUR : s.PRODUCT, unseen] = 1.0, 0.25
    counters[s.AGE] = min(counters[s.AGE], 1)  # a reference of one batch
    counters[s.WATCHED] = min(counters[s.WATCHED], s.RING)  # and a noise of one batch
    unseen = new & (columns[VARIANCE] < 0.0)
    columns[CENTRE, unseen], columns[VARIANCE, unseen] = stream[s.SUM, unseen], stream[s.SQUARES, unseen] ** 2
    if counters[s.AGE] > 0 and counters[s.COORDINATES] == s.COLUMNS:  # units know nothing of the column yet
        state.prototypes[:units, unseen] = columns[CENTRE, unseen]


def report_columns(state: Any, settings: Any) -> Any:
    """Report columns that are lost, or back, in the order of columns; return the state, its journal grown if needed."""
    gaps, counters, first = state.gaps, state.counters, int(state.counters[JOURNALED])
    back = (gaps[s.LOST] > 0.0) & (gaps[s.READINGS] > 0.0)
    limit = s.LOST_AFTER * settings.batch + 3.0 * gaps[s.LONGEST]
    lost = (gaps[s.LOST] == 0.0) & (state.stream[s.ONE] > 0.0) & (gaps[s.GAP] > limit)
    some = np.flatnonzero(back | lost)
    if first + len(some) > len(state.journal):
        state = state._replace(journal=grown(state.journal, first + len(some)))
    lines = state.journal[first : first + len(some)]
    lines[:, 0], lines[:, 1] = np.where(back[some], COLUMN_BACK, COLUMN_LOST), counters[SEEN] - 1
    lines[:, 2], lines[:, 3] = some, counters[s.POINTER]
    lines[:, 4] = np.where(back[some], gaps[s.READINGS, some], gaps[s.GAP, some])
    lines[:, 5], lines[:, 6] = np.where(back[some], settings.batch, 1), 0
    counters[JOURNALED] += len(some)
    gaps[s.LONGEST, back] = np.maximum(gaps[s.LONGEST, back], gaps[s.GAP, back])
    gaps[s.LOST, back] = gaps[s.GAP, back] = 0.0
    gaps[s.LOST, lost], gaps[s.READINGS, lost] = 1.0, 0.0
    state.stream[: s.BEFORE, lost] = 0.0
    return state


def expecting_gaps(state: Any) -> Any:
    """Return ``state`` with room for counts of missing readings."""
    if len(state.gaps):
        return state
    state = state._replace(stream=grown(state.stream, s.N_STREAM + s.N_GAPS))
    state.gaps[s.READINGS] = state.counters[s.ROWS]
    return state
