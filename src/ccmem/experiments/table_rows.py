"""The experiments as data: settings of every row, tuned settings, and the printed tables they stand beside."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module, resources
from typing import Any, NamedTuple

import numpy as np

from ccmem import registry
from ccmem._typing import FloatArray

TRAINING_IMAGES = "training images"
TUNED = "-tuned"
KINDS = ("paper", "tuned", "adaptive", "readings", "layers", "rivals")


class Standing(NamedTuple):
    """What the comparison at equal memory says about a row beside its results."""

    family: str
    """The same for all budgets of a model."""
    title: str
    regime: str
    """"one pass", "own" (told where tasks end) or "all data"."""
    told: str
    """What the learner has to be told."""
    budget: int | None
    """Floats it may hold; None if it takes what it needs."""
    ours: bool


@dataclass(frozen=True)
class Row:
    """One model with one set of parameters on one data set: a row of the tables."""

    name: str
    title: str
    model: str
    """Name of the model's class."""
    parameters: Mapping[str, Any]
    start: str = "own"
    """Where prototypes start: as the model has it, or at random training images."""
    memory: Row | None = None
    """The memory inside a gated network."""
    source: str = ""
    """Where the parameters are from."""
    standing: Standing | None = None
    """Only in the comparison with rivals."""

    @property
    def is_told_tasks(self) -> bool:
        return self.standing is not None and self.standing.regime == "own"

    def settings(self) -> dict[str, Any]:
        """What decides the results, as JSON values."""
        found: dict[str, Any] = {"model": self.model, "parameters": dict(self.parameters), "start": self.start}
        if self.memory is not None:
            found["memory"] = self.memory.settings()
        if self.is_told_tasks:
            found["told"] = "task boundaries"
        return found

    def modules(self) -> list[str]:
        """Where the code of its models stands."""
        parts = [model for value in self.parameters.values() for model in _models_in(value)]
        names = [model_class(model).__module__ for model in (self.model, *parts)]
        return [*names, *(self.memory.modules() if self.memory else [])]

    def build(self, X: FloatArray, rows: Any, seed: int) -> Any:
        """The model for one trial: a classifier, ready to learn. ``rows`` of ``X`` may serve as first prototypes."""
        from ccmem.base import CompetitiveMemory
        from ccmem.readout import ModalClassifier

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
    """A parameter as the model takes it: a table that names a model becomes one (the layers of a stack, say)."""
    if isinstance(value, Mapping) and "model" in value:
        return _seeded(value["model"], {k: _built(v, seed) for k, v in value.items() if k != "model"}, seed)
    if isinstance(value, list):
        return tuple(_built(one, seed) for one in value)
    return value


def _models_in(value: Any) -> list[str]:
    """Names of all models that a parameter is built from."""
    if isinstance(value, Mapping):
        own = [value["model"]] if "model" in value else []
        return own + [name for inner in value.values() for name in _models_in(inner)]
    return [name for one in value for name in _models_in(one)] if isinstance(value, list) else []


def model_class(name: str) -> Any:
    """A model's class by its name: a memory, a predictor or a rival."""
    if name in registry.ESTIMATORS:
        return registry.load(name)
    rivals = import_module("ccmem.rivals")
    if name not in rivals.__all__:
        raise ValueError(f"there is no model {name!r} in ccmem")
    return getattr(rivals, name)


@cache
def _read(name: str) -> dict[str, Any]:
    text = resources.files("ccmem.experiments").joinpath(name).read_text(encoding="utf-8")
    return tomllib.loads(text) if name.endswith(".toml") else json.loads(text)


def settings() -> dict[str, Any]:
    """settings.toml: data sets and rows."""
    return _read("settings.toml")


def tuned() -> dict[str, Any]:
    """tuned.json: data set -> model -> what ``ccmem tune`` found."""
    return _read("tuned.json")


def paper() -> dict[str, Any]:
    """paper.toml: the printed tables."""
    return _read("paper.toml")


def model_names() -> list[str]:
    """The models of the tables, in their order."""
    return list(settings()["rows"])


def paper_row(dataset: str, model: str) -> Row:
    """The row with the paper's own settings, where it gives them, and those that land on its tables where not."""
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
    """``row`` with other parameters: ``start`` and those that begin with ``memory.`` go where they belong."""
    own = {key: value for key, value in parameters.items() if key != "start" and not key.startswith("memory.")}
    inner = {key.removeprefix("memory."): value for key, value in parameters.items() if key.startswith("memory.")}
    memory = row.memory if row.memory is None or not inner else changed(row.memory, row.memory.name, inner)
    start = parameters.get("start", row.start)
    return replace(row, name=name, parameters={**row.parameters, **own}, start=start, memory=memory)


def tuned_row(dataset: str, model: str) -> Row | None:
    """The row with tuned parameters, or None where nobody tuned it."""
    found = tuned().get(dataset, {}).get(model)
    if found is None or not found["parameters"]:  # the search found nothing better
        return None
    row = changed(paper_row(dataset, model), model + TUNED, found["parameters"])
    return replace(row, title=f"{row.title}, tuned", source=found["command"])


def other_rows(kind: str, dataset: str, models: Iterable[str]) -> list[Row]:
    """Variants of the paper's rows for models among ``models``: other readings, or memories without thresholds."""
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
    """Stacks of layers, or those named; they are variants of none of the paper's models."""
    found = settings()["layers"]
    return [
        Row(name, found[name]["title"], "Stack", found[name]["parameters"], source=found[name]["source"])
        for name in (found if names is None else names)
    ]


def _variant(row: Row, name: str, facts: Mapping[str, Any]) -> Row:
    """``row`` as a variant of it has it; another model takes over none of its parameters."""
    if "model" in facts:
        row = replace(row, model=facts["model"], parameters={})
    return replace(changed(row, name, facts["parameters"]), title=facts["title"], source=facts["source"])


def rows(dataset: str, models: Iterable[str] | None = None, kinds: Iterable[str] = KINDS[:3]) -> list[Row]:
    """The rows of a data set's tables: the paper's first, then the tuned ones, then variants."""
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise ValueError(f"unknown kind of rows {unknown[0]!r}; there are {', '.join(KINDS)}")
    from ccmem.experiments.rival_rows import rival_names, rival_rows

    asked = None if models is None else list(models)
    layers = None if asked is None else [name for name in asked if name in settings()["layers"]]
    others = [*rival_names(), *(layers or [])]
    names = model_names() if asked is None else [name for name in asked if name not in others]
    found: list[Row] = []
    if "paper" in kinds:
        found += [paper_row(dataset, name) for name in names]
    if "tuned" in kinds:
        found += [row for name in names if (row := tuned_row(dataset, name)) is not None]
    for kind in KINDS[2:4]:
        if kind in kinds:
            found += other_rows(kind, dataset, names)
    if "layers" in kinds:
        found += layer_rows(layers)
    if "rivals" in kinds:
        found += rival_rows(dataset, None if asked is None else [name for name in asked if name in rival_names()])
    return found
