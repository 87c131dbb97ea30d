"""``ccmem`` command: a table of subcommands, each in a module that is imported only when it is called.

Exit codes, the same for every subcommand: 0 done, 1 an error that the message explains, 2 a wrong command line,
130 stopped by Ctrl-C (143 by SIGTERM) after saving.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import importlib
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from ccmem import __version__
from ccmem.app.options import Help, add_options
from ccmem.app.stopping import Ended
from ccmem.core.terminal import printable

COMMANDS = {
    "generate": "generate a drifting stream of sensor data for experiments",
    "look": "show what would be learned from a file, and why",
    "learn": "learn from files or a pipe; keep a checkpoint and resume from it",
    "predict": "label new rows from a checkpoint",
    "inspect": "show the content of a checkpoint",
    "compare": "compare the blocks of two checkpoints: common, new and missing",
    "fleet": "one memory per key: learn, inspect, predict and export thousands of them",
    "watch": "open a live page of a memory: a checkpoint, a run in progress, or a demonstration",
    "datasets": "list, fetch and verify the image data sets",
    "reproduce": "run the paper's experiments and print published and measured results side by side",
    "tune": "search for better settings of a model on a validation split, never on test data",
}
"""Subcommand -> one line of help. Its options are a page of ``ccmem/app/help`` (see :mod:`ccmem.app.options`), its code
is ``run(arguments) -> exit code`` in ``ccmem.app.commands.<name>``."""


def build_parser(command: str | None = None) -> argparse.ArgumentParser:
    """Return the parser; ``command`` is the subcommand whose options are added."""
    parser = argparse.ArgumentParser(
        prog="ccmem",
        description="Learn from an endless stream without forgetting.",
        epilog="'ccmem COMMAND --help' shows a command's options and an example.",
    )
    parser.add_argument("--version", action="version", version=f"ccmem {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        subparser = subparsers.add_parser(
            name, help=summary, description=summary[0].upper() + summary[1:] + ".", formatter_class=Help
        )
        if name == command:
            add_options(subparser, name)
    return parser


def options_of(parser: argparse.ArgumentParser, command: str) -> list[str]:
    """Return the options of the command that ``parser`` was built for."""
    (choice,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return [option for action in choice.choices[command]._actions for option in action.option_strings]


def _did_you_mean(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {near[0]}?" if near else f"; there are {', '.join(known)}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the ``ccmem`` command and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    command = next((word for word in words if word in COMMANDS), None)
    if words and command is None and not words[0].startswith("-"):
        print(f"ccmem: there is no command {words[0]!r}{_did_you_mean(words[0], COMMANDS)}", file=sys.stderr)
        return 2
    parser = build_parser(command)
    given, unknown = parser.parse_known_args(words)
    if unknown:
        hint = _did_you_mean(unknown[0].partition("=")[0], options_of(parser, given.command))
        print(f"ccmem {given.command}: {unknown[0]} is unknown{hint}", file=sys.stderr)
        return 2
    try:
        return int(importlib.import_module(f"ccmem.app.commands.{given.command}").run(given))
    except KeyboardInterrupt:
        print("ccmem: stopped", file=sys.stderr)
        return 130
    except Ended as end:
        return end.exit_code
    except MemoryError as problem:
        print(f"ccmem {given.command}: not enough memory ({problem})", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of our output, such as head, has closed the pipe
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except FileNotFoundError as problem:
        print(f"ccmem {given.command}: {printable(_no_file(problem))}", file=sys.stderr)
        return 1
    except _explained_errors() as problem:
        print(f"ccmem {given.command}: {printable(str(problem))}", file=sys.stderr)
        return int(getattr(problem, "exit_code", 1))


def _explained_errors() -> tuple[type[Exception], ...]:
    """Return the errors whose message suffices; errors of parts exist only if a composed model was imported."""
    parts = sys.modules.get("ccmem.ncl.errors")
    return (ValueError, OSError, ImportError, *(() if parts is None else (parts.PartError,)))


def _no_file(problem: FileNotFoundError) -> str:
    """Return the message for a missing file: its name, and a similar name in the same folder."""
    if problem.filename is None:
        return str(problem)
    path = Path(os.fsdecode(problem.filename))
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}"
    near = difflib.get_close_matches(path.name, (other.name for other in path.parent.iterdir()), n=1)
    return f"there is no file {path}" + (f"; did you mean {path.parent / near[0]}?" if near else "")


if __name__ == "__main__":
    raise SystemExit(main())
