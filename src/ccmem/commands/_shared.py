"""What the commands that read files have in common."""

from __future__ import annotations

import argparse
import ast
import contextlib
import signal
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ccmem import registry

if TYPE_CHECKING:
    from ccmem.living.learner import Learner

DEFAULT_MODEL = "adaptive"
_WORDS_OF_0_1 = {"gated-mlp": "gated"}


class Help(argparse.RawDescriptionHelpFormatter):
    """Examples as they are written; prose wrapped to the terminal, and to 100 columns at most."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog)
        self._width = min(self._width, 98)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        parts = text.strip("\n").split("\n\n")
        wrapped = (part if "\n  " in part else textwrap.fill(part, width, break_on_hyphens=False) for part in parts)
        return "\n\n".join(wrapped)


def add_source_options(parser: argparse.ArgumentParser) -> None:
    """Options that say what to read and how."""
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
        "--on-bad-row",
        choices=("stop", "skip"),
        default="stop",
        help="stop (default) at the first row with a missing or non-numeric value, or skip and count",
    )


def build_model(name: str, settings: list[str], labelled: bool) -> Any:
    """A fresh model with the parameters given as NAME=VALUE; on a memory, labels are read out by its units."""
    import ccmem

    kind = class_name(name)
    if kind not in registry.COMMAND_WORDS.values():
        raise ValueError(f"--model {name} is unknown; known are {', '.join(registry.COMMAND_WORDS)}")
    estimator = registry.load(kind)
    needs_labels = kind in registry.PREDICTORS
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
        from ccmem.parameters import check_parameters

        check_parameters(kind, estimator._rules, vars(model))
    return ccmem.ModalClassifier(model) if labelled and not needs_labels else model


def check_against(learner: Learner, args: argparse.Namespace) -> None:
    """Raise if the command line asks for another model, columns or scaling than the checkpoint has."""
    from ccmem.base import CompetitiveMemory
    from ccmem.persistence import CheckpointError

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
    if args.features and learner.columns is not None and tuple(args.features) != learner.columns.features:
        wrong.append(f"--features {','.join(args.features)} (it has {','.join(learner.columns.features)})")
    if wrong:
        raise CheckpointError(
            f"{args.checkpoint} was started differently: {'; '.join(wrong)}; leave that out to resume, or name a new "
            "checkpoint"
        )


def class_name(word: str) -> str:
    """The class that a word of the command line stands for, which may be its name."""
    return registry.COMMAND_WORDS.get(_WORDS_OF_0_1.get(word.lower(), word.lower()), word)


def model_name(model: Any) -> str:
    """What holds the knowledge, by name: the memory under a readout, or the model itself."""
    return type(_inner(model)).__name__


def _inner(model: Any) -> Any:
    return model.memory if type(model).__name__ == "ModalClassifier" else model


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return {"inf": float("inf"), "true": True, "false": False, "none": None}.get(text.lower(), text)


class Ended(Exception):  # noqa: N818 - reads as what it says
    """A signal asked the command to end."""

    def __init__(self, number: int) -> None:
        self.exit_code = 128 + number


class Asked:
    """Whether a signal asked the command to end."""

    number = 0

    def heed(self) -> None:
        """End if it did; not from the signal's handler, which may run in the middle of anything."""
        if self.number:
            raise Ended(self.number)


@contextlib.contextmanager
def ended_by_signals() -> Iterator[Asked]:
    """Note SIGTERM and SIGHUP instead of being ended by them, so that the block can clean up behind itself."""
    asked = Asked()

    def note(number: int, frame: Any) -> None:
        asked.number = number

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    previous = {number: signal.signal(number, note) for number in numbers if signal.getsignal(number) == signal.SIG_DFL}
    try:
        yield asked
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
