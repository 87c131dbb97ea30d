"""Merge memories that learned shards of one stream into one memory that keeps learning.

Matching blocks are merged (:mod:`ccmem.fleet.shards`). Counts and votes add up. The state of the stream
(reference, open alarm, block in use) comes from the last memory, because the stream continues where that memory ended.
The rows of each shard must be in their original order, because a memory detects changes from the order of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ccmem.core.allocation import grown
from ccmem.core.labels import sorted_union
from ccmem.core.typing import IntArray
from ccmem.fleet.shards import shrink, united
from ccmem.models.adaptive import AdaptiveCCM
from ccmem.readout.modal import ModalClassifier


def merge(memories: Sequence[Any]) -> Any:
    """Merge memories that learned shards of one stream, given in the order of the stream.

    Parameters
    ----------
    memories : sequence of AdaptiveCCM, or of ModalClassifier on them
        All with the same parameters and columns. The inputs are not changed.

    Returns
    -------
    AdaptiveCCM or ModalClassifier
        Model with the same parameters, within ``max_units``.

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
    first = models[0]
    memory = united(inner)
    if isinstance(first, ModalClassifier):
        classes = sorted_union(*(model.classes_ for model in models))
        votes: IntArray = np.zeros((memory.n_units_, len(classes)), np.int64)
        start = 0
        for model, part in zip(models, inner, strict=True):
            votes[start : start + part.n_units_, np.searchsorted(classes, model.classes_)] = model.votes_
            start += part.n_units_
        votes = grown(votes, len(memory._state.prototypes))
        shrink(memory, votes, inner[0].max_units)
        result = type(first)(**first.get_params(deep=False))
        result.memory_, result.classes_, result._votes = memory, classes, votes
        result._made, result._evidence = None, result._new_evidence(memory, int(memory.n_features_in_))
        if result._evidence is not None:
            result._evidence.lead[0] = sum(model._evidence.lead[0] for model in models if model._evidence is not None)
        return result
    shrink(memory, np.empty((0, 0), np.int64), inner[0].max_units)
    return memory


def _check(models: list[Any]) -> list[AdaptiveCCM]:
    """Return the memories that have learned something; raise if the memories cannot be merged."""
    if not models:
        raise ValueError("merge needs at least one memory")
    inner = [getattr(model, "memory_", model) for model in models]
    for place, (model, memory) in enumerate(zip(models, inner, strict=True)):
        if type(model) is not type(models[0]) or not isinstance(memory, AdaptiveCCM):
            raise TypeError(
                f"memory {place} is a {type(model).__name__}; merge takes AdaptiveCCM, or ModalClassifier on it, that "
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
