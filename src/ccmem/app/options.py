"""Options of the commands, written as help pages: text files in the folder ``help``.

A page is apart from the code of its command, so that ``--help`` imports nothing heavy. Its first paragraph lists the
arguments: the name, the metavar or the choices, and the help after two spaces. ``SOURCE...`` stands for one or more
values, ``[KEY]`` for at most one, an option without metavar for a flag. ``(default X)``, ``(required)`` and ``may be
repeated`` in the help are its settings, too. A line ``@source`` stands for the file ``_source.txt``. The other
paragraphs are printed below the options.
"""

from __future__ import annotations

import argparse
import re
import textwrap
from pathlib import Path
from typing import Any

from ccmem import registry

DEFAULT_MODEL = "adaptive"
FLEET_ACTIONS = {
    "learn": "learn the rows of every key",
    "inspect": "show the content of a store or of one memory",
    "predict": "write the unit, block (and label) of new rows, each from the memory of its key",
    "export": "write the memory of one key as a checkpoint for the other commands",
}
"""Action of ``ccmem fleet`` -> its line of help."""
_ENTRY = re.compile(r"^  (\S+)(?: (\S+))?  +(\S.*(?:\n {8,}\S.*)*)", re.MULTILINE)
_DEFAULT = re.compile(r"\(default (\S+)\)")


class Help(argparse.RawDescriptionHelpFormatter):
    """Help formatter that keeps examples unchanged and wraps prose to the terminal, at most 100 columns."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog)
        self._width = min(self._width, 98)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        parts = text.strip("\n").split("\n\n")
        wrapped = (part if "\n  " in part else textwrap.fill(part, width, break_on_hyphens=False) for part in parts)
        return "\n\n".join(wrapped)


def add_options(parser: argparse.ArgumentParser, command: str) -> None:
    """Add the arguments and the further paragraphs of the help page of a command."""
    if command == "fleet":
        parser.epilog = _page(command)
        actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
        for action, summary in FLEET_ACTIONS.items():
            add_options(actions.add_parser(action, help=summary, formatter_class=Help), f"fleet-{action}")
        return
    entries, _, parser.epilog = _page(command).partition("\n\n")
    for name, metavar, text in _ENTRY.findall(entries):
        more: dict[str, Any] = {"help": " ".join(text.split())}
        optional = metavar.startswith("[")
        kind = metavar.strip("[]")
        if kind.endswith("...") and kind not in TYPES:
            kind, more["nargs"] = kind[:-3], "*" if optional else "+"
        elif optional:
            more["nargs"] = "?"
        if kind.startswith("{"):
            more["choices"] = kind[1:-1].split("|")
            if optional and name.startswith("-"):
                more["const"] = more["choices"][0]
        elif kind:
            more |= {"metavar": kind, "type": TYPES.get(kind, str)}
        else:
            more["action"] = "store_true"
        if (default := _DEFAULT.search(more["help"])) is not None:
            more["default"] = default[1]
        if more["help"].endswith("may be repeated"):
            more |= {"action": "append", "default": []}
        if more["help"].endswith("(required)"):
            more["required"] = True
        parser.add_argument(name, **more)


def _page(name: str) -> str:
    """Return a help page with its parts."""
    text = Path(__file__).with_name("help").joinpath(f"{name}.txt").read_text(encoding="utf-8")
    text = re.sub(r"^@(\w+)\n", lambda part: _page(f"_{part[1]}"), text, flags=re.MULTILINE)
    return text.replace("$models", ", ".join(word for word in registry.COMMAND_WORDS if word != DEFAULT_MODEL))


# Values of options ----------------------------------------------------------------------------------------------------


def names(text: str) -> list[str]:
    """Parse comma-separated column names."""
    return text.split(",")


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


def image_shape(text: str) -> tuple[int, int]:
    """Parse height and width from a text such as 28x28."""
    height, _, width = text.lower().partition("x")
    if not (height.isdigit() and width.isdigit() and int(height) and int(width)):
        raise argparse.ArgumentTypeError(f"{text} is not HEIGHTxWIDTH, such as 28x28")
    return int(height), int(width)


def _port(text: str) -> int:
    if not text.isdigit() or not 0 <= int(text) < 65536:
        raise argparse.ArgumentTypeError(f"{text} is not a port: a number from 0 to 65535")
    return int(text)


_NUMBERS = {"N": int, "ROWS": positive, "S": seconds, "SHARE": float, "SPREADS": float, "PORT": _port}
TYPES = _NUMBERS | {"A,B,...": names, "LENGTH": window_length, "HxW": image_shape}
"""Metavar -> function that parses the value; other values are texts."""


def reading(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options of :class:`~ccmem.io.streams.files.FileStream` that the command line gives."""
    day_first = True if getattr(args, "day_first", False) else None
    options = {"time": getattr(args, "time", None), "decimal": args.decimal, "day_first": day_first}
    return {**options, "markers": args.missing, **{k: getattr(args, k) for k in ("features", "format", "on_bad_row")}}
