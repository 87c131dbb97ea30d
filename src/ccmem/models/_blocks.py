"""Common base of memories with blocks: task pointer, events, and routing of samples to blocks.

A block is a group of units that learned together. One block is current, the others wait. When the stream changes, a
model creates a new block or returns to a waiting one, and records that in its journal; this module turns the records
into events.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ccmem.base.memory import ChunkResult, CompetitiveMemory
from ccmem.core.clock import Clock
from ccmem.core.events import BLOCK_KINDS, EVENT_KINDS, Event, event_of, line_of
from ccmem.core.locking import guard_of, reading
from ccmem.core.state import JOURNAL_COLUMNS, OWN, SEEN
from ccmem.core.typing import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from ccmem.models._explain import Explanation, Profile

BLOCKS, POINTER, ALARM = OWN, OWN + 1, OWN + 2
"""Indices into ``counters`` of every block memory: number of blocks, current block, alarm count."""
EVENT_HISTORY = 10_000
"""Number of latest events that a memory keeps."""
LONGEST_NAME = 80
_assigning = threading.Lock()
"""Lock for adding a name or a listener, separate from the learning lock so that neither waits for a chunk."""


class BlockMemory(CompetitiveMemory):
    """Base of the memories with blocks.

    Attributes
    ----------
    n_blocks_ : int
        Number of blocks.
    task_pointer_ : int
        Current block.
    unit_blocks_ : array of shape (n_units_,)
        Block of every unit.
    alarm_ : int
        Number of samples counted towards a change; 0 if none is suspected.
    events_ : list of Event
        Latest new blocks and recalls (and lost columns), oldest first.
    block_names_ : dict of int to str
        Names given by :meth:`name_block`.
    """

    _own_counters: ClassVar[tuple[str, ...]] = ("blocks", "pointer", "alarm")
    _not_pickled: ClassVar[tuple[str, ...]] = (*CompetitiveMemory._not_pickled, "_listeners", "_pending_events")
    _listeners: tuple[Callable[[Event], Any], ...] = ()
    _pending_events: tuple[Event, ...] = ()
    _history: deque[Event]
    _clock: Clock | None = None
    _block_names: dict[int, str] = {}  # noqa: RUF012  # replaced, never mutated

    @reading
    def task_pointers(self, X: Any) -> IntArray:
        """Return the block of every row: that of its best matching unit (GetTaskPointer)."""
        return self.unit_blocks_[self.predict(X)]

    @reading
    def pool_task(self, X: Any) -> int:
        """Return the block of a pool of rows: the most frequent of its task pointers (t_M)."""
        return int(np.bincount(self.task_pointers(X)).argmax())

    def on_event(self, callback: Callable[[Event], Any]) -> Callable[[Event], Any]:
        """Call ``callback(event)`` for every new block and recall from now on; usable as a decorator.

        The callback runs in a thread that learns, after the chunk with the event has been learned completely. It may
        read, predict with or save the memory; teaching the memory raises RuntimeError. Other threads may use and teach
        the memory at the same time. Callbacks run one after the other, in the order of the events. If the callback
        raises, the chunk stays learned, and the remaining events are delivered after the next chunk. Clones keep the
        callback, because a classifier learns in a clone of its memory; pickles, copies and checkpoints drop it.
        """
        if not callable(callback):
            raise TypeError(f"on_event needs a function of one event, not {callback!r}")
        with _assigning:
            self._listeners = (*self._listeners, callback)
        return callback

    def name_block(self, block: int, name: str) -> None:
        """Give a block a name, or remove it with an empty one; checkpoints keep names, events and pages show them.

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
        """Names given to blocks, as a copy."""
        self._started()
        return dict(self._block_names)

    @reading
    def explain(self, event: Event) -> Explanation:
        """Return the columns that differ between the blocks before and after ``event``, the largest change first.

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

    @reading
    def events_frame(self) -> Any:
        """Return ``events_`` as a pandas frame: time, kind, block by name, duration, columns that moved most.

        Without pandas, the result is a dict with the columns of the frame. Times are dates in the frame, seconds since
        1970 in the dict.

        >>> from ccmem import AdaptiveCCM
        >>> list(AdaptiveCCM().partial_fit([[1.0, 0.0], [0.9, 0.1]]).events_frame())[:4]
        ['time', 'kind', 'block', 'before']
        """
        from ccmem.models._frame import events_frame

        return events_frame(self)

    @reading
    def time_at(self, step: int) -> float | None:
        """Return the time of a sample in seconds since 1970, None if it is unknown.

        The times of the latest 1,024 samples are exact; earlier times are interpolated.
        """
        self._started()
        return None if self._clock is None else self._clock.at(step)

    @property
    def n_blocks_(self) -> int:
        """Number of blocks."""
        return int(self._started().counters[BLOCKS])

    @property
    def task_pointer_(self) -> int:
        """Current block."""
        return int(self._started().counters[POINTER])

    @property
    def alarm_(self) -> int:
        """Number of samples counted towards a change; 0 if none is suspected."""
        return int(self._started().counters[ALARM])

    @property
    def unit_blocks_(self) -> IntArray:
        """Block of every unit."""
        raise NotImplementedError

    @property
    @reading
    def events_(self) -> list[Event]:
        """Latest new blocks and recalls, oldest first."""
        self._started()
        return list(self._history)

    def _start_state(self, rows: FloatArray, rng: np.random.Generator) -> None:
        super()._start_state(rows, rng)
        self._history = deque(maxlen=EVENT_HISTORY)
        self._clock = None
        self._block_names = {}

    def _alarm_limit(self) -> int | None:
        """Alarm count at which a new block is created; None if the model has no such limit."""
        return None

    def _profile(self, block: int) -> Profile:
        """Return the column statistics of a block's samples, by default computed from its units."""
        from ccmem.models._explain import profile_of_units

        return profile_of_units(self, block)

    def _expect_times(self, times: FloatArray | None) -> None:
        if times is not None:
            self._clock = self._clock or Clock()
            self._clock.expect(self.n_samples_seen_, times)

    def _learn_all(self, X: FloatArray, learn: Callable[..., int] | None) -> ChunkResult:
        if self._clock is None:
            return super()._learn_all(X, learn)
        clock = self.__dict__["_clock"] = copy(self._clock)  # a copy, because the previous clock may be restored
        result = super()._learn_all(X, learn)
        clock.advance(self.n_samples_seen_)
        return result

    def _dated(self, event: Event) -> Event:
        """Return ``event`` with the times of its step and onset, if the rows have times."""
        if self._clock is None:
            return event
        self._clock.advance(event.step + 1)
        return event._replace(time=self._clock.at(event.step), onset_time=self._clock.at(event.onset))

    def _take_events(self, lines: IntArray) -> None:
        events = [self._dated(event_of(line)) for line in lines.tolist()]
        self._history = deque([*self._history, *events], maxlen=EVENT_HISTORY)  # copied for a restore
        if self._listeners:
            self._pending_events = (*self._pending_events, *events)

    def _notify(self) -> None:
        if self._pending_events:
            guard_of(self).to_notify = self

    def _next_event(self) -> Event | None:
        """Return the oldest event that was not yet delivered to listeners, and remove it from the queue."""
        if not self._pending_events:
            return None
        event, self._pending_events = self._pending_events[0], self._pending_events[1:]
        return event

    def _may_win(self) -> BoolArray:
        """True for units that have learned; others do not compete in prediction."""
        return self._state.wins[: self.n_units_] > 0

    def _score(self, X: FloatArray, prototypes: FloatArray, out: FloatArray) -> None:
        super()._score(X, prototypes, out)
        out[:, ~self._may_win()] = -1.0  # lowest similarity, so that untrained units cannot win

    def _export_events(self) -> IntArray:
        lines = [line_of(event) for event in self._history]
        return np.array(lines, np.int64).reshape(-1, JOURNAL_COLUMNS)

    def _import_events(self, lines: IntArray) -> None:
        blocks, columns = int(self._state.counters[BLOCKS]), self.n_features_in_
        if lines.size and not (lines.min() >= 0 and lines[:, 0].max() < len(EVENT_KINDS)):
            raise ValueError(f"{type(self).__name__}: its events are damaged")
        of_columns = lines[:, 0] >= len(BLOCK_KINDS)
        if (lines[:, 3] >= blocks).any() or (lines[:, 2] >= np.where(of_columns, columns, blocks)).any():
            raise ValueError(f"{type(self).__name__}: its events name blocks or columns that it does not have")
        if (lines[:, 1] >= self._state.counters[SEEN]).any():
            raise ValueError(f"{type(self).__name__}: its events come after its last sample")
        if len(lines) > EVENT_HISTORY:
            raise ValueError(f"{type(self).__name__}: it holds {len(lines)} events, more than {EVENT_HISTORY}")
        self._history = deque(map(event_of, lines.tolist()), maxlen=EVENT_HISTORY)

    def _export_times(self) -> dict[str, Any] | None:
        """Return the clock and the times of the events; None if rows have no times."""
        if self._clock is None:
            return None
        known = [[np.nan if t is None else t for t in (event.time, event.onset_time)] for event in self._history]
        return {"clock": self._clock.export(), "events": np.array(known, np.float64).reshape(-1, 2)}

    def _import_times(self, fields: Any) -> None:
        """Restore the result of :meth:`_export_times`; raise ValueError if it is invalid."""
        try:
            clock, known = Clock.of(fields["clock"]), fields["events"]
            if known.dtype != np.float64 or known.shape != (len(self._history), 2):
                raise ValueError("its times of events are damaged")
        except (TypeError, LookupError, AttributeError) as problem:
            raise ValueError(f"{type(self).__name__}: its times are damaged") from problem
        self._clock = clock
        times = [[None if t != t else t for t in pair] for pair in known.tolist()]
        dated = [e._replace(time=t, onset_time=o) for e, (t, o) in zip(self._history, times, strict=True)]
        self._history = deque(dated, maxlen=EVENT_HISTORY)

    def _import_names(self, names: Any) -> None:
        """Restore the block names of a checkpoint, given as pairs of block and name."""
        for entry in names if isinstance(names, list) else [None]:
            if not (isinstance(entry, list) and len(entry) == 2 and isinstance(entry[1], str)):
                raise ValueError(f"{type(self).__name__}: its names of blocks are damaged")
            self.name_block(*entry)

    def __sklearn_clone__(self) -> Self:
        copy: Self = super().__sklearn_clone__()
        for name in ("_listeners", "_observers"):
            if kept := getattr(self, name):
                setattr(copy, name, kept)
        return copy
