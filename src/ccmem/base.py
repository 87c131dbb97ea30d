"""What all memories share: validation, chunks, growing, prediction, and the single-sample path.

Data enters through :meth:`CompetitiveMemory.partial_fit` or :meth:`~CompetitiveMemory.learn_one`, is checked there
once, and goes to the model's kernel as a whole chunk. The kernel may touch only the state; it returns how many rows it
has learned, fewer than it was given when the state is full, which only this module can grow. Nothing here sees a label.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from ccmem._codes import REJECTED as REJECTED
from ccmem._sklearn import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    NotFittedError,
    TransformerMixin,
    clone,
)
from ccmem._typing import BoolArray, FloatArray, IntArray
from ccmem.estimator import SavedEstimator, Summarised
from ccmem.guard import learning, reading
from ccmem.kernels import competition, matching
from ccmem.kernels.jit import compiled_for
from ccmem.kernels.matching import in_slabs
from ccmem.kernels.rows import SURELY_SMALL, check_rows, columns_kept_on_error, sum_of_squares
from ccmem.memory import (
    JOURNAL_COLUMNS,
    JOURNALED,
    MERGE,
    MOST_JOURNAL_LINES,
    OWN,
    REMOVE,
    SEEN,
    UNITS,
    UnitState,
    aligned,
)
from ccmem.parameters import check_parameters


class ChunkResult(NamedTuple):
    """What learning a chunk did, for whoever keeps something per unit (label votes, say)."""

    winners: IntArray
    """Unit that learned each row, as numbered when the row was learned; ``REJECTED`` where none did."""
    unit_changes: IntArray
    """Merges and moves of units: journal lines (kind, row of the chunk, from, to, count), in order."""


_KEPT_UNTIL_ASSIGNED = ("_single_sample_call", "_unchanged")
Observer = Callable[[int, FloatArray], Any]
"""Called in the thread that learns, after every chunk, with its first step and its rows; must be quick."""


class CompetitiveMemory(
    SavedEstimator,
    Summarised,
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    ClusterMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Base of the memories: an online clusterer with the scikit-learn interface.

    A model adds its parameters, rules for them, the names of those that fix the shape of the memory, a state, settings
    and a kernel.
    """

    _per_column: ClassVar[tuple[str, ...]] = ("prototypes",)
    """Arrays of the state whose last axis is the columns of X."""
    _by_distance: ClassVar[bool] = False
    """Whether units are compared by distance, the smaller the better, and not by similarity."""
    _labelled_kernel: ClassVar[Callable[..., int] | None] = None
    """As ``_learn_kernel``, with the labels of the rows, the votes of the units (which it counts) and whether units may
    refuse a label; None for a model that never looks at labels."""
    _derived: ClassVar[tuple[str, ...]] = ()
    """Arrays of the state that only save time: not part of a checkpoint, but made anew by :meth:`_derive`."""
    _takes_missing: ClassVar[bool] = False
    """Whether NaN in a row is a missing reading, and not an error."""
    _epsilon: ClassVar[float] = 1e-5
    _state_type: ClassVar[type] = UnitState
    _own_counters: ClassVar[tuple[str, ...]] = ()
    """Names of the model's own places in ``counters``, in order."""
    _not_pickled: ClassVar[tuple[str, ...]] = (*_KEPT_UNTIL_ASSIGNED, "_observers")
    _observers: tuple[Observer, ...] = ()
    _state: Any
    random_state: Any = 0
    """A model that draws nothing has no such parameter."""

    # What a model provides ---------------------------------------------------------------------------------------

    @abstractmethod
    def _new_state(self, n_features: int, dtype: np.dtype[Any], rng: np.random.Generator) -> Any:
        """The state before the first sample; raises if the parameters do not fit the data."""

    @abstractmethod
    def _settings(self) -> tuple[Any, ...]:
        """The parameters the kernel needs, as numbers of fixed type, and its scratch arrays."""

    @staticmethod
    @abstractmethod
    def _learn_kernel(state: Any, settings: Any, X: FloatArray, winners: IntArray) -> int:
        """Learn rows of ``X`` in order; return how many, fewer than all if the state is full."""

    def _grow(self, row: FloatArray) -> None:
        """Grow the state for ``row``, the next one to learn; the journal has been emptied already."""

    def _layout(self, capacity: int, n_features: int, dtype: np.dtype[Any]) -> dict[str, Any]:
        """Shape and type of every array of the state with a capacity of ``capacity`` units."""
        return {
            "prototypes": ((capacity, n_features), dtype),
            "rates": ((capacity,), np.float64),
            "wins": ((capacity,), np.int64),
            "counters": ((OWN + len(self._own_counters),), np.int64),
            "journal": ((None, JOURNAL_COLUMNS), np.int64),
        }

    def _capacity_for(self, units: int) -> int | None:
        """Rows to make for so many units of a checkpoint, which then holds those alone. None: it holds all rows."""
        return None

    def _derive(self, prototypes: FloatArray, wins: IntArray) -> dict[str, Any]:
        """The arrays in ``_derived``, made anew."""
        return {}

    def _check_state(self, state: Any) -> None:
        """Raise ValueError unless ``state``, of the right layout, is one that learning could have led to."""

    # Learning ----------------------------------------------------------------------------------------------------

    @learning
    def fit(self, X: Any, y: Any = None) -> Self:
        """Forget everything, then learn the rows of ``X`` in order. ``labels_`` then holds their units, renumbered
        without gaps. ``y`` is ignored."""
        X = self._begin(X)
        self._learn(X)
        self.labels_ = np.unique(self._winners(X), return_inverse=True)[1].astype(np.int64)
        self._notify()
        return self

    @learning
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn the rows of ``X`` in order; how a stream is cut into chunks changes nothing. ``y`` is ignored."""
        self._learn(self._check_chunk(X))
        self._notify()
        return self

    @learning
    def learn_many(self, X: Any) -> IntArray:
        """As :meth:`partial_fit`; return the unit that learned each row, as numbered then, or -1 where none did."""
        winners = self._learn(self._check_chunk(X)).winners
        self._notify()
        return winners

    @learning
    def learn_one(self, x: Any) -> int:
        """Learn one sample; return the unit that learned it, or -1 if the memory rejected it.

        The quick path for single samples: an array of the memory's own type costs a few microseconds beside the
        learning itself.
        """
        row = self._check_one(x)
        if row is None:
            winner = self._learn(self._check_chunk(np.asarray(x).reshape(1, -1))).winners
        else:
            learn, settings, winner = self.__dict__.get("_single_sample_call") or self._prepare_single_sample(row)
            if learn(self._state, settings, row, winner) == 0:
                winner = self._learn(row).winners
            elif self._state.counters[JOURNALED]:
                self._empty_journal(0)
        self._notify()
        return int(winner[0])

    def _prepare_single_sample(self, row: FloatArray) -> tuple[Callable[..., int], tuple[Any, ...], IntArray]:
        """Kernel, settings and an array for the winner, kept until something is assigned to the memory."""
        self._check_unchanged()
        settings, winner = self._settings(), np.empty(1, np.int64)
        learn = compiled_for(self._learn_kernel, self._state, settings, row, winner)
        self.__dict__["_single_sample_call"] = learn, settings, winner
        return learn, settings, winner

    def __setattr__(self, name: str, value: Any) -> None:
        for kept in _KEPT_UNTIL_ASSIGNED:
            self.__dict__.pop(kept, None)
        super().__setattr__(name, value)

    def _notify(self) -> None:
        """Tell whoever listens; called when everything about a chunk has been learned."""

    def _take_events(self, lines: IntArray) -> None:
        """Keep what the journal tells about blocks; only memories that have some write such lines."""

    def _check_chunk(self, X: Any, missing: bool = True) -> FloatArray:
        """Validate a chunk for ``partial_fit``, and begin if it is the first. ``missing`` False: no reading may be."""
        if not self.__sklearn_is_fitted__():
            return self._begin(X, missing)
        self._check_unchanged()
        return self._check(X, reset=False, missing=missing)

    def _check_unchanged(self) -> None:
        """Check the parameters, also against those that learning began with; once, until something is assigned."""
        if "_unchanged" in self.__dict__:
            return
        self._check_settings()
        self.__dict__["_unchanged"] = True

    def _begin(self, X: Any, missing: bool = True) -> FloatArray:
        """Validate the first chunk and start anew for rows like those in it; if that fails, all stays as it was."""
        check_parameters(type(self).__name__, self._rules, vars(self))
        seed = self.random_state
        if isinstance(seed, np.random.RandomState):
            seed = seed.randint(2**31, size=4)
        rng = np.random.default_rng(seed)
        with columns_kept_on_error(self):
            rows = self._check(X, reset=True, missing=missing)
            self._start_state(rows, rng)
        return rows

    def _start_state(self, rows: FloatArray, rng: np.random.Generator) -> None:
        """Begin with nothing learned."""
        self._state = self._new_state(rows.shape[1], rows.dtype, rng)
        self._rng = rng
        self._began_with = self._shape()

    def _learn(self, X: FloatArray, learn: Callable[..., int] | None = None) -> ChunkResult:
        """Learn a checked chunk; ``learn`` may stand in for the kernel (to look at labels, say)."""
        winners = np.empty(len(X), np.int64)
        first_step = int(self._state.counters[SEEN])
        changes = []
        done = 0
        while True:
            kernel = learn or self._learn_kernel  # which may depend on how large the memory is by now
            done += kernel(self._state, self._settings(), X[done:], winners[done:])
            if self._state.counters[JOURNALED]:
                changes.append(self._empty_journal(first_step))
            if done == len(X):
                break
            self._grow(X[done])
        for observe in self._observers:
            observe(first_step, X)
        return ChunkResult(winners, np.concatenate(changes) if changes else np.empty((0, JOURNAL_COLUMNS), np.int64))

    @learning
    def _widen(self, n_features: int) -> None:
        """Go on with more columns, as if they had been there and 0 all along: whatever is per column is 0 in them."""
        more = n_features - self._started().prototypes.shape[1]
        wider = {}
        for name in self._per_column:
            array = getattr(self._state, name)
            wider[name] = aligned(np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, more)]))
        self._state = self._state._replace(**wider)
        self.n_features_in_ = n_features

    def _empty_journal(self, first_step: int) -> IntArray:
        """Move events from the journal to the history; return the rest, with steps counted from ``first_step``."""
        counters, journal = self._state.counters, self._state.journal
        lines = journal[: counters[JOURNALED]].copy()
        counters[JOURNALED] = 0
        if len(lines) + 2 > len(journal) < MOST_JOURNAL_LINES:
            self._state = self._state._replace(journal=np.zeros((4 * len(journal), JOURNAL_COLUMNS), np.int64))
        unit_changes = (lines[:, 0] >= MERGE) & (lines[:, 0] <= REMOVE)
        if not unit_changes.all():
            self._take_events(lines[~unit_changes])
        lines = lines[unit_changes]
        lines[:, 1] -= first_step
        return lines

    # Reading the memory ------------------------------------------------------------------------------------------

    @reading
    def predict(self, X: Any) -> IntArray:
        """Best matching unit of every row, over the whole memory."""
        self._require_units()
        return self._winners(self._check(X, reset=False, finite=False))

    @reading
    def predict_one(self, x: Any) -> int:
        """Best matching unit of one sample; the quick path, like :meth:`learn_one`."""
        self._require_units()
        row = self._check_one(x)
        if row is None:
            row = self._check(np.asarray(x).reshape(1, -1), reset=False)
        return int(self._winners(row)[0])

    @reading
    def transform(self, X: Any) -> FloatArray:
        """Similarity (or, for the models that compare by distance, distance) of every row to every unit."""
        self._require_units()
        X = self._check(X, reset=False)
        prototypes = self._state.prototypes[: self.n_units_]
        out = np.empty((len(X), len(prototypes)), X.dtype)
        self._score(X, prototypes, out)
        return out

    def _winners(self, X: FloatArray, competes: BoolArray | None = None) -> IntArray:
        """Best matching unit of every row among those that compete (all that may, by default)."""
        winners = np.empty(len(X), np.int64)
        may_win = self._may_win()
        self._match(
            X, self._state.prototypes[: len(may_win)], may_win if competes is None else may_win & competes, winners
        )
        return winners

    def _may_win(self) -> BoolArray:
        """Which units may win at test time."""
        return np.ones(self.n_units_, np.bool_)

    def _score(self, X: FloatArray, prototypes: FloatArray, out: FloatArray) -> None:
        epsilon, work = self._epsilon, len(X) * prototypes.size
        in_slabs(lambda s: competition.similarities(X[s], prototypes, epsilon, out[s]), len(X), work)

    def _match(self, X: FloatArray, prototypes: FloatArray, competes: BoolArray, winners: IntArray) -> None:
        matching.most_similar(X, prototypes, competes, self._epsilon, winners)

    @property
    def n_units_(self) -> int:
        """How many units there are."""
        return int(self._started().counters[UNITS])

    @property
    def n_samples_seen_(self) -> int:
        """How many samples have been seen since learning began, learned or not."""
        return int(self._started().counters[SEEN])

    @property
    def n_floats_(self) -> int:
        """How many numbers are kept, those in reserve for more units among them."""
        return sum(array.size for array in self._started())

    @property
    @reading
    def prototypes_(self) -> FloatArray:
        """What each unit stands for: an array of shape (n_units_, n_features_in_), a copy."""
        return self._started().prototypes[: self.n_units_].copy()

    @property
    @reading
    def win_counts_(self) -> IntArray:
        """How many samples each unit has learned, a copy."""
        return self._started().wins[: self.n_units_].copy()

    @property
    @reading
    def learning_rates_(self) -> FloatArray:
        """How far each unit will move at its next win, a copy."""
        return self._started().rates[: self.n_units_].copy()

    def _started(self) -> Any:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(
                f"This {type(self).__name__} has learned nothing yet; call fit, partial_fit or learn_one first"
            )
        return self._state

    def _require_units(self) -> None:
        if self._started().counters[UNITS] == 0:
            raise NotFittedError(
                f"This {type(self).__name__} has no unit yet: all it was given so far were zero vectors, "
                "which have no direction"
            )

    # Input -------------------------------------------------------------------------------------------------------

    def _check(self, X: Any, reset: bool, finite: bool = True, missing: bool = True) -> FloatArray:
        """``X`` as a contiguous float32 or float64 array, every value checked, nothing changed if bad.

        ``finite`` False leaves the look at every value to :meth:`_winners`. Readings may be ``missing`` if the memory
        knows what to do about them.
        """
        dtype = None if reset else self._started().prototypes.dtype
        return check_rows(self, X, dtype, finite, missing and self._takes_missing)

    def _check_one(self, x: Any) -> FloatArray | None:
        """``x`` as one row, without a copy, if it is just what the kernel takes; else None."""
        if type(x) is not np.ndarray or not self.__sklearn_is_fitted__():
            return None
        prototypes = self._state.prototypes
        if x.dtype != prototypes.dtype or x.shape != prototypes.shape[1:] or not x.flags.carray:
            return None
        return x[np.newaxis] if sum_of_squares(x) < SURELY_SMALL else None

    # Saving ------------------------------------------------------------------------------------------------------

    @reading
    def _export(self) -> dict[str, Any]:
        """All that has been learned, in types that a checkpoint can hold."""
        from ccmem.persistence.memories import export_memory

        return export_memory(self)

    def _import(self, fields: dict[str, Any]) -> None:
        """Take over what ``_export`` gave, or raise ValueError if it cannot be that."""
        from ccmem.persistence.memories import import_memory

        import_memory(self, fields)

    def _import_names(self, names: Any) -> None:
        """Take over the names of blocks in a checkpoint."""
        raise ValueError(f"{type(self).__name__}: it has no blocks, and so no names for them")

    def _export_events(self) -> IntArray:
        """What a checkpoint keeps of events."""
        return np.empty((0, JOURNAL_COLUMNS), np.int64)

    def _import_events(self, lines: IntArray) -> None:
        """Take over what ``_export_events`` gave."""
        if len(lines):
            raise ValueError(f"{type(self).__name__}: it has no blocks, and so no events")

    @property
    def _n_features_out(self) -> int:
        return self.n_units_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.non_deterministic = False
        tags.input_tags.allow_nan = self._takes_missing
        return tags


def seeded_clone(memory: CompetitiveMemory, random_state: Any) -> Any:
    """A clone of ``memory`` that draws from ``random_state`` if it draws at all and was given nothing to draw from."""
    copy = clone(memory)
    if random_state is not None and copy.get_params().get("random_state", 0) is None:
        copy.set_params(random_state=random_state)
    return copy
