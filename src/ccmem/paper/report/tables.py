"""Tables of cells built from a result file and the paper's tables; terminal, page and Markdown lay them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ccmem.core.typing import FloatArray
from ccmem.paper import experiments
from ccmem.paper.experiments.protocol import PAPER, PROTOCOLS

METRICS = ("ACC", "BWT", "FMI", "ARI", "V-M")
COMPARED = ("model", "metric", "paper", "ours", "difference", "verdict")
MEASURED = ("model", *METRICS, "units used", "s/trial")

VERIFIED, BETTER, MISSED, QUOTED, NONE = "verified", "better", "missed", "quoted", ""
"""Verdicts: within tolerance; beyond it but better; outside it; quoted and not run here; no published figure."""
VERDICTS = (VERIFIED, BETTER, MISSED)


@dataclass(frozen=True)
class Cell:
    """One figure of a table: ours over the trials and the paper's, if there is one."""

    metric: str
    mean: float | None
    std: float | None
    paper: tuple[float, float] | None = None
    verdict: str = NONE

    @property
    def printed(self) -> float | None:
        """The paper's mean."""
        return None if self.paper is None else self.paper[0]

    @property
    def difference(self) -> float | None:
        """Our mean minus the paper's."""
        return None if self.printed is None or self.mean is None else self.mean - self.printed


@dataclass(frozen=True)
class Line:
    """One model of a table."""

    name: str
    title: str
    cells: tuple[Cell, ...]
    n_trials: int
    units: str = ""
    """Number of units and blocks at the end."""
    seconds: float | None = None


@dataclass(frozen=True)
class Section:
    """Part of a report: lines of text in columns, the head first, and a remark below each such table."""

    title: str
    notes: tuple[str, ...]
    parts: list[tuple[list[tuple[str, ...]], str]]


@dataclass(frozen=True)
class Table(Section):
    """One protocol on one data set: figures beside the paper's with verdicts, and other figures."""

    protocol: str
    lines: tuple[Line, ...]


def cells(row: Mapping[str, Any], protocol: str) -> list[Mapping[str, Any]]:
    """Return the results of the trials of a row that ran under a protocol."""
    return [trial["protocols"][protocol] for trial in row["trials"].values() if protocol in trial["protocols"]]


def statistics(row: Mapping[str, Any], protocol: str, metric: str) -> tuple[float, float | None]:
    """Return the mean of a metric over the trials and its standard deviation, None for that of a single trial."""
    return mean_and_std([cell["metrics"][metric] for cell in cells(row, protocol)])


def mean_matrix(row: Mapping[str, Any], protocol: str) -> FloatArray:
    """Return the mean of the task matrices over the trials."""
    found: FloatArray = np.mean([np.array(cell["R"], np.float64) for cell in cells(row, protocol)], axis=0)
    return found


def mean_and_std(values: Sequence[float]) -> tuple[float, float | None]:
    """Return the mean and the standard deviation, None for the deviation of a single value."""
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else None


def tables(result: Mapping[str, Any]) -> list[Table]:
    """Return the tables of a data set, paper protocol first, as far as they were run."""
    ran = [protocol for protocol in PROTOCOLS if any(cells(row, protocol) for row in _rows(result).values())]
    return [table for protocol in ran if (table := _table(result, protocol)).lines]


def _rows(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rows that were run: the paper's rows, their variants, and the other methods it quotes."""
    return {
        name: row
        for name, row in result["rows"].items()
        if row["trials"] and (row.get("standing") is None or _reference(name, row) in experiments.paper()["quoted"])
    }


def _reference(name: str, row: Mapping[str, Any]) -> str:
    """Return the name of a row in the paper's tables; a method of the comparison has one name at all budgets."""
    standing = row.get("standing")
    return name if standing is None else str(standing["family"])


def _table(result: Mapping[str, Any], protocol: str) -> Table:
    about = result["dataset"]
    name = about["name"]
    rows = _rows(result)
    lines = [
        _line(name, protocol, row_name, row)
        for row_name, row in rows.items()
        if (protocol == PAPER or row.get("standing") is None) and cells(row, protocol)
    ]
    if protocol == PAPER:
        lines = _quoted(name, rows) + lines
    trials = sorted({line.n_trials for line in lines if line.n_trials})
    counted = " to ".join(str(count) for count in {trials[0]: 0, trials[-1]: 0}) if trials else "0"
    word = "trial" if counted == "1" else "trials"
    notes = [f"{counted} {word}; {about['n_train']:,} training images, {about['n_test']:,} test images"]
    theirs = experiments.paper()["n_train"].get(name)
    if protocol == PAPER and theirs is not None and theirs != about["n_train"]:
        notes.append(f"the paper learned from {theirs:,} training images, these runs from {about['n_train']:,}")
    notes += [f"data: {note}" for note in about["notes"]]
    beside = compared(lines)
    rest = measured(lines, only_new=bool(beside))
    parts = [([COMPARED, *beside], verdicts(lines)), ([MEASURED, *rest], "")]
    title = f"{about['title']}, {protocol} protocol"
    return Table(title, tuple(notes), [part for part in parts if len(part[0]) > 1], protocol, tuple(lines))


def _quoted(dataset: str, run: Mapping[str, Any]) -> list[Line]:
    """Return figures that the paper quotes from elsewhere and that were not run here."""
    printed, found = experiments.paper().get(dataset, {}), []
    names = {_reference(name, row) for name, row in run.items()}
    for name, title in experiments.paper()["quoted"].items():
        if name in printed and name not in names:
            quoted = tuple(Cell(metric, None, None, tuple(value), QUOTED) for metric, value in printed[name].items())
            found.append(Line(name, title, quoted, 0))
    return found


def _line(dataset: str, protocol: str, name: str, row: Mapping[str, Any]) -> Line:
    trials = [trial for trial in row["trials"].values() if protocol in trial["protocols"]]
    found, reference = [], _reference(name, row)
    for metric in METRICS:
        mean, std = statistics(row, protocol, metric)
        printed = experiments.paper().get(dataset, {}).get(reference, {}).get(metric) if protocol == PAPER else None
        verdict = _verdict(dataset, reference, metric, mean, printed[0]) if printed else NONE
        found.append(Cell(metric, mean, std, tuple(printed) if printed else None, verdict))
    units = ""
    if "units" in trials[0]:
        units = _range([trial["used_units"] for trial in trials])
        if "blocks" in trials[0]:
            units += f" in {_range([trial['blocks'] for trial in trials])} blocks"
    seconds = float(np.mean([trial["seconds"] for trial in trials]))
    return Line(name, row["title"], tuple(found), len(trials), units, seconds)


def _range(values: list[int]) -> str:
    return str(min(values)) if min(values) == max(values) else f"{min(values)} to {max(values)}"


def _verdict(dataset: str, name: str, metric: str, ours: float, printed: float) -> str:
    """Classify our figure against the paper's; all five metrics are better when larger."""
    facts = experiments.paper()
    floor = facts["floor"].get(dataset, {}).get(name, {}).get(metric)
    if floor is not None:
        return MISSED if round(ours, 4) < floor else BETTER if ours > printed else VERIFIED
    tolerance = facts["tolerance"][name]
    if round(abs(ours - printed), 4) <= tolerance[metric]:  # compare to the printed precision
        return VERIFIED
    return BETTER if tolerance.get("or_better", False) and ours > printed else MISSED


def figure(mean: float | None, std: float | None, alone: str = " (1 trial)") -> str:
    """Format a mean and its standard deviation, or a remark if there is only one trial."""
    if mean is None:
        return ""
    return f"{mean:.4f}{alone}" if std is None else f"{mean:.4f} ± {std:.4f}"


def compared(lines: Sequence[Line]) -> list[tuple[str, ...]]:
    """Return one line per cell with a published figure: paper, ours, difference, verdict."""
    found: list[tuple[str, ...]] = []
    most = max((line.n_trials for line in lines), default=0)
    for line in lines:
        name = line.title + (f" ({line.n_trials} trials)" if 1 < line.n_trials < most else "")
        for cell in line.cells:
            if cell.paper is not None:
                ours = ("quoted, not run", "", "")
                if cell.difference is not None:
                    ours = figure(cell.mean, cell.std), f"{cell.difference:+.4f}", cell.verdict
                found.append((name, cell.metric, figure(*cell.paper), *ours))
                name = ""
    return found


def measured(lines: Sequence[Line], *, only_new: bool) -> list[tuple[str, ...]]:
    """Return one line per model as measured; ``only_new`` omits rows that :func:`compared` shows in full."""
    found = []
    for line in lines:
        if line.n_trials and not (only_new and all(cell.paper is not None for cell in line.cells)):
            seconds = "" if line.seconds is None else f"{line.seconds:.1f}"
            found.append((line.title, *[figure(cell.mean, cell.std) for cell in line.cells], line.units, seconds))
    return found


def judged(lines: Sequence[Line]) -> list[tuple[Line, Cell]]:
    """Return the cells that have a verdict, with their lines."""
    return [(line, cell) for line in lines for cell in line.cells if cell.verdict in VERDICTS]


def verdicts(lines: Sequence[Line]) -> str:
    """Return one sentence counting the verdicts."""
    words = [cell.verdict for _, cell in judged(lines)]
    parts = [f"{words.count(word)} {word}" for word in VERDICTS if word in words]
    return f"{len(words)} cells: {', '.join(parts)}" if words else ""


def summary(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return all tables of a data set as JSON values."""

    def values(line: Line) -> dict[str, Any]:
        keys = ("mean", "std", "paper", "difference", "verdict")
        metrics = {cell.metric: {key: getattr(cell, key) for key in keys} for cell in line.cells}
        return {"title": line.title, "trials": line.n_trials, "units": line.units, "metrics": metrics}

    protocols = {table.protocol: {line.name: values(line) for line in table.lines} for table in tables(result)}
    return {"dataset": result["dataset"], "versions": result["versions"], "protocols": protocols}
