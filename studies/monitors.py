"""Monitors of embeddings compared at equal expected time between false alarms.

    python -m studies.monitors streams FILE.npz          # needs the features of studies.embeddings and text_stream
    python -m studies.monitors run FILE.npz ccmem
    python -m studies.monitors run FILE.npz windows
    python studies/monitors.py run FILE.npz alibi        # in an environment with alibi-detect and PyTorch
    python studies/monitors.py run FILE.npz evidently    # in an environment with Evidently
    python -m studies.monitors report

A stream has 500 reference rows, 2,000 rows of the same classes, then 500 rows after a change: all of them, or one in
three on average, come from classes that were never seen before. Alarms before the change are false; a change is found
if an alarm follows within 500 rows. Every monitor is set to one false alarm in 2,000 rows; the memory also runs with
its default, one in a million. LSDD of alibi-detect, and MMD and distance of Evidently (0.7 needs pandas below 3), have
not been run to the end. Time is processor time per row on one thread, without calibration.
This file imports neither ccmem nor the others before they are needed, because they require different versions of numpy.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

KEPT = Path(__file__).parent / "evidence" / "embeddings" / "monitors"
PAGE = Path(__file__).parents[1] / "docs" / "howto" / "embeddings.md"
REFERENCE, CALM, AFTER = 500, 2_000, 500
SEEDS = 3
EVERY = 2_000
"""Expected number of rows between false alarms."""
WINDOW = 50
"""Rows in the window of alibi-detect's detectors; Evidently gets windows of twice this size."""
SHARES = {"new classes": 1.0, "a third from new classes": 1 / 3}
Monitor = Callable[[Any], Callable[[Any], bool]]
"""Function from reference rows to a function that takes one row and returns True if it raises an alarm."""


def make_streams(file: Path) -> None:
    """Write all streams to one file: arrays of rows named ``set|kind|seed``."""
    from studies import embeddings, text_stream

    arrays = {}
    for name, source in (("CIFAR-10 images", embeddings), ("package descriptions", text_stream)):
        with np.load(source.features_file()) as features:
            X, y = features["X_train"], features["y_train"]
        for seed in range(SEEDS):
            rng = np.random.default_rng([seed, 7])
            classes = rng.permutation(10)
            known, unknown = (rng.permutation(np.flatnonzero(np.isin(y, part))) for part in (classes[:5], classes[5:]))
            for kind, share in SHARES.items():
                new = rng.random(AFTER) < share
                rows = known[: REFERENCE + CALM + AFTER].copy()
                rows = np.resize(rows, REFERENCE + CALM + AFTER)
                rows[-AFTER:][new] = unknown[: new.sum()]
                arrays[f"{name}|{kind}|{seed}"] = X[rows]
    np.savez(file, **arrays)


def memory(every: float) -> Monitor:
    """Return the monitor that reports events of AdaptiveCCM."""
    from ccmem import AdaptiveCCM

    def start(reference: Any) -> Callable[[Any], bool]:
        model = AdaptiveCCM(false_alarm_every=every).partial_fit(reference)

        def step(row: Any) -> bool:
            n = len(model.events_)
            model.learn_one(row)
            return len(model.events_) > n

        return step

    return start


def online(kind: str) -> Monitor:
    """Return the monitor of one of alibi-detect's online detectors, which is reset after an alarm."""
    from alibi_detect.cd import LSDDDriftOnline, MMDDriftOnline

    def start(reference: Any) -> Callable[[Any], bool]:
        np.random.seed(0)  # noqa: NPY002 - alibi-detect draws from this generator
        detector = {"MMD": MMDDriftOnline, "LSDD": LSDDDriftOnline}[kind](
            reference, ert=EVERY, window_size=WINDOW, backend="pytorch", n_bootstraps=2 * EVERY, verbose=False
        )

        def step(row: Any) -> bool:
            found = bool(detector.predict(row)["data"]["is_drift"])
            if found:
                detector.reset_state()
            return found

        return step

    return start


def batches(method: str) -> Monitor:
    """Return the monitor that gives Evidently disjoint windows; its bootstrap has the level of one alarm in EVERY."""
    from evidently.legacy.metrics.data_drift import embedding_drift_methods as methods

    size = 2 * WINDOW
    made = getattr(methods, method)(bootstrap=True, quantile_probability=1 - size / EVERY)

    def start(reference: Any) -> Callable[[Any], bool]:
        import pandas as pd

        before, waiting = pd.DataFrame(reference), []

        def step(row: Any) -> bool:
            waiting.append(row)
            if len(waiting) < size:
                return False
            _, found, _ = made(pd.DataFrame(np.array(waiting)), before)
            waiting.clear()
            return bool(found)

        return step

    return start


def windows_mmd() -> Monitor:
    """Return the kernel two-sample test on disjoint windows, at the level of one alarm in EVERY rows.

    The squared maximum mean discrepancy (Gretton et al., 2012; Gaussian kernel, median distance) of a window and 400
    reference rows is compared with its distribution over 1,000 random divisions of the reference rows.
    """
    size = 2 * WINDOW

    def start(reference: Any) -> Callable[[Any], bool]:
        rows = np.asarray(reference, np.float64)
        squares, rest = (rows * rows).sum(axis=1), len(rows) - size
        apart = squares[:, None] + squares - 2 * rows @ rows.T
        width, rng = np.median(apart), np.random.default_rng(0)
        kernel = np.exp(-apart / width)

        def divided() -> float:
            order = rng.permutation(len(rows))
            a, b = order[:size], order[size:]
            within = kernel[np.ix_(a, a)].mean() + kernel[np.ix_(b, b)].mean()
            return float(within - 2 * kernel[np.ix_(a, b)].mean())

        limit = np.quantile([divided() for _ in range(1_000)], 1 - size / EVERY)
        known, waiting = kernel[:rest, :rest].mean(), []

        def step(row: Any) -> bool:
            waiting.append(np.asarray(row, np.float64))
            if len(waiting) < size:
                return False
            X = np.array(waiting)
            waiting.clear()
            own = (X * X).sum(axis=1)
            inner = np.exp(-(own[:, None] + own - 2 * X @ X.T) / width).mean()
            cross = np.exp(-(own[:, None] + squares[:rest] - 2 * X @ rows[:rest].T) / width).mean()
            return bool(inner + known - 2 * cross > limit)

        return step

    return start


FAMILIES: dict[str, dict[str, Callable[[], Monitor]]] = {
    "ccmem": {"AdaptiveCCM(false_alarm_every=2000)": lambda: memory(EVERY), "AdaptiveCCM()": lambda: memory(1e6)},
    "windows": {"windows of 100 rows, MMD": windows_mmd},
    "alibi": {"alibi-detect, online MMD": lambda: online("MMD"), "alibi-detect, online LSDD": lambda: online("LSDD")},
    "evidently": {
        "Evidently, classifier": lambda: batches("model"),
        "Evidently, MMD": lambda: batches("mmd"),
        "Evidently, distance": lambda: batches("distance"),
    },
}


def watch(start: Monitor, rows: Any) -> dict[str, Any]:
    """Return false alarms, the delay of the first alarm after the change, and the time per row."""
    step = start(rows[:REFERENCE])
    began = time.process_time()
    alarms = [i for i, row in enumerate(rows[REFERENCE:]) if step(row)]
    seconds = time.process_time() - began
    late = [alarm - CALM + 1 for alarm in alarms if alarm >= CALM]
    return {
        "false": sum(alarm < CALM for alarm in alarms),
        "delay": late[0] if late else None,
        "microseconds": round(seconds / (CALM + AFTER) * 1e6, 1),
    }


def run(file: Path, family: str) -> None:
    """Run the monitors of a family on all streams, and store the results after each."""
    KEPT.mkdir(parents=True, exist_ok=True)
    kept = KEPT / f"{family}.json"
    results: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    with np.load(file) as streams:
        for name, make in FAMILIES[family].items():
            for stream in streams.files:
                if stream not in results.setdefault(name, {}):
                    results[name][stream] = watch(make(), streams[stream])
                    print(name, stream, results[name][stream], flush=True)
                    kept.write_text(json.dumps(results, indent=1) + "\n")


def report() -> None:
    """Write the table into the how-to."""
    from studies.pages import put_between

    head = "| monitor | stream | changes found | median delay | false alarms | us per row |"
    lines = [head, "|---|---|---|---|---|---|"]
    for family in FAMILIES:
        file = KEPT / f"{family}.json"
        for name, streams in json.loads(file.read_text()).items() if file.exists() else ():
            for group in dict.fromkeys(stream.rpartition("|")[0] for stream in streams):
                found = [one for stream, one in streams.items() if stream.rpartition("|")[0] == group]
                delays = [one["delay"] for one in found if one["delay"] is not None]
                shown = f"{np.median(delays):.0f}" if delays else "-"
                title = f"**{name}**" if family == "ccmem" else name
                lines.append(
                    f"| {title} | {group.replace('|', ', ')} | {len(delays)} of {len(found)} | {shown} | "
                    f"{sum(one['false'] for one in found)} | {np.median([one['microseconds'] for one in found]):,.0f} |"
                )
    put_between(PAGE, "monitors", "\n".join(lines))


def main() -> None:
    """Make the streams, run monitors, or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["streams", "run", "report"])
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("family", nargs="?", choices=list(FAMILIES))
    options = parser.parse_args()
    if options.what == "streams":
        make_streams(options.file)
    elif options.what == "run":
        run(options.file, options.family)
    else:
        report()


if __name__ == "__main__":
    main()
