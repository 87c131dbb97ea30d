"""Where changes began: how far an event's onset is from the true row, and how often within its uncertainty."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ccmem import AdaptiveCCM
from ccmem.metrics import score_events
from ccmem.streams.drift import drifting_sensors

from . import data

DRIFT_ROWS, DRIFT_SEEDS, PLANTED_SEEDS = 150_000, (11, 12, 13), range(10, 20)
"""Seeds that the estimate was not looked at with while it was made; the recordings were."""


def streams(folder: Path) -> Iterator[tuple[str, Any, list[int]]]:
    """Kind of stream, rows, and where they change."""
    for seed in DRIFT_SEEDS:
        plan = drifting_sensors(DRIFT_ROWS, 8, 4, 3000, 0.1, seed)
        yield "generated sensors", np.concatenate([rows for rows, _ in plan.chunks()]), [at for at, _ in plan.changes]
    for seed in PLANTED_SEEDS:
        for name, X in data.planted(seed):
            creeps = "drifts" in name
            yield "planted, creeping in" if creeps else "planted, at once", X, [2000] if creeps else [2000, 3000]
    for stream in data.labelled(seed=1):
        yield "classes in turn", stream.X, stream.changes
    for recording in data.skab(folder / "skab"):
        yield "SKAB", recording.X, [c for c in (recording.onset, recording.return_at) if c is not None]
    for recording in data.tep(folder / "tep"):
        yield "Tennessee Eastman", recording.X, [recording.onset]


def onsets(folder: Path, names: list[str] | None = None) -> list[dict[str, Any]]:
    """One row a kind of stream, over the first event after every change."""
    found: dict[str, list[tuple[int, int]]] = {}
    for kind, X, changes in streams(folder):
        memory = AdaptiveCCM().partial_fit(X)
        for event, change in _first_after(memory.events_, changes):
            score = score_events([event], [change])
            found.setdefault(kind, []).append((score.onset_errors[0], event.uncertainty))
    rows = []
    for kind, pairs in found.items():
        errors, within = np.array(pairs).T
        rows.append(
            {
                "stream": kind,
                "changes noticed": len(errors),
                "onset off by, median rows": float(np.median(np.abs(errors))),
                "nine in ten within": float(np.quantile(np.abs(errors), 0.9)),
                "later (+) or earlier (-), median": float(np.median(errors)),
                "uncertainty, median": float(np.median(within)),
                "true onset within it": f"{np.mean(np.abs(errors) <= within):.0%}",
            }
        )
    return rows


def _first_after(events: list[Any], changes: list[int]) -> Iterator[tuple[Any, int]]:
    for change, following in zip(changes, [*changes[1:], None], strict=True):
        event = next((e for e in events if e.step >= change), None)
        if event is not None and (following is None or event.step < following):
            yield event, change
