"""``ccmem fleet``: one memory per key, learned from files with rows of many keys."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from ccmem import registry
from ccmem.app.commands._models import build_model, class_name, refuse_changes
from ccmem.app.events import event_record
from ccmem.app.learner import Learner
from ccmem.app.options import DEFAULT_MODEL
from ccmem.core.terminal import StatusLine, counted, printable
from ccmem.core.times import format_time
from ccmem.fleet import local, tables
from ccmem.fleet.answers import predict
from ccmem.fleet.step import Recipe
from ccmem.fleet.store import BUCKETS, Store
from ccmem.io.streams.arrow import pyarrow
from ccmem.io.streams.schema import Columns, Rules


def run(args: argparse.Namespace) -> int:
    """Run the requested action: learn, inspect, predict or export."""
    return {"learn": _learn, "inspect": _inspect, "predict": _predict, "export": _export}[args.action](args)


def _learn(args: argparse.Namespace) -> int:
    store = _store(args)
    began = time.monotonic()
    line = StatusLine(not args.quiet)
    progress = _Progress(line)
    if args.dask:
        from ccmem.fleet.dask import on_dask

        runner = on_dask(args.dask, args.workers)
    else:
        runner = local.on_processes(args.workers or os.cpu_count() or 1)
    with runner as run_tasks:
        limits: Any = {"late": args.late, "skip_bad": args.on_bad_row == "skip", "round_rows": args.round_rows}
        report = local.learn(store, args.sources, run_tasks, report=progress.show, **limits)
    line.clear()
    seconds = time.monotonic() - began
    speed = {"seconds": round(seconds, 3), "rows_per_second": round(report["rows"] / seconds)}
    facts = report | speed | {"store": args.store}
    if args.json:
        print(json.dumps(facts))
    elif not args.quiet:
        if not report["rounds"]:
            print(f"nothing new ({store.manifest['totals']['rows']:,} rows learned before)")
        else:
            late = f"; {report['late']:,} rows dropped that came late or twice" if report["late"] else ""
            bad = f"; {report['bad']:,} bad rows skipped" if report["bad"] else ""
            text = f"learned {report['rows']:,} rows from {counted(report['files'], 'file')} in {seconds:.1f} s"
            print(f"{text} ({facts['rows_per_second']:,} rows/s){late}{bad}")
        print(f"{report['keys']:,} keys, {report['events']:,} events in this run; saved to {args.store}")
    return 0


def _store(args: argparse.Namespace) -> Store:
    """Open the store, or create it if it is missing; raise if an existing store has other settings."""
    if args.workers is not None and args.workers < 1:
        raise ValueError(f"--workers {args.workers}: at least 1")
    if not (Path(args.store) / "manifest.json").exists():
        if not (args.key and args.order):
            raise ValueError(
                "the first run of a store needs --key and --order: the columns with the key and the order of the rows"
            )
        buckets = BUCKETS if args.buckets is None else args.buckets
        if not 1 <= buckets <= 999:
            raise ValueError(f"--buckets {buckets}: from 1 to 999")
        dtype = args.dtype or "float32"
        rules = Rules(args.decimal, tuple(args.missing), day_first=args.day_first or None)
        columns = tables.choose(args.sources, args.key, args.order, args.features, args.label, dtype, rules)
        name = args.model or DEFAULT_MODEL
        if class_name(name) in registry.PREDICTORS:
            raise ValueError(f"--model {name}: a fleet needs a memory, such as adaptive")
        model = build_model(name, args.param, args.label is not None)
        return Store.create(args.store, Recipe(model, args.scale or "none"), columns, buckets)
    store = Store(args.store)
    columns = store.columns
    known: dict[str, Any] = {"key": columns.key, "order": columns.order, "label": columns.label, "dtype": columns.dtype}
    known |= {"scale": store.recipe.scale, "buckets": store.buckets}
    refuse_changes(args, args.store, store.recipe.model, columns.features, known)
    return store


class _Progress:
    """Progress line with keys, rows and rows per second."""

    def __init__(self, line: StatusLine) -> None:
        self._line, self._pass = line, ""

    def show(self, facts: dict[str, Any]) -> None:
        if facts["pass"] != self._pass:
            self._pass, self._began, self._sums = facts["pass"], time.monotonic(), Counter[str]()
        self._sums.update(done=1, rows=facts["rows"], keys=facts.get("keys", 0))
        done, rows, keys = (self._sums[name] for name in ("done", "rows", "keys"))
        rate = rows / max(time.monotonic() - self._began, 1e-9)
        pieces, buckets = f"reading: {done} of {facts['of']} pieces", f"learning: {done} of {facts['of']} buckets"
        text = pieces if self._pass == "spread" else f"{buckets}, {keys:,} keys"
        self._line.show(f"{text}, {rows:,} rows, {rate:,.0f} rows/s")


def _inspect(args: argparse.Namespace) -> int:
    store = Store(args.store)
    facts = _key_facts(store, args.key) if args.key is not None else _store_facts(store)
    if args.json:
        print(json.dumps(facts))
        return 0
    for name, value in facts.items():
        if name == "events" and isinstance(value, list):
            print(f"{'events':<16}{len(value)} latest")
            for event in value:
                what = (
                    f"{event['from_block']} -> {event['to_block']}" if "column" not in event else event["column_name"]
                )
                at = f"{event['when']} (row {event['step']:,})" if "when" in event else f"row {event['step']:,}"
                print(printable(f"{'':<16}{event['kind']} {what} at {at}"))
        else:
            shown = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value
            print(printable(f"{name:<16}{', '.join(map(str, value)) if isinstance(value, list) else shown}"))
    return 0


def _store_facts(store: Store) -> dict[str, Any]:
    model, columns, totals = store.recipe.model, store.columns, store.manifest["totals"]
    keys, files = store.n_keys(), map(store.bucket_file, range(store.buckets))
    size = sum(file.stat().st_size for file in files if file.exists())
    facts: dict[str, Any] = {"store": str(store.folder), "model": repr(getattr(model, "memory", model))}
    facts |= {"scale": store.recipe.scale, "key": columns.key, "order": columns.order}
    facts |= {"features": list(columns.features), "label": columns.label, "dtype": columns.dtype}
    facts |= {"keys": keys, "rows": totals["rows"]}
    facts |= {"late_rows": totals["late"], "bad_rows": totals["bad"], "events": totals["events"]}
    facts |= {"files": len(store.manifest["files"]), "buckets": store.buckets, "bytes": size}
    return facts | {"bytes_per_key": round(size / max(keys, 1)), "under_way": store.manifest["current"] is not None}


def _key_facts(store: Store, key: str) -> dict[str, Any]:
    member = store.member(key)
    memory: Any = member.memory
    times = _event_times(store, member.key)
    names, columns = getattr(memory, "block_names_", {}), store.columns.features
    found = [event._replace(time=times.get((event.kind, event.step))) for event in getattr(memory, "events_", [])]
    events = [event_record(event, names, columns) for event in found]
    facts: dict[str, Any] = {"key": member.key, "rows": member.rows, "last_order": member.last}
    if store.columns.order_type.startswith("timestamp") and member.last is not None:
        facts["last_time"] = format_time(member.last / 1e9)
    facts |= {"bytes": len(store.state(member.key) or b""), "units": memory.n_units_}
    known = {"blocks": "n_blocks_", "block_in_use": "task_pointer_", "alarm": "alarm_"}
    facts |= {name: getattr(memory, attribute, None) for name, attribute in known.items()}
    return facts | {"labels": [str(label) for label in getattr(member.model, "classes_", [])], "events": events}


def _event_times(store: Store, key: Any) -> dict[tuple[str, int], float]:
    """Return the event times of a key from the events table, in seconds since 1970."""
    if not store.columns.order_type.startswith("timestamp"):
        return {}
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
    facts = {**predict(Store(args.store), args.sources, args.out, args.on_bad_row == "skip"), "out": args.out}
    if args.json:
        print(json.dumps(facts))
    else:
        unknown = f"; {facts['unknown']:,} of keys without a memory, left empty" if facts["unknown"] else ""
        bad = f"; {facts['bad_rows']:,} bad rows left out" if facts["bad_rows"] else ""
        print(f"predicted {facts['rows']:,} rows to {args.out}{unknown}{bad}")
    return 0


def _export(args: argparse.Namespace) -> int:
    store = Store(args.store)
    member = store.member(args.key)
    learner = Learner(member.model, store.recipe.scale)
    learner.scale, learner.rows = member.scale, member.rows
    text = None if store.columns.label is None else True
    learner.columns = Columns(store.columns.features, store.columns.label, np.dtype(store.columns.dtype), text)
    learner.save(args.out)
    print(f"the memory of {member.key} ({member.rows:,} rows) is in {args.out}")
    return 0
