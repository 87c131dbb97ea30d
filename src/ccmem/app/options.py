"""Options and examples of the commands that users run on their data; :mod:`ccmem.app.options_more` has the others.

A command's options are apart from its code, so that ``--help`` and completion import nothing heavy.
"""

from __future__ import annotations

import argparse
import textwrap
from typing import Any

from ccmem import registry

DEFAULT_MODEL = "adaptive"
SPREADS = 3.0
"""Standard deviations by which at least one column differs between two distinct blocks (3, as in control charts)."""


class Help(argparse.RawDescriptionHelpFormatter):
    """Help formatter that keeps examples unchanged and wraps prose to the terminal, at most 100 columns."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog)
        self._width = min(self._width, 98)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        parts = text.strip("\n").split("\n\n")
        wrapped = (part if "\n  " in part else textwrap.fill(part, width, break_on_hyphens=False) for part in parts)
        return "\n\n".join(wrapped)


# Commands -------------------------------------------------------------------------------------------------------------


def generate(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``ccmem generate``."""
    add = parser.add_argument
    add("kind", choices=("drift",), help="sensors of a machine whose state changes")
    add("out", metavar="FILE", help=".csv, .ndjson, .parquet, .arrow, .npy or .npz")
    add("--rows", type=int, default=100_000, help="number of rows (default 100000)")
    add("--features", type=int, default=8, help="number of sensors (default 8)")
    add("--regimes", type=int, default=4, help="number of states (default 4, at most 6)")
    add("--segment", type=int, default=4000, help="rows spent in a state, on average (default 4000)")
    add("--missing-labels", type=float, default=0.1, metavar="SHARE", help="share of rows without label (default 0.1)")
    add("--seed", type=int, default=0, help="seed that selects the machine (default 0)")
    add("--recording", type=int, default=0, help="number of the recording of this machine (default 0)")
    add("--changes", metavar="FILE", help="write the true change points as JSON")
    add("--json", action="store_true", help="print the summary as JSON")
    parser.epilog = """\
examples:
  ccmem generate drift sensors.csv
  ccmem generate drift sensors.parquet --features 6 --missing-labels 0.2 --changes changes.json

drift simulates a machine with sensors that switches between several states and returns to earlier ones. Every state
has a pattern of sensor levels; a daily cycle, a slow drift and noise are added. --changes writes the rows at which
the state changed, so that you can score events (ccmem inspect --changes, ccmem.metrics).
"""


def look(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``ccmem look``."""
    _add_source(parser)
    _add_time(parser)
    parser.add_argument("--label", metavar="COLUMN", help="label column")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.epilog = """\
examples:
  ccmem look sensors.csv
  ccmem look export.txt --decimal , --missing -999
  ccmem look log.ndjson --json | jq .columns

The first 300 rows decide the type of a column. Ranges and missing values are counted over the first 20,000 rows.
Columns of numbers are learned; times, texts, row counters, running identifiers and empty columns are left out unless
--features names them. Exit codes: 0 there is something to learn from, 2 there is not.
"""


def learn(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``ccmem learn``."""
    add = parser.add_argument
    _add_source(parser)
    add("--checkpoint", metavar="FILE", help="file that stores the memory (safetensors)")
    words = ", ".join(word for word in registry.COMMAND_WORDS if word != DEFAULT_MODEL)
    add("--model", help=f"{DEFAULT_MODEL} (default), {words}, or module:Class; fixed by the first run")
    add(
        "--param",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="set a parameter of the model; may be repeated",
    )
    add("--label", metavar="COLUMN", help="label column; labels may be missing in any row")
    _add_time(parser)
    scale = """none (default); unit: scale every row to length 1; standard: standardise every column by its mean and
        standard deviation so far. Stored in the checkpoint and applied at prediction"""
    add("--scale", choices=("none", "unit", "standard"), help=scale)
    window = """treat the rows as a signal and learn the level, spread, spectrum and correlations of windows of N rows
        (auto: two periods of the signal). Not with --label; the results are the events"""
    add("--window", metavar="N", type=window_length, help=window)
    add(
        "--shapes",
        action="store_true",
        help="with --window: describe windows by shapes that are learned from the first rows",
    )
    often = "rows between checkpoints (default 1000000)"
    add("--every", metavar="ROWS", type=positive, default=1_000_000, help=often)
    often = "longest time between checkpoints, in seconds (default 60)"
    add("--every-seconds", metavar="S", type=seconds, default=60.0, help=often)
    add("--events", metavar="FILE", help="append new blocks and recalls to FILE, one JSON object per line")
    alert = """run CMD (without a shell) for each new block and recall; the last argument is the event in words,
        standard input is the event as JSON. After a crash, events since the last checkpoint are repeated"""
    add("--alert", metavar="CMD", help=alert)
    add("--exit-code", action="store_true", help="exit with 10 if a new block began, 11 if only known blocks returned")
    add("--max-rows", metavar="N", type=positive, help="stop after N rows")
    add("--max-seconds", metavar="S", type=seconds, help="stop after S seconds")
    add("--again", action="store_true", help="learn the files from their first row, even if they were learned before")
    add("--skip-seen", action="store_true", help="skip the rows of standard input that an earlier run has read")
    add("--watch", action="store_true", help="open a live page, which stays open after the last row until Ctrl-C")
    _add_page(parser)
    add("--accept-last-line", action="store_true", help="learn a file's last line even if its line end is missing")
    add("--json", action="store_true", help="print the summary as JSON")
    add("--quiet", action="store_true", help="print neither progress nor summary")
    parser.epilog = """\
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


def predict(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``ccmem predict``."""
    add = parser.add_argument
    _add_source(parser)
    add("--checkpoint", metavar="FILE", required=True, help="checkpoint written by ccmem learn")
    add("--out", metavar="FILE", default="-", help="output: .csv, .ndjson, .parquet or .arrow; - (default) prints CSV")
    add("--model", metavar="MODULE:CLASS", help="class of the model, if the checkpoint holds one that you wrote")
    add("--units", action="store_true", help="also write the best matching unit (and its block) of each row")
    summary = "print the summary as JSON (to standard error if the answers are printed)"
    add("--json", action="store_true", help=summary)
    parser.epilog = """\
examples:
  ccmem predict new.parquet --checkpoint memory.safetensors --out labels.parquet
  tail -f log.ndjson | ccmem predict - --format ndjson --checkpoint memory.safetensors --units

Every input row gives one output row, in order. With --on-bad-row skip, only rows that cannot be read have an empty
answer (null in NDJSON, Parquet and Arrow). Columns and scaling are those of the checkpoint. If the input also has the
label column, the share of correct answers is printed.
"""


def inspect(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``ccmem inspect``."""
    add = parser.add_argument
    add("checkpoint", metavar="FILE", help="checkpoint written by ccmem learn or memory.save")
    add("--json", action="store_true", help="print everything as JSON")
    add("--events", metavar="N", type=int, default=10, help="number of events to show (default 10)")
    add(
        "--changes", metavar="FILE", help="score the events against the true changes (a file written by ccmem generate)"
    )
    add("--plot", metavar="FILE", help="draw blocks, units and events to a .png, .svg or .pdf")
    parser.epilog = """\
examples:
  ccmem inspect memory.safetensors
  ccmem inspect memory.safetensors --plot memory.png
  ccmem inspect memory.safetensors --json | jq .blocks
"""


def compare(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``ccmem compare``."""
    add = parser.add_argument
    add("a", metavar="A", help="checkpoint written by ccmem learn or memory.save")
    add("b", metavar="B", help="the checkpoint to compare with it")
    add(
        "--spreads",
        type=float,
        default=SPREADS,
        help=f"largest difference between equal blocks, in standard deviations (default {SPREADS:g})",
    )
    add("--exit-code", action="store_true", help="exit with 10 if B has a block that A lacks")
    add("--json", action="store_true", help="print everything as JSON")
    parser.epilog = """\
examples:
  ccmem compare monday.safetensors tuesday.safetensors
  ccmem compare reference.safetensors today.safetensors --json | jq .new
  ccmem compare reference.safetensors today.safetensors --exit-code || echo "a new state"

Two blocks are equal if no column of one lies more than --spreads standard deviations from the other. The numbers of
the blocks are ignored, so the checkpoints may come from separate runs. Exit codes: 0 done, 1 error, with --exit-code
10 if B has a block that A lacks.
"""


def watch(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``ccmem watch``."""
    add = parser.add_argument
    add("checkpoint", metavar="FILE", nargs="?", help="checkpoint written by ccmem learn or memory.save")
    demos = ("digits", "sensors")
    add("--demo", nargs="?", const="digits", choices=demos, help="a bundled stream (default digits)")
    add("--changes", metavar="FILE", help="true changes (a file written by ccmem generate), drawn as dotted lines")
    add("--image-shape", metavar="HxW", type=image_shape, help="rows are images of this height and width")
    _add_page(parser)
    parser.epilog = """\
examples:
  ccmem watch --demo
  ccmem watch memory.safetensors
  ccmem watch memory.safetensors --port 8000 --no-browser
  ccmem learn sensors.csv --checkpoint memory.safetensors --watch

The page is served on this machine only and can change only the names of blocks. A checkpoint is read again whenever a
running ccmem learn rewrites it; 'ccmem learn --watch' updates the page five times a second.
"""


# Options of several commands ------------------------------------------------------------------------------------------


def _add_source(parser: argparse.ArgumentParser) -> None:
    """Add the options that select sources and their format."""
    add = parser.add_argument
    sources = """file, folder, pattern, or - for standard input; the files of a folder or pattern are taken in natural
        order"""
    add("sources", nargs="+", metavar="SOURCE", help=sources)
    formats = ("csv", "ndjson", "parquet", "arrow", "npy", "npz")
    add("--format", choices=formats, help="file format (default: from the file name)")
    add("--features", metavar="A,B,...", type=names, help="numeric columns to use (default: all but the label)")
    missing = "text that marks a missing value, besides blank, NA, N/A, null, None, nan, - and ?; may be repeated"
    add("--missing", metavar="TEXT", action="append", default=[], help=missing)
    add("--decimal", choices=(".", ","), help="decimal sign of text files (default: inferred)")
    bad = "at a row with a missing or non-numeric value: stop (default), or skip and count such rows"
    add("--on-bad-row", choices=("stop", "skip"), default="stop", help=bad)


def _add_time(parser: argparse.ArgumentParser) -> None:
    """Add the options for the time of rows."""
    time = "column with the time of a row (default: detected), or DATE,CLOCK for two columns; not learned"
    parser.add_argument("--time", metavar="COLUMN", help=time)
    parser.add_argument("--day-first", action="store_true", help="read 4/2/2015 as 4 February")


def _add_page(parser: argparse.ArgumentParser) -> None:
    """Add the options for the address of the live page."""
    parser.add_argument("--port", type=_port, default=0, help="port of the page (default: any that is free)")
    parser.add_argument("--no-browser", action="store_true", help="print the address without opening a browser")


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


def reading(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options of :class:`~ccmem.io.streams.files.FileStream` that the command line gives."""
    day_first = True if getattr(args, "day_first", False) else None
    options = {"time": getattr(args, "time", None), "decimal": args.decimal, "day_first": day_first}
    return {**options, "markers": args.missing, **{k: getattr(args, k) for k in ("features", "format", "on_bad_row")}}
