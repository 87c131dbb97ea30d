"""Label votes of units: counted while learning, weighted in predictions."""

from __future__ import annotations

import numpy as np

from ccmem.core.codes import MERGE, MOVE, REJECTED, UNLABELED
from ccmem.core.typing import FloatArray, IntArray
from ccmem.kernels.competition import find_winners
from ccmem.kernels.jit import kernel_in_place


@kernel_in_place
def add_vote(votes: IntArray, unit: int, code: int, span: int) -> None:
    """Add a label to a unit; if the unit has ``span`` votes (0: never), all its counts are halved before."""
    if span > 0:
        total = 0
        for c in range(votes.shape[1]):
            total += votes[unit, c]
        if total >= span:
            for c in range(votes.shape[1]):
                votes[unit, c] //= 2
    votes[unit, code] += 1


@kernel_in_place
def count_votes(votes: IntArray, winners: IntArray, codes: IntArray, changes: IntArray, span: int) -> None:
    """Add each row's label to the unit that learned it, following merges, moves and removals of units."""
    change = 0
    for r in range(winners.shape[0]):
        if winners[r] != REJECTED and codes[r] != UNLABELED:
            add_vote(votes, winners[r], codes[r], span)
        while change < changes.shape[0] and changes[change, 1] == r:
            origin, target = changes[change, 2], changes[change, 3]
            for c in range(votes.shape[1]):  # array expressions would take ten times as long to compile
                if changes[change, 0] == MERGE:
                    votes[target, c] += votes[origin, c]
                elif changes[change, 0] == MOVE:
                    votes[target, c] = votes[origin, c]
                votes[origin, c] = 0
            change += 1


def weigh_votes(
    scores: FloatArray,
    by_distance: bool,
    sharpness: int,
    votes: IntArray,
    balanced: bool,
    n_winners: int,
    out: FloatArray,
    best: IntArray,
    nearest: FloatArray,
) -> int:
    """Compute the class shares of each row's best units, weighted by proximity, the best unit, and how far it is.

    Units without votes are left out, and their scores overwritten. Return the number of units with votes.
    """
    units, classes = scores.shape[1], votes.shape[1]
    winners = np.empty(min(n_winners, units), np.int64)
    return _weigh_votes(
        scores, by_distance, sharpness, votes, balanced, winners, np.zeros(units), np.ones(classes), out, best, nearest
    )


@kernel_in_place  # scratch arrays come from the caller: allocations would double the compile time
def _weigh_votes(
    scores: FloatArray,
    by_distance: bool,
    sharpness: int,
    votes: IntArray,
    balanced: bool,
    winners: IntArray,
    sizes: FloatArray,
    totals: FloatArray,
    out: FloatArray,
    best: IntArray,
    nearest: FloatArray,
) -> int:
    units, classes, voters = scores.shape[1], votes.shape[1], 0
    for unit in range(units):
        for c in range(classes):
            sizes[unit] += votes[unit, c]
        voters += sizes[unit] > 0.0
    if balanced:
        for c in range(classes):
            total = 0
            for unit in range(units):
                total += votes[unit, c]
            totals[c] = max(total, 1)
        for unit in range(units):
            sizes[unit] = 0.0
            for c in range(classes):
                sizes[unit] += votes[unit, c] / totals[c]
    if voters == 0:
        return 0
    if voters < winners.shape[0]:
        winners = winners[:voters]
    for r in range(scores.shape[0]):
        for unit in range(units):
            if sizes[unit] == 0.0:
                scores[r, unit] = np.inf if by_distance else -np.inf
        find_winners(scores[r], not by_distance, winners)
        best[r] = winners[0]
        for c in range(classes):
            out[r, c] = 0.0
        for k in range(winners.shape[0]):
            unit = winners[k]
            score = float(scores[r, unit])
            far = max(score * score if by_distance else 1.0 - score, 1e-12)
            if k == 0:
                nearest[r] = far
            weight = (nearest[r] / far) ** sharpness / sizes[unit]
            for c in range(classes):
                out[r, c] += weight * votes[unit, c] / totals[c]
    return voters
