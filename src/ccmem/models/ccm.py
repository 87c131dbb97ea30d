"""Continual competitive memory (CCM): blocks of slots, an alarm for the new, recall of the old.

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

>>> import numpy as np
>>> memory = CCM(n_slots=1, alarm_limit=1, recall_limit=1, commit_limit=0, random_state=0)
>>> a, b = np.array([[1.0, 0.0, 0.0]]), np.array([[0.0, 0.0, 1.0]])
>>> memory.partial_fit(np.repeat(a, 40, axis=0)).partial_fit(np.repeat(b, 40, axis=0)).n_blocks_
2
>>> memory.partial_fit(np.repeat(a, 40, axis=0)).events_        # a comes back: recalled, no third block
[Event(kind='new_block', step=41, from_block=0, to_block=1, count=2),
 Event(kind='recall', step=81, from_block=1, to_block=0, count=2)]
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from ccmem import _naive, noticing
from ccmem._jit import kernel
from ccmem._typing import BoolArray, FloatArray, IntArray
from ccmem._validation import Rule, choice, integer, number, optional
from ccmem.base import REJECTED, CompetitiveMemory
from ccmem.competition import dot, dots, dots_and_square
from ccmem.memory import JOURNALED, NEW_BLOCK, OWN, RECALL, SEEN, UNITS, Event, grown, new_units, note, room, settled
from ccmem.models import adaptive
from ccmem.prediction import most_similar_sketched
from ccmem.sketch import (
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
from ccmem.update import count_win, renormalising_move

BLOCKS, POINTER, ALARM = OWN, OWN + 1, OWN + 2
"""CCM's own places in ``counters``."""


def naive(X: FloatArray, first_blocks: list[FloatArray], vigilance: float, recall_vigilance: float, alarm_limit: int,
          recall_limit: int, commit_limit: int, learning_rate: float, rate_decay: float, counters: str,
          epsilon: float = 1e-5) -> dict[str, Any]:  # fmt: skip
    """The algorithm above, read aloud; ``first_blocks`` are the random slots, one array per block to be made."""
    n_slots = len(first_blocks[0])
    M, v, C = [first_blocks[0].copy()], [[learning_rate] * n_slots], [[0] * n_slots]
    t, a, r = 0, 0, [0]
    winners, events = [], []
    for step, x in enumerate(X):
        scale = _naive.unit_scale(x, epsilon)
        h = [_naive.dot(m, x) * scale for m in M[t]]
        for i in sorted(range(n_slots), key=lambda i: (-h[i], i)):
            if h[i] > vigilance or C[t][i] <= commit_limit:
                keep, gain = X.dtype.type(1.0 - v[t][i]), X.dtype.type(v[t][i] * scale)
                M[t][i] = _naive.renormalised(keep * M[t][i] + gain * x, epsilon)
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
                if m != t and any(_naive.dot(M[m][j], x) * scale > recall_vigilance for j in used):
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
        "prototypes_": np.concatenate(M), "learning_rates_": np.concatenate(v), "win_counts_": np.concatenate(C),
        "winners": winners, "n_blocks_": len(M), "task_pointer_": t, "alarm_": a,
        "recall_counts_": r, "events_": events,
    }  # fmt: skip


class CCMState(NamedTuple):
    prototypes: FloatArray
    """Slots of all blocks, one block after the other; always with one unused block of random slots at hand."""
    rates: FloatArray
    wins: IntArray
    counters: IntArray
    journal: IntArray
    recalls: IntArray
    """r, one entry a block."""
    basis: FloatArray
    """From here on, what lets a miss pass over most blocks: derived from the prototypes, see :mod:`ccmem.sketch`."""
    sketches: FloatArray
    """One row a slot."""
    centres: FloatArray
    """Ball around the sketches of a block; stale for the block in use, which is never asked."""
    radii: FloatArray
    middles: FloatArray
    """Ball around the slots of a block themselves (none where blocks are so small that it would not pay)."""
    reaches: FloatArray


class CCMSettings(NamedTuple):
    n_slots: int
    vigilance: float
    recall_vigilance: float
    alarm_limit: int
    recall_limit: int
    commit_limit: int
    rate_decay: float
    consecutive: bool
    epsilon: float


@kernel
def search(state: CCMState, settings: CCMSettings, h: FloatArray, scale: float) -> int:
    """The slot of the block in use that learns a sample, from its products ``h`` with all of them; or REJECTED."""
    start = state.counters[POINTER] * settings.n_slots
    best, best_match = 0, -np.inf
    for k in range(settings.n_slots):
        match = h[k] * scale
        if match > best_match:
            best, best_match = k, match
    if best_match > settings.vigilance:
        return start + best
    spare, spare_match = REJECTED, -np.inf
    for k in range(settings.n_slots):
        if state.wins[start + k] <= settings.commit_limit and h[k] * scale > spare_match:
            spare, spare_match = start + k, h[k] * scale
    return spare


@kernel
def find_by_sketches(state: CCMState, settings: CCMSettings, x: FloatArray, scale: float, h: FloatArray) -> int:
    """As :func:`find_in_long_term`, but blocks and slots whose sketches rule out a match are passed over."""
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


@kernel
def find_in_long_term(state: CCMState, settings: CCMSettings, x: FloatArray, scale: float, h: FloatArray) -> int:
    """The first block, other than the one in use, with a slot that matches ``x``; or REJECTED.

    A large memory is asked through its sketches.
    """
    n_slots, threshold = settings.n_slots, settings.recall_vigilance
    if state.counters[BLOCKS] > WORTH_IT:
        return find_by_sketches(state, settings, x, scale, h)
    for block in range(state.counters[BLOCKS]):
        if block != state.counters[POINTER]:
            start = block * n_slots
            dots(state.prototypes, start, start + n_slots, x, h)
            for k in range(n_slots):
                if h[k] * scale > threshold and state.wins[start + k] > 0:
                    return block
    return REJECTED


@kernel
def miss(state: CCMState, settings: CCMSettings, x: FloatArray, scale: float, h: FloatArray) -> None:
    """Count a sample that no slot of the block in use would learn; change blocks if it is one too many."""
    counters, recalls = state.counters, state.recalls
    counters[ALARM] += 1
    pointer, blocks = counters[POINTER], counters[BLOCKS]
    hit = find_in_long_term(state, settings, x, scale, h)
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


@kernel
def learn(state: CCMState, settings: CCMSettings, X: FloatArray, winners: IntArray) -> int:
    counters = state.counters
    h = np.empty(settings.n_slots)
    for r in range(X.shape[0]):
        if counters[BLOCKS] == state.recalls.shape[0] or counters[JOURNALED] == state.journal.shape[0]:
            return r
        x = X[r]
        start = counters[POINTER] * settings.n_slots
        square = dots_and_square(state.prototypes, start, start + settings.n_slots, x, h)
        scale = 1.0 / (np.sqrt(square) + settings.epsilon)
        slot = search(state, settings, h, scale)
        if slot != REJECTED:
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


class CCM(CompetitiveMemory):
    """Continual competitive memory: learns task after task, notices by itself when one begins or comes back.

    Parameters
    ----------
    n_slots : int, default=25
        Slots in a block (d_mem; the paper's 125 units over 5 tasks).
    novelty : "vigilance" or "signature", default="vigilance"
        What makes a sample new: that no slot is similar enough (the paper's model, its thresholds to suit the data), or
        that the mean of recent samples differs from that of the block (no thresholds; see
        :mod:`ccmem.models.adaptive`). With "signature", ``n_slots``, ``learning_rate``, ``false_alarm_every`` and
        ``max_units`` are all that counts, and nothing is random.
    false_alarm_every : float, default=1e6
        For "signature": about how many samples of one task may pass before it is mistaken for another. More makes
        changes a little harder to notice.
    max_units : int or None, default=None
        For "signature": bound on the number of units. Blocks then grow beyond ``n_slots`` while there is room, and the
        cheapest units of the largest blocks are merged when there is none. None: ``n_slots`` a block, and no bound.
    vigilance : float, default=0.8
        A sample must be more similar than this to a slot to be learned by it (rho).
    recall_vigilance : float or None, default=None
        The same for slots of waiting blocks (rho_r); None means: as ``vigilance``.
    alarm_limit : int, default=20
        More misses than this make a new block (a_theta).
    recall_limit : int, default=30
        More hits than this in one waiting block bring it back (r_theta). With consecutive counters it must not exceed
        ``alarm_limit`` for a recall to be possible at all.
    commit_limit : int, default=60
        A slot with no more wins than this is open: it learns a sample that no slot matches (C_theta).
    learning_rate : float, default=0.35
        Part of the way to the sample that a slot moves at its first win (upsilon_0).
    rate_decay : float, default=0.998
        What a slot's rate is multiplied with at each win (gamma_upsilon).
    counters : "consecutive" or "cumulative", default="consecutive"
        Whether misses and recall hits must come in a row, as the paper's text has it and as its tables need it, or add
        up until a block changes, as its algorithm is printed.
    init : "uniform" or "normal", default="uniform"
        How the slots of a new block are drawn before they are given unit length: uniform in [0, 1), which fits the
        paper's tables best and suits non-negative data, or standard normal.
    random_state : int, Generator, RandomState or None, default=None
        Where the random slots come from.

    Attributes
    ----------
    n_blocks_ : int
        How many blocks there are.
    task_pointer_ : int
        The block in use.
    unit_blocks_ : array of shape (n_units_,)
        The block of every slot.
    events_ : list of Event
        The latest new blocks and recalls, oldest first.
    alarm_, recall_counts_
        Misses counted towards a new block, and hits of every block towards a recall. With ``novelty="signature"``,
        ``alarm_`` counts the samples since suspicion began and there are no hits.
    prototypes_, win_counts_, learning_rates_, n_units_, n_samples_seen_
        What the memory holds; see :class:`ccmem.base.CompetitiveMemory`. A slot with no wins has not been used yet.
    """

    _rules: ClassVar[dict[str, Rule]] = {
        "n_slots": integer(1),
        "novelty": choice("vigilance", "signature"),
        "false_alarm_every": number(100.0, 1e15),
        "max_units": optional(integer(1)),
        "vigilance": number(-1.0, 1.0),
        "recall_vigilance": optional(number(-1.0, 1.0)),
        "alarm_limit": integer(0),
        "recall_limit": integer(0),
        "commit_limit": integer(0),
        "learning_rate": number(0.0, 1.0, open_below=True),
        "rate_decay": number(0.0, 1.0, open_below=True),
        "counters": choice("consecutive", "cumulative"),
        "init": choice("uniform", "normal"),
    }
    _shape_parameters = ("n_slots", "novelty", "max_units")
    _tuning: ClassVar[adaptive.Tuning] = adaptive.Tuning()

    def __init__(self, n_slots: int = 25, *, vigilance: float = 0.8, recall_vigilance: float | None = None,
                 alarm_limit: int = 20, recall_limit: int = 30, commit_limit: int = 60, learning_rate: float = 0.35,
                 rate_decay: float = 0.998, counters: str = "consecutive", init: str = "uniform",
                 novelty: str = "vigilance", false_alarm_every: float = 1e6, max_units: int | None = None,
                 random_state: Any = None) -> None:  # fmt: skip
        self.n_slots = n_slots
        self.vigilance = vigilance
        self.recall_vigilance = recall_vigilance
        self.alarm_limit = alarm_limit
        self.recall_limit = recall_limit
        self.commit_limit = commit_limit
        self.learning_rate = learning_rate
        self.rate_decay = rate_decay
        self.counters = counters
        self.init = init
        self.novelty = novelty
        self.false_alarm_every = false_alarm_every
        self.max_units = max_units
        self.random_state = random_state

    def task_pointers(self, X: Any) -> IntArray:
        """The block that each row belongs to: that of its best matching slot (GetTaskPointer)."""
        return self.unit_blocks_[self.predict(X)]

    def pool_task(self, X: Any) -> int:
        """The block that a pool of rows belongs to: the most frequent of its task pointers (t_M)."""
        return int(np.bincount(self.task_pointers(X)).argmax())

    @property
    def n_blocks_(self) -> int:
        """How many blocks there are."""
        return int(self._started().counters[BLOCKS])

    @property
    def task_pointer_(self) -> int:
        """The block in use."""
        return int(self._started().counters[POINTER])

    @property
    def alarm_(self) -> int:
        """Misses counted towards a new block."""
        return int(self._started().counters[ALARM])

    @property
    def recall_counts_(self) -> IntArray:
        """Hits of every block counted towards a recall, a copy."""
        if isinstance(self._started(), adaptive.SignatureState):
            return np.zeros(self.n_blocks_, np.int64)
        return self._state.recalls[: self.n_blocks_].copy()

    @property
    def unit_blocks_(self) -> IntArray:
        """The block of every slot."""
        if isinstance(self._started(), adaptive.SignatureState):
            return self._state.unit_blocks[: self.n_units_].copy()
        return np.arange(self.n_units_) // self.n_slots

    @property
    def events_(self) -> list[Event]:
        """The latest new blocks and recalls, oldest first."""
        self._started()
        return list(self._history)

    def _score(self, X: FloatArray, prototypes: FloatArray, out: FloatArray) -> None:
        super()._score(X, prototypes, out)
        out[:, ~self._able()] = -1.0  # the least there is, for slots that never learned

    def _match(self, X: FloatArray, prototypes: FloatArray, competes: BoolArray, winners: IntArray) -> None:
        if not self._signed and self.n_blocks_ > WORTH_IT:
            state, n = self._state, len(prototypes)
            ready = np.repeat(state.radii[: self.n_blocks_] >= 0.0, self.n_slots)
            if ready.mean() > 0.9:
                most_similar_sketched(
                    X, prototypes, competes, self._epsilon, state.basis, state.sketches[:n], ready, winners
                )
                return
        super()._match(X, prototypes, competes, winners)

    # The two forms differ in their state, and so in all that follows ------------------------------------------------

    @property
    def _signed(self) -> bool:
        return self.novelty == "signature"

    _takes_labels = _signed

    @property
    def _state_type(self) -> type:  # type: ignore[override]
        return adaptive.SignatureState if self._signed else CCMState

    @property
    def _own_counters(self) -> tuple[str, ...]:  # type: ignore[override]
        return noticing.OWN_COUNTERS if self._signed else ("blocks", "pointer", "alarm")

    @property
    def _per_column(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("prototypes", "means", "vectors") if self._signed else ("prototypes", "basis", "middles")

    @property
    def _derived(self) -> tuple[str, ...]:  # type: ignore[override]
        return () if self._signed else ("basis", "sketches", "centres", "radii", "middles", "reaches")

    @staticmethod
    def _learn_kernel(state: Any, settings: Any, X: FloatArray, winners: IntArray) -> int:
        if isinstance(state, adaptive.SignatureState):
            return adaptive.learn(state, settings, X, winners)
        return learn(state, settings, X, winners)

    def _able(self) -> BoolArray:
        return self._state.wins[: self.n_units_] > 0

    def _random_slots(
        self, n_blocks: int, n_features: int, dtype: np.dtype[Any], rng: np.random.Generator
    ) -> FloatArray:
        shape = (n_blocks * self.n_slots, n_features)
        slots = rng.random(shape) if self.init == "uniform" else rng.standard_normal(shape)
        return (slots / np.maximum(np.linalg.norm(slots, axis=1, keepdims=True), 1e-300)).astype(dtype)

    def _new_state(self, n_features: int, dtype: np.dtype[Any], rng: np.random.Generator) -> Any:
        if self.novelty == "signature":
            return adaptive.new_state(self.n_slots, self.max_units, n_features, dtype, self.learning_rate)
        if self.max_units is not None:
            raise ValueError(
                f"CCM: max_units={self.max_units} needs novelty='signature'; blocks of the fixed form do not merge"
            )
        blocks = 4
        units = new_units(blocks * self.n_slots, n_features, dtype, self.learning_rate, n_own=3)
        units.prototypes[:] = self._random_slots(blocks, n_features, dtype, rng)
        units.counters[UNITS], units.counters[BLOCKS] = self.n_slots, 1
        return CCMState(*units, recalls=np.zeros(blocks, np.int64), **self._derive(units.prototypes, units.wins))

    def _derive(self, prototypes: FloatArray, wins: IntArray) -> dict[str, Any]:
        if self._signed:
            return {}
        blocks, n_features = len(prototypes) // self.n_slots, prototypes.shape[1]
        basis = settled(fit_basis(prototypes, wins > 0, blocks))
        return {
            "basis": basis,
            "sketches": room((len(prototypes), len(basis) + 1), prototypes.dtype),
            "centres": room((blocks, len(basis) + 1), prototypes.dtype),
            "radii": np.full(blocks, NOT_SKETCHED),
            "middles": room((blocks if self.n_slots >= WORTH_SURROUNDING else 0, n_features), prototypes.dtype),
            "reaches": np.zeros(blocks),
        }

    def _layout(self, capacity: int, n_features: int, dtype: np.dtype[Any]) -> dict[str, Any]:
        layout = super()._layout(capacity, n_features, dtype)
        if self._signed:
            return {**layout, **adaptive.layout(capacity, n_features, dtype)}
        return {**layout, "recalls": ((capacity // self.n_slots,), np.int64)}

    def _check_state(self, state: Any) -> None:
        if self._signed:
            adaptive.check_state(state, self.max_units, self._tuning)
            return
        blocks, pointer = state.counters[BLOCKS], state.counters[POINTER]
        if len(state.prototypes) != len(state.recalls) * self.n_slots or not 1 <= blocks <= len(state.recalls):
            raise ValueError(f"{blocks} blocks of {self.n_slots} slots do not fit {len(state.prototypes)} units")
        if state.counters[UNITS] != blocks * self.n_slots or not 0 <= pointer < blocks:
            raise ValueError(f"block {pointer} of {blocks} is in use, with {state.counters[UNITS]} units in all")

    def _make_room(self) -> None:
        state = self._state
        if isinstance(state, adaptive.SignatureState):
            self._state = adaptive.with_room(state)
            return
        blocks = len(state.recalls)
        if state.counters[BLOCKS] < blocks:
            return
        rows, n_features = 2 * blocks * self.n_slots, state.prototypes.shape[1]
        prototypes = grown(state.prototypes, rows)
        prototypes[rows // 2 :] = self._random_slots(blocks, n_features, prototypes.dtype, self._rng)
        wins = grown(state.wins, rows)
        if blocks <= LAST_FIT:
            derived = self._derive(prototypes, wins)
        else:
            derived = {name: grown(getattr(state, name), 2 * len(getattr(state, name))) for name in self._derived[1:]}
            derived["radii"][blocks:] = NOT_SKETCHED
        self._state = state._replace(
            prototypes=prototypes,
            rates=grown(state.rates, rows, self.learning_rate),
            wins=wins,
            recalls=grown(state.recalls, 2 * blocks),
            **derived,
        )

    def _settings(self) -> Any:
        if self.novelty == "signature":
            return adaptive.new_settings(
                self.n_slots, self.max_units, self.learning_rate, self.false_alarm_every, self._tuning
            )
        recall_vigilance = self.vigilance if self.recall_vigilance is None else self.recall_vigilance
        return CCMSettings(
            int(self.n_slots), float(self.vigilance), float(recall_vigilance), int(self.alarm_limit),
            int(self.recall_limit), int(self.commit_limit), float(self.rate_decay), self.counters == "consecutive",
            self._epsilon,
        )  # fmt: skip
