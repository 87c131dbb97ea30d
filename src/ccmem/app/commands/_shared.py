"""Options and checks shared by the commands that read files."""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import importlib
import os
import signal
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ccmem import registry

if TYPE_CHECKING:
    from ccmem.app.learner import Learner
    from ccmem.io.streams.schema import Rules

DEFAULT_MODEL = "adaptive"
_WORDS_OF_0_1 = {"gated-mlp": "gated"}


class Help(argparse.RawDescriptionHelpFormatter):
    """Help formatter that keeps examples unchanged and wraps prose to the terminal, at most 100 columns."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog)
        self._width = min(self._width, 98)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        parts = text.strip("\n").split("\n\n")
        wrapped = (part if "\n  " in part else textwrap.fill(part, width, break_on_hyphens=False) for part in parts)
        return "\n\n".join(wrapped)


def add_source_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that select sources and their format."""
    parser.add_argument(
        "sources",
        nargs="+",
        metavar="SOURCE",
        help="file, folder, pattern, or - for standard input; "
        "the files of a folder or pattern are taken in natural order",
    )
    parser.add_argument(
        "--format", choices=("csv", "ndjson", "parquet", "arrow", "npy", "npz"), help="if the name does not tell"
    )
    parser.add_argument(
        "--features",
        metavar="A,B,...",
        type=lambda text: text.split(","),
        help="numeric columns to use (default: all but the label)",
    )
    parser.add_argument(
        "--missing",
        metavar="TEXT",
        action="append",
        default=[],
        help="a text that marks a missing value, beside blank, NA, N/A, null, None, nan, - and ?",
    )
    parser.add_argument("--decimal", choices=(".", ","), help="decimal sign of text files (default: inferred)")
    parser.add_argument(
        "--on-bad-row",
        choices=("stop", "skip"),
        default="stop",
        help="stop (default) at the first row with a missing or non-numeric value, or skip and count",
    )


def add_time_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the time of rows."""
    parser.add_argument(
        "--time",
        metavar="COLUMN",
        help="the time of a row (default: recognised), or DATE,CLOCK if in two columns; not learned from",
    )
    parser.add_argument("--day-first", action="store_true", help="in dates such as 4/2/2015, the day comes first")


def check_apart(args: argparse.Namespace, files: list[str]) -> None:
    """Raise if an output file is also an input file."""
    named = {"--events": args.events, "--checkpoint": args.checkpoint}
    places = {option: os.path.realpath(name) for option, name in named.items() if name is not None}
    if args.events and places["--events"] == places.get("--checkpoint"):
        raise ValueError(f"--events {args.events} is the checkpoint itself; name another file")
    sources = {os.path.realpath(file) for file in files if file != "-"}
    for option, place in places.items():
        if place in sources:
            raise ValueError(f"{option} {named[option]} is one of the sources; name another file")


def feature_names(learner: Learner) -> list[str] | None:
    """Return the column names of a model that was trained in Python, or None if the model has no names."""
    if learner.front is not None:  # with windows, the names belong to window features, not to columns of the source
        return None
    names = getattr(learner.model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def reading_rules(args: argparse.Namespace) -> Rules:
    """Return the column rules given on the command line."""
    from ccmem.io.streams.schema import Rules

    time = getattr(args, "time", None)
    day_first = True if getattr(args, "day_first", False) else None
    return Rules(args.decimal, tuple(args.missing), tuple(time.split(",")) if time else (), day_first)


def build_model(name: str, settings: list[str], labelled: bool) -> Any:
    """Build a new model with parameters given as NAME=VALUE; with labels, add a label readout to a memory."""
    import ccmem

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
            raise ValueError(f"--param {setting}: {kind} has the parameters {', '.join(names)}; say --param NAME=VALUE")
        model.set_params(**{key: _value(text)})
    if hasattr(estimator, "_rules"):
        from ccmem.core.parameters import check_parameters

        check_parameters(kind, estimator._rules, vars(model))
    return ccmem.ModalClassifier(model) if labelled and not needs_labels else model


def check_against(learner: Learner, args: argparse.Namespace) -> None:
    """Raise if model, columns or scaling on the command line differ from those of the checkpoint."""
    from ccmem.base.memory import CompetitiveMemory
    from ccmem.io.persistence import CheckpointError
    from ccmem.layers.shape import ShapeLayer

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
    return registry.COMMAND_WORDS.get(_WORDS_OF_0_1.get(word.lower(), word.lower()), word)


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


def window_length(text: str) -> str | int:
    """Parse the number of rows of a window, or "auto"."""
    if text != "auto" and positive(text) < 8:
        raise argparse.ArgumentTypeError(f"{text} rows are too few for a window: at least 8, or auto")
    return text if text == "auto" else positive(text)


def positive(text: str) -> int:
    """Parse an integer of at least 1."""
    digits = text.replace("_", "")
    if not (digits.isascii() and digits.isdigit() and int(digits[:4000]) >= 1):
        raise argparse.ArgumentTypeError(f"{text[:40]} is not a whole number >= 1")
    return int(digits[:4000])


def seconds(text: str) -> float:
    """Parse a nonnegative number of seconds."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value >= 0:  # "not >=" also rejects NaN
        raise argparse.ArgumentTypeError(f"{text[:40]} is not a number of seconds")
    return value


class Ended(Exception):  # noqa: N818 - a request, not an error
    """Exception raised when a signal has asked the command to end."""

    def __init__(self, number: int) -> None:
        self.exit_code = 128 + number


class StopRequest:
    """Stop request: number of the signal that asked the command to end, 0 if none has."""

    number = 0

    def raise_if_set(self) -> None:
        """Raise if a signal has arrived; called between steps, because a signal handler may interrupt any operation."""
        if self.number:
            raise Ended(self.number)


@contextlib.contextmanager
def ended_by_signals() -> Iterator[StopRequest]:
    """Record SIGTERM and SIGHUP instead of dying from them, so that the ``with`` body can clean up."""
    asked = StopRequest()

    def note(number: int, frame: Any) -> None:
        asked.number = number

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    previous = {number: signal.signal(number, note) for number in numbers if signal.getsignal(number) == signal.SIG_DFL}
    try:
        yield asked
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
