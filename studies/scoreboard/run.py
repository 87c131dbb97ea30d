"""Run parts of the scoreboard for one candidate."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from . import columns, cost, machines, onsets, signals, synthetic, tasks
from .candidates import Candidate
from .recordings import MissingData
from .table import Row, markdown
from .trial import FULL, Size, Trial

PARTS: dict[str, Callable[[Trial], list[Row]]] = {
    "skab": machines.skab,
    "tep": machines.tep,
    "waist": signals.waist,
    "chest": signals.chest,
    "people": signals.people,
    "tssb": signals.tssb,
    "utsa": signals.utsa,
    "images": tasks.images,
    "long_tasks": tasks.long_tasks,
    "embeddings": tasks.embeddings,
    "labelled": tasks.labelled,
    "drift": tasks.drift,
    "plants": synthetic.plants,
    "controls": synthetic.controls,
    "slow_returns": synthetic.slow_returns,
    "one_stream": machines.one_stream,
    "planted": synthetic.planted,
    "columns": columns.columns,
    "onsets": onsets.onsets,
    "cost": cost.cost,
}


def run(
    names: Iterable[str],
    memory: Candidate | Callable[[], Any],
    folder: Path | str,
    size: Size = FULL,
    report: Callable[[str], None] = print,
) -> dict[str, dict[str, Any]]:
    """Run the named parts; return rows and processor time of each, or the reason for skipping it.

    ``memory`` is a :class:`Candidate` or a callable that returns an empty memory.
    """
    candidate = memory if isinstance(memory, Candidate) else Candidate(memory)
    X = np.random.default_rng(0).normal(size=(4000, 2)) + np.repeat([[0], [9]], 2000, axis=0)
    for kind in (np.float32, np.float64):  # compile before timing
        candidate.rows(X.astype(kind))
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        began = time.process_time()
        candidate.seconds, candidate.rows_seen = 0.0, 0
        try:
            rows = PARTS[name](Trial(candidate, Path(folder), size))
        except MissingData as error:
            found[name] = {"skipped": str(error), "rows": []}
            report(f"{name}: skipped, {error}\n")
            continue
        found[name] = {"rows": rows, "seconds": round(time.process_time() - began, 1)}
        if candidate.rows_seen:
            found[name]["microseconds a row"] = round(1e6 * candidate.seconds / candidate.rows_seen, 3)
        report(f"{name}: {found[name]['seconds']} s, {found[name].get('microseconds a row', '-')} us a row\n")
        report(markdown(rows) + "\n")
    return found
