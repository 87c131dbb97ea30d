"""The naive twin of :mod:`ccmem.models.adaptive.kernels`: its rules read aloud, sharing no code with the kernel."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np

from ccmem._typing import FloatArray
from ccmem.kernels import plain
from ccmem.memory import Event
from ccmem.models.adaptive.columns_twin import Columns, Known
from ccmem.models.adaptive.units_twin import Unit, merge


def quantile(nu: float, z: float) -> float:
    """Of chi2(nu) / nu."""
    root = 1.0 - 2.0 / (9.0 * nu) + z * math.sqrt(2.0 / (9.0 * nu))
    return root * root * root


class Signature:
    """Mean m, variance s, the moments of products of consecutive deviations, and how far its data wanders."""

    def __init__(self, mean: FloatArray, count: float, variance: float, weight: float) -> None:
        self.mean, self.count, self.variance, self.weight = mean, count, variance, weight
        self.pairs = self.product = self.square = 0.0
        self.wander, self.drift, self.fast = (0.0, 0.0), (0.0, 0.0), 0.0

    def absorb(self, u: FloatArray, previous: FloatArray | None, slowest: float) -> tuple[FloatArray, float]:
        """Take u in; return its deviation from the mean before, and its weight in the mean."""
        d = u - self.mean
        self.count += 1.0
        b = max(1.0 / self.count, slowest)
        self.variance = (1.0 - b) * (self.variance + b * plain.dot(d, d))
        self.weight = (1.0 - b) * (1.0 - b) * self.weight + b * b
        if previous is not None:
            p = plain.dot(d, previous)
            self.pairs += 1.0
            rate = max(1.0 / self.pairs, slowest)
            self.product += rate * (p - self.product)
            self.square += rate * (p * p - self.square)
        self.mean = self.mean + u.dtype.type(b) * d
        return d, b

    def nu(self) -> float:
        """Effective number of dimensions."""
        s = max(self.variance, 1e-12)
        share = (self.pairs * self.square / (s * s) + 8.0 / 2.0) / (self.pairs + 8.0)
        return 1.0 / min(max(share, 1e-6), 1.0)

    def inflation(self) -> float:
        """(1 + c) / (1 - c)."""
        s = max(self.variance, 1e-12)
        c = min(max(self.product / s * self.pairs / (self.pairs + 8.0), 0.0), 0.9)
        return (1.0 + c) / (1.0 - c)

    def noise(self, weight: float) -> float:
        """s V; ``weight`` is the sum of (a_i - b_i)^2."""
        s = max(self.variance / max(1.0 - self.weight, 0.5), 1e-12)
        return s * min(1.0, self.inflation() * weight)

    def certain(self, W: float, weight: float) -> float:
        """W without one and a half standard errors."""
        error = math.sqrt(2.0 / (self.nu() * (1.0 + self.count * weight)))
        return max(0.0, W - 1.5 * error * self.noise(weight))

    def limit(self, learned: tuple[float, float], weight: float, z: float, z_wander: float) -> float:
        """How far a mean may be: what noise does, and what was learned of wandering."""
        W, square = learned
        at_rest = self.noise(weight) * quantile(self.nu(), z)
        if self.certain(W, 0.01) == 0.0:
            return at_rest
        n, whole = self.count / 100.0, W + self.noise(0.01)
        share = (n * max(0.0, square - W * W) / (2.0 * whole * whole) + 8.0) / (n + 8.0)
        return at_rest + self.certain(W, 0.01) * quantile(1.0 / min(max(share, 1e-6), 1.0), z_wander)

    def observed(
        self, learned: tuple[float, float], distance: float, weight: float, rate: float
    ) -> tuple[float, float]:
        """What was learned, and this."""
        more = distance - self.noise(weight)
        return learned[0] + rate * (more - learned[0]), learned[1] + rate * (more * more - learned[1])


def naive(
    X: FloatArray,
    n_slots: int,
    max_units: int | None,
    learning_rate: float,
    false_alarm_every: float,
    tuning: Any,
    labels: list[int] | None = None,
    n_labels: int = 0,
    refusing: bool = False,
) -> dict[str, Any]:
    """The rules of the module, one sample after the other."""
    level, q, n = NormalDist().inv_cdf, tuning, float(tuning.batch)
    z_suspect = -level(min(0.05, 0.1 / (q.recent_rate * false_alarm_every**0.5)))
    z_confirm = -level(false_alarm_every**-0.25)
    z_wander = -level(min(0.05, 1.0 / (q.recent_rate * false_alarm_every)))
    z_recall, z_new = -level(q.recall_level), -level(q.new_level)
    kind, nothing = X.dtype.type, np.zeros(X.shape[1], X.dtype)
    signatures = [Signature(nothing, 0.0, 0.0, 0.0)]
    units: list[Unit] = []
    t, alarm, batches, against, filled, previous = 0, 0, 0, 0, 0, None
    w, ww, wb = nothing, 0.0, 0.0  # the recent mean, sum of a^2, sum of a b
    r, count, rr, wr = nothing, 0.0, 0.0, 0.0  # the reference, its samples, sum of r^2, sum of a r
    batch, share = nothing, 0.0  # a batch, and its share of the recent mean
    candidate, spread = nothing, 0.0
    winners: list[int] = []
    events: list[Event] = []

    def distance(a: FloatArray, b: FloatArray) -> float:
        return plain.distance_power(a, b, 2)

    def strays(now: Signature, z: float, z_w: float) -> bool:
        fast = now.certain(now.fast - max(0.0, now.drift[0]), 1.0 / n) * quantile(now.nu(), z)
        return distance(batch, now.mean) > fast + now.limit(now.wander, 1.0 / n + now.weight, z, z_w) or distance(
            batch, r
        ) > fast + now.limit(now.drift, 1.0 / n + rr, z, z_w)

    columns, known = Columns(X.shape[1], false_alarm_every, q), [Known(X.shape[1])]
    onset: tuple[int, int] | None = None  # where a change began, and how far that may be off, once it shows
    certain, lead = False, 0  # whether a column has made the change certain, and rows before the candidate

    def misfit(s: Signature, total: int, z: float) -> float:
        return distance(candidate, s.mean) / s.limit(s.wander, 1.0 / total + s.weight, z, z_wander)

    def sure(total: int) -> float:
        ratio = max(columns.voice / columns.h, misfit(signatures[t], total, z_new), 1.0)
        return float(np.rint(1000.0 * min(ratio, 50.0))) / 1000.0

    def see_onset(step: int, evidence: int) -> None:
        nonlocal onset
        if onset is None:
            rows, off = columns.began(known[t], evidence)
            onset = step - rows, off

    def tell(kind: str, step: int, target: int, total: int) -> None:
        assert onset is not None
        events.append(Event(kind, step, t, target, step - onset[0], onset[1], -1, sure(total)))

    def propose(n_batches: int) -> None:
        nonlocal candidate, spread, batches, alarm
        candidate = columns.latest(n_batches).direction.astype(X.dtype)
        spread = max(0.0, 1.0 - plain.dot(candidate, candidate))
        columns.fresh = batches = n_batches
        alarm = n_batches * q.batch + 1

    def use(target: int, total: int, new: bool) -> None:
        nonlocal t, alarm, batches, against, filled, previous, certain, lead, w, ww, wb, share, r, count, rr, wr, onset
        columns.go_on(known[target], known[t], min(columns.fresh, 4), new)
        part = 1.0 / total
        alarm = batches = against = filled = lead = 0
        onset = None
        certain, t, previous, w, ww, wb, share = False, target, None, candidate, part, part if new else 0.0, 0.0
        r, count, rr, wr = candidate, float(total), part, part

    def decide(step: int, total: int) -> None:
        part, last, now = 1.0 / total, batches >= q.most_batches, signatures[t]
        n_batches, least, best, by_column = min(columns.fresh, 4), math.inf, -1, 0.0
        see_onset(step, total + lead)
        for b, s in enumerate(signatures):
            if b != t:
                column = columns.misfit(known[b], n_batches)
                ratio = max(column, misfit(s, total, z_new))
                if ratio < least:
                    least, best, by_column = ratio, b, column
        if last and least <= 1.0:
            least = max(by_column, misfit(signatures[best], total, z_wander))
        moved = False
        if least > 1.0 and best >= 0:
            near = [
                columns.distance(known[best], known[t], other.level, other.sway)
                for b, other in enumerate(known)
                if b != best and other.batches > 0.0
            ]
            far = math.inf
            if n_batches:
                guess = columns.guess(n_batches)
                far = columns.distance(known[best], known[t], guess.f, guess.error)
            moved = far < q.clearly_nearest * min(near, default=math.inf)
            if not moved and by_column <= 1.0:
                home = signatures[best].mean
                others = [distance(home, s.mean) for b, s in enumerate(signatures) if b != best]
                moved = distance(candidate, home) < q.clearly_nearest * min(others)
        if least > 1.0 and not moved:
            target = best
            if max_units is None or len(signatures) < max_units:
                target = len(signatures)
                tell("new_block", step, target, total)
                signatures.append(now)
                known.append(Known(X.shape[1]))
            elif best < 0 or misfit(now, total, z_new) <= least:
                target = t
            else:
                tell("recall", step, best, total)
            fresh = Signature(candidate, float(total), spread, part)
            fresh.wander, fresh.drift, fresh.fast = now.wander, now.drift, now.fast
            signatures[target] = fresh
            use(target, total, True)
        elif last or (
            batches >= (q.least_batches + 1 if certain else q.recall_batches)
            and (moved or max(by_column, misfit(signatures[best], total, z_recall)) <= 1.0)
        ):
            far = distance(candidate, signatures[best].mean)
            if moved and far > signatures[best].wander[0]:
                signatures[best].wander = (far, 3.0 * far * far)
            tell("recall", step, best, total)
            use(best, total, False)

    def race(step: int, at_home: bool) -> bool:
        nonlocal alarm, batches
        n_batches, most, best = 4 if at_home else min(columns.stayed, 4, columns.longest_run()), columns.h, -1
        for b, block in enumerate(known):
            if b != t and block.batches > 0.0:
                gain = columns.gain(block, known[t], n_batches, at_home)
                if gain > most and columns.misfit(block, n_batches) <= 1.0:
                    most, best = gain, b
        if best < 0:
            return False
        propose(n_batches)
        total = n_batches * q.batch
        if misfit(signatures[best], total, z_new) > 1.0:
            alarm = batches = 0
            return False
        if at_home:
            here, heard = known[t], known[t].sway[0] < 1e300
            here.level[0], here.sway[0] = np.where(heard, (here.home, 0.0 * here.home), (here.level[0], here.sway[0]))
            here.batches = min(here.batches, 1.0 / (q.batch * q.reference_rate))
        see_onset(step, total)
        tell("recall", step, best, total)
        use(best, total, False)
        return True

    def judge(step: int) -> bool:
        nonlocal alarm, batches, against, filled, previous, certain, lead, w, ww, wb, batch, share, r, count, rr, wr
        nonlocal onset
        columns.close()
        for name, column, rows, off in columns.tell(step, false_alarm_every):
            events.append(Event(name, step, t, t, rows, off, column))
        if certain:
            return False
        if columns.reference_age == 0 or known[t].batches == 0.0:
            columns.start(known[t])
            return False
        reference_age = float(columns.reference_age)
        evidence = columns.weigh(known[t], alarm == 0 or batches >= q.least_batches)
        if columns.turned:
            signatures[t], previous = Signature(nothing, 0.0, 0.0, 0.0), None
            w = r = batch = nothing
            ww = wb = count = rr = wr = share = 0.0
            alarm = batches = against = filled = lead = 0
            onset = None
        columns.see_doubt(known[t], reference_age)
        if evidence < columns.h:
            return columns.stayed % q.most_batches == 0 and alarm == 0 and len(known) > 1 and race(step, True)
        feature, n_batches, run = columns.departure(known[t], reference_age)
        if feature >= 0:
            against, certain, lead = q.least_batches, True, (run - n_batches) * q.batch
            propose(n_batches)
            decide(step, n_batches * q.batch)
            return True
        if alarm == 0 and len(known) > 1 and race(step, False):
            return True
        columns.settle(known[t])
        return False

    for step, row in enumerate(X):
        winners.append(-1)
        x = columns.fill(row, step)
        squared = plain.dot(x, x)
        scale = 1.0 / math.sqrt(squared) if squared > 0.0 else 0.0
        if (columns.read(row, x, scale) and judge(step)) or squared == 0.0 or np.isnan(row).all():
            continue
        u, now = kind(scale) * x, signatures[t]
        if alarm:
            total, within = alarm, alarm - batches * q.batch
            batch = nothing if within == 1 else batch
            candidate, spread = (nothing, 0.0) if total == 1 else (candidate, spread)
            batch = batch + kind(1.0 / within) * (u - batch)
            d = u - candidate
            spread = (1.0 - 1.0 / total) * (spread + 1.0 / total * plain.dot(d, d))
            candidate = candidate + kind(1.0 / total) * d
            alarm += 1
            if within < q.batch:
                continue
            batches += 1
            if certain:
                decide(step, total)
                continue
            if strays(now, z_confirm, z_wander):
                against += 1
            elif not strays(now, 0.0, 0.0):
                against -= 1
            part, last = 1.0 / total, batches >= q.most_batches
            speaks = columns.watched < 5.0 or columns.voice >= columns.h
            if against >= q.least_batches and speaks:
                decide(step, total)
            elif against <= 0 or last:
                if against > 0:
                    rate = total / (now.count + total)
                    now.wander = now.observed(now.wander, distance(candidate, now.mean), part + now.weight, rate)
                    now.drift = now.observed(now.drift, distance(candidate, r), part + rr, rate)
                alarm = batches = against = filled = 0
                onset = None
                previous, w, ww, wb, wr, share = None, batch, 1.0 / within, 0.0, 0.0, 0.0
            continue
        a = max(q.recent_rate, min(1.0, 4.0 / (now.count + 1.0)))
        w = w + kind(a) * (u - w)
        ww = (1.0 - a) * (1.0 - a) * ww + a * a
        wb *= 1.0 - a
        wr *= 1.0 - a
        share = (1.0 - a) * share + a
        if now.count >= q.youngest:
            far, far_weight = distance(w, now.mean), ww - 2.0 * wb + now.weight
            near, near_weight = distance(w, r), ww - 2.0 * wr + rr
            if now.count >= q.youngest * now.inflation() and (
                far > now.limit(now.wander, far_weight, z_suspect, z_wander)
                or near > now.limit(now.drift, near_weight, z_suspect, z_wander)
            ):
                alarm = 1
                columns.fresh, columns.partial = 0, min(1, len(columns.rows))
                continue
            rate = max(1.0 / (now.count + 1.0), q.slowest_rate)
            now.wander = now.observed(now.wander, far, far_weight, rate)
            now.drift = now.observed(now.drift, near, near_weight, rate)
        previous, b = now.absorb(u, previous, q.slowest_rate)
        wb = (1.0 - b) * wb + b * a
        batch = nothing if filled == 0 else batch
        filled += 1
        batch = batch + kind(1.0 / filled) * (u - batch)
        if filled == q.batch:
            if count > 0.0:
                beyond = distance(batch, r) - now.noise(1.0 / n + rr)
                now.fast += max(n / now.count, n * q.slowest_rate) * (beyond - now.fast)
            count += n
            rate = max(n / count, n * q.reference_rate)
            r = r + kind(rate) * (batch - r)
            wr = (1.0 - rate) * wr + rate / n * share
            rr = (1.0 - rate) * (1.0 - rate) * rr + rate * rate / n
            filled, share = 0, 0.0

        if columns.doubt:
            continue
        label = -1 if labels is None else labels[step]
        h = [plain.dot(unit.M, x) * scale for unit in units]
        block = [i for i, unit in enumerate(units) if unit.block == t]
        willing = [i for i in block if not (refusing and label >= 0 and units[i].refuses(label))]
        i = max(willing or block, key=lambda i: (h[i], -i), default=-1)
        right = max(1, max_units // len(signatures)) if max_units else 0
        if max_units is None:
            room = len(block) < n_slots
        else:
            room = len(units) < max_units or len(block) < right
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
            units[i].M = plain.renormalised(kind(1.0 - v) * units[i].M + kind(v * scale) * x, 0.0)
        units[i].C += 1
        units[i].v = units[i].v / (1.0 + 0.5 * units[i].v)
        if label >= 0:
            units[i].votes[label] += 1
        winners[-1] = i
        if max_units is not None and len(units) > max_units:
            merge(units, right)
    result = {
        "winners": winners,
        "prototypes_": np.array([unit.M for unit in units]),
        "events_": events,
        "alarm_": alarm,
        "learning_rates_": [unit.v for unit in units],
        "win_counts_": [unit.C for unit in units],
        "unit_blocks_": [unit.block for unit in units],
        "n_blocks_": len(signatures),
        "task_pointer_": t,
        "columns": [block.rows() for block in known],
        "running": columns.running(),
        "means": [s.mean for s in signatures],
        "counted": [columns.stayed, columns.fresh, columns.reference_age, int(columns.watched), batches, against],
        "statistics": [
            [s.count, s.variance, s.weight, s.pairs, s.product, s.square, *s.wander, *s.drift, s.fast]
            for s in signatures
        ],
    }
    return result if labels is None else {**result, "votes_": [unit.votes for unit in units]}
