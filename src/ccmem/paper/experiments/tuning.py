"""Random search for a model's settings on a validation split of the training data; test data are never used.

A candidate's score is the mean of its ACC under both protocols. All candidates run once; the best few run twice more on
other streams, and the best mean wins. The untuned settings are always among the candidates. Memories that use more
units than the data set's ``unit_limit`` are excluded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ccmem.paper.datasets import ImageData
from ccmem.paper.experiments import Row, changed, family_row, paper_row, rival_names, rivals, settings, tuned_rows
from ccmem.paper.experiments.pools import Pool, pool_for
from ccmem.paper.experiments.protocol import PROTOCOLS, STRICT, Benchmark, Stopped
from ccmem.paper.experiments.runs import run_trial

FINALISTS = 4
FINAL_SEEDS = 3


class Plan(NamedTuple):
    """Search plan; other learners use the strict protocol only and fewer repetitions."""

    space: Mapping[str, list[Any]]
    protocols: Sequence[str]
    n_finalists: int
    n_seeds: int


def candidates(space: Mapping[str, list[Any]], count: int, seed: int) -> list[dict[str, Any]]:
    """Return distinct random samples from a space of values, after the empty one (untuned)."""
    rng = np.random.default_rng(seed)
    found: dict[tuple[int, ...], dict[str, Any]] = {}
    total = math.prod(len(values) for values in space.values())
    while len(found) < min(count - 1, total):
        pick = tuple(int(rng.integers(len(values))) for values in space.values())
        found[pick] = {name: values[i] for i, (name, values) in zip(pick, space.items(), strict=True)}
    return [{}, *found.values()]


def score(row: Row, benchmark: Benchmark, seed: int, unit_limit: int, protocols: Sequence[str] = PROTOCOLS) -> float:
    """Return the mean ACC of the protocols; 0 if a memory uses too many units or a network diverges."""

    def too_large(model: Any) -> bool:  # stop early: a memory that keeps growing also gets slow
        memory = getattr(model, "memory_", None)
        return memory is not None and int((memory.win_counts_ > 0).sum()) > unit_limit

    try:
        record, _ = run_trial(row, benchmark, seed, protocols, stop=too_large)
    except Stopped:
        return 0.0
    except ValueError as problem:
        if "diverged" in str(problem):  # learning rate too high
            return 0.0
        raise
    if record.get("used_units", 0) > unit_limit:
        return 0.0
    return float(np.mean([record["protocols"][protocol]["metrics"]["ACC"] for protocol in protocols]))


def _thinned(data: ImageData, sizes: Mapping[str, int], seed: int) -> Benchmark:
    """Return a validation split reduced to this many training and test rows."""
    part = min(1 / 6, sizes["n_validation"] / len(data.y_train))
    benchmark = Benchmark.validation(data, part=part, seed=seed)
    rows = np.random.default_rng(seed).permutation(benchmark.rows)[: sizes["n_train"]]
    return replace(benchmark, rows=np.sort(rows))


def tune(
    data: ImageData,
    model: str,
    count: int,
    seed: int,
    command: str,
    *,
    jobs: int | None = None,
    dask: str | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Return the best settings found, and the search that found them, as JSON values."""
    if model in rival_names():
        plan = Plan(rivals()["rows"][model].get("search", {}), (STRICT,), 2, 2)
        rows, benchmark = tuned_rows(data.name, model), _thinned(data, rivals()["tune"], seed)
    elif model in settings()["family"]:
        space = settings()["family"][model].get("search", {})
        plan, benchmark = Plan(space, PROTOCOLS, 2, 2), Benchmark.validation(data, seed=seed)
        rows = [family_row(data.name, model)]
    else:
        space = settings()["search"].get(model)
        if space is None:
            raise ValueError(f"there is no search space for {model!r}; there are {', '.join(settings()['search'])}")
        plan, benchmark = Plan(space, PROTOCOLS, FINALISTS, FINAL_SEEDS), Benchmark.validation(data, seed=seed)
        rows = [paper_row(data.name, model)]
    limit = int(settings()["datasets"][data.name]["unit_limit"])
    found = {}
    for row in rows:
        tried: list[dict[str, Any]] = [
            {"parameters": picked, "scores": []} for picked in candidates(plan.space, count, seed)
        ]
        first, best = _search(row, plan, benchmark, limit, tried, seed, jobs, dask)
        untuned, tuned = (float(np.mean(entry["scores"])) for entry in (first, best))
        say(
            f"{data.title}, {row.title}: {untuned:.4f} as it is, {tuned:.4f} tuned, "
            f"with {best['parameters'] or 'the settings it had'}"
        )
        found[row.name] = {
            "parameters": best["parameters"],
            "validation_score": round(tuned, 4),
            "untuned_score": round(untuned, 4),
            "n_train": len(benchmark.rows),
            "n_validation": len(benchmark.y_test),
            "candidates": tried,
            "command": command,
        }
    return found


def _search(
    row: Row,
    plan: Plan,
    benchmark: Benchmark,
    limit: int,
    tried: list[dict[str, Any]],
    seed: int,
    jobs: int | None,
    dask: str | None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Add scores to the candidates ``tried``, the first of which is untuned; return the untuned and the best one."""

    def run_over(pool: Pool, entries: list[dict[str, Any]], trials: range) -> None:
        results = []
        for entry in entries:
            candidate = changed(row, row.name, entry["parameters"])
            for trial in trials:
                asked = candidate, pool.benchmark, seed + 1000 + trial, limit, plan.protocols
                results.append((entry, pool.executor.submit(score, *asked)))
        try:
            for entry, result in results:
                entry["scores"].append(round(result.result(), 4))
        except BaseException:
            for _, result in results:
                result.cancel()
            raise

    with pool_for(benchmark, jobs, dask) as pool:
        run_over(pool, tried, range(1))
        first, rest = tried[0], sorted(tried[1:], key=lambda entry: -entry["scores"][0])
        finalists = [first, *rest[: plan.n_finalists - 1]]
        run_over(pool, finalists, range(1, plan.n_seeds))
    return first, max(finalists, key=lambda entry: float(np.mean(entry["scores"])))
