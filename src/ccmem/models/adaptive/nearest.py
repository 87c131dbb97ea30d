"""Selection of blocks to compare after an alarm: comparing all of very many blocks would take most of the time.

Blocks are ranked by the mean squared z-score of a window, with a variance that is easy to compute and at least that of
the comparison up to the error of a level. Only the nearest blocks are then compared.
"""

from __future__ import annotations

import numpy as np

from ccmem.core.typing import BoolArray, FloatArray, IntArray
from ccmem.kernels.jit import kernel_in_place

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
        total, n_known = 0.0, 0
        for j in range(columns):
            if silent[j] or blocks[k, 2, j] < 0.0:  # no reading
                continue
            n_known += 1
            for f in range(2):
                level = blocks[k, f, j]
                own = drift[f, j] * (blocks[k, 2 + f, j] + rounding * level * level) + blocks[k, 4 + f, j]
                deviation = window[f, j] - level
                total += min(deviation * deviation / max(own, variance[f, j]), _LARGEST)
        ranks[k] = total / max(2 * n_known, 1)


def nearest_blocks(ranks: FloatArray, current: int) -> IntArray:
    """Return the blocks of the lowest ranks, and the current block, in order."""
    ranks[current] = -1.0
    return np.sort(np.argpartition(ranks, MOST_COMPARED)[:MOST_COMPARED])
