"""Reports of results: tables for the terminal and in Markdown, figures, and a self-contained HTML page."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ccmem.io.persistence.atomic import write_whole
from ccmem.paper.report.page import page
from ccmem.paper.report.tables import summary, tables
from ccmem.paper.report.text import bars, for_markdown, for_terminal, headline, sections

__all__ = ["bars", "for_markdown", "for_terminal", "headline", "page", "sections", "summary", "tables", "write_report"]


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
    markdown = "\n".join(for_markdown(section) for result in results.values() for section in sections(result))
    write_whole(folder / "tables.md", markdown.encode())
    write_whole(folder / "report.html", page(results, pictures, command, seconds).encode())
    return folder / "report.html"


def _pictures(result: Mapping[str, Any], folder: Path) -> list[tuple[str, bytes]]:
    """Save the figures of a data set; return their captions and contents."""
    from ccmem.paper.report.figures import draw

    found = []
    for name, caption, figure in draw(result, folder):
        found.append((caption, figure._repr_png_()))
        write_whole(folder / "figures" / f"{name}.png", found[-1][1])
    return found
