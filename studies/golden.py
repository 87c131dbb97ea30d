"""Golden streams: digests of every estimator on fixed streams, to compare two versions bit for bit.

    python -m studies.golden --record      # before a change: writes studies/evidence/golden/streams.json
    python -m studies.golden               # after it: names every stream that differs, exit code 1 if any does

Each entry is one estimator with one set of options on one stream, learned in uneven chunks. It holds SHA-256 digests
of the answers of learning, of the prototypes, of predictions before and after saving and loading, and of the events.
Digests depend on the processor's vector width only where a compiler contracts operations, so record and compare on the
same machine.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import ccmem

FILE = Path(__file__).parent / "evidence" / "golden" / "streams.json"
N_ROWS, WIDTHS = 1500, (3, 33)
VISITS = (0, 1, 2, 0, 1, 0)
"""Regime of each sixth of a stream."""

GRIDS, STEPS = ("rectangular", "hexagonal"), ("hebbian", "adam", "rmsprop")
RATES = [{"learning_rate": 0.35, "rate_decay": 0.99}, {"learning_rate": 0.05}]
GRID: dict[str, list[dict[str, Any]]] = {
    "IncrementalWTA": [
        {"n_units": 9, "n_winners": k, "p": p, **rate}
        for k, p, rate in itertools.product((1, 3), (1.0, 2.0, 3.0, np.inf), RATES)
    ],
    "IncrementalGMM": [
        {"n_units": 9, "p": p, "temperature": t, **rate}
        for p, t, rate in itertools.product((1.0, 2.0, np.inf), (0.0285, 20.0), RATES)
    ],
    "ARTC2A": [
        {"max_units": units, "vigilance": vigilance, "vigilance_reset": reset, **RATES[0]}
        for units, vigilance, reset in itertools.product((None, 8), (0.7, 0.95), ("input", "pair"))
    ],
    "CCM": [
        {"n_slots": 5, "vigilance": v, "alarm_limit": 20, "counters": counters, "init": init, "random_state": 0, **rate}
        for v, counters, init, rate in itertools.product(
            (0.7, 0.9), ("consecutive", "cumulative"), ("uniform", "normal"), RATES
        )
    ]
    + [
        {"n_slots": 5, "vigilance": v, "alarm_limit": 20, "recall_limit": 10, "fair": True, "random_state": 0, **rate}
        for v, rate in itertools.product((0.7, 0.9), RATES)
    ],
    "FrequencySensitiveWTA": [
        {"n_units": 9, "fairness": fairness, "step": step, **RATES[0]}
        for fairness, step in itertools.product(("wins", "conscience"), STEPS)
    ],
    "SelfOrganisingMap": [
        {"rows": 3, "columns": 4, "topology": topology, "schedule": schedule, "sigma": sigma, "horizon": 500.0}
        for topology, schedule, sigma in itertools.product(GRIDS, ("fading", "elastic"), (0.4, 2))
    ],
    "NeuralGas": [
        {"n_units": 20, "reach": reach, "horizon": horizon, "p": p}
        for reach, horizon, p in itertools.product((0.3, 10.0), (500.0, np.inf), (1.0, 2.0))
    ],
    "GrowingNeuralGas": [
        {"n_units": 20, "insert_every": 20, "max_age": 10, "utility": utility, "step": step, **rate}
        for utility, step, rate in itertools.product((None, 2.0), STEPS, RATES)
    ],
    "SOINN": [
        {"max_units": bound, "prune_every": every, "noise": noise}
        for bound, every, noise in itertools.product((None, 8), (20, 100), (0.5, 1.0))
    ],
    "FuzzyART": [
        {"max_units": bound, "vigilance": vigilance, "learning_rate": rate}
        for bound, vigilance, rate in itertools.product((None, 8), (0.3, 0.8), (0.1, 1.0))
    ],
    "AdaptiveCCM": [
        {"n_slots": slots, "max_units": bound, "false_alarm_every": every}
        for slots, bound, every in itertools.product((3, 25), (None, 12), (1e4, 1e6))
    ],
}
PREDICTORS: dict[str, list[dict[str, Any]]] = {
    "OnlineMLP": [{"random_state": 0}],
    "GatedMLP": [{"random_state": 0}],
    "DiscriminantClassifier": [{}],
    "LVQ": [
        {"units_per_class": 3, "rule": rule, "step": step}
        for rule, step in itertools.product(("lvq1", "glvq", "attract"), STEPS)
    ],
    "ARTMAP": [
        {"max_units": bound, "vigilance": vigilance, "learning_rate": rate}
        for bound, vigilance, rate in itertools.product((None, 8), (0.0, 0.7), (0.1, 1.0))
    ],
}


def stream(width: int, dtype: Any, missing: bool = False) -> tuple[Any, Any]:
    """Return rows of three regimes that come back, and labels, a fifth of them -1 (missing)."""
    rng = np.random.default_rng([width, 7])
    levels, spreads = rng.normal(0, 3, (3, width)), rng.uniform(0.2, 2, (3, width))
    regime = np.repeat(VISITS, N_ROWS // len(VISITS))
    X = levels[regime] + spreads[regime] * rng.normal(size=(N_ROWS, width)) + 5
    y = np.where(rng.random(N_ROWS) < 0.2, -1, 2 * regime + (X[:, 0] > levels[regime, 0] + 5))
    if missing:
        X[rng.random(X.shape) < 0.1] = np.nan
        X[600:900, 0] = np.nan
    return X.astype(dtype), y


def chunks(n_rows: int) -> list[slice]:
    """Return uneven pieces that cover the rows."""
    edges = [0, 1, 2, 17, 64, 200, 333, 700, 1101, n_rows]
    return [slice(first, last) for first, last in itertools.pairwise(edges)]


def digest(*parts: Any) -> str:
    """Return the first 16 hex digits of the SHA-256 of arrays and plain values."""
    found = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            found.update(f"{part.dtype}{part.shape}".encode())
            found.update(np.ascontiguousarray(part).tobytes())
        else:
            found.update(repr(part).encode())
    return found.hexdigest()[:16]


def entry(estimator: Any, X: Any, y: Any = None) -> dict[str, str]:
    """Learn a stream in chunks and describe the result."""
    labels = {} if y is None else {"classes": np.unique(y[y >= 0])}
    learned = []
    for piece in chunks(len(X)):
        if y is None:
            estimator.partial_fit(X[piece])
            learned.append(np.array(getattr(estimator, "labels_", [])))
        else:
            estimator.partial_fit(X[piece], y[piece], **labels)
    memory = getattr(estimator, "memory_", estimator)
    rows = np.nan_to_num(X[:300])
    known = {"learned": digest(*learned), "predicted": digest(np.asarray(estimator.predict(rows)))}
    for name in ("prototypes_", "coef_"):
        if hasattr(memory, name):
            known[name] = digest(getattr(memory, name))
    if hasattr(memory, "events_"):
        known["events"] = digest([tuple(event)[:8] for event in memory.events_])  # without the times
        known["n_events"] = str(len(memory.events_))
    again = ccmem.from_bytes(estimator.to_bytes())
    again.partial_fit(X[:100], *(() if y is None else (y[:100],)))
    known["continued"] = digest(np.asarray(again.predict(rows)))
    return known


def cases() -> Iterator[tuple[str, Any, Any, Any]]:
    """Yield a name, an estimator, rows and labels (or None)."""
    for width, dtype in itertools.product(WIDTHS, (np.float32, np.float64)):
        X, y = stream(width, dtype)
        place = f"{width} columns {np.dtype(dtype).name}"
        for name, settings in {**GRID, **PREDICTORS}.items():
            for options in settings:
                model = getattr(ccmem, name)(**options)
                yield f"{name} {options} {place}", model, X, y if name in PREDICTORS else None
        for name, settings in GRID.items():
            voting = ccmem.ModalClassifier(getattr(ccmem, name)(**settings[0]), unlabeled=-1)
            yield f"ModalClassifier {name} {place}", voting, X, y
        for options in (
            {"metric": "shared"},
            {"n_winners": 5},
            {"balanced": False},
            {"label_use": "merge"},
            {"label_use": "guide"},
        ):
            voting = ccmem.ModalClassifier(ccmem.AdaptiveCCM(), unlabeled=-1, random_state=0, **options)
            yield f"ModalClassifier {options} {place}", voting, X, y
        gaps, y = stream(width, dtype, missing=True)
        for options in GRID["AdaptiveCCM"]:
            yield f"AdaptiveCCM missing {options} {place}", ccmem.AdaptiveCCM(**options), gaps, None


def run() -> dict[str, dict[str, str]]:
    """Return the entry of every case."""
    found = {}
    for name, estimator, X, y in cases():
        found[name] = entry(estimator, X, y)
        print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="write the file instead of comparing with it")
    options = parser.parse_args()
    found = run()
    if options.record:
        FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(f"recorded {len(found)} streams")
        return 0
    known = json.loads(FILE.read_text(encoding="utf-8"))
    changed = {
        name: [key for key in known[name] | found.get(name, {}) if known[name].get(key) != found.get(name, {}).get(key)]
        for name in known
        if known[name] != found.get(name)
    }
    for name, keys in changed.items():
        print(f"{name}: {', '.join(keys)}")
    new = len(found.keys() - known.keys())
    print(f"{len(known) - len(changed)} of {len(known)} streams are bit-identical, {new} are new")
    return 1 if changed else 0


if __name__ == "__main__":
    raise SystemExit(main())
