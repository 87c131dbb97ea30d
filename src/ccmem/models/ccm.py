"""Continual competitive memory (CCM), the paper's model: blocks of slots, an alarm for new tasks, recall of old ones.

The memory is a list of blocks with the same number of slots. The task pointer t is the index of the current block
(short-term memory); all others wait (long-term memory). For a sample x (paper, algorithm 2):

    x' = x / (|x| + e),   h[i] = M_t[i] . x'
    search    slots of block t from most to least similar, up to the first with h > rho or with C <= C_theta wins
    hit       M[i] <- (M[i] + v[i] (x' - M[i])) / (|...| + e),   v[i] <- decay * v[i],   C[i] <- C[i] + 1
    miss      alarm a <- a + 1; the first other block with a slot more similar than rho_r gets a hit in r
              if max r > r_theta:   recall: t <- argmax r,        a <- 0, r <- 0
              elif a > a_theta:     t <- a new block,             a <- 0, r <- 0

The sample of a miss is not learned. The search ends at the most similar slot if that slot matches, otherwise at the
most similar open slot (C <= C_theta), so no sorting is needed. Ties go to the lowest index. With ``fair``, which is not
in the paper, the slot of least (1 - h[i]) C[i] among those with h > rho learns, so that slots win about equally often.

Source: A. Ororbia, "Continual Competitive Memory: A Neural System for Online Task-Free Lifelong Learning", 2021.
Reference in plain numpy: ``tests/naive/ccm.py``. Departures, each because the printed form contradicts the text or
itself:

* ``counters="consecutive"``: a and r also return to 0 at every hit, as the text says ("more than r_theta consecutive
  hits"). This reproduces the paper's tables. ``counters="cumulative"`` is the algorithm as printed, where only a recall
  or a new block resets them; on Split MNIST it makes about five times as many blocks.
* The recall loop as printed mixes its indices; here the recalled block is argmax r, as the text says.
* With consecutive counters r can never exceed a, so a recall needs recall_limit <= alarm_limit. With the paper's MNIST
  settings (20 and 30) nothing is ever recalled.
* Slots that never learned are random directions: they compete for a sample in their own block, but neither in recall
  nor at test time.

>>> import numpy as np
>>> memory = CCM(n_slots=1, alarm_limit=1, recall_limit=1, commit_limit=0, random_state=0)
>>> a, b = np.array([[1.0, 0.0, 0.0]]), np.array([[0.0, 0.0, 1.0]])
>>> memory.partial_fit(np.repeat(a, 40, axis=0)).partial_fit(np.repeat(b, 40, axis=0)).n_blocks_
2
>>> memory.partial_fit(np.repeat(a, 40, axis=0)).events_        # a comes back: recalled, no third block
[Event(kind='new_block', step=41, from_block=0, to_block=1, count=2, uncertainty=1),
 Event(kind='recall', step=81, from_block=1, to_block=0, count=2, uncertainty=1)]
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ccmem.base.arrays import Array
from ccmem.base.memory import REJECTED
from ccmem.core.codes import NEW_BLOCK, RECALL
from ccmem.core.locking import reading
from ccmem.core.parameters import Parameter, boolean, choice, integer, number, optional
from ccmem.core.state import JOURNALED, SEEN, UNITS
from ccmem.core.typing import FloatArray, IntArray
from ccmem.kernels.competition import dots, dots_and_square, highest
from ccmem.kernels.jit import kernel_in_place
from ccmem.kernels.journal import note
from ccmem.kernels.update import count_win, renormalising_move
from ccmem.models._blocks import ALARM, BLOCKS, POINTER, BlockMemory

MANY = 10_000
"""Number of samples after which a memory with almost no rejections warns."""


class CCMState(NamedTuple):
    prototypes: FloatArray
    """Slots of all blocks, block by block, plus one reserve block of random slots."""
    rates: FloatArray
    wins: IntArray
    counters: IntArray
    journal: IntArray
    recalls: IntArray
    """Recall hits r, one entry per block."""


class CCMSettings(NamedTuple):
    n_slots: int
    vigilance: float
    recall_vigilance: float
    alarm_limit: int
    recall_limit: int
    commit_limit: int
    rate_decay: float
    consecutive: bool
    fair: bool
    epsilon: float
    h: FloatArray
    """Scratch space: similarity to every slot of a block."""


@kernel_in_place
def search(h: FloatArray, wins: IntArray, vigilance: float, commit_limit: int, fair: bool) -> int:
    """Return the slot that learns a sample, given the similarity ``h`` and the wins of each slot; or REJECTED."""
    best = highest(h, h.shape[0])
    if h[best] > vigilance:
        if fair:
            for k in range(h.shape[0] - 1, -1, -1):  # ties go to the lowest index
                if h[k] > vigilance and (1.0 - h[k]) * wins[k] <= (1.0 - h[best]) * wins[best]:
                    best = k
        return best
    spare, spare_match = REJECTED, -np.inf
    for k in range(h.shape[0]):
        if wins[k] <= commit_limit and h[k] > spare_match:
            spare, spare_match = k, h[k]
    return spare


@kernel_in_place
def find_waiting(state: CCMState, settings: CCMSettings, x: FloatArray, scale: float, h: FloatArray) -> int:
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


@kernel_in_place
def miss(state: CCMState, settings: CCMSettings, x: FloatArray, scale: float, h: FloatArray) -> None:
    """Count a sample that no slot of the current block learns; switch blocks if a limit is exceeded."""
    counters, recalls = state.counters, state.recalls
    counters[ALARM] += 1
    pointer, blocks = counters[POINTER], counters[BLOCKS]
    hit = find_waiting(state, settings, x, scale, h)
    if hit != REJECTED:
        recalls[hit] += 1
    recalled = 0
    for block in range(1, blocks):
        if recalls[block] > recalls[recalled]:
            recalled = block
    if recalls[recalled] > settings.recall_limit:
        hits = recalls[recalled]
        note(counters, state.journal, RECALL, pointer, recalled, hits, counters[ALARM] - hits + 1)
        counters[POINTER] = recalled
    elif counters[ALARM] > settings.alarm_limit:
        note(counters, state.journal, NEW_BLOCK, pointer, blocks, counters[ALARM], 1)
        counters[POINTER] = blocks
        counters[BLOCKS] += 1
        counters[UNITS] += settings.n_slots
    else:
        return
    counters[ALARM] = 0
    recalls[:blocks] = 0


@kernel_in_place
def learn(state: CCMState, settings: CCMSettings, X: FloatArray, winners: IntArray) -> int:
    """Learn rows in order, until a new block does not fit into the arrays."""
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
        wins = state.wins[start : start + settings.n_slots]
        slot = search(h, wins, settings.vigilance, settings.commit_limit, settings.fair)
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


def random_slots(like: FloatArray, init: str, rng: np.random.Generator) -> FloatArray:
    """Return untrained slots, which are random directions, of the shape and type of an array."""
    slots = rng.random(like.shape) if init == "uniform" else rng.standard_normal(like.shape)
    return (slots / np.maximum(np.linalg.norm(slots, axis=1, keepdims=True), 1e-300)).astype(like.dtype)


class CCM(BlockMemory):
    """Continual competitive memory: learns tasks in sequence, and detects new and returning tasks.

    This is the paper's model; its thresholds must be tuned to the data. :class:`ccmem.AdaptiveCCM` needs no thresholds.

    Attributes
    ----------
    n_blocks_, task_pointer_, unit_blocks_, events_
        Blocks and their history; see :class:`ccmem.models._blocks.BlockMemory`.
    alarm_, recall_counts_
        Misses counted towards a new block, and hits of every block towards a recall.
    prototypes_, win_counts_, learning_rates_, n_units_, n_samples_seen_
        The content of the memory; see :class:`ccmem.base.memory.CompetitiveMemory`. A slot with no wins is unused.
    """

    parameters: ClassVar[dict[str, Parameter]] = {
        "n_slots": Parameter(
            25, integer(1), fixed=True, about="Slots in a block (d_mem; the paper's 125 units over 5 tasks)."
        ),
        "vigilance": Parameter(
            0.8, number(-1.0, 1.0), about="Similarity that a slot must exceed to match a sample (rho)."
        ),
        "recall_vigilance": Parameter(
            None,
            optional(number(-1.0, 1.0)),
            about="Similarity that a slot of a waiting block must exceed to match (rho_r); None means vigilance.",
        ),
        "alarm_limit": Parameter(20, integer(0), about="Largest number of misses without a new block (a_theta)."),
        "recall_limit": Parameter(
            30, integer(0), about="Largest number of hits in a waiting block without a recall (r_theta)."
        ),
        "commit_limit": Parameter(
            60,
            integer(0),
            about="Largest number of wins of an open slot; these learn samples that no slot matches (C_theta).",
        ),
        "learning_rate": Parameter(
            0.35,
            number(0.0, 1.0, open_below=True),
            about="Fraction of the distance to the sample that a slot moves at its first win (upsilon_0).",
        ),
        "rate_decay": Parameter(
            0.998, number(0.0, 1.0, open_below=True), about="Factor of a slot's rate at each win (gamma_upsilon)."
        ),
        "counters": Parameter(
            "consecutive",
            choice("consecutive", "cumulative"),
            about="Misses and recall hits that count: consecutive ones, or all until the block changes, as printed.",
        ),
        "fair": Parameter(False, boolean(), about="True if similarity counts less the more often a slot has won."),
        "init": Parameter(
            "uniform",
            choice("uniform", "normal"),
            about="Slots of a new block before they are scaled: uniform in [0, 1), which fits the paper's tables best "
            "and suits non-negative data, or standard normal.",
        ),
        "random_state": Parameter(None, (lambda value: True, "a seed or generator"), about="Seed of the random slots."),
    }
    _state_type = CCMState
    _arrays: ClassVar[dict[str, Array]] = {"recalls": Array(lambda m, capacity: (capacity // m.n_slots,), np.int64)}
    _learn_kernel = staticmethod(learn)
    _not_pickled: ClassVar[tuple[str, ...]] = (*BlockMemory._not_pickled, "_has_said")

    @property
    @reading
    def unit_blocks_(self) -> IntArray:
        """Block of every slot."""
        return np.arange(self.n_units_) // self.n_slots

    @property
    @reading
    def recall_counts_(self) -> IntArray:
        """Hits of every block counted towards a recall, as a copy."""
        return self._started().recalls[: self.n_blocks_].copy()

    def _alarm_limit(self) -> int:
        return self.alarm_limit

    def _notify(self) -> None:
        super()._notify()
        if "_has_said" not in self.__dict__:
            self._say_what_cannot_happen()

    def _say_what_cannot_happen(self) -> None:
        """Warn once if the parameters make recall or change detection impossible."""
        state, text = self._state, ""
        if state.counters[BLOCKS] > 1:
            if self.counters == "consecutive" and self.recall_limit > self.alarm_limit:
                text = (
                    f"CCM cannot recall a block: with recall_limit={self.recall_limit} above "
                    f"alarm_limit={self.alarm_limit} a new one always comes first; lower recall_limit"
                )
        elif state.counters[SEEN] < MANY:
            return
        elif (rejected := int(state.counters[SEEN] - state.wins.sum())) <= self.alarm_limit // 2:
            text = (
                f"CCM has rejected {rejected} of {state.counters[SEEN]:,} samples, so that its alarm never came near "
                f"alarm_limit={self.alarm_limit}: nothing new can be noticed; raise vigilance={self.vigilance}"
            )
        self.__dict__["_has_said"] = True
        if text:
            warnings.warn(f"{text}, or use AdaptiveCCM, which has no thresholds", stacklevel=5)  # user's frame

    def _new_state(self, n_features: int, dtype: np.dtype[Any], rng: np.random.Generator) -> CCMState:
        state: CCMState = self._empty_state(4 * self.n_slots, n_features, dtype)
        state.prototypes[:] = random_slots(state.prototypes, self.init, rng)
        state.counters[UNITS], state.counters[BLOCKS] = self.n_slots, 1
        return state

    def _grow(self, row: FloatArray) -> None:
        rows = len(self._state.prototypes)
        super()._grow(row)
        self._state.prototypes[rows:] = random_slots(self._state.prototypes[rows:], self.init, self._rng)

    def _settings(self) -> CCMSettings:
        recall_vigilance = self.vigilance if self.recall_vigilance is None else self.recall_vigilance
        return CCMSettings(
            int(self.n_slots),
            float(self.vigilance),
            float(recall_vigilance),
            int(self.alarm_limit),
            int(self.recall_limit),
            int(self.commit_limit),
            float(self.rate_decay),
            self.counters == "consecutive",
            bool(self.fair),
            self._epsilon,
            h=np.empty(self.n_slots),
        )

    def _check_state(self, state: CCMState) -> None:
        blocks, pointer, n_slots = state.counters[BLOCKS], state.counters[POINTER], self.n_slots
        if len(state.prototypes) != len(state.recalls) * n_slots or not 1 <= blocks <= len(state.recalls):
            raise ValueError(f"{blocks} blocks of {n_slots} slots do not fit {len(state.prototypes)} units")
        if state.counters[UNITS] != blocks * n_slots or not 0 <= pointer < blocks:
            raise ValueError(f"block {pointer} of {blocks} is in use, with {state.counters[UNITS]} units in all")
