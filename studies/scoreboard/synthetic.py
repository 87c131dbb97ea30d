"""Synthetic streams: controls, plants, slow returns, planted changes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from studies.segments import score_recording

from . import made
from .candidates import Found, rand_index
from .table import Figure, Row
from .trial import WARM_UP, Trial, mean, with_blind


def controls(test: Trial) -> list[Row]:
    """Count alarms per 100,000 rows in streams without a change."""
    rows = []
    detectors: dict[str, Callable[[Any], Found]] = {"rows": test.candidate.rows}
    if test.candidate.has_windows:
        detectors["windows of one column"] = lambda X: test.candidate.windows(X[:, 0])
        detectors["windows of all columns"] = test.candidate.windows
    raised: dict[str, dict[str, list[float]]] = {how: {} for how in detectors}
    for seed in test.seeds(test.size.control_seeds):
        for name, X in made.controls(test.size.control_rows, seed):
            for how, detect in detectors.items():
                raised[how].setdefault(name, []).append(len(detect(X).steps) * 100_000 / len(X))
    for how, kinds in raised.items():
        limits = {name: (1.0 if name == "random walk" or how != "rows" else 0.5) for name in kinds}
        figures = {name: Figure(mean(counts), most=limits[name]) for name, counts in kinds.items()}
        rows.append(Row(f"controls, {how}: alarms per 100,000", figures))
    return rows


def plants(test: Trial) -> list[Row]:
    """Score synthetic plants with one fault each, and an equal number without a fault."""
    seeds = test.seeds(test.size.plants)
    runs = [test.candidate.rows(made.plant(seed)) for seed in seeds]
    quiet = sum(len(test.candidate.rows(made.plant(seed, faulty=False)).steps) for seed in seeds)
    truth = np.repeat([0, 1, 0], [made.FAULT, made.BACK - made.FAULT, 3000 - made.BACK])

    def score(runs: list[Found]) -> Row:
        scores = [score_recording(found.steps, made.FAULT, made.BACK, warm_up=WARM_UP) for found in runs]
        n = len(scores)
        figures = {
            "faults": Figure(sum(s.onset for s in scores), n, least=0.85 * n),
            "returns": Figure(sum(bool(s.returned) for s in scores), n, least=0.75 * n),
            "false": Figure(sum(s.false for s in scores), most=1),
            "repeated": Figure(sum(s.repeated for s in scores)),
        }
        for i, kind in enumerate(made.KINDS):
            of_kind = [s.onset for seed, s in zip(seeds, scores, strict=True) if seed % 4 == i]
            figures[kind] = Figure(sum(of_kind), len(of_kind))
        return Row("plants", figures, Figure(mean([rand_index(truth, found.blocks) for found in runs])))

    rows = with_blind(runs, score)
    rows[0].figures["events without a fault"] = Figure(quiet)
    return rows


def slow_returns(test: Trial) -> list[Row]:
    """Score faults that fade over up to 400 rows: the original block should be in use at the end."""
    plan = list(itertools.product((0.8, 0.95), (3, 5), (1, 200, 400), test.seeds(test.size.slow_seeds)))
    runs = [test.candidate.rows(made.slow_return(seed, *kind)) for *kind, seed in plan]
    truth = np.repeat([0, 1, -1, 0], [made.LEFT, made.RETURN - made.LEFT, 400, 4000 - made.RETURN - 400])

    def score(runs: list[Found]) -> Row:
        left = [found.blocks[made.RETURN - 1] != found.blocks[made.LEFT - 1] for found in runs]
        back = [away and f.blocks[-1] == f.blocks[made.LEFT - 1] for away, f in zip(left, runs, strict=True)]
        n = len(plan)
        figures = {"leave": Figure(sum(left), n), "back": Figure(sum(back), n, least=round(n * 175 / 240))}
        return Row("slow returns", figures, Figure(mean([rand_index(truth, found.blocks) for found in runs])))

    return with_blind(runs, score)


def planted(test: Trial) -> list[Row]:
    """Score one kind of change at a time, with raw rows and with windows."""
    counts: dict[str, dict[str, int]] = {}
    seeds = test.seeds(test.size.planted_seeds)
    for seed in seeds:
        for name, X in made.planted(seed):
            count = counts.setdefault(name, {})
            for how, detect in (("rows", test.candidate.rows), ("windows", test.candidate.windows)):
                result = score_recording(detect(X).steps, made.PLANTED.start, made.PLANTED.stop, warm_up=WARM_UP)
                for what, value in (("found", result.onset), ("returns", result.returned), ("false", result.false)):
                    count[f"{what}, {how}"] = count.get(f"{what}, {how}", 0) + int(value or 0)
    return [
        Row(f"planted, {name}", {k: Figure(v, None if "false" in k else len(seeds)) for k, v in count.items()})
        for name, count in counts.items()
    ]
