"""Blocks whose mean directions are similar, separated by normal densities of their columns. Numpy, for predictions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem.base.matching import SLAB_ROWS
from ccmem.core.state import SEEN
from ccmem.core.typing import BoolArray, FloatArray, IntArray
from ccmem.models.adaptive import state as s

_LEAST_SPREAD = 0.01
"""Smallest spread of a column in a density, relative to its largest over blocks: a constant column must not decide."""


def correct_winners(memory: Any, X: FloatArray, competes: BoolArray | None, winners: IntArray) -> None:
    """Correct the winners of rows whose block resembles others in direction: the block that fits best wins."""
    similar, levels, inverse, logs = block_tables(memory)
    if similar is None:
        return
    blocks = memory._state.unit_blocks[: memory.n_units_]
    may_win = memory._may_win() if competes is None else memory._may_win() & competes
    able = np.bincount(blocks[may_win], minlength=len(levels)) > 0
    found = blocks[winners]
    rows = np.flatnonzero((similar[found] & able).sum(axis=1) > 1)
    if not len(rows):
        return
    for some in np.array_split(rows, -(-len(rows) // SLAB_ROWS)):
        best = likeliest(X[some], found[some], similar & able, levels, inverse, logs)
        for block in np.unique(best[best != found[some]]):
            other = some[(best == block) & (found[some] != block)]
            winners[other] = memory._nearest(X[other], may_win & (blocks == block))


def likeliest(
    X: FloatArray, found: IntArray, choices: BoolArray, levels: FloatArray, inverse: FloatArray, logs: FloatArray
) -> IntArray:
    """Return the block of the highest normal density for every row, among those that resemble the one found."""
    best, least = found.copy(), np.full(len(X), np.inf)
    for block in np.flatnonzero(choices[np.unique(found)].any(axis=0)):
        rows = np.flatnonzero(choices[found, block])
        with np.errstate(over="ignore"):
            terms = ((X[rows] - levels[block]) * inverse[block]) ** 2 + logs[block]
        cost = np.nansum(terms, axis=1)
        better = cost < least[rows]
        best[rows[better]], least[rows[better]] = block, cost[better]
    return best


def block_tables(memory: Any) -> tuple[Any, Any, Any, Any]:
    """Return which blocks have similar directions (None if none have), and densities; made once per batch."""
    state = memory._state
    n = int(state.counters[s.BLOCKS])
    stamp = int(state.counters[SEEN] - state.counters[s.ROWS])
    kept = memory.__dict__.get("_tables")
    if kept is not None and kept[0] is state.blocks and kept[1] == stamp:
        return kept[2]
    levels, spreads = memory.block_levels_, memory.block_spreads_
    known = ~np.isnan(levels).any(axis=0)
    centres = np.where(known, levels, 0.0)
    scatter = np.where(known, spreads, 0.0)
    lengths = np.sqrt((centres**2).sum(axis=1) + (scatter**2).sum(axis=1)) + s.TINY
    cosines = (centres / lengths[:, None]) @ (centres / lengths[:, None]).T
    spread = (scatter**2).sum(axis=1) / lengths**2
    apart = np.diag(cosines)[:, None] + np.diag(cosines)[None, :] - 2.0 * cosines
    # similar: mean directions closer than the error of a batch's mean; others are separated by direction
    similar = apart * memory._constants.batch < np.maximum(spread[:, None], spread[None, :])
    np.fill_diagonal(similar, True)
    floor = np.maximum(spreads, np.sqrt(memory._settings().rounding) * np.abs(levels) + 1e-150)
    floor = np.maximum(floor, _LEAST_SPREAD * floor.max(axis=0))
    levels = np.where(known, levels, np.nan)
    tables = (similar if similar.sum() > n else None, levels, 1.0 / floor, np.where(known, 2.0 * np.log(floor), 0.0))
    memory.__dict__["_tables"] = state.blocks, stamp, tables
    return tables
