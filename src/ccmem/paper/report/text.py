"""Layout of tables as terminal text and Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from ccmem.paper.report.comparison import HEAD, by_budget, comparison_lines
from ccmem.paper.report.tables import METRICS, NONE, QUOTED, Cell, Line, Table

TERMINAL_WIDTH = 100
COMPARED = ("model", "metric", "paper", "ours", "difference", "verdict")


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
            found.append(
                (line.title, *[figure(cell.mean, cell.std) for cell in line.cells], line.units, _seconds(line))
            )
    return found


def _seconds(line: Line) -> str:
    return "" if line.seconds is None else f"{line.seconds:.1f}"


MEASURED = ("model", *METRICS, "units used", "s/trial")


def verdicts(table: Table) -> str:
    """Return one sentence counting the verdicts."""
    cells: list[Cell] = [cell for line in table.lines for cell in line.cells if cell.verdict not in (NONE, QUOTED)]
    if not cells:
        return ""
    words = [cell.verdict for cell in cells]
    parts = [f"{words.count(word)} {word}" for word in ("verified", "better", "missed") if word in words]
    return f"{len(cells)} cells: {', '.join(parts)}"


def for_terminal(table: Table) -> str:
    """Format a table as text with aligned columns."""
    notes = [textwrap.fill(note, TERMINAL_WIDTH, subsequent_indent="  ") for note in table.notes]
    parts = [table.title, "=" * len(table.title), *notes]
    twins = compared(table)
    if twins:
        parts += ["", _aligned([COMPARED, *twins]), verdicts(table)]
    rest = measured(table, only_new=bool(twins))
    if rest:
        parts += ["", _aligned([MEASURED, *rest])]
    return "\n".join(parts) + "\n"


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
    parts = [f"### {table.title}", "", "; ".join(table.notes) + "."]
    twins = compared(table)
    if twins:
        parts += ["", _piped([COMPARED, *twins]), "", verdicts(table) + "."]
    rest = measured(table, only_new=bool(twins))
    if rest:
        parts += ["", _piped([MEASURED, *rest])]
    return "\n".join(parts) + "\n"


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
