"""Steps of a unit by a given amount: Hebbian, Adam, RMSprop."""

from __future__ import annotations

import math

import numpy as np

from naive import plain


class Stepper:
    """Moves rows of a list of prototypes; keeps the moments of every unit."""

    def __init__(self, step, beta_1, beta_2):
        self.step, self.beta_1, self.beta_2 = step, beta_1, beta_2
        self.first, self.second, self.count = {}, {}, {}

    def move(self, M, i, x, amount):
        number = x.dtype.type
        if self.step == "hebbian":
            M[i] = plain.faded(M[i] + number(min(1.0, amount)) * (x - M[i]))
            return
        keep_1, keep_2, one, tiny = number(self.beta_1), number(self.beta_2), number(1), number(1e-8)
        zero = np.zeros_like(x)
        g = x - M[i]
        if self.step == "rmsprop":
            self.second[i] = keep_2 * self.second.get(i, zero) + (one - keep_2) * g * g
            M[i] = M[i] + number(amount) * g / (np.sqrt(self.second[i]) + tiny)
            return
        g = number(1 if amount >= 0 else -1) * g
        self.count[i] = n = self.count.get(i, 0) + 1
        self.first[i] = keep_1 * self.first.get(i, zero) + (one - keep_1) * g
        self.second[i] = keep_2 * self.second.get(i, zero) + (one - keep_2) * g * g
        size = number(abs(amount) / (1.0 - self.beta_1**n))
        scale = number(1.0 / math.sqrt(1.0 - self.beta_2**n))
        M[i] = M[i] + size * self.first[i] / (np.sqrt(self.second[i]) * scale + tiny)

    def remove(self, i, last):
        """Forget unit i; unit ``last`` takes its index."""
        for moments in (self.first, self.second, self.count):
            moments.pop(i, None)
            if last in moments:
                moments[i] = moments.pop(last)
