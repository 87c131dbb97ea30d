"""Benchmarks of activity recordings and segmented series."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from studies.segments import covering

from . import recordings
from .candidates import Found, rand_index
from .recordings import Activity, Series
from .table import Figure, Row
from .trial import Trial, mean, with_blind

EARLY = 50
"""Number of rows before a true change from which an alarm already counts as a detection."""
STAIRS = {2, 3}
"""Labels of stairs up and stairs down in the waist recordings."""


def waist(test: Trial) -> list[Row]:
    """Score activity at the waist: 6 channels at 50 Hz, raw rows and windows."""
    people = recordings.activity(test.folder, "hapt")
    people = people if test.size.people is None else people[: 3 * test.size.people]
    rows = {"ARI": Figure(0, least=0.45), "alarms per change": Figure(0, most=2.5), "above blind": Figure(0, least=0.1)}
    windows = {
        "ARI": Figure(0, least=0.5),
        "right returns": Figure(0, least=0.5),
        "between stairs": Figure(0, least=0.5),
    }
    return _activity(test, "activity, waist", people, 250, test.size.starts, {"rows": rows, "windows": windows})


def chest(test: Trial) -> list[Row]:
    """Score activity at the chest: 3 channels at 52 Hz, raw rows and windows."""
    people = recordings.activity(test.folder, "chest")[: test.size.people]
    rows = {"ARI": Figure(0, least=0.5), "above blind": Figure(0, least=0.1)}
    windows = {"ARI": Figure(0, least=0.6), "alarms per change": Figure(0, most=3)}
    return _activity(test, "activity, chest", people, 520, test.size.starts, {"rows": rows, "windows": windows})


def people(test: Trial) -> list[Row]:
    """Score activity at the waist with all recordings of a person joined, one memory per person."""
    found = recordings.activity(test.folder, "hapt")
    people = []
    for name, parts in itertools.groupby(found, lambda recording: recording.name.partition("-")[2]):
        _, X, truth = zip(*parts, strict=True)
        people.append(Activity(name, np.concatenate(X), np.concatenate(truth)))
    return _activity(test, "activity, waist, by person", people[: test.size.people], 250, (0,), {})


def _activity(
    test: Trial, name: str, people: list[Activity], margin: int, starts: Sequence[int], targets: dict[str, Any]
) -> list[Row]:
    """Run every recording from every start, with raw rows and with windows; margins are in rows."""
    plan = [(start, person) for start in starts for person in people]
    detectors = {"rows": test.candidate.rows} | (
        {"windows": test.candidate.windows} if test.candidate.has_windows else {}
    )
    rows: list[Row] = []
    for how, detect in detectors.items():
        bounds = targets.get(how, {})
        runs = [detect(np.ascontiguousarray(person.X[start:])) for start, person in plan]

        def score(runs: list[Found], how: str = how, bounds: dict[str, Figure] = bounds) -> Row:
            return _score_activity(plan, runs, f"{name}, {how}", margin, bounds)

        row, clock = with_blind(runs, score)
        gain = (row.ari.value or 0) - (clock.ari.value or 0)
        row.figures["above blind"] = bounds.get("above blind", Figure(0))._replace(value=gain)
        rows += [row, clock]
    return rows


def _score_activity(
    plan: list[tuple[int, Activity]], runs: list[Found], name: str, margin: int, bounds: dict[str, Figure]
) -> Row:
    """Score changes, returns and alarms; bounds of counted figures are fractions."""
    rand, hits, stairs, right, alarms = [], [], [], [], 0
    for (start, person), found in zip(plan, runs, strict=True):
        rand.append(rand_index(person.truth[start:], found.blocks))
        steps = np.array(found.steps, int) + start
        segments = [s for s in person.segments if s.end > start]
        alarms += len(steps)
        for before, after in itertools.pairwise(segments):
            hits.append(bool(((steps >= before.end - EARLY) & (steps < after.start + margin)).any()))
            if {before.label, after.label} == STAIRS and "waist" in name:
                stairs.append(hits[-1])
        owner: dict[int, int] = {}
        for i, segment in enumerate(segments):
            half = found.blocks[max(0, (segment.start + segment.end) // 2 - start) : segment.end - start]
            block = int(np.bincount(half).argmax())
            if segment.label in {s.label for s in segments[:i]}:
                right.append(owner.get(block) == segment.label)
            owner.setdefault(block, segment.label)
    n = len({start for start, _ in plan})
    figures = {
        "alarms per change": bounds.get("alarms per change", Figure(0))._replace(value=alarms / max(1, len(hits))),
        "blocks": Figure(mean([f.n_blocks for f in runs])),
    }
    for key, values in (("found", hits), ("right returns", right), ("between stairs", stairs)):
        if values:
            share = bounds.get(key, Figure(0)).least
            least = None if share is None else share * len(values) / n
            figures[key] = Figure(sum(values) / n, len(values) / n, least)
    return Row(name, figures, bounds.get("ARI", Figure(0))._replace(value=mean(rand)))


def tssb(test: Trial) -> list[Row]:
    """Score TSSB with windows: covering by onset."""
    return _segmented(test, "tssb", "TSSB", 0.7)


def utsa(test: Trial) -> list[Row]:
    """Score UTSA with windows: covering by onset."""
    return _segmented(test, "utsa", "UTSA", 0.8)


def _segmented(test: Trial, which: str, name: str, least: float) -> list[Row]:
    series = recordings.segmented(test.folder, which)
    runs = [test.candidate.windows(one.X) for one in series]

    def score(runs: list[Found]) -> Row:
        return _score_series(series, runs, f"{name}, {len(series)} series, windows", least)

    rows = with_blind(runs, score)
    gain = (rows[0].figures["covering"].value or 0) - (rows[1].figures["covering"].value or 0)
    rows[0].figures["above blind"] = Figure(gain, least=0.1)
    return rows


def _score_series(series: list[Series], runs: list[Found], name: str, least: float) -> Row:
    rand, covered = [], []
    for one, found in zip(series, runs, strict=True):
        truth = np.searchsorted(one.changes, np.arange(len(one.X)), side="right")
        rand.append(rand_index(truth, found.blocks))
        covered.append(covering(one.changes, found.onsets, len(one.X)))
    figures = {
        "covering": Figure(mean(covered), least=least),
        "alarms": Figure(sum(len(found.steps) for found in runs), sum(len(one.changes) for one in series)),
    }
    return Row(name, figures, Figure(mean(rand)))
