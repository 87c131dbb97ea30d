"""Tables as terminal text and Markdown, and the summary of a run: one sentence and text bars."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from ccmem.paper.report.comparison import at_equal_memory
from ccmem.paper.report.tables import MISSED, Section, judged, tables

TERMINAL_WIDTH = 100
_BAR, _TITLE, _MOST_NAMED = 40, 32, 3
"""Widths of a bar and of the title beside it, and the number of missed figures that the sentence names."""


def sections(result: Mapping[str, Any]) -> list[Section]:
    """Return the tables of a data set: one per protocol, and the comparison at equal memory if rivals were run."""
    found = [*tables(result), at_equal_memory(result)]
    return [section for section in found if section.parts]


def for_terminal(section: Section) -> str:
    """Format a section as text with aligned columns."""
    notes = [textwrap.fill(note, TERMINAL_WIDTH, subsequent_indent="  ") for note in section.notes]
    text = [section.title, "=" * len(section.title), *notes]
    for lines, note in section.parts:
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


def for_markdown(section: Section) -> str:
    """Format a section as Markdown."""
    text = [f"### {section.title}", *(["", "; ".join(section.notes) + "."] if section.notes else [])]
    for lines, note in section.parts:
        text += ["", piped(lines), *(["", f"{note}."] if note else [])]
    return "\n".join(text) + "\n"


def piped(lines: Sequence[Sequence[str]]) -> str:
    """Format lines as a table in Markdown."""
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
    found_cells = judged(table.lines)
    if not found_cells:
        best = max((line for line in table.lines if line.n_trials), key=lambda line: line.cells[0].mean or 0.0)
        return f"{title}: no printed figures to compare with; the best ACC is {best.cells[0].mean:.4f}, of {best.title}"
    missed = [(line, cell) for line, cell in found_cells if cell.verdict == MISSED]
    text = f"{title}: {len(found_cells) - len(missed)} of {len(found_cells)} printed figures reached"
    if missed:
        named = "; ".join(
            f"{line.title} {cell.metric} {cell.mean:.4f}, printed {cell.printed:.4f}"
            for line, cell in missed[:_MOST_NAMED]
        )
        more = f"; and {len(missed) - _MOST_NAMED} more" if len(missed) > _MOST_NAMED else ""
        text += f", {len(missed)} missed ({named}{more})"
    return text


def bars(result: Mapping[str, Any]) -> str:
    """Draw the ACC of every model as text bars, with a tick at the paper's figure."""
    found = tables(result)
    lines = [line for line in found[0].lines if line.n_trials] if found else []
    if not lines:
        return ""
    width = min(_TITLE, max(len(line.title) for line in lines))
    marked = "; | is the paper's" if any(line.cells[0].paper for line in lines) else ""
    text = [f"ACC, {found[0].protocol} protocol{marked}"]
    for line in lines:
        mean, printed = line.cells[0].mean or 0.0, line.cells[0].printed
        bar, beside = list(f"{'#' * round(_BAR * mean):<{_BAR + 1}}"), ""
        if printed is not None:
            bar[round(_BAR * printed)], beside = "|", f"  paper {printed:.3f}"
        text.append(f"  {line.title[:width]:<{width}}  {''.join(bar)} {mean:.3f}{beside}")
    return "\n".join(text)
