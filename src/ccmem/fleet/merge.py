"""Shards of one stream, learned apart, as one memory that keeps learning.

Blocks whose signatures agree are united: the squared distance of their means must be within the limit at which one
stream would have recalled the block (:mod:`ccmem.models.adaptive.signature`), or so much smaller than that to all
others that it must be the same. Each block of a shard is united with at most one. Counts and votes add up, means and
variances are pooled; units are put together, and then merged two by two, the cheapest first, until the memory is as
large as its parameters allow. What belongs to the stream and not to a block (recent mean, suspicion, block in use) is
that of the last memory: the stream continues where that one stopped. Order within a shard must have survived: a memory
notices changes by their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ccmem._typing import FloatArray, IntArray
from ccmem.labels import sorted_union
from ccmem.memory import BLOCK_KINDS, JOURNALED, UNITS, grown
from ccmem.models._blocks import BLOCKS
from ccmem.models.adaptive import AdaptiveCCM
from ccmem.models.adaptive.columns import LEVEL, N_KNOWN, NOISE, SILENT, SWAY
from ccmem.models.adaptive.decision import list_members
from ccmem.models.adaptive.merging import merge_cheapest
from ccmem.models.adaptive.signature import COUNT, PAIRS, PRODUCT, SQUARE, VARIANCE, WANDER, WEIGHT, limit
from ccmem.persistence.memories import MANY, export_memory
from ccmem.readout import ModalClassifier

_ADDED = (COUNT, PAIRS)
_BY_PAIRS = (PRODUCT, SQUARE)


def merge(memories: Sequence[Any]) -> Any:
    """One memory from several that learned shards of a stream, given in the order of the stream.

    Parameters
    ----------
    memories : sequence of AdaptiveCCM, or of ModalClassifier on them
        All with the same parameters and columns; they are not changed.

    Returns
    -------
    AdaptiveCCM or ModalClassifier
        With the same parameters; ``max_units`` holds.

    Examples
    --------
    >>> import numpy as np, ccmem
    >>> rng = np.random.default_rng(0)
    >>> calm, storm = [1.0, 0.0, 0.1], [0.0, 1.0, 0.9]
    >>> shards = [ccmem.AdaptiveCCM(n_slots=5), ccmem.AdaptiveCCM(n_slots=5)]
    >>> for shard in shards:
    ...     for weather in (calm, storm):
    ...         _ = shard.partial_fit(rng.normal(weather, 0.2, (300, 3)))
    >>> whole = ccmem.merge(shards)
    >>> whole.n_blocks_, whole.n_samples_seen_
    (2, 1200)
    """
    models = list(memories)
    inner = _check(models)
    if any(getattr(model, "metric", None) == "shared" for model in models):
        raise ValueError('classifiers with metric="shared" cannot be merged: their scatter belongs to one stream')
    first = models[0]
    everything = sum(part.n_units_ for part in inner)  # for now, to be merged below
    memory = type(inner[0])(**{**inner[0].get_params(), "max_units": everything})
    memory._import(_union(inner))
    if isinstance(first, ModalClassifier):
        classes = sorted_union(*(model.classes_ for model in models))
        votes: IntArray = np.zeros((memory.n_units_, len(classes)), np.int64)
        start = 0
        for model, part in zip(models, inner, strict=True):
            votes[start : start + part.n_units_, np.searchsorted(classes, model.classes_)] = model.votes_
            start += part.n_units_
        votes = grown(votes, len(memory._state.prototypes))
        _shrink(memory, votes, inner[0].max_units)
        result = type(first)(**first.get_params(deep=False))
        result.memory_, result.classes_, result._votes = memory, classes, votes
        result._metric = None
        return result
    _shrink(memory, np.empty((0, 0), np.int64), inner[0].max_units)
    return memory


def _check(models: list[Any]) -> list[AdaptiveCCM]:
    """The memories that have learned something; raise if they cannot be united."""
    if not models:
        raise ValueError("merge needs at least one memory")
    inner = [getattr(model, "memory_", model) for model in models]
    for place, (model, memory) in enumerate(zip(models, inner, strict=True)):
        if type(model) is not type(models[0]) or not isinstance(memory, AdaptiveCCM):
            raise TypeError(
                f"memory {place} is a {type(model).__name__}; merge takes AdaptiveCCM, or ModalClassifier on it that "
                "has learned, all of one kind"
            )
        if not memory.__sklearn_is_fitted__():
            raise ValueError(f"memory {place} has learned nothing yet; leave it out")
        if memory.get_params() != inner[0].get_params():
            raise ValueError(f"memory {place} has other parameters: {memory} beside {inner[0]}")
        kinds = [(m._state.prototypes.dtype, m.n_features_in_) for m in (memory, inner[0])]
        if kinds[0] != kinds[1]:
            raise ValueError(f"memory {place} learned {kinds[0][1]} columns of {kinds[0][0]}, memory 0 {kinds[1]}")
        names = [list(getattr(m, "feature_names_in_", [])) for m in (memory, inner[0])]
        if names[0] != names[1]:
            raise ValueError(f"memory {place} learned the columns {names[0]}, memory 0 {names[1]}")
    return inner


def _union(shards: list[AdaptiveCCM]) -> dict[str, Any]:
    """What a memory with the units of all shards would be saved as."""
    first = shards[0]
    prototypes = first._state.prototypes
    layout = first._layout(MANY, prototypes.shape[1], prototypes.dtype)
    per_unit = [name for name, (shape, _) in layout.items() if shape[0] == MANY]
    per_block = [name for name, (shape, _) in layout.items() if shape[0] is None and name != "journal"]
    blocks = {name: list(getattr(first._state, name)[: first.n_blocks_]) for name in per_block}
    places = [list(range(first.n_blocks_))]
    for shard in shards[1:]:
        places.append(_take_blocks(first, blocks, shard))
    units = {name: np.concatenate([getattr(s._state, name)[: s.n_units_] for s in shards]) for name in per_unit}
    units["unit_blocks"] = np.concatenate(
        [np.array(place, np.int64)[s.unit_blocks_] for s, place in zip(shards, places, strict=True)]
    )
    fields = export_memory(shards[-1])
    for name in fields["state"]:
        if name in units:
            fields["state"][name] = units[name]
        elif name in blocks:
            fields["state"][name] = np.array(blocks[name])
    counters = fields["counters"]
    counters["pointer"] = places[-1][counters["pointer"]]
    counters["seen"] = sum(shard.n_samples_seen_ for shard in shards)
    counters["units"], counters["blocks"] = len(units["wins"]), len(blocks["means"])
    counters["size"] = int(np.count_nonzero(units["unit_blocks"] == counters["pointer"]))
    fields["events"] = _events(shards, places)
    return fields


def _events(shards: list[AdaptiveCCM], places: list[list[int]]) -> IntArray:
    """The events of all shards, steps and blocks counted as in the whole."""
    found, before = [], 0
    for shard, place in zip(shards, places, strict=True):
        lines = shard._export_events()
        lines[:, 1] += before
        lines[:, 3] = np.array(place, np.int64)[lines[:, 3]]
        of_blocks = lines[:, 0] < len(BLOCK_KINDS)  # others name a column there
        lines[of_blocks, 2] = np.array(place, np.int64)[lines[of_blocks, 2]]
        found.append(lines)
        before += shard.n_samples_seen_
    return np.concatenate(found)[-10_000:]


def _take_blocks(first: AdaptiveCCM, blocks: dict[str, list[Any]], shard: AdaptiveCCM) -> list[int]:
    """Unite the blocks of ``shard`` with those that agree, add the others; return where each has gone."""
    settings, state, n = first._settings(), shard._state, shard.n_blocks_
    means, known = state.means[:n].astype(np.float64), np.array(blocks["means"], np.float64)
    far = ((means[:, None] - known[None]) ** 2).sum(axis=2)
    misfit = np.empty_like(far)
    for b in range(n):
        for a in range(len(known)):
            pair = blocks["statistics"][a], state.statistics[b]
            weight = float(pair[0][WEIGHT] + pair[1][WEIGHT])
            allowed = max(limit(each, WANDER, weight, settings.z_new, settings.z_wander) for each in pair)
            misfit[b, a] = far[b, a] / allowed if far[b, a] > 0.0 else 0.0
            if far[b, a] < settings.clearly_nearest * _nearest_other(known, means, a, b):
                misfit[b, a] = min(misfit[b, a], 1.0)
    places = [-1] * n
    order = np.where(misfit <= 1.0, _column_distances(blocks, state.columns[:n]), np.inf)
    for flat in np.argsort(order, axis=None, kind="stable"):  # of those that agree, what is nearest by column first
        b, a = divmod(int(flat), len(known))
        if misfit[b, a] <= 1.0 and places[b] < 0 and a not in places:
            places[b] = a
    for b in range(n):
        if places[b] < 0:
            places[b] = len(blocks["means"])
            for name, rows in blocks.items():
                rows.append(getattr(state, name)[b].copy())
        else:
            _pool(blocks, places[b], {name: getattr(state, name)[b] for name in blocks})
    return places


def _column_distances(blocks: dict[str, list[Any]], columns: FloatArray) -> FloatArray:
    """Squared distances of levels, every column in its own variance; 0 where nothing is known of them."""
    known, distances = np.array(blocks["columns"]), np.zeros((len(columns), len(blocks["columns"])))
    for first in (0, N_KNOWN):
        for b, there in enumerate(columns):
            rows = known[:, first : first + N_KNOWN], there[first : first + N_KNOWN]
            variance = sum(part[..., k, :] for part in rows for k in (NOISE, SWAY))
            away = (rows[0][:, LEVEL] - rows[1][LEVEL]) ** 2
            distances[b] += np.where(away > 0.0, away / np.maximum(variance, 1e-300), 0.0).sum(axis=1)
    return distances


def _nearest_other(known: FloatArray, means: FloatArray, a: int, b: int) -> float:
    """Squared distance from either of two blocks to the nearest one of its own memory; without any, none is near."""
    around = [((known[a] - known[i]) ** 2).sum() for i in range(len(known)) if i != a]
    around += [((means[b] - means[i]) ** 2).sum() for i in range(len(means)) if i != b]
    return float(min(around, default=0.0))


def _pool(blocks: dict[str, list[Any]], place: int, other: dict[str, Any]) -> None:
    """Let a block become what it would be had it seen the samples of both."""
    one = {name: rows[place] for name, rows in blocks.items()}
    mine, theirs = one["statistics"], other["statistics"]
    share = theirs[COUNT] / max(mine[COUNT] + theirs[COUNT], 1.0)
    pairs = theirs[PAIRS] / max(mine[PAIRS] + theirs[PAIRS], 1.0)
    distance = float(((one["means"].astype(np.float64) - other["means"]) ** 2).sum())
    pooled = (1.0 - share) * mine + share * theirs
    pooled[list(_BY_PAIRS)] = ((1.0 - pairs) * mine + pairs * theirs)[list(_BY_PAIRS)]
    pooled[list(_ADDED)] = (mine + theirs)[list(_ADDED)]
    pooled[VARIANCE] += share * (1.0 - share) * distance
    pooled[WEIGHT] = (1.0 - share) ** 2 * mine[WEIGHT] + share**2 * theirs[WEIGHT]
    for name, rows in blocks.items():
        rows[place] = ((1.0 - share) * one[name] + share * other[name]).astype(one[name].dtype)
    blocks["statistics"][place] = pooled
    blocks["ages"][place] = one["ages"] + other["ages"]
    for first in (0, N_KNOWN):
        away = one["columns"][first + LEVEL] - other["columns"][first + LEVEL]
        blocks["columns"][place][first + SWAY] += share * (1.0 - share) * away**2
        for known, unknown in ((one, other), (other, one)):  # a column that one never heard is as the other knows it
            silent, part = unknown["columns"][first + SWAY] >= SILENT, slice(first, first + N_KNOWN)
            blocks["columns"][place][part, silent] = known["columns"][part, silent]


def _shrink(memory: AdaptiveCCM, votes: IntArray, bound: int | None) -> None:
    """Merge units until there are no more than one stream could have made."""
    state = memory._state
    n_blocks = int(state.counters[BLOCKS])
    if bound is not None and n_blocks > bound:
        raise ValueError(f"the shards have {n_blocks} different blocks, which do not fit max_units={bound}")
    share = memory.n_slots if bound is None else max(1, bound // n_blocks)
    while True:
        units = state.unit_blocks[: state.counters[UNITS]]
        gives = np.bincount(units, minlength=n_blocks) > share
        if not gives.any() or (bound is not None and len(units) <= bound):
            break
        merge_cheapest(state, votes, gives)
        state.counters[JOURNALED] = 0
    memory.max_units = bound
    state = state._replace(**memory._derive(state.prototypes, state.wins))
    memory._state = state if bound else state._replace(errors=state.errors[:0].copy())
    list_members(memory._state)
    memory._began_with = memory._shape()
