"""Models named on the command line: build a new one, or compare the options with the model in a checkpoint."""

from __future__ import annotations

import argparse
import ast
import difflib
import importlib
import os
import sys
from pathlib import Path
from typing import Any

import ccmem
from ccmem import registry
from ccmem.core.parameters import check_parameters
from ccmem.io.persistence import CheckpointError


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


def refuse_changes(
    args: argparse.Namespace, place: str, model: Any, features: tuple[str, ...] | None, known: dict[str, Any]
) -> None:
    """Raise if the command line differs from the options with which a checkpoint or a store was started.

    ``known``: name of an option -> its value so far.
    """
    inner, wrong = _inner(model), []
    if args.model is not None and class_name(args.model) != model_name(model):
        wrong.append(f"--model {args.model} (it holds {model_name(model)})")
    parameters = inner.get_params(deep=True)
    for setting in args.param:
        key, _, text = setting.partition("=")
        if key not in parameters or repr(parameters[key]) != repr(_value(text)):
            wrong.append(f"--param {setting} (it has {parameters.get(key)!r})")
    if args.features and features is not None and tuple(args.features) != features:
        wrong.append(f"--features {','.join(args.features)} (it has {','.join(features)})")
    for name, old in known.items():
        new = getattr(args, name)
        if new not in (None, False) and new != old:
            wrong.append(f"--{name}{'' if new is True else f' {new}'} (it has {old or 'none'})")
    if wrong:
        raise CheckpointError(
            f"{place} was started differently: {'; '.join(wrong)}; leave that out to resume, or name a new one"
        )


def refuse_overlap(outputs: dict[str, str | None], inputs: list[str]) -> None:
    """Raise if a file would be written to that is read, or that another option names; ``-`` is no file."""
    taken = {os.path.realpath(file): file for file in inputs if file != "-"}
    for option, file in outputs.items():
        if file not in (None, "-"):
            if (place := os.path.realpath(file)) in taken:
                raise ValueError(f"{option} {file} is a source or the checkpoint itself; name another file")
            taken[place] = file


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
