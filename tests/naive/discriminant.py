"""Reference of the discriminant rule: the equations of ccmem.readout.discriminant, one after the other."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ccmem.core.typing import FloatArray, IntArray


def naive(
    X: FloatArray, codes: IntArray, Q: FloatArray, *, n_axes: int, own_share: float, ridge: float, buffer_rows: int
) -> FloatArray:
    """Return g_c, less what all classes share, of the rows of ``Q`` after learning ``X``."""
    flushed, start = [0], 0
    for t in range(len(X)):  # rows are added when the buffer is full, or holds many rows of a class with few
        own = codes[t] == codes
        if t + 1 - start == buffer_rows or own[start : t + 1].sum() > own[:start].sum() / 8:
            flushed.append(start := t + 1)
    X, codes, Q = X[:start].astype(np.float64), codes[:start], Q.astype(np.float64)
    n, d, n_classes = len(X), X.shape[1], int(codes.max()) + 1
    m = [X[codes == c].mean(axis=0) for c in range(n_classes)]
    deviations = np.array([x - m[c] for x, c in zip(X, codes, strict=True)])
    W = deviations.T @ deviations / n
    s2 = np.trace(W) / d

    def largest(scatter: FloatArray) -> FloatArray:
        values, vectors = np.linalg.eigh(scatter)
        keep = np.argsort(values)[::-1][:n_axes]
        return (vectors[:, keep] * np.maximum(values[keep], 0)) @ vectors[:, keep].T

    A = [np.zeros((d, d)) for _ in m]
    for start, end in pairwise(flushed):
        for c in np.unique(codes[start:end]):
            before, now = X[:start][codes[:start] == c], X[start:end][codes[start:end] == c]
            scatter = (now - now.mean(0)).T @ (now - now.mean(0))
            if len(before):
                step = now.mean(0) - before.mean(0)
                scatter += np.outer(step, step) * len(before) * len(now) / (len(before) + len(now))
            A[c] = largest(A[c] + scatter)
    sizes = np.abs(X).max(axis=0) ** 2  # fewer than 32 columns have units of their own
    R = np.where(np.diag(W) > 1e-14 * sizes, np.diag(W), 1e-4 * sizes)
    R[sizes == 0] = s2
    B = (1 - own_share) * W + ridge * np.diag(R) if s2 > 0 else np.eye(d)
    found = np.empty((len(Q), n_classes))
    for c in range(n_classes):
        S = B + own_share * A[c] / ((codes == c).sum() + n_axes)
        difference = Q - m[c]
        found[:, c] = (difference * np.linalg.solve(S, difference.T).T).sum(axis=1) + np.linalg.slogdet(S)[1]
    return found
