"""Models compared on embeddings that arrive task by task: CIFAR-10 images and Debian package descriptions.

    python -m studies.embeddings --extract --train 50000 --test 10000
    python -m studies.text_stream --extract
    python -m studies.embedding_tasks cifar10 text [--trials 10] [--only MODEL ...]
    python -m studies.embedding_tasks report

Every trial draws a new order of rows. Accuracy is the mean over tasks after the last task, under the two protocols of
``ccmem.paper.experiments.protocol``. The events part visits all tasks three times in random order, with new rows at
each visit, and scores alarms and returns; a blind clock with as many alarms is shown beside. Results are added to
``studies/evidence/embeddings`` after every run; ``report`` writes them into the docs.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

import ccmem
from ccmem import AdaptiveCCM, DiscriminantClassifier, ModalClassifier
from ccmem.io.streams.splits import class_tasks
from ccmem.paper.experiments.protocol import PROTOCOLS, Benchmark, run
from ccmem.paper.rivals import NearestMean, NearestNeighbour, Replay
from studies import embeddings, text_stream
from studies.pages import put_between
from studies.scoreboard.candidates import Candidate
from studies.scoreboard.table import markdown
from studies.scoreboard.tasks import Tasks, summed

HERE = Path(__file__).parent
KEPT = HERE / "evidence" / "embeddings"
PAGE = HERE.parent / "docs" / "embeddings.md"
SETS = {"cifar10": embeddings.features_file, "text": text_stream.features_file}
TASKS = (5, 10)
TURNS = 3
"""Visits of every task in the events part."""


class RandomRidge(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Ridge regression of one-hot labels on rectified random projections, from running sums (RanPAC's second stage).

        h = max(0, x R),   G = sum h h',   C = sum h y',   scores = h (G + ridge trace(G) / M I)^-1 C

    R has standard normal entries and is drawn from the seed, so it is not counted in ``n_floats_``. McDonnell et al.,
    "RanPAC: random projections and pre-trained models for continual learning" (2023).
    """

    def __init__(self, n_units: int = 1000, ridge: float = 1e-3, random_state: int = 0) -> None:
        self.n_units, self.ridge, self.random_state = n_units, ridge, random_state

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> RandomRidge:
        """Add rows to the sums."""
        if not hasattr(self, "classes_"):
            self.classes_ = np.asarray(classes)
            draws = np.random.default_rng(self.random_state).normal(size=(X.shape[1], self.n_units))
            self._projection = draws.astype(np.float32)
            self._gram = np.zeros((self.n_units, self.n_units), np.float64)
            self._targets = np.zeros((self.n_units, len(self.classes_)))
        h = self._hidden(X)
        self._gram += h.T @ h
        self._targets += h.T @ (np.asarray(y)[:, None] == self.classes_).astype(np.float32)
        self._weights: Any = None
        return self

    def _hidden(self, X: Any) -> Any:
        return np.maximum(np.asarray(X, np.float32) @ self._projection, 0)

    def predict(self, X: Any) -> Any:
        """Return the class with the largest score."""
        if self._weights is None:
            ridge = self.ridge * np.trace(self._gram) / self.n_units
            self._weights = np.linalg.solve(self._gram + ridge * np.eye(self.n_units), self._targets)
        return self.classes_[(self._hidden(X) @ self._weights).argmax(axis=1)]

    @property
    def n_floats_(self) -> int:
        """Number of floats kept: half of the symmetric matrix, and the targets."""
        return self.n_units * (self.n_units + 1) // 2 + self._targets.size


class JointLDA(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Linear discriminant analysis of all rows at once, which are kept; the covariance is shrunk by a tenth.

    Streaming LDA (Hayes and Kanan, 2020) gives the same answers from running sums, in any order of rows.
    """

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> JointLDA:
        """Keep the rows."""
        self._rows, self._labels = [*getattr(self, "_rows", ()), X], [*getattr(self, "_labels", ()), y]
        self._rule: Any = None
        return self

    def predict(self, X: Any) -> Any:
        """Return the class with the largest discriminant."""
        if self._rule is None:
            rows, labels = np.concatenate(self._rows), np.concatenate(self._labels)
            self.classes_, codes = np.unique(labels, return_inverse=True)
            means = np.stack([rows[codes == code].mean(axis=0) for code in range(len(self.classes_))])
            centred = rows - means[codes]
            scatter = (centred.T @ centred).astype(np.float64) / len(rows)
            width = len(scatter)
            scatter = 0.9 * scatter + 0.1 * np.trace(scatter) / width * np.eye(width)
            weights = np.linalg.solve(scatter, means.T)
            self._rule = weights, -0.5 * np.einsum("ij,ji->i", means, weights)
        weights, biases = self._rule
        return self.classes_[(X @ weights + biases).argmax(axis=1)]

    @property
    def n_floats_(self) -> int:
        """Number of floats that streaming LDA needs for the same answers."""
        width = self._rows[0].shape[1]
        return width * (width + 1) // 2 + len(self.classes_) * (width + 1)


def models(width: int, n_tasks: int) -> dict[str, Callable[[int], Any]]:
    """Return the models by name; budgets are the floats of the memory with 500 units and of the discriminant."""

    def memory(units: int, **how: Any) -> Callable[[int], Any]:
        return lambda seed: ModalClassifier(AdaptiveCCM(n_slots=units // n_tasks), **how)

    small, large = 550 * width, (width // 2 + 64 + 220) * width
    found: dict[str, Callable[[int], Any]] = {
        "memory, 125 units": memory(125),
        "memory, 500 units": memory(500),
        "memory, 500 units, own metric": memory(500, metric="own"),
        "discriminant": lambda seed: DiscriminantClassifier(),
        "nearest class mean": lambda seed: NearestMean(),
        "nearest class mean, cosine": lambda seed: NearestMean("cosine"),
        "linear discriminant, all rows (joint)": lambda seed: JointLDA(),
    }
    for floats, size in ((small, "as memory"), (large, "as discriminant")):
        found[f"random projection and ridge, {size}"] = lambda seed, f=floats: RandomRidge(
            int(np.sqrt(2 * f)) - 10, RIDGE, seed
        )
        found[f"feature replay, {size}"] = lambda seed, f=floats: Replay(
            (64,), learning_rate=RATE, max_floats=f, random_state=seed
        )
        found[f"nearest neighbours, {size}"] = lambda seed, f=floats: NearestNeighbour(max_floats=f, random_state=seed)
    return found


ROWS: dict[str, int] = {}
"""Largest number of rows of the training and the test part; see ``--train`` and ``--test``."""
RIDGE, RATE = 1e-3, 1e-3
"""Ridge and learning rate of the rivals: fixed, not tuned; ``--part validate`` compares others."""
ORDER_FREE = ("nearest class mean", "nearest class mean, cosine", "linear discriminant, all rows (joint)")
"""Models whose result does not depend on the order of rows: one trial is enough."""


def load(name: str) -> Any:
    """Return the arrays of a set as attributes, at most ROWS rows of each part."""
    file = SETS[name]()
    if not file.exists():
        raise SystemExit(f"no {file}; the study that computes it is named at the top of this file")
    with np.load(file) as arrays:
        names = ("X_train", "y_train", "X_test", "y_test")
        return SimpleNamespace(**{key: arrays[key][: ROWS.get(key[2:])] for key in names})


def trial(model: Any, benchmark: Benchmark, seed: int) -> dict[str, Any]:
    """Return accuracies, floats, blocks and processor time of one trial."""
    began = time.process_time()
    outcomes = run(model, benchmark, benchmark.stream([seed, 0]))
    fitted = outcomes["strict"].model
    result = {protocol: round(outcomes[protocol].metrics()["ACC"], 4) for protocol in PROTOCOLS}
    memory = getattr(fitted, "memory_", None)
    blocks = {"blocks": int(memory.n_blocks_), "events": len(memory.events_)} if memory is not None else {}
    return {**result, "floats": int(fitted.n_floats_), "seconds": round(time.process_time() - began, 1), **blocks}


def compare(name: str, trials: int, only: Sequence[str], n_tasks: Sequence[int]) -> None:
    """Run the trials that are not stored yet, and all trials of the models in ``only``."""
    data, file = load(name), KEPT / f"{name}.json"
    kept = json.loads(file.read_text()) if file.exists() else {}
    kept |= {"train": len(data.y_train), "test": len(data.y_test), "columns": data.X_train.shape[1]}
    for count in n_tasks:
        benchmark = Benchmark.of(data, count)
        rows = kept.setdefault(f"{count} tasks", {})
        made = models(data.X_train.shape[1], count)
        for model in only or made:
            found = {} if only else rows.get(model, {})
            for seed in range(1 if model in ORDER_FREE else trials):
                if str(seed) not in found:
                    found[str(seed)] = trial(made[model](seed), benchmark, seed)
                    print(name, count, model, seed, found[str(seed)], flush=True)
                rows[model] = found
                _store(file, kept)


def _store(file: Path, kept: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({**kept, "ccmem": ccmem.__version__}, indent=1) + "\n")


def visits(y: Any, n_tasks: int, seed: int) -> tuple[Any, Tasks]:
    """Return rows and changes: every task in each of three turns, in random order, never twice in a row."""
    rng, order = np.random.default_rng([seed, n_tasks]), []
    for _ in range(TURNS):
        turn = rng.permutation(n_tasks).tolist()
        order += turn if not order or turn[0] != order[-1] else turn[::-1]
    tasks = class_tasks(y, n_tasks)
    pools = [rng.permutation(np.flatnonzero(np.isin(y, task))) for task in tasks]
    size = min(map(len, pools)) // TURNS
    places = [order[:i].count(task) for i, task in enumerate(order)]
    parts = [pools[task][place * size : (place + 1) * size] for task, place in zip(order, places, strict=True)]
    return np.concatenate(parts), Tasks([size * i for i in range(1, len(order))], order)


def events(name: str, trials: int, n_tasks: Sequence[int]) -> None:
    """Score alarms and returns of the memory with default settings."""
    data, file = load(name), KEPT / f"{name}.json"
    kept = json.loads(file.read_text()) if file.exists() else {}
    for count in n_tasks:
        candidate, plan, runs = Candidate(AdaptiveCCM), [], []
        for seed in range(trials):
            rows, tasks = visits(data.y_train, count, seed)
            plan.append(tasks)
            runs.append(candidate.rows(data.X_train[rows]))
        title = f"{name}, {count} tasks, {plan[0].changes[0]:,} rows a visit, {trials} orders"
        made = summed(title, {"": plan}, {"": runs})
        kept[f"events, {count} tasks"] = markdown(made, targets=False).strip()
        kept[f"microseconds, {count} tasks"] = round(candidate.seconds / candidate.rows_seen * 1e6, 1)
        print(kept[f"events, {count} tasks"], flush=True)
        _store(file, kept)


def validate(name: str) -> None:
    """Compare settings of the rivals on a fifth of the training part; the test part is not used."""
    benchmark = Benchmark.validation(load(name), part=0.2)
    for ridge in (1e-4, 1e-3, 1e-2):
        print("ridge", ridge, trial(RandomRidge(1000, ridge), benchmark, 0), flush=True)
    for rate in (1e-4, 3e-4, 1e-3, 3e-3):
        replay = Replay((64,), learning_rate=rate, max_floats=550 * benchmark.X.shape[1], random_state=0)
        print("rate", rate, trial(replay, benchmark, 0), flush=True)
    for metric in ("own", "shared"):
        for winners in (1, 5, 8, 16):
            model = ModalClassifier(AdaptiveCCM(n_slots=100), n_winners=winners, metric=metric)
            print("metric", metric, "winners", winners, trial(model, benchmark, 0), flush=True)


def report() -> None:
    """Write the stored results into the page."""
    for file in sorted(KEPT.glob("*.json")):
        kept, parts = json.loads(file.read_text()), []
        for count in TASKS:
            rows = kept.get(f"{count} tasks", {})
            head = "| model | strict ACC | paper ACC | floats | trials | blocks |"
            lines = [f"**{count} tasks**", "", head, "|---|---|---|---|---|---|"]
            for model, found in sorted(rows.items(), key=lambda row: -_mean(row[1], "strict")):
                ours = model.startswith(("memory", "discriminant"))
                blocks = sorted({one["blocks"] for one in found.values() if "blocks" in one})
                lines.append(
                    f"| {f'**{model}**' if ours else model} | {_figure(found, 'strict')} | {_figure(found, 'paper')} | "
                    f"{_mean(found, 'floats'):,.0f} | {len(found)} | {'-'.join(map(str, blocks))} |"
                )
            parts += ["\n".join(lines)] if rows else []
            parts += [kept[f"events, {count} tasks"]] if f"events, {count} tasks" in kept else []
        put_between(PAGE, file.stem, "\n\n".join(parts))


def _mean(found: dict[str, Any], key: str) -> float:
    return float(np.mean([one[key] for one in found.values()]))


def _figure(found: dict[str, Any], key: str) -> str:
    values = [one[key] for one in found.values()]
    return f"{np.mean(values):.4f}" + (f" ± {np.std(values, ddof=1):.4f}" if len(values) > 1 else "")


def main() -> None:
    """Compare models, score events, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="+", choices=[*SETS, "report"])
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--tasks", type=int, nargs="*", default=TASKS)
    parser.add_argument("--only", nargs="*", default=[], metavar="MODEL", help="run these models again")
    parser.add_argument("--part", nargs="*", default=("compare", "events"), choices=["compare", "events", "validate"])
    parser.add_argument("--train", type=int, help="training rows (default: all that are cached)")
    parser.add_argument("--test", type=int, help="test rows (default: all that are cached)")
    options = parser.parse_args()
    ROWS.update({part: n for part, n in (("train", options.train), ("test", options.test)) if n})
    for what in options.what:
        if what == "report":
            report()
            continue
        if "validate" in options.part:
            validate(what)
        if "events" in options.part:
            events(what, options.trials, options.tasks)
        if "compare" in options.part:
            compare(what, options.trials, options.only, options.tasks)


if __name__ == "__main__":
    main()
