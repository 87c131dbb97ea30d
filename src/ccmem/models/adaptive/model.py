"""The estimator; docs/adaptive_rule.md tells what it does."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from ccmem._typing import BoolArray, FloatArray, IntArray
from ccmem.base import ChunkResult
from ccmem.guard import reading
from ccmem.kernels.matching import SLAB_ROWS
from ccmem.kernels.rows import check_finite
from ccmem.memory import (
    JOURNAL_COLUMNS,
    JOURNALED,
    QUESTION,
    SEEN,
    UNITS,
    aligned_zeros,
    aligned_zeros_of,
    grown,
    new_units,
)
from ccmem.models._blocks import ALARM, BLOCKS, POINTER, BlockMemory
from ccmem.models._explain import Profile
from ccmem.models.adaptive.blindness import MANY, WARNING, blind_witnesses
from ccmem.models.adaptive.columns import (
    LATEST,
    LEVEL,
    N_BLOCK,
    N_GUESS,
    N_KNOWN,
    N_READINGS,
    N_SLOT,
    RING,
    ROUNDING,
    ROWS,
    SILENT,
    SWAY,
    TINY,
)
from ccmem.models.adaptive.decision import BATCHES, FILLED, LAST, N_SCALARS, N_VECTORS, OWN_COUNTERS, SIZE, answer
from ccmem.models.adaptive.kernels import learn, learn_bounded, learn_labelled, learn_with_gaps
from ccmem.models.adaptive.missing import ABSENT, KEPT, N_MISSING, UNHEARD, cosines, expecting_gaps
from ccmem.models.adaptive.signature import COUNT, N_STATISTICS, VARIANCE, WANDER, WEIGHT, limit
from ccmem.models.adaptive.state import AdaptiveSettings, AdaptiveState, Tuning, new_settings
from ccmem.models.adaptive.stored import with_missing, with_rates, without_errors, without_missing, without_rates
from ccmem.models.adaptive.upgrade import with_columns
from ccmem.parameters import Rule, integer, number, optional

_PER_UNIT = ("prototypes", "rates", "wins", "unit_blocks", "errors")
_PER_BLOCK = ("means", "statistics", "columns", "ages")
_LEAST_UNITS_MORE = 8
"""A fleet of small memories feels every spare row."""


class AdaptiveCCM(BlockMemory):
    """Continual competitive memory without thresholds: notices by itself when something begins or comes back.

    A block knows what its samples look like on average and how far that varies, by their direction and column by
    column; when recent samples no longer fit, a waiting block they do fit is recalled, or a new one begins. Columns may
    have any units: there is nothing to scale. NaN is a missing reading; a column that dies is told. Nothing is random.

    Parameters
    ----------
    n_slots : int, default=25
        Units of a block.
    learning_rate : float, default=0.35
        Part of the way to the sample that a unit moves at its first win; it becomes the mean of what it won.
    false_alarm_every : float, default=1e6
        About how many samples of one task may pass before it is mistaken for another. More makes changes a little
        harder to notice.
    max_units : int or None, default=None
        Bound on the number of units. Blocks then grow beyond ``n_slots`` while there is room, and the cheapest units
        of the largest blocks are merged when there is none. None: ``n_slots`` a block, and no bound.

    Attributes
    ----------
    n_blocks_, task_pointer_, unit_blocks_, events_
        Blocks and their history; see :class:`ccmem.models._blocks.BlockMemory`.
    alarm_ : int
        Samples since suspicion began; 0 without suspicion.
    blind_ : tuple of str
        Witnesses that could notice no change now: "direction" where a block wanders as far as directions can be apart,
        "columns" where all are silent. Empty as a rule; a memory with both says so once, as a warning.
    block_levels_, block_spreads_ : arrays of shape (n_blocks_, n_features_in_)
        Mean of every column in a block, and its standard deviation, in the units of the data.
    prototypes_, win_counts_, learning_rates_, n_units_, n_samples_seen_
        What the memory holds; see :class:`ccmem.base.CompetitiveMemory`.

    Examples
    --------
    >>> import numpy as np
    >>> from ccmem import AdaptiveCCM
    >>> rng = np.random.default_rng(0)
    >>> calm, storm = [1.0, 0.0, 0.1], [0.0, 1.0, 0.9]
    >>> memory = AdaptiveCCM(n_slots=5)
    >>> for weather in (calm, storm, calm):
    ...     _ = memory.partial_fit(rng.normal(weather, 0.2, (300, 3)))
    >>> [(event.kind, event.to_block) for event in memory.events_]
    [('new_block', 1), ('recall', 0)]
    """

    _rules: ClassVar[dict[str, Rule]] = {
        "n_slots": integer(1),
        "learning_rate": number(0.0, 1.0, open_below=True),
        "false_alarm_every": number(100.0, 1e15),
        "max_units": optional(integer(1)),
    }
    _shape_parameters = ("n_slots", "max_units")
    _state_type = AdaptiveState
    _own_counters = OWN_COUNTERS
    _per_column = ("prototypes", "means", "vectors", "columns", "readings", "ring", "missing", "filled", "guess")
    _derived = ("partners", "costs", "members", "filled", "guess")
    _takes_missing = True
    _labelled_kernel = staticmethod(learn_labelled)
    _not_pickled: ClassVar[tuple[str, ...]] = (*BlockMemory._not_pickled, "_known_alike", "_said_blind")
    _tuning: ClassVar[Tuning] = Tuning()

    def __init__(
        self,
        n_slots: int = 25,
        *,
        learning_rate: float = 0.35,
        false_alarm_every: float = 1e6,
        max_units: int | None = None,
    ) -> None:
        self.n_slots = n_slots
        self.learning_rate = learning_rate
        self.false_alarm_every = false_alarm_every
        self.max_units = max_units

    @property
    @reading
    def unit_blocks_(self) -> IntArray:
        """The block of every unit, a copy."""
        return self._started().unit_blocks[: self.n_units_].copy()

    @property
    @reading
    def block_levels_(self) -> FloatArray:
        """Mean of every column in every block, in the units of the data; NaN where a block had no reading of it."""
        known = self._started().columns[: self.n_blocks_]
        return np.where(known[:, SWAY] < SILENT, known[:, LEVEL], np.nan)

    @property
    @reading
    def block_spreads_(self) -> FloatArray:
        """Standard deviation of every column in every block: of rows within a batch, and of batches."""
        known = self._started().columns[: self.n_blocks_]
        return np.where(known[:, SWAY] < SILENT, np.sqrt(known[:, N_KNOWN + LEVEL] ** 2 + known[:, SWAY]), np.nan)

    @property
    @reading
    def blind_(self) -> tuple[str, ...]:
        """Witnesses that could notice no change now, of "direction" and "columns"; none as a rule."""
        return blind_witnesses(self._started(), self._settings())

    def _learn(self, X: FloatArray, learn: Callable[..., int] | None = None) -> ChunkResult:
        before = int(self._state.counters[SEEN])
        result = super()._learn(X, learn)
        seen = before + len(X)
        if seen >= MANY and before.bit_length() < seen.bit_length():  # now and then, ever less often
            self._say_if_blind(seen)
        return result

    def _say_if_blind(self, seen: int) -> None:
        """Warn once if no witness can notice anything."""
        if not self.__dict__.get("_said_blind") and len(blind_witnesses(self._state, self._settings())) == 2:
            self.__dict__["_said_blind"] = True
            warnings.warn(WARNING.format(seen), stacklevel=4)

    def _profile(self, block: int) -> Profile:
        if self._started().ages[block] == 0:
            return super()._profile(block)
        return Profile(self.block_levels_[block], self.block_spreads_[block], own_units=True)

    def _winners(self, X: FloatArray, competes: BoolArray | None = None) -> IntArray:
        """Units match by direction; blocks that directions do not tell apart are told apart by their columns."""
        winners = self._nearest(X, competes)
        alike = self._alike() if self.n_blocks_ > 1 and len(X) else None
        if alike is None:
            return winners
        state, blocks = self._state, self._state.unit_blocks[: self.n_units_]
        may_win = self._may_win() if competes is None else self._may_win() & competes
        able = np.isin(np.arange(self.n_blocks_), blocks[may_win]) & (state.ages[: self.n_blocks_] > 0)
        levels, spreads = self.block_levels_, self.block_spreads_
        spreads = np.maximum(spreads, ROUNDING * np.abs(levels) + TINY)
        found = blocks[winners]
        for group in np.unique(alike[found][able[found]], axis=0):
            rows = np.flatnonzero((alike[found] == group).all(axis=1))
            choices = np.flatnonzero(group & able)
            if len(choices) < 2:
                continue
            every = ~np.isnan(levels[choices]).any(axis=0)  # columns that all of them have heard
            with np.errstate(over="ignore"):  # a column that never moved in a block, and moves now: no match at all
                terms = [((X[rows] - levels[b]) / spreads[b]) ** 2 + 2.0 * np.log(spreads[b]) for b in choices]
            best = choices[np.argmin([np.nansum(term[:, every], axis=1) for term in terms], axis=0)]
            for b in choices:
                other = rows[(best == b) & (found[rows] != b)]
                if len(other):
                    winners[other] = self._nearest(X[other], may_win & (blocks == b))
        return winners

    def _nearest(self, X: FloatArray, competes: BoolArray | None) -> IntArray:
        """Best matching units by direction; of rows with missing readings by that of what is there."""
        try:
            return super()._winners(X, competes)
        except ValueError:
            check_finite(X, missing=True)  # it is NaN then, which only takes longer
        gappy, winners = np.isnan(X).any(axis=1), np.empty(len(X), np.int64)
        if not gappy.all():
            winners[~gappy] = super()._winners(np.ascontiguousarray(X[~gappy]), competes)
        may_win = self._may_win() if competes is None else self._may_win() & competes
        units, rows = np.flatnonzero(may_win), np.flatnonzero(gappy)
        usual = np.argmax(self._state.wins[units])  # a row without any reading is like most
        for some in np.array_split(rows, -(-len(rows) // SLAB_ROWS)):
            best = np.argmax(cosines(X[some], self._state.prototypes[units]), axis=1)
            winners[some] = units[np.where(np.isnan(X[some]).all(axis=1), usual, best)]
        return winners

    def _score(self, X: FloatArray, prototypes: FloatArray, out: FloatArray) -> None:
        super()._score(X, prototypes, out)
        gappy = np.isnan(X).any(axis=1)
        if gappy.any():
            out[gappy] = np.where(self._may_win(), cosines(X[gappy], prototypes), -1.0)

    def _alike(self) -> BoolArray | None:
        """For every block which blocks its signature does not tell from it, itself included; None if it is alone."""
        state, n, settings = self._state, self.n_blocks_, self._settings()
        of, seen, alike = self.__dict__.get("_known_alike", (None, -1, None))
        if of is state and seen == state.counters[SEEN]:
            return alike
        means, fits = state.means[:n].astype(np.float64), np.eye(n, dtype=np.bool_)
        for a in range(n):
            far = ((means - means[a]) ** 2).sum(axis=1)
            for b in range(n):
                weight = state.statistics[a, WEIGHT] + state.statistics[b, WEIGHT]
                if a != b and far[b] <= limit(state.statistics[a], WANDER, weight, settings.z_new, settings.z_wander):
                    fits[a, b] = fits[b, a] = True
        alike = fits if fits.sum() > n else None
        self.__dict__["_known_alike"] = state, int(state.counters[SEEN]), alike
        return alike

    def _alarm_limit(self) -> int:
        return self._tuning.batch * self._tuning.least_batches

    @property
    def _learn_kernel(self) -> Callable[..., int]:  # type: ignore[override]
        if self.max_units is not None:
            return learn_bounded
        return learn_with_gaps if len(self._state.missing) else learn

    def _empty_journal(self, first_step: int) -> IntArray:
        state = self._state
        if state.journal[state.counters[JOURNALED] - 1, 0] == QUESTION:
            rows = len(state.means)
            if state.counters[BLOCKS] == rows:  # the answer may be a new block
                more = rows + max(rows // 4, 1)
                self._state = state = state._replace(**{n: grown(getattr(state, n), more) for n in _PER_BLOCK})
            answer(state, self._settings())
        return super()._empty_journal(first_step)

    def _settings(self) -> AdaptiveSettings:
        return new_settings(self.n_slots, self.max_units, self.learning_rate, self.false_alarm_every, self._tuning)

    def _new_state(self, n_features: int, dtype: np.dtype[Any], rng: np.random.Generator) -> AdaptiveState:
        # one unit too many is there for a moment before two are merged
        capacity, blocks = self.max_units + 1 if self.max_units else 4 * self.n_slots, 4
        units = new_units(capacity, n_features, dtype, self.learning_rate, n_own=len(OWN_COUNTERS))
        units.counters[BLOCKS] = 1
        layout = dict(self._own_layout(self.max_units is not None, capacity, n_features, dtype))
        layout["missing"] = (0, n_features), np.float64
        shapes = [(tuple(blocks if n is None else n for n in shape), kind) for shape, kind in layout.values()]
        more = dict(zip(layout, aligned_zeros_of(shapes), strict=True))
        more.update(self._derive(units.prototypes, units.wins))
        return AdaptiveState(*units, **more)

    @staticmethod
    @lru_cache(maxsize=64)
    def _own_layout(bounded: bool, capacity: int, n_features: int, dtype: np.dtype[Any]) -> dict[str, Any]:
        """Shape and type of what the state has beyond that of every model; None stands for any number of blocks, and
        two numbers for either."""
        return {
            "unit_blocks": ((capacity,), np.int64),
            "errors": ((capacity if bounded else 0,), np.float64),
            "means": ((None, n_features), dtype),
            "statistics": ((None, N_STATISTICS), np.float64),
            "vectors": ((N_VECTORS, n_features), dtype),
            "scalars": ((N_SCALARS,), np.float64),
            "columns": ((None, N_BLOCK, n_features), np.float64),
            "ages": ((None,), np.float64),
            "readings": ((N_READINGS, n_features), np.float64),
            "ring": ((RING * N_SLOT, n_features), np.float64),
            "missing": (((0, N_MISSING), n_features), np.float64),
        }

    def _layout(self, capacity: int, n_features: int, dtype: np.dtype[Any]) -> dict[str, Any]:
        own = self._own_layout(self.max_units is not None, capacity, n_features, dtype)
        return {**super()._layout(capacity, n_features, dtype), **own}

    def _capacity_for(self, units: int) -> int:
        return units + 1

    def _derive(self, prototypes: FloatArray, wins: IntArray) -> dict[str, Any]:
        units = len(prototypes)
        in_a_block = units if self.max_units else min(units, self.n_slots)
        return {
            "partners": np.zeros(units if self.max_units else 0, np.int64),
            "costs": np.zeros(in_a_block),
            "members": np.zeros(in_a_block, np.int64),
            "filled": aligned_zeros((1, prototypes.shape[1]), prototypes.dtype),
            "guess": np.zeros((N_GUESS, prototypes.shape[1])),
        }

    def _grow(self, row: FloatArray) -> None:
        state = self._state
        rows = len(state.prototypes)
        if state.counters[UNITS] == rows:
            more = rows + max(rows // 8, _LEAST_UNITS_MORE)
            layout = self._layout(more, len(row), state.prototypes.dtype)
            larger = {name: grown(getattr(state, name), layout[name][0][0]) for name in _PER_UNIT}
            derived = self._derive(larger["prototypes"], larger["wins"])
            for name, array in derived.items():
                known = getattr(state, name)
                array[: len(known)] = known
            state = state._replace(**larger, **derived)
        if not len(state.missing) and np.isnan(row).any():
            state = expecting_gaps(state)
        lines = 2 + len(row)  # all columns may be lost at once
        if len(state.missing) and len(state.journal) < lines:
            state = state._replace(journal=np.zeros((lines, JOURNAL_COLUMNS), np.int64))
        self._state = state

    def _widen(self, n_features: int) -> None:
        before = self._started().prototypes.shape[1]
        super()._widen(n_features)
        self._state = state = expecting_gaps(self._state)
        new = slice(before, None)
        state.missing[UNHEARD, new], state.missing[ABSENT, new] = 1.0, state.counters[ROWS]
        state.columns[:, [SWAY, N_KNOWN + SWAY], new] = SILENT
        state.ring.reshape(RING, N_SLOT, -1)[:, 2:4, new] = SILENT

    @reading
    def _export(self) -> dict[str, Any]:
        return without_missing(without_rates(super()._export(), self.learning_rate))

    def _import(self, fields: dict[str, Any]) -> None:
        fields = with_rates(with_missing(with_columns(fields)), self.learning_rate)
        super()._import(fields if self.max_units else without_errors(fields))
        state = self._state
        members = (state.unit_blocks[: state.counters[UNITS]] == state.counters[POINTER]).nonzero()[0]
        state.members[: len(members)] = members  # not by the kernel's own function, which would have to be compiled

    def _check_state(self, state: AdaptiveState) -> None:
        counters, tuning = state.counters.tolist(), self._tuning  # plain numbers are quicker to compare
        units, blocks, rows = counters[UNITS], counters[BLOCKS], len(state.means)
        if not (1 <= blocks <= rows == len(state.statistics)) or not 0 <= counters[POINTER] < blocks:
            raise ValueError(f"block {counters[POINTER]} of {blocks} is in use, with space for {rows}")
        bound = self.max_units
        if bound is not None and units > bound:
            raise ValueError(f"{units} units do not fit max_units={bound}")
        if units and state.unit_blocks[:units].max() >= blocks:
            raise ValueError("some units belong to a block that does not exist")
        sizes = np.bincount(state.unit_blocks[:units], minlength=blocks)
        if bound is None and sizes.max() > self.n_slots:
            raise ValueError(f"some block has more than n_slots={self.n_slots} units")
        if counters[SIZE] != sizes[counters[POINTER]]:
            raise ValueError(f"block {counters[POINTER]} is said to have {counters[SIZE]} units, but it does not")
        if max(counters[FILLED], counters[ROWS]) >= tuning.batch or counters[LAST] > 2 or counters[LATEST] >= RING:
            raise ValueError("its counters are damaged")
        if counters[ALARM] and not 1 <= counters[ALARM] - counters[BATCHES] * tuning.batch <= tuning.batch:
            raise ValueError(f"{counters[BATCHES]} batches cannot have come from {counters[ALARM]} suspicious samples")
        if state.statistics.min() < 0 and state.statistics[:, [COUNT, VARIANCE, WEIGHT]].min() < 0:
            raise ValueError("statistics of some block are negative")
        if len(state.columns) != rows or len(state.ages) != rows or state.ages.min() < 0:
            raise ValueError("what its blocks know of their columns is damaged")
        counts = state.missing[:KEPT]
        if counts.size and (counts.min() < 0 or counts[ABSENT].max() > tuning.batch):
            raise ValueError("what it knows of missing readings is damaged")
