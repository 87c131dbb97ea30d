"""Markdown tables and one picture of the evidence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from ..pages import put_between
from .tssb import PUBLISHED


def read(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Every part that has been run."""
    return {file.stem: json.loads(file.read_text())["rows"] for file in sorted(folder.glob("*.json"))}


def table(columns: list[str], rows: list[list[Any]]) -> str:
    """Rows as Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(_text(cell) for cell in line) + " |" for line in lines)


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.0f}" if cell == round(cell) else f"{cell:.1f}" if abs(cell) > 3 else f"{cell:.2f}"
    return str(cell)


def markdown(parts: dict[str, list[dict[str, Any]]]) -> str:
    """All tables, each under a heading of its own."""
    shown = [f"## {title}\n\n{make(parts[part])}" for part, (title, make) in TABLES.items() if part in parts]
    return "\n\n".join(shown) + "\n"


def into_page(parts: dict[str, list[dict[str, Any]]], page: Path) -> None:
    """Put the tables between the two marks of a page."""
    put_between(page, "tables", markdown(parts))


def _recordings(rows: list[dict[str, Any]]) -> str:
    columns = ["onsets", "returns", "false", "repeated", "median delay", "V"]
    n, m = rows[0]["recordings"], rows[0]["of returns"]
    heads = ["detector", "setting", f"faults of {n:.0f}", *([f"returns of {m:.0f}"] if m else []), *columns[2:]]
    keys = ["onsets", *(["returns"] if m else []), *columns[2:]]
    return table(heads, [[row["detector"], row["setting"], *(row.get(key) for key in keys)] for row in rows])


def _one_stream(rows: list[dict[str, Any]]) -> str:
    keys = ["left", "recalled", "blocks", "events", "V"]
    heads = [
        "detector",
        "order",
        f"of {rows[0]['faults']} faults leave the normal block",
        "of these recalled",
        *keys[2:],
    ]
    return table(heads, [[row["detector"], row["order"], *(row[key] for key in keys)] for row in rows])


def _plain(rows: list[dict[str, Any]]) -> str:
    return table(list(rows[0]), [list(row.values()) for row in rows])


def _segmented(rows: list[dict[str, Any]]) -> str:
    heads = [
        "series",
        "how many",
        "window front and AdaptiveCCM",
        *(f"{name}, published" for name in PUBLISHED),
        "no change point",
    ]
    lines = []
    for name, half in (("development (first 37 names)", True), ("the other 38", False)):
        part = [row for row in rows if row["development"] == half]
        if part:
            means = [float(np.mean([row[key] for row in part])) for key in ("covering", *PUBLISHED, "none")]
            lines.append([name, len(part), *(f"{mean:.3f}" for mean in means)])
    return table(heads, lines)


TABLES = {
    "skab": ("SKAB, each recording from an empty memory", _recordings),
    "one_stream": ("SKAB as one stream", _one_stream),
    "tep": ("Tennessee Eastman, each run from an empty memory", _recordings),
    "controls": ("False alarms per 100,000 rows where nothing changes", _plain),
    "planted": ("Planted changes, one kind at a time", _plain),
    "slow_returns": ("Returns that come little by little", _plain),
    "columns": ("Columns as they come", _plain),
    "labelled": ("Classes of scikit-learn and River in turn, twice", _plain),
    "segmented": ("Segmented signals (TSSB), covering", _segmented),
    "onsets": ("Where changes began, as events tell it", _plain),
}


def picture(parts: dict[str, list[dict[str, Any]]], file: Path) -> None:
    """Changes noticed against false and repeated alarms: a line a peer, over all settings of its parameter."""
    from matplotlib import pyplot as plt

    from ccmem import plots

    names = [part for part in ("skab", "tep") if part in parts]
    figure, axes = plt.subplots(1, len(names), figsize=(5.2 * len(names), 4.4), squeeze=False, layout="constrained")
    for ax, part in zip(axes[0], names, strict=True):
        n, m = parts[part][0]["recordings"], parts[part][0]["of returns"]
        lines = {}
        for row in parts[part]:
            points = row.get("curve") or ([row] if "onsets" in row and row["setting"].startswith("default") else [])
            found = sorted(_point(point, n, m) for point in points)
            if row["setting"] == "defaults":
                ax.plot(*_point(row, n, m), "*", color="#c0392b", ms=17, zorder=5, label=row["detector"])
            elif found:
                lines[row["detector"]] = tuple(zip(*found, strict=True))
        title = {"skab": "SKAB", "tep": "Tennessee Eastman"}[part]
        plots.curves(lines, ylabel="changes noticed", title=title, dashed=OFFLINE, legend=False, ax=ax)
        ax.set_xscale("symlog", linthresh=0.1, linscale=0.5)
        ax.set(xlabel="false and repeated alarms a recording", ylim=(-0.03, 1.05), xlim=(-0.02, 60))
        ax.set_xticks([0, 0.1, 1, 10], ["0", "0.1", "1", "10"])
    axes[0, 0].legend(fontsize=8, loc="lower right", frameon=False)
    figure.savefig(file, dpi=130)
    plt.close(figure)


OFFLINE = ("ruptures", "ClaSP")


def _point(row: dict[str, Any], n: float, m: float) -> tuple[float, float]:
    return (row["false"] + row["repeated"]) / n, (row["onsets"] + row["returns"]) / (n + m)
