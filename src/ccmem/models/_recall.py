"""Search for a waiting block that matches a sample: by products with every slot, or by sketches that skip most blocks.

Sketches are derived from the prototypes (:mod:`ccmem.kernels.sketch`). They only save time, and are recomputed on
loading. ``state`` has the fields of :class:`ccmem.models.ccm.CCMState`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem.base.matching import most_similar_sketched
from ccmem.base.memory import REJECTED
from ccmem.core.allocation import aligned, aligned_zeros
from ccmem.core.typing import BoolArray, FloatArray, IntArray
from ccmem.kernels.competition import dot, dots
from ccmem.kernels.jit import kernel, kernel_in_place
from ccmem.kernels.sketch import (
    NOT_SKETCHED,
    WORTH_IT,
    WORTH_SURROUNDING,
    fit_basis,
    sketch,
    sketch_block,
    slack,
    surround,
)
from ccmem.models._blocks import BLOCKS, POINTER

DERIVED = ("basis", "sketches", "centres", "radii", "middles", "reaches")
"""Names of the state arrays that are derived from the prototypes."""


@kernel_in_place
def find_by_products(state: Any, settings: Any, x: FloatArray, scale: float, h: FloatArray) -> int:
    """Return the first waiting block with a slot that matches ``x``, or REJECTED."""
    n_slots, wins = settings.n_slots, state.wins
    for block in range(state.counters[BLOCKS]):
        if block != state.counters[POINTER]:
            start = block * n_slots
            dots(state.prototypes, start, start + n_slots, x, h)
            for k in range(n_slots):
                if h[k] * scale > settings.recall_vigilance and wins[start + k] > 0:
                    return block
    return REJECTED


@kernel
def find_by_sketches(state: Any, settings: Any, x: FloatArray, scale: float, h: FloatArray) -> int:
    """Return the result of :func:`find_by_products`, skipping blocks and slots whose sketches exclude a match."""
    n_slots, threshold = settings.n_slots, settings.recall_vigilance
    outline = np.empty(state.basis.shape[0] + 1, state.prototypes.dtype)
    sketch(state.basis, x, scale, 1.0, np.empty(state.basis.shape[0]), outline)
    possible = threshold - slack(state.basis)
    tried, helped = 0, 0
    for block in range(state.counters[BLOCKS]):
        if block == state.counters[POINTER]:
            continue
        start, stop, surrounded = block * n_slots, (block + 1) * n_slots, block < state.middles.shape[0]
        if state.radii[block] < 0.0:
            state.radii[block] = sketch_block(
                state.basis, state.prototypes, state.wins, state.sketches, state.centres[block], start, stop
            )
            if surrounded:
                state.reaches[block] = surround(
                    state.basis, state.prototypes, state.wins, state.middles[block], start, stop
                )
        if dot(state.centres[block], outline) + state.radii[block] <= possible:
            continue
        if surrounded and (tried < 16 or 8 * helped > tried):  # only while the test excludes enough blocks
            tried += 1
            if dot(state.middles[block], x) * scale + state.reaches[block] <= possible:
                helped += 1
                continue
        dots(state.sketches, start, stop, outline, h)
        for i in range(start, stop):
            if h[i - start] <= possible or state.wins[i] == 0:
                continue
            if dot(state.prototypes[i], x) * scale > threshold:
                return block
    return REJECTED


def derive(n_slots: int, prototypes: FloatArray, wins: IntArray) -> dict[str, Any]:
    """Return the arrays derived from the prototypes, with no block sketched yet."""
    blocks, n_features = len(prototypes) // n_slots, prototypes.shape[1]
    basis = aligned(fit_basis(prototypes, wins > 0, blocks))
    return {
        "basis": basis,
        "sketches": aligned_zeros((len(prototypes), len(basis) + 1), prototypes.dtype),
        "centres": aligned_zeros((blocks, len(basis) + 1), prototypes.dtype),
        "radii": np.full(blocks, NOT_SKETCHED),
        "middles": aligned_zeros((blocks if n_slots >= WORTH_SURROUNDING else 0, n_features), prototypes.dtype),
        "reaches": np.zeros(blocks),
    }


def sketch_all(state: Any, settings: Any) -> None:
    """Sketch every waiting block, by a search that cannot match."""
    if state.counters[BLOCKS] > WORTH_IT:
        nothing = settings._replace(recall_vigilance=np.inf)
        find_by_sketches(state, nothing, state.prototypes[0], 1.0, nothing.h)


def match(
    state: Any, X: FloatArray, prototypes: FloatArray, competes: BoolArray, epsilon: float, winners: IntArray
) -> bool:
    """Store the winners, found by sketches, and return True; return False if too few blocks are sketched."""
    blocks, n = state.counters[BLOCKS], len(prototypes)
    if blocks <= WORTH_IT:
        return False
    ready = np.repeat(state.radii[:blocks] >= 0.0, n // blocks)
    if ready.mean() <= 0.9:
        return False
    most_similar_sketched(X, prototypes, competes, epsilon, state.basis, state.sketches[:n], ready, winners)
    return True
