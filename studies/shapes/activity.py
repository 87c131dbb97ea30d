"""Activity of people from raw channels: accuracy for a new person with all and with few labels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ccmem import DiscriminantClassifier, ShapeLayer, Stack, WindowLayer

from . import data

DRAWS = 5
"""Number of draws of the labelled windows if few rows have a label."""
EVERY = 50
"""Rows from one labelled window to the next, for all classifiers but the stack, and for drawing labels."""
CONFIRMED = (8, 9, 10)
"""People whose recordings the "new person" rows are scored on. The spans were chosen with all ten people."""
FRONTS: dict[str, Callable[..., Any]] = {"WindowLayer": WindowLayer, "ShapeLayer": ShapeLayer}


def _splits(recordings: list[data.Recording]) -> dict[str, tuple[list[Any], list[Any]]]:
    new = ([r for r in recordings if r.person not in CONFIRMED], [r for r in recordings if r.person in CONFIRMED])
    return {"new person": new, "same person": (recordings[::2], recordings[1::2])}


def _whole_windows(activity: Any, window: int, hop: int) -> Any:
    """Return the activity of every window whose rows all have that activity, 0 for other windows."""
    starts = range(0, len(activity) - window + 1, hop)
    return np.array([_common(activity[start : start + window]) for start in starts])


def _common(labels: Any) -> int:
    return int(labels[0]) if (labels == labels[0]).all() else 0


def _drawn(recordings: list[Any], window: int, share: float, seed: int) -> list[Any]:
    """Draw labels for a random ``share`` of the rows, a window at a time, from windows of one activity.

    A row lies in ``window / EVERY`` windows, and has a label if one of them is drawn.
    """
    rng, found = np.random.default_rng(seed), []
    chance = 1 - (1 - share) ** (EVERY / window)
    for recording in recordings:
        labels = np.full(len(recording.X), np.nan)
        for place, label in enumerate(_whole_windows(recording.activity, window, EVERY)):
            if label and rng.random() < chance:
                labels[place * EVERY : place * EVERY + window] = label
        found.append(labels)
    return found


def _stack_score(front: Any, train: list[Any], labels: list[Any], test: list[Any]) -> float:
    stack = Stack([front], DiscriminantClassifier())
    for recording, y in zip(train, labels, strict=True):
        stack.partial_fit(recording.X, y)
    layer, right, n = stack.layers_[0], 0, 0
    for recording in test:
        y = _whole_windows(recording.activity, layer.window_, layer.hop_)
        right += int((stack.predict(recording.X)[y > 0] == y[y > 0]).sum())
        n += int((y > 0).sum())
    return right / n


def _forest_scores(layer: Any, train: list[Any], labels: list[Any], test: list[Any]) -> dict[str, float]:
    """Score forests on the labelled windows, with the same features as the stack."""
    from river import forest
    from sklearn.ensemble import RandomForestClassifier

    def windows(recordings: list[Any], given: list[Any]) -> tuple[Any, Any]:
        X = np.concatenate([layer.transform(recording.X) for recording in recordings])
        y = np.concatenate([_whole_windows(np.nan_to_num(one), layer.window_, EVERY) for one in given])
        return X[y > 0], y[y > 0]

    X, y = windows(train, labels)
    new, truth = windows(test, [recording.activity for recording in test])
    offline = RandomForestClassifier(200, random_state=0).fit(X, y)
    online = forest.ARFClassifier(seed=0)
    for x, label in zip(X, y, strict=True):
        online.learn_one(dict(enumerate(x.tolist())), int(label))
    answers = [online.predict_one(dict(enumerate(x.tolist()))) for x in new]
    return {
        "forest, offline": float((offline.predict(new) == truth).mean()),
        "forest, River": float(np.mean([a == b for a, b in zip(answers, truth, strict=True)])),
    }


def activity(folder: Path, shares: Any = ((1.0, 1), (0.02, DRAWS), (0.01, DRAWS))) -> list[dict[str, Any]]:
    """Six activities from six raw channels at the waist."""
    rows = []
    for split, (train, test) in _splits(data.waist(folder)).items():
        probe = ShapeLayer().fit(train[0].X)
        layer = ShapeLayer(probe.window_, hop=EVERY).fit(train[0].X)
        for share, draws in shares:
            scores: dict[str, list[float]] = {}
            n_labels = []
            for seed in range(draws):
                labels = _drawn(train, probe.window_, share, seed)
                n_labels.append(sum(int((~np.isnan(y)).sum()) for y in labels))
                for name, front in FRONTS.items():
                    own = front() if front is ShapeLayer else front(probe.window_)
                    scores.setdefault(f"{name} + discriminant", []).append(_stack_score(own, train, labels, test))
                for name, score in _forest_scores(layer, train, labels, test).items():
                    scores.setdefault(f"ShapeLayer + {name}", []).append(score)
            for name, found in scores.items():
                rows.append(
                    {
                        "split": split,
                        "labels": share,
                        "labelled rows": float(np.mean(n_labels)),
                        "model": name,
                        "accuracy": float(np.mean(found)),
                        "deviation": float(np.std(found)),
                    }
                )
    return rows


# Cross-validation over people ----------------------------------------------------------------------------------------

WINDOW = 100
"""Rows in a window, two seconds; windows are a quarter apart."""
NEW_PEOPLE = ((1, 2, 3), (3, 4, 5), (5, 6, 7), (7, 8, 9), (9, 10, 1))
"""People who are predicted, three of ten in turn; the others are learned."""


def _rows_drawn(recordings: list[Any], share: float, seed: int) -> list[Any]:
    """Keep the labels of single rows, each with probability ``share``."""
    rng = np.random.default_rng(seed)
    kept = [(rng.random(len(r.X)) < share) & (r.activity > 0) for r in recordings]
    return [np.where(keep, r.activity, np.nan) for keep, r in zip(kept, recordings, strict=True)]


LABELS: dict[str, tuple[Callable[..., list[Any]], int]] = {
    "all": (lambda train, window, seed: [np.where(r.activity > 0, r.activity, np.nan) for r in train], 1),
    "1 % of rows": (lambda train, window, seed: _rows_drawn(train, 0.01, seed), 1),
    "1 % of windows": (lambda train, window, seed: _drawn(train, window, 1 - 0.99 ** (window / EVERY), seed), 2),
    "1 % of rows, whole windows": (lambda train, window, seed: _drawn(train, window, 0.01, seed), 2),
}
"""Ways to give labels, and the number of draws. Windows overlap by half; a labelled window labels all of its rows."""


def people(folder: Path) -> list[dict[str, Any]]:
    """Accuracy for new people, cross-validated: seven people learned, three predicted, in five ways."""
    recordings = data.waist(folder)
    scores: dict[tuple[str, str], list[float]] = {}
    missing: dict[str, list[int]] = {}
    for new in NEW_PEOPLE:
        train = [r for r in recordings if r.person not in new]
        test = [r for r in recordings if r.person in new]
        given = {kind: [draw(train, WINDOW, seed) for seed in range(n)] for kind, (draw, n) in LABELS.items()}
        for kind, draws in given.items():
            present = [np.unique(np.concatenate(labels)) for labels in draws]
            missing.setdefault(kind, []).extend(data.N_ACTIVITIES - int((p > 0).sum()) for p in present)
        for name, front in FRONTS.items():
            layer = front(WINDOW, hop=WINDOW // 4).fit(train[0].X)
            X = np.concatenate([layer.transform(r.X) for r in train])
            X_new = np.concatenate([layer.transform(r.X) for r in test])
            truth = np.concatenate([_whole_windows(r.activity, WINDOW, layer.hop_) for r in test])
            for kind, draws in given.items():
                for labels in draws:
                    codes = [np.where(np.isnan(y), -1, y).astype(int) for y in labels]
                    y = np.concatenate([layer.labels_of_windows(code) for code in codes])
                    found = DiscriminantClassifier().fit(X[y > 0], y[y > 0]).predict(X_new[truth > 0])
                    scores.setdefault((kind, name), []).append(float((found == truth[truth > 0]).mean()))
    return [
        {
            "labels": kind,
            "front": name,
            "accuracy": float(np.mean(found)),
            "lowest": float(np.min(found)),
            "activities without a label": float(np.mean(missing[kind])),
        }
        for (kind, name), found in scores.items()
    ]
