"""CCM without hand-set thresholds: ``CCM(novelty="signature")``, and a bound on its units.

A block carries a signature of its inputs (:mod:`ccmem.models.adaptive.signature`); the stream carries a mean w of
recent inputs, of weight lambda each (more while a block is young), and a reference r, the mean of about the last
thousand. For a sample with direction u = x / |x|:

    calm        w <- w + lambda (u - w); if w is beyond its limit from the signature of the block in use or from r, be
                suspicious from here on; otherwise signature and r take u in, and so does a slot; how far w is from both
                is learned, for the limits to come
    suspicious  nothing is learned; u goes into the mean of a batch (20 samples) and into the candidate c, the mean of
                all since suspicion began. A full batch that does not fit the block in use (its signature or r) counts
                one more, one that fits it better than half of its own would counts one less; at none suspicion ends
                (or after ten batches, which widens the limits), and w becomes the mean of the last batch. At three or
                more there is a change, and r becomes c:
                if c fits no waiting block, a new block begins, its signature that of c, wandering as the one before
                until it knows better (but a block five times nearer to c than to all other blocks has wandered there);
                if c clearly fits one and there are five batches, that block is recalled; if in doubt, wait for
                another batch, up to ten, then recall the block that fits best if it fits at all likely

    learning    a block opens slots for samples that are far from all it has, until it has ``n_slots``; otherwise the
                most similar slot moves: M <- (M + v (u - M)) / |...|. After n wins v = 1 / (1 / v_0 + n / 2): a slot is
                the mean of what it won, the later half weighing more, however many samples there will be.

Suspicion uses samples from before it, each batch only its own, so that for independent samples the tests of a change
(recent mean, three batches) are independent if nothing changed, and their error rates multiply. They are set by
``false_alarm_every``: its square root is how many samples pass between two needless suspicions, its fourth root the
odds against a batch confirming one. One batch would thus do on paper, if two more were not good for tails heavier than
chi-square's, for batches that are waited for, and for bursts. Wandering is not independent from batch to batch, so its
part of every limit answers for ``false_alarm_every`` alone.

What this means for a stream:

* an outlier burst no longer than a batch changes no block: it touches two batches at most, the third fits again;
* a mixture of old tasks is a task of its own: it fits none of their signatures, so it gets a block, to be recalled
  when the mixture returns;
* cycles, drift and runs are learned: what a block has done before, or does little by little, is no change; what takes
  it further, and fast, is one. A block that never wandered and drifts away within a few thousand samples changes;
* an abrupt change is seen in a block that wanders, too, because r wanders with it;
* tasks that differ in other ways than their mean direction are not told apart, nor are tasks that are nearer to each
  other than each wanders; a zero vector has no direction and is not learned.

With ``max_units`` a block goes on opening slots beyond ``n_slots``, wherever one has gathered ten times the
block's variance in dissimilarity; when the bound is reached, only blocks with less than their share of it may, and the
cheapest pair of a block that has more is merged for it (:mod:`ccmem.models.adaptive.merging`). When there are
as many blocks as units, what fits none is given to the nearest. Ties go to the lowest index everywhere.
"""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from ccmem._typing import FloatArray, IntArray
from ccmem.base import REJECTED
from ccmem.kernels.competition import dot, dots
from ccmem.kernels.jit import kernel, kernel_in_place
from ccmem.kernels.update import copy_scaled, renormalising_move
from ccmem.memory import JOURNALED, SEEN, UNITS, grown, new_units, room
from ccmem.models.adaptive import change
from ccmem.models.adaptive.change import (
    ALARM,
    BATCHES,
    BLOCKS,
    FILLED,
    LAST,
    POINTER,
    SIZE,
    confirm,
    list_members,
    suspect,
)
from ccmem.models.adaptive.merging import TO_FIND, UNKNOWN, majority, merge_cheapest
from ccmem.models.adaptive.signature import COUNT, N_STATISTICS, VARIANCE, WEIGHT


class SignatureState(NamedTuple):
    prototypes: FloatArray
    rates: FloatArray
    wins: IntArray
    counters: IntArray
    journal: IntArray
    unit_blocks: IntArray
    errors: FloatArray
    """Dissimilarity each unit has gathered since a slot was last opened for it."""
    partners: IntArray
    costs: FloatArray
    """Cheapest partner of each unit, if known, and what merging the two would cost."""
    members: IntArray
    """Units of the block in use, in order."""
    means: FloatArray
    statistics: FloatArray
    """One row a block: see :mod:`ccmem.models.adaptive.signature`."""
    vectors: FloatArray
    scalars: FloatArray


class Tuning(NamedTuple):
    """What is the same for all data; how it was chosen is in docs/adaptive.md."""

    recent_rate: float = 0.02
    """lambda; 4 / n while a block of n samples is young."""
    slowest_rate: float = 1e-4
    """A signature remembers as many samples as this is the part of."""
    reference_rate: float = 0.001
    """The same for the reference that follows."""
    batch: int = 20
    least_batches: int = 3
    confirm_power: float = 0.25
    """A batch confirms a needless suspicion with probability ``false_alarm_every`` to minus this."""
    recall_batches: int = 5
    most_batches: int = 10
    recall_level: float = 0.01
    """How often a returning task may seem not to fit clearly, ..."""
    new_level: float = 1e-6
    """... and not to fit at all."""
    far_nearer: float = 0.04
    """What fits no block is still the nearest if its squared distance is less than this part of that to the others."""
    youngest: int = 30
    """Samples a signature needs before anything is compared with it (more if they are correlated); at least a batch."""
    spacing: float = 0.25
    """A slot is opened for samples less similar to all others than 1 - this part of the block's variance."""
    growth: float = 10.0


class SignatureSettings(NamedTuple):
    n_slots: int
    max_units: int
    learning_rate: float
    recent_rate: float
    slowest_rate: float
    reference_rate: float
    batch: int
    least_batches: int
    recall_batches: int
    most_batches: int
    z_suspect: float
    z_confirm: float
    z_recall: float
    z_new: float
    z_wander: float
    far_nearer: float
    youngest: int
    spacing: float
    growth: float


@lru_cache(maxsize=64)
def new_settings(
    n_slots: int, max_units: int | None, learning_rate: float, false_alarm_every: float, tuning: Tuning
) -> SignatureSettings:
    """Settings for the kernel: limits as quantiles of the standard normal distribution."""
    # a recent mean stays beyond a limit for about 1 / (10 lambda) samples
    suspect = min(0.05, 0.1 / (tuning.recent_rate * false_alarm_every**0.5))
    confirm = false_alarm_every ** (-tuning.confirm_power)
    wander = min(0.05, 1.0 / (tuning.recent_rate * false_alarm_every))  # no batch is independent of this
    normal = NormalDist()
    return SignatureSettings(
        n_slots=int(n_slots),
        max_units=int(max_units or 0),
        learning_rate=float(learning_rate),
        recent_rate=tuning.recent_rate,
        slowest_rate=tuning.slowest_rate,
        reference_rate=tuning.reference_rate,
        batch=tuning.batch,
        least_batches=tuning.least_batches,
        recall_batches=tuning.recall_batches,
        most_batches=tuning.most_batches,
        z_suspect=-normal.inv_cdf(suspect),
        z_confirm=-normal.inv_cdf(confirm),
        z_recall=-normal.inv_cdf(tuning.recall_level),
        z_new=-normal.inv_cdf(tuning.new_level),
        z_wander=-normal.inv_cdf(wander),
        far_nearer=tuning.far_nearer,
        youngest=tuning.youngest,
        spacing=tuning.spacing,
        growth=tuning.growth,
    )


def layout(capacity: int, n_features: int, dtype: np.dtype[Any]) -> dict[str, Any]:
    """Shape and type of what the state has beyond that of every model; None stands for the room for blocks."""
    per_unit = dict.fromkeys(("unit_blocks", "partners", "members"), ((capacity,), np.int64))
    return {
        **per_unit,
        "errors": ((capacity,), np.float64),
        "costs": ((capacity,), np.float64),
        "means": ((None, n_features), dtype),
        "statistics": ((None, N_STATISTICS), np.float64),
        "vectors": ((change.N_VECTORS, n_features), dtype),
        "scalars": ((change.N_SCALARS,), np.float64),
    }


def new_state(
    n_slots: int, max_units: int | None, n_features: int, dtype: np.dtype[Any], learning_rate: float
) -> SignatureState:
    """The state before the first sample. One unit too many is there for a moment before two are merged."""
    capacity, blocks = max_units + 1 if max_units else 4 * n_slots, 4
    units = new_units(capacity, n_features, dtype, learning_rate, n_own=len(change.OWN_COUNTERS))
    units.counters[BLOCKS] = 1
    more = {
        name: room(tuple(n or blocks for n in shape), kind)
        for name, (shape, kind) in layout(capacity, n_features, dtype).items()
    }
    return SignatureState(*units, **more)


def check_state(state: SignatureState, max_units: int | None, tuning: Tuning) -> None:
    """Raise ValueError unless this is a state that learning could have led to."""
    counters = state.counters
    units, blocks, rows = counters[UNITS], counters[BLOCKS], len(state.means)
    in_use = np.flatnonzero(state.unit_blocks[:units] == counters[POINTER])
    if not (1 <= blocks <= rows == len(state.statistics)) or not 0 <= counters[POINTER] < blocks:
        raise ValueError(f"block {counters[POINTER]} of {blocks} is in use, with room for {rows}")
    if max_units is not None and (units > max_units or len(state.prototypes) != max_units + 1):
        raise ValueError(f"{units} units and room for {len(state.prototypes)} do not fit max_units={max_units}")
    if units and state.unit_blocks[:units].max() >= blocks:
        raise ValueError("some units belong to a block that does not exist")
    if counters[SIZE] != len(in_use) or (state.members[: len(in_use)] != in_use).any():
        raise ValueError("the units listed for the block in use are not those that belong to it")
    if state.partners[:units].max(initial=0) > units or counters[LAST] > 2 or counters[FILLED] >= tuning.batch:
        raise ValueError("its counters are damaged")
    if counters[ALARM] and not 1 <= counters[ALARM] - counters[BATCHES] * tuning.batch <= tuning.batch:
        raise ValueError(f"{counters[BATCHES]} batches cannot have come of {counters[ALARM]} suspicious samples")
    if state.statistics.min() < 0 and state.statistics[:, [COUNT, VARIANCE, WEIGHT]].min() < 0:
        raise ValueError("statistics of some block are negative")


def with_room(state: SignatureState) -> SignatureState:
    """The same state with room for another unit and another block."""
    if state.counters[UNITS] == len(state.prototypes):
        per_unit = ("prototypes", "rates", "wins", "unit_blocks", "errors", "partners", "costs", "members")
        rows = 2 * len(state.prototypes)
        state = state._replace(**{name: grown(getattr(state, name), rows) for name in per_unit})
    if state.counters[BLOCKS] == len(state.means):
        rows = 2 * len(state.means)
        state = state._replace(means=grown(state.means, rows), statistics=grown(state.statistics, rows))
    return state


@kernel_in_place
def refuses(votes: IntArray, unit: int, label: int) -> bool:
    """Whether more than three quarters of the labels that ``unit`` learned are one other than ``label``."""
    most, total = majority(votes, unit), 0
    for other in range(votes.shape[1]):
        total += votes[unit, other]
    return most != UNKNOWN and most != label and 4 * votes[unit, most] > 3 * total


@kernel_in_place
def match_members(state: SignatureState, x: FloatArray, h: FloatArray) -> None:
    """Products of ``x`` with the units of the block in use; several at a time where they follow each other."""
    size, members = state.counters[SIZE], state.members
    if size > 0 and members[size - 1] - members[0] == size - 1:
        dots(state.prototypes, members[0], members[0] + size, x, h)
    else:
        for k in range(size):
            h[k] = dot(state.prototypes[members[k]], x)


@kernel_in_place
def place(
    state: SignatureState,
    settings: SignatureSettings,
    x: FloatArray,
    scale: float,
    label: int,
    votes: IntArray,
    refusing: bool,
    h: FloatArray,
) -> int:
    """Let a slot of the block in use learn ``x``, a new one if need be; return it. ``h`` is scratch."""
    counters = state.counters
    best: Any = np.int64(REJECTED)  # not a plain -1, for which functions would be compiled
    nearest, match, nearest_match = best, -np.inf, -np.inf
    match_members(state, x, h)
    for k in range(counters[SIZE]):
        unit, similarity = state.members[k], h[k] * scale
        if similarity > nearest_match:
            nearest, nearest_match = unit, similarity
        if similarity > match and not (refusing and label != UNKNOWN and refuses(votes, unit, label)):
            best, match = unit, similarity
    refused = best == REJECTED
    if refused:
        best, match = nearest, nearest_match
    if may_open(state, settings, best, match, refused):
        unit = open_slot(state, settings, best, x, scale)
    else:
        unit = best
        state.errors[best] += 1.0 - match
        renormalising_move(state.prototypes[best], x, scale, state.rates[best], 0.0)
    state.wins[unit] += 1
    state.rates[unit] = state.rates[unit] / (1.0 + 0.5 * state.rates[unit])
    if label != UNKNOWN:
        votes[unit, label] += 1
    if settings.max_units > 0 and counters[UNITS] > settings.max_units:
        make_room(state, settings, votes)
    return unit


@kernel_in_place
def may_open(state: SignatureState, settings: SignatureSettings, best: int, match: float, refused: bool) -> bool:
    """Whether a sample with this best match gets a slot of its own."""
    counters, bound = state.counters, settings.max_units
    size, variance = counters[SIZE], state.statistics[counters[POINTER], VARIANCE]
    if bound > 0 and counters[UNITS] == bound:
        if size >= max(1, bound // counters[BLOCKS]):
            return False
    elif bound == 0 and size >= settings.n_slots:
        return False
    if refused:
        return True
    far = 1.0 - match > settings.spacing * variance + 1e-6  # nearer than that may be rounding
    return far and (size < settings.n_slots or state.errors[best] > settings.growth * variance)


@kernel_in_place
def open_slot(state: SignatureState, settings: SignatureSettings, best: int, x: FloatArray, scale: float) -> int:
    """Let ``x`` become a unit of the block in use, relieving the one it was nearest to."""
    counters = state.counters
    unit = counters[UNITS]
    if best != REJECTED:
        state.errors[best] = 0.0
    copy_scaled(state.prototypes[unit], x, scale)
    state.rates[unit] = settings.learning_rate
    state.wins[unit] = 0
    state.errors[unit] = 0.0
    state.unit_blocks[unit] = counters[POINTER]
    state.partners[unit] = TO_FIND
    state.members[counters[SIZE]] = unit
    counters[UNITS] += 1
    counters[SIZE] += 1
    return unit


@kernel
def make_room(state: SignatureState, settings: SignatureSettings, votes: IntArray) -> None:
    """Merge the cheapest pair of a block with more than its share of the bound."""
    blocks = state.counters[BLOCKS]
    sizes = np.zeros(blocks, np.int64)
    for unit in range(state.counters[UNITS]):
        sizes[state.unit_blocks[unit]] += 1
    merge_cheapest(state, votes, sizes > max(1, settings.max_units // blocks))
    list_members(state)


@kernel_in_place
def learn_rows(
    state: SignatureState,
    settings: SignatureSettings,
    X: FloatArray,
    winners: IntArray,
    labels: IntArray,
    votes: IntArray,
    refusing: bool,
    h: FloatArray,
) -> int:
    counters = state.counters
    for r in range(X.shape[0]):
        if (
            counters[BLOCKS] == state.means.shape[0]
            or counters[UNITS] == state.prototypes.shape[0]
            or counters[JOURNALED] + 2 > state.journal.shape[0]
        ):
            return r
        x = X[r]
        winners[r] = REJECTED
        squared = dot(x, x)
        if squared > 0.0:
            scale = 1.0 / np.sqrt(squared)
            if counters[ALARM] > 0:
                confirm(state, settings, x, scale)
            elif suspect(state, settings, x, scale):
                counters[ALARM] = 1
            else:
                label = labels[r] if labels.shape[0] else UNKNOWN
                winners[r] = place(state, settings, x, scale, label, votes, refusing, h)
        counters[SEEN] += 1
    return X.shape[0]


@kernel
def learn_labelled(
    state: SignatureState,
    settings: SignatureSettings,
    X: FloatArray,
    winners: IntArray,
    labels: IntArray,
    votes: IntArray,
    refusing: bool,
) -> int:
    """As :func:`learn`, counting ``votes`` on the way: merges go by them, and slots may be ``refusing``."""
    h = np.empty(state.prototypes.shape[0])
    return learn_rows(state, settings, X, winners, labels, votes, refusing, h)


@kernel
def learn(state: SignatureState, settings: SignatureSettings, X: FloatArray, winners: IntArray) -> int:
    """Learn rows in order; labels play no part."""
    labels, votes, h = np.empty(0, np.int64), np.empty((0, 0), np.int64), np.empty(state.prototypes.shape[0])
    return learn_rows(state, settings, X, winners, labels, votes, False, h)
