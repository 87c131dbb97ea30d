"""Distance of an event's onset from the true row of the change, and share of onsets within the uncertainty."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ccmem.io.streams.drift import drifting_sensors

from . import made, recordings
from .table import Figure, Row
from .trial import Trial

ROWS = 150_000
FIRST_SEED = 10
"""First seed; differs from the seeds of the other parts."""


def streams(test: Trial) -> Iterator[tuple[str, Any, list[int]]]:
    """Yield the kind of a stream, its rows, and the rows at which it changes."""
    for seed in range(FIRST_SEED, FIRST_SEED + min(3, test.size.planted_seeds)):
        plan = drifting_sensors(ROWS, 8, 4, 3000, 0.1, seed + test.size.first_seed)
        yield "drift generator", np.concatenate([rows for rows, _ in plan.chunks()]), [at for at, _ in plan.changes]
    for seed in range(FIRST_SEED, FIRST_SEED + test.size.planted_seeds):
        for _, X in made.planted(seed + test.size.first_seed):
            yield "planted", X, [made.PLANTED.start, made.PLANTED.stop]
    for recording in recordings.skab(test.folder):
        yield "SKAB", recording.X, [c for c in (recording.onset, recording.return_at) if c is not None]
    for recording in recordings.tep(test.folder):
        yield "Tennessee Eastman", recording.X, [recording.onset]


def onsets(test: Trial) -> list[Row]:
    """Score the first event after every change, one row per kind of stream."""
    found: dict[str, list[tuple[int, int]]] = {}
    for kind, X, changes in streams(test):
        events = [event for event in test.candidate.learn(X).events_ if event.changes_block]
        for change, following in zip(changes, [*changes[1:], len(X)], strict=True):
            event = next((event for event in events if change <= event.step < following), None)
            if event is not None:
                found.setdefault(kind, []).append((event.onset - change, event.uncertainty))
    rows = []
    for kind, pairs in found.items():
        errors, within = np.array(pairs).T
        figures = {
            "changes found": float(len(errors)),
            "median distance": float(np.median(np.abs(errors))),
            "nine in ten within": float(np.quantile(np.abs(errors), 0.9)),
            "median delay of the onset": float(np.median(errors)),
            "median uncertainty": float(np.median(within)),
            "share within the uncertainty": float(np.mean(np.abs(errors) <= within)),
        }
        rows.append(Row(f"onsets, {kind}", {name: Figure(value) for name, value in figures.items()}))
    return rows
