"""Help pages of ``ccmem fleet`` and of the commands for the paper's experiments, as in :mod:`ccmem.app.options`."""

from __future__ import annotations

import argparse

from ccmem.app import options

_FLEET = """\
examples:
  ccmem fleet learn day1.parquet --key machine_id --order time --store fleet
  ccmem fleet learn day2.parquet --store fleet
  ccmem fleet inspect --store fleet
  ccmem fleet inspect pump-7 --store fleet --json
  ccmem fleet predict day3.parquet --store fleet --out answers.parquet
  ccmem fleet export pump-7 --store fleet --out pump-7.safetensors

'ccmem fleet learn --help' and so on show the options of each.
"""

_LEARN = """
  sources PATH...           Parquet or CSV file, folder or pattern
  --store DIR               folder of the fleet; created if necessary (required)
  --key COLUMN              column with the key (first run)
  --order COLUMN            column with the order of rows (first run)
  --features A,B,...        numeric columns to learn (default: all)
  --label COLUMN            label column; labels may be missing in any row
  --model MODEL             adaptive (default), ccm, wta, gmm or artc2a
  --param NAME=VALUE        set a parameter of the model; may be repeated
  --scale {none|unit|standard}  none (default); scaled separately for every key
  --dtype {float32|float64}  float32 (default) takes half the space
  --buckets N               number of files that store the memories (default: 64)
  --workers N               number of processes (default: one per core)
  --dask ADDRESS            run on this Dask cluster; 'local' starts one here
  --late {stop|drop}        at a row older than the rows already learned of its key: stop, or drop and count such rows
                            (default stop)
  --on-bad-row {stop|skip}  at a missing key, order or value: stop, or skip and count such rows (default stop)
  --decimal {.|,}           decimal sign of CSV files (default: inferred)
  --missing TEXT            text that marks a missing value; may be repeated
  --day-first               read 4/2/2015 as 4 February
  --round-rows N            rows on disk at a time (default 50000000)
  --json                    print the summary as JSON
  --quiet                   print neither progress nor summary

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

_ACTIONS = {
    "learn": ("learn the rows of every key", _LEARN),
    "inspect": (
        "show the content of a store or of one memory",
        """
  key [KEY]                 show the memory of this key
  --store DIR               folder of the fleet (required)
  --json                    print everything as JSON

examples:
  ccmem fleet inspect --store fleet
  ccmem fleet inspect pump-7 --store fleet --json
""",
    ),
    "predict": (
        "write the unit, block (and label) of new rows, each from the memory of its key",
        """
  sources PATH...           Parquet or CSV file, folder or pattern
  --store DIR               folder of the fleet (required)
  --out FILE                .csv, .ndjson, .parquet or .arrow (required)
  --on-bad-row {stop|skip}  at a missing key, order or value: stop, or leave such rows out (default stop)
  --json                    print the summary as JSON

examples:
  ccmem fleet predict day3.parquet --store fleet --out answers.parquet
""",
    ),
    "export": (
        "write the memory of one key as a checkpoint for the other commands",
        """
  key KEY                   key of the memory
  --store DIR               folder of the fleet (required)
  --out FILE                a safetensors file (required)

examples:
  ccmem fleet export pump-7 --store fleet --out pump-7.safetensors
""",
    ),
}
"""Action of ``ccmem fleet`` -> its line of help and its page."""


_DATA = """
  --data DIR                folder with data sets (default: the environment variable CCMEM_DATA)"""
_JOBS = """
  --jobs N                  number of trials or runs at a time (default: one per core)
  --dask ADDRESS            run on this Dask cluster; 'local' starts one of --jobs"""

DATASETS = f"""
  action [{{list|fetch|verify}}]  what to do (default list)
  names [DATASET...]        mnist, fashion-mnist, notmnist, digits (default: all){_DATA}
  --json                    print JSON

examples:
  ccmem datasets                       list the data sets and the copies on this machine
  ccmem datasets fetch mnist           download into the cache from the first source that answers
  ccmem datasets verify --data ~/data  verify the checksums of all copies on this machine
"""

REPRODUCE = f"""
  datasets [DATASET...]     mnist, fashion-mnist, notmnist, digits
  --trials N                trials per row (default 10)
  --models MODEL...         iwta igmm art ccm mlp ccm-mlp, layers, or rivals (default: all)
  --rows KIND...            paper, tuned, adaptive, readings, layers, family, family-500, rivals (default: the first
                            three)
  --protocols {{paper|strict}}...  protocols to run (default: both){_DATA}
  --out DIR                 folder of the results (default results)
  --seed N                  seed of the first trial (default 0){_JOBS}
  --fresh                   ignore results that are already there
  --offline                 do not download data
  --no-figures              tables only
  --json                    print the tables as JSON

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

TUNE = f"""
  dataset DATASET           mnist, fashion-mnist, notmnist or digits
  --models MODEL...         iwta igmm art ccm mlp ccm-mlp (default: these), family, or rivals
  --candidates N            settings to try per model (default 24)
  --seed N                  seed of split, search and streams (default 0){_DATA}
  --out FILE                JSON file to add to (default tuned.json){_JOBS}
  --json                    print the result as JSON

example:
  ccmem tune mnist --models ccm iwta --candidates 24 --out tuned.json

Results are written after every model. The search spaces are in settings.toml and rivals.toml of
ccmem/paper/experiments.
"""


def add_options(parser: argparse.ArgumentParser, command: str) -> None:
    """Add the options of a command."""
    if command != "fleet":
        name = command.upper()
        return options.add_page(parser, getattr(options, name, None) or globals()[name])
    parser.epilog = _FLEET
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, (summary, page) in _ACTIONS.items():
        options.add_page(actions.add_parser(name, help=summary, formatter_class=options.Help), page)
    return None
