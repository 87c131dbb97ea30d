"""Benchmarks of task streams: images, embeddings, the drift generator."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ccmem import Event, datasets, streams
from ccmem.io.streams.drift import drifting_sensors
from ccmem.metrics import EventScore, score_events

from ..embeddings import features_file
from .candidates import Found, blind, rand_index
from .recordings import MissingData
from .table import Figure, Row
from .trial import Trial, mean

SETS = ("mnist", "fashion-mnist", "notmnist")
TURNS = 3
BLUR = 0.2
N_TASKS = 5


class Tasks(NamedTuple):
    """Rows at which the tasks of a stream change, and the task of each visit."""

    changes: list[int]
    visits: list[int]
    begins: list[int] | None = None
    """Rows at which a blurred transition begins; alarms after these rows are not false."""


def _score(stream: Tasks, found: Found) -> EventScore:
    events, block, seen = [], 0, {0}
    for step, onset in zip(found.steps, found.onsets, strict=True):
        to = int(found.blocks[step])
        kind = "recall" if to in seen else "new_block"
        events.append(Event(kind, step, block, to, step - onset + 1))
        block = to
        seen.add(to)
    return score_events(events, stream.begins or stream.changes, tasks=stream.visits)


def row(name: str, plan: list[Tasks], runs: list[Found], **targets: Figure) -> Row:
    """Return missed changes, false alarms and correct returns, summed over streams."""
    scores = [_score(stream, found) for stream, found in zip(plan, runs, strict=True)]
    rand = []
    for stream, found in zip(plan, runs, strict=True):
        truth = np.repeat(stream.visits, np.diff([0, *stream.changes, len(found.blocks)]))
        rand.append(rand_index(truth, found.blocks))
    delays = [delay for score in scores for delay in score.delays]
    returns = sum(score.returns or 0 for score in scores)
    values = {
        "missed": (sum(score.missed for score in scores), sum(score.changes for score in scores)),
        "false": (sum(score.false_alarms for score in scores), None),
        "right returns": (sum(score.right_recalls or 0 for score in scores), returns),
        "median delay": (float(np.median(delays)) if delays else None, None),
        "blocks": (mean([found.n_blocks for found in runs]), None),
    }
    if not returns:
        del values["right returns"]
    bounds = {key: targets.get(key.replace(" ", "_"), Figure(0)) for key in values}
    figures = {key: bounds[key]._replace(value=value, of=of) for key, (value, of) in values.items()}
    return Row(name, figures, Figure(mean(rand)))


def summed(name: str, plans: dict[str, list[Tasks]], runs: dict[str, list[Found]], **targets: Figure) -> list[Row]:
    """Return the row of all sets, the row of the blind clock, and a row for each set if there are several."""
    plan, found = ([one for part in parts.values() for one in part] for parts in (plans, runs))
    rows = [row(name, plan, found, **targets), row(f"{name}: blind clock", plan, [blind(f) for f in found])]
    return rows + [row(f"{name}, {kind}", plans[kind], runs[kind]) for kind in plans if len(plans) > 1]


def _load(test: Trial, name: str) -> Any:
    if not any((test.folder / name).glob("*")):
        raise MissingData(f"no {name} in {test.folder}")
    return datasets.load(name, folder=str(test.folder))


def images(test: Trial) -> list[Row]:
    """Score five image tasks in turn, three times, with 1,000 and 300 samples per visit."""
    runs: dict[int, dict[str, list[Found]]] = {1000: {}, 300: {}}
    plans: dict[int, dict[str, list[Tasks]]] = {1000: {}, 300: {}}
    for name in SETS:
        data = _load(test, name)
        for size in runs:
            for seed in test.seeds(test.size.trials):
                rows, stream = in_turn(data.y_train, size, seed)
                plans[size].setdefault(name, []).append(stream)
                runs[size].setdefault(name, []).append(test.candidate.rows(data.X_train[rows]))
    part = test.size.trials / 10
    perfect = {"missed": Figure(0, most=0), "false": Figure(0, most=0), "right_returns": Figure(0, least=300 * part)}
    return [
        *summed("images, 1,000 a visit", plans[1000], runs[1000], **perfect),
        *summed("images, 300 a visit", plans[300], runs[300], missed=Figure(0, most=15 * part)),
    ]


def in_turn(y: Any, size: int, seed: int, turns: int = TURNS) -> tuple[Any, Tasks]:
    """Return rows and changes of five tasks in turn, with ``size`` new samples per visit."""
    rng, visits = np.random.default_rng([seed, 5]), list(range(N_TASKS)) * turns
    tasks = streams.class_tasks(y, N_TASKS)
    pools = [rng.permutation(np.flatnonzero(np.isin(y, task))) for task in tasks]
    parts = [pools[v][i // N_TASKS * size : (i // N_TASKS + 1) * size] for i, v in enumerate(visits)]
    return np.concatenate(parts), Tasks([size * i for i in range(1, len(visits))], visits)


def long_tasks(test: Trial) -> list[Row]:
    """Score all training images once: in ten tasks, in five tasks with blurred transitions, in file order."""
    plans: dict[str, dict[str, list[Tasks]]] = {"ten tasks": {}, "blurred transitions": {}}
    runs: dict[str, dict[str, list[Found]]] = {"ten tasks": {}, "blurred transitions": {}}
    files: dict[str, Figure] = {}
    for name in SETS:
        data = _load(test, name)
        for seed in test.seeds(test.size.long_trials):
            for kind, n_tasks, blur in (("ten tasks", 10, 0.0), ("blurred transitions", 5, BLUR)):
                stream = streams.split_by_class(data.y_train, n_tasks, blur=blur, random_state=seed)
                begins = _beginnings(stream) if blur else None
                plan = Tasks(list(stream.change_points), list(stream.visits), begins)
                plans[kind].setdefault(name, []).append(plan)
                runs[kind].setdefault(name, []).append(test.candidate.rows(data.X_train[stream.indices]))
        found = test.candidate.rows(data.X_train)
        files |= {f"events, {name}": Figure(len(found.steps)), f"blocks, {name}": Figure(found.n_blocks)}
    rows = [row for kind in plans for row in summed(kind, plans[kind], runs[kind])]
    return [*rows, Row("file order", files)]


def _beginnings(stream: Any) -> list[int]:
    edges = [0, *stream.change_points, len(stream)]
    shorter = [min(b - a, c - b) for a, b, c in zip(edges, edges[1:], edges[2:], strict=False)]
    return [change - int(BLUR * n / 2) for change, n in zip(stream.change_points, shorter, strict=True)]


def embeddings(test: Trial) -> list[Row]:
    """Score five tasks of CIFAR-10 embeddings and their return; each visit has new images."""
    if not (file := features_file()).exists():
        raise MissingData(f"no {file}; python -m studies.embeddings --extract makes it")
    with np.load(file) as arrays:
        X, y = arrays["X_train"], arrays["y_train"]
    size = int(np.bincount(y).min())
    plan, runs = [], []
    for seed in test.seeds(1):
        rows, stream = in_turn(y, size, seed, turns=2)
        plan.append(stream)
        runs.append(test.candidate.rows(X[rows]))
    targets = {"missed": Figure(0, most=0), "false": Figure(0, most=0), "right_returns": Figure(0, least=5)}
    return summed(f"embeddings, {size:,} a visit", {"": plan}, {"": runs}, **targets)


def drift(test: Trial) -> list[Row]:
    """Score the drift generator: states of a machine with a cycle and a slow drift, 200,000 rows per seed."""
    plan, runs = [], []
    for seed in test.seeds(test.size.drift_seeds):
        sensors = drifting_sensors(200_000, seed=seed)
        runs.append(test.candidate.rows(np.concatenate([rows for rows, _ in sensors.chunks()])))
        plan.append(Tasks(sensors.starts[1:].tolist(), sensors.visits.tolist()))
    returns = sum(len(stream.visits) - len(set(stream.visits)) for stream in plan)
    targets = {"missed": Figure(0, most=0), "false": Figure(0, most=1), "right_returns": Figure(0, least=returns)}
    return summed("drift generator", {"": plan}, {"": runs}, **targets)


def labelled(test: Trial) -> list[Row]:
    """Score the classes of data sets from scikit-learn and River, in turn, twice."""
    from river.datasets import ImageSegments
    from sklearn.datasets import load_breast_cancer, load_digits, load_wine

    segments = [(list(x.values()), y) for x, y in ImageSegments()]
    names = sorted({y for _, y in segments})
    sets = {
        "digits, pairs": (load_digits().data, load_digits().target // 2),
        "breast cancer": load_breast_cancer(return_X_y=True),
        "wine": load_wine(return_X_y=True),
        "image segments": (np.array([x for x, _ in segments], float), np.array([names.index(y) for _, y in segments])),
    }
    plans: dict[str, list[Tasks]] = {}
    runs: dict[str, list[Found]] = {}
    for name, (X, y) in sets.items():
        rng = np.random.default_rng(test.size.first_seed)
        halves = [np.array_split(rng.permutation(np.flatnonzero(y == task)), 2) for task in np.unique(y)]
        visits = [half[turn] for turn in (0, 1) for half in halves]
        changes = np.cumsum([len(visit) for visit in visits])[:-1].tolist()
        plans[name] = [Tasks(changes, [*range(len(halves))] * 2)]
        runs[name] = [test.candidate.rows(np.ascontiguousarray(X[np.concatenate(visits)], float))]
    return summed("labelled sets", plans, runs)
