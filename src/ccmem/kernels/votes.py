"""Votes of units: counted while a memory learns, weighed when several of them answer."""

from __future__ import annotations

import numpy as np

from ccmem._codes import MERGE, MOVE, REJECTED, UNLABELED
from ccmem._typing import FloatArray, IntArray
from ccmem.kernels.competition import find_winners
from ccmem.kernels.jit import kernel

_SHARPNESS = 8


@kernel
def count_votes(votes: IntArray, winners: IntArray, codes: IntArray, changes: IntArray) -> None:
    """Add each row's label to the unit that learned it, following what happened to the units."""
    change = 0
    for r in range(winners.shape[0]):
        if winners[r] != REJECTED and codes[r] != UNLABELED:
            votes[winners[r], codes[r]] += 1
        while change < changes.shape[0] and changes[change, 1] == r:
            origin, target = changes[change, 2], changes[change, 3]
            if changes[change, 0] == MERGE:
                votes[target] += votes[origin]
            elif changes[change, 0] == MOVE:
                votes[target] = votes[origin]
            votes[origin] = 0
            change += 1


@kernel
def weigh_votes(
    scores: FloatArray, by_distance: bool, shares: FloatArray, n_winners: int, out: FloatArray, best: IntArray
) -> None:
    """Sum of the class shares of each row's best units, weighted by how near they are, and the best of them."""
    winners = np.empty(min(n_winners, scores.shape[1]), np.int64)
    for r in range(scores.shape[0]):
        find_winners(scores[r], not by_distance, winners)
        best[r] = winners[0]
        out[r] = 0.0
        nearest = 0.0
        for k in range(winners.shape[0]):
            score = float(scores[r, winners[k]])
            far = max(score * score if by_distance else 1.0 - score, 1e-12)
            if k == 0:
                nearest = far
            weight = (nearest / far) ** _SHARPNESS
            for c in range(out.shape[1]):
                out[r, c] += weight * shares[winners[k], c]
