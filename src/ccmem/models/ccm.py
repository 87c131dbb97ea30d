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
from typing import Any, ClassVar

import numpy as np

from ccmem import ncl
from ccmem.base.memory import REJECTED
from ccmem.core.codes import NEW_BLOCK, RECALL
from ccmem.core.locking import reading
from ccmem.core.state import JOURNALED, SEEN, UNITS
from ccmem.core.typing import FloatArray, IntArray
from ccmem.kernels.competition import dots, dots_and_square, highest
from ccmem.kernels.jit import kernel_in_place
from ccmem.kernels.journal import note
from ccmem.kernels.update import renormalising_move
from ccmem.models._blocks import ALARM, BLOCKS, POINTER, BlockMemory
from ccmem.ncl import Parameter, boolean, choice, integer, number, optional

MANY = 10_000
"""Number of samples after which a memory with almost no rejections warns."""


@ncl.activation(
    whole=True,
    similarity=True,
    like=ncl.cosine,
    scratch={"scale": lambda model, capacity: np.empty(1), "epsilon": lambda model, capacity: float(model._epsilon)},
)
def similarities(state: Any, settings: Any, X: FloatArray, row: int, n: int) -> None:
    """Compute ``h = M_t x'`` for the slots of the current block; ``settings.scale[0]`` receives ``1 / (|x| + e)``."""
    h, start, backwards = settings.h, state.counters[POINTER] * settings.n_slots, state.counters[SEEN] % 2 == 1
    square = dots_and_square(state.prototypes, start, start + settings.n_slots, X, row, backwards, h)
    settings.scale[0] = 1.0 / (np.sqrt(square) + settings.epsilon)
    for k in range(settings.n_slots):
        h[k] *= settings.scale[0]


@kernel_in_place
def find_waiting(state: Any, settings: Any, x: FloatArray) -> int:
    """Return the first waiting block with a slot that matches ``x``, or REJECTED."""
    n_slots, wins, h, scale = settings.n_slots, state.wins, settings.h, settings.scale[0]
    for block in range(state.counters[BLOCKS]):
        if block != state.counters[POINTER]:
            start = block * n_slots
            dots(state.prototypes, start, start + n_slots, x, h)
            for k in range(n_slots):
                if h[k] * scale > settings.recalled_above and wins[start + k] > 0:
                    return block
    return REJECTED


@kernel_in_place
def miss(state: Any, settings: Any, x: FloatArray) -> None:
    """Count a sample that no slot of the current block learns; switch blocks if a limit is exceeded."""
    counters, recalls = state.counters, state.recalls
    counters[ALARM] += 1
    pointer, blocks = counters[POINTER], counters[BLOCKS]
    hit = find_waiting(state, settings, x)
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
def follow(state: Any, settings: Any, X: FloatArray, row: int, n: int, winner: int) -> bool:
    """Count a hit or a miss; return True if the journal is full."""
    if winner == REJECTED:
        miss(state, settings, X[row])
    elif settings.consecutive and state.counters[ALARM] > 0:
        state.counters[ALARM] = 0
        state.recalls[: state.counters[BLOCKS]] = 0
    return state.counters[JOURNALED] == state.journal.shape[0]


@ncl.competition(
    whole=True,
    state={"recalls": ncl.Array(lambda model, capacity: (capacity // model.n_slots,), np.int64)},
    scratch={
        "recalled_above": lambda model, capacity: float(
            model.vigilance if model.recall_vigilance is None else model.recall_vigilance
        ),
        "consecutive": lambda model, capacity: model.counters == "consecutive",
    },
    hooks={"after": follow},
)
def search(state: Any, settings: Any, n: int) -> int:
    """Select the slot of the current block that learns a sample, if there is one; ``state.recalls`` holds r."""
    h, n_slots, vigilance = settings.h, settings.n_slots, settings.vigilance
    start, wins = state.counters[POINTER] * n_slots, state.wins[state.counters[POINTER] * n_slots :]
    best = highest(h, n_slots)
    if h[best] > vigilance:
        if settings.fair:
            for k in range(n_slots - 1, -1, -1):  # ties go to the lowest index
                if h[k] > vigilance and (1.0 - h[k]) * wins[k] <= (1.0 - h[best]) * wins[best]:
                    best = k
    else:
        best, match = REJECTED, -np.inf
        for k in range(n_slots):
            if wins[k] <= settings.commit_limit and h[k] > match:
                best, match = k, h[k]
    settings.best[0] = start + best
    return 1 if best != REJECTED else 0


@ncl.update
def renormalising(state: Any, settings: Any, unit: int, x: FloatArray, amount: float) -> None:
    """Set ``M <- ((1 - amount) M + amount x') / (|...| + e)``."""
    renormalising_move(state.prototypes[unit], x, settings.scale[0], amount, settings.epsilon)


@ncl.growth(whole=True, gradual=True)
def by_blocks(state: Any, settings: Any, n: int, k: int) -> bool:
    """Return False: no sample becomes a unit; :func:`miss` adds blocks of random slots."""
    return False


def random_slots(like: FloatArray, init: str, rng: np.random.Generator) -> FloatArray:
    """Return untrained slots, which are random directions, of the shape and type of an array."""
    slots = rng.random(like.shape) if init == "uniform" else rng.standard_normal(like.shape)
    return (slots / np.maximum(np.linalg.norm(slots, axis=1, keepdims=True), 1e-300)).astype(like.dtype)


class CCM(BlockMemory, ncl.Model, learning_rate=0.35, rate_decay=0.998):
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

    activation = similarities
    competition = search
    update = renormalising
    growth = by_blocks
    parameters: ClassVar[dict[str, Parameter]] = {
        "n_slots": Parameter(
            25, integer(1), int, fixed=True, about="Slots in a block (d_mem; the paper's 125 units over 5 tasks)."
        ),
        "vigilance": Parameter(
            0.8, number(-1.0, 1.0), about="Similarity that a slot must exceed to match a sample (rho)."
        ),
        "recall_vigilance": Parameter(
            None,
            optional(number(-1.0, 1.0)),
            None,
            about="Similarity that a slot of a waiting block must exceed to match (rho_r); None means vigilance.",
        ),
        "alarm_limit": Parameter(20, integer(0), int, about="Largest number of misses without a new block (a_theta)."),
        "recall_limit": Parameter(
            30, integer(0), int, about="Largest number of hits in a waiting block without a recall (r_theta)."
        ),
        "commit_limit": Parameter(
            60,
            integer(0),
            int,
            about="Largest number of wins of an open slot; these learn samples that no slot matches (C_theta).",
        ),
        "counters": Parameter(
            "consecutive",
            choice("consecutive", "cumulative"),
            None,
            about="Misses and recall hits that count: consecutive ones, or all until the block changes, as printed.",
        ),
        "fair": Parameter(False, boolean(), bool, about="True if slots that won often are handicapped."),
        "init": Parameter(
            "uniform",
            choice("uniform", "normal"),
            None,
            about="Slots of a new block before they are scaled: uniform in [0, 1), which fits the paper's tables best "
            "and suits non-negative data, or standard normal.",
        ),
        "random_state": Parameter(
            None, (lambda value: True, "a seed or generator"), None, about="Seed of the random slots."
        ),
    }
    _not_pickled: ClassVar[tuple[str, ...]] = (*BlockMemory._not_pickled, "_composition", "_has_said")

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

    def _new_state(self, n_features: int, dtype: np.dtype[Any], rng: np.random.Generator) -> Any:
        state: Any = self._empty_state(4 * self.n_slots, n_features, dtype)
        state.prototypes[:] = random_slots(state.prototypes, self.init, rng)
        state.counters[UNITS], state.counters[BLOCKS] = self.n_slots, 1
        return state

    def _grow(self, row: FloatArray) -> None:
        rows = len(self._state.prototypes)
        super()._grow(row)
        self._state.prototypes[rows:] = random_slots(self._state.prototypes[rows:], self.init, self._rng)

    def _check_state(self, state: Any) -> None:
        blocks, pointer, n_slots = state.counters[BLOCKS], state.counters[POINTER], self.n_slots
        if len(state.prototypes) != len(state.recalls) * n_slots or not 1 <= blocks <= len(state.recalls):
            raise ValueError(f"{blocks} blocks of {n_slots} slots do not fit {len(state.prototypes)} units")
        if state.counters[UNITS] != blocks * n_slots or not 0 <= pointer < blocks:
            raise ValueError(f"block {pointer} of {blocks} is in use, with {state.counters[UNITS]} units in all")
