"""Reports of results: tables for the terminal and in Markdown, figures, and a self-contained HTML page."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ccmem.io.persistence.atomic import write_whole
from ccmem.paper.report.page import page
from ccmem.paper.report.tables import Cell, Line, Table, summary, tables
from ccmem.paper.report.text import (
    bars,
    comparison_for_markdown,
    comparison_for_terminal,
    for_markdown,
    for_terminal,
    headline,
)

__all__ = [
    "Cell",
    "Line",
    "Table",
    "bars",
    "comparison_for_terminal",
    "for_markdown",
    "for_terminal",
    "headline",
    "page",
    "summary",
    "tables",
    "write_report",
]


def write_report(
    results: Mapping[str, Mapping[str, Any]],
    folder: Path,
    command: str,
    *,
    figures: bool = True,
    seconds: float | None = None,
) -> Path:
    """Write figures, tables.md and report.html into ``folder``; return the path of the page."""
    pictures: dict[str, list[tuple[str, bytes]]] = {}
    if figures:
        try:
            for name, result in results.items():
                pictures[name] = _pictures(result, folder)
        except ImportError as problem:
            print(f"ccmem: no figures: {problem}", file=sys.stderr)
    markdown = "\n".join(
        part
        for result in results.values()
        for part in (*map(for_markdown, tables(result)), comparison_for_markdown(result))
        if part
    )
    write_whole(folder / "tables.md", markdown.encode())
    html = page(results, pictures, command, seconds)
    write_whole(folder / "report.html", html.encode())
    return folder / "report.html"


def _pictures(result: Mapping[str, Any], folder: Path) -> list[tuple[str, bytes]]:
    from ccmem.paper.report.figures import draw

    found = []
    for name, caption, figure in draw(result, folder):
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=110, metadata={"Software": None})
        content = buffer.getvalue()
        write_whole(folder / "figures" / f"{name}.png", content)
        found.append((caption, content))
    return found
