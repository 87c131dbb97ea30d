"""Continual competitive memory (CCM): blocks of slots, an alarm for the new, recall of the old.

Memory is a list of blocks of slots; the task pointer t names the block in use (short-term memory), all others wait
(long-term memory). The slots of the block in use compete for every sample, and the most similar one moves towards it.
When samples stop fitting the block, one that waits is recalled if they fit that, and a new one begins if they fit none.

What "fitting" means comes in two forms: the paper's, similarity beyond a threshold (:mod:`ccmem.models.vigilance`), and
one without thresholds, a block's mean and variance (:mod:`ccmem.models.adaptive.kernels`).

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

from typing import Any, ClassVar

import numpy as np

from ccmem._typing import BoolArray, FloatArray, IntArray
from ccmem.base import CompetitiveMemory
from ccmem.memory import Event
from ccmem.models import vigilance
from ccmem.models.adaptive import change
from ccmem.models.adaptive import kernels as adaptive
from ccmem.models.vigilance import ALARM, BLOCKS, POINTER
from ccmem.parameters import Rule, choice, integer, number, optional


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

    def __init__(
        self,
        n_slots: int = 25,
        *,
        vigilance: float = 0.8,
        recall_vigilance: float | None = None,
        alarm_limit: int = 20,
        recall_limit: int = 30,
        commit_limit: int = 60,
        learning_rate: float = 0.35,
        rate_decay: float = 0.998,
        counters: str = "consecutive",
        init: str = "uniform",
        novelty: str = "vigilance",
        false_alarm_every: float = 1e6,
        max_units: int | None = None,
        random_state: Any = None,
    ) -> None:
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
        found = not self._signed and vigilance.match(self._state, X, prototypes, competes, self._epsilon, winners)
        if not found:
            super()._match(X, prototypes, competes, winners)

    # The two forms differ in their state, and so in all that follows ------------------------------------------------

    @property
    def _signed(self) -> bool:
        return self.novelty == "signature"

    _takes_labels = _signed

    @property
    def _state_type(self) -> type:  # type: ignore[override]
        return adaptive.SignatureState if self._signed else vigilance.VigilanceState

    @property
    def _own_counters(self) -> tuple[str, ...]:  # type: ignore[override]
        return (change if self._signed else vigilance).OWN_COUNTERS

    @property
    def _per_column(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("prototypes", "means", "vectors") if self._signed else vigilance.PER_COLUMN

    @property
    def _derived(self) -> tuple[str, ...]:  # type: ignore[override]
        return () if self._signed else vigilance.DERIVED

    @property
    def _learn_kernel(self) -> Any:
        return (adaptive if self._signed else vigilance).learn

    def _able(self) -> BoolArray:
        return self._state.wins[: self.n_units_] > 0

    def _new_state(self, n_features: int, dtype: np.dtype[Any], rng: np.random.Generator) -> Any:
        if self._signed:
            return adaptive.new_state(self.n_slots, self.max_units, n_features, dtype, self.learning_rate)
        if self.max_units is not None:
            raise ValueError(
                f"CCM: max_units={self.max_units} needs novelty='signature'; blocks of the fixed form do not merge"
            )
        return vigilance.new_state(self.n_slots, n_features, self.init, dtype, self.learning_rate, rng)

    def _derive(self, prototypes: FloatArray, wins: IntArray) -> dict[str, Any]:
        return {} if self._signed else vigilance.derive(self.n_slots, prototypes, wins)

    def _layout(self, capacity: int, n_features: int, dtype: np.dtype[Any]) -> dict[str, Any]:
        own = adaptive.layout(capacity, n_features, dtype) if self._signed else vigilance.layout(capacity, self.n_slots)
        return {**super()._layout(capacity, n_features, dtype), **own}

    def _check_state(self, state: Any) -> None:
        if self._signed:
            adaptive.check_state(state, self.max_units, self._tuning)
        else:
            vigilance.check_state(state, self.n_slots)

    def _make_room(self) -> None:
        if self._signed:
            self._state = adaptive.with_room(self._state)
        else:
            self._state = vigilance.with_room(self._state, self.n_slots, self.init, self.learning_rate, self._rng)

    def _import(self, fields: dict[str, Any]) -> None:
        super()._import(fields)
        if not self._signed:
            vigilance.sketch_all(self._state, self._settings())

    def _settings(self) -> Any:
        if self._signed:
            return adaptive.new_settings(
                self.n_slots, self.max_units, self.learning_rate, self.false_alarm_every, self._tuning
            )
        return vigilance.new_settings(
            self.n_slots,
            self.vigilance,
            self.recall_vigilance,
            self.alarm_limit,
            self.recall_limit,
            self.commit_limit,
            self.rate_decay,
            self.counters,
            self._epsilon,
        )
