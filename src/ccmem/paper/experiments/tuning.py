"""Random search for a model's settings on a validation split of the training data; test data are never used.

A candidate's score is the mean of its ACC under both protocols. All candidates run once; the best few run twice more on
other streams, and the best mean wins. The untuned settings are always among the candidates. Memories that use more
units than the data set's ``unit_limit`` are excluded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ccmem.paper.datasets import ImageData
from ccmem.paper.experiments import Row, changed, named_row, rivals, rows_to_tune, settings
from ccmem.paper.experiments.protocol import PROTOCOLS, STRICT, Benchmark, Stopped
from ccmem.paper.experiments.runs import Pool, pool_for, run_trial

FINALISTS = 4
FINAL_SEEDS = 3


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
    protocols: Sequence[str] = PROTOCOLS
    n_finalists, n_seeds = (FINALISTS, FINAL_SEEDS) if model in settings()["rows"] else (2, 2)
    if model in rivals()["rows"]:  # other learners use the strict protocol only
        space, rows = rivals()["rows"][model].get("search", {}), rows_to_tune(data.name, model)
        protocols, benchmark = (STRICT,), _thinned(data, rivals()["tune"], seed)
    else:
        in_family = model in settings()["family"]
        space = settings()["family"][model].get("search", {}) if in_family else settings()["search"].get(model)
        if space is None:
            raise ValueError(f"there is no search space for {model!r}; there are {', '.join(settings()['search'])}")
        rows, benchmark = [named_row(data.name, model)], Benchmark.validation(data, seed=seed)
    limit = int(settings()["datasets"][data.name]["unit_limit"])
    found = {}
    for row in rows:
        tried: list[dict[str, Any]] = [{"parameters": pick, "scores": []} for pick in candidates(space, count, seed)]
        with pool_for(benchmark, jobs, dask) as pool:
            _add_scores(pool, row, tried, [seed + 1000], limit, protocols)
            finalists = [tried[0], *sorted(tried[1:], key=lambda entry: -entry["scores"][0])[: n_finalists - 1]]
            _add_scores(pool, row, finalists, range(seed + 1001, seed + 1000 + n_seeds), limit, protocols)
        best = max(finalists, key=lambda entry: float(np.mean(entry["scores"])))
        untuned, tuned = (float(np.mean(entry["scores"])) for entry in (tried[0], best))
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


def _add_scores(
    pool: Pool, row: Row, tried: list[dict[str, Any]], seeds: Sequence[int], limit: int, protocols: Sequence[str]
) -> None:
    """Append one score per seed to every candidate, rounded to four digits."""
    entries = [(entry, seed) for entry in tried for seed in seeds]
    calls = [
        (changed(row, row.name, entry["parameters"]), pool.benchmark, seed, limit, protocols) for entry, seed in entries
    ]
    scores = dict(pool.results(score, calls))
    for number, (entry, _) in enumerate(entries):
        entry["scores"].append(round(scores[number], 4))
