"""State of a memory as declared arrays: allocation, growth, further columns, checks and copies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ccmem.base.prediction import PredictingMemory
from ccmem.base.validation import check_finite
from ccmem.core.allocation import aligned, aligned_zeros
from ccmem.core.locking import learning
from ccmem.core.state import JOURNAL_COLUMNS, OWN, UNITS, UnitState, new_units
from ccmem.core.typing import FloatArray, IntArray

_FIRST_ROOM = 64
"""First capacity of a memory that grows; it doubles whenever it is full."""
LARGEST_TO_RAISE = 1e15
"""Largest absolute value for which sums of differences raised to the highest order are finite."""


AXES = ("unit", "column", "pair", "one")
"""Named shapes of an array: a number per unit, per unit and column, per two units, or one number."""


class Array(NamedTuple):
    """An array of the state, by name ``state.<name>``."""

    axes: Any = "unit"
    """``"unit"``: a number per unit; ``"column"``: per unit and column; ``"pair"``: per two units; ``"one"``: one; or a
    function of model and capacity that returns the shape."""
    dtype: Any = np.float64
    """Type of the array; None means the type of the data."""
    fill: Any = 0.0
    """Initial value, or a function of the model that returns it."""
    stored: bool = True
    """False for an array that only saves time: a checkpoint omits it, and a loaded model starts with ``fill``."""

    def shape(self, model: Any, capacity: int, n_features: int) -> tuple[int, ...]:
        """Return the shape of the array for ``capacity`` units."""
        if callable(self.axes):
            return tuple(self.axes(model, capacity))
        sizes = {"unit": (capacity,), "column": (capacity, n_features), "pair": (capacity, capacity), "one": (1,)}
        return sizes[self.axes]


class ArrayState(PredictingMemory):
    """The part of a memory that allocates its state: ``UnitState`` and the arrays in ``_arrays``."""

    _state_type: ClassVar[Any] = UnitState
    _arrays: ClassVar[dict[str, Array]] = {}
    """Arrays of the state beyond those of :class:`ccmem.core.state.UnitState`."""
    _own_counters: ClassVar[tuple[str, ...]] = ()
    """Names of the model-specific entries of ``counters``, in order."""
    _gradual: ClassVar[bool] = True
    """True if the capacity grows with the number of units, False if all units are allocated at once."""

    @property
    def _per_column(self) -> tuple[str, ...]:
        """Names of the arrays whose last axis is the columns of X."""
        return ("prototypes", *(name for name, array in self._arrays.items() if array.axes == "column"))

    def _limit(self) -> int:
        """Return the largest number of units: ``n_units``, ``max_units``, ``rows`` times ``columns``, or no bound."""
        if hasattr(self, "rows"):
            return int(self.rows * self.columns)
        return int(getattr(self, "n_units", None) or getattr(self, "max_units", None) or 2**62)

    @property
    def _derived(self) -> tuple[str, ...]:
        """Names of the arrays that only save time: not stored in a checkpoint, but recomputed by :meth:`_derive`."""
        return tuple(name for name, array in self._arrays.items() if not array.stored)

    def _made(self, names: Iterable[str], capacity: int, n_features: int, dtype: Any) -> dict[str, Any]:
        """Return new arrays of the state, by name."""
        found = {}
        for name in names:
            array = self._arrays[name]
            found[name] = aligned_zeros(array.shape(self, capacity, n_features), array.dtype or dtype)
            found[name][...] = array.fill(self) if callable(array.fill) else array.fill
        return found

    def _empty_state(self, capacity: int, n_features: int, dtype: Any) -> Any:
        rate = float(getattr(self, "learning_rate", 1.0))
        units = new_units(capacity, n_features, dtype, rate, len(self._own_counters))
        return self._state_type(*units, **self._made(self._arrays, capacity, n_features, dtype))

    def _derive(self, prototypes: FloatArray, wins: IntArray) -> dict[str, Any]:
        """Return the arrays in ``_derived``, recomputed."""
        capacity, n_features = prototypes.shape
        return self._made(self._derived, capacity, n_features, prototypes.dtype)

    def _new_state(self, n_features: int, dtype: np.dtype[Any], rng: np.random.Generator) -> Any:
        """Return the state before the first sample; raise if the parameters do not fit the data."""
        self._check_winners()
        capacity = min(_FIRST_ROOM, self._limit()) if self._gradual else self._limit()
        state = self._empty_state(capacity, n_features, dtype)
        if not isinstance(getattr(self, "init", "first"), str):
            given, shape = np.asarray(self.init), state.prototypes.shape
            if given.shape != shape or not np.isfinite(given.astype(np.float64)).all():
                raise ValueError(
                    f"{type(self).__name__}: init has shape {given.shape}; it must hold finite prototypes of shape "
                    f"(n_units, n_features) = {shape}"
                )
            state.prototypes[:] = given
            check_finite(state.prototypes)
            state.counters[UNITS] = len(given)
        return state

    def _check_winners(self) -> None:
        if getattr(self, "n_winners", 1) > self._limit():
            raise ValueError(f"{type(self).__name__}: n_winners={self.n_winners} cannot exceed n_units={self.n_units}")

    def _layout(self, capacity: int, n_features: int, dtype: np.dtype[Any]) -> dict[str, Any]:
        """Return shape and type of every stored array of a state with a capacity of ``capacity`` units."""
        layout: dict[str, Any] = {
            "prototypes": ((capacity, n_features), dtype),
            "rates": ((capacity,), np.float64),
            "wins": ((capacity,), np.int64),
            "counters": ((OWN + len(self._own_counters),), np.int64),
            "journal": ((None, JOURNAL_COLUMNS), np.int64),
        }
        for name, array in self._arrays.items():
            if array.stored:
                layout[name] = array.shape(self, capacity, n_features), array.dtype or dtype
        return layout

    def _capacity_for(self, units: int) -> int | None:
        """Return the capacity to allocate for a trimmed checkpoint of ``units`` units; None if all rows are stored."""
        return None

    def _grow(self, row: FloatArray) -> None:
        """Grow the state for ``row``, the next one to learn; the journal is empty at this point."""
        state = self._state
        n, n_features = state.prototypes.shape
        wider = self._empty_state(min(2 * n, self._limit()), n_features, state.prototypes.dtype)
        wider = wider._replace(counters=state.counters, journal=state.journal)
        for old, new in zip(state, wider, strict=True):
            new[tuple(map(slice, old.shape))] = old
        self._state = wider

    @learning
    def _widen(self, n_features: int) -> None:
        """Add columns as if they had always existed with value 0: all per-column arrays are padded."""
        more = n_features - self._started().prototypes.shape[1]
        wider = {}
        for name in self._per_column:
            array, fill = getattr(self._state, name), self._arrays[name].fill if name in self._arrays else 0
            wider[name] = aligned(np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, more)], constant_values=fill))
        self._state = self._state._replace(**wider)
        self.n_features_in_ = n_features

    def _check_state(self, state: Any) -> None:
        """Raise ValueError unless ``state``, of the right layout, could result from learning."""
        n = len(state.prototypes)
        if n > self._limit() or (not self._gradual and n != self._limit()):
            raise ValueError(f"a state of {n} units does not fit a limit of {self._limit()}")
        self._check_winners()
        self._check_powers(state.prototypes)

    def _check(self, X: Any, reset: bool, finite: bool = True, missing: bool = True) -> FloatArray:
        rows = super()._check(X, reset, finite, missing)
        for numbers in (rows,) if reset else (rows, self._state.prototypes):
            self._check_powers(numbers)
        return rows

    def _check_powers(self, numbers: FloatArray) -> None:
        """Raise if differences of these values could overflow when raised to the power p."""
        p = getattr(self, "p", 2.0)
        if p not in (1.0, 2.0, np.inf) and (np.abs(numbers) > LARGEST_TO_RAISE).any():
            raise ValueError(
                f"{type(self).__name__}: numbers beyond {LARGEST_TO_RAISE:.0e} are too large for distances of order "
                f"p={p}; rescale the data, or take p=1, 2 or inf"
            )

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        if "_state" in state:  # its type is in a module that other processes cannot import
            state["_state"] = tuple(state["_state"])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        arrays = state.pop("_state", None)
        self.__dict__.update(state)
        if arrays is not None:
            state["_state"] = self._state_type._make(arrays)
        super().__setstate__(state)
