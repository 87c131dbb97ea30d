"""Summary of a run: one sentence and text bars beside the paper's figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ccmem.paper.report.tables import BETTER, MISSED, VERIFIED, Cell, Line, tables

_BAR, _TITLE, _MOST_NAMED = 40, 32, 3


def headline(result: Mapping[str, Any]) -> str:
    """Return one sentence: the number of published figures reached, and the ones missed."""
    found = tables(result)
    if not found:
        return ""
    table = found[0]
    trials = max(line.n_trials for line in table.lines)
    title = f"{result['dataset']['title']} ({trials} trial{'s' * (trials != 1)})"
    judged = [(line, cell) for line in table.lines for cell in line.cells if cell.verdict in (VERIFIED, BETTER, MISSED)]
    if not judged:
        best = max((line for line in table.lines if line.n_trials), key=lambda line: line.cells[0].mean or 0.0)
        return f"{title}: no printed figures to compare with; the best ACC is {best.cells[0].mean:.4f}, of {best.title}"
    missed = [(line, cell) for line, cell in judged if cell.verdict == MISSED]
    text = f"{title}: {len(judged) - len(missed)} of {len(judged)} printed figures reached"
    if missed:
        named = "; ".join(_against(line, cell) for line, cell in missed[:_MOST_NAMED])
        more = f"; and {len(missed) - _MOST_NAMED} more" if len(missed) > _MOST_NAMED else ""
        text += f", {len(missed)} missed ({named}{more})"
    return text


def _against(line: Line, cell: Cell) -> str:
    assert cell.paper is not None
    return f"{line.title} {cell.metric} {cell.mean:.4f}, printed {cell.paper[0]:.4f}"


def bars(result: Mapping[str, Any]) -> str:
    """Draw the ACC of every model as text bars, with a tick at the paper's figure."""
    found = tables(result)
    lines = [line for line in found[0].lines if line.n_trials] if found else []
    if not lines:
        return ""
    width = min(_TITLE, max(len(line.title) for line in lines))
    text = [f"ACC, {found[0].protocol} protocol" + ("; | is the paper's" if any(map(_printed, lines)) else "")]
    for line in lines:
        mean, printed = line.cells[0].mean or 0.0, _printed(line)
        bar = list(f"{'#' * round(_BAR * mean):<{_BAR + 1}}")
        if printed is not None:
            bar[round(_BAR * printed)] = "|"
        beside = "" if printed is None else f"  paper {printed:.3f}"
        text.append(f"  {line.title[:width]:<{width}}  {''.join(bar)} {mean:.3f}{beside}")
    return "\n".join(text)


def _printed(line: Line) -> float | None:
    paper = line.cells[0].paper
    return None if paper is None else paper[0]
