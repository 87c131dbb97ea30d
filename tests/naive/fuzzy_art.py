"""Fuzzy ART, from the equations in :mod:`ccmem.models.fuzzy_art`."""

from __future__ import annotations

import numpy as np

from naive import plain


def naive(X, max_units, vigilance, choice, learning_rate, y=None, match_tracking=0.0):
    """Learn the rows of ``X``; with labels ``y``, simplified ARTMAP."""
    w, upper, C, labels, winners = [], [], [], [], []
    number, d = X.dtype.type, X.shape[1]
    for r, x in enumerate(X):
        c, rho, won = number(1) - x, vigilance, -1
        overlap = [
            plain.lane_sum(np.minimum(a, x)) + plain.lane_sum(np.minimum(b, c)) for a, b in zip(w, upper, strict=True)
        ]
        T = [o / (choice + (plain.lane_sum(a) + plain.lane_sum(b))) for o, a, b in zip(overlap, w, upper, strict=True)]
        for i in sorted(range(len(w)), key=lambda i: (-T[i], i)):
            if overlap[i] / d >= rho:
                if y is None or labels[i] == y[r]:
                    won = i
                    break
                rho = overlap[i] / d + match_tracking
                if rho > 1.0:
                    break
        if won >= 0:
            gain, keep = number(learning_rate), number(1.0 - learning_rate)
            w[won] = gain * np.minimum(x, w[won]) + keep * w[won]
            upper[won] = gain * np.minimum(c, upper[won]) + keep * upper[won]
            C[won] += 1
        elif max_units is None or len(w) < max_units:
            won = len(w)
            w.append(x.copy())
            upper.append(c)
            C.append(1)
            labels.append(None if y is None else y[r])
        elif y is not None:
            units = {label: [i for i in range(len(w)) if labels[i] == label] for label in labels}
            donor = max(units, key=lambda label: len(units[label]))
            if len(units[donor]) > len(units.get(y[r], [])) + 1:
                won = min(units[donor], key=lambda i: C[i])
                w[won], upper[won], C[won], labels[won] = x.copy(), c, 1, y[r]
        winners.append(won)
    known = {"prototypes_": np.array(w), "win_counts_": C, "winners": winners}
    return known | ({"upper_": 1 - np.array(upper)} if y is None else {"labels": labels})
