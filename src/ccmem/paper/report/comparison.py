"""The comparison at equal memory, read from a result file: floats, required information, accuracy and cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ccmem.core.typing import FloatArray
from ccmem.paper import experiments
from ccmem.paper.experiments.protocol import PAPER, PROTOCOLS, STRICT
from ccmem.paper.report.tables import Section, cells, figure, mean_matrix, statistics

HEAD = ("model", "given", "floats held", "ACC strict", "BWT strict", "ACC paper", "µs a sample", "trials")
REGIMES = ("one pass", "own", "all data")


@dataclass(frozen=True)
class Contender:
    """One learner at one budget."""

    name: str
    title: str
    family: str
    family_title: str
    regime: str
    told: str
    budget: int | None
    ours: bool
    floats: int
    """Largest number of floats held in any trial."""
    accuracy: Mapping[str, tuple[float, float | None]]
    """Protocol -> mean and standard deviation of ACC; None for the deviation of a single trial."""
    transfer: Mapping[str, tuple[float, float | None]]
    over_time: Mapping[str, FloatArray]
    """Protocol -> mean accuracy on the tasks seen so far, after each task."""
    microseconds: float
    """CPU time per learned sample in the fastest strict run; the first run includes compilation."""
    n_trials: str
    """Number of trials; two numbers if the protocols differ."""


def contenders(result: Mapping[str, Any]) -> list[Contender]:
    """Return the rows of the comparison in the order of ``rivals.toml``, from small to large budgets."""
    families = list(experiments.rivals()["rows"])
    found = [
        _contender(name, row)
        for name, row in result["rows"].items()
        if row.get("standing") is not None and row["trials"]
    ]

    def place(one: Contender) -> tuple[int, int]:  # a partial run puts its rows first in the file
        return families.index(one.family) if one.family in families else len(families), one.budget or 0

    return sorted(found, key=place)


def _contender(name: str, row: Mapping[str, Any]) -> Contender:
    trials, facts = list(row["trials"].values()), row["standing"]
    ran = [protocol for protocol in PROTOCOLS if cells(row, protocol)]  # some trials have one protocol only
    return Contender(
        name=name,
        title=row["title"],
        family_title=facts["title"],
        **{key: facts[key] for key in ("family", "regime", "told", "budget", "ours")},
        floats=max(trial["floats"] for trial in trials),
        accuracy={protocol: statistics(row, protocol, "ACC") for protocol in ran},
        transfer={protocol: statistics(row, protocol, "BWT") for protocol in ran},
        over_time={protocol: np.nanmean(mean_matrix(row, protocol), axis=1) for protocol in ran},
        microseconds=_quickest([trial["microseconds"] for trial in trials]),
        n_trials="/".join(dict.fromkeys(str(len(cells(row, protocol))) for protocol in reversed(ran))),
    )


def _quickest(trials: Sequence[Mapping[str, float]]) -> float:
    """Return the time of the fastest strict run if there is one; with two labels, some learners do less work."""
    protocol = STRICT if any(STRICT in trial for trial in trials) else PAPER
    return float(min(trial[protocol] for trial in trials if protocol in trial))


def at_equal_memory(result: Mapping[str, Any]) -> Section:
    """Return the comparison as a section: one-pass learners first, then those given tasks or all data."""
    found: list[tuple[str, ...]] = []
    for one in sorted(contenders(result), key=lambda one: REGIMES.index(one.regime)):
        measured = (one.accuracy.get(STRICT), one.transfer.get(STRICT), one.accuracy.get(PAPER))
        figures = ("not run" if value is None else figure(*value, alone="") for value in measured)
        cost = f"{one.microseconds:.0f}" if one.microseconds >= 10 else f"{one.microseconds:.1f}"
        found.append((one.title + " (ours)" * one.ours, one.told, f"{one.floats:,}", *figures, cost, one.n_trials))
    title = f"{result['dataset']['title']}, at equal memory"
    return Section(title, (), [([HEAD, *found], "")] if found else [])


def strict_by_budget(result: Mapping[str, Any]) -> Section:
    """Return strict ACC by learner and budget as a section."""
    lines = by_budget(result)
    return Section(f"{result['dataset']['title']}, strict ACC by budget", (), [(lines, "")] if lines else [])


def by_budget(result: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return a table of strict ACC by learner and budget; the header comes first."""
    found = [one for one in contenders(result) if STRICT in one.accuracy]
    budgets, facts = experiments.rivals()["budgets"], experiments.rivals()["rows"]
    lines: list[tuple[str, ...]] = [("model", *budgets, "fixed size", "trials")] if found else []
    for family in dict.fromkeys(one.family for one in found):
        at = {one.budget: one for one in found if one.family == family}
        one = next(iter(at.values()))
        told = ", told tasks" if one.regime == "own" and "told" not in one.family_title else ""
        shown = []
        for name, floats in budgets.items():
            if floats in at:
                shown.append(f"{at[floats].accuracy[STRICT][0]:.3f}")
            elif name in facts.get(family, {}).get("too_small", ()) or (None in at and one.floats > floats):
                shown.append("does not fit")
            else:
                shown.append("" if None in at else "not run")
        own = f"{one.accuracy[STRICT][0]:.3f} with {one.floats:,}" if None in at else ""
        trials = sorted({int(each.n_trials.split("/")[0]) for each in at.values()})
        counted = " to ".join(map(str, dict.fromkeys((trials[0], trials[-1]))))
        lines.append((f"{one.family_title}{' (ours)' if one.ours else ''}{told}", *shown, own, counted))
    return lines


def front(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the Pareto front of (floats, accuracy) points, from small to large.

    >>> front([(100, 0.8), (50, 0.7), (200, 0.75), (400, 0.9)])
    [(50, 0.7), (100, 0.8), (400, 0.9)]
    """
    best, found = -np.inf, []
    for floats, accuracy in sorted(points, key=lambda point: (point[0], -point[1])):
        if accuracy > best:
            found.append((floats, accuracy))
            best = accuracy
    return found
