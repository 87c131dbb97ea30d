"""Rows of the comparison at equal memory: rivals and memories, each at every budget of floats it runs at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ccmem.experiments.table_rows import (
    Row,
    Standing,
    _read,
    changed,
    model_names,
    other_rows,
    paper_row,
    tuned,
    tuned_row,
)

OWN = "own"
ALL_DATA = "all data"


def rivals() -> dict[str, Any]:
    """rivals.toml: budgets, rivals and what is searched for them."""
    return _read("rivals.toml")


def rival_names() -> list[str]:
    """All rows of the comparison, without budgets."""
    return list(rivals()["rows"])


def rival_row(dataset: str, name: str, budget: str | None = None, *, tune: bool = True) -> Row:
    """A rival at a budget; with what tuning found for it, unless told not to."""
    facts = rivals()["rows"].get(name)
    if facts is None:
        raise ValueError(f"unknown rival {name!r}; there are {', '.join(rival_names())}")
    ours, told = bool(facts.get("ours", False)), "labels"
    if "of" in facts:
        row = _ours(dataset, facts["of"])
    else:
        from ccmem import rivals as models

        found = tuned().get(dataset, {}).get(name, {}) if tune else {}
        source = f"{facts['source']}; {found['command']}" if found else facts["source"]
        parameters = {**facts["parameters"], **found.get("parameters", {})}
        row = Row(name, facts["title"], facts["model"], parameters, source=source)
        if not ours:
            told = models.TaskRival.told if facts["regime"] == OWN else getattr(models, facts["model"]).told
    floats = None
    title, key = facts["title"], name
    if budget is not None:
        floats, title, key = rivals()["budgets"][budget], f"{title}, {budget}", f"{name}-{budget.lower()}"
        more = {} if ours else {"max_floats": floats}
        row = changed(row, key, {**facts["budgets"][budget], **more})
    standing = Standing(name, facts["title"], facts["regime"], told, floats, ours)
    return replace(row, name=key, title=title, standing=standing)


def _ours(dataset: str, name: str) -> Row:
    if name.endswith("-tuned"):
        model = name.removesuffix("-tuned")
        return tuned_row(dataset, model) or paper_row(dataset, model)
    found = {row.name: row for row in other_rows("adaptive", dataset, model_names())}
    if name not in found:
        raise ValueError(f"there is no row {name!r} to compare with; there are {', '.join(found)}")
    return found[name]


def rival_rows(dataset: str, names: Iterable[str] | None = None) -> list[Row]:
    """Every rival, or those named, at every budget."""
    found = []
    for name in rival_names() if names is None else names:
        budgets = rivals()["rows"].get(name, {}).get("budgets", {None: {}})
        found += [rival_row(dataset, name, budget) for budget in budgets]
    return found
