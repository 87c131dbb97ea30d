"""The naive twin of :mod:`ccmem.models.adaptive.columns`: all columns at a time, sharing no code with the kernel."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ccmem._typing import BoolArray, FloatArray

TINY = 1e-300
SILENT = 1e301


class Known:
    """What a block knows of its features; every array has a row of means and a row of spreads."""

    def __init__(self, width: int) -> None:
        self.level, self.sway, self.noise = np.zeros((3, 2, width))
        self.home = np.zeros(width)  # the means it began with
        self.batches = 0.0

    def rows(self) -> FloatArray:
        """As the kernel lays them out."""
        rows = [[row[kind] for row in (self.level, self.sway, self.noise)] for kind in range(2)]
        return np.concatenate([*rows, [self.home]])


class Batch(NamedTuple):
    f: FloatArray
    error: FloatArray
    direction: FloatArray

    def heard(self) -> BoolArray:
        """Which columns it says something of."""
        return self.error[0] < 1e300


def student(square: float, v: float) -> float:
    """z^2 of a squared Student deviate."""
    return v * math.log(1.0 + square / v) * ((8.0 * v + 1.0) / (8.0 * v + 3.0)) ** 2


class Columns:
    """The stream as columns see it."""

    def __init__(self, width: int, false_alarm_every: float, tuning: Any) -> None:
        self.width, self.q = width, tuning
        self.h = math.log(4.0 * width * false_alarm_every / tuning.batch)
        self.bound = 2.0 * self.h
        for _ in range(8):
            self.bound = 2.0 * self.h - math.log(2.0 * math.pi * self.bound)
        self.rows: list[FloatArray] = []
        self.directions: list[FloatArray] = []
        self.some = False  # whether a reading was ever missing
        self.waiting = [np.zeros(width)] * 4  # readings that wait, their sums
        self.unheard = np.zeros(width, np.bool_)
        self.streak, self.tail, self.gaps, self.gone = np.zeros((4, width))
        self.lost = np.zeros(width, np.bool_)
        self.ring: list[Batch] = []
        self.reference_age = self.fresh = self.stayed = self.partial = 0
        self.doubt, self.voice = False, 0.0
        self.turned = False  # whether a column has just been heard for the first time
        self.before = np.zeros(width)
        self.R, self.stray, self.miss, self.S, self.run, self.pull = np.zeros((6, 2, width))
        self.error, self.reach, self.carry, self.echo = np.zeros((4, 2, width))
        self.watched = 0.0

    def running(self) -> FloatArray:
        """What runs along with the stream, as the kernel lays it out."""
        rows = (
            self.R,
            self.stray,
            self.miss,
            self.S,
            self.run,
            self.pull,
            self.error,
            self.reach,
            self.carry,
            self.echo,
        )
        return np.concatenate([[row[kind] for row in rows] for kind in range(2)])

    def fill(self, x: FloatArray, step: int) -> FloatArray:
        """x with what is expected where nothing was read."""
        if np.isnan(x).any() and not self.some:
            self.some, self.unheard = True, np.full(self.width, step == 0)
        return np.where(np.isnan(x), self.R[0], x).astype(x.dtype)

    def read(self, x: FloatArray, filled: FloatArray, scale: float) -> bool:
        """Take a row; whether a batch is full."""
        x = x.astype(np.float64)
        if not self.rows and self.reference_age == 0:
            self.R[0], self.before = np.where(np.isnan(x), (self.R[0], self.before), x)
        self.before = np.where(self.unheard & ~np.isnan(x), x, self.before)
        self.unheard = self.unheard & np.isnan(x)
        self.rows.append(x)
        self.directions.append(scale * filled.astype(np.float64))
        return len(self.rows) == self.q.batch

    def close(self) -> None:
        """Features of the full batch, their errors, and its mean direction."""
        b = float(self.q.batch)
        total, squares, fourths, direction = np.zeros((4, self.width))
        for x, along in zip(self.rows, self.directions, strict=True):
            there = ~np.isnan(x)
            step = np.where(there, (x - self.before) * (x - self.before), 0.0)
            total, squares, fourths = total + np.where(there, x - self.R[0], 0.0), squares + step, fourths + step * step
            direction = direction + along
            self.before = np.where(there, x, self.before)
        self.readings = (~np.isnan(self.rows)).sum(axis=0)
        n, total, squares, fourths = (
            new + old for new, old in zip((self.readings, total, squares, fourths), self.waiting, strict=True)
        )
        silent = n < b / 2.0
        self.waiting = [np.where(silent, kept, 0.0) for kept in (n, total, squares, fourths)]
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            mean, variance = self.R[0] + total / n, np.minimum(squares / (2.0 * n), 1e300)
            steps = 4.0 * n * n * variance * variance / np.maximum(fourths, TINY)
            tails = (1.0 - steps / n) / (4.0 * np.maximum(steps - 2.0, 0.01))
            share = np.where((tails > 0.5 / n) & (variance > 0.0), np.minimum(tails, 1.0), 0.5 / n)
            rounding = 1e-7 * mean * (1e-7 * mean)
            error = np.array([variance / n + rounding, variance * share + rounding])
        f, held = np.array([mean, np.sqrt(variance)]), self.ring[-1].f if self.ring else np.zeros((2, self.width))
        f, error = np.where(silent, held, f), np.where(silent, SILENT, error)
        self.ring = [*self.ring, Batch(f, error, direction / b)][-4:]
        self.rows, self.directions = [], []
        self.fresh += 1 - self.partial
        self.partial = 0
        self.stayed += 1

    def tell(self, step: int, N: float) -> list[tuple[str, int, int, int]]:
        """Columns that are lost or back: kind, column, rows since, and how far that may be off."""
        told, b = [], self.q.batch
        for j in range(self.width if self.some else 0):
            here = int(self.readings[j])
            if self.unheard[j]:
                continue
            if here:
                if self.lost[j]:
                    told.append(("column_back", j, here, b - here))
                self.gaps[j] += self.streak[j] > 0.0
                self.gone[j] += self.streak[j]
                self.streak[j], self.lost[j], self.tail[j] = 0.0, False, b - here
                continue
            self.streak[j] += 1.0
            often = self.width * (self.gaps[j] + 1.0) / ((step + 1.0) / b) * N / b
            goes_on = (self.gone[j] - self.gaps[j] + 1.0) / (self.gone[j] + 2.0)
            if not self.lost[j] and self.streak[j] >= max(2.0, 1.0 - math.log(often) / math.log(goes_on)):
                self.lost[j] = True
                told.append(("column_lost", j, int(self.streak[j] * b + self.tail[j]), b))
        return told

    def start(self, block: Known) -> None:
        """Let the latest batch be all that is known."""
        f, error, _ = self.ring[-1]
        heard = self.ring[-1].heard()
        if block.batches == 0.0:
            block.__init__(self.width)  # type: ignore[misc]
            block.level, block.noise = np.where(heard, f, 0.0), np.where(heard, error, 0.0)
            block.home = block.level[0].copy()
            block.sway, block.batches = np.where(heard, np.zeros((2, self.width)), SILENT), 1.0
            self.error, self.reach, self.carry, self.echo = np.zeros((4, 2, self.width))
        self.R, self.reference_age = np.where(heard, f, self.R), 1
        self.stray, self.miss, self.S, self.run, self.pull = np.zeros((5, 2, self.width))

    def weigh(self, block: Known, learns: bool) -> float:
        """Evidence of every feature with the latest batch, the most of it returned; then learning."""
        f, error, _ = self.ring[-1]
        h, slowest = self.h, self.q.batch * self.q.slowest_rate
        new = self.ring[-1].heard() & (block.sway[0] > 1e300)
        same = ~self.ring[-1].heard() | new  # columns that keep what they have, for now
        kept = [x.copy() for x in (self.S, self.run, self.pull, self.stray, self.miss)]
        stray = f - self.R
        floor = np.maximum(block.noise, TINY)
        V = np.maximum(self.error, floor)
        trust = self.watched / (self.watched + 5.0)
        phi = np.clip(trust * self.carry / (self.reach + TINY), 0.0, 0.95)
        left = np.minimum(np.maximum(trust * self.echo, 0.0), 0.95 * V)
        e = stray - phi * self.stray
        spread = np.maximum((V + 2.0 * left) * (1.0 + 1.0 / self.reference_age), error)
        furthest = h if self.watched >= 5.0 else 0.0
        z = np.sqrt(np.minimum(e * e / (spread + e * e * (0.5 / (self.watched + 5.0)) + TINY), furthest))
        signed = np.where(e > 0.0, z, -z)
        k = np.maximum(1.0, np.abs(self.pull) / np.maximum(self.run, 1.0))
        further = self.S + (np.where(self.pull > 0.0, k * signed, -k * signed) - 0.5 * k * k)
        begins = (self.S <= 0.0) | (further <= 0.0)
        self.S = np.where(begins, np.maximum(0.0, z - 0.5), further)
        self.run, self.pull = np.where(begins, 1.0, self.run + 1.0), np.where(begins, signed, self.pull + signed)
        most = float(self.S[:, ~same].max(initial=0.0))
        keeps = h / 3.0 < self.S if learns else np.full(self.S.shape, True)
        keeps |= same
        if self.watched >= 2.0:
            e = np.where(e * e > 16.0 * np.maximum(V, error), np.copysign(np.sqrt(16.0 * np.maximum(V, error)), e), e)
        limit = 16.0 * np.maximum(np.maximum(self.reach, floor), error)
        far = (stray * stray > limit) & (self.watched >= 2.0)
        bounded = np.where(far, np.copysign(np.sqrt(limit), stray), stray)
        rate, rate_m = max(1.0 / (self.watched + 1.0), slowest), max(1.0 / (block.batches + 1.0), slowest)
        rate_r = max(1.0 / (self.reference_age + 1.0), self.q.batch * self.q.reference_rate)
        away = f - block.level

        def moved(old: FloatArray, step: FloatArray) -> FloatArray:
            return np.where(keeps, old, old + step)

        error_step, echo_step = rate * (e * e - self.error), rate * (e * self.miss - self.echo)
        carry_step = rate * (bounded * self.stray - self.carry)
        self.error, self.echo = moved(self.error, error_step), moved(self.echo, echo_step)
        self.reach = moved(self.reach, rate * (bounded * bounded - self.reach))
        self.carry = moved(self.carry, carry_step)
        self.R = moved(self.R, rate_r * stray)
        block.sway = moved(block.sway, rate_m * ((1.0 - rate_m) * away * away - block.sway))
        block.level, block.noise = moved(block.level, rate_m * away), moved(block.noise, rate_m * (error - block.noise))
        self.stray, self.miss = stray, np.where(keeps, 0.0, e)
        self.S, self.run, self.pull, self.stray, self.miss = (
            np.where(same, old, now)
            for old, now in zip(kept, (self.S, self.run, self.pull, self.stray, self.miss), strict=True)
        )
        first = new & (block.noise[0] == 0.0)
        self.turned, new = bool(first.any()), new & (first | learns)
        if new.any():
            self.error, self.reach = (np.where(first, 16.0 * error, old) for old in (self.error, self.reach))
            self.carry, self.echo = (np.where(first, 0.0, old) for old in (self.carry, self.echo))
            block.level, block.sway = np.where(new, f, block.level), np.where(new, 0.0, block.sway)
            block.noise, self.R = np.where(new, error, block.noise), np.where(new, f, self.R)
            block.home = np.where(new, f[0], block.home)
            self.S, self.run, self.pull, self.stray, self.miss = (
                np.where(new, 0.0, old) for old in (self.S, self.run, self.pull, self.stray, self.miss)
            )
        if learns:
            self.reference_age += 1
            block.batches += 1.0
            self.watched += 1.0
            if block.batches <= 1.0 / (self.q.batch * self.q.reference_rate):
                block.home = block.level[0] + 0.0
            elif self.stayed % self.q.most_batches == 0:
                block.home = block.level[0] + (1.0 - self.q.most_batches * slowest) * (block.home - block.level[0])
        self.voice = most
        return most

    def latest(self, n: int) -> Batch:
        """Mean of the latest n batches."""
        f, error, direction = np.zeros((2, self.width)), np.zeros((2, self.width)), np.zeros(self.width)
        for batch in self.ring[::-1][:n]:
            f, error, direction = f + batch.f, error + batch.error, direction + batch.direction
        return Batch(f / n, error / n, direction / n)

    def guess(self, n: int) -> Batch:
        """The same, of every column by the batches that say something of it, if any does."""
        mean = self.latest(n)
        f, error, heard = np.zeros((2, self.width)), np.zeros((2, self.width)), np.zeros(self.width)
        for batch in self.ring[::-1][:n]:
            f, error = f + np.where(batch.heard(), batch.f, 0.0), error + np.where(batch.heard(), batch.error, 0.0)
            heard += batch.heard()
        some = (heard > 0) & (heard < n)
        m = np.maximum(heard, 1.0)
        return Batch(np.where(some, f / m, mean.f), np.where(some, error / m * (n / m), mean.error), mean.direction)

    def strangeness(self, block: Known, reference_age: float, kind: int, j: int) -> float:
        """z^2 of how far its run has taken a feature, by how far it wanders."""
        n = min(int(self.run[kind, j]), 4)
        away = self.latest(n).f[kind, j] - self.R[kind, j]
        V = max(self.reach[kind, j], self.error[kind, j], block.noise[kind, j], TINY)
        r = min(max(self.carry[kind, j] / V, 0.0), 0.98)
        share = min(1.0, (1.0 + r) / ((1.0 - r) * n)) + 1.0 / reference_age
        return student(away * away / (V * share), self.watched * (1.0 - r) / (1.0 + r) + 2.0)

    def see_doubt(self, block: Known, reference_age: float) -> None:
        """Whether slots wait."""
        self.doubt = any(
            3.0 * self.S[kind, j] >= 2.0 * self.h
            and self.ring[-1].heard()[j]
            and 3.0 * self.strangeness(block, reference_age, kind, j) >= 2.0 * self.bound
            for kind in range(2)
            for j in range(self.width)
        )

    def departure(self, block: Known, reference_age: float) -> tuple[int, int, int]:
        """Feature that left, batches where it went, batches since it began to; -1 if there is none."""
        found, most = (-1, 0, 0), 0.0
        for kind in range(2):
            for j in range(self.width):
                if self.S[kind, j] < self.h or not self.ring[-1].heard()[j]:
                    continue
                run, R = int(self.run[kind, j]), self.R[kind, j]
                n = min(run, 4)
                strays = [batch.f[kind, j] - R for batch in self.ring[::-1][:n]]
                near = 0
                while near < n and not strays[near] * strays[0] < 0.5 * strays[0] * strays[0]:
                    near += 1
                strange = self.strangeness(block, reference_age, kind, j) >= self.bound
                if near >= 2 and strange and self.S[kind, j] > most:
                    found, most = (kind * self.width + j, near - 1, run), self.S[kind, j]
        return found

    def settle(self, block: Known) -> None:
        """Certain evidence that led to nothing stays certain; after twelve batches the feature has wandered there."""
        for kind, j in np.argwhere((self.h <= self.S) & self.ring[-1].heard()):
            self.S[kind, j] = self.h
            if self.run[kind, j] >= self.q.most_batches:
                n = min(int(self.run[kind, j]), 4)
                away = self.latest(n).f[kind, j] - self.R[kind, j]
                V = max(self.reach[kind, j], self.error[kind, j], block.noise[kind, j], TINY)
                rate = max(n / (self.watched + n), self.q.batch * self.q.slowest_rate)
                self.reach[kind, j] += rate * (min(away * away, 16.0 * V) - self.reach[kind, j])
                self.R[kind, j] += away
                self.stray[kind, j], self.miss[kind, j] = self.ring[-1].f[kind, j] - self.R[kind, j], 0.0
                self.S[kind, j] = self.run[kind, j] = self.pull[kind, j] = 0.0

    def misfit(self, block: Known, n: int) -> float:
        """How far the latest n batches are from a block; above 1 if they are not from there."""
        if block.batches == 0.0 or n == 0:
            return 0.0
        guess = self.guess(n)
        V = np.maximum(self.error, np.maximum(block.noise, guess.error))
        away = guess.f - block.level
        worst = (away * away / (V / n + block.sway * (1.0 + 1.0 / block.batches) + TINY)).max()
        return student(float(worst), block.batches + 5.0) / self.bound

    def distance(self, block: Known, now: Known, there: FloatArray, doubt: FloatArray) -> float:
        """From a block to levels, in variances; by columns known in both."""
        V = np.maximum(self.error, np.maximum(now.noise, block.noise))
        terms = (there - block.level) * (there - block.level) / np.maximum(V, TINY)
        return float(sum(terms[(doubt < 1e300) & (block.sway < 1e300)].tolist()))

    def began(self, block: Known, evidence: int) -> tuple[int, int]:
        """Rows since a change began, and how far that may be off."""
        b, batches, told = (
            self.q.batch,
            self.ring[::-1][: self.stayed],
            min(evidence, self.q.most_batches * self.q.batch),
        )
        if len(batches) < 3:
            return told, told // 2 + b
        g = self.latest(2)
        V = np.maximum(np.maximum(self.error, block.noise), np.maximum(g.error, TINY))
        shift = g.f - self.R
        far = shift * shift / V
        top = float(far.max())
        if not 1e-200 < top < 1e200:
            return told, told // 2 + b
        least, rows = min(0.5, max(0.1, 1.5 * (1.0 / math.sqrt(top)))), float(2 * b + len(self.rows))
        reach, newer, p = rows, 1.0, 1.0
        moved = far >= 0.25 * top
        for batch in batches[2:]:
            above = sum(((batch.f - self.R) * shift / V)[moved].tolist())
            p = above / sum(far[moved].tolist())
            p = min(p, 1.0) if p > 0.0 else 0.0
            if p < least:
                rows += p * b
                break
            rows, reach, newer = rows + min(1.0, p + 1.0 - newer) * b, reach + b, p
        off = 1.0 + 2.0 * b * (1.0 / math.sqrt(top)) + max(0.0, reach - rows)
        if p >= 0.5:
            off, rows = off + max(float(b), told - rows), max(rows, float(told))
        elif p >= least:
            off += b
        return round(rows), math.ceil(off)

    def gain(self, block: Known, now: Known, n: int, at_home: bool) -> float:
        """By how much a block explains the latest n batches better than the reference: by one feature, or by all.

        ``at_home``: better than the home of the block in use, by one mean.
        """
        guess = self.guess(n)
        V = np.maximum(self.error, np.maximum(block.noise, now.noise))
        V = np.maximum(V, guess.error) + np.maximum(block.sway - self.error, 0.0) + TINY
        here, there = (guess.f - self.R) ** 2, (guess.f - block.level) ** 2
        if at_home:
            here, there, V = (guess.f[:1] - now.home) ** 2, there[:1], V[:1]
        tails = 2.0 * (self.watched + 5.0)
        gains = np.minimum(here / (V + here / tails), self.h) - np.minimum(there / (V + there / tails), self.h)
        weight = 0.5 * n / (1.0 + n / min(block.batches, float(self.reference_age)))
        together = sum(gains.ravel().tolist())
        return max(float((weight * gains).max()), 0.0 if at_home else weight * together) if together > 0.0 else 0.0

    def longest_run(self) -> int:
        """Batches since the first of the features whose shift is certain began to go."""
        return int(self.run[(self.h <= self.S) & self.ring[-1].heard()].max(initial=0.0))

    def go_on(self, block: Known, old: Known, n: int, new: bool) -> None:
        """Let the latest n batches be the reference; a new block begins with them."""
        for x in self.rows:
            self.before = np.where(np.isnan(x), self.before, x)
        self.rows, self.directions, self.waiting = [], [], [np.zeros(self.width)] * 4
        self.fresh = self.partial = 0
        self.doubt, self.stayed, self.reference_age = False, n, n
        if new:
            self.watched, block.batches = min(self.watched, 20.0), float(n)
        else:
            self.reference_age = max(n, int(min(block.batches, 1.0 / (self.q.batch * self.q.reference_rate))))
        if n == 0:
            return
        guess, noise = self.guess(n), old.noise  # of the block left, which may be the same
        f, silent = guess.f, ~guess.heard()
        expected = self.R if new else np.where(block.sway < 1e300, block.level, self.R)
        if new:
            block.level = np.where(silent, expected, f)
            block.home = block.level[0].copy()
            block.sway = np.where(silent, np.full_like(f, SILENT), 0.0)
            block.noise = np.where(silent, noise, np.maximum(guess.error, noise))
        known = (noise > 0.0) & (block.noise > 0.0)
        ratio = np.where(known, block.noise / np.where(known, noise, 1.0), 1.0)
        self.error, self.reach = ratio * self.error, ratio * self.reach
        self.carry, self.echo = ratio * self.carry, ratio * self.echo
        if not new:
            away, doubt = f - block.level, np.maximum(np.maximum(self.error, block.noise), guess.error) / n
            slow = np.maximum(block.sway - self.error, 0.0)
            wander = np.maximum(slow, away * away - 9.0 * (doubt + slow))
            f = block.level + wander / (wander + doubt + TINY) * away
        self.R = np.where(silent, expected, f)
        self.stray = np.where(silent | ~self.ring[-1].heard(), 0.0, self.ring[-1].f - f)
        self.miss, self.S, self.run, self.pull = np.zeros((4, 2, self.width))
