"""Detectors behind one interface: a function of a whole stream that says at which rows it raised an alarm.

Each is online (but for the two offline ones) and begins anew after every alarm, as its authors have it. Univariate
detectors watch every column on its own and any of them raises the alarm. Peers get columns standardised by the first
rows, which is more than the memory gets: it takes the columns as they come.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import stats


class Found(NamedTuple):
    steps: list[int]
    blocks: Any = None
    """Regime in use after each row, from those that tell regimes apart."""


Detect = Callable[[Any], Found]


class Peer(NamedTuple):
    name: str
    make: Callable[[Any], Detect]
    default: Any
    grid: tuple[Any, ...]
    """Settings of its one parameter, the most sensitive first."""
    parameter: str
    offline: bool = False
    slow: bool = False


def standardised(X: Any, rows: int = 100) -> Any:
    """Columns by the mean and deviation of the first rows; a column that stood still there keeps its unit."""
    mean, deviation = X[:rows].mean(axis=0), X[:rows].std(axis=0)
    return (X - mean) / np.where(deviation > 0, deviation, 1.0)


# River's, per column -------------------------------------------------------------------------------------------------


def per_column(make: Callable[[], Any]) -> Detect:
    """Any column's detector raises the alarm; then all begin anew."""

    def detect(X: Any) -> Found:
        detectors, steps = [make() for _ in range(X.shape[1])], []
        for step, row in enumerate(X.tolist()):
            fired = False
            for detector, value in zip(detectors, row, strict=True):
                detector.update(value)
                fired |= detector.drift_detected
            if fired:
                steps.append(step)
                detectors = [make() for _ in range(X.shape[1])]
        return Found(steps)

    return detect


def adwin(delta: float) -> Detect:
    from river.drift import ADWIN

    return per_column(lambda: ADWIN(delta=delta))


def page_hinkley(threshold: float) -> Detect:
    from river.drift import PageHinkley

    return per_column(lambda: PageHinkley(threshold=threshold))


def kswin(alpha: float, window: int = 100, recent: int = 30) -> Detect:
    """As River's KSWIN, all columns at once: its own takes a millisecond a value.

    The last ``recent`` values of a window against as many drawn from the others; alarm where the two-sample test of
    Kolmogorov and Smirnov says p <= alpha (and its distance is above .1).
    """
    sizes = np.arange(recent // 10 + 1, recent + 1)
    p = [stats.ks_2samp(np.arange(recent), np.arange(recent) + k - 0.5).pvalue for k in sizes]
    limit = int(sizes[np.array(p) <= alpha].min(initial=recent + 1))

    def detect(X: Any) -> Found:
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
            last = np.concatenate([values[1:] != values[:-1], np.ones((1, X.shape[1]), bool)])  # ties count at once
            if np.abs(climb * last).max() >= limit:
                steps.append(step)
                began = step + 1 - recent  # keep what is new, as KSWIN does
        return Found(steps)

    return detect


# Charts that start themselves ----------------------------------------------------------------------------------------


def t2_chart(alpha: float, start: int = 10) -> Detect:
    """Hotelling's T2 of each row against mean and covariance of all before it; F gives the limit."""

    def detect(X: Any) -> Found:
        steps: list[int] = []
        d = X.shape[1]
        limits = _f_limits(alpha, d, len(X))
        n, mean, scatter, inverse = 0, np.zeros(d), np.zeros((d, d)), None
        for step, x in enumerate(X):
            gap = x - mean
            if n >= d + start:
                if inverse is None:  # a little on the diagonal: columns may stand still
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
            if inverse is not None:  # Sherman and Morrison
                v = inverse @ u
                inverse = inverse - np.outer(v, v) / (1 + u @ v)
        return Found(steps)

    return detect


def _f_limits(alpha: float, d: int, n: int) -> Any:
    counts = np.arange(n + 1)
    return stats.f.isf(alpha, d, np.maximum(counts - d, 1))


def ewma_chart(limit: float, weight: float = 0.1, start: int = 10) -> Detect:
    """Self-starting EWMA (Hawkins): each value becomes a normal score by all before it; their late mean is charted.

    ``limit`` in deviations of the charted mean.
    """
    deviation = np.sqrt(weight / (2 - weight))

    def detect(X: Any) -> Found:
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
        return Found(steps)

    return detect


def _normal_score(t: Any, freedom: int) -> Any:
    """Quantile of a t value as a normal score (Wallace's approximation: four digits from ten degrees on)."""
    return np.sign(t) * (8 * freedom + 1) / (8 * freedom + 3) * np.sqrt(freedom * np.log1p(t * t / freedom))


# Others --------------------------------------------------------------------------------------------------------------


def kdq_tree(alpha: float) -> Detect:
    """The kdq-tree of Dasu et al., by menelaus; windows of 200 rows."""
    from menelaus.data_drift import KdqTreeStreaming

    def detect(X: Any) -> Found:
        np.random.seed(0)  # noqa: NPY002 - its bootstrap draws from there
        detector, steps = KdqTreeStreaming(window_size=200, alpha=alpha, bootstrap_samples=100), []
        for step, row in enumerate(X):
            detector.update(row.reshape(1, -1))
            if detector.drift_state == "drift":
                steps.append(step)
        return Found(steps)

    return detect


def kernel_cpd(penalty: float) -> Detect:
    """ruptures, offline: best segmentation into constant means, ``penalty`` times d log n a change."""
    import ruptures

    def detect(X: Any) -> Found:
        search = ruptures.KernelCPD(kernel="linear", min_size=20).fit(X)
        return Found([int(c) for c in search.predict(pen=penalty * X.shape[1] * np.log(len(X)))[:-1]])

    return detect


def clasp(window: int) -> Detect:
    """ClaSP, offline, by claspy; of all columns together."""
    if not hasattr(np, "trapz"):  # claspy still calls it by its old name
        setattr(np, "trapz", np.trapezoid)  # noqa: B010
    from claspy.segmentation import BinaryClaSPSegmentation

    def detect(X: Any) -> Found:
        moving = X[:, X.std(axis=0) > 0]
        found = BinaryClaSPSegmentation(window_size=window, n_jobs=1).fit_predict(
            moving if moving.shape[1] > 1 else moving[:, 0]
        )
        return Found([int(c) for c in found])

    return detect


PEERS = (
    Peer("ADWIN", adwin, 0.002, tuple(10.0**-k for k in (1, 2, 3, 5, 8, 12, 18, 25, 40, 60, 100, 200)), "delta"),
    Peer("KSWIN", kswin, 0.005, tuple(10.0**-k for k in (2, 3, 4, 5, 6, 8, 10, 12, 14, 16)), "alpha"),
    Peer(
        "Page-Hinkley",
        page_hinkley,
        50.0,
        (10.0, 20.0, 50.0, 100.0, 200.0, 400.0, 800.0, 1600.0, 3200.0, 6400.0, 12800.0, 25600.0, 1e5, 1e6),
        "threshold",
    ),
    Peer("T2 chart", t2_chart, 0.0027, tuple(10.0**-k for k in (2, 3, 4, 6, 9, 13, 20, 30, 45, 70, 100, 200)), "alpha"),
    Peer("EWMA chart", ewma_chart, 3.0, (3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 13.0, 17.0, 22.0, 30.0, 40.0), "limit"),
    Peer("kdq-tree", kdq_tree, 0.01, (0.01,), "alpha", slow=True),
    Peer(
        "ruptures",
        kernel_cpd,
        3.0,
        (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0),
        "penalty",
        offline=True,
    ),
    Peer("ClaSP", clasp, 20, (20,), "window", offline=True, slow=True),
)
