"""Adjusted SOINN, written from F. Shen and O. Hasegawa, "A fast nearest neighbor classifier based on SOINN", 2008."""

from __future__ import annotations

import numpy as np

from naive import plain


def naive(X, max_units, max_age, prune_every, noise):
    w, C, age, winners = [], [], {}, []

    def neighbours(i):
        return sorted(next(iter(edge - {i})) for edge in age if i in edge)

    def threshold(i):
        near = neighbours(i)
        if near:
            return max(plain.distance_power(w[i], w[j], 2) for j in near)
        return min(plain.distance_power(w[i], w[j], 2) for j in range(len(w)) if j != i)

    def move(i, x, rate):
        w[i] = plain.faded(w[i] + X.dtype.type(rate) * (x - w[i]))

    for t, x in enumerate(X, start=1):
        h = [plain.distance_power(x, m, 2) for m in w]
        order = sorted(range(len(w)), key=lambda i: (h[i], i))
        if len(w) < 2:
            is_new = not w or h[0] > 0
        else:
            is_new = any(h[i] > threshold(i) for i in order[:2])
        if is_new and (max_units is None or len(w) < max_units):
            winners.append(len(w))
            w.append(x.copy())
            C.append(1)
        else:
            a = order[0]
            winners.append(a)
            C[a] += 1
            move(a, x, 1.0 / C[a])
            for b in order[1:2]:
                age[frozenset((a, b))] = 0
            for i in neighbours(a):
                age[frozenset((a, i))] += 1
            for i in neighbours(a):
                move(i, x, 0.01 / C[i])
            for i in neighbours(a):
                if age[frozenset((a, i))] > max_age:
                    del age[frozenset((a, i))]
        if t % prune_every == 0:
            mean = np.mean(C)
            degree = [len(neighbours(i)) for i in range(len(w))]
            for i in reversed(range(len(w))):
                if (degree[i] == 0 and C[i] < mean) or (degree[i] == 1 and C[i] < noise * mean):
                    last = len(w) - 1
                    w[i], C[i] = w[last], C[last]
                    del w[last], C[last]
                    for edge in [edge for edge in age if i in edge]:
                        del age[edge]
                    for edge in [edge for edge in age if last in edge]:
                        age[frozenset(i if u == last else u for u in edge)] = age.pop(edge)
    edges = sorted(sorted(edge) for edge in age)
    return {
        "prototypes_": np.array(w).reshape(-1, X.shape[1]),
        "win_counts_": C,
        "winners": winners,
        "edges_": np.array(edges, np.int64).reshape(-1, 2),
        "edge_ages_": [age[frozenset(edge)] for edge in edges],
    }
