"""Peers with default settings, and with the false-alarm budget of the memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from . import recordings
from .candidates import Candidate, Found
from .peers import PEERS, Peer, standardised
from .run import PARTS
from .table import Row
from .trial import WARM_UP, Size, Trial

SIZE = Size(starts=(0,), control_seeds=1, control_rows=20_000)
"""Repetitions for the peers, fewer because a peer takes up to a thousand times as long as the memory."""
COMPARED = ("skab", "tep", "waist", "tssb", "utsa", "controls")


class PeerCandidate(Candidate):
    """Peer with one setting; each alarm begins a new block."""

    has_windows = False

    def __init__(self, peer: Peer, setting: Any) -> None:
        super().__init__(lambda: None)
        self.detect = peer.make(setting)

    def rows(self, X: Any) -> Found:
        """Run the peer over standardised columns."""
        began = time.process_time()
        steps = self.detect(standardised(X))
        self.seconds += time.process_time() - began
        self.rows_seen += len(X)
        return Found.of(steps, len(X))

    def windows(self, X: Any) -> Found:
        """Run the peer over the raw signal."""
        return self.rows(X[:, np.newaxis] if X.ndim == 1 else X)


def normal(part: str, folder: Path) -> tuple[list[Any], int]:
    """Return the recordings that set the budget of a part, and the rows of each that do not count.

    Machines have recordings without a fault. Elsewhere the budget is the number of alarms in the part itself.
    """
    if part == "tep":
        return recordings.tep_normal(folder), 0
    if part == "waist":
        return [person.X for person in recordings.activity(folder, "hapt")], 0
    if part in ("tssb", "utsa"):
        return [series.X for series in recordings.segmented(folder, part)], 0
    return recordings.skab_normal(folder), WARM_UP


def raised(detect: Callable[[Any], Found], streams: list[Any], warm_up: int, most: float = np.inf) -> int:
    """Return the number of alarms after the warm-up; stop counting beyond ``most``."""
    n = 0
    for X in streams:
        n += sum(step >= warm_up for step in detect(X).steps)
        if n > most:
            break
    return n


def compared(part: str, candidate: Candidate, folder: Path) -> list[Row]:
    """Return the rows of the memory and of every peer, by default and within the budget."""
    streams, warm_up = normal(part, folder)
    budget = max(1, raised(candidate.windows if part in ("tssb", "utsa") else candidate.rows, streams, warm_up))
    rows = PARTS[part](Trial(candidate, folder, SIZE))
    for peer in PEERS:
        if part not in peer.parts:
            continue
        try:
            settings = _settings(peer, streams, warm_up, budget)
            candidates = {title: PeerCandidate(peer, setting) for title, setting in settings.items()}
        except ImportError as error:
            print(f"{part}, {peer.name}: skipped, {error}", flush=True)
            continue
        for title, one in candidates.items():
            row = PARTS[part](Trial(one, folder, SIZE))[0]
            bare = {name: figure._replace(least=None, most=None) for name, figure in row.figures.items()}
            ari = None if row.ari is None else row.ari._replace(least=None, most=None)
            rows.append(Row(f"{row.benchmark}: {peer.name}, {title}", bare, ari))
        if len(settings) == 1 < len(peer.grid):
            rows.append(Row(f"{rows[0].benchmark}: {peer.name}, no setting within the budget", {}))
        print(f"{part}: {peer.name}", flush=True)
    return rows


def _settings(peer: Peer, streams: list[Any], warm_up: int, budget: int) -> dict[str, Any]:
    """Return the default of a peer and the most sensitive setting within the budget, by title."""
    settings = {f"default {peer.parameter} {peer.default}": peer.default}
    for setting in peer.grid if len(peer.grid) > 1 else ():
        if raised(PeerCandidate(peer, setting).windows, streams, warm_up, budget) <= budget:
            return settings | {f"within the budget: {peer.parameter} {setting:g}": setting}
    return settings
