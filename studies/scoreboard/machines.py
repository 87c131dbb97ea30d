"""Recordings of machines: SKAB and Tennessee Eastman."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np

from studies.segments import score_recording

from . import recordings
from .candidates import Candidate, Found, rand_index
from .recordings import Recording
from .table import Figure, Row
from .trial import WARM_UP, Trial, mean, with_blind

UNDETECTABLE = ("d03", "d09", "d15")
"""Tennessee Eastman faults that the literature calls undetectable; only their false alarms count."""


def skab(test: Trial) -> list[Row]:
    """Score SKAB, every recording with an empty memory."""
    machines = recordings.skab(test.folder)
    targets = {"faults": Figure(0, least=14), "returns": Figure(0, least=13)}
    targets |= {"false": Figure(0, most=1), "repeated": Figure(0, most=1)}
    rows = _machines(test, "SKAB", machines, WARM_UP, targets)
    normal = alarms(test.candidate, recordings.skab_normal(test.folder), WARM_UP)
    rows[0].figures["alarms in the normal recording"] = Figure(normal)
    return rows


def tep(test: Trial) -> list[Row]:
    """Score Tennessee Eastman, every test run with an empty memory."""
    runs = recordings.tep(test.folder)
    targets = {"faults": Figure(0, least=8), "false": Figure(0, most=0), "median delay": Figure(0, most=60)}
    rows = _machines(test, "Tennessee Eastman", runs, 0, targets)
    rows[0].figures["alarms in the normal runs"] = Figure(alarms(test.candidate, recordings.tep_normal(test.folder)))
    return rows


def alarms(candidate: Candidate, normal: list[Any], warm_up: int = 0) -> int:
    """Return the number of alarms in recordings without a fault, after the warm-up."""
    return sum(step >= warm_up for X in normal for step in candidate.rows(X).steps)


def _machines(test: Trial, name: str, machines: list[Recording], warm_up: int, targets: dict[str, Figure]) -> list[Row]:
    plan = [(start, machine) for start in test.size.starts for machine in machines]
    runs = [test.candidate.rows(np.ascontiguousarray(machine.X[start:])) for start, machine in plan]

    def score(runs: list[Found]) -> Row:
        scores, rand = [], []
        for (start, machine), found in zip(plan, runs, strict=True):
            steps = [step + start for step in found.steps]
            result = score_recording(steps, machine.onset, machine.return_at, warm_up=warm_up)
            if machine.name in UNDETECTABLE:
                result = result._replace(onset=None, returned=None, repeated=0, delay=None)
            else:
                rand.append(rand_index(machine.truth[start:], found.blocks))
            scores.append(result)
        n = len(test.size.starts)
        delays = [s.delay for s in scores if s.delay is not None]
        returns = [s.returned for s in scores if s.returned is not None]
        values = {
            "faults": (sum(s.onset or 0 for s in scores) / n, sum(s.onset is not None for s in scores) / n),
            "returns": (sum(returns) / n, len(returns) / n),
            "false": (sum(s.false for s in scores) / n, None),
            "repeated": (sum(s.repeated for s in scores) / n, None),
            "median delay": (statistics.median(delays) if delays else None, None),
        }
        if not returns:
            del values["returns"]
        figures = {key: targets.get(key, Figure(0))._replace(value=v, of=of) for key, (v, of) in values.items()}
        return Row(name, figures, Figure(mean(rand)))

    return with_blind(runs, score)


def one_stream(test: Trial) -> list[Row]:
    """Score all SKAB recordings joined in random orders: faults that leave the block in use, and returns to it."""
    machines = recordings.skab(test.folder)
    orders = [np.random.default_rng(seed).permutation(len(machines)) for seed in test.seeds(test.size.orders)]
    plan = [[machines[i] for i in order] for order in orders]
    runs = [test.candidate.rows(np.concatenate([machine.X for machine in order])) for order in plan]

    def score(runs: list[Found]) -> Row:
        left = recalled = 0
        rand = []
        for order, found in zip(plan, runs, strict=True):
            rand.append(rand_index(np.concatenate([machine.truth for machine in order]), found.blocks))
            at = 0
            for machine in order:
                s, end = at + machine.onset, at + len(machine.X)
                r = at + (machine.return_at or len(machine.X))
                before = found.blocks[s - 1]
                away = np.bincount(found.blocks[s:r]).argmax() != before or found.blocks[r - 1] != before
                left, recalled, at = left + away, recalled + (away and found.blocks[end - 1] == before), end
        n = len(runs)
        figures = {
            "leave": Figure(left / n, len(machines), least=12),
            "recalled": Figure(recalled / n, least=9),
            "blocks": Figure(mean([found.n_blocks for found in runs]), most=10),
            "events": Figure(mean([len(found.steps) for found in runs])),
        }
        return Row(f"SKAB as one stream, {n} orders", figures, Figure(mean(rand)))

    return with_blind(runs, score)
