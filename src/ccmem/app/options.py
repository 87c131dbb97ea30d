"""Options and examples of the commands that users run on their data; :mod:`ccmem.app.options_more` has the others.

A command's options are apart from its code, so that ``--help`` and completion import nothing heavy.
"""

from __future__ import annotations

import argparse
import textwrap
from typing import TYPE_CHECKING

from ccmem import registry

if TYPE_CHECKING:
    from ccmem.io.streams.schema import Rules

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
    add("--rows", type=int, default=100_000, help="how many (default 100000)")
    add("--features", type=int, default=8, help="how many sensors (default 8)")
    add("--regimes", type=int, default=4, help="how many states (default 4, at most 6)")
    add("--segment", type=int, default=4000, help="rows spent in a state, on average (default 4000)")
    add("--missing-labels", type=float, default=0.1, metavar="SHARE", help="share of rows without label (default 0.1)")
    add("--seed", type=int, default=0, help="which machine (default 0)")
    add("--recording", type=int, default=0, help="which of its recordings (default 0)")
    add("--changes", metavar="FILE", help="write the true change points as JSON")
    add("--json", action="store_true", help="print the summary as JSON")
    parser.epilog = """\
examples:
  ccmem generate drift sensors.csv
  ccmem generate drift sensors.parquet --features 6 --missing-labels 0.2 --changes changes.json

drift is a machine with sensors. It works in one of several states at a time, stays there for a while, and comes back to
states it was in before. Every state has its own pattern over the sensors; on top of it come a daily cycle, a slow drift
and noise. --changes writes down at which rows the state changed, to score events against (ccmem.metrics).
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

The first 300 rows decide what a column is, ranges and missing values are those of the first 20,000 rows. Columns of
numbers are learned from; times, texts, row counters, running identifiers and empty columns are left out unless
--features names them. Exit codes: 0 there is something to learn from, 2 there is not.
"""


def learn(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``ccmem learn``."""
    add = parser.add_argument
    _add_source(parser)
    add("--checkpoint", metavar="FILE", help="where the memory is kept (a safetensors file)")
    words = ", ".join(word for word in registry.COMMAND_WORDS if word != DEFAULT_MODEL)
    add("--model", help=f"{DEFAULT_MODEL} (default), {words}, or module:Class; fixed by the first run")
    add("--param", metavar="NAME=VALUE", action="append", default=[], help="a parameter of the model")
    add("--label", metavar="COLUMN", help="label column; labels may be missing in any row")
    _add_time(parser)
    scale = """none (default); unit: every row to length 1; standard: every column by its mean and deviation so far.
        Kept in the checkpoint and applied at prediction"""
    add("--scale", choices=("none", "unit", "standard"), help=scale)
    window = """the rows are a signal: learn windows of N rows (auto: two of its periods) by their level, spread,
        spectrum and correlations. Without labels; the answers are the events"""
    add("--window", metavar="N", type=window_length, help=window)
    add("--shapes", action="store_true", help="with --window: describe windows by shapes learned from the first rows")
    often = "rows between checkpoints (default 1000000)"
    add("--every", metavar="ROWS", type=positive, default=1_000_000, help=often)
    often = "longest time between checkpoints (default 60)"
    add("--every-seconds", metavar="S", type=seconds, default=60.0, help=often)
    add("--events", metavar="FILE", help="append new blocks and recalls to FILE as lines of JSON")
    alert = """run CMD for each new block and recall, without a shell: the event in words as last argument, as JSON on
        standard input. After a crash, events since the last checkpoint are repeated"""
    add("--alert", metavar="CMD", help=alert)
    add("--exit-code", action="store_true", help="exit with 10 if a new block began, 11 if only known blocks returned")
    add("--max-rows", metavar="N", type=positive, help="stop after N rows")
    add("--max-seconds", metavar="S", type=seconds, help="stop after S seconds")
    add("--again", action="store_true", help="learn the files from their first row, learned or not")
    add("--skip-seen", action="store_true", help="skip as many rows of standard input as were read from it before")
    add("--watch", action="store_true", help="open a live page; it stays after the last row, until Ctrl-C")
    _add_page(parser)
    add("--accept-last-line", action="store_true", help="learn a file's last line even if its line end is missing")
    add("--json", action="store_true", help="print the summary as JSON")
    add("--quiet", action="store_true", help="print no progress and no summary")
    parser.epilog = """\
examples:
  ccmem generate drift sensors.csv
  ccmem learn sensors.csv --label state --checkpoint memory.safetensors --events events.jsonl
  tail -f log.ndjson | ccmem learn - --format ndjson --features a,b --checkpoint memory.safetensors
  ccmem learn more/*.csv --checkpoint memory.safetensors
  ccmem learn vibration.csv --window auto --events events.jsonl
  ccmem learn sensors.csv --watch

If the checkpoint exists, learning resumes from it, with its model, columns and scaling. It remembers how many rows of
every file it has learned: a file that has grown resumes at its next row, files learned in full are skipped, and each
row is learned once, however often the command is stopped, killed or repeated. --again forgets that for the files named;
leave it out when you resume such a run.

Standard input cannot be rewound; a pipe that starts over from its first row needs --skip-seen.

A last line without its line end is left for later, because the rest of it may be on its way; --accept-last-line takes
it, and so does the end of a pipe.

Exit codes: 0 done, 1 error (also lines behind an open quote), 2 wrong command line or
nothing to learn from, with --exit-code 10 for new blocks and 11 for recalls alone,
129 after SIGHUP, 130 after Ctrl-C, 143 after SIGTERM. A run that
ends early, by a limit, a signal or a bad row, saves what it has learned.
"""


def predict(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``ccmem predict``."""
    add = parser.add_argument
    _add_source(parser)
    add("--checkpoint", metavar="FILE", required=True, help="what ccmem learn saved")
    add("--out", metavar="FILE", default="-", help=".csv, .ndjson, .parquet or .arrow; - (default) prints CSV")
    add("--model", metavar="MODULE:CLASS", help="the class, if the checkpoint holds a model of your own")
    add("--units", action="store_true", help="also the unit (and block) that answers for each row")
    summary = "print the summary as JSON (to standard error if the answers are printed)"
    add("--json", action="store_true", help=summary)
    parser.epilog = """\
examples:
  ccmem predict new.parquet --checkpoint memory.safetensors --out labels.parquet
  tail -f log.ndjson | ccmem predict - --format ndjson --checkpoint memory.safetensors --units

Every input row gives one output row, in order; with --on-bad-row skip, a row that cannot be answered has an empty
answer (null in NDJSON, Parquet and Arrow), which no other row has. Columns and scaling are those of the checkpoint. If
the input has the label column too, the share of right answers is printed.
"""


def inspect(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``ccmem inspect``."""
    add = parser.add_argument
    add("checkpoint", metavar="FILE", help="what ccmem learn or memory.save wrote")
    add("--json", action="store_true", help="print everything as JSON")
    add("--events", metavar="N", type=int, default=10, help="how many events to show (default 10)")
    add("--changes", metavar="FILE", help="score the events against true changes (of ccmem generate)")
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
    add("a", metavar="A", help="what ccmem learn or memory.save wrote")
    add("b", metavar="B", help="the checkpoint to compare with it")
    add("--spreads", type=float, default=SPREADS, help=f"how far blocks may differ (default {SPREADS:g})")
    add("--exit-code", action="store_true", help="exit with 10 if B has a block that A has not")
    add("--json", action="store_true", help="print everything as JSON")
    parser.epilog = """\
examples:
  ccmem compare monday.safetensors tuesday.safetensors
  ccmem compare reference.safetensors today.safetensors --json | jq .new
  ccmem compare reference.safetensors today.safetensors --exit-code || echo "a new state"

Two blocks are the same if no column of one lies more than --spreads standard deviations from the other. Numbers of
blocks play no part, so the checkpoints may have learned apart from each other. Exit codes: 0 done, 1 error, with
--exit-code 10 if B has a block that A has not.
"""


def watch(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``ccmem watch``."""
    add = parser.add_argument
    add("checkpoint", metavar="FILE", nargs="?", help="what ccmem learn or memory.save wrote")
    demos = ("digits", "sensors")
    add("--demo", nargs="?", const="digits", choices=demos, help="a bundled stream (default digits)")
    add("--changes", metavar="FILE", help="true changes (of ccmem generate), drawn as dotted lines")
    add("--image-shape", metavar="HxW", type=image_shape, help="rows are images of this height and width")
    _add_page(parser)
    parser.epilog = """\
examples:
  ccmem watch --demo
  ccmem watch memory.safetensors
  ccmem watch memory.safetensors --port 8000 --no-browser
  ccmem learn sensors.csv --checkpoint memory.safetensors --watch

The page is served on this machine only and can change nothing but the names of blocks. A checkpoint that a run in
progress writes is read again whenever it changes; 'ccmem learn --watch' shows every fifth of a second instead.
"""


# Options of several commands ------------------------------------------------------------------------------------------


def _add_source(parser: argparse.ArgumentParser) -> None:
    """Add the options that select sources and their format."""
    add = parser.add_argument
    sources = """file, folder, pattern, or - for standard input; the files of a folder or pattern are taken in natural
        order"""
    add("sources", nargs="+", metavar="SOURCE", help=sources)
    formats = ("csv", "ndjson", "parquet", "arrow", "npy", "npz")
    add("--format", choices=formats, help="if the name does not tell")
    add("--features", metavar="A,B,...", type=names, help="numeric columns to use (default: all but the label)")
    missing = "a text that marks a missing value, beside blank, NA, N/A, null, None, nan, - and ?"
    add("--missing", metavar="TEXT", action="append", default=[], help=missing)
    add("--decimal", choices=(".", ","), help="decimal sign of text files (default: inferred)")
    bad = "stop (default) at the first row with a missing or non-numeric value, or skip and count"
    add("--on-bad-row", choices=("stop", "skip"), default="stop", help=bad)


def _add_time(parser: argparse.ArgumentParser) -> None:
    """Add the options for the time of rows."""
    time = "the time of a row (default: recognised), or DATE,CLOCK if in two columns; not learned from"
    parser.add_argument("--time", metavar="COLUMN", help=time)
    parser.add_argument("--day-first", action="store_true", help="in dates such as 4/2/2015, the day comes first")


def _add_page(parser: argparse.ArgumentParser) -> None:
    """Add the options for the address of the live page."""
    parser.add_argument("--port", type=_port, default=0, help="port of the page (default: any that is free)")
    parser.add_argument("--no-browser", action="store_true", help="print the address and open no browser")


# Values of options ----------------------------------------------------------------------------------------------------


def names(text: str) -> list[str]:
    """Parse column names between commas."""
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


def reading_rules(args: argparse.Namespace) -> Rules:
    """Return the column rules given on the command line."""
    from ccmem.io.streams.schema import Rules  # not at the top: --help must not wait for it

    time = getattr(args, "time", None)
    day_first = True if getattr(args, "day_first", False) else None
    return Rules(args.decimal, tuple(args.missing), tuple(time.split(",")) if time else (), day_first)
