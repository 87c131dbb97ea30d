"""Parts of the study of shapes: segmentation, planted changes, controls, peers and speed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from ccmem import AdaptiveCCM, Stack
from studies.segments import covering

from . import data
from .activity import FRONTS, activity, people
from .peers import peers

# Segments ------------------------------------------------------------------------------------------------------------


def _onsets(front: Any, X: Any) -> list[int]:
    """Return the onsets of the changes that a memory behind ``front`` detected."""
    features, memory = front.fit_transform(X), AdaptiveCCM()
    front.set_overlap(memory)
    memory.partial_fit(features)
    events = [front.event_in_rows(event) for event in memory.events_ if event.changes_block]
    return sorted({min(max(1, event.onset), len(X) - 1) for event in events})


def _blind(n_alarms: int, n_rows: int) -> list[int]:
    return [round((i + 1) * n_rows / (n_alarms + 1)) for i in range(n_alarms)]


def best_split(features: Any, n_changes: int, least: int = 3) -> list[int]:
    """Return the change points that minimise the squared deviation from segment means, by dynamic programming."""
    sums = np.concatenate([np.zeros((1, features.shape[1])), np.cumsum(features, axis=0)])
    squares = np.concatenate([[0.0], np.cumsum((features**2).sum(axis=1))])
    products = sums @ sums.T
    norms, place = np.diag(products), np.arange(len(sums))
    lengths = np.maximum(place - place[:, np.newaxis], 1)
    cost = squares - squares[:, np.newaxis] - (norms + norms[:, np.newaxis] - 2 * products) / lengths
    cost[np.tril_indices(len(sums), least)] = np.inf
    best, steps = cost[0].copy(), []
    for _ in range(n_changes):
        totals = best[:, np.newaxis] + cost
        steps.append(np.argmin(totals, axis=0))
        best = totals[steps[-1], place]
    found, end = [], len(features)
    for step in reversed(steps):
        end = int(step[end])
        found.append(end)
    return sorted(found)


def _offline(front: Any, X: Any, n_changes: int) -> list[int]:
    """Return change points of standardised features, found offline, given the number of changes."""
    features = front.fit_transform(X)
    step = max(1, len(features) // 700)
    kept = features[::step].astype(np.float64)
    kept = (kept - kept.mean(axis=0)) / (kept.std(axis=0) + 1e-9)
    return [place * step * front.hop_ + front.window_ // 2 for place in best_split(kept, n_changes)]


def segments(folder: Path) -> list[dict[str, Any]]:
    """Covering of segmented series: online, blind with as many alarms, and offline with the number known."""
    rows = []
    for collection in ("tssb", "utsa"):
        for name, front in FRONTS.items():
            scores = []
            for series in data.segmented(folder, collection):
                n, found = len(series.X), _onsets(front(), series.X)
                offline = _offline(front(), series.X, len(series.changes))
                kinds = (found, _blind(len(found), n), offline)
                scores.append([*(covering(series.changes, kind, n) for kind in kinds), len(found), len(series.changes)])
            means = np.array(scores)
            rows.append(
                {
                    "series": f"{collection} ({len(scores)})",
                    "front": name,
                    **dict(zip(("covering", "blind", "offline"), means[:, :3].mean(axis=0).tolist(), strict=True)),
                    "alarms": int(means[:, 3].sum()),
                    "changes": int(means[:, 4].sum()),
                }
            )
    return rows


def recordings(folder: Path) -> list[dict[str, Any]]:
    """Adjusted Rand index of block against activity, over labelled rows, with the blind clock beside it."""
    from sklearn.metrics import adjusted_rand_score

    rows = []
    for place, found in (("waist", data.waist(folder)), ("chest", data.chest(folder))):
        for name, front in FRONTS.items():
            scores, alarms, changes = [], 0, 0
            for recording in found:
                stack = Stack([front()], AdaptiveCCM()).partial_fit(recording.X)
                events = [event for event in stack.events_ if event.changes_block]
                blocks, blind = np.zeros(len(recording.X)), np.zeros(len(recording.X))
                for event in events:
                    blocks[event.step :] = event.to_block
                for step in _blind(len(events), len(recording.X)):
                    blind[step:] += 1
                known = recording.activity > 0
                truth = recording.activity[known]
                scores.append([adjusted_rand_score(truth, kind[known]) for kind in (blocks, blind)])
                alarms += len(events)
                changes += int((np.diff(truth) != 0).sum())
            ari, blind_ari = np.mean(scores, axis=0).tolist()
            rows.append(
                {"place": place, "front": name, "ARI": ari, "blind": blind_ari, "alarms": alarms, "changes": changes}
            )
    return rows


# Synthetic signals ---------------------------------------------------------------------------------------------------


def planted(folder: Path, n: int = 12_000, seeds: int = 6) -> list[dict[str, Any]]:
    """Changes noticed within 1,500 rows, and alarms before them."""
    counts: dict[tuple[str, str], list[int]] = {}
    for seed in range(seeds):
        for kind, X in data.planted(n, np.random.default_rng(seed)):
            for name in ("rows", *FRONTS):
                model = AdaptiveCCM() if name == "rows" else Stack([FRONTS[name]()], AdaptiveCCM())
                steps = [event.step for event in model.partial_fit(X).events_ if event.changes_block]
                count = counts.setdefault((kind, name), [0, 0])
                count[0] += any(n // 2 <= step < n // 2 + 1500 for step in steps)
                count[1] += sum(step < n // 2 for step in steps)
    return [
        {"change": kind, "front": name, "found": found, "of": seeds, "false": false}
        for (kind, name), (found, false) in counts.items()
    ]


def controls(folder: Path, n: int = 20_000, seeds: int = 6) -> list[dict[str, Any]]:
    """Alarms per 100,000 rows of signals that do not change."""
    counts: dict[tuple[str, str], int] = {}
    for seed in range(seeds):
        for kind, X in data.controls(n, np.random.default_rng(seed)):
            for name, front in FRONTS.items():
                events = Stack([front()], AdaptiveCCM()).partial_fit(X).events_
                counts[kind, name] = counts.get((kind, name), 0) + sum(event.changes_block for event in events)
    per = 100_000 / (n * seeds)
    return [{"signal": kind, "front": name, "alarms": count * per} for (kind, name), count in counts.items()]


# Speed ---------------------------------------------------------------------------------------------------------------


def speed(folder: Path, n: int = 20_000, tries: int = 7) -> list[dict[str, Any]]:
    """Rows per second of processor time, the best of some tries, windows of 100 rows."""
    rows = []
    for n_channels in (1, 6):
        X = np.column_stack([data.wave("saw", n, 50, np.random.default_rng(c)) for c in range(n_channels)])
        for name, front in FRONTS.items():
            for model in ("alone", "AdaptiveCCM"):
                best = np.inf
                for _ in range(tries):
                    part = front(100) if model == "alone" else Stack([front(100)], AdaptiveCCM())
                    part.partial_fit(X[:2000])
                    began = time.process_time()
                    part.partial_fit(X[2000:])
                    best = min(best, time.process_time() - began)
                rows.append(
                    {"channels": n_channels, "front": name, "with": model, "rows per second": round((n - 2000) / best)}
                )
    return rows


PARTS = {
    "people": people,
    "activity": activity,
    "segments": segments,
    "peers": peers,
    "recordings": recordings,
    "planted": planted,
    "controls": controls,
    "speed": speed,
}
