"""Frequency-sensitive winner-take-all, from the equations in :mod:`ccmem.models.fscl`."""

from __future__ import annotations

from naive import units


def naive(X, n_units, fairness, bias, share_rate, p, learning_rate, rate_decay, step, beta_1, beta_2):
    shares = [0.0] * n_units

    def winner(h, C):
        if fairness == "wins":
            scores = [h[i] * C[i] for i in range(len(h))]
        else:
            scores = [h[i] - bias * (1.0 / len(h) - shares[i]) for i in range(len(h))]
        return scores.index(min(scores))

    def after(h):
        if h:
            for i in range(len(h)):
                shares[i] -= share_rate * shares[i]
            shares[h.index(min(h))] += share_rate

    def strengths(t, h, w):
        return [1.0 if i == w else 0.0 for i in range(len(h))]

    return units.learn(X, n_units, p, learning_rate, rate_decay, step, beta_1, beta_2, strengths, winner, after)
