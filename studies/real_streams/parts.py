"""What is run and how it is scored: one function a part, each giving rows for the evidence file."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import v_measure_score

from ccmem import AdaptiveCCM, Stack, WindowLayer
from ccmem.metrics import covering, regimes, score_events, score_recording

from . import data, tssb
from .columns import columns
from .onsets import onsets
from .peers import PEERS, Detect, Found, Peer, standardised

PHASES = (0, 4, 8, 12, 16)
"""Rows left out at the start of a recording: where batches begin is chance, so figures are means over these."""
SEEDS = 10
ORDERS = 20
"""In how many other orders the recordings are laid end to end."""
CONTROL_ROWS, CONTROL_SEEDS = 100_000, 6
SLOW_ROWS = 20_000
OURS = "AdaptiveCCM"
DETECTORS = [OURS, *(peer.name for peer in PEERS)]
CURVE = ("onsets", "returns", "false", "repeated")


def memory(X: Any) -> Found:
    """The memory with its defaults, on the columns as they come."""
    model = AdaptiveCCM().partial_fit(X)
    events = [(event.step, event.to_block) for event in model.events_ if event.changes_block]
    return Found([step for step, _ in events], regimes(events, len(X)))


def _blocks(found: Found, n_rows: int) -> Any:
    """Regime of each row; one that never returns where a detector does not tell."""
    if found.blocks is not None:
        return found.blocks
    return regimes([(step, i + 1) for i, step in enumerate(found.steps)], n_rows)


# The same budget of false alarms -------------------------------------------------------------------------------------


def alarms(detect: Detect, normal: list[Any], warm_up: int) -> int:
    """How many alarms are raised on what is normal, after the warm-up."""
    return sum(step >= warm_up for X in normal for step in detect(X).steps)


def made(peer: Peer, setting: Any) -> Detect:
    """A peer with this setting, on standardised columns."""
    return lambda X: peer.make(setting)(standardised(X))


def _detectors(normal: list[Any], warm_up: int, names: list[str] | None = None) -> list[tuple[str, str, Detect | None]]:
    """Name, setting and function of every peer: with its default, and with the most sensitive setting of its parameter
    that raises no more alarms on what is normal than the memory does (one is free).
    """
    budget = max(1, alarms(memory, normal, warm_up))
    rows: list[tuple[str, str, Detect | None]] = []
    for peer in PEERS:
        if names is not None and peer.name not in names:
            continue

        rows.append((peer.name, f"default {peer.parameter} {peer.default:g}", made(peer, peer.default)))
        if not peer.slow:
            within = (s for s in peer.grid if alarms(made(peer, s), normal, warm_up) <= budget)
            setting = next(within, None)
            if setting is None:
                rows.append((peer.name, "no setting within the budget", None))
            else:
                rows.append((peer.name, f"within budget: {peer.parameter} {setting:g}", made(peer, setting)))
    return rows


# Recordings ----------------------------------------------------------------------------------------------------------


def skab(folder: Path, names: list[str] | None = None) -> list[dict[str, Any]]:
    """Every recording from an empty memory."""
    recordings, normal = data.skab(folder / "skab"), data.skab_normal(folder / "skab")
    return _compared(recordings, normal, data.WARM_UP, names)


def tep(folder: Path, names: list[str] | None = None) -> list[dict[str, Any]]:
    """Every test run from an empty memory."""
    recordings, normal = data.tep(folder / "tep"), data.tep_normal(folder / "tep")
    names = [OURS, *(peer.name for peer in PEERS if peer.name != "ClaSP")] if names is None else names  # 52 channels
    return _compared(recordings, normal, 0, names)


def _compared(
    recordings: list[data.Recording], normal: list[Any], warm_up: int, names: list[str] | None
) -> list[dict[str, Any]]:
    rows = []
    if names is None or OURS in names:
        rows.append(_recordings(OURS, "defaults", memory, recordings, warm_up, PHASES))
        rows[0]["alarms without a fault"] = alarms(memory, normal, warm_up)
    for name, setting, detect in _detectors(normal, warm_up, names):
        rows.append(_recordings(name, setting, detect, recordings, warm_up, (0,)))
        peer = next(peer for peer in PEERS if peer.name == name)
        if setting.startswith("default") and not peer.slow:  # what other budgets would give
            curve = [_recordings(name, "", made(peer, s), recordings, warm_up, (0,)) for s in peer.grid]
            rows[-1]["curve"] = [{key: point[key] for key in CURVE} for point in curve]
        print(f"  {name}, {setting}: {rows[-1].get('seconds')} s", flush=True)
    return rows


def _recordings(
    name: str, setting: str, detect: Detect | None, recordings: list[data.Recording], warm_up: int, phases: Any
) -> dict[str, Any]:
    row: dict[str, Any] = {"detector": name, "setting": setting}
    if detect is None:
        return row
    began = time.process_time()
    each: list[dict[str, Any]] = []
    for phase in phases:
        for recording in recordings:
            X = np.ascontiguousarray(recording.X[phase:])
            found = detect(X)
            steps = [step + phase for step in found.steps]
            score = score_recording(steps, recording.onset, recording.return_at, warm_up=warm_up)
            truth = np.zeros(len(recording.X), int)
            truth[recording.onset : recording.return_at] = 1
            v = v_measure_score(truth[phase:], _blocks(found, len(X)))
            each.append(
                {
                    "recording": recording.name,
                    "phase": phase,
                    **score._asdict(),
                    "V": round(float(v), 4),
                    "steps": steps,
                }
            )
    counted = [e for e in each if not (e["recording"][0] == "d" and int(e["recording"][1:]) in data.UNDETECTABLE)]
    delays = [e["delay"] for e in counted if e["delay"] is not None]
    n = len(phases)
    return row | {
        "recordings": len(counted) / n,
        "onsets": sum(e["onset"] for e in counted) / n,
        "returns": sum(bool(e["returned"]) for e in counted) / n,
        "of returns": sum(e["returned"] is not None for e in counted) / n,
        "false": sum(e["false"] for e in each) / n,
        "repeated": sum(e["repeated"] for e in counted) / n,
        "median delay": statistics.median(delays) if delays else None,
        "V": float(np.mean([e["V"] for e in counted])),
        "seconds": round(time.process_time() - began, 2),
        "each": each,
    }


def one_stream(folder: Path, names: list[str] | None = None) -> list[dict[str, Any]]:
    """All recordings of SKAB end to end, and one memory: does a fault leave the normal block, and is it found again?

    Which recording follows which is chance, so other orders are run as well.
    """
    recordings = data.skab(folder / "skab")
    others = [
        _end_to_end([recordings[i] for i in np.random.default_rng(seed).permutation(len(recordings))])
        for seed in range(ORDERS)
    ]
    keys = ("left", "recalled", "blocks", "events", "V")
    means = {key: float(np.mean([other[key] for other in others])) for key in keys}
    facts = {"detector": OURS, "faults": len(recordings)}
    return [
        facts | {"order": "as numbered"} | _end_to_end(recordings),
        facts | {"order": f"mean of {ORDERS} others"} | means,
    ]


def _end_to_end(recordings: list[data.Recording]) -> dict[str, Any]:
    X = np.ascontiguousarray(np.concatenate([recording.X for recording in recordings]))
    found = memory(X)
    blocks = np.array(_blocks(found, len(X)))
    truth, each, at = np.zeros(len(X), int), [], 0
    for recording in recordings:
        s, end = at + recording.onset, at + len(recording.X)
        r = end if recording.return_at is None else at + recording.return_at
        truth[s:r] = 1
        before, during = int(blocks[s - 1]), np.bincount(blocks[s:r]).argmax()
        left = bool(during != before or blocks[r - 1] != before)
        each.append(
            {
                "recording": recording.name,
                "before": before,
                "during": int(during),
                "at its end": int(blocks[r - 1]),
                "afterwards": int(blocks[end - 1]),
                "left": left,
                "recalled": bool(left and blocks[end - 1] == before),
            }
        )
        at = end
    return {
        "left": sum(e["left"] for e in each),
        "recalled": sum(e["recalled"] for e in each),
        "blocks": int(blocks.max()) + 1,
        "events": len(found.steps),
        "V": float(v_measure_score(truth, blocks)),
        "each": each,
    }


# Nothing changes -----------------------------------------------------------------------------------------------------


def controls(folder: Path, names: list[str] | None = None) -> list[dict[str, Any]]:
    """False alarms per 100,000 rows on streams in which nothing changes."""
    rows = []
    if names is None or OURS in names:
        rows.append({"detector": OURS, "setting": "defaults"} | _needless(lambda X: memory(X).steps))
        for which, n in (("the first column", 1), ("all columns", None)):
            found = _needless(lambda X, n=n: signal_changes(X[:, :n])[0])
            rows.append({"detector": OURS, "setting": f"behind WindowLayer, {which}"} | found)
        if names == [OURS]:
            return rows
    streams = list(data.controls(SLOW_ROWS))
    normal = data.skab_normal(folder / "skab")
    for name, setting, detect in _detectors(normal, data.WARM_UP, names):
        peer = next(peer for peer in PEERS if peer.name == name)
        if detect is not None and not (peer.offline or peer.slow):
            rows.append(
                {"detector": name, "setting": setting}
                | {stream: len(detect(X).steps) * 100_000 / SLOW_ROWS for stream, X in streams}
            )
    return rows


def _needless(told: Callable[[Any], list[int]]) -> dict[str, float]:
    """Alarms per 100,000 rows of every control, mean over seeds."""
    found: dict[str, float] = {}
    for seed in range(CONTROL_SEEDS):
        for name, X in data.controls(CONTROL_ROWS, seed=seed):
            found[name] = found.get(name, 0.0) + len(told(X)) * 100_000 / CONTROL_ROWS / CONTROL_SEEDS
    return found


def planted(folder: Path, names: list[str] | None = None) -> list[dict[str, Any]]:
    """One kind of change at a time: how often it is noticed, as it is and behind windows."""
    rows: dict[str, dict[str, Any]] = {}
    for seed in range(SEEDS):
        for name, X in data.planted(seed):
            row = rows.setdefault(
                name,
                {
                    "change at row 2,000, back at 3,000": name,
                    "of": SEEDS,
                    "noticed": 0,
                    "return noticed": 0,
                    "false": 0,
                    "noticed in windows": 0,
                    "return noticed in windows": 0,
                    "false in windows": 0,
                },
            )
            in_windows = Stack([WindowLayer()], AdaptiveCCM()).partial_fit(X).events_
            told = {"": memory(X).steps, " in windows": [event.step for event in in_windows]}
            for how, steps in told.items():
                score = score_recording(steps, 2000, 3000)
                row[f"noticed{how}"] += score.onset
                row[f"return noticed{how}"] += bool(score.returned)
                row[f"false{how}"] += score.false
    return list(rows.values())


def slow_returns(folder: Path, names: list[str] | None = None) -> list[dict[str, Any]]:
    """A fault that goes away little by little: is the block it began from in use again at the end?"""
    rows = []
    for weight, deviations, over in itertools.product((0.8, 0.95), (3, 5), (1, 200, 400)):
        left = back = 0
        for seed in range(2 * SEEDS):
            X, onset, return_at = data.slow_return(seed, weight, deviations, over)
            blocks = memory(X).blocks
            here = blocks[return_at - 1] != blocks[onset - 1]
            left, back = left + here, back + (here and blocks[-1] == blocks[onset - 1])
        rows.append(
            {
                "one column of four, AR": weight,
                "by deviations": deviations,
                "back within rows": over,
                "of": 2 * SEEDS,
                "faults leave the block": int(left),
                "of these in the old block at the end": int(back),
            }
        )
    return rows


# Labelled samples ----------------------------------------------------------------------------------------------------


def labelled(folder: Path, names: list[str] | None = None) -> list[dict[str, Any]]:
    """Classes that come with scikit-learn and River, visited in turn and once more."""
    rows = []
    for stream in data.labelled():
        model = AdaptiveCCM().partial_fit(stream.X)
        score = score_events(model.events_, stream.changes, tasks=stream.tasks)
        rows.append(
            {
                "stream": stream.name,
                "rows": len(stream.X),
                "columns": stream.X.shape[1],
                "changes": score.changes,
                "found": score.found,
                "false": score.false_alarms,
                "returns": score.returns,
                "right recalls": score.right_recalls,
                "median delay": score.median_delay,
            }
        )
    return rows


# Segmented signals ---------------------------------------------------------------------------------------------------


def signal_changes(X: Any) -> tuple[list[int], Any]:
    """Where the changes that the memory behind a window front noticed began, as its events tell it; and the front."""
    front = WindowLayer()
    features = front.push(X)
    if not len(features):
        return [], front
    model = AdaptiveCCM().partial_fit(features)
    began = {min(max(1, front.event_in_rows(event).onset), len(X) - 1) for event in model.events_}
    return sorted(began), front


def segmented(folder: Path, names: list[str] | None = None) -> list[dict[str, Any]]:
    """The segmentation benchmark: covering with the window front, one set of defaults."""
    rows = []
    for series in tssb.load([folder / "tssb", folder / "ucr"]):
        steps, front = signal_changes(series.values)
        rows.append(
            {
                "series": series.name,
                "development": series.development,
                "rows": len(series.values),
                "changes": len(series.changes),
                "found": len(steps),
                "window": front.window_,
                "covering": covering(series.changes, steps, len(series.values)),
                "none": covering(series.changes, [], len(series.values)),
                **series.published,
            }
        )
    return rows


PARTS = {
    "skab": skab,
    "one_stream": one_stream,
    "tep": tep,
    "controls": controls,
    "planted": planted,
    "slow_returns": slow_returns,
    "columns": columns,
    "labelled": labelled,
    "segmented": segmented,
    "onsets": onsets,
}
