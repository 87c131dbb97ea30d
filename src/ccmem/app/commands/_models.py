"""Models named on the command line: build a new one, or compare the options with the model in a checkpoint."""

from __future__ import annotations

import argparse
import ast
import difflib
import importlib
import sys
from pathlib import Path
from typing import Any

import ccmem
from ccmem import registry
from ccmem.app.learner import Learner
from ccmem.base.memory import CompetitiveMemory
from ccmem.core.parameters import check_parameters
from ccmem.io.persistence import CheckpointError
from ccmem.layers.shape import ShapeLayer


def build_model(name: str, settings: list[str], labelled: bool) -> Any:
    """Build a new model with parameters given as NAME=VALUE; with labels, add a label readout to a memory."""
    kind = class_name(name)
    if not (outside := outside_classes(name)) and kind not in registry.COMMAND_WORDS.values():
        near = difflib.get_close_matches(name.lower(), registry.COMMAND_WORDS, n=1)
        known = f"known are {', '.join(registry.COMMAND_WORDS)}, and package.module:Class"
        raise ValueError(f"--model {name} is unknown; {f'did you mean {near[0]}?' if near else known}")
    estimator = outside[0] if outside else registry.load(kind)
    needs_labels = kind in registry.PREDICTORS or hasattr(estimator, "predict_proba")
    if needs_labels and not labelled:
        raise ValueError(f"--model {name} learns from labels; name their column with --label")
    names = estimator._get_param_names()
    values: dict[str, Any] = {"random_state": 0} if "random_state" in names else {}
    if "memory" in names:
        values["memory"] = ccmem.AdaptiveCCM()
    model = estimator(**values)
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or key not in model.get_params(deep=True):
            raise ValueError(f"--param {setting}: {kind} has the parameters {', '.join(names)}; use --param NAME=VALUE")
        model.set_params(**{key: _value(text)})
    if hasattr(estimator, "_rules"):
        check_parameters(kind, estimator._rules, vars(model))
    return ccmem.ModalClassifier(model) if labelled and not needs_labels else model


def check_against(learner: Learner, args: argparse.Namespace) -> None:
    """Raise if model, columns or scaling on the command line differ from those of the checkpoint."""
    model = learner.model
    wrong = []
    if args.model is not None and class_name(args.model) != type(_inner(model)).__name__:
        wrong.append(f"--model {args.model} (it holds {model_name(model)})")
    for setting in args.param:
        key, _, text = setting.partition("=")
        known = _inner(model).get_params(deep=True)
        if key not in known or repr(known[key]) != repr(_value(text)):
            wrong.append(f"--param {setting} (it has {known.get(key)!r})")
    label = learner.columns.label if learner.columns is not None else None
    if args.label is not None and isinstance(model, CompetitiveMemory):
        wrong.append(f"--label {args.label} (it was begun without labels)")
    elif args.label is not None and learner.columns is not None and args.label != label:
        wrong.append(f"--label {args.label} (its label column is {label!r})")
    if args.scale is not None and args.scale != learner.scale_kind:
        wrong.append(f"--scale {args.scale} (it has {learner.scale_kind})")
    if args.window is not None and (learner.front is None or args.window != learner.front.window):
        has = "no windows" if learner.front is None else f"windows of {learner.front.window}"
        wrong.append(f"--window {args.window} (it has {has})")
    if args.shapes and not isinstance(learner.front, ShapeLayer):
        wrong.append("--shapes (it has no shapes)")
    if args.features and learner.columns is not None and tuple(args.features) != learner.columns.features:
        wrong.append(f"--features {','.join(args.features)} (it has {','.join(learner.columns.features)})")
    if wrong:
        raise CheckpointError(
            f"{args.checkpoint} was started differently: {'; '.join(wrong)}; leave that out to resume, or name a new "
            "checkpoint"
        )


def class_name(word: str) -> str:
    """Return the class name for a word of the command line, which may be an alias or the class name itself."""
    if ":" in word:
        return word.rpartition(":")[2]
    return registry.COMMAND_WORDS.get(word.lower().removesuffix("-mlp"), word)  # gated-mlp is the word gated


def outside_classes(name: str | None) -> list[Any]:
    """Import the class named ``package.module:Class``, also from the working directory; [] for other words."""
    if name is None or ":" not in name:
        return []
    module, _, kind = name.partition(":")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        found = getattr(importlib.import_module(module), kind)
    except (ImportError, AttributeError, ValueError) as problem:
        raise ValueError(f"--model {name} cannot be imported: {problem}") from problem
    if not (isinstance(found, type) and hasattr(found, "_import")):
        raise ValueError(f"--model {name} is not a model; derive it from ccmem.ncl.Model or ccmem.ncl.Classifier")
    return [found]


def model_name(model: Any) -> str:
    """Return the name of the model, or of the memory under a readout."""
    return type(_inner(model)).__name__


def _inner(model: Any) -> Any:
    return model.memory if type(model).__name__ == "ModalClassifier" else model


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return {"inf": float("inf"), "true": True, "false": False, "none": None}.get(text.lower(), text)
