"""Scores of segmentations and recordings: covering, detected faults and returns, false and repeated alarms.

The covering of a segmentation (van den Burg and Williams 2020, after Arbelaez et al. 2010) asks of every true segment A
for the found segment A' that is most like it, and averages the overlaps |A n A'| / |A u A'| by the length of A:

    C = 1/T sum_A |A| max_A' |A n A'| / |A u A'|
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple


def covering(true_changes: Iterable[int], found_changes: Iterable[int], n_rows: int) -> float:
    """Return the covering of the true segments of ``n_rows`` rows by the found ones; 1 is perfect.

    A change at row c begins a segment there; changes at 0, beyond the end, or given twice make no segment.

    >>> covering([10], [10], 20), covering([10], [], 20), covering([10], [15], 20)
    (1.0, 0.5, 0.5833333333333333)
    """
    if n_rows < 1:
        raise ValueError(f"n_rows={n_rows}: a segmentation needs at least one row")
    true, found = _borders(true_changes, n_rows), _borders(found_changes, n_rows)
    total = 0.0
    for a, b in itertools.pairwise(true):
        best = 0.0
        for i in range(bisect.bisect_right(found, a) - 1, bisect.bisect_left(found, b)):
            c, d = found[i], found[i + 1]
            best = max(best, (min(b, d) - max(a, c)) / (max(b, d) - min(a, c)))
        total += (b - a) * best
    return total / n_rows


def _borders(changes: Iterable[int], n_rows: int) -> list[int]:
    return [0, *sorted({int(c) for c in changes if 0 < c < n_rows}), n_rows]


class RecordingScore(NamedTuple):
    """Result of :func:`score_recording`."""

    onset: bool
    """True if an event occurred between the fault and the return."""
    returned: bool | None
    """True if an event occurred after the return; None if the recording has no return."""
    false: int
    """Events after the warm-up, before the fault."""
    repeated: int
    """Further events after the first of the fault, and after the first of the return."""
    delay: int | None
    """Rows from the fault to its first event."""
    return_delay: int | None


def score_recording(steps: Sequence[int], onset: int, return_at: int | None, *, warm_up: int = 0) -> RecordingScore:
    """Score event ``steps`` of a recording that is normal, faulty from row ``onset`` and normal from ``return_at``.

    Events before row ``warm_up`` count for nothing.

    >>> score = score_recording([120, 430, 610, 640, 905], 600, 900, warm_up=400)
    >>> score.onset, score.returned, score.false, score.repeated, score.delay, score.return_delay
    (True, True, 1, 1, 10, 5)
    """
    if return_at is not None and return_at <= onset:
        raise ValueError(f"return_at={return_at} does not come after onset={onset}")
    counted = sorted(step for step in steps if step >= warm_up)
    first, last = bisect.bisect_left(counted, onset), len(counted)
    split = last if return_at is None else bisect.bisect_left(counted, return_at)
    faults, returns = counted[first:split], counted[split:last]
    return RecordingScore(
        bool(faults),
        None if return_at is None else bool(returns),
        first,
        max(0, len(faults) - 1) + max(0, len(returns) - 1),
        faults[0] - onset if faults else None,
        returns[0] - return_at if return_at is not None and returns else None,
    )
