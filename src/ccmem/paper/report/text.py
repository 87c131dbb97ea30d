"""Tables as terminal text and Markdown, and the summary of a run: one sentence and text bars."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from ccmem.paper.report.comparison import HEAD, by_budget, comparison_lines
from ccmem.paper.report.tables import BETTER, METRICS, MISSED, QUOTED, VERIFIED, Cell, Line, Table, tables

TERMINAL_WIDTH = 100
COMPARED = ("model", "metric", "paper", "ours", "difference", "verdict")
MEASURED = ("model", *METRICS, "units used", "s/trial")
_BAR, _TITLE, _MOST_NAMED = 40, 32, 3
"""Widths of a bar and of the title beside it, and the number of missed figures that the sentence names."""


def figure(mean: float | None, std: float | None) -> str:
    """Format a mean and, with several trials, its standard deviation."""
    if mean is None:
        return ""
    return f"{mean:.4f} (1 trial)" if std is None else f"{mean:.4f} ± {std:.4f}"


def compared(table: Table) -> list[tuple[str, ...]]:
    """Return one line per cell with a published figure: paper, ours, difference, verdict."""
    found: list[tuple[str, ...]] = []
    most = max((line.n_trials for line in table.lines), default=0)
    for line in table.lines:
        fewer = f" ({line.n_trials} trials)" if 1 < line.n_trials < most else ""
        for number, cell in enumerate(cell for cell in line.cells if cell.paper is not None):
            assert cell.paper is not None
            gap = cell.difference
            found.append(
                (
                    line.title + fewer if number == 0 else "",
                    cell.metric,
                    figure(*cell.paper),
                    "quoted, not run" if cell.verdict == QUOTED else figure(cell.mean, cell.std),
                    "" if gap is None else f"{gap:+.4f}",
                    "" if cell.verdict == QUOTED else cell.verdict,
                )
            )
    return found


def measured(table: Table, *, only_new: bool) -> list[tuple[str, ...]]:
    """Return one line per model as measured; ``only_new`` omits rows that :func:`compared` shows in full."""
    found = []
    for line in table.lines:
        if line.n_trials and not (only_new and all(cell.paper is not None for cell in line.cells)):
            seconds = "" if line.seconds is None else f"{line.seconds:.1f}"
            found.append((line.title, *[figure(cell.mean, cell.std) for cell in line.cells], line.units, seconds))
    return found


def _judged(table: Table) -> list[tuple[Line, Cell]]:
    """Return the cells that have a verdict, with their lines."""
    return [(line, cell) for line in table.lines for cell in line.cells if cell.verdict in (VERIFIED, BETTER, MISSED)]


def verdicts(table: Table) -> str:
    """Return one sentence counting the verdicts."""
    words = [cell.verdict for _, cell in _judged(table)]
    parts = [f"{words.count(word)} {word}" for word in (VERIFIED, BETTER, MISSED) if word in words]
    return f"{len(words)} cells: {', '.join(parts)}" if words else ""


def parts_of(table: Table) -> list[tuple[list[tuple[str, ...]], str]]:
    """Return the parts of a table that have lines: figures beside the paper's with verdicts, and other figures."""
    beside = compared(table)
    rest = measured(table, only_new=bool(beside))
    parts = [([COMPARED, *beside], verdicts(table)), ([MEASURED, *rest], "")]
    return [(lines, note) for lines, note in parts if len(lines) > 1]


def for_terminal(table: Table) -> str:
    """Format a table as text with aligned columns."""
    notes = [textwrap.fill(note, TERMINAL_WIDTH, subsequent_indent="  ") for note in table.notes]
    text = [table.title, "=" * len(table.title), *notes]
    for lines, note in parts_of(table):
        text += ["", _aligned(lines), *([note] if note else [])]
    return "\n".join(text) + "\n"


def _aligned(lines: Sequence[Sequence[str]]) -> str:
    """Align lines in columns; columns that do not fit continue below, repeating the first one.

    >>> print(_aligned([("model", "ACC"), ("CCM", "0.94")]))
    model  ACC
    -----------
    CCM    0.94
    """
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    groups, room = [[0]], TERMINAL_WIDTH - widths[0]
    for column, width in enumerate(widths[1:], 1):
        if width + 2 > room and len(groups[-1]) > 1:
            groups.append([0])
            room = TERMINAL_WIDTH - widths[0]
        groups[-1].append(column)
        room -= width + 2
    return "\n\n".join(_side_by_side(lines, widths, group) for group in groups)


def _side_by_side(lines: Sequence[Sequence[str]], widths: Sequence[int], columns: Sequence[int]) -> str:
    text = ["  ".join(line[column].ljust(widths[column]) for column in columns).rstrip() for line in lines]
    return "\n".join([text[0], "-" * (sum(widths[column] + 2 for column in columns) - 2), *text[1:]])


def for_markdown(table: Table) -> str:
    """Format a table as Markdown."""
    text = [f"### {table.title}", "", "; ".join(table.notes) + "."]
    for lines, note in parts_of(table):
        text += ["", _piped(lines), *(["", f"{note}."] if note else [])]
    return "\n".join(text) + "\n"


def comparison_for_terminal(result: Mapping[str, Any]) -> str:
    """Format the comparison at equal memory as text; empty if nothing was compared."""
    lines = comparison_lines(result)
    title = f"{result['dataset']['title']}, at equal memory"
    return "\n".join([title, "=" * len(title), _aligned([HEAD, *lines])]) + "\n" if lines else ""


def comparison_for_markdown(result: Mapping[str, Any]) -> str:
    """Format the comparison at equal memory as Markdown."""
    lines = comparison_lines(result)
    return f"### {result['dataset']['title']}, at equal memory\n\n{_piped([HEAD, *lines])}\n" if lines else ""


def budgets_for_markdown(result: Mapping[str, Any]) -> str:
    """Format strict ACC by budget as Markdown."""
    lines = by_budget(result)
    return f"### {result['dataset']['title']}, strict ACC by budget\n\n{_piped(lines)}\n" if lines else ""


def _piped(lines: Sequence[Sequence[str]]) -> str:
    text = ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join([text[0], "|" + "---|" * len(lines[0]), *text[1:]])


def headline(result: Mapping[str, Any]) -> str:
    """Return one sentence: the number of published figures reached, and the ones missed."""
    found = tables(result)
    if not found:
        return ""
    table = found[0]
    trials = max(line.n_trials for line in table.lines)
    title = f"{result['dataset']['title']} ({trials} trial{'s' * (trials != 1)})"
    judged = _judged(table)
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
