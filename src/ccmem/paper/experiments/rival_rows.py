"""Rows of the comparison at equal memory: other methods and memories at every budget of floats."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ccmem.paper.experiments.table_rows import (
    Row,
    Standing,
    _read,
    changed,
    layer_rows,
    model_names,
    other_rows,
    paper_row,
    tuned,
    tuned_row,
)

OWN = "own"


def rivals() -> dict[str, Any]:
    """Parse rivals.toml: budgets, methods and their search spaces."""
    return _read("rivals.toml")


def rival_names() -> list[str]:
    """Return the names of all rows of the comparison, without budgets."""
    return list(rivals()["rows"])


def rival_row(dataset: str, name: str, budget: str | None = None, *, tune: bool = True) -> Row:
    """Return a method at a budget, with its tuned settings unless disabled."""
    facts = rivals()["rows"].get(name)
    if facts is None:
        raise ValueError(f"unknown rival {name!r}; there are {', '.join(rival_names())}")
    ours, told = bool(facts.get("ours", False)), "labels"
    more = {} if budget is None else dict(facts["budgets"][budget])
    if ours:
        row = _ours(dataset, more.pop("of", None) or facts["of"])
    else:
        from ccmem.paper import rivals as models

        found = tuned().get(dataset, {}).get(_tuned_for(name, budget), {}) if tune else {}
        source = f"{facts['source']}; {found['command']}" if found else facts["source"]
        parameters = {**facts["parameters"], **found.get("parameters", {})}
        row = Row(name, facts["title"], facts["model"], parameters, source=source)
        told = models.TaskRival.told if facts["regime"] == OWN else getattr(models, facts["model"]).told
    floats = None
    title, key = facts["title"], name
    if budget is not None:
        floats, title, key = rivals()["budgets"][budget], f"{title}, {budget}", f"{name}-{budget.lower()}"
        row = changed(row, key, more if ours else {**more, "max_floats": floats})
    standing = Standing(name, facts["title"], facts["regime"], told, floats, ours)
    return replace(row, name=key, title=title, standing=standing)


def tuned_rows(dataset: str, name: str) -> list[Row]:
    """Return the untuned row at every budget that is searched."""
    facts = rivals()["rows"].get(name, {})
    if "search" not in facts:
        raise ValueError(f"there is no search space for {name!r}: its settings are those of another row")
    return [rival_row(dataset, name, budget, tune=False) for budget in facts.get("tuned_at", [None])]


def _tuned_for(name: str, budget: str | None) -> str:
    """Return the row whose tuning applies to a budget: the same, the next smaller or the smallest."""
    at = rivals()["rows"][name].get("tuned_at")
    if at is None or budget is None:
        return name
    sizes = rivals()["budgets"]
    fits = [one for one in at if sizes[one] <= sizes[budget]]
    return f"{name}-{(fits or at[:1])[-1].lower()}"


def _ours(dataset: str, name: str) -> Row:
    if name.endswith("-tuned"):
        model = name.removesuffix("-tuned")
        return tuned_row(dataset, model) or paper_row(dataset, model)
    found = {row.name: row for row in (*other_rows("adaptive", dataset, model_names()), *layer_rows())}
    if name not in found:
        raise ValueError(f"there is no row {name!r} to compare with; there are {', '.join(found)}")
    return found[name]


def rival_rows(dataset: str, names: Iterable[str] | None = None) -> list[Row]:
    """Return every method, or those named, at every budget."""
    found = []
    for name in rival_names() if names is None else names:
        budgets = rivals()["rows"].get(name, {}).get("budgets", {None: {}})
        found += [rival_row(dataset, name, budget) for budget in budgets]
    return found
