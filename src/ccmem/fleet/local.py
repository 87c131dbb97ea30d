"""Learn a fleet from files, in rounds that survive being killed.

A round takes a limited number of rows, which bounds its disk space, and has two passes. The first pass (``spread``)
sorts every piece of the input into buckets by the hash of its keys and writes the sorted rows to disk. The second pass
(``gather``) collects the rows of each bucket, sorts them by key and order, steps each key, and writes the events and
then the memories of the bucket. Each file appears by a rename when it is complete; the rename of the memories is the
commit. Repeating a pass gives the same bytes, so a killed run or a dead worker costs only time.

A runner function executes the tasks of a pass: one after the other, on a pool of processes
(:func:`on_processes`), or on a cluster (:mod:`ccmem.fleet.dask`).
"""

from __future__ import annotations

import contextlib
import errno
import multiprocessing
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from heapq import merge
from itertools import groupby, pairwise
from multiprocessing.connection import wait
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from ccmem.fleet import tables
from ccmem.fleet.step import Key, KeyedEvent, Member, Rows, advance
from ccmem.fleet.store import Store, bucket_of, open_sealed, sealed, write_states
from ccmem.fleet.tables import KeyedColumns, Piece
from ccmem.io.persistence.atomic import atomic_file, locked
from ccmem.io.streams.arrow import pyarrow
from ccmem.io.streams.errors import SourceError
from ccmem.io.streams.progress import digest_of
from ccmem.io.streams.sources import kind_of
from ccmem.io.streams.tables import code_labels

ROUND_ROWS = 50_000_000


Task = Callable[[], dict[str, Any]]
"""Task of a pass: a function of this module with its arguments, which any process on any machine can run."""
Runner = Callable[[Sequence[Task]], Iterator[dict[str, Any]]]
"""Function that runs tasks in any order and yields the result of each task."""


# Tasks of a worker --------------------------------------------------------------------------------------------------


def perform(task: Task) -> dict[str, Any]:
    """Run one task."""
    try:
        return task()
    except SourceError as problem:  # some SourceErrors cannot be pickled between processes
        raise SourceError(str(problem)) from None


def spread(folder: str, number: int, place: int, piece: Sequence[Any], skip_bad: bool) -> dict[str, Any]:
    """Sort the rows of a piece into buckets; write a file that cycles through the buckets, one batch per bucket."""
    pa, store = pyarrow(), Store(folder)
    target = store.work_folder(number) / f"piece-{place:05d}.arrow"
    if target.exists():
        with open_sealed(target) as (_, facts):
            return facts
    with sealed(target, _work_schema(store.columns)) as (write, facts):
        facts.update(rows=0, bad=0)
        for batch in tables.read(Piece(*piece), store.columns, skip_bad, store.recipe.takes_missing):
            buckets = bucket_of(batch.keys, store.buckets)
            places = np.argsort(buckets, kind="stable")
            ends = np.searchsorted(buckets[places], np.arange(store.buckets), side="right")
            X = pa.FixedSizeListArray.from_arrays(pa.array(batch.X.reshape(-1)), batch.X.shape[1])
            labels = [] if batch.labels is None else [batch.labels.cast(pa.string())]
            rows = pa.record_batch([batch.keys, pa.array(batch.order), X, *labels], _work_schema(store.columns))
            rows = rows.take(pa.array(places))
            for start, end in pairwise([0, *ends.tolist()]):
                write(*rows.slice(start, end - start).columns)
            facts["rows"] += rows.num_rows
            facts["bad"] += batch.bad
    return facts


def gather(folder: str, number: int, bucket: int, late: str) -> dict[str, Any]:
    """Update all memories of a bucket with their rows of a round: write events first, then commit by a rename."""
    store = Store(folder)
    facts = {**store.facts(bucket), "bucket": bucket}
    if facts["round"] >= number:
        return facts if facts["round"] == number else {**facts, "rows": 0, "late": 0, "events": 0}
    table = _rows_of(store, number, bucket)
    if not table.num_rows:
        return {**facts, "rows": 0, "late": 0, "events": 0}
    events: list[KeyedEvent] = []
    n_late = 0

    def states() -> Iterator[tuple[Key, bytes]]:
        nonlocal n_late
        known, new = store.states(bucket), _by_key(table)
        for key, pairs in groupby(merge(known, new, key=itemgetter(0)), key=itemgetter(0)):
            found = [value for _, value in pairs]
            state = found[0] if isinstance(found[0], bytes) else None
            if isinstance(rows := found[-1], Rows):
                member = Member(store.recipe, key, state)
                happened, dropped = advance(member, rows, late)
                events.extend(happened)
                n_late += dropped
                state = member.to_bytes() if dropped < len(rows.order) else state
            if state is not None:
                yield key, state

    key_type = table.schema.field("key").type
    schema = pyarrow().schema([("key", key_type), ("state", pyarrow().binary())])
    with sealed(store.bucket_file(bucket), schema) as (write, facts):
        n_keys, digest = write_states(write, key_type, states())
        facts.update(bucket=bucket, round=number, keys=n_keys, rows=table.num_rows - n_late, late=n_late)
        facts.update(events=len(events), digest=digest)
        _write_events(store, number, bucket, events)
        if store.facts(bucket)["round"] > number:  # an abandoned task finished after a later round
            raise RuntimeError(f"bucket {bucket} has finished a later round; run the command again")
    return facts


def _work_schema(columns: KeyedColumns) -> Any:
    pa = pyarrow()
    order = pa.float64() if columns.order_type == "float64" else pa.int64()
    X = pa.list_(pa.type_for_alias(columns.dtype), len(columns.features))
    fields = [("key", pa.type_for_alias(columns.key_type)), ("order", order), ("X", X)]
    return pa.schema(fields + ([("label", pa.string())] if columns.label is not None else []))


def _rows_of(store: Store, number: int, bucket: int) -> Any:
    """Return all rows of a bucket in the order of the input, as an Arrow table."""
    pa = pyarrow()
    parts: list[Any] = []
    for file in sorted(store.work_folder(number).glob("piece-*.arrow")):
        with open_sealed(file) as (reader, _):
            parts += map(reader.get_batch, range(bucket, reader.num_record_batches - 1, store.buckets))
    return pa.Table.from_batches(parts, _work_schema(store.columns))


def _by_key(table: Any) -> Iterator[tuple[Key, Rows]]:
    """Yield the rows of each key, keys sorted; rows are sorted by their order column, and ties keep the input order."""
    pa = pyarrow()
    table = table.sort_by([("key", "ascending"), ("order", "ascending")]).combine_chunks()
    keys, order, X = (table.column(name).chunk(0) for name in ("key", "order", "X"))
    order, X = order.to_numpy(zero_copy_only=False), X.flatten().to_numpy(zero_copy_only=False).reshape(len(order), -1)
    labels = np.array(table.column("label").to_pylist(), object) if "label" in table.column_names else None
    runs = pa.compute.run_end_encode(keys)
    start = 0
    for key, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        part, start = slice(start, end), end
        y = None if labels is None else code_labels(labels[part].tolist())[0].array()
        yield key, Rows(order[part], X[part], y)


def _write_events(store: Store, number: int, bucket: int, events: list[KeyedEvent]) -> None:
    pa = pyarrow()
    whole = [(name, pa.float64() if name == "evidence" else pa.int64()) for name in KeyedEvent._fields[3:]]
    key, order = pa.type_for_alias(store.columns.key_type), tables.arrow_type(store.columns.order_type)
    schema = pa.schema([("key", key), ("order", order), ("kind", pa.string()), *whole])
    table = pa.Table.from_pylist([event._asdict() for event in events], schema)
    _write_parquet(table, _part(store, number, bucket))


def _write_parquet(table: Any, path: Path) -> None:
    from pyarrow import parquet

    with atomic_file(path) as temporary:
        parquet.write_table(table, temporary)


def _part(store: Store, number: int, bucket: int) -> Path:
    return store.work_folder(number) / f"events-{bucket:03d}.parquet"


# Coordination of the workers ----------------------------------------------------------------------------------------


def learn(
    store: Store,
    sources: Sequence[str],
    run: Runner,
    *,
    late: str = "stop",
    skip_bad: bool = False,
    round_rows: int = ROUND_ROWS,
    report: Callable[[dict[str, Any]], None] = lambda facts: None,
) -> dict[str, int]:
    """Learn the rows of ``sources`` that are new to the store, and return counts; see the module docstring.

    ``report`` is called with the facts of each finished task.
    """
    with _telling_what_to_do(), locked(store.folder / "manifest.json"):
        store = Store(store.folder)
        before, first_round = dict(store.manifest["totals"]), store.manifest["round"]
        for left in store.folder.rglob(".*.tmp"):  # left by a killed run
            left.unlink(missing_ok=True)
        under_way = _interrupted(store)
        for left in (store.folder / "work").glob("*"):  # of rounds that are over, if their end was killed
            if not under_way or left != store.work_folder(store.manifest["current"]["round"]):
                shutil.rmtree(left, ignore_errors=True)
        for bucket in range(store.buckets):
            store.facts(bucket)  # raises if the bucket does not belong to the manifest
        if under_way:
            _round(store, run, late, skip_bad, report)
        files = _new_files(store, tables.find(sources), round_rows)
        pieces = [piece for _, of_file in files for piece in of_file]
        batch: list[Piece] = []
        for piece in pieces:
            batch.append(piece)
            if piece is pieces[-1] or sum(p.rows for p in batch) >= round_rows:
                _begin(store, batch)
                _round(store, run, late, skip_bad, report)
                batch = []
        totals = store.manifest["totals"]
        done = {name: totals[name] - before[name] for name in totals}
        rounds = store.manifest["round"] - first_round
        return done | {"rounds": rounds, "files": len(files), "keys": store.n_keys()}


@contextlib.contextmanager
def _telling_what_to_do() -> Iterator[None]:
    """Add to a disk-full error that nothing is lost and that the command can be repeated."""
    try:
        yield
    except OSError as problem:
        if problem.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        remedy = "make room and run the command again: nothing is lost"
        raise OSError(problem.errno, f"{problem.strerror}; {remedy}", problem.filename) from problem


def _interrupted(store: Store) -> bool:
    """True if an interrupted round can be finished; a round with incomplete pieces changed nothing and is discarded."""
    current = store.manifest["current"]
    if current is None:
        return False
    folder = store.work_folder(current["round"])
    if all((folder / f"piece-{i:05d}.arrow").exists() for i in range(len(current["pieces"]))):
        return True
    store.manifest["current"] = None
    store.save_manifest()
    shutil.rmtree(folder, ignore_errors=True)
    return False


def _new_files(store: Store, files: list[str], most: int) -> list[tuple[str, list[Piece]]]:
    """Return the files with new rows, each cut into pieces."""
    new = []
    for file in files:
        known = store.manifest["files"].get(file, {"size": 0, "rows": 0})
        if known["size"]:
            size = os.stat(file).st_size  # noqa: PTH116
            if size < known["size"] or _digest(file, known["size"]) != known["digest"]:
                raise SourceError(f"{file} differs from the file that was learned under this name; rename the new file")
            if kind_of(file) == "csv" and tables.complete_size(file) <= known["size"]:
                continue
        if pieces := tables.pieces_of(file, known["rows"], most):
            new.append((file, pieces))
    return new


def _digest(file: str, size: int) -> str:
    with open(file, "rb") as handle:  # noqa: PTH123
        return digest_of(handle, size)


def _begin(store: Store, pieces: list[Piece]) -> None:
    """Record the input of a round in the manifest before any of its tasks run."""
    prints = {}
    for piece in pieces:
        size = piece.last if kind_of(piece.file) == "csv" else os.stat(piece.file).st_size  # noqa: PTH116
        prints[piece.file] = {"size": size, "digest": _digest(piece.file, size)}
    number = store.manifest["round"] + 1
    store.manifest["current"] = {"round": number, "pieces": [list(piece) for piece in pieces], "files": prints}
    store.work_folder(number).mkdir(parents=True, exist_ok=True)
    store.save_manifest()


def _round(store: Store, run: Runner, late: str, skip_bad: bool, report: Callable[[dict[str, Any]], None]) -> None:
    """Run the remaining tasks of the current round and commit the round."""
    current = store.manifest["current"]
    number, pieces, folder = current["round"], current["pieces"], str(store.folder)
    bad = 0
    read: dict[str, int] = {}
    spreads = [partial(spread, folder, number, i, piece, skip_bad) for i, piece in enumerate(pieces)]
    for facts in run(spreads):
        bad += facts["bad"]
        report({"pass": "spread", "rows": facts["rows"], "of": len(spreads)})
    for i, piece in enumerate(pieces):
        with open_sealed(store.work_folder(number) / f"piece-{i:05d}.arrow") as (_, facts):
            start = max(read.get(piece[0], 0), piece[1])
            read[piece[0]] = start + facts["rows"] + facts["bad"]
    totals = {"rows": 0, "late": 0, "bad": bad, "events": 0}
    memories: dict[str, list[Any]] = {}
    for facts in run([partial(gather, folder, number, bucket, late) for bucket in range(store.buckets)]):
        for name in ("rows", "late", "events"):
            totals[name] += facts[name]
        if facts["round"]:
            memories[str(facts["bucket"])] = [facts["round"], facts["digest"]]
        report({"pass": "gather", "rows": facts["rows"], "keys": facts["keys"], "of": store.buckets})
    _unite_events(store, number)
    for file, facts in current["files"].items():
        store.manifest["files"][file] = {**facts, "rows": read[file]}
    for name, count in totals.items():
        store.manifest["totals"][name] += count
    store.manifest["memories"] = dict(sorted(memories.items()))
    store.manifest["round"], store.manifest["current"] = number, None
    store.save_manifest()
    shutil.rmtree(store.work_folder(number), ignore_errors=True)


def _unite_events(store: Store, number: int) -> None:
    """Combine the events files of all buckets into one file for the round."""
    from pyarrow import parquet

    parts = [_part(store, number, bucket) for bucket in range(store.buckets)]
    found = [parquet.read_table(part, use_threads=False) for part in parts if part.exists()]
    if any(table.num_rows for table in found):
        _write_parquet(pyarrow().concat_tables(found), store.events_file(number))


# Runners on this machine --------------------------------------------------------------------------------------------


def in_turn(tasks: Sequence[Task]) -> Iterator[dict[str, Any]]:
    """Run tasks one after the other in this process."""
    for task in tasks:
        yield perform(task)


@contextlib.contextmanager
def on_processes(workers: int) -> Iterator[Runner]:
    """Yield a runner on ``workers`` processes; they end when this process does, even if it is killed."""
    if workers == 1:
        yield in_turn
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, initializer=_die_with_parent)

    def run(tasks: Sequence[Task]) -> Iterator[dict[str, Any]]:
        futures = [pool.submit(perform, task) for task in tasks]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BrokenProcessPool as problem:
            raise OSError(
                "a worker process died (killed, or out of memory); run the command again to resume"
            ) from problem

    try:
        yield run
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
