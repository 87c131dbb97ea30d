"""Tables of the stored evidence: rules side by side, and the page docs/real_streams.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..pages import put_between
from .table import Figure, Row, markdown, number

EVIDENCE = Path(__file__).parents[1] / "evidence" / "scoreboard"


def rules(folder: Path = EVIDENCE) -> dict[str, list[Row]]:
    """Return the rows of every full run in the folder, by rule; the last one is the newest version."""
    files = sorted(file for file in folder.glob("*.json") if not file.name.startswith("peers-"))
    runs = [json.loads(file.read_text()) for file in files]
    return {run["rule"] + " reserved" * run["reserved"]: rows_of(run) for run in runs}


def peers(folder: Path = EVIDENCE) -> list[Row]:
    """Return the rows of all peers."""
    return [row for file in sorted(folder.glob("peers-*.json")) for row in rows_of(json.loads(file.read_text()))]


def rows_of(stored: dict[str, Any]) -> list[Row]:
    """Return the rows of a stored run."""
    return [_row(record) for part in stored["parts"].values() for record in part["rows"]]


def _row(record: dict[str, Any]) -> Row:
    figures = {name: Figure(**({"value": None} | figure)) for name, figure in record["figures"].items()}
    return Row(record["benchmark"], figures, figures.pop("ARI", None))


def comparison(found: dict[str, list[Row]]) -> str:
    """Return a table with a line for each figure that has a target or is an adjusted Rand index, a column per rule."""
    lines: dict[tuple[str, str], dict[str, Figure]] = {}
    for rule, rows in found.items():
        for row in rows:
            for name, figure in (({"ARI": row.ari} if row.ari else {}) | row.figures).items():
                if figure.target or name == "ARI":
                    lines.setdefault((row.benchmark, name), {})[rule] = figure
    text = [["benchmark", "figure", "target", *found], ["---"] * (3 + len(found))]
    for (benchmark, name), by_rule in lines.items():
        target = next(figure.target for figure in by_rule.values())
        text.append([benchmark, name, target, *(_cell(by_rule.get(rule)) for rule in found)])
    return "\n".join("| " + " | ".join(line) + " |" for line in text)


def _cell(figure: Figure | None) -> str:
    if figure is None:
        return ""
    return number(figure.value) if figure.met else f"**{number(figure.value)}**"


def write(page: Path) -> None:
    """Put the tables of released versions and of peers into the page."""
    found = {rule: rows for rule, rows in rules().items() if rule.replace(".", "").isdigit()}
    newest = list(found)[-1]
    put_between(page, "targets", comparison(found))
    put_between(page, "results", f"### Rule of {newest}, all figures\n\n{markdown(found[newest], targets=False)}")
    put_between(page, "peers", markdown(peers(), targets=False))
