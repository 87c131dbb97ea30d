"""The experiments as data: settings of every row, tuned settings, published tables, and rivals at every budget."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module, resources
from typing import Any, NamedTuple

import numpy as np

from ccmem import registry
from ccmem.core.typing import FloatArray

TRAINING_IMAGES = "training images"
TUNED = "-tuned"
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
    start: str = "own"
    """Initial prototypes: the model's own, or random training images."""
    memory: Row | None = None
    """Memory inside a gated network."""
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
        if self.memory is not None:
            found["memory"] = self.memory.settings()
        if self.is_told_tasks:
            found["told"] = "task boundaries"
        return found

    def modules(self) -> list[str]:
        """Return the modules that define its models."""
        parts = [model for value in self.parameters.values() for model in _models_in(value)]
        names = [model_class(model).__module__ for model in (self.model, *parts)]
        return [*names, *(self.memory.modules() if self.memory else [])]

    def build(self, X: FloatArray, rows: Any, seed: int) -> Any:
        """Build the classifier for one trial; ``rows`` of ``X`` may serve as first prototypes."""
        from ccmem.base.memory import CompetitiveMemory
        from ccmem.readout.modal import ModalClassifier

        model = self._bare(X, rows, seed)
        return ModalClassifier(model) if isinstance(model, CompetitiveMemory) else model

    def _bare(self, X: FloatArray, rows: Any, seed: int) -> Any:
        parameters = {key: _built(value, seed) for key, value in self.parameters.items()}
        if self.start == TRAINING_IMAGES:
            chosen = np.random.default_rng([seed, 1]).choice(rows, parameters["n_units"], replace=False)
            parameters["init"] = X[np.sort(chosen)]
        if self.memory is not None:
            parameters["memory"] = self.memory._bare(X, rows, seed)
        try:
            return _seeded(self.model, parameters, seed)
        except TypeError as problem:
            raise ValueError(f"row {self.name}: {problem}; its parameters are {dict(self.parameters)}") from problem


def _seeded(model: str, parameters: Mapping[str, Any], seed: int) -> Any:
    kind = model_class(model)
    return kind(**parameters, **({"random_state": seed} if "random_state" in kind._get_param_names() else {}))


def _built(value: Any, seed: int) -> Any:
    """Convert a parameter; a table that names a model becomes one (for example the layers of a stack)."""
    if isinstance(value, Mapping) and "model" in value:
        return _seeded(value["model"], {k: _built(v, seed) for k, v in value.items() if k != "model"}, seed)
    if isinstance(value, list):
        return tuple(_built(one, seed) for one in value)
    return value


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


def settings() -> dict[str, Any]:
    """Parse settings.toml: data sets and rows."""
    return _read("settings.toml")


def tuned() -> dict[str, Any]:
    """Parse tuned.json: data set -> model -> result of ``ccmem tune``."""
    return _read("tuned.json")


def paper() -> dict[str, Any]:
    """Parse paper.toml: the published tables."""
    return _read("paper.toml")


def model_names() -> list[str]:
    """Return the models of the tables, in order."""
    return list(settings()["rows"])


def paper_row(dataset: str, model: str) -> Row:
    """Return the row with the paper's settings, or settings that match its tables where it gives none."""
    facts = settings()["rows"].get(model)
    if facts is None:
        raise ValueError(f"unknown model {model!r}; there are {', '.join(model_names())}")
    return Row(
        model,
        facts["title"],
        facts["model"],
        {**facts["parameters"], **facts.get(dataset, {})},
        facts.get("start", "own"),
        paper_row(dataset, facts["memory"]) if "memory" in facts else None,
        facts["source"],
    )


def changed(row: Row, name: str, parameters: Mapping[str, Any]) -> Row:
    """Return ``row`` with other parameters; ``start`` and names beginning with ``memory.`` are routed."""
    own = {key: value for key, value in parameters.items() if key != "start" and not key.startswith("memory.")}
    inner = {key.removeprefix("memory."): value for key, value in parameters.items() if key.startswith("memory.")}
    memory = row.memory if row.memory is None or not inner else changed(row.memory, row.memory.name, inner)
    start = parameters.get("start", row.start)
    return replace(row, name=name, parameters={**row.parameters, **own}, start=start, memory=memory)


def tuned_row(dataset: str, model: str) -> Row | None:
    """Return the row with tuned parameters, or None if there are none."""
    found = tuned().get(dataset, {}).get(model)
    if found is None or not found["parameters"]:  # the search found nothing better
        return None
    row = changed(paper_row(dataset, model), model + TUNED, found["parameters"])
    return replace(row, title=f"{row.title}, tuned", source=found["command"])


def other_rows(kind: str, dataset: str, models: Iterable[str]) -> list[Row]:
    """Return variants of the paper's rows for ``models``: other readings, or memories without thresholds."""
    found = []
    for name, facts in settings()[kind].items():
        if facts["of"] in models and dataset in facts.get("only", [dataset]):
            row = _variant(paper_row(dataset, facts["of"]), name, facts)
            if "memory" in facts:
                inner = settings()[kind][facts["memory"]]
                row = replace(row, memory=_variant(paper_row(dataset, inner["of"]), facts["memory"], inner))
            found.append(row)
    return found


def layer_rows(names: Iterable[str] | None = None) -> list[Row]:
    """Return stacks of layers, or those named; they are variants of no model in the paper."""
    found = settings()["layers"]
    return [
        Row(name, found[name]["title"], "Stack", found[name]["parameters"], source=found[name]["source"])
        for name in (found if names is None else names)
    ]


def family_row(dataset: str, name: str, size: str = "small") -> Row:
    """Return a model of the family with its untuned settings, in one size: "small" or "large"."""
    facts = settings()["family"][name]
    parameters = {**facts["parameters"], **facts[size], **facts.get(dataset, {}).get(size, {})}
    ending, title = ("", "") if size == "small" else ("-500", ", 500 units")
    note = facts.get("note", "untuned")
    return Row(
        name + ending, facts["title"] + title, facts["model"], parameters, facts.get("start", "own"), source=note
    )


def family_rows(dataset: str, names: Iterable[str] | None = None, size: str = "small") -> list[Row]:
    """Return every model of the family, or those named, tuned, with 125 ("small") or 500 units ("large")."""
    found = []
    for name, facts in settings()["family"].items():
        if names is None or name in names:
            row, best = family_row(dataset, name, size), tuned().get(dataset, {}).get(name)
            if best is not None:
                text = "; ".join(part for part in (best["command"], facts.get("note")) if part)
                row = replace(changed(row, row.name, best["parameters"]), source=text)
            found.append(row)
    return found


def _variant(row: Row, name: str, facts: Mapping[str, Any]) -> Row:
    """Return a variant of ``row``; a different model inherits no parameters."""
    if "model" in facts:
        row = replace(row, model=facts["model"], parameters={})
    return replace(changed(row, name, facts["parameters"]), title=facts["title"], source=facts["source"])


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
        found = tuned().get(dataset, {}).get(_tuned_for(name, budget), {}) if tune else {}
        source = f"{facts['source']}; {found['command']}" if found else facts["source"]
        parameters = {**facts["parameters"], **found.get("parameters", {})}
        row = Row(name, facts["title"], facts["model"], parameters, source=source)
        told = model_class("TaskRival" if facts["regime"] == "own" else facts["model"]).told
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


def rows(dataset: str, models: Iterable[str] | None = None, kinds: Iterable[str] = KINDS[:3]) -> list[Row]:
    """Return the rows of a data set's tables: the paper's, then tuned ones, then variants."""
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise ValueError(f"unknown kind of rows {unknown[0]!r}; there are {', '.join(KINDS)}")
    asked = None if models is None else list(models)

    def chosen(known: Iterable[str]) -> list[str]:
        """Return the names of one kind that were asked for, by default all."""
        return list(known) if asked is None else [name for name in asked if name in known]

    layers, family, others = chosen(settings()["layers"]), chosen(settings()["family"]), chosen(rivals()["rows"])
    elsewhere = {*layers, *family, *others}
    names = model_names() if asked is None else [name for name in asked if name not in elsewhere]
    found: dict[str, Callable[[], list[Row]]] = {
        "paper": lambda: [paper_row(dataset, name) for name in names],
        "tuned": lambda: [row for name in names if (row := tuned_row(dataset, name)) is not None],
        "adaptive": lambda: other_rows("adaptive", dataset, names),
        "readings": lambda: other_rows("readings", dataset, names),
        "layers": lambda: layer_rows(layers),
        "family": lambda: family_rows(dataset, family, "small"),
        "family-500": lambda: family_rows(dataset, family, "large"),
        "rivals": lambda: rival_rows(dataset, others),
    }
    return [row for kind in KINDS if kind in kinds for row in found[kind]()]
