"""The estimator; docs/adaptive_rule.md describes its decision rule."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from ccmem.base.matching import SLAB_ROWS
from ccmem.base.memory import ChunkResult
from ccmem.base.normalised import (
    INVERSE,
    VARIANCE,
    cosines_of,
    distances_in_columns,
    in_columns,
    nearest_in_columns,
    squares_of_row,
)
from ccmem.base.validation import check_finite
from ccmem.core.allocation import aligned_zeros, aligned_zeros_of, grown
from ccmem.core.locking import reading
from ccmem.core.parameters import Rule, boolean, choice, integer, number, optional
from ccmem.core.state import SEEN, UNITS, new_units
from ccmem.core.typing import BoolArray, FloatArray, IntArray
from ccmem.models._blocks import BlockMemory
from ccmem.models._explain import Profile
from ccmem.models.adaptive import state as s
from ccmem.models.adaptive.cold import decide, find_others, list_members
from ccmem.models.adaptive.constants import Constants
from ccmem.models.adaptive.density import correct_winners
from ccmem.models.adaptive.kernels import learn, learn_bounded, learn_with_gaps
from ccmem.models.adaptive.start import expecting_gaps, first_coordinates
from ccmem.models.adaptive.state import AdaptiveState

_PER_UNIT = ("prototypes", "rates", "wins", "unit_blocks")
_MANY = 10_000
"""Rows of a stream after which a memory that cannot detect anything warns."""


class AdaptiveCCM(BlockMemory):
    """Continual competitive memory without thresholds: it detects by itself when a task begins or comes back.

    A block knows the level and the spread of every column. When the latest batches of rows no longer fit, a waiting
    block that fits them is recalled, or a new one begins. Columns may have any units: there is nothing to scale. NaN is
    a missing reading; a dead column is reported. Nothing is random.

    Parameters
    ----------
    n_slots : int, default=25
        Units of a block.
    learning_rate : float, default=0.35
        Fraction of the distance a unit moves on its first win; units converge to the mean of their samples.
    false_alarm_every : float, default=1e6
        Expected number of samples between false alarms. Larger values detect changes a little later.
    max_units : int or None, default=None
        Bound on the number of units; beyond it, the cheapest units of the largest blocks are merged. None: no bound.
    normalise : "auto", "columns" or "none", default="auto"
        Coordinates in which units are compared. "columns": every column in units of its own spread, which is learned
        from the latest 500 rows or so; units are means of rows, in the units of the data. "none": directions of rows as
        they are; units have length 1. "auto": "columns", unless at least 32 columns share a unit (as pixels do), which
        is decided by the first 256 rows. Detection of changes is the same in all coordinates.
    fair : bool, default=True
        True if slots of a block that have won often win less easily (frequency-sensitive competition): dissimilarity
        times wins decides.
    overlap : int, default=1
        Number of successive samples that share data: 1 for rows, ``window_ // hop_`` for overlapping windows. After a
        change, that many samples belong to neither side: no block is chosen by them. ``Stack``, ``ccmem.river`` and
        ``ccmem learn`` set it for their window layer.

    Attributes
    ----------
    n_blocks_, task_pointer_, unit_blocks_, events_
        Blocks and their history; see :class:`ccmem.models._blocks.BlockMemory`.
    alarm_ : int
        Samples since a change that has not been assigned to a block yet; 0 otherwise.
    blind_ : tuple of str
        Columns whose changes cannot be detected now: without readings, or varying less than their precision.
    block_levels_, block_spreads_ : arrays of shape (n_blocks_, n_features_in_)
        Mean of every column in a block, and its standard deviation, in the units of the data.
    prototypes_, win_counts_, learning_rates_, n_units_, n_samples_seen_
        Content of the memory; see :class:`ccmem.base.memory.CompetitiveMemory`. Prototypes are in the units of the
        data, except where directions are compared.

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
        "normalise": choice("auto", "columns", "none"),
        "fair": boolean(),
        "overlap": integer(1),
    }
    _shape_parameters = ("n_slots", "max_units", "normalise")
    _state_type = AdaptiveState
    _own_counters = s.OWN_COUNTERS
    _per_column = ("prototypes", "blocks", "stream", "scratch")
    _derived = ("members", "scores", "scratch")
    _takes_missing = True
    _n_winners = 5
    _labelled_kernel = staticmethod(learn_bounded)
    _not_pickled: ClassVar[tuple[str, ...]] = (*BlockMemory._not_pickled, "_tables", "_has_warned")
    _constants: ClassVar[Constants] = Constants()

    def __init__(
        self,
        n_slots: int = 25,
        *,
        learning_rate: float = 0.35,
        false_alarm_every: float = 1e6,
        max_units: int | None = None,
        normalise: str = "auto",
        fair: bool = True,
        overlap: int = 1,
    ) -> None:
        self.n_slots = n_slots
        self.learning_rate = learning_rate
        self.false_alarm_every = false_alarm_every
        self.max_units = max_units
        self.normalise = normalise
        self.fair = fair
        self.overlap = overlap

    @property
    @reading
    def unit_blocks_(self) -> IntArray:
        """Block of every unit, a copy."""
        return self._started().unit_blocks[: self.n_units_].copy()

    @property
    @reading
    def block_levels_(self) -> FloatArray:
        """Mean of every column in every block, in the units of the data; NaN where a block had no reading of it."""
        blocks = self._started().blocks[: self.n_blocks_]
        return np.where(blocks[:, s.NOISE] >= 0.0, blocks[:, s.LEVEL], np.nan)

    @property
    @reading
    def block_spreads_(self) -> FloatArray:
        """Standard deviation of every column in every block: of rows within a batch, and of batches."""
        blocks = self._started().blocks[: self.n_blocks_]
        variance = self._constants.batch * blocks[:, s.NOISE] + blocks[:, s.SWAY]
        return np.where(blocks[:, s.NOISE] >= 0.0, np.sqrt(np.maximum(variance, 0.0)), np.nan)

    @property
    @reading
    def blind_(self) -> tuple[str, ...]:
        """Columns whose changes cannot be detected now; none as a rule."""
        state = self._started()
        if state.counters[s.AGE] == 0:
            return ()
        block, rounding = state.blocks[state.counters[s.POINTER]], self._settings().rounding
        blind = block[s.NOISE] < 0.0
        blind |= (block[s.NOISE] > 0.0) & (block[s.NOISE] < rounding * block[s.LEVEL] ** 2 + s.TINY)
        if len(state.gaps):
            blind |= state.gaps[3] > 0.0
        names = getattr(self, "feature_names_in_", None)
        return tuple(str(names[j]) if names is not None else f"column {j}" for j in np.flatnonzero(blind))

    def _learn(self, X: FloatArray, learn: Callable[..., int] | None = None) -> ChunkResult:
        before = int(self._state.counters[SEEN])
        result = super()._learn(X, learn)
        seen = before + len(X)
        if seen >= _MANY and before.bit_length() < seen.bit_length():  # now and then, ever less often
            self._warn_if_blind(seen)
        return result

    def _warn_if_blind(self, seen: int) -> None:
        """Warn once if no column can show a change."""
        if not self.__dict__.get("_has_warned") and len(self.blind_) == self.n_features_in_:
            self.__dict__["_has_warned"] = True
            warnings.warn(
                f"this memory can no longer detect changes: after {seen:,} samples every column is without readings "
                "or varies less than its precision; see blind_, and check what the stream delivers",
                stacklevel=4,
            )

    def _decide(self) -> bool:
        status = self._state.counters[s.STATUS]
        if status and status != s.FULL:  # the kernel goes on by itself then
            state = decide(self._state, self._settings())
            state.counters[s.STATUS] = 0  # last, so that an interrupted decision is taken with the next row
            self._state = state
        return bool(status)

    def _profile(self, block: int) -> Profile:
        if self._started().ages[block] == 0:
            return super()._profile(block)
        return Profile(self.block_levels_[block], self.block_spreads_[block], own_units=True)

    def _winners(self, X: FloatArray, competes: BoolArray | None = None) -> IntArray:
        """Return the best unit of every row; where directions of blocks are alike, of the block that fits best."""
        state = self._state
        if len(X) == 1 and competes is None and self._by_distance:
            far = np.empty(state.counters[UNITS])
            if squares_of_row(state.columns, X[0], state.prototypes[: len(far)], state.scratch, far):
                return np.array([far.argmin()])
        winners = self._nearest(X, competes)
        if self.n_blocks_ > 1 and len(X) and not self._by_distance:
            correct_winners(self, X, competes, winners)
        return winners

    def _nearest(self, X: FloatArray, competes: BoolArray | None) -> IntArray:
        """Return the best units over all blocks; of rows with missing readings by the readings that are there."""
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
            best = np.argmax(self._similarities(X[some], self._state.prototypes[units]), axis=1)
            winners[some] = units[np.where(np.isnan(X[some]).all(axis=1), usual, best)]
        return winners

    def _similarities(self, X: FloatArray, prototypes: FloatArray) -> FloatArray:
        """Return similarities of rows with missing readings to units, by the readings that are there."""
        if self._by_distance:
            return -distances_in_columns(self._state.columns, X, prototypes)
        return cosines_of(X, prototypes)

    @property
    def _by_distance(self) -> bool:  # type: ignore[override]
        return bool(self._state.counters[s.COORDINATES] == s.COLUMNS)

    @property
    def _sharpness(self) -> int:  # type: ignore[override]
        return 2 if self._by_distance else super()._sharpness

    def _match(self, X: FloatArray, prototypes: FloatArray, competes: BoolArray, winners: IntArray) -> None:
        if self._by_distance:
            nearest_in_columns(self._state.columns, X, prototypes, competes, winners)
        else:
            super()._match(X, prototypes, competes, winners)

    def _coordinates(self, X: FloatArray) -> FloatArray:
        return in_columns(self._state.columns, X) if self._by_distance else X

    def _score(self, X: FloatArray, prototypes: FloatArray, out: FloatArray) -> None:
        if self._by_distance:
            state, squares = self._state, np.empty(len(prototypes))
            if len(X) == 1 and squares_of_row(state.columns, X[0], prototypes, state.scratch, squares):
                np.sqrt(squares, out=out[0], casting="same_kind")
            else:
                out[:] = distances_in_columns(state.columns, X, prototypes)
            return
        super()._score(X, prototypes, out)
        gappy = np.isnan(X).any(axis=1)
        if gappy.any():
            out[gappy] = np.where(self._may_win(), cosines_of(X[gappy], prototypes), -1.0)

    def _alarm_limit(self) -> int:
        return self._constants.batch * self._constants.decide_after

    @property
    def _learn_kernel(self) -> Callable[..., int]:  # type: ignore[override]
        if self.max_units is not None:
            return learn_bounded
        return learn_with_gaps if len(self._state.gaps) else learn

    def _settings(self) -> Any:
        return s.new_settings(
            self.n_slots, self.max_units, self.learning_rate, self.fair, self.false_alarm_every, self.overlap,
            self._constants,
        )  # fmt: skip

    def _new_state(self, n_features: int, dtype: np.dtype[Any], rng: np.random.Generator) -> AdaptiveState:
        # one unit too many is there for a moment before two are merged
        capacity, blocks = self.max_units + 1 if self.max_units else 4 * self.n_slots, 4
        units = new_units(capacity, n_features, dtype, self.learning_rate, n_own=len(s.OWN_COUNTERS))
        units.counters[s.BLOCKS] = 1
        layout = dict(self._own_layout(capacity, n_features))
        layout["stream"] = (s.N_STREAM, n_features), np.float64
        shapes = [(tuple(blocks if n is None else n for n in shape), kind) for shape, kind in layout.values()]
        more = dict(zip(layout, aligned_zeros_of(shapes), strict=True))
        units.counters[s.COORDINATES] = first_coordinates(self.normalise, n_features)
        more["blocks"][0, s.NOISE] = -1.0
        more["stream"][s.COLUMN_ROWS + VARIANCE] = 0.0 if units.counters[s.COORDINATES] == s.DIRECTIONS else -1.0
        more["scalars"][s.SCATTER] = 1.0  # the largest, until a batch is full
        more.update(self._derive(units.prototypes, units.wins))
        return AdaptiveState(*units, **more)

    @staticmethod
    @lru_cache(maxsize=64)
    def _own_layout(capacity: int, n_features: int) -> dict[str, Any]:
        """Return shape and type of the model's own arrays; None: any number of blocks, two numbers: either."""
        return {
            "unit_blocks": ((capacity,), np.int64),
            "blocks": ((None, s.N_BLOCK, n_features), np.float64),
            "ages": ((None,), np.float64),
            "stream": (((s.N_STREAM, s.N_STREAM + s.N_GAPS), n_features), np.float64),
            "scalars": ((s.N_SCALARS,), np.float64),
        }

    def _layout(self, capacity: int, n_features: int, dtype: np.dtype[Any]) -> dict[str, Any]:
        return {**super()._layout(capacity, n_features, dtype), **self._own_layout(capacity, n_features)}

    def _capacity_for(self, units: int) -> int:
        return units + 1

    def _derive(self, prototypes: FloatArray, wins: IntArray) -> dict[str, Any]:
        in_a_block = len(prototypes) if self.max_units else min(len(prototypes), self.n_slots)
        return {
            "members": np.zeros(in_a_block, np.int64),
            "scores": np.zeros(in_a_block),
            "scratch": aligned_zeros((s.N_SCRATCH, prototypes.shape[1]), np.float64),
        }

    def _grow(self, row: FloatArray) -> None:
        state = self._state
        rows = len(state.prototypes)
        if state.counters[UNITS] == rows:
            more = rows + max(rows // 8, 8)  # memories of a fleet have few to spare
            state = state._replace(**{name: grown(getattr(state, name), more) for name in _PER_UNIT})
            state = state._replace(**self._derive(state.prototypes, state.wins))
            list_members(state)
        if not len(state.gaps) and np.isnan(row).any():
            state = expecting_gaps(state)
        self._state = state

    def _widen(self, n_features: int) -> None:
        before = self._started().prototypes.shape[1]
        super()._widen(n_features)
        self._state = state = expecting_gaps(self._state)
        state.blocks[: self.n_blocks_, s.NOISE, before:] = -1.0
        state.columns[VARIANCE, before:] = 0.0 if state.counters[s.COORDINATES] == s.DIRECTIONS else -1.0
        state.gaps[:, before:] = 0.0

    @reading
    def _export(self) -> dict[str, Any]:
        fields = super()._export()
        fields["state"]["rates"] = fields["state"]["rates"][:0]  # they follow from wins
        return fields

    def _import(self, fields: dict[str, Any]) -> None:
        super()._import(fields)
        units = self.n_units_
        self._state.rates[:units] = 1.0 / (1.0 / self.learning_rate + 0.5 * self._state.wins[:units])
        self._state.rates[units:] = self.learning_rate
        list_members(self._state)
        find_others(self._state, self._settings())

    def _check_state(self, state: AdaptiveState) -> None:
        counters, units, own = state.counters.tolist(), int(state.counters[UNITS]), self._own_counters
        value = dict(zip(own, counters[-len(own) :], strict=True))
        blocks, bound = value["blocks"], self.max_units
        if not 1 <= blocks <= len(state.blocks) or len(state.ages) != len(state.blocks) or state.ages.min() < 0:
            raise ValueError(f"there is no space for {blocks} blocks, or some have impossible ages")
        most = {
            "pointer": blocks - 1, "rows": self._constants.batch - 1, "latest": s.RING - 1, "kept": s.RING,
            "waiting": value["kept"], "fresh": value["alarm"], "watched": value["watched"] * (value["age"] > 0),
            "status": 0, "coordinates": s.DIRECTIONS,
        }  # fmt: skip
        for name, limit in most.items():
            if value[name] > limit:
                raise ValueError(f"its counters are damaged: {name} is {value[name]}, more than {limit}")
        sizes = np.bincount(state.unit_blocks[:units], minlength=blocks)
        if len(sizes) > blocks or (units > bound if bound is not None else sizes.max() > self.n_slots):
            raise ValueError(f"{units} units do not fit {blocks} blocks with {self}")
        if value["size"] != sizes[value["pointer"]]:
            raise ValueError(f"the block in use has {sizes[value['pointer']]} units, not {value['size']}")
        if state.columns[INVERSE].min() < 0 or state.gaps[: s.HAS_BATCH].min(initial=0.0) < 0:
            raise ValueError("its spreads of columns or counts of missing readings are damaged")
