"""Discriminant analysis under drift: forecasters with different memory lengths, weighted by their forecasts.

For few columns. Each live forecaster keeps exponentially weighted sums per class. They decay with every row of the
class, so an absent class does not decay; one forecaster never decays. Every labelled row is first predicted by all
forecasters. A forecaster's weight is the exponential of its log likelihood, summed over a decay time of 10 rows:

    S_c    = (1 - k_c) W + k_c A_c + ridge diag(W),   k_c = own_share n_c / (n_c + n_axes)
    u_c(x) = -((x - m_c)' S_c^-1 (x - m_c) + log det S_c) / 2
    p(x)   = sum over forecasters of weight times softmax(u / T + log prior)

W is the shared covariance, A_c the covariance of class c, T a temperature that each forecaster learns. The ridge is
relative to the variance of each column, so results do not depend on units. Every 256 rows a copy of the 100-row
forecaster is archived, unless an archived copy predicts equally well. When a concept returns, the forecasts of its copy
identify it within a few rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ccmem.core.typing import FloatArray, IntArray
from ccmem.kernels import discriminant as kernels
from ccmem.kernels.discriminant import ARCHIVE as ARCHIVE
from ccmem.kernels.discriminant import LAST

WINDOWS = (np.inf, 500.0, 100.0, 20.0)
"""Memory of each live forecaster, in rows of a class; the first never forgets."""
RATES: FloatArray = np.array([1.0 / window for window in WINDOWS])
PERIODS: IntArray = np.array([16, 16, 4, 1])
"""Rows between two factorisations of all class covariances, per live forecaster; other rows factor only their class."""
ARCHIVE_SIZE = 6
COUNTERS = ("seen", "taught", "last", "archive")


class Following(NamedTuple):
    """Complete learned state; the last axes are forecaster (live ones, then the archive) and class."""

    counts: IntArray
    weights: FloatArray
    means: FloatArray
    scatters: FloatArray
    """Per live forecaster and class, the weighted sum of (x - mean)(x - mean)', packed."""
    pooled: FloatArray
    """Sum of the scatters of all classes of a live forecaster, packed."""
    factors: FloatArray
    """Cholesky factors of the covariances, packed."""
    log_dets: FloatArray
    evidence: FloatArray
    """Log likelihood of each forecaster, with a short and with a long exponential window."""
    calibration: FloatArray
    """Per forecaster, logarithm of the temperature and its precision (accumulated curvature of the log loss)."""
    use: FloatArray
    typical: FloatArray
    """Weight, mean and variance of the log distance between a row and the mean of its class."""
    tables: FloatArray
    """Exponentially weighted label counts: overall, then conditional on the previous label."""
    counters: IntArray


def new_following(n_features: int) -> Following:
    """Return the initial state, before the first row."""
    live, packed, n = len(WINDOWS), n_features * (n_features + 1) // 2, len(WINDOWS) + ARCHIVE_SIZE
    counters = np.zeros(len(COUNTERS), np.int64)
    counters[LAST] = -1
    return Following(
        np.zeros(0, np.int64),
        np.zeros((live, 0)),
        np.zeros((n_features, n, 0)),
        np.zeros((packed, live, 0)),
        np.zeros((packed, live)),
        np.zeros((packed, n, 0)),
        np.zeros((n, 0)),
        np.zeros((2, n)),
        np.zeros((n, 2)),
        np.zeros(n),
        np.zeros(3),
        np.zeros((1, 0)),
        counters,
    )


def with_more_classes(state: Following, places: IntArray, n_classes: int) -> Following:
    """Return the state extended to ``n_classes`` classes; ``places`` gives the new indices of the known classes."""
    if n_classes == len(state.counts):
        return state
    wider: dict[str, Any] = {}
    for name in ("counts", "weights", "means", "scatters", "factors", "log_dets"):
        array = getattr(state, name)
        fill = np.inf if name == "log_dets" else 0
        wider[name] = np.full((*array.shape[:-1], n_classes), fill, array.dtype)
        wider[name][..., places] = array
    new = np.setdiff1d(np.arange(n_classes), places)
    wider["factors"][np.ix_(_diagonal(state.means.shape[0]), np.arange(len(state.use)), new)] = 1.0
    wider["tables"] = np.zeros((1 + n_classes, n_classes))
    wider["tables"][np.ix_(np.append(0, 1 + places), places)] = state.tables
    wider["counters"] = state.counters.copy()
    if state.counters[LAST] >= 0:
        wider["counters"][LAST] = places[state.counters[LAST]]
    return state._replace(**wider)


def with_more_columns(state: Following, n_features: int) -> Following:
    """Return the state extended by columns that were 0 in all earlier rows."""
    old = state.means.shape[0]
    places = np.concatenate([_diagonal(n_features)[j] + np.arange(old - j) for j in range(old)])
    wider: dict[str, Any] = {"means": np.pad(state.means, ((0, n_features - old), (0, 0), (0, 0)))}
    for name in ("scatters", "pooled", "factors"):
        array = getattr(state, name)
        wider[name] = np.zeros((n_features * (n_features + 1) // 2, *array.shape[1:]))
        wider[name][places] = array
    wider["factors"][_diagonal(n_features)[old:]] = 1.0
    return state._replace(**wider)


def _diagonal(n_features: int) -> IntArray:
    """Return the indices of the diagonal in a packed matrix."""
    return np.cumsum([0, *range(n_features, 1, -1)])


def learn_rows(
    state: Following, rows: FloatArray, codes: IntArray, settings: tuple[float, float, float], mode: int
) -> None:
    """Learn rows with their label codes, in place."""
    kernels.learn(rows, codes, RATES, PERIODS, settings, mode, *state)


def probabilities(state: Following, rows: FloatArray, mode: int) -> tuple[FloatArray, FloatArray]:
    """Return the class probabilities of every row, and the row's squared distance to the nearest class."""
    out, nearest = np.empty((len(rows), len(state.counts))), np.empty(len(rows))
    kernels.answer(
        rows,
        mode,
        state.counts,
        state.means,
        state.factors,
        state.log_dets,
        state.evidence,
        state.calibration,
        state.tables,
        state.counters,
        len(WINDOWS),
        out,
        nearest,
    )
    return out, nearest


def checked_following(name: str, fields: dict[str, Any], n_features: int, n_classes: int) -> Following:
    """Return the state in ``fields``; raise ValueError if learning cannot produce such a state."""
    empty = with_more_classes(new_following(n_features), np.empty(0, np.int64), n_classes)
    arrays = {}
    for key, wanted in empty._asdict().items():
        array = fields[key]
        if key == "counters":
            array = np.array(list(array.values()), np.int64)
        if not (isinstance(array, np.ndarray) and array.shape == wanted.shape and array.dtype == wanted.dtype):
            raise ValueError(f"{name}: {key} is not an array of {wanted.dtype} of shape {wanted.shape}")
        if array.dtype.kind == "f" and (np.isnan(array).any() or (key != "log_dets" and np.isinf(array).any())):
            raise ValueError(f"{name}: {key} holds NaN or infinity")
        arrays[key] = array.copy()
    state = Following(**arrays)
    seen, taught, last, archive = state.counters.tolist()
    if not (0 <= taught <= seen and -1 <= last < n_classes and 0 <= archive <= ARCHIVE_SIZE):
        raise ValueError(f"{name}: its counters are damaged")
    if state.counts.min(initial=0) < 0 or state.counts.sum() != taught or (taught > 0) != (last >= 0):
        raise ValueError(f"{name}: its counts do not add up")
    if state.weights.min(initial=0) < 0 or ((state.weights > 0) != (state.counts > 0)).any():
        raise ValueError(f"{name}: its weights do not fit its counts")
    diagonal = _diagonal(n_features)
    if (state.scatters[diagonal] < 0).any() or (state.pooled[diagonal] < 0).any():
        raise ValueError(f"{name}: its scatter has negative variances")
    if not (state.factors[diagonal][:, : len(WINDOWS) + archive] > 0).all():
        raise ValueError(f"{name}: its covariances have negative variances")
    if abs(state.calibration).max() > 1e9 or state.evidence.max() > 0 or state.tables.min(initial=0) < 0:
        raise ValueError(f"{name}: its evidence is damaged")
    return state
