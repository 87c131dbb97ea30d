"""Other detectors: functions from a whole stream to the rows at which they raise an alarm.

All but ruptures and ClaSP are online; each restarts after an alarm. Univariate detectors run once per column, and any
of them raises the alarm. Peers get columns standardised by the first rows; the memory gets raw columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

Detect = Callable[[Any], list[int]]
"""Function that returns the rows at which an alarm was raised."""


class Peer(NamedTuple):
    name: str
    make: Callable[[Any], Detect]
    default: Any
    grid: tuple[Any, ...]
    """Settings of the parameter, the most sensitive first."""
    parameter: str
    parts: tuple[str, ...] = ("skab", "tep", "waist", "tssb", "utsa", "controls")
    """Parts in which the peer is run; offline and slow peers are left out of long streams."""


def standardised(X: Any, rows: int = 100) -> Any:
    """Standardise columns by mean and deviation of the first rows; a column that is constant there is not rescaled."""
    mean, deviation = X[:rows].mean(axis=0), X[:rows].std(axis=0)
    return (X - mean) / np.where(deviation > 0, deviation, 1.0)


# River's detectors, per column ---------------------------------------------------------------------------------------


def per_column(make: Callable[[], Any]) -> Detect:
    """Run one detector per column; all restart when one of them raises an alarm."""

    def detect(X: Any) -> list[int]:
        detectors, steps = [make() for _ in range(X.shape[1])], []
        for step, row in enumerate(X.tolist()):
            fired = False
            for detector, value in zip(detectors, row, strict=True):
                detector.update(value)
                fired |= detector.drift_detected
            if fired:
                steps.append(step)
                detectors = [make() for _ in range(X.shape[1])]
        return steps

    return detect


def adwin(delta: float) -> Detect:
    from river.drift import ADWIN

    return per_column(lambda: ADWIN(delta=delta))


def page_hinkley(threshold: float) -> Detect:
    from river.drift import PageHinkley

    return per_column(lambda: PageHinkley(threshold=threshold))


def kswin(alpha: float, window: int = 100, recent: int = 30) -> Detect:
    """Run KSWIN as defined in River, vectorised over columns (River's takes a millisecond per value).

    The last ``recent`` values of a window are compared with an equal number drawn from the others; an alarm is raised
    if the two-sample Kolmogorov-Smirnov test gives p <= alpha (and its distance is above .1).
    """
    sizes = np.arange(recent // 10 + 1, recent + 1)
    p = [stats.ks_2samp(np.arange(recent), np.arange(recent) + k - 0.5).pvalue for k in sizes]
    limit = int(sizes[np.array(p) <= alpha].min(initial=recent + 1))

    def detect(X: Any) -> list[int]:
        rng, steps, began = np.random.default_rng(0), [], 0
        for step in range(len(X)):
            if step - began + 1 < window:
                continue
            rows = X[step + 1 - window : step + 1]
            older = rows[rng.choice(window - recent, recent, replace=False)]
            both = np.concatenate([older, rows[-recent:]])
            order = np.argsort(both, axis=0, kind="stable")
            climb = np.cumsum(np.where(order < recent, 1, -1), axis=0)
            values = np.take_along_axis(both, order, axis=0)
            last = np.concatenate([values[1:] != values[:-1], np.ones((1, X.shape[1]), bool)])  # count ties together
            if np.abs(climb * last).max() >= limit:
                steps.append(step)
                began = step + 1 - recent  # keep the recent values, as KSWIN does
        return steps

    return detect


# Self-starting charts ------------------------------------------------------------------------------------------------


def t2_chart(alpha: float, start: int = 10) -> Detect:
    """Run Hotelling's T2 of each row against mean and covariance of all rows before it; F gives the limit."""

    def detect(X: Any) -> list[int]:
        steps: list[int] = []
        d = X.shape[1]
        limits = _f_limits(alpha, d, len(X))
        n, mean, scatter, inverse = 0, np.zeros(d), np.zeros((d, d)), None
        for step, x in enumerate(X):
            gap = x - mean
            if n >= d + start:
                if inverse is None:  # a small diagonal term keeps the covariance invertible for constant columns
                    inverse = np.linalg.inv(scatter + 1e-6 * np.eye(d) * max(np.trace(scatter) / d, 1e-12))
                statistic = (n - 1) * (gap @ inverse @ gap) * n / (n + 1) * (n - d) / (d * (n - 1))
                if statistic > limits[n]:
                    steps.append(step)
                    n, mean, scatter, inverse = 0, np.zeros(d), np.zeros((d, d)), None
                    continue
            n += 1
            mean = mean + gap / n
            u = gap * np.sqrt((n - 1) / n)
            scatter += np.outer(u, u)
            if inverse is not None:  # Sherman-Morrison update of the inverse
                v = inverse @ u
                inverse = inverse - np.outer(v, v) / (1 + u @ v)
        return steps

    return detect


def _f_limits(alpha: float, d: int, n: int) -> Any:
    counts = np.arange(n + 1)
    return stats.f.isf(alpha, d, np.maximum(counts - d, 1))


def ewma_chart(limit: float, weight: float = 0.1, start: int = 10) -> Detect:
    """Run a self-starting EWMA chart (Hawkins) of the normal score of each value, given all values before it.

    ``limit`` is in standard deviations of the charted mean.
    """
    deviation = np.sqrt(weight / (2 - weight))

    def detect(X: Any) -> list[int]:
        d, steps = X.shape[1], []
        n, mean, squares, chart = 0, np.zeros(d), np.zeros(d), np.zeros(d)
        for step, x in enumerate(X):
            gap = x - mean
            if n >= start:
                spread = np.sqrt(squares / (n - 1))
                t = np.divide(gap, spread, out=np.zeros(d), where=spread > 0) * np.sqrt(n / (n + 1))
                chart = (1 - weight) * chart + weight * _normal_score(t, n - 1)
                if np.abs(chart).max() > limit * deviation:
                    steps.append(step)
                    n, mean, squares, chart = 0, np.zeros(d), np.zeros(d), np.zeros(d)
                    continue
            n += 1
            mean = mean + gap / n
            squares = squares + gap * (x - mean)
        return steps

    return detect


def _normal_score(t: Any, freedom: int) -> Any:
    """Return the normal score of a t value (Wallace's approximation: four digits from ten degrees of freedom on)."""
    return np.sign(t) * (8 * freedom + 1) / (8 * freedom + 3) * np.sqrt(freedom * np.log1p(t * t / freedom))


# Other detectors -----------------------------------------------------------------------------------------------------


def kdq_tree(alpha: float) -> Detect:
    """Run the kdq-tree of Dasu et al. from menelaus, with windows of 200 rows."""
    from menelaus.data_drift import KdqTreeStreaming

    def detect(X: Any) -> list[int]:
        np.random.seed(0)  # noqa: NPY002 - its bootstrap draws from there
        detector, steps = KdqTreeStreaming(window_size=200, alpha=alpha, bootstrap_samples=100), []
        for step, row in enumerate(X):
            detector.update(row.reshape(1, -1))
            if detector.drift_state == "drift":
                steps.append(step)
        return steps

    return detect


def kernel_cpd(penalty: float) -> Detect:
    """Run ruptures offline: best segmentation into constant means, penalty ``penalty`` times d log n per change."""
    import ruptures

    def detect(X: Any) -> list[int]:
        search = ruptures.KernelCPD(kernel="linear", min_size=20).fit(X)
        return [int(c) for c in search.predict(pen=penalty * X.shape[1] * np.log(len(X)))[:-1]]

    return detect


def clasp(window: int | str) -> Detect:
    """Run ClaSP offline, from claspy, on all columns together."""
    if not hasattr(np, "trapz"):  # claspy still uses the name that numpy 2 removed
        setattr(np, "trapz", np.trapezoid)  # noqa: B010
    from claspy.segmentation import BinaryClaSPSegmentation

    def detect(X: Any) -> list[int]:
        moving = X[:, X.std(axis=0) > 0]
        found = BinaryClaSPSegmentation(window_size=window, n_jobs=1).fit_predict(
            moving if moving.shape[1] > 1 else moving[:, 0]
        )
        return [int(c) for c in found]

    return detect


MACHINES = ("skab", "tep")
SEGMENTS = ("tssb", "utsa")
ONLINE = (*MACHINES, "controls")

PEERS = (
    Peer("ADWIN", adwin, 0.002, tuple(10.0**-k for k in (1, 2, 3, 5, 8, 12, 18, 25, 40, 60, 100, 200)), "delta"),
    Peer(
        "KSWIN",
        kswin,
        0.005,
        tuple(10.0**-k for k in (2, 3, 4, 5, 6, 8, 10, 12, 14, 16)),
        "alpha",
        (*ONLINE, *SEGMENTS),
    ),
    Peer(
        "Page-Hinkley", page_hinkley, 50.0, (10.0, 20.0, 50.0, *(100.0 * 2**k for k in range(9)), 1e5, 1e6), "threshold"
    ),
    Peer("T2 chart", t2_chart, 0.0027, tuple(10.0**-k for k in (2, 3, 4, 6, 9, 13, 20, 30, 45, 70, 100, 200)), "alpha"),
    Peer("EWMA chart", ewma_chart, 3.0, (3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 13.0, 17.0, 22.0, 30.0, 40.0), "limit"),
    Peer("kdq-tree", kdq_tree, 0.01, (0.01,), "alpha", MACHINES),
    Peer("ruptures", kernel_cpd, 3.0, tuple(2.0**k for k in range(-1, 13)), "penalty", (*MACHINES, *SEGMENTS)),
    Peer("ClaSP", clasp, "suss", ("suss",), "window", SEGMENTS),
)
