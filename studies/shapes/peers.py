"""Streaming segmentation by ClaSS and FLOSS, beside a memory behind each layer, on every third segmented series.

claspy, stumpy and statsmodels are needed; ``pip install --no-deps claspy stumpy statsmodels patsy`` keeps the versions
of numpy and numba. Both peers choose the length of their subsequences by claspy's SuSS from the first 10,000 rows,
which is all of most series; the layers use the first 1,024 rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from studies.segments import covering

from . import data
from .activity import FRONTS

EVERY_SERIES = 3
"""Every third series of a collection is run, because the peers take about a millisecond per row."""
BUFFER = 10_000
"""Rows in the sliding window of a peer, as published for ClaSS."""
FLOSS_LIMIT = 0.45
"""Value of FLOSS's corrected arc curve below which its minimum is a change."""


def class_changes(X: Any) -> list[int]:
    """Return the change points of ClaSS with claspy's defaults."""
    _mend_numpy()
    from claspy.streaming.segmentation import StreamingClaSPSegmentation

    n = min(BUFFER, len(X))
    stream = StreamingClaSPSegmentation(n_timepoints=n, n_warmup=n, log_cps=True)
    for value in X.tolist():
        stream.update(value)
    return sorted({int(change) for change in stream.change_points if 0 < change < len(X)})


def floss_changes(X: Any) -> list[int]:
    """Return the change points of FLOSS; its window is half of a series, at most 10,000 rows.

    A change is the minimum of the corrected arc curve, if it is below the limit and at least five subsequence lengths
    after the last change.
    """
    _mend_numpy()
    import stumpy
    from claspy.window_size import map_window_size_methods

    m = int(map_window_size_methods("suss")(X[:BUFFER]))
    n = min(BUFFER, len(X) // 2)
    if n <= 10 * m:
        return []
    first = X[:n].astype(np.float64)
    stream = stumpy.floss(stumpy.stump(first, m), first, m=m, L=m)
    changes, last = [], 0
    for offset in range(len(X) - n + 1):
        if offset:
            stream.update(float(X[n + offset - 1]))
        begin = max(0, last + 5 * m - offset)
        curve = stream.cac_1d_[begin:]
        if len(curve) and curve.min() < FLOSS_LIMIT:
            last = offset + begin + int(curve.argmin())
            changes.append(last)
    return changes


def _mend_numpy() -> None:
    if not hasattr(np, "trapz"):  # claspy still uses the name that numpy 2 removed
        setattr(np, "trapz", np.trapezoid)  # noqa: B010


def peers(folder: Path) -> list[dict[str, Any]]:
    """Covering and processor time of streaming detectors on every third segmented series."""
    from .parts import _blind, _onsets

    detectors: dict[str, Callable[[Any], list[int]]] = {
        f"{name} + AdaptiveCCM": lambda X, front=front: _onsets(front(), X)  # type: ignore[misc]
        for name, front in FRONTS.items()
    }
    detectors |= {"FLOSS (stumpy)": floss_changes, "ClaSS (claspy)": class_changes}
    rows = []
    for collection in ("tssb", "utsa"):
        chosen = data.segmented(folder, collection)[::EVERY_SERIES]
        for name, detect in detectors.items():
            detect(chosen[0].X[:3000])  # compile before timing
            scores, seconds = [], 0.0
            for series in chosen:
                n, began = len(series.X), time.process_time()
                found = detect(series.X)
                seconds += time.process_time() - began
                pair = (covering(series.changes, kind, n) for kind in (found, _blind(len(found), n)))
                scores.append([*pair, len(found), len(series.changes)])
            means = np.array(scores)
            n_rows = sum(len(series.X) for series in chosen)
            rows.append(
                {
                    "series": f"{collection} ({len(chosen)})",
                    "detector": name,
                    "covering": float(means[:, 0].mean()),
                    "blind": float(means[:, 1].mean()),
                    "alarms": int(means[:, 2].sum()),
                    "changes": int(means[:, 3].sum()),
                    "us a row": 1e6 * seconds / n_rows,
                }
            )
            print(rows[-1], flush=True)
    return rows
