"""Put what was measured into the pages that show it."""

from __future__ import annotations

from pathlib import Path


def put_between(page: Path, mark: str, text: str) -> None:
    """Replace what a page has between ``<!-- MARK -->`` and ``<!-- end of MARK -->``."""
    begin, end = f"<!-- {mark} -->", f"<!-- end of {mark} -->"
    before, found, rest = page.read_text().partition(begin)
    after = rest.partition(end)
    if not (found and after[1]):
        raise ValueError(f"{page} has no place for {mark}: it needs the lines {begin} and {end}")
    page.write_text(f"{before}{begin}\n\n{text.strip()}\n\n{end}{after[2]}")
