"""Selection of blocks to compare after an alarm: comparing all of very many blocks would take most of the time.

Blocks are ranked by the mean squared z-score of a window, with a variance that is easy to compute and at least that of
the comparison up to the error of a level. Only the nearest blocks are then compared.
"""

from __future__ import annotations

import numpy as np

from ccmem.core.typing import BoolArray, FloatArray, IntArray
from ccmem.kernels.jit import kernel_in_place
from ccmem.models.adaptive.batches import row_of
from ccmem.models.adaptive.state import BLOCKS, HOME, LATEST, LEVEL, NOISE, POINTER, RING, SWAY, TINY

MOST_COMPARED = 64
"""Number of blocks that are compared if there are more than twice as many."""
_LARGEST = 1e6
"""Cap on the squared z-score of one feature, so that one feature does not decide alone."""


@kernel_in_place
def rank_blocks(
    ranks: FloatArray,
    blocks: FloatArray,
    window: FloatArray,
    variance: FloatArray,
    drift: FloatArray,
    rounding: float,
    silent: BoolArray,
) -> None:
    """Fill ``ranks`` with the mean squared z-score of a window at the level of every block.

    Rows of a block: level, error variance and sway, each of means and spreads; rows of the others: means and spreads.
    """
    columns = window.shape[1]
    for k in range(ranks.shape[0]):
        total, heard = 0.0, 0
        for j in range(columns):
            if silent[j] or blocks[k, 2, j] < 0.0:  # no reading
                continue
            heard += 1
            for f in range(2):
                level = blocks[k, f, j]
                own = drift[f, j] * (blocks[k, 2 + f, j] + rounding * level * level) + blocks[k, 4 + f, j]
                deviation = window[f, j] - level
                total += min(deviation * deviation / max(own, variance[f, j]), _LARGEST)
        ranks[k] = total / max(2 * heard, 1)


def nearest_blocks(ranks: FloatArray, current: int) -> IntArray:
    """Return the blocks of the lowest ranks, and the current block, in order."""
    ranks[current] = -1.0
    return np.sort(np.argpartition(ranks, MOST_COMPARED)[:MOST_COMPARED])


@kernel_in_place
def another_is_nearer(counters: IntArray, blocks: FloatArray, stream: FloatArray, scratch: FloatArray) -> bool:
    """True if the levels of the latest batches are nearer to some stored block than to the home of the block in use.

    A quick selection before the comparison of all blocks, which takes longer than learning a thousand rows.
    """
    columns, home = stream.shape[1], 0.0
    own = blocks[counters[POINTER]]
    for f in range(2):
        for j in range(columns):
            total = 0.0
            for age in range(RING):
                total += stream[row_of(age, counters[LATEST]) + f, j]
            scratch[f, j] = total / RING
            home += apart(scratch[f, j], stream[HOME + f, j], own[NOISE + f, j], own[SWAY + f, j])
    for k in range(counters[BLOCKS]):
        distance, block, at = 0.0, blocks[k], 0
        while distance < home and at < 2 * columns:  # most blocks are further away in the first column
            f, j = at // columns, at % columns
            distance += apart(scratch[f, j], block[LEVEL + f, j], block[NOISE + f, j], block[SWAY + f, j])
            at += 1
        if distance < home and k != counters[POINTER]:
            return True
    return False


@kernel_in_place
def apart(value: float, level: float, noise: float, sway: float) -> float:
    """Return the squared z-score of a value at the level of a block, capped; 0 without readings."""
    deviation = value - level
    if noise < 0.0:
        return 0.0
    return min(deviation * deviation / (noise + sway + TINY), 100.0)
