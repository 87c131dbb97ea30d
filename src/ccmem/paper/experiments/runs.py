"""Parallel trials, saved as they finish, so that an interrupted run resumes.

A trial is one row (a model with its settings) on one stream. Its seed determines the stream, the first prototypes and
the model's random numbers, so all rows of a trial see the same samples in the same order. Kernels release the GIL, so
trials run in threads and share the data. Results of one data set are one JSON file; memories of the first trial are
saved beside it for the figures.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import platform
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, ThreadPoolExecutor, wait
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np

from ccmem import __version__
from ccmem.core.codes import REJECTED
from ccmem.core.typing import IntArray
from ccmem.io.persistence.atomic import write_whole
from ccmem.kernels.sources import source_digest
from ccmem.models._blocks import BlockMemory
from ccmem.paper.datasets import ImageData
from ccmem.paper.experiments import Row
from ccmem.paper.experiments.floats import floats_held
from ccmem.paper.experiments.protocol import PROTOCOLS, Benchmark, Outcome, never, run
from ccmem.readout.modal import ModalClassifier

FORMAT = 1
SAVE_SECONDS = 1.0


def run_trial(
    row: Row, benchmark: Benchmark, seed: int, protocols: Sequence[str] = PROTOCOLS, stop: Callable[[Any], bool] = never
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run one trial; return its record for the JSON file and arrays for the figures."""
    rejected: list[Any] = []

    def watch(winners: IntArray) -> None:
        rejected.append(winners == REJECTED)

    began = time.perf_counter()
    model, stream = row.build(benchmark.X, benchmark.rows, seed), benchmark.stream([seed, 0])
    if row.is_told_tasks:
        model.set_params(task_ends=[*stream.change_points, len(stream)])
    if row.standing is not None and (row.is_told_tasks or isinstance(model, ModalClassifier)):
        protocols = PROTOCOLS  # one pass serves both protocols
    outcomes = run(model, benchmark, stream, protocols, watch=watch, stop=stop)
    seconds = time.perf_counter() - began
    first = next(iter(outcomes.values()))
    memory = getattr(getattr(first.model, "last_", first.model), "memory_", None)  # of a stack: that of its last step
    record: dict[str, Any] = {"seed": seed, "seconds": round(seconds, 3), "protocols": {}}
    for protocol, outcome in outcomes.items():
        record["protocols"][protocol] = {"metrics": outcome.metrics(), "R": _with_gaps(outcome.R)}
    record["microseconds"] = {p: round(1e6 * outcome.seconds / len(stream), 2) for p, outcome in outcomes.items()}
    record["floats"] = max(floats_held(outcome.model) for outcome in outcomes.values())
    if memory is not None:
        record["units"] = int(memory.n_units_)
        record["used_units"] = int((memory.win_counts_ > 0).sum())
    if isinstance(memory, BlockMemory):
        record["blocks"] = memory.n_blocks_
        record["events"] = [event.record() for event in memory.events_]
    return record, _arrays_for_figures(first, rejected)


def _with_gaps(R: Any) -> list[list[float | None]]:
    """Return R as JSON values, null where a task was not tested."""
    return [[None if math.isnan(value) else value for value in line] for line in R.tolist()]


def _arrays_for_figures(outcome: Outcome, rejected: list[Any]) -> dict[str, Any]:
    """Return the units of the memory and the rejected steps, for the figures."""
    classifier = outcome.model
    if not isinstance(classifier, ModalClassifier):
        return {}
    memory = classifier.memory_
    kept = {"prototypes": memory.prototypes_, "wins": memory.win_counts_}
    kept |= {"votes": classifier.votes_, "classes": classifier.classes_}
    if isinstance(memory, BlockMemory):
        kept["blocks"] = memory.unit_blocks_
        kept["rejected"] = np.packbits(np.concatenate(rejected))
    return kept


class Results:
    """The JSON file of one data set: read if present, extended, written atomically."""

    def __init__(
        self,
        folder: Path,
        data: ImageData,
        benchmark: Benchmark,
        rows: Sequence[Row],
        trials: int,
        seed: int,
        *,
        fresh: bool = False,
        protocols: Sequence[str] = PROTOCOLS,
    ) -> None:
        self.path, self.folder = folder / f"{data.name}.json", folder
        self.trials, self.seed, self.protocols = trials, seed, protocols
        self._saved = 0.0
        copied = ("name", "title", "source", "notes", "sha256", "pixels", "image_shape", "class_names")
        about = {name: getattr(data, name) for name in copied}
        about |= {"n_train": len(benchmark.rows), "n_test": len(benchmark.y_test), "tasks": benchmark.tasks}
        about["change_points"] = benchmark.stream(0).change_points
        self._head = {"format": FORMAT, "dataset": about, "versions": versions(), "base_seed": seed}
        earlier = self._earlier(fresh)
        self._rows: dict[str, dict[str, Any]] = {}
        for row in rows:
            old, key = earlier.pop(row.name, {}), row_key(row, about)
            self._rows[row.name] = {
                "title": row.title,
                "source": row.source,
                "settings": row.settings(),
                "standing": None if row.standing is None else row.standing._asdict(),
                "key": key,
                "trials": old["trials"] if old.get("key") == key and not fresh else {},
            }
        self._asked = tuple(self._rows)
        self._rows |= earlier

    @property
    def content(self) -> dict[str, Any]:
        """Return the requested rows and trials; the file keeps the others, too."""
        rows = {
            name: {**row, "trials": {n: trial for n, trial in row["trials"].items() if int(n) < self.trials}}
            for name, row in self._rows.items()
            if name in self._asked
        }
        return {**self._head, "rows": rows}

    def _earlier(self, fresh: bool) -> dict[str, Any]:
        if not self.path.is_file():
            return {}
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
            same = content["format"] == FORMAT and content["base_seed"] == self.seed
            return dict(content["rows"]) if same else {}
        except (ValueError, KeyError, TypeError) as problem:
            if fresh:  # to be replaced
                return {}
            raise ValueError(
                f"{self.path} is not a result file of ccmem ({problem}); remove it or choose another --out"
            ) from problem

    def missing(self, row: Row) -> dict[int, list[str]]:
        """Return the missing trials of a row and their protocols."""
        done, found = self._rows[row.name]["trials"], {}
        for trial in range(self.trials):
            known = done.get(str(trial), {}).get("protocols", ())
            if trial == 0 and row.standing is None and not self.arrays_path(row.name).is_file():
                known = ()
            if lacking := [protocol for protocol in self.protocols if protocol not in known]:
                found[trial] = lacking
        return found

    def arrays_path(self, row: str) -> Path:
        return self.folder / "memories" / f"{self.path.stem}-{row}.npz"

    def add(self, row: Row, trial: int, record: dict[str, Any], arrays: dict[str, Any]) -> None:
        """Store a finished trial, merged with its results under the other protocol."""
        if trial == 0 and row.standing is None:  # comparison rows have no memory figures
            buffer = io.BytesIO()
            np.savez_compressed(buffer, **arrays)
            write_whole(self.arrays_path(row.name), buffer.getvalue())
        trials = self._rows[row.name]["trials"]
        trials[str(trial)] = _joined(trials.get(str(trial)), record)
        self._rows[row.name]["trials"] = dict(sorted(trials.items(), key=lambda item: int(item[0])))
        if time.monotonic() - self._saved > SAVE_SECONDS:
            self.save()

    def save(self) -> None:
        """Write the file atomically."""
        write_whole(self.path, json.dumps({**self._head, "rows": self._rows}, indent=1).encode())
        self._saved = time.monotonic()


def _joined(earlier: dict[str, Any] | None, record: dict[str, Any]) -> dict[str, Any]:
    """Merge records of one trial under different protocols."""
    if earlier is None:
        return record
    found = {**earlier, **record}
    for name in ("protocols", "microseconds"):
        both = {**earlier[name], **record[name]}
        found[name] = {protocol: both[protocol] for protocol in PROTOCOLS if protocol in both}
    found["floats"] = max(earlier["floats"], record["floats"])
    return found


def row_key(row: Row, about: dict[str, Any]) -> str:
    """Return a digest of everything that determines the numbers: settings, data and code."""
    data = {key: about[key] for key in ("sha256", "pixels", "tasks", "n_train")}
    facts = [row.settings(), data, source_digest(__name__, *row.modules())]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def versions() -> dict[str, str]:
    """Return the versions that produced the results."""
    found = {
        "ccmem": __version__,
        "source": source_digest(__name__, "ccmem.readout"),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {joblib.cpu_count()} cores",
    }
    return found | {name: version(name) for name in ("numpy", "numba", "scikit-learn")}


def compile_kernels(results: Results, rows: Sequence[Row], benchmark: Benchmark) -> None:
    """Run every row of ours on a few hundred samples, so that no trial's time includes compilation."""
    from ccmem.core.terminal import StatusLine

    line, few = StatusLine(in_lines=True), benchmark.few(50)
    ours = [row for row in rows if row.standing is None and results.missing(row)]
    for number, row in enumerate(ours, 1):
        line.show(f"preparing {row.title} ({number} of {len(ours)}; its kernels are compiled once per machine) ...")
        run_trial(row, few, 0, protocols=results.protocols)
    line.clear()


class Pool(NamedTuple):
    """An executor, and the benchmark in the form its tasks accept; a cluster receives the benchmark once per worker."""

    executor: Executor
    benchmark: Any
    here: bool
    """True if tasks run in this process and can read its variables."""

    def results(self, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> Iterator[tuple[int, Any]]:
        """Yield the number and the result of every call as it finishes, and (-1, None) twice a second until then.

        Calls that have not begun are cancelled if one of them fails or the caller stops asking.
        """
        tasks = {self.executor.submit(function, *call): number for number, call in enumerate(calls)}
        pending = set(tasks)
        try:
            while pending:
                yield -1, None
                finished, pending = wait(pending, timeout=0.5, return_when=FIRST_COMPLETED)
                for task in finished:
                    yield tasks[task], task.result()
        finally:
            for task in pending:
                task.cancel()


@contextlib.contextmanager
def pool_for(benchmark: Benchmark, jobs: int | None = None, dask: str | None = None) -> Iterator[Pool]:
    """Yield a pool of ``jobs`` threads or, with ``dask``, of workers at this address.

    ``dask="local"`` starts a cluster of ``jobs`` processes. A task whose worker dies is repeated.
    """
    if dask is None:
        with ThreadPoolExecutor(jobs or joblib.cpu_count(), thread_name_prefix="trial") as threads:
            yield Pool(threads, benchmark, here=True)
        return
    from ccmem.fleet.dask import client

    with client(dask, jobs) as connected:
        executor = connected.get_executor(pure=False)
        yield Pool(executor, connected.scatter(benchmark, broadcast=True), here=False)
        executor.shutdown(wait=False)


def run_all(
    results: Results, rows: Sequence[Row], benchmark: Benchmark, jobs: int | None = None, dask: str | None = None
) -> None:
    """Run all missing trials on the cores or a cluster; finished trials survive an interruption."""
    from ccmem.paper.experiments.progress import Progress

    missing = [results.missing(row) for row in rows]
    todo = [
        (row, trial, lacking[trial])
        for trial in range(results.trials)
        for row, lacking in zip(rows, missing, strict=True)
        if trial in lacking
    ]
    if not todo:
        results.save()
        return
    stop, progress = threading.Event(), Progress([row.name for row, _, _ in todo])
    with pool_for(benchmark, jobs, dask) as pool:
        ask = (lambda model: stop.is_set()) if pool.here else never
        calls = [(row, pool.benchmark, results.seed + trial, protocols, ask) for row, trial, protocols in todo]
        try:
            for number, found in pool.results(run_trial, calls):
                if number >= 0:
                    row, trial, _ = todo[number]
                    results.add(row, trial, *found)
                    progress.finished(row.name, found[0]["seconds"])
                progress.show()
        finally:
            stop.set()  # trials that are still running after an error give up
            progress.close()
            if any(row["trials"] for row in results.content["rows"].values()):
                results.save()
