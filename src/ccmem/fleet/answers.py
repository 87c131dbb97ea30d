"""Predictions of a fleet: each row is answered by the memory of its key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ccmem.core.sklearn import names_are_known
from ccmem.fleet import tables
from ccmem.fleet.step import Key, Member
from ccmem.fleet.store import Store
from ccmem.io.streams.arrow import pyarrow
from ccmem.io.streams.write import open_writer
from ccmem.readout.modal import ModalClassifier

_KEPT = 4096
"""Number of memories cached in RAM."""


def predict(store: Store, sources: Sequence[str], out: str, skip_bad: bool = False) -> dict[str, int]:
    """Write key, order, unit and block (and label) of every row to ``out``, in input order."""

    @lru_cache(maxsize=_KEPT)
    def member_of(key: Key) -> Member | None:
        state = store.state(key)
        return None if state is None else Member(store.recipe, key, state)

    facts = {"rows": 0, "bad_rows": 0, "unknown": 0}
    types = {"int64": int, "string": str, "float64": float}
    kinds = {
        store.columns.key: types[store.columns.key_type],
        store.columns.order: types.get(store.columns.order_type, int),
    }
    kinds |= {"unit": int, "block": int} | ({"label": str} if store.columns.label is not None else {})
    with open_writer(out, kinds) as write:
        for file in tables.find(sources):
            for piece in tables.pieces_of(file):
                columns = store.columns._replace(label=None)
                for batch in tables.read(piece, columns, skip_bad, store.recipe.takes_missing):
                    answers, unknown = _answers(store, batch, member_of)
                    facts["rows"] += len(batch.order)
                    facts["bad_rows"] += batch.bad
                    facts["unknown"] += unknown
                    write(dict(zip(kinds, answers, strict=True)))
    return facts


def _answers(store: Store, batch: Any, member_of: Callable[[Key], Member | None]) -> tuple[list[Any], int]:
    pa = pyarrow()
    n_rows = len(batch.keys)
    units, blocks = np.zeros((2, n_rows), np.int64)
    known, in_blocks = np.zeros((2, n_rows), np.bool_)
    labels: Any = np.full(n_rows, None, object)
    encoded = batch.keys.dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    ends = np.cumsum(np.bincount(codes))[:-1]
    for key, rows in zip(encoded.dictionary.to_pylist(), np.split(codes.argsort(kind="stable"), ends), strict=False):
        member = member_of(key)
        if member is None or not member.memory.n_units_:
            continue
        assert member.scale is not None
        with names_are_known():
            X = member.scale.apply(batch.X[rows])
            units[rows], known[rows] = member.memory.predict(X), True
            if hasattr(member.memory, "unit_blocks_"):
                blocks[rows], in_blocks[rows] = member.memory.unit_blocks_[units[rows]], True
            if isinstance(member.model, ModalClassifier) and len(member.model.classes_):
                labels[rows] = [str(label) for label in member.model.predict(X)]
    answers = [batch.keys, pa.array(batch.order), pa.array(units, mask=~known), pa.array(blocks, mask=~in_blocks)]
    if store.columns.label is not None:
        answers.append(pa.array(labels, pa.string()))
    return answers, int((~known).sum())
