"""The paper's experiments: settings of every row, tuned settings, published tables, and rivals at every budget."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import import_module, resources
from typing import Any, NamedTuple

import numpy as np

from ccmem import registry
from ccmem.core.typing import FloatArray

TRAINING_IMAGES = "training images"
TUNED = "-tuned"
ON_DEMAND = ("layers", "family")
KINDS = ("paper", "tuned", "adaptive", "readings", "layers", "family", "family-500", "rivals")


class Standing(NamedTuple):
    """Position of a row in the comparison at equal memory."""

    family: str
    """Family name, shared by all budgets of a model."""
    title: str
    regime: str
    """"one pass", "own" (given task ends) or "all data"."""
    told: str
    """Information the learner needs."""
    budget: int | None
    """Maximum number of floats, or None without a limit."""
    ours: bool


@dataclass(frozen=True)
class Row:
    """One model with one set of parameters on one data set."""

    name: str
    title: str
    model: str
    """Class name of the model."""
    parameters: Mapping[str, Any]
    """A table that names a model, such as the memory of a gated network, stands for that model."""
    start: str = "own"
    """Initial prototypes: the model's own, or random training images."""
    source: str = ""
    """Source of the parameters."""
    standing: Standing | None = None
    """Set only for rows of the comparison."""

    @property
    def is_told_tasks(self) -> bool:
        return self.standing is not None and self.standing.regime == "own"

    def settings(self) -> dict[str, Any]:
        """Return everything that determines the results, as JSON values."""
        found: dict[str, Any] = {"model": self.model, "parameters": dict(self.parameters), "start": self.start}
        if self.is_told_tasks:
            found["told"] = "task boundaries"
        return found

    def modules(self) -> list[str]:
        """Return the modules that define its models."""
        return [model_class(name).__module__ for name in _models_in({"model": self.model, **self.parameters})]

    def build(self, X: FloatArray, rows: Any, seed: int) -> Any:
        """Build the classifier for one trial; ``rows`` of ``X`` may serve as first prototypes."""
        from ccmem.base.memory import CompetitiveMemory
        from ccmem.readout.modal import ModalClassifier

        parameters = dict(self.parameters)
        if self.start == TRAINING_IMAGES:
            chosen = np.random.default_rng([seed, 1]).choice(rows, parameters["n_units"], replace=False)
            parameters["init"] = X[np.sort(chosen)]
        try:
            model = _built({"model": self.model, **parameters}, seed)
        except TypeError as problem:
            raise ValueError(f"row {self.name}: {problem}; its parameters are {dict(self.parameters)}") from problem
        return ModalClassifier(model) if isinstance(model, CompetitiveMemory) else model


def _built(value: Any, seed: int) -> Any:
    """Convert a parameter; a table that names a model becomes one (for example the layers of a stack)."""
    if isinstance(value, Mapping) and "model" in value:
        kind = model_class(value["model"])
        seeded = {"random_state": seed} if "random_state" in kind._get_param_names() else {}
        return kind(**{key: _built(inner, seed) for key, inner in value.items() if key != "model"}, **seeded)
    return tuple(_built(one, seed) for one in value) if isinstance(value, list) else value


def _models_in(value: Any) -> list[str]:
    """Return the names of all models that a parameter is built from."""
    if isinstance(value, Mapping):
        own = [value["model"]] if "model" in value else []
        return own + [name for inner in value.values() for name in _models_in(inner)]
    return [name for one in value for name in _models_in(one)] if isinstance(value, list) else []


def model_class(name: str) -> Any:
    """Return a model class by name: memory, predictor or other learner."""
    if name in registry.ESTIMATORS:
        return registry.load(name)
    rivals = import_module("ccmem.paper.rivals")
    if name not in rivals.__all__:
        raise ValueError(f"there is no model {name!r} in ccmem")
    return getattr(rivals, name)


@cache
def _read(name: str) -> dict[str, Any]:
    text = resources.files("ccmem.paper.experiments").joinpath(name).read_text(encoding="utf-8")
    return tomllib.loads(text) if name.endswith(".toml") else json.loads(text)


settings = partial(_read, "settings.toml")
"""Parse settings.toml: data sets and rows."""
tuned = partial(_read, "tuned.json")
"""Parse tuned.json: data set -> model -> result of ``ccmem tune``."""
paper = partial(_read, "paper.toml")
"""Parse paper.toml: the published tables."""
rivals = partial(_read, "rivals.toml")
"""Parse rivals.toml: budgets, methods and their search spaces."""


def model_names() -> list[str]:
    """Return the models of the paper's tables, in order."""
    return list(settings()["rows"])


def named_row(dataset: str, name: str, size: str | None = "small") -> Row:
    """Return a row of settings.toml or rivals.toml, untuned, at a size of the family ("small", "large") or a budget.

    A row "of" another row varies the settings of that row. With another model it inherits none of them.
    """
    facts = _described().get(name)
    if facts is None:
        raise ValueError(f"unknown model {name!r}; there are {', '.join(model_names())}")
    sized = dict(facts["budgets"][size] if size in rivals()["budgets"] else facts.get(str(size), {}))
    here = facts.get(dataset, {})
    row, of = Row(name, "", "", {}), sized.pop("of", facts.get("of"))
    if of is not None:
        model = of.removesuffix(TUNED)
        row = (tuned_row(dataset, model) if of != model else None) or named_row(dataset, model)
    if "model" in facts:
        row = replace(row, model=facts["model"], parameters={}, start=facts.get("start", row.start))
    if "memory" in facts:
        memory = named_row(dataset, facts["memory"])
        row = changed(row, name, {"memory": {"model": memory.model, **memory.parameters}})
    for parameters in (facts.get("parameters", {}), sized, here.get(size, {}) if size in facts else here):
        row = changed(row, name, parameters)
    return replace(row, title=facts["title"], source=facts.get("source", row.source))


def _described() -> dict[str, dict[str, Any]]:
    """Return name -> description of every row of settings.toml and rivals.toml."""
    tables = [settings()[kind] for kind in ("rows", "adaptive", "readings", *ON_DEMAND)]
    return {name: row for table in (*tables, rivals()["rows"]) for name, row in table.items()}


def changed(row: Row, name: str, parameters: Mapping[str, Any]) -> Row:
    """Return ``row`` with other parameters: ``memory.x`` is parameter ``x`` of its memory, ``start`` its start."""
    own = dict(row.parameters)
    for key, value in parameters.items():
        outer, _, inner = key.partition(".")
        own[outer] = {**own[outer], inner: value} if inner else value
    start = own.pop("start", row.start)
    return replace(row, name=name, parameters=own, start=start)


def _with_tuning(row: Row, dataset: str, key: str) -> Row:
    """Return ``row`` with the settings that ``ccmem tune`` found under this name, if there are any."""
    found = tuned().get(dataset, {}).get(key)
    if found is None:
        return row
    source = "; ".join(text for text in (row.source, found["command"]) if text)
    return replace(changed(row, row.name, found["parameters"]), source=source)


def tuned_row(dataset: str, model: str) -> Row | None:
    """Return a row of the paper with tuned settings, or None if the search found nothing better."""
    if not tuned().get(dataset, {}).get(model, {}).get("parameters"):
        return None
    row = _with_tuning(replace(named_row(dataset, model), source=""), dataset, model)
    return replace(row, name=model + TUNED, title=f"{row.title}, tuned")


def _family_row(dataset: str, name: str, size: str) -> Row:
    row = _with_tuning(named_row(dataset, name, size), dataset, name)
    row = replace(row, source=row.source or "untuned")
    return row if size == "small" else replace(row, name=f"{name}-500", title=f"{row.title}, 500 units")


def rival_row(dataset: str, name: str, budget: str | None = None, *, tune: bool = True) -> Row:
    """Return a method at a budget, with its tuned settings unless disabled.

    Settings that were tuned at one budget serve all budgets up to the next one, the smallest also those below it.
    """
    row, facts, budgets = named_row(dataset, name, budget), rivals()["rows"][name], rivals()["budgets"]
    ours, told, floats, title, key = bool(facts.get("ours", False)), "labels", None, row.title, name
    if budget is not None:
        floats, title, key = budgets[budget], f"{title}, {budget}", f"{name}-{budget.lower()}"
    if not ours:
        told = model_class("TaskRival" if facts["regime"] == "own" else row.model).told
        at, tuned_as = facts.get("tuned_at", []), name
        if at and budget is not None:
            tuned_as = f"{name}-{([one for one in at if budgets[one] <= budgets[budget]] or at[:1])[-1].lower()}"
        row = _with_tuning(row, dataset, tuned_as) if tune else row
        row = changed(row, key, {} if budget is None else {"max_floats": floats})
    standing = Standing(name, facts["title"], facts["regime"], told, floats, ours)
    return replace(row, name=key, title=title, standing=standing)


def rows_to_tune(dataset: str, name: str) -> list[Row]:
    """Return the untuned row of a rival at every budget that is searched."""
    facts = rivals()["rows"][name]
    if "search" not in facts:
        raise ValueError(f"there is no search space for {name!r}: its settings are those of another row")
    return [rival_row(dataset, name, budget, tune=False) for budget in facts.get("tuned_at", [None])]


def rows(dataset: str, models: Iterable[str] | None = None, kinds: Iterable[str] = KINDS[:3]) -> list[Row]:
    """Return the rows of a data set's tables: the paper's, then tuned ones, then variants.

    ``models`` may name models of the paper, rows on demand and rivals; by default all rows of each kind are returned.
    """
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise ValueError(f"unknown kind of rows {unknown[0]!r}; there are {', '.join(KINDS)}")
    facts, methods = settings(), rivals()["rows"]
    elsewhere = [*methods, *(name for kind in ON_DEMAND for name in facts[kind])]
    asked = [*model_names(), *elsewhere] if models is None else list(models)
    found: list[Row] = []
    for kind in (kind for kind in KINDS if kind in kinds):
        own, size = [name for name in asked if name not in elsewhere], "large" if kind == "family-500" else "small"
        table = methods if kind == "rivals" else facts.get(kind.removesuffix("-500"), {})
        here = [name for name in asked if name in table]
        if kind == "paper":
            found += [named_row(dataset, name) for name in own]
        elif kind == "tuned":
            found += [row for name in own if (row := tuned_row(dataset, name)) is not None]
        elif kind == "layers":
            found += [named_row(dataset, name) for name in here]
        elif kind == "rivals":
            found += [rival_row(dataset, n, budget) for n in here for budget in methods[n].get("budgets", [None])]
        elif kind in ON_DEMAND or kind == "family-500":
            found += [_family_row(dataset, name, size) for name in here]
        else:  # variants of the models that were asked for
            chosen = [n for n, row in table.items() if row["of"] in own and dataset in row.get("only", [dataset])]
            found += [named_row(dataset, name) for name in chosen]
    return found
