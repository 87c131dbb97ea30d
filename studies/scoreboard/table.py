"""Rows of the scoreboard and their Markdown."""

from __future__ import annotations

from typing import Any, NamedTuple


class Figure(NamedTuple):
    """Result, the number of cases it counts, and the bound it should meet."""

    value: float | None
    of: float | None = None
    least: float | None = None
    most: float | None = None

    @property
    def met(self) -> bool:
        """True if the figure has no bound or meets it."""
        if self.value is None:
            return self.least is None and self.most is None
        return (self.least is None or self.value >= self.least) and (self.most is None or self.value <= self.most)

    @property
    def target(self) -> str:
        """Bound as text; empty without a bound."""
        if self.least is not None:
            return f">= {number(self.least)}"
        return "" if self.most is None else f"<= {number(self.most)}"

    def __str__(self) -> str:
        return number(self.value) + (f" of {number(self.of)}" if self.of is not None else "")


class Row(NamedTuple):
    """Line of the table; ``ari`` is None if regimes are not labelled."""

    benchmark: str
    figures: dict[str, Figure]
    ari: Figure | None = None

    def record(self) -> dict[str, Any]:
        """Return the row for a JSON file."""
        named = ({"ARI": self.ari} if self.ari else {}) | self.figures
        figures = {
            k: {n: round(float(v), 6) for n, v in f._asdict().items() if v is not None} for k, f in named.items()
        }
        return {"benchmark": self.benchmark, "figures": figures}


HEAD = ("benchmark", "ARI", "results", "targets", "not met")


def number(value: float | None) -> str:
    """Return a number as text with its significant digits."""
    if value is None:
        return "-"
    if value == round(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}" if abs(value) >= 1 else f"{value:.3f}"


def cells(row: Row) -> list[str]:
    """Return the cells of the row as text."""
    named = ({"ARI": row.ari} if row.ari else {}) | row.figures
    results = ", ".join(f"{name} {figure}" for name, figure in row.figures.items())
    targets = ", ".join(f"{name} {figure.target}" for name, figure in named.items() if figure.target)
    missed = ", ".join(name for name, figure in named.items() if not figure.met)
    return [row.benchmark, str(row.ari) if row.ari else "", results, targets, missed]


def markdown(rows: list[Row], targets: bool = True) -> str:
    """Return the table, with or without targets."""
    width = len(HEAD) if targets else 3
    lines = [HEAD[:width], ["---"] * width, *(cells(row)[:width] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
