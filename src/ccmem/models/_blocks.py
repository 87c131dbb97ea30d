"""What memories with blocks share: a pointer to the block in use, events, and which block a sample belongs to.

A block is a group of units that learned together. One block is in use, the others wait. When the stream changes, a
model begins a new block or returns to one that waits, and notes that in its journal; here the notes become events.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ccmem._typing import BoolArray, FloatArray, IntArray
from ccmem.base import CompetitiveMemory
from ccmem.guard import guard_of, reading
from ccmem.memory import (
    BLOCK_KINDS,
    COLUMN_BACK,
    COLUMN_LOST,
    EVIDENCE_UNIT,
    JOURNAL_COLUMNS,
    NEW_BLOCK,
    OWN,
    RECALL,
    Event,
)

if TYPE_CHECKING:
    from ccmem.models._explain import Explanation, Profile

BLOCKS, POINTER, ALARM = OWN, OWN + 1, OWN + 2
"""Places in ``counters`` that every block memory has: blocks, the one in use, and how far an alarm has come."""
OWN_BLOCK = OWN + 3
"""Where the places of a single model begin."""
EVENT_HISTORY = 10_000
"""How many of the latest events a memory keeps."""
EVENT_KINDS = (*BLOCK_KINDS, "column_lost", "column_back")
_CODES = (NEW_BLOCK, RECALL, COLUMN_LOST, COLUMN_BACK)
LONGEST_NAME = 80
_assigning = threading.Lock()
"""Held while a name or a listener is added: neither waits for a chunk that is being learned."""


def event_of(line: list[int]) -> Event:
    """The event of a line: place of its kind, step, block left (or column), block in use, and the rest in order."""
    kind, step, origin, block, count, uncertainty, evidence = line
    if kind < len(BLOCK_KINDS):
        return Event(EVENT_KINDS[kind], step, origin, block, count, uncertainty, evidence=evidence / EVIDENCE_UNIT)
    return Event(EVENT_KINDS[kind], step, block, block, count, uncertainty, column=origin)


def line_of(event: Event) -> list[int]:
    """What :func:`event_of` was given."""
    origin = event.from_block if event.changes_block else event.column
    evidence = round(EVIDENCE_UNIT * event.evidence)
    kind = EVENT_KINDS.index(event.kind)
    return [kind, event.step, origin, event.to_block, event.count, event.uncertainty, evidence]


class BlockMemory(CompetitiveMemory):
    """Base of the memories with blocks.

    Attributes
    ----------
    n_blocks_ : int
        How many blocks there are.
    task_pointer_ : int
        The block in use.
    unit_blocks_ : array of shape (n_units_,)
        The block of every unit.
    alarm_ : int
        Samples counted towards a change; 0 as long as all is well.
    events_ : list of Event
        The latest new blocks and recalls (and lost columns), oldest first.
    block_names_ : dict of int to str
        The names that :meth:`name_block` gave.
    """

    _own_counters: ClassVar[tuple[str, ...]] = ("blocks", "pointer", "alarm")
    _not_pickled: ClassVar[tuple[str, ...]] = (*CompetitiveMemory._not_pickled, "_listeners", "_pending_events")
    _listeners: tuple[Callable[[Event], Any], ...] = ()
    _pending_events: tuple[Event, ...] = ()
    _history: deque[Event]
    _block_names: dict[int, str] = {}  # noqa: RUF012  # never changed in place

    @reading
    def task_pointers(self, X: Any) -> IntArray:
        """The block that each row belongs to: that of its best matching unit (GetTaskPointer)."""
        return self.unit_blocks_[self.predict(X)]

    @reading
    def pool_task(self, X: Any) -> int:
        """The block that a pool of rows belongs to: the most frequent of its task pointers (t_M)."""
        return int(np.bincount(self.task_pointers(X)).argmax())

    def on_event(self, callback: Callable[[Event], Any]) -> Callable[[Event], Any]:
        """Call ``callback(event)`` for every new block and recall from now on; may be used as a decorator.

        It is called after the chunk that brought the event has been learned whole, by the thread that learned it, and
        may read, predict with or save the memory, as may other threads meanwhile; teaching it is a RuntimeError. If it
        raises, the chunk stays learned, and what is left to tell is told after the next one. Clones call it too,
        because a classifier learns in a clone of its memory; pickles, copies and checkpoints do not take it along.
        """
        if not callable(callback):
            raise TypeError(f"on_event needs a function of one event, not {callback!r}")
        with _assigning:
            self._listeners = (*self._listeners, callback)
        return callback

    def name_block(self, block: int, name: str) -> None:
        """Give a block a name of your own (an empty one takes it away); checkpoints keep it, events and pages show it.

        >>> from ccmem import AdaptiveCCM
        >>> memory = AdaptiveCCM().partial_fit([[1.0, 0.0], [0.9, 0.1]])
        >>> memory.name_block(0, "pump on")
        >>> memory.block_names_
        {0: 'pump on'}
        """
        if not isinstance(block, (int, np.integer)) or not 0 <= block < self.n_blocks_:
            raise ValueError(f"there is no block {block!r}; blocks are numbered from 0 to {self.n_blocks_ - 1}")
        if not isinstance(name, str):
            raise TypeError(f"the name of a block is text, not {name!r}")
        name = " ".join("".join(c if c.isprintable() else " " for c in name).split())
        if len(name) > LONGEST_NAME:
            raise ValueError(f"a name has at most {LONGEST_NAME} characters, not {len(name)}")
        with _assigning:
            names = {k: v for k, v in self._block_names.items() if k != block} | ({int(block): name} if name else {})
            self._block_names = dict(sorted(names.items()))

    @property
    def block_names_(self) -> dict[int, str]:
        """The names that were given to blocks, a copy."""
        self._started()
        return dict(self._block_names)

    @reading
    def explain(self, event: Event) -> Explanation:
        """Which columns tell the block that ``event`` led to from the block that it left, and by how much.

        >>> import numpy as np
        >>> from ccmem import AdaptiveCCM
        >>> rng = np.random.default_rng(0)
        >>> levels = [1.0, 1.0, 0.2], [1.0, 0.1, 0.2]
        >>> memory = AdaptiveCCM().fit(np.concatenate([rng.normal(level, 0.1, (300, 3)) for level in levels]))
        >>> memory.explain(memory.events_[0]).columns[0].name
        'column 1'
        """
        from ccmem.models._explain import explain

        return explain(self, event)

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
        """Samples counted towards a change; 0 as long as all is well."""
        return int(self._started().counters[ALARM])

    @property
    def unit_blocks_(self) -> IntArray:
        """The block of every unit."""
        raise NotImplementedError

    @property
    @reading
    def events_(self) -> list[Event]:
        """The latest new blocks and recalls, oldest first."""
        self._started()
        return list(self._history)

    def _start_state(self, rows: FloatArray, rng: np.random.Generator) -> None:
        super()._start_state(rows, rng)
        self._history = deque(maxlen=EVENT_HISTORY)
        self._block_names = {}

    def _alarm_limit(self) -> int | None:
        """The alarm at which a new block begins, if there is such a number."""
        return None

    def _profile(self, block: int) -> Profile:
        """What the samples of a block look like, column by column; by its units, unless a model knows better."""
        from ccmem.models._explain import profile_of_units

        return profile_of_units(self, block)

    def _take_events(self, lines: IntArray) -> None:
        events = [event_of([_CODES.index(kind), *place]) for kind, *place in lines.tolist()]
        self._history.extend(events)
        if self._listeners:
            self._pending_events = (*self._pending_events, *events)

    def _notify(self) -> None:
        if self._pending_events and not guard_of(self).become_reader():
            guard_of(self).to_notify = self
            return
        while self._pending_events:
            event, self._pending_events = self._pending_events[0], self._pending_events[1:]
            for listener in self._listeners:
                listener(event)

    def _may_win(self) -> BoolArray:
        """Units that never learned do not compete at test time."""
        return self._state.wins[: self.n_units_] > 0

    def _score(self, X: FloatArray, prototypes: FloatArray, out: FloatArray) -> None:
        super()._score(X, prototypes, out)
        out[:, ~self._may_win()] = -1.0  # the least there is, for units that never learned

    def _export_events(self) -> IntArray:
        lines = [line_of(event) for event in self._history]
        return np.array(lines, np.int64).reshape(-1, JOURNAL_COLUMNS)

    def _import_events(self, lines: IntArray) -> None:
        if lines.size and not (lines.min() >= 0 and lines[:, 0].max() < len(EVENT_KINDS)):
            raise ValueError(f"{type(self).__name__}: its events are damaged")
        if len(lines) > EVENT_HISTORY:
            raise ValueError(f"{type(self).__name__}: it holds {len(lines)} events, more than {EVENT_HISTORY}")
        self._history = deque(map(event_of, lines.tolist()), maxlen=EVENT_HISTORY)

    def _import_names(self, names: Any) -> None:
        """Take over the names of blocks in a checkpoint: pairs of block and name."""
        for entry in names if isinstance(names, list) else [None]:
            if not (isinstance(entry, list) and len(entry) == 2 and isinstance(entry[1], str)):
                raise ValueError(f"{type(self).__name__}: its names of blocks are damaged")
            self.name_block(*entry)

    def __sklearn_clone__(self) -> Self:
        copy: Self = super().__sklearn_clone__()
        if self._listeners:
            copy._listeners = self._listeners
        return copy
