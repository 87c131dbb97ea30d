"""Label votes of units: counted while learning, weighted in predictions."""

from __future__ import annotations

import numpy as np

from ccmem.core.codes import MERGE, MOVE, REJECTED, UNLABELED
from ccmem.core.typing import BoolArray, FloatArray, IntArray
from ccmem.kernels.competition import find_winners
from ccmem.kernels.jit import kernel, kernel_in_place

_SHARPNESS = 8


@kernel_in_place
def count_votes(votes: IntArray, winners: IntArray, codes: IntArray, changes: IntArray) -> None:
    """Add each row's label to the unit that learned it, following merges, moves and removals of units."""
    change = 0
    for r in range(winners.shape[0]):
        if winners[r] != REJECTED and codes[r] != UNLABELED:
            votes[winners[r], codes[r]] += 1
        while change < changes.shape[0] and changes[change, 1] == r:
            origin, target = changes[change, 2], changes[change, 3]
            for c in range(votes.shape[1]):  # array expressions would take ten times as long to compile
                if changes[change, 0] == MERGE:
                    votes[target, c] += votes[origin, c]
                elif changes[change, 0] == MOVE:
                    votes[target, c] = votes[origin, c]
                votes[origin, c] = 0
            change += 1


@kernel_in_place
def find_voters(votes: IntArray, voters: BoolArray) -> int:
    """Mark the units that have votes; return how many have."""
    found = 0
    for u in range(voters.shape[0]):
        voters[u] = False
        for c in range(votes.shape[1]):
            if votes[u, c] > 0:
                voters[u] = True
                found += 1
                break
    return found


@kernel
def weigh_votes(
    scores: FloatArray, by_distance: bool, shares: FloatArray, n_winners: int, out: FloatArray, best: IntArray
) -> None:
    """Compute the class shares of each row's best units, weighted by proximity, and the best unit."""
    winners = np.empty(min(n_winners, scores.shape[1]), np.int64)
    for r in range(scores.shape[0]):
        find_winners(scores[r], not by_distance, winners)
        best[r] = winners[0]
        for c in range(out.shape[1]):
            out[r, c] = 0.0
        nearest = 0.0
        for k in range(winners.shape[0]):
            score = float(scores[r, winners[k]])
            far = max(score * score if by_distance else 1.0 - score, 1e-12)
            if k == 0:
                nearest = far
            weight = (nearest / far) ** _SHARPNESS
            for c in range(out.shape[1]):
                out[r, c] += weight * shares[winners[k], c]
