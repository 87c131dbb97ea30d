"""The paper's form of CCM: a sample is new when no slot is similar enough.

Memory is a list of blocks, each with the same number of slots; the task pointer t names the block in use (short-term
memory), all others wait (long-term memory). For a sample x (paper, algorithm 2):

    x' = x / (|x| + e),   h[i] = M_t[i] . x'
    search    slots of block t from most to least similar, up to the first with h > rho or with C <= C_theta wins
    hit       M[i] <- (M[i] + v[i] (x' - M[i])) / (|...| + e),   v[i] <- decay * v[i],   C[i] <- C[i] + 1
    miss      alarm a <- a + 1; the first other block with a slot more similar than rho_r gets a hit in r
              if max r > r_theta:   recall: t <- argmax r,        a <- 0, r <- 0
              elif a > a_theta:     t <- a new block,             a <- 0, r <- 0

The sample of a miss is not learned. The search ends at the most similar slot if that one matches, and otherwise at the
most similar of the slots still open (C <= C_theta), so it needs no sorting. Ties go to the lowest index.

Source: A. Ororbia, "Continual Competitive Memory: A Neural System for Online Task-Free Lifelong Learning", 2021.
Departures, each because the printed form contradicts the text or itself:

* ``counters="consecutive"``: a and r also return to 0 at every hit, as the text says ("more than r_theta consecutive
  hits"). This reproduces the paper's tables. ``counters="cumulative"`` is the algorithm as printed, where only a recall
  or a new block resets them; on Split MNIST it makes about five times as many blocks.
* The recall loop as printed mixes its indices; here the recalled block is argmax r, as the text says.
* With consecutive counters r can never exceed a, so a recall needs recall_limit <= alarm_limit. With the paper's MNIST
  settings (20 and 30) nothing is ever recalled.
* Slots that never learned are random directions: they compete for a sample in their own block, but neither in recall
  nor at test time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ccmem._typing import BoolArray, FloatArray, IntArray
from ccmem.base import REJECTED
from ccmem.kernels import plain
from ccmem.kernels.competition import dot, dots, dots_and_square, highest
from ccmem.kernels.jit import kernel, kernel_in_place
from ccmem.kernels.matching import most_similar_sketched
from ccmem.kernels.sketch import (
    LAST_FIT,
    NOT_SKETCHED,
    WORTH_IT,
    WORTH_SURROUNDING,
    fit_basis,
    sketch,
    sketch_block,
    slack,
    surround,
)
from ccmem.kernels.update import count_win, renormalising_move
from ccmem.memory import JOURNALED, NEW_BLOCK, OWN, RECALL, SEEN, UNITS, Event, grown, new_units, note, room, settled

BLOCKS, POINTER, ALARM = OWN, OWN + 1, OWN + 2
"""Own places in ``counters``."""
OWN_COUNTERS = ("blocks", "pointer", "alarm")
PER_COLUMN = ("prototypes", "basis", "middles")
DERIVED = ("basis", "sketches", "centres", "radii", "middles", "reaches")


def naive(
    X: FloatArray,
    first_blocks: list[FloatArray],
    vigilance: float,
    recall_vigilance: float,
    alarm_limit: int,
    recall_limit: int,
    commit_limit: int,
    learning_rate: float,
    rate_decay: float,
    counters: str,
    epsilon: float = 1e-5,
) -> dict[str, Any]:
    """The algorithm above, read aloud; ``first_blocks`` are the random slots, one array per block to be made."""
    n_slots = len(first_blocks[0])
    M, v, C = [first_blocks[0].copy()], [[learning_rate] * n_slots], [[0] * n_slots]
    t, a, r = 0, 0, [0]
    winners, events = [], []
    for step, x in enumerate(X):
        scale = plain.unit_scale(x, epsilon)
        h = [plain.dot(m, x) * scale for m in M[t]]
        for i in sorted(range(n_slots), key=lambda i: (-h[i], i)):
            if h[i] > vigilance or C[t][i] <= commit_limit:
                keep, gain = X.dtype.type(1.0 - v[t][i]), X.dtype.type(v[t][i] * scale)
                M[t][i] = plain.renormalised(keep * M[t][i] + gain * x, epsilon)
                v[t][i] *= rate_decay
                C[t][i] += 1
                winners.append(t * n_slots + i)
                if counters == "consecutive":
                    a, r = 0, [0] * len(M)
                break
        else:
            winners.append(REJECTED)
            a += 1
            for m in range(len(M)):
                used = [j for j in range(n_slots) if C[m][j] > 0]
                if m != t and any(plain.dot(M[m][j], x) * scale > recall_vigilance for j in used):
                    r[m] += 1
                    break
            if max(r) > recall_limit:
                events.append(Event("recall", step, t, r.index(max(r)), max(r)))
                t = r.index(max(r))
                a, r = 0, [0] * len(M)
            elif a > alarm_limit:
                events.append(Event("new_block", step, t, len(M), a))
                t = len(M)
                M.append(first_blocks[t].copy())
                v.append([learning_rate] * n_slots)
                C.append([0] * n_slots)
                a, r = 0, [0] * len(M)
    return {
        "prototypes_": np.concatenate(M),
        "learning_rates_": np.concatenate(v),
        "win_counts_": np.concatenate(C),
        "winners": winners,
        "n_blocks_": len(M),
        "task_pointer_": t,
        "alarm_": a,
        "recall_counts_": r,
        "events_": events,
    }


class VigilanceState(NamedTuple):
    prototypes: FloatArray
    """Slots of all blocks, one block after the other; always with one unused block of random slots at hand."""
    rates: FloatArray
    wins: IntArray
    counters: IntArray
    journal: IntArray
    recalls: IntArray
    """r, one entry a block."""
    basis: FloatArray
    """From here on, what lets a miss pass over most blocks: derived from the prototypes (kernels/sketch.py)."""
    sketches: FloatArray
    """One row a slot."""
    centres: FloatArray
    """Ball around the sketches of a block; stale for the block in use, which is never asked."""
    radii: FloatArray
    middles: FloatArray
    """Ball around the slots of a block themselves (none where blocks are so small that it would not pay)."""
    reaches: FloatArray


class VigilanceSettings(NamedTuple):
    n_slots: int
    vigilance: float
    recall_vigilance: float
    alarm_limit: int
    recall_limit: int
    commit_limit: int
    rate_decay: float
    consecutive: bool
    epsilon: float
    h: FloatArray
    """Room for the similarity to every slot of a block."""


@kernel_in_place
def search(h: FloatArray, wins: IntArray, vigilance: float, commit_limit: int) -> int:
    """The slot of a block that learns a sample, from the similarity ``h`` and the wins of each; or REJECTED."""
    best = highest(h, h.shape[0])
    if h[best] > vigilance:
        return best
    spare, spare_match = REJECTED, -np.inf
    for k in range(h.shape[0]):
        if wins[k] <= commit_limit and h[k] > spare_match:
            spare, spare_match = k, h[k]
    return spare


@kernel_in_place
def find_by_products(
    prototypes: FloatArray, wins: IntArray, pointer: int, threshold: float, x: FloatArray, scale: float, h: FloatArray
) -> int:
    """The first block, other than the one in use, with a slot that matches ``x``; or REJECTED."""
    n_slots = h.shape[0]
    for block in range(wins.shape[0] // n_slots):
        if block != pointer:
            start = block * n_slots
            dots(prototypes, start, start + n_slots, x, h)
            for k in range(n_slots):
                if h[k] * scale > threshold and wins[start + k] > 0:
                    return block
    return REJECTED


@kernel
def find_by_sketches(
    state: VigilanceState, settings: VigilanceSettings, x: FloatArray, scale: float, h: FloatArray
) -> int:
    """As :func:`find_by_products`, but blocks and slots whose sketches rule out a match are passed over."""
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
        if surrounded and (tried < 16 or 8 * helped > tried):  # as long as it pays
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


@kernel_in_place
def miss(state: VigilanceState, settings: VigilanceSettings, x: FloatArray, scale: float, h: FloatArray) -> None:
    """Count a sample that no slot of the block in use would learn; change blocks if it is one too many."""
    counters, recalls = state.counters, state.recalls
    counters[ALARM] += 1
    pointer, blocks = counters[POINTER], counters[BLOCKS]
    if blocks > WORTH_IT:
        hit = find_by_sketches(state, settings, x, scale, h)
    else:
        wins = state.wins[: counters[UNITS]]
        hit = find_by_products(state.prototypes, wins, pointer, settings.recall_vigilance, x, scale, h)
    if hit != REJECTED:
        recalls[hit] += 1
    recalled = int(np.argmax(recalls[:blocks]))
    if recalls[recalled] > settings.recall_limit:
        note(counters, state.journal, RECALL, pointer, recalled, recalls[recalled])
        counters[POINTER] = recalled
        state.radii[recalled] = NOT_SKETCHED
    elif counters[ALARM] > settings.alarm_limit:
        note(counters, state.journal, NEW_BLOCK, pointer, blocks, counters[ALARM])
        counters[POINTER] = blocks
        counters[BLOCKS] += 1
        counters[UNITS] += settings.n_slots
    else:
        return
    counters[ALARM] = 0
    recalls[:blocks] = 0


@kernel_in_place
def learn(state: VigilanceState, settings: VigilanceSettings, X: FloatArray, winners: IntArray) -> int:
    counters, h = state.counters, settings.h
    for r in range(X.shape[0]):
        if counters[BLOCKS] == state.recalls.shape[0] or counters[JOURNALED] == state.journal.shape[0]:
            return r
        x = X[r]
        start = counters[POINTER] * settings.n_slots
        square = dots_and_square(state.prototypes, start, start + settings.n_slots, X, r, counters[SEEN] % 2 == 1, h)
        scale = 1.0 / (np.sqrt(square) + settings.epsilon)
        for k in range(settings.n_slots):
            h[k] *= scale
        slot = search(h, state.wins[start : start + settings.n_slots], settings.vigilance, settings.commit_limit)
        if slot != REJECTED:
            slot += start
            renormalising_move(state.prototypes[slot], x, scale, state.rates[slot], settings.epsilon)
            count_win(state.rates, state.wins, slot, settings.rate_decay)
            if settings.consecutive and counters[ALARM] > 0:
                counters[ALARM] = 0
                state.recalls[: counters[BLOCKS]] = 0
        else:
            miss(state, settings, x, scale, h)
        winners[r] = slot
        counters[SEEN] += 1
    return X.shape[0]


def new_settings(
    n_slots: int,
    vigilance: float,
    recall_vigilance: float | None,
    alarm_limit: int,
    recall_limit: int,
    commit_limit: int,
    rate_decay: float,
    counters: str,
    epsilon: float,
) -> VigilanceSettings:
    """Settings for the kernel."""
    return VigilanceSettings(
        int(n_slots),
        float(vigilance),
        float(vigilance if recall_vigilance is None else recall_vigilance),
        int(alarm_limit),
        int(recall_limit),
        int(commit_limit),
        float(rate_decay),
        counters == "consecutive",
        epsilon,
        h=np.empty(n_slots),
    )


def random_slots(n: int, n_features: int, init: str, dtype: np.dtype[Any], rng: np.random.Generator) -> FloatArray:
    """Slots before they have learned anything: random directions."""
    slots = rng.random((n, n_features)) if init == "uniform" else rng.standard_normal((n, n_features))
    return (slots / np.maximum(np.linalg.norm(slots, axis=1, keepdims=True), 1e-300)).astype(dtype)


def new_state(
    n_slots: int, n_features: int, init: str, dtype: np.dtype[Any], learning_rate: float, rng: np.random.Generator
) -> VigilanceState:
    """The state before the first sample."""
    blocks = 4
    units = new_units(blocks * n_slots, n_features, dtype, learning_rate, n_own=len(OWN_COUNTERS))
    units.prototypes[:] = random_slots(blocks * n_slots, n_features, init, dtype, rng)
    units.counters[UNITS], units.counters[BLOCKS] = n_slots, 1
    derived = derive(n_slots, units.prototypes, units.wins)
    return VigilanceState(*units, recalls=np.zeros(blocks, np.int64), **derived)


def derive(n_slots: int, prototypes: FloatArray, wins: IntArray) -> dict[str, Any]:
    """What follows from the prototypes, with no block sketched yet."""
    blocks, n_features = len(prototypes) // n_slots, prototypes.shape[1]
    basis = settled(fit_basis(prototypes, wins > 0, blocks))
    return {
        "basis": basis,
        "sketches": room((len(prototypes), len(basis) + 1), prototypes.dtype),
        "centres": room((blocks, len(basis) + 1), prototypes.dtype),
        "radii": np.full(blocks, NOT_SKETCHED),
        "middles": room((blocks if n_slots >= WORTH_SURROUNDING else 0, n_features), prototypes.dtype),
        "reaches": np.zeros(blocks),
    }


def layout(capacity: int, n_slots: int) -> dict[str, Any]:
    """Shape and type of what the state has beyond that of every model and what is derived."""
    return {"recalls": ((capacity // n_slots,), np.int64)}


def check_state(state: VigilanceState, n_slots: int) -> None:
    """Raise ValueError unless this is a state that learning could have led to."""
    blocks, pointer = state.counters[BLOCKS], state.counters[POINTER]
    if len(state.prototypes) != len(state.recalls) * n_slots or not 1 <= blocks <= len(state.recalls):
        raise ValueError(f"{blocks} blocks of {n_slots} slots do not fit {len(state.prototypes)} units")
    if state.counters[UNITS] != blocks * n_slots or not 0 <= pointer < blocks:
        raise ValueError(f"block {pointer} of {blocks} is in use, with {state.counters[UNITS]} units in all")


def with_room(
    state: VigilanceState, n_slots: int, init: str, learning_rate: float, rng: np.random.Generator
) -> VigilanceState:
    """The same state with room for another block."""
    blocks = len(state.recalls)
    if state.counters[BLOCKS] < blocks:
        return state
    rows, n_features = 2 * blocks * n_slots, state.prototypes.shape[1]
    prototypes = grown(state.prototypes, rows)
    prototypes[rows // 2 :] = random_slots(rows // 2, n_features, init, prototypes.dtype, rng)
    wins = grown(state.wins, rows)
    if blocks <= LAST_FIT:
        derived = derive(n_slots, prototypes, wins)
    else:
        derived = {name: grown(getattr(state, name), 2 * len(getattr(state, name))) for name in DERIVED[1:]}
        derived["radii"][blocks:] = NOT_SKETCHED
    return state._replace(
        prototypes=prototypes,
        rates=grown(state.rates, rows, learning_rate),
        wins=wins,
        recalls=grown(state.recalls, 2 * blocks),
        **derived,
    )


def sketch_all(state: VigilanceState, settings: VigilanceSettings) -> None:
    """Sketch every block that waits, as a search for nothing does."""
    if state.counters[BLOCKS] > WORTH_IT:
        nothing = settings._replace(recall_vigilance=np.inf)
        find_by_sketches(state, nothing, state.prototypes[0], 1.0, nothing.h)


def match(
    state: VigilanceState, X: FloatArray, prototypes: FloatArray, competes: BoolArray, epsilon: float, winners: IntArray
) -> bool:
    """Find the winners by sketches, if there are enough of them for it to pay; tell whether it was done."""
    blocks, n = state.counters[BLOCKS], len(prototypes)
    if blocks <= WORTH_IT:
        return False
    ready = np.repeat(state.radii[:blocks] >= 0.0, n // blocks)
    if ready.mean() <= 0.9:
        return False
    most_similar_sketched(X, prototypes, competes, epsilon, state.basis, state.sketches[:n], ready, winners)
    return True
