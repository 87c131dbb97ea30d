"""Options and examples of ``ccmem fleet`` and of the commands for the paper's experiments."""

from __future__ import annotations

import argparse

from ccmem.app.options import Help, names

ROWS, PROTOCOLS = ("paper", "tuned", "adaptive"), ("paper", "strict")
"""Kinds of rows, and protocols, that ``ccmem reproduce`` runs by default."""
_STOP_OR_SKIP = ("stop", "skip")


def fleet(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``ccmem fleet``."""
    parser.epilog = """\
examples:
  ccmem fleet learn day1.parquet --key machine_id --order time --store fleet
  ccmem fleet learn day2.parquet --store fleet
  ccmem fleet inspect --store fleet
  ccmem fleet inspect pump-7 --store fleet --json
  ccmem fleet predict day3.parquet --store fleet --out answers.parquet
  ccmem fleet export pump-7 --store fleet --out pump-7.safetensors

'ccmem fleet learn --help' and so on show the options of each.
"""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    examples = parser.epilog.splitlines()

    def add_action(name: str, summary: str) -> argparse.ArgumentParser:
        epilog = "\n".join(["examples:", *(line for line in examples if line.startswith(f"  ccmem fleet {name} "))])
        return actions.add_parser(name, help=summary, epilog=epilog, formatter_class=Help)

    _fleet_learn(add_action("learn", "learn the rows of every key"))

    add = add_action("inspect", "show the content of a store or of one memory").add_argument
    add("key", nargs="?", metavar="KEY", help="show the memory of this key")
    add("--store", metavar="DIR", required=True)
    add("--json", action="store_true", help="print everything as JSON")

    add = add_action(
        "predict", "write the unit, block (and label) of new rows, each from the memory of its key"
    ).add_argument
    add("sources", nargs="+", metavar="PATH", help="Parquet or CSV file, folder or pattern")
    add("--store", metavar="DIR", required=True)
    add("--out", metavar="FILE", required=True, help=".parquet or .csv")
    add("--on-bad-row", choices=_STOP_OR_SKIP, default="stop", help="skip leaves such rows out")
    add("--json", action="store_true", help="print the summary as JSON")

    add = add_action("export", "write the memory of one key as a checkpoint for the other commands").add_argument
    add("key", metavar="KEY")
    add("--store", metavar="DIR", required=True)
    add("--out", metavar="FILE", required=True, help="a safetensors file")


def _fleet_learn(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("sources", nargs="+", metavar="PATH", help="Parquet or CSV file, folder or pattern")
    add("--store", metavar="DIR", required=True, help="folder of the fleet; created if necessary")
    add("--key", metavar="COLUMN", help="column with the key (first run)")
    add("--order", metavar="COLUMN", help="column with the order of rows (first run)")
    add("--features", metavar="A,B,...", type=names, help="numeric columns to learn (default: all)")
    add("--label", metavar="COLUMN", help="label column; labels may be missing in any row")
    add("--model", help="adaptive (default), ccm, wta, gmm or artc2a")
    add(
        "--param",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="set a parameter of the model; may be repeated",
    )
    add("--scale", choices=("none", "unit", "standard"), help="none (default); scaled separately for every key")
    add("--dtype", choices=("float32", "float64"), help="float32 (default) takes half the space")
    add("--buckets", metavar="N", type=int, help="number of files that store the memories (default 64)")
    add("--workers", metavar="N", type=int, help="number of processes (default: one per core)")
    add("--dask", metavar="ADDRESS", help="run on this Dask cluster; 'local' starts one here")
    late = "at a row older than the rows already learned of its key: stop (default), or drop and count such rows"
    add("--late", choices=("stop", "drop"), default="stop", help=late)
    add(
        "--on-bad-row",
        choices=_STOP_OR_SKIP,
        default="stop",
        help="at a missing key, order or value: stop (default), or skip and count such rows",
    )
    add("--decimal", choices=(".", ","), help="decimal sign of CSV files (default: inferred)")
    add(
        "--missing",
        metavar="TEXT",
        action="append",
        default=[],
        help="text that marks a missing value; may be repeated",
    )
    add("--day-first", action="store_true", help="read 4/2/2015 as 4 February")
    add("--round-rows", metavar="N", type=int, default=50_000_000, help="rows on disk at a time")
    add("--json", action="store_true", help="print the summary as JSON")
    add("--quiet", action="store_true", help="print neither progress nor summary")
    parser.epilog = """\
examples:
  ccmem fleet learn archive/*.parquet --key machine_id --order time --store fleet --scale standard
  ccmem fleet learn archive/*.parquet --store fleet              (resumes: learns new files only)
  ccmem fleet learn day.csv --key user --order seq --features a,b,c --store fleet --workers 8
  ccmem fleet learn archive/ --store fleet --dask tcp://scheduler:8786

The files are Parquet or CSV, with a column for the key (text or whole numbers) and one for the order (numbers or
timestamps, unique within a key). Within a run, rows may come in any order. Rows of later runs must follow the rows
already learned of their key; --late decides about those that do not. The first run fixes model, columns and scaling
for all keys.

You may kill the command at any moment and start it again. It resumes, and the resulting memories and events are
identical to the last byte. Memories are in STORE/memories, events in STORE/events (one Parquet table).

Exit codes: 0 done, 1 error (nothing is lost: fix the cause and run again), 2 wrong command line, 130 after Ctrl-C.
"""


def datasets(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``ccmem datasets``."""
    add = parser.add_argument
    add("action", nargs="?", choices=["list", "fetch", "verify"], default="list")
    add("names", nargs="*", metavar="DATASET", help="mnist, fashion-mnist, notmnist, digits (default: all)")
    _add_data(parser)
    add("--json", action="store_true", help="print JSON")
    parser.epilog = """\
examples:
  ccmem datasets                       list the data sets and the copies on this machine
  ccmem datasets fetch mnist           download into the cache from the first source that answers
  ccmem datasets verify --data ~/data  verify the checksums of all copies on this machine
"""


def reproduce(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``ccmem reproduce``."""
    add = parser.add_argument
    add("datasets", nargs="*", metavar="DATASET", help="mnist, fashion-mnist, notmnist, digits")
    add("--trials", type=int, default=10, metavar="N", help="trials per row (default: 10)")
    models = "iwta igmm art ccm mlp ccm-mlp, layers, or rivals (default: all)"
    add("--models", nargs="+", metavar="MODEL", help=models)
    kinds = "paper, tuned, adaptive, readings, layers, family, family-500, rivals (default: the first three)"
    add("--rows", nargs="+", metavar="KIND", default=list(ROWS), help=kinds)
    protocols = "protocols to run (default: both)"
    add("--protocols", nargs="+", choices=PROTOCOLS, default=list(PROTOCOLS), help=protocols)
    _add_data(parser)
    add("--out", metavar="DIR", default="results", help="folder of the results (default: results)")
    add("--seed", type=int, default=0, metavar="S", help="seed of the first trial (default: 0)")
    _add_jobs(parser, "trials")
    add("--fresh", action="store_true", help="ignore results that are already there")
    add("--offline", action="store_true", help="do not download data")
    add("--no-figures", action="store_true", help="tables only")
    add("--json", action="store_true", help="print the tables as JSON")
    parser.epilog = """\
examples:
  ccmem reproduce                             MNIST if a copy is available, otherwise digits
  ccmem reproduce mnist notmnist --data ~/data
  ccmem reproduce digits --trials 3 --models ccm iwta --json
  ccmem reproduce mnist --rows layers --protocols strict      competitive features under a readout
  ccmem reproduce mnist --rows family family-500    the family, 125 and 500 units
  ccmem reproduce mnist --rows rivals --trials 5    other learners at equal memory

The folder --out receives a JSON file per data set, figures, tables.md and report.html. Run the command again to
resume a run that was stopped.
"""


def tune(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``ccmem tune``."""
    add = parser.add_argument
    add("dataset", metavar="DATASET", help="mnist, fashion-mnist, notmnist or digits")
    models = "iwta igmm art ccm mlp ccm-mlp (default: these), family, or rivals"
    add("--models", nargs="+", metavar="MODEL", help=models)
    add("--candidates", type=int, default=24, metavar="N", help="settings to try per model (default: 24)")
    add("--seed", type=int, default=0, metavar="S", help="seed of split, search and streams (default: 0)")
    _add_data(parser)
    add("--out", metavar="FILE", default="tuned.json", help="JSON file to add to (default: tuned.json)")
    _add_jobs(parser, "runs")
    add("--json", action="store_true", help="print the result as JSON")
    parser.epilog = """\
example:
  ccmem tune mnist --models ccm iwta --candidates 24 --out tuned.json

Results are written after every model. The search spaces are in settings.toml and rivals.toml of
ccmem/paper/experiments.
"""


def _add_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data", metavar="DIR", help="folder with data sets (default: the environment variable CCMEM_DATA)"
    )


def _add_jobs(parser: argparse.ArgumentParser, what: str) -> None:
    add = parser.add_argument
    add("--jobs", type=int, metavar="N", help=f"{what} at a time (default: one per core)")
    add("--dask", metavar="ADDRESS", help="run on this Dask cluster; 'local' starts one of --jobs")
