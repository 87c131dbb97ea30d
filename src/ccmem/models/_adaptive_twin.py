"""The naive twin of :mod:`ccmem.models.adaptive`: its rules read aloud, sharing no code with the kernel."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np

from ccmem import _naive
from ccmem._typing import FloatArray
from ccmem.memory import Event


class Signature:
    """Mean m, variance s and the moments of products of consecutive deviations."""

    def __init__(self, mean: FloatArray, count: float, variance: float, weight: float) -> None:
        self.mean, self.count, self.variance, self.weight = mean, count, variance, weight
        self.pairs = self.product = self.square = 0.0

    def absorb(self, u: FloatArray, previous: FloatArray | None, slowest: float) -> tuple[FloatArray, float]:
        """Take u in; return its deviation from the mean before, and its weight in the mean."""
        d = u - self.mean
        self.count += 1.0
        b = max(1.0 / self.count, slowest)
        self.variance = (1.0 - b) * (self.variance + b * _naive.dot(d, d))
        self.weight = (1.0 - b) * (1.0 - b) * self.weight + b * b
        if previous is not None:
            p = _naive.dot(d, previous)
            self.pairs += 1.0
            rate = max(1.0 / self.pairs, slowest)
            self.product += rate * (p - self.product)
            self.square += rate * (p * p - self.square)
        self.mean = self.mean + u.dtype.type(b) * d
        return d, b

    def excess(self, w: FloatArray, weight: float, z: float) -> float:
        """T(w) over its limit; ``weight`` is the sum of (a_i - b_i)^2."""
        s = max(self.variance, 1e-12)
        share = (self.pairs * self.square / (s * s) + 8.0 / 2.0) / (self.pairs + 8.0)
        nu = 1.0 / min(max(share, 1e-6), 1.0)
        c = min(max(self.product / s * self.pairs / (self.pairs + 8.0), 0.0), 0.98)
        inflation = (1.0 + c) / (1.0 - c)
        root = 1.0 - 2.0 / (9.0 * nu) + z * math.sqrt(2.0 / (9.0 * nu))
        s = max(self.variance / max(1.0 - self.weight, 0.5), 1e-12)
        distance = _naive.distance_power(w, self.mean, 2)
        return distance / (s * min(1.0, inflation * weight) * (root * root * root))


class Unit:
    """A slot: prototype M, rate v, wins C, its block, gathered dissimilarity E and label votes."""

    def __init__(self, M: FloatArray, v: float, block: int, n_labels: int) -> None:
        self.M, self.v, self.C, self.block, self.E = M, v, 0, block, 0.0
        self.votes = [0] * n_labels

    def label(self) -> int | None:
        """The majority label, if any."""
        return self.votes.index(max(self.votes)) if any(self.votes) else None

    def refuses(self, label: int) -> bool:
        """Whether this unit clearly belongs to another label."""
        most = self.label()
        return most is not None and most != label and 4 * self.votes[most] > 3 * sum(self.votes)


def cost(a: Unit, b: Unit) -> float:
    """What merging two units costs."""
    ward = float(a.C) * b.C / (a.C + b.C) * max(0.0, 1.0 - _naive.dot(a.M, b.M))
    differ = a.label() is not None and b.label() is not None and a.label() != b.label()
    return ward * 2.0**100 if differ else ward


def merge(units: list[Unit], share: int) -> None:
    """Merge the cheapest pair within blocks of more than ``share`` units; the last unit fills the gap."""
    sizes = [sum(other.block == unit.block for other in units) for unit in units]
    pairs = [(cost(units[i], units[j]), i, j) for i in range(len(units)) for j in range(i + 1, len(units))
             if units[i].block == units[j].block and sizes[i] > share]  # fmt: skip
    _, i, j = min(pairs)
    a, b = units[i], units[j]
    step = a.M.dtype.type(b.C / (a.C + b.C))
    a.M = _naive.renormalised(a.M + step * (b.M - a.M), 0.0)
    a.v, a.C, a.E = min(a.v, b.v), a.C + b.C, 0.0
    a.votes = [x + y for x, y in zip(a.votes, b.votes, strict=True)]
    last = units.pop()
    if last is not b:
        units[j] = last


def naive(X: FloatArray, n_slots: int, max_units: int | None, learning_rate: float, false_alarm_every: float,
          tuning: Any, labels: list[int] | None = None, n_labels: int = 0, refusing: bool = False
          ) -> dict[str, Any]:  # fmt: skip
    """The rules of the module, one sample after the other."""
    level = NormalDist().inv_cdf
    z_suspect = -level(min(0.05, 0.1 / (tuning.recent_rate * false_alarm_every**0.5)))
    z_confirm = -level(false_alarm_every**-0.25)
    z_recall, z_new = -level(tuning.recall_level), -level(tuning.new_level)
    kind, width = X.dtype.type, X.shape[1]
    signatures = [Signature(np.zeros(width, X.dtype), 0.0, 0.0, 0.0)]
    units: list[Unit] = []
    t, alarm, batches, against, previous = 0, 0, 0, 0, None
    w, ww, wb = np.zeros(width, X.dtype), 0.0, 0.0
    batch = candidate = w
    spread = 0.0
    winners: list[int] = []
    events: list[Event] = []
    for step, x in enumerate(X):
        winners.append(-1)
        squared = _naive.dot(x, x)
        if squared == 0.0:
            continue
        scale = 1.0 / math.sqrt(squared)
        u, now = kind(scale) * x, signatures[t]
        if alarm:
            total, within = alarm, alarm - batches * tuning.batch
            batch = np.zeros_like(w) if within == 1 else batch
            candidate, spread = (np.zeros_like(w), 0.0) if total == 1 else (candidate, spread)
            batch = batch + kind(1.0 / within) * (u - batch)
            d = u - candidate
            spread = (1.0 - 1.0 / total) * (spread + 1.0 / total * _naive.dot(d, d))
            candidate = candidate + kind(1.0 / total) * d
            alarm += 1
            if within < tuning.batch:
                continue
            part = 1.0 / within
            batches += 1
            if now.excess(batch, part + now.weight, z_confirm) > 1.0:
                against += 1
            elif now.excess(batch, part + now.weight, 0.0) <= 1.0:
                against -= 1
            if against < tuning.least_batches:
                if against <= 0 or batches >= tuning.most_batches:
                    alarm, previous, w, ww, wb = 0, None, batch, part, 0.0
                continue
            part = 1.0 / total
            fits = [(s.excess(candidate, part + s.weight, z_new), b) for b, s in enumerate(signatures) if b != t]
            least, best = min(fits, default=(math.inf, -1))
            if least > 1.0:
                target = best
                if max_units is None or len(signatures) < max_units:
                    target = len(signatures)
                    events.append(Event("new_block", step, t, target, total))
                    signatures.append(now)
                elif best < 0 or now.excess(candidate, part + now.weight, z_new) <= least:
                    target = t
                else:
                    events.append(Event("recall", step, t, best, total))
                signatures[target] = Signature(candidate, float(total), spread, part)
                wb = part
            elif batches >= tuning.most_batches or (
                batches >= tuning.recall_batches
                and signatures[best].excess(candidate, part + signatures[best].weight, z_recall) <= 1.0
            ):
                target, wb = best, 0.0
                events.append(Event("recall", step, t, best, total))
            else:
                continue
            t, alarm, previous, w, ww = target, 0, None, candidate, part
            continue
        a = max(tuning.recent_rate, min(1.0, 4.0 / (now.count + 1.0)))
        w = w + kind(a) * (u - w)
        ww = (1.0 - a) * (1.0 - a) * ww + a * a
        wb *= 1.0 - a
        if now.count >= tuning.youngest and now.excess(w, ww - 2.0 * wb + now.weight, z_suspect) > 1.0:
            alarm, batches, against = 1, 0, 0
            continue
        previous, b = now.absorb(u, previous, tuning.slowest_rate)
        wb = (1.0 - b) * wb + b * a

        label = -1 if labels is None else labels[step]
        h = [_naive.dot(unit.M, x) * scale for unit in units]
        block = [i for i, unit in enumerate(units) if unit.block == t]
        willing = [i for i in block if not (refusing and label >= 0 and units[i].refuses(label))]
        i = max(willing or block, key=lambda i: (h[i], -i), default=-1)
        share = max(1, max_units // len(signatures)) if max_units else 0
        if max_units is None:
            room = len(block) < n_slots
        else:
            room = len(units) < max_units or len(block) < share
        if room and willing:
            room = 1.0 - h[i] > tuning.spacing * now.variance + 1e-6 and (
                len(block) < n_slots or tuning.growth * now.variance < units[i].E
            )
        if room:
            if i >= 0:
                units[i].E = 0.0
            i = len(units)
            units.append(Unit(u, learning_rate, t, n_labels))
        else:
            v = units[i].v
            units[i].E += 1.0 - h[i]
            units[i].M = _naive.renormalised(kind(1.0 - v) * units[i].M + kind(v * scale) * x, 0.0)
        units[i].C += 1
        units[i].v = units[i].v / (1.0 + 0.5 * units[i].v)
        if label >= 0:
            units[i].votes[label] += 1
        winners[-1] = i
        if max_units is not None and len(units) > max_units:
            merge(units, share)
    known = {
        "winners": winners, "prototypes_": np.array([unit.M for unit in units]), "events_": events, "alarm_": alarm,
        "learning_rates_": [unit.v for unit in units], "win_counts_": [unit.C for unit in units],
        "unit_blocks_": [unit.block for unit in units], "n_blocks_": len(signatures), "task_pointer_": t,
    }  # fmt: skip
    return known if labels is None else {**known, "votes_": [unit.votes for unit in units]}
