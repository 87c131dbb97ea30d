"""Shards of one stream, learned apart, become one memory. Numpy, once per merge.

Blocks that fit each other are united: the level of one, as if it were a window of eight batches, gives no evidence
against the other. Each block of a shard is united with at most one. Levels, noise and sway are pooled by age; units are
put together and then merged two by two until the memory is as large as its parameters allow.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from ccmem.base.storage import MANY, export_memory
from ccmem.core.events import BLOCK_KINDS
from ccmem.core.state import JOURNALED, UNITS
from ccmem.core.typing import FloatArray, IntArray
from ccmem.models._blocks import EVENT_HISTORY
from ccmem.models.adaptive import state as s
from ccmem.models.adaptive.bound import merge_cheapest
from ccmem.models.adaptive.cold import list_members
from ccmem.models.adaptive.fit import fits
from ccmem.models.adaptive.model import AdaptiveCCM
from ccmem.models.adaptive.start import begin_in_columns


def united(shards: list[AdaptiveCCM]) -> AdaptiveCCM:
    """Return one memory with the units of all shards, in the order of the stream; :func:`shrink` has to follow."""
    coordinates = {int(shard._state.counters[s.COORDINATES]) for shard in shards}
    if s.COLUMNS in coordinates and len(coordinates) > 1:
        shards = [_in_columns(shard) for shard in shards]
    everything = sum(shard.n_units_ for shard in shards)
    memory = type(shards[0])(**{**shards[0].get_params(), "max_units": everything})
    memory._import(_fields(shards))
    return memory


def _in_columns(shard: AdaptiveCCM) -> AdaptiveCCM:
    """Return a shard that compares columns; a copy if it compares directions."""
    if not shard._by_distance:
        shard = copy.deepcopy(shard)
        begin_in_columns(shard._state, shard._settings())
    return shard


def shrink(memory: AdaptiveCCM, votes: IntArray, bound: int | None) -> None:
    """Merge units until there are no more than one stream could have made; then ``max_units`` is ``bound``."""
    state = memory._state
    n_blocks = int(state.counters[s.BLOCKS])
    if bound is not None and n_blocks > bound:
        raise ValueError(f"the shards have {n_blocks} different blocks, which do not fit max_units={bound}")
    share = memory.n_slots if bound is None else max(1, bound // n_blocks)
    while True:
        units = state.unit_blocks[: state.counters[UNITS]]
        if np.bincount(units, minlength=n_blocks).max() <= share or (bound is not None and len(units) <= bound):
            break
        merge_cheapest(state, memory._settings(), votes, share)
        state.counters[JOURNALED] = 0
    memory.max_units = bound
    memory._state = state._replace(**memory._derive(state.prototypes, state.wins))
    list_members(memory._state)
    memory._began_with = memory._shape()


def _fields(shards: list[AdaptiveCCM]) -> dict[str, Any]:
    """Return the checkpoint of a memory with the units of all shards; the stream continues as that of the last."""
    first = shards[0]
    prototypes = first._state.prototypes
    layout = first._layout(MANY, prototypes.shape[1], prototypes.dtype)
    per_unit = [name for name, (shape, _) in layout.items() if shape[0] == MANY]
    blocks, ages = list(first._state.blocks[: first.n_blocks_].copy()), list(first._state.ages[: first.n_blocks_])
    places = [np.arange(first.n_blocks_)]
    for shard in shards[1:]:
        places.append(_take_blocks(shard, blocks, ages))
    units = {name: np.concatenate([getattr(one._state, name)[: one.n_units_] for one in shards]) for name in per_unit}
    units["unit_blocks"] = np.concatenate(
        [place[shard.unit_blocks_] for shard, place in zip(shards, places, strict=True)]
    )
    fields = export_memory(shards[-1])
    fields["state"].update({name: units[name] for name in per_unit})
    fields["state"].update(blocks=np.array(blocks), ages=np.array(ages))
    counters = fields["counters"]
    counters["pointer"] = int(places[-1][counters["pointer"]])
    counters["seen"] = sum(shard.n_samples_seen_ for shard in shards)
    counters["began"] += counters["seen"] - shards[-1].n_samples_seen_
    counters["units"], counters["blocks"] = len(units["wins"]), len(blocks)
    counters["size"] = int(np.count_nonzero(units["unit_blocks"] == counters["pointer"]))
    fields["events"] = _events(shards, places)
    return fields


def _events(shards: list[AdaptiveCCM], places: list[IntArray]) -> IntArray:
    """Return the events of all shards, steps and blocks counted as in the whole."""
    found, before = [], 0
    for shard, place in zip(shards, places, strict=True):
        lines = shard._export_events()
        lines[:, 1] += before
        lines[:, 3] = place[lines[:, 3]]
        of_blocks = lines[:, 0] < len(BLOCK_KINDS)  # others name a column there
        lines[of_blocks, 2] = place[lines[of_blocks, 2]]
        found.append(lines)
        before += shard.n_samples_seen_
    return np.concatenate(found)[-EVENT_HISTORY:]


def _take_blocks(shard: AdaptiveCCM, blocks: list[Any], ages: list[Any]) -> IntArray:
    """Unite the blocks of ``shard`` with those that fit, add the others; return the new place of each."""
    state, settings, n, known = shard._state, shard._settings(), shard.n_blocks_, len(blocks)
    joint = state._replace(
        blocks=np.concatenate([state.blocks[:n], np.array(blocks)]),
        ages=np.concatenate([state.ages[:n], np.array(ages)]),
        counters=state.counters.copy(),
        stream=state.stream[: s.N_STREAM],
    )
    joint.counters[s.BLOCKS] = n + known
    evidence = np.full((n, known), np.inf)
    for mine in range(n):
        evidence[mine] = _against(joint, settings, mine)[n:]
    for other in range(known):
        evidence[:, other] = np.minimum(evidence[:, other], _against(joint, settings, n + other)[:n])
    places = np.full(n, -1)
    for flat in np.argsort(evidence, axis=None, kind="stable"):
        mine, other = divmod(int(flat), known)
        if evidence[mine, other] < 0.5 * settings.threshold and places[mine] < 0 and other not in places:
            places[mine] = other
            blocks[other] = _pooled(blocks[other], ages[other], state.blocks[mine], state.ages[mine])
            ages[other] = min(ages[other] + state.ages[mine], settings.block_span)
    for mine in np.flatnonzero(places < 0).tolist():
        places[mine] = len(blocks)
        blocks.append(state.blocks[mine].copy())
        ages.append(state.ages[mine])
    return places


def _against(state: Any, settings: Any, block: int) -> FloatArray:
    """Return the evidence against every block if the level of ``block`` were a window of eight batches."""
    level, error, _ = s.block_values(state, block)
    silent = error[0] < 0.0
    state = state._replace(blocks=state.blocks.copy())
    state.blocks[:, s.NOISE, silent] = -1.0  # says nothing about the others
    window = np.concatenate([level, np.maximum(error[1:], 0.0)])
    with np.errstate(over="ignore", invalid="ignore"):
        return fits(state, settings, np.repeat(window[np.newaxis], s.RING, axis=0)).evidence


def _pooled(one: FloatArray, age: float, other: FloatArray, other_age: float) -> FloatArray:
    """Return the block that would have learned the batches of both; a column that one never had is as in the other."""
    share = other_age / max(age + other_age, 1.0)
    pooled: FloatArray = (1.0 - share) * one + share * other
    away = one[s.LEVEL : s.LEVEL + 2] - other[s.LEVEL : s.LEVEL + 2]
    pooled[s.SWAY : s.SWAY + 2] += share * (1.0 - share) * away**2
    for known, unknown in ((one, other), (other, one)):
        silent = unknown[s.NOISE] < 0.0
        pooled[:, silent] = known[:, silent]
    return pooled
