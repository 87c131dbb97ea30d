"""Options of the commands, written as help pages; :mod:`ccmem.app.pages_more` has the pages of fleets and experiments.

A page is apart from the code of its command, so that ``--help`` imports nothing heavy. Its first paragraph lists the
arguments: the name, the metavar or the choices, and the help after two spaces. ``SOURCE...`` stands for one or more
values, ``[KEY]`` for at most one, an option without metavar for a flag. ``(default X)``, ``(required)`` and ``may be
repeated`` in the help are its settings, too. The other paragraphs are printed below the options.
"""

from __future__ import annotations

import argparse
import re
import textwrap
from typing import Any

from ccmem import registry

DEFAULT_MODEL = "adaptive"
_OTHER_MODELS = [word for word in registry.COMMAND_WORDS if word != DEFAULT_MODEL]
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


def add_page(parser: argparse.ArgumentParser, page: str) -> None:
    """Add the arguments and the further paragraphs of a help page."""
    entries, _, parser.epilog = page.lstrip("\n").partition("\n\n")
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


# Pages ----------------------------------------------------------------------------------------------------------------

_SOURCE = """
  sources SOURCE...         file, folder, pattern, or - for standard input; the files of a folder or pattern are taken
                            in natural order
  --format {csv|ndjson|parquet|arrow|npy|npz}  file format (default: from the file name)
  --features A,B,...        numeric columns to use (default: all but the label)
  --missing TEXT            text that marks a missing value, besides blank, NA, N/A, null, None, nan, - and ?; may be
                            repeated
  --decimal {.|,}           decimal sign of text files (default: inferred)
  --on-bad-row {stop|skip}  at a row with a missing or non-numeric value: stop, or skip and count such rows (default
                            stop)"""
_TIME = """
  --time COLUMN             column with the time of a row (default: detected), or DATE,CLOCK for two columns; not
                            learned
  --day-first               read 4/2/2015 as 4 February"""
_PAGE = """
  --port PORT               port of the page, 0 for any that is free (default 0)
  --no-browser              print the address without opening a browser"""

GENERATE = """
  kind {drift}              sensors of a machine whose state changes
  out FILE                  .csv, .ndjson, .parquet, .arrow, .npy or .npz
  --rows N                  number of rows (default 100000)
  --features N              number of sensors (default 8)
  --regimes N               number of states, at most 6 (default 4)
  --segment N               rows spent in a state, on average (default 4000)
  --missing-labels SHARE    share of rows without label (default 0.1)
  --seed N                  seed that selects the machine (default 0)
  --recording N             number of the recording of this machine (default 0)
  --changes FILE            write the true change points as JSON
  --json                    print the summary as JSON

examples:
  ccmem generate drift sensors.csv
  ccmem generate drift sensors.parquet --features 6 --missing-labels 0.2 --changes changes.json

drift simulates a machine with sensors that switches between several states and returns to earlier ones. Every state
has a pattern of sensor levels; a daily cycle, a slow drift and noise are added. --changes writes the rows at which
the state changed, so that you can score events (ccmem inspect --changes, ccmem.metrics).
"""

LOOK = f"""{_SOURCE}{_TIME}
  --label COLUMN            label column
  --json                    print everything as JSON

examples:
  ccmem look sensors.csv
  ccmem look export.txt --decimal , --missing -999
  ccmem look log.ndjson --json | jq .columns

The first 300 rows decide the type of a column. Ranges and missing values are counted over the first 20,000 rows, for
columns that are left out over the first 300.
Columns of numbers are learned; times, texts, row counters, running identifiers and empty columns are left out unless
--features names them. Exit codes: 0 there is something to learn from, 2 there is not.
"""

LEARN = f"""{_SOURCE}
  --checkpoint FILE         file that stores the memory (safetensors)
  --model MODEL             {DEFAULT_MODEL} (default), {", ".join(_OTHER_MODELS)},
                            or module:Class; fixed by the first run
  --param NAME=VALUE        set a parameter of the model; may be repeated
  --label COLUMN            label column; labels may be missing in any row{_TIME}
  --scale {{none|unit|standard}}  none (default); unit: scale every row to length 1; standard: standardise every column
                            by its mean and standard deviation so far. Stored in the checkpoint and applied at
                            prediction
  --window LENGTH           treat the rows as a signal and learn the level, spread, spectrum and correlations of windows
                            of LENGTH rows (auto: two periods of the signal). Not with --label; the results are the
                            events
  --shapes                  with --window: describe windows by shapes that are learned from the first rows
  --every ROWS              rows between checkpoints (default 1000000)
  --every-seconds S         longest time between checkpoints, in seconds (default 60)
  --events FILE             append new blocks and recalls to FILE, one JSON object per line
  --alert CMD               run CMD (without a shell) for each new block and recall; the last argument is the event in
                            words, standard input is the event as JSON. After a crash, events since the last checkpoint
                            are repeated
  --exit-code               exit with 10 if a new block began, 11 if only known blocks returned
  --max-rows ROWS           stop after this number of rows
  --max-seconds S           stop after S seconds
  --again                   learn the files from their first row, even if they were learned before
  --skip-seen               skip the rows of standard input that an earlier run has read
  --watch                   open a live page, which stays open after the last row until Ctrl-C{_PAGE}
  --accept-last-line        learn a file's last line even if its line end is missing
  --json                    print the summary as JSON
  --quiet                   print neither progress nor summary

examples:
  ccmem generate drift sensors.csv
  ccmem learn sensors.csv --label state --checkpoint memory.safetensors --events events.jsonl
  tail -f log.ndjson | ccmem learn - --format ndjson --features a,b --checkpoint memory.safetensors
  ccmem learn more/*.csv --checkpoint memory.safetensors
  ccmem learn vibration.csv --window auto --events events.jsonl
  ccmem learn sensors.csv --watch

If the checkpoint exists, learning resumes from it, with its model, columns and scaling. The checkpoint stores the
number of rows learned from every file. A file that has grown resumes at its next row, a file learned in full is
skipped, and each row is learned once, even if the command is stopped, killed or repeated. --again resets this for the
given files; omit it when you resume such a run.

Standard input cannot be rewound; a pipe that starts over from its first row needs --skip-seen.

A last line without a line end is not learned yet, because it may be incomplete. --accept-last-line learns it; at the
end of a pipe it is always learned.

Exit codes: 0 done, 1 error (also an unclosed quote), 2 wrong command line or nothing to learn from, with --exit-code
10 for new blocks and 11 for recalls only, 129 after SIGHUP, 130 after Ctrl-C, 143 after SIGTERM. A run that ends
early (by a limit, a signal or a bad row) saves what it has learned.
"""

PREDICT = f"""{_SOURCE}
  --checkpoint FILE         checkpoint written by ccmem learn (required)
  --out FILE                output: .csv, .ndjson, .parquet or .arrow; - prints CSV (default -)
  --model MODULE:CLASS      class of the model, if the checkpoint holds one that you wrote
  --units                   also write the best matching unit (and its block) of each row
  --json                    print the summary as JSON (to standard error if the answers are printed)

examples:
  ccmem predict new.parquet --checkpoint memory.safetensors --out labels.parquet
  tail -f log.ndjson | ccmem predict - --format ndjson --checkpoint memory.safetensors --units

Every input row gives one output row, in order. With --on-bad-row skip, only rows that cannot be read have an empty
answer (null in NDJSON, Parquet and Arrow). Columns and scaling are those of the checkpoint. If the input also has the
label column, the share of correct answers is printed.
"""

INSPECT = """
  checkpoint FILE           checkpoint written by ccmem learn or memory.save
  --json                    print everything as JSON
  --events N                number of events to show (default 10)
  --changes FILE            score the events against the true changes (a file written by ccmem generate)
  --plot FILE               draw blocks, units and events to a .png, .svg or .pdf

examples:
  ccmem inspect memory.safetensors
  ccmem inspect memory.safetensors --plot memory.png
  ccmem inspect memory.safetensors --json | jq .blocks
"""

COMPARE = """
  a A                       checkpoint written by ccmem learn or memory.save
  b B                       the checkpoint to compare with it
  --spreads SPREADS         largest difference between equal blocks, in standard deviations (default 3)
  --exit-code               exit with 10 if B has a block that A lacks
  --json                    print everything as JSON

examples:
  ccmem compare monday.safetensors tuesday.safetensors
  ccmem compare reference.safetensors today.safetensors --json | jq .new
  ccmem compare reference.safetensors today.safetensors --exit-code || echo "a new state"

Two blocks are equal if no column of one lies more than --spreads standard deviations from the other. The numbers of
the blocks are ignored, so the checkpoints may come from separate runs. Exit codes: 0 done, 1 error, with --exit-code
10 if B has a block that A lacks.
"""

WATCH = f"""
  checkpoint [FILE]         checkpoint written by ccmem learn or memory.save
  --demo [{{digits|sensors}}]  a bundled stream, digits if none is named
  --changes FILE            true changes (a file written by ccmem generate), drawn as dotted lines
  --image-shape HxW         rows are images of this height and width{_PAGE}

examples:
  ccmem watch --demo
  ccmem watch memory.safetensors
  ccmem watch memory.safetensors --port 8000 --no-browser
  ccmem learn sensors.csv --checkpoint memory.safetensors --watch

The page is served on this machine only and can change only the names of blocks. A checkpoint is read again whenever a
running ccmem learn rewrites it; 'ccmem learn --watch' updates the page five times a second.
"""
