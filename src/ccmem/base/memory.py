"""Base of all memories: validation, chunks, growth, prediction, and the single-sample path.

Data enters through :meth:`CompetitiveMemory.partial_fit` or :meth:`~CompetitiveMemory.learn_one`, is validated there
once, and is passed to the model's kernel as a whole chunk. The kernel may modify only the state. It returns the number
of rows learned, which is less than the chunk if the state is full; only this module can grow the state. Labels are not
used here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from ccmem.base.arrays import ArrayState
from ccmem.base.times import split_times
from ccmem.base.validation import one_row
from ccmem.core.codes import MERGE
from ccmem.core.codes import REJECTED as REJECTED
from ccmem.core.locking import learning, reading
from ccmem.core.parameters import check_parameters
from ccmem.core.sklearn import clone
from ccmem.core.state import JOURNAL_COLUMNS, JOURNALED, MOST_JOURNAL_LINES, SEEN
from ccmem.core.typing import FloatArray, IntArray
from ccmem.core.undo import attributes_kept_on_error, undone_on_error
from ccmem.kernels.jit import compiled_for


class ChunkResult(NamedTuple):
    """Result of learning a chunk, for objects that keep data per unit (label votes, for example)."""

    winners: IntArray
    """Unit that learned each row, as numbered when the row was learned; ``REJECTED`` if none did."""
    unit_changes: IntArray
    """Merges and moves of units: journal lines (kind, row of the chunk, from, to, count), in order."""


_NO_CHANGES: IntArray = np.empty((0, JOURNAL_COLUMNS), np.int64)
Observer = Callable[[int, FloatArray], Any]
"""Callback run in the learning thread after every chunk, with the chunk's first step and its rows; must be fast."""


class CompetitiveMemory(ArrayState):
    """Base of the memories: an online clusterer with the scikit-learn interface.

    A model adds its parameters, rules for them, the names of the parameters that fix the shape of the memory, arrays,
    settings and a kernel.
    """

    _by_distance: ClassVar[bool] = False
    """True if units are compared by distance (smaller is better) instead of similarity."""
    _labelled_kernel: ClassVar[Callable[..., int] | None] = None
    """Variant of ``_learn_kernel`` that uses labels; None for a model that never uses labels.

    Further arguments: the labels of the rows, the votes of the units (updated), and True if units may refuse a label.
    """
    _n_winners: ClassVar[int] = 1
    """Number of units that vote for the label of a row by default."""
    _sharpness: ClassVar[int] = 8
    """Exponent of the weights of votes."""
    _kept_until_assigned: ClassVar[tuple[str, ...]] = ("_unchanged", "_single_sample_call")
    _not_pickled: ClassVar[tuple[str, ...]] = (*_kept_until_assigned, "_observers")
    _observers: tuple[Observer, ...] = ()
    random_state: Any = 0
    """Default seed; a model without randomness has no such parameter."""

    # Methods that a model provides -------------------------------------------------------------------------------

    @abstractmethod
    def _settings(self) -> tuple[Any, ...]:
        """Return the kernel's parameters, as numbers of fixed type, and its scratch arrays."""

    @staticmethod
    @abstractmethod
    def _learn_kernel(state: Any, settings: Any, X: FloatArray, winners: IntArray) -> int:
        """Learn rows of ``X`` in order; return the number learned, fewer than all if the state is full."""

    def _decide(self) -> bool | None:
        """Make the decision for which the kernel stopped, if any; return True if the kernel then goes on."""

    # Learning ----------------------------------------------------------------------------------------------------

    @learning
    def fit(self, X: Any, y: Any = None, *, times: Any = None) -> Self:
        """Discard all learned state, then learn the rows of ``X`` in order.

        Afterwards ``labels_`` holds the units of the rows, renumbered without gaps. ``y`` is ignored; ``times`` as for
        :meth:`partial_fit`.
        """
        X, stamps = split_times(X, times)
        X = self._begin(X)
        self._expect_times(stamps)
        self._learn(X)
        self.labels_ = np.unique(self._winners(X), return_inverse=True)[1].astype(np.int64)
        self._notify()
        return self

    @learning
    def partial_fit(self, X: Any, y: Any = None, *, times: Any = None) -> Self:
        """Learn the rows of ``X`` in order; the division into chunks does not affect the result. ``y`` is ignored.

        ``times`` are the times of the rows, used for the events of a memory with blocks: dates, or seconds since 1970.
        The time index of a pandas frame and the time column of a polars frame are used automatically.
        """
        if times is None and (row := self._plain_row(X)) is not None:
            self._learn_row(row)
        else:
            X, stamps = split_times(X, times)
            rows = self._check_chunk(X)
            self._expect_times(stamps)
            self._learn(rows)
        self._notify()
        return self

    @learning
    def _learn_checked(self, X: FloatArray, times: FloatArray | None) -> None:
        """Learn rows whose values a file reader has already validated."""
        rows = self._check_chunk(X, checked=True)
        self._expect_times(times)
        self._learn(rows)
        self._notify()

    @learning
    def learn_many(self, X: Any, *, times: Any = None) -> IntArray:
        """Learn like :meth:`partial_fit`; return the unit that learned each row, as numbered then, or -1 for none."""
        X, stamps = split_times(X, times)
        rows = self._check_chunk(X)
        self._expect_times(stamps)
        winners = self._learn(rows).winners
        self._notify()
        return winners

    @learning
    def learn_one(self, x: Any) -> int:
        """Learn one sample; return the unit that learned it, or -1 if the memory rejected it.

        Fast path for single samples: for an array of the memory's type, the overhead is a few microseconds.
        """
        row = self._check_one(x)
        if row is None:
            winner = self._learn(self._check_chunk(one_row(x))).winners
        else:
            winner = self._learn_row(row).winners
        self._notify()
        return int(winner[0])

    def _learn_row(self, row: FloatArray) -> ChunkResult:
        """Learn one row that :meth:`_check_one` accepted; the next call overwrites the returned winner."""
        if self._observers:
            self._check_unchanged()
            return self._learn(row)
        learn, settings, winner = self.__dict__.get("_single_sample_call") or self._prepare_single_sample(row)
        if learn(self._state, settings, row, winner) == 0:
            return self._learn(row)
        while self._decide():
            learn(self._state, settings, row[:0], winner)
        if self._state.counters[JOURNALED]:
            return ChunkResult(winner, self._empty_journal(int(self._state.counters[SEEN]) - 1))
        return ChunkResult(winner, _NO_CHANGES)

    def _prepare_single_sample(self, row: FloatArray) -> tuple[Callable[..., int], tuple[Any, ...], IntArray]:
        """Return kernel, settings and an array for the winner, cached until an attribute of the memory is assigned."""
        self._check_unchanged()
        settings, winner = self._settings(), np.empty(1, np.int64)
        learn = compiled_for(self._learn_kernel, self._state, settings, row, winner)
        self.__dict__["_single_sample_call"] = learn, settings, winner
        return learn, settings, winner

    def _expect_times(self, times: FloatArray | None) -> None:
        """Announce the times of the rows that are learned next; only memories with blocks keep times."""

    def _notify(self) -> None:
        """Notify listeners; called after a chunk has been learned completely."""

    def _take_events(self, lines: IntArray) -> None:
        """Store journal lines about blocks; only memories with blocks write such lines."""

    def _check_chunk(self, X: Any, missing: bool = True, checked: bool = False) -> FloatArray:
        """Validate a chunk for ``partial_fit``, and initialise the state if it is the first chunk.

        ``missing`` False: NaN is an error. ``checked``: a file reader has already validated the values.
        """
        if not self.__sklearn_is_fitted__():
            return self._begin(X, missing)
        self._check_unchanged()
        if checked and X.dtype == self._state.prototypes.dtype and X.shape[1] == self.n_features_in_ and X.flags.carray:
            return np.asarray(X)
        return self._check(X, reset=False, missing=missing)

    def _begin(self, X: Any, missing: bool = True) -> FloatArray:
        """Validate the first chunk and create a state for its columns; a failure leaves the memory unchanged."""
        check_parameters(type(self).__name__, self._rules, vars(self))
        seed = self.random_state
        if isinstance(seed, np.random.RandomState):
            seed = seed.randint(2**31, size=4)
        rng = np.random.default_rng(seed)
        with attributes_kept_on_error(self):
            rows = self._check(X, reset=True, missing=missing)
            self._start_state(rows, rng)
        return rows

    def _start_state(self, rows: FloatArray, rng: np.random.Generator) -> None:
        """Create an empty state."""
        self._state = self._new_state(rows.shape[1], rows.dtype, rng)
        self._rng = rng
        self._began_with = self._shape()

    def _learn(self, X: FloatArray, learn: Callable[..., int] | None = None) -> ChunkResult:
        """Learn a checked chunk completely or not at all; ``learn`` may replace the kernel (to use labels)."""
        with undone_on_error(self) if len(X) > 1 else nullcontext():
            return self._learn_all(X, learn)

    def _learn_all(self, X: FloatArray, learn: Callable[..., int] | None) -> ChunkResult:
        winners = np.empty(len(X), np.int64)
        first_step = int(self._state.counters[SEEN])
        changes = []
        done = 0
        while True:
            kernel = learn or self._learn_kernel  # the kernel may depend on the current size of the memory
            done += kernel(self._state, self._settings(), X[done:], winners[done:])
            goes_on, has_written = self._decide(), self._state.counters[JOURNALED] > 0
            if has_written:
                changes.append(self._empty_journal(first_step))
            if done == len(X) and not goes_on:
                break
            if not goes_on and not has_written:  # the journal was not full
                self._grow(X[done])
        for observe in self._observers:
            observe(first_step, X)
        return ChunkResult(winners, np.concatenate(changes) if changes else _NO_CHANGES)

    def _empty_journal(self, first_step: int) -> IntArray:
        """Move events from the journal to the history; return other lines, with steps relative to ``first_step``."""
        counters, journal = self._state.counters, self._state.journal
        lines = journal[: counters[JOURNALED]].copy()
        counters[JOURNALED] = 0
        if len(lines) + 2 > len(journal) < MOST_JOURNAL_LINES:
            self._state = self._state._replace(journal=np.zeros((4 * len(journal), JOURNAL_COLUMNS), np.int64))
        unit_changes = lines[:, 0] >= MERGE
        if not unit_changes.all():
            self._take_events(lines[~unit_changes])
        lines = lines[unit_changes]
        lines[:, 1] -= first_step
        return lines

    # Saving ------------------------------------------------------------------------------------------------------

    @reading
    def _export(self) -> dict[str, Any]:
        """Return all learned state, in types that a checkpoint can hold."""
        from ccmem.base.storage import export_memory

        return export_memory(self)

    def _import(self, fields: dict[str, Any]) -> None:
        """Restore the state returned by ``_export``, or raise ValueError if the fields are not a valid state."""
        from ccmem.base.storage import import_memory

        import_memory(self, fields)


def seeded_clone(memory: CompetitiveMemory, random_state: Any) -> Any:
    """Return a clone of ``memory``, seeded with ``random_state`` if its own ``random_state`` is None."""
    copy = clone(memory)
    if random_state is not None and copy.get_params().get("random_state", 0) is None:
        copy.set_params(random_state=random_state)
    return copy
