"""Growing neural gas, written from B. Fritzke, "A growing neural gas network learns topologies", 1995."""

from __future__ import annotations

import numpy as np

from naive import plain
from naive.steps import Stepper


def naive(
    X,
    n_units,
    learning_rate,
    neighbour_rate,
    rate_decay,
    insert_every,
    max_age,
    error_split,
    error_decay,
    utility,
    step,
    beta_1,
    beta_2,
):
    w, v, C, error, U = [], [], [], [], []
    age = {}  # frozenset of two units -> age
    winners, stepper = [], Stepper(step, beta_1, beta_2)

    def neighbours(i):
        return sorted(next(iter(edge - {i})) for edge in age if i in edge)

    def remove(i):
        last = len(w) - 1
        for values in (w, v, C, error, U):
            values[i] = values[last]
            del values[last]
        stepper.remove(i, last)
        for edge in [edge for edge in age if i in edge]:
            del age[edge]
        for edge in [edge for edge in age if last in edge]:
            age[frozenset(i if u == last else u for u in edge)] = age.pop(edge)

    for t, x in enumerate(X, start=1):
        h = [plain.distance_power(x, m, 2) for m in w]
        if len(w) < min(2, n_units) and (not w or min(h) > 0):
            winners.append(len(w))
            for values, value in ((w, x.copy()), (v, learning_rate * rate_decay), (C, 1), (error, 0.0), (U, 0.0)):
                values.append(value)
            continue
        a, b = [*sorted(range(len(w)), key=lambda i: (h[i], i)), None][:2]
        winners.append(a)
        for i in neighbours(a):
            age[frozenset((a, i))] += 1
        error[a] += h[a]
        stepper.move(w, a, x, v[a])
        for i in neighbours(a):
            if neighbour_rate > 0:
                stepper.move(w, i, x, neighbour_rate)
        v[a] *= rate_decay
        C[a] += 1
        if b is not None:
            U[a] += h[b] - h[a]
            age[frozenset((a, b))] = 0
            too_old = [i for i in neighbours(a) if age[frozenset((a, i))] > max_age]
            for i in too_old:
                del age[frozenset((a, i))]
            for i in reversed(too_old):
                if not neighbours(i):
                    remove(i)
            if utility and len(w) > 2 and max(error) > utility * min(U):
                remove(U.index(min(U)))
        if t % insert_every == 0 and 1 < len(w) < n_units:
            q = error.index(max(error))
            f = max(neighbours(q), key=lambda i: (error[i], -i), default=None)
            if f is not None:
                w.append(plain.faded(w[q] + X.dtype.type(0.5) * (w[f] - w[q])))
                error[q] *= error_split
                error[f] *= error_split
                v.append(learning_rate)
                C.append(0)
                error.append(error[q])
                U.append((U[q] + U[f]) / 2)
                age.pop(frozenset((q, f)))
                age[frozenset((q, len(w) - 1))] = age[frozenset((f, len(w) - 1))] = 0
        error[:] = [e * error_decay for e in error]
        U[:] = [u * error_decay for u in U]
    edges = sorted(sorted(edge) for edge in age)
    return {
        "prototypes_": np.array(w),
        "learning_rates_": v,
        "win_counts_": C,
        "winners": winners,
        "edges_": np.array(edges, np.int64).reshape(-1, 2),
        "edge_ages_": [age[frozenset(edge)] for edge in edges],
    }
