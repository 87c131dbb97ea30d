"""Tables in Markdown, and insertion of measured results into pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from ccmem.paper.report.text import piped


def grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    return piped([head, *rows])


def put_between(page: Path, mark: str, text: str) -> None:
    """Replace the text of a page between ``<!-- MARK -->`` and ``<!-- end of MARK -->``."""
    begin, end = f"<!-- {mark} -->", f"<!-- end of {mark} -->"
    before, found, rest = page.read_text().partition(begin)
    after = rest.partition(end)
    if not (found and after[1]):
        raise ValueError(f"{page} has no place for {mark}: it needs the lines {begin} and {end}")
    page.write_text(f"{before}{begin}\n\n{text.strip()}\n\n{end}{after[2]}")
