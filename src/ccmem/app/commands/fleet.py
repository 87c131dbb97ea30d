"""``ccmem fleet``: one memory per key, learned from files with rows of many keys."""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ccmem.app.commands._shared import Help
from ccmem.core.terminal import StatusLine
from ccmem.core.times import format_time

if TYPE_CHECKING:
    from ccmem.fleet.store import Store

EXAMPLE = """\
examples:
  ccmem fleet learn day1.parquet --key machine_id --order time --store fleet
  ccmem fleet learn day2.parquet --store fleet
  ccmem fleet inspect --store fleet
  ccmem fleet inspect pump-7 --store fleet --json
  ccmem fleet predict day3.parquet --store fleet --out answers.parquet
  ccmem fleet export pump-7 --store fleet --out pump-7.safetensors

'ccmem fleet learn --help' and so on show the options of each.
"""
LEARN = """\
examples:
  ccmem fleet learn archive/*.parquet --key machine_id --order time --store fleet --scale standard
  ccmem fleet learn archive/*.parquet --store fleet              (resumes: learns new files only)
  ccmem fleet learn day.csv --key user --order seq --features a,b,c --store fleet --workers 8
  ccmem fleet learn archive/ --store fleet --dask tcp://scheduler:8786

Rows are Parquet or CSV with a column for the key (text or whole numbers) and one for the order (numbers or timestamps,
no two alike within a key). All rows of one run may come in any order; rows of later runs must come after them, key by
key: --late says what happens to those that do not. The first run fixes model, columns and scaling for all keys.

The command may be killed at any moment and started again: it resumes, and memories and events come out the same, to the
last byte. Memories are in STORE/memories, events in STORE/events (one Parquet table).

Exit codes: 0 done, 1 error (nothing is lost: fix the cause and run again), 2 wrong command line, 130 after Ctrl-C.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.epilog = EXAMPLE
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    def add(action: str, summary: str, epilog: str = "") -> argparse.ArgumentParser:
        lines = [line for line in EXAMPLE.splitlines() if line.startswith(f"  ccmem fleet {action} ")]
        epilog = epilog or "\n".join(["examples:", *lines])
        return actions.add_parser(action, help=summary, epilog=epilog, formatter_class=Help)

    learn = add("learn", "learn the rows of every key", LEARN)
    learn.add_argument("sources", nargs="+", metavar="PATH", help="Parquet or CSV file, folder or pattern")
    learn.add_argument("--store", metavar="DIR", required=True, help="folder of the fleet; made if need be")
    learn.add_argument("--key", metavar="COLUMN", help="whose row it is (first run)")
    learn.add_argument("--order", metavar="COLUMN", help="when the row was (first run)")
    learn.add_argument("--features", metavar="A,B,...", type=lambda text: text.split(","), help="default: all numeric")
    learn.add_argument("--label", metavar="COLUMN", help="label column; labels may be missing in any row")
    learn.add_argument("--model", help="adaptive (default), ccm, wta, gmm or artc2a")
    learn.add_argument("--param", metavar="NAME=VALUE", action="append", default=[], help="a parameter of the model")
    learn.add_argument("--scale", choices=("none", "unit", "standard"), help="none (default), for every key by itself")
    learn.add_argument("--dtype", choices=("float32", "float64"), help="float32 (default) halves memories and rows")
    learn.add_argument("--buckets", metavar="N", type=int, help="files the memories are spread over (default 64)")
    learn.add_argument("--workers", metavar="N", type=int, help="processes (default: one a core)")
    learn.add_argument("--dask", metavar="ADDRESS", help="run on this Dask cluster; 'local' starts one here")
    learn.add_argument(
        "--late",
        choices=("stop", "drop"),
        default="stop",
        help="rows that do not come after all those learned of their key: stop (default), or drop and count",
    )
    learn.add_argument("--on-bad-row", choices=("stop", "skip"), default="stop", help="missing key, order or value")
    learn.add_argument("--decimal", choices=(".", ","), help="decimal sign of CSV files (default: inferred)")
    learn.add_argument("--missing", metavar="TEXT", action="append", default=[], help="another mark of a missing value")
    learn.add_argument("--day-first", action="store_true", help="read 4/2/2015 as 4 February")
    learn.add_argument("--round-rows", metavar="N", type=int, default=50_000_000, help="rows on disk at a time")
    learn.add_argument("--json", action="store_true", help="print the summary as JSON")
    learn.add_argument("--quiet", action="store_true", help="print no progress and no summary")

    inspect = add("inspect", "show what a store, or one of its memories, holds")
    inspect.add_argument("key", nargs="?", metavar="KEY", help="the memory of one key")
    inspect.add_argument("--store", metavar="DIR", required=True)
    inspect.add_argument("--json", action="store_true", help="print everything as JSON")

    predict = add("predict", "unit, block (and label) of new rows, each by the memory of its key")
    predict.add_argument("sources", nargs="+", metavar="PATH", help="Parquet or CSV file, folder or pattern")
    predict.add_argument("--store", metavar="DIR", required=True)
    predict.add_argument("--out", metavar="FILE", required=True, help=".parquet or .csv")
    predict.add_argument("--on-bad-row", choices=("stop", "skip"), default="stop", help="skip leaves such rows out")
    predict.add_argument("--json", action="store_true", help="print the summary as JSON")

    export = add("export", "the memory of one key as a checkpoint for the other commands")
    export.add_argument("key", metavar="KEY")
    export.add_argument("--store", metavar="DIR", required=True)
    export.add_argument("--out", metavar="FILE", required=True, help="a safetensors file")


def run(args: argparse.Namespace) -> int:
    """Run the requested action: learn, inspect, predict or export."""
    return {"learn": _learn, "inspect": _inspect, "predict": _predict, "export": _export}[args.action](args)


def _learn(args: argparse.Namespace) -> int:
    from ccmem.fleet import local

    store = _store(args)
    began = time.monotonic()
    progress = _Progress(StatusLine(not args.quiet))
    if args.dask:
        from ccmem.fleet.dask import on_dask

        runner = on_dask(args.dask, args.workers)
    else:
        from ccmem.fleet.processes import on_processes

        runner = on_processes(args.workers or os.cpu_count() or 1)
    with runner as run_tasks:
        report = local.learn(
            store,
            args.sources,
            run_tasks,
            late=args.late,
            skip_bad=args.on_bad_row == "skip",
            round_rows=args.round_rows,
            told=progress.show,
        )
    progress.clear()
    seconds = time.monotonic() - began
    facts = {
        **report._asdict(),
        "seconds": round(seconds, 3),
        "rows_per_second": round(report.rows / seconds),
        "store": args.store,
    }
    if args.json:
        print(json.dumps(facts))
    elif not args.quiet:
        if report.rounds == 0:
            print(f"nothing new ({store.manifest['totals']['rows']:,} rows learned before)")
        else:
            late = f"; {report.late:,} rows dropped that came late or twice" if report.late else ""
            bad = f"; {report.bad:,} bad rows skipped" if report.bad else ""
            rate = f"{facts['rows_per_second']:,} rows/s"
            files = f"{report.files} file{'s' if report.files != 1 else ''}"
            print(f"learned {report.rows:,} rows from {files} in {seconds:.1f} s ({rate}){late}{bad}")
        print(f"{report.keys:,} keys, {report.events:,} events in this run; saved to {args.store}")
    return 0


def _store(args: argparse.Namespace) -> Store:
    """Open the store, or create it if it is missing; raise if an existing store has other settings."""
    from ccmem import registry
    from ccmem.app.commands._shared import DEFAULT_MODEL, build_model, class_name, reading_rules
    from ccmem.fleet import tables
    from ccmem.fleet.step import Recipe
    from ccmem.fleet.store import BUCKETS, Store
    from ccmem.io.persistence import CheckpointError

    if args.workers is not None and args.workers < 1:
        raise ValueError(f"--workers {args.workers}: at least 1")
    if not (Path(args.store) / "manifest.json").exists():
        if not (args.key and args.order):
            raise ValueError("the first run into a store needs --key and --order, the columns that say whose and when")
        buckets = BUCKETS if args.buckets is None else args.buckets
        if not 1 <= buckets <= 999:
            raise ValueError(f"--buckets {buckets}: from 1 to 999")
        dtype, rules = args.dtype or "float32", reading_rules(args)
        columns = tables.choose(args.sources, args.key, args.order, args.features, args.label, dtype, rules)
        name = args.model or DEFAULT_MODEL
        if class_name(name) in registry.PREDICTORS:
            raise ValueError(f"--model {name}: a fleet is made of memories")
        model = build_model(name, args.param, args.label is not None)
        return Store.create(args.store, Recipe(model, args.scale or "none"), columns, buckets)
    store = Store(args.store)
    inner: Any = getattr(store.recipe.model, "memory", store.recipe.model)
    given = {
        "key": (args.key, store.columns.key),
        "order": (args.order, store.columns.order),
        "label": (args.label, store.columns.label),
        "features": (args.features and ",".join(args.features), ",".join(store.columns.features)),
        "scale": (args.scale, store.recipe.scale),
        "dtype": (args.dtype, store.columns.dtype),
        "buckets": (args.buckets, store.buckets),
        "model": (args.model and class_name(args.model), type(inner).__name__),
    }
    wrong = [f"--{name} {new} (it has {old})" for name, (new, old) in given.items() if new is not None and new != old]
    if args.param:
        fresh = build_model(args.model or type(inner).__name__, args.param, False)
        wrong += [
            f"--param {setting} (it has {inner.get_params()[setting.partition('=')[0]]!r})"
            for setting in args.param
            if fresh.get_params()[setting.partition("=")[0]] != inner.get_params()[setting.partition("=")[0]]
        ]
    if wrong:
        raise CheckpointError(f"{args.store} was started differently: {'; '.join(wrong)}; leave that out to resume")
    return store


class _Progress:
    """Progress line with keys, rows and rows per second."""

    def __init__(self, line: StatusLine) -> None:
        self._line = line
        self._began = time.monotonic()
        self._pass = ""
        self._done = self._rows = self._keys = 0

    def show(self, facts: dict[str, Any]) -> None:
        if facts["pass"] != self._pass:
            self._pass, self._done, self._rows, self._keys = facts["pass"], 0, 0, 0
            self._began = time.monotonic()
        self._done += 1
        self._rows += facts["rows"]
        self._keys += facts.get("keys", 0)
        rate = self._rows / max(time.monotonic() - self._began, 1e-9)
        if self._pass == "spread":
            text = f"reading: {self._done} of {facts['of']} pieces"
        else:
            text = f"learning: {self._done} of {facts['of']} buckets, {self._keys:,} keys"
        self._line.show(f"{text}, {self._rows:,} rows, {rate:,.0f} rows/s")

    def clear(self) -> None:
        self._line.clear()


def _inspect(args: argparse.Namespace) -> int:
    from ccmem.fleet.store import Store

    store = Store(args.store)
    facts = _key_facts(store, args.key) if args.key is not None else _store_facts(store)
    if args.json:
        print(json.dumps(facts))
        return 0
    for name, value in facts.items():
        if name == "events" and isinstance(value, list):
            print(f"{'events':<16}{len(value)} latest")
            for event in value:
                what = f"{event['from_block']} -> {event['to_block']}" if "column" not in event else event["column"]
                at = f"{event['when']} (row {event['step']:,})" if "when" in event else f"row {event['step']:,}"
                print(f"{'':<16}{event['kind']} {what} at {at}")
        else:
            shown = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value
            print(f"{name:<16}{', '.join(map(str, value)) if isinstance(value, list) else shown}")
    return 0


def _store_facts(store: Store) -> dict[str, Any]:
    model = store.recipe.model
    keys = store.n_keys()
    size = sum(store.bucket_file(b).stat().st_size for b in range(store.buckets) if store.bucket_file(b).exists())
    totals = store.manifest["totals"]
    return {
        "store": str(store.folder),
        "model": repr(getattr(model, "memory", model)),
        "scale": store.recipe.scale,
        "key": store.columns.key,
        "order": store.columns.order,
        "features": list(store.columns.features),
        "label": store.columns.label,
        "dtype": store.columns.dtype,
        "keys": keys,
        "rows": totals["rows"],
        "late_rows": totals["late"],
        "bad_rows": totals["bad"],
        "events": totals["events"],
        "files": len(store.manifest["files"]),
        "buckets": store.buckets,
        "bytes": size,
        "bytes_per_key": round(size / keys) if keys else 0,
        "under_way": store.manifest["current"] is not None,
    }


def _key_facts(store: Store, key: str) -> dict[str, Any]:
    state = store.state(store.as_key(key))
    member = store.member(key)
    memory: Any = member.memory
    times = _event_times(store, member.key)
    events = [dict(event.record()) for event in getattr(memory, "events_", [])]
    for event in events:
        if (when := times.get((event["kind"], event["step"]))) is not None:
            event |= {"time": when, "when": format_time(when)}
    dated = times or _has_times(store)
    last = {"last_time": format_time(member.last / 1e9)} if dated and member.last is not None else {}
    return {
        "key": member.key,
        "rows": member.rows,
        "last_order": member.last,
        **last,
        "bytes": 0 if state is None else len(state),
        "units": memory.n_units_,
        "blocks": getattr(memory, "n_blocks_", None),
        "block_in_use": getattr(memory, "task_pointer_", None),
        "alarm": getattr(memory, "alarm_", None),
        "labels": [str(label) for label in getattr(member.model, "classes_", [])],
        "events": events,
    }


def _has_times(store: Store) -> bool:
    """True if the rows of the fleet are ordered by time."""
    return store.columns.order_type.startswith("timestamp")


def _event_times(store: Store, key: Any) -> dict[tuple[str, int], float]:
    """Return the event times of a key from the events table, in seconds since 1970."""
    if not _has_times(store):
        return {}
    from ccmem.io.streams.arrow import pyarrow

    pa = pyarrow()
    from pyarrow import parquet

    found: dict[tuple[str, int], float] = {}
    for file in sorted(store.events_file(0).parent.glob("*.parquet")):
        table = parquet.read_table(file, columns=["order", "kind", "step"], filters=[("key", "=", key)])
        orders = table.column("order").cast(pa.timestamp("ns")).cast(pa.int64()).to_pylist()
        rows = zip(table.column("kind").to_pylist(), table.column("step").to_pylist(), orders, strict=True)
        found |= {(kind, step): order / 1e9 for kind, step, order in rows}
    return found


def _predict(args: argparse.Namespace) -> int:
    from ccmem.fleet.answers import predict
    from ccmem.fleet.store import Store

    facts = {**predict(Store(args.store), args.sources, args.out, args.on_bad_row == "skip"), "out": args.out}
    if args.json:
        print(json.dumps(facts))
    else:
        unknown = f"; {facts['unknown']:,} of keys without a memory, left empty" if facts["unknown"] else ""
        bad = f"; {facts['bad_rows']:,} bad rows left out" if facts["bad_rows"] else ""
        print(f"predicted {facts['rows']:,} rows to {args.out}{unknown}{bad}")
    return 0


def _export(args: argparse.Namespace) -> int:
    import numpy as np

    from ccmem.app.learner import Learner
    from ccmem.fleet.store import Store
    from ccmem.io.streams.tables import Columns

    store = Store(args.store)
    member = store.member(args.key)
    learner = Learner(member.model, store.recipe.scale)
    learner.scale, learner.rows = member.scale, member.rows
    text = None if store.columns.label is None else True
    learner.columns = Columns(store.columns.features, store.columns.label, np.dtype(store.columns.dtype), text)
    learner.save(args.out)
    print(f"the memory of {member.key} ({member.rows:,} rows) is in {args.out}")
    return 0
