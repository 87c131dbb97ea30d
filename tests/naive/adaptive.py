"""AdaptiveCCM row by row in plain numpy: batches, evidence, learning and slots; decisions as in the package."""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem.models.adaptive import state as names
from ccmem.models.adaptive.cold import decide, list_members
from ccmem.models.adaptive.fit import drift_scales
from ccmem.models.adaptive.hot import LEAST
from naive import plain

TINY = names.TINY


def features(rows: Any, before: Any, reference: Any) -> Any:
    """Mean, spread and error of the spread of every column of a batch that follows the row ``before``."""
    n = len(rows)
    steps = np.diff(np.vstack([before, rows]), axis=0) ** 2
    variance = steps.sum(axis=0) / (2 * n)
    count = 4 * n * n * variance**2 / np.maximum((steps**2).sum(axis=0), TINY)
    share = np.clip((1 - count / n) / (4 * np.maximum(count - 2, 0.01)), 0.5 / n, 1.0)
    mean = np.where(variance > 0, reference + (rows - reference).sum(axis=0) / n, rows[-1])
    return np.stack([mean, np.sqrt(variance), np.where(variance > 0, variance * share, 0.0)])


class Naive:
    """A stream of batches, newest first in ``ring``, beside a state of the package that holds everything else."""

    def __init__(self, memory: Any, width: int, dtype: Any) -> None:
        self.memory, self.q = memory, memory._settings()
        self.state = memory._new_state(width, np.dtype(dtype), np.random.default_rng(0))
        self.state = self.state._replace(
            prototypes=np.zeros((2000, width), dtype), unit_blocks=np.zeros(2000, np.int64)
        )
        self.state = self.state._replace(members=np.zeros(2000, np.int64), journal=np.zeros((500, 7), np.int64))
        self.ring: list[Any] = []
        self.columns, self.largest = np.zeros((3, width)), np.zeros(width)
        self.units: list[dict[str, Any]] = []

    def value(self, *counters: str) -> Any:
        found = [float(self.state.counters[getattr(names, name)]) for name in counters]
        return found if len(found) > 1 else found[0]

    def noise(self) -> Any:
        _, noise, _ = names.block_values(self.state, int(self.value("POINTER")))
        return noise, self.state.stream[names.REFERENCE : names.REFERENCE + 2]

    def phi(self, w: int) -> Any:
        """Weight of the deviation before a window in the prediction of its mean."""
        s, n = self.state.stream, self.value("WATCHED")
        product, power = s[names.PRODUCT : names.PRODUCT + 2], s[names.POWER : names.POWER + 2]
        phi = np.where(power > 0, product / np.where(power > 0, power, 1.0), 0.0)
        phi = np.minimum(np.maximum(phi, 0.0) * n / (n + self.q.prior_count), 0.95)
        return phi * (1 - phi**w) / (w * (1 - phi)) if w > 1 else phi

    def freedom(self) -> Any:
        """Degrees of freedom of every feature: observations, discounted for the correlation of residuals."""
        q, s, n = self.q, self.state.stream, self.value("WATCHED")
        one = s[names.ONE : names.ONE + 2]
        left = np.maximum(s[names.RESIDUAL : names.RESIDUAL + 2], 0) * n / (n + q.prior_count) / np.maximum(one, 0.01)
        left = np.minimum(left, 0.95)
        return q.prior_count + min(n, q.stream_span) * (1 - left) / (1 + left)

    def bayes_factors(self, i: int) -> Any:
        """Bayes factor of every feature for the latest 2^i batches."""
        q, w = self.q, 1 << i
        age, kept = self.value("AGE", "KEPT")
        error, level = self.noise()
        window = np.array(self.ring[:w])
        x = window[:, :2] - level
        if kept >= w:
            mean, predicted = x.mean(axis=0), self.phi(w) * (self.ring[w][:2] - level)
            x = x - np.where(mean * predicted <= 0, 0.0, np.where(abs(predicted) < abs(mean), predicted, mean))
        away = x.mean(axis=0)
        if w > 1:
            away = self.trimmed(x) / w
        own = np.stack([(window[:, 1] ** 2).sum(axis=0) / q.batch, window[:, 2].sum(axis=0)]) / w**2
        one = error + q.rounding * level**2 + TINY
        variance = np.maximum(drift_scales(self.state, q)[i] * one * (1 + w / age), own)
        nu, tau = self.freedom(), 1 + q.prior_scale
        z2 = np.minimum(away**2 / variance, 1e12)
        return np.exp(np.minimum((nu + 1) / 2 * np.log((nu + z2) / (nu + z2 / tau)) - np.log(tau) / 2, 60.0))

    def trimmed(self, x: Any) -> Any:
        """Sum of deviations, the furthest replaced by the second furthest; of two equally far, what leaves less."""
        sums = []
        for side in (x, -x):
            order = np.sort(side, axis=0)
            second = np.where(order[-2] >= np.maximum(-order[0] * (1 - 1e-6), 1e-300), order[-2], 0.0)
            sums.append(order[:-1].sum(axis=0) + second)
        highest, lowest = x.max(axis=0), -x.min(axis=0)
        tied = abs(highest - lowest) <= 1e-6 * (highest + lowest)
        return np.where(tied, np.minimum(abs(sums[0]), abs(sums[1])), np.where(highest > lowest, sums[0], -sums[1]))

    def evidence(self, i: int) -> tuple[float, float]:
        """Evidence of all features, and the mixture statistic."""
        q, scalars = self.q, self.state.scalars
        factors = self.bayes_factors(i).ravel()
        share = len(factors) ** -0.5
        mixture = float(np.log(1 - share + share * factors).sum())
        mean = max(scalars[names.MEAN], scalars[names.MEAN + i] if scalars[names.COUNT + i] else -np.inf)
        x = (mixture - mean) / max(1.0, q.mixture_scale * self.deviation(i))
        k = scalars[names.COUNT] / 2 + 2
        return max(float(np.log(factors.mean())), k * np.log(1 + x / k) if x > 0 else x), mixture

    def deviation(self, i: int) -> float:
        scalars, prior = self.state.scalars, self.q.mixture_prior * 2 * self.state.stream.shape[1]
        variances = [
            (scalars[names.COUNT + k] * scalars[names.VARIANCE + k] + 4 * prior) / (scalars[names.COUNT + k] + 4)
            for k in (0, i)
        ]
        return float(np.sqrt(max(variances)))

    def calibrate(self, i: int, mixture: float) -> None:
        scalars = self.state.scalars
        n = min(scalars[names.COUNT + i] + 1, self.q.stream_span)
        gain = mixture - scalars[names.MEAN + i]
        if n > 2:
            gain = min(gain, 3 * self.deviation(i))
        scalars[names.COUNT + i] = n
        scalars[names.MEAN + i] += gain / n
        scalars[names.VARIANCE + i] += (gain**2 * (1 - 1 / n) - scalars[names.VARIANCE + i]) / n

    def learn(self) -> None:
        """Learn the oldest batch that waits."""
        q, s, c = self.q, self.state.stream, self.state.counters
        waiting, n, age = int(self.value("WAITING")), self.value("WATCHED"), self.value("AGE")
        error, level = self.noise()
        one = error + q.rounding * level**2 + TINY
        drift = {1: s[names.ONE : names.ONE + 2], 4: s[names.FOUR : names.FOUR + 2]}
        scales, spans = drift_scales(self.state, q), min(n + 1, q.stream_span)
        oldest, second, third = (self.ring[waiting - k][:2] - level for k in range(3))
        weights = {w: self.phi(w) for w in drift}
        cap, gain = q.cap * (1 + 1 / max(n, 1e-6)), np.where(error > 0, 1 / spans, 0.0)
        for w, scale in drift.items():
            away = np.mean([b[:2] - level for b in self.ring[waiting - w : waiting]], axis=0)
            predicted = weights[w] * oldest
            away = away - np.where(away * predicted <= 0, 0.0, np.where(abs(predicted) < abs(away), predicted, away))
            square = np.minimum(away**2 / (one * (1 + w / age)), cap * scales[w // 2])
            scale += (square - scale) * gain
            scales = drift_scales(self.state, q)  # those of longer windows are at least as large as white noise
        unit = one * (1 + 1 / age)
        limit = 4 * np.sqrt(np.maximum(drift[1], 1) * unit)
        a, b = np.clip(oldest, -limit, limit), np.clip(second, -limit, limit)
        ends = [np.clip(y - weights[1] * x, -limit, limit) for x, y in ((oldest, second), (second, third))]
        for row, term in ((names.PRODUCT, a * b), (names.POWER, a * a), (names.RESIDUAL, ends[0] * ends[1])):
            s[row : row + 2] += (term / unit - s[row : row + 2]) * gain
        block = int(self.value("POINTER"))
        levels, noise, sway = names.block_values(self.state, block)
        span, old = min(self.state.ages[block] + 1, q.block_span), self.ring[waiting]
        away = old[:2] - levels
        expected = np.maximum(drift[1], 1) * np.maximum(noise, 0) + sway
        sway += (np.minimum(away**2 * (1 - 1 / span), q.cap * expected) - sway) / span
        levels += away / span
        level += (old[:2] - level) / min(age + 1, q.reference_span)
        noise += (np.stack([old[1] ** 2 / q.batch, old[2]]) - noise) / min(span, q.stream_span)
        self.state.ages[block] = span
        c[names.WATCHED] += 1
        c[names.AGE] += 1

    def set_columns(self, centre: Any, variance: Any) -> None:
        """Set centre and spread of every column, and 1 / spread: 0 if it is constant."""
        variances = variance
        for block in range(int(self.value("BLOCKS")) if self.value("AGE") else 0):
            _, noise, sway = names.block_values(self.state, block)
            variances = np.maximum(variances, 0.05**2 * (self.q.batch * noise[0] + sway[0]))
        moves = variances > self.q.rounding * centre**2 + TINY
        self.columns[:] = centre, variance, np.where(moves, 1 / np.sqrt(np.where(moves, variances, 1.0)), 0.0)

    def wake(self, x: Any) -> None:
        """Let the first deviation of a constant column be its spread for now."""
        away = abs(x.astype(float) - self.columns[0])
        wakes = (self.columns[2] == 0) & (away**2 > self.q.rounding * self.columns[0] ** 2 + TINY)
        self.columns[2, wakes] = 1 / away[wakes]

    def in_columns(self) -> bool:
        return bool(self.value("COORDINATES") == 1)

    def first_columns(self, rows: Any) -> None:
        """Spreads by the rows of the first batch so far."""
        squares = (np.diff(rows.astype(float), axis=0) ** 2).sum(axis=0)
        variance = squares / (2 * len(rows))
        self.set_columns(rows[0], variance)
        self.state.scalars[names.SCATTER] = max(float((self.columns[2] > 0).sum()), 1.0)

    def learn_columns(self, t: int) -> None:
        """Centre and spread of the stream, with the newest batch; after 256 rows, the choice of coordinates."""
        mean, spread = self.ring[0][:2]
        batches = (t + 1) // self.q.batch
        if batches == 1:
            self.set_columns(mean, spread**2)
        else:
            gain, away = 1 / min(batches, 32), mean - self.columns[0]
            centre, variance, _ = self.columns
            variance = variance + gain * (spread**2 + (1 - gain) * away**2 - variance)
            self.set_columns(centre + gain * away, variance)
        if self.value("COORDINATES") == 0 and t + 1 >= 256:
            sizes = np.log10(self.largest[self.largest > 0])
            shared = len(sizes) == 0 or sizes.std() < 0.6
            self.state.counters[names.COORDINATES] = 2 if shared else 1
            for unit in self.units if not shared else []:
                levels, noise, sway = names.block_values(self.state, unit["block"])
                length = np.sqrt((self.q.batch * noise[0] + sway[0] + levels[0] ** 2).sum())
                unit["M"] = unit["M"] * unit["M"].dtype.type(length)

    def begin(self) -> None:
        """Let the first batch of all be block 0."""
        s, new = self.state.stream, self.ring[0]
        s[names.REFERENCE : names.ONE] = new[:2]
        s[names.ONE : names.FOUR], s[names.FOUR : names.PRODUCT] = 1.0, 0.25
        self.state.blocks[0] = [new[0], new[1], new[1] ** 2 / self.q.batch, new[2], 0 * new[0], 0 * new[0]]
        self.ring = [np.vstack([new[:2], new[2:]])] * names.RING
        self.state.counters[names.AGE], self.state.ages[0] = 1, 1.0

    def judge(self) -> None:
        """Test the windows; raise an alarm, or learn."""
        q, c, scalars = self.q, self.state.counters, self.state.scalars
        n, waiting = self.value("WATCHED", "WAITING")
        most, mixtures = -np.inf, {}
        threshold = min(q.threshold, max(np.log(q.early * c[0]), 1.0))
        scalars[names.THRESHOLD] = threshold
        for i in range(4):
            w = 1 << i
            if waiting >= w - 1 and (w < names.RING or c[names.N_BATCHES] % 2 == 0):
                evidence, mixtures[i] = self.evidence(i)
                if n >= LEAST:
                    most = max(most, evidence)
                    if w > 1 and evidence > threshold:
                        scalars[names.EVIDENCE], c[names.WINDOW], c[names.FRESH] = evidence, w, w - 1
                        c[names.ALARM], c[names.DOUBT], c[names.STATUS] = (w - 1) * q.batch, 0, names.ALARMED
                        return
        c[names.DOUBT] = most > threshold / 2
        if not c[names.DOUBT] or n > q.young:
            for i, mixture in mixtures.items():
                self.calibrate(i, mixture)
        if waiting < (names.RING if n >= names.RING else names.RING // 2):
            c[names.WAITING] += 1
            return
        if n >= names.RING and c[names.BLOCKS] > 1 and 3 in mixtures and evidence > threshold / 2:
            scalars[names.EVIDENCE], c[names.STATUS] = evidence, names.RETURNING
        self.learn()

    def close(self, rows: Any, before: Any, t: int) -> None:
        """Take a batch into account, and a decision if one is due."""
        s, c = self.state.stream, self.state.counters
        c[names.N_BATCHES] = (c[names.N_BATCHES] + 1) % names.RING
        self.ring = [features(rows, before, s[names.REFERENCE]), *self.ring][: names.RING + 1]
        self.learn_columns(t)
        if c[names.ALARM]:
            c[names.FRESH] += 1
            c[names.STATUS] = names.GATHERING
        elif c[names.AGE] == 0:
            self.begin()
        else:
            self.judge()
        c[names.KEPT] = min(c[names.KEPT] + 1, names.RING)
        self.ring = self.ring[: names.RING]

    def scatter(self) -> None:
        """Estimate the scatter of rows in the block in use, at the first row of a batch."""
        levels, noise, sway = names.block_values(self.state, int(self.value("POINTER")))
        variance = square = 0.0
        weights = self.columns[2] ** 2 if self.in_columns() else np.ones(levels.shape[1])
        for j in range(levels.shape[1]):
            variance += weights[j] * (self.q.batch * noise[0, j] + sway[0, j])
            square += levels[0, j] * levels[0, j]
        self.state.scalars[names.SCATTER] = variance if self.in_columns() else variance / max(variance + square, TINY)

    def decide(self) -> None:
        """Let the package decide: it reads the ring and the units' blocks."""
        c = self.state.counters
        if not c[names.STATUS]:
            return
        c[names.LATEST] = names.RING - 1
        self.state.stream[names.BATCHES : names.COLUMN_ROWS] = np.concatenate(
            (self.ring + [0 * self.ring[0]] * names.RING)[: names.RING][::-1]
        )
        c[1] = len(self.units)
        self.state.unit_blocks[: len(self.units)] = [unit["block"] for unit in self.units]
        self.state = decide(self.state, self.q)

    def place(self, x: Any) -> int:
        """Let a slot learn ``x``; the index of the slot."""
        q, scatter, pointer = self.q, self.state.scalars[names.SCATTER], int(self.value("POINTER"))
        scale = 1.0 if self.in_columns() else 1.0 / np.sqrt(plain.dot(x, x))
        kind, members = x.dtype.type, [i for i, unit in enumerate(self.units) if unit["block"] == pointer]
        far = {i: self.far(x, self.units[i]["M"], scale) for i in members}
        cost = {i: far[i] * self.units[i]["wins"] for i in members} if q.fair else far
        best = min(members, key=lambda i: (cost[i], i), default=-1)
        share = max(1, q.max_units // int(self.value("BLOCKS"))) if q.max_units else 0
        room = len(members) < q.n_slots
        if q.max_units:
            room = len(self.units) < q.max_units or len(members) < share
        if room and best >= 0:
            closest = min(members, key=lambda i: (far[i], i))
            nearest = far[closest]
            room = nearest > q.spacing * scatter + 1e-6 and (
                len(members) < q.n_slots or self.units[closest]["wins"] * nearest > q.growth * scatter
            )
        if room:
            best = len(self.units)
            self.units.append({"M": kind(scale) * x, "wins": 0, "block": pointer, "rate": q.learning_rate})
        else:
            unit = self.units[best]
            if self.in_columns():
                unit["M"] = plain.faded(unit["M"] + kind(unit["rate"]) * (x - unit["M"]))
        if not room and not self.in_columns():
            moved = kind(1.0 - unit["rate"]) * unit["M"] + kind(unit["rate"] * scale) * x
            unit["M"] = plain.renormalised(moved, 0.0)
        self.units[best]["wins"] += 1
        self.units[best]["rate"] = 1.0 / (1.0 / q.learning_rate + 0.5 * self.units[best]["wins"])
        if q.max_units and len(self.units) > q.max_units:
            self.merge(share)
        return best

    def far(self, x: Any, unit: Any, scale: float) -> float:
        """Dissimilarity of a row, or of a unit if ``scale`` is 1, to a unit."""
        if self.in_columns():
            squares = ((unit.astype(np.float64) - x) * self.columns[2]) ** 2
            sums, whole = [0.0] * 4, len(x) - len(x) % 4
            for j, square in enumerate(squares):
                sums[j % 4 if j < whole else 0] += square
            return 0.5 * min((sums[0] + sums[1]) + (sums[2] + sums[3]), 1e60)
        return 1.0 - plain.dot(unit, x) * scale

    def merge(self, share: int) -> None:
        """Merge the cheapest pair of a block with more than its share; the last unit moves into the gap."""
        sizes = np.bincount([unit["block"] for unit in self.units])
        costs = {}
        for i, a in enumerate(self.units):
            for j, b in enumerate(self.units[i + 1 :], i + 1):
                if a["block"] == b["block"] and sizes[a["block"]] > share:
                    weight = a["wins"] * b["wins"] / max(a["wins"] + b["wins"], 1)
                    costs[i, j] = weight * max(0.0, self.far(a["M"], b["M"], 1.0))
        i, j = min(costs, key=lambda pair: (costs[pair], pair))
        a, b = self.units[i], self.units[j]
        total = a["wins"] + b["wins"]
        step = a["M"].dtype.type(b["wins"] / max(total, 1))
        a["M"] = plain.faded(a["M"] + step * (b["M"] - a["M"]))
        a["M"] = a["M"] if self.in_columns() else plain.renormalised(a["M"], 0.0)
        a["wins"], a["rate"] = total, 1.0 / (1.0 / self.q.learning_rate + 0.5 * total)
        last = self.units.pop()
        if last is not b:
            self.units[j] = last


def naive(X: Any, memory: Any) -> dict[str, Any]:
    """Return events and winners of a memory with the parameters of ``memory`` on a stream without gaps."""
    twin = Naive(memory, X.shape[1], X.dtype)
    batch, winners = twin.q.batch, []
    c = twin.state.counters
    for t, x in enumerate(X):
        if t == 0:
            twin.state.stream[names.REFERENCE] = x
        winner = -1
        twin.largest = np.maximum(twin.largest, abs(x))
        if t < batch and twin.in_columns():
            twin.first_columns(X[: t + 1])
        elif twin.in_columns():
            twin.wake(x)
        if t % batch == 0 and c[names.AGE]:
            twin.scatter()
        if c[names.ALARM]:
            c[names.ALARM] += 1
        elif (x.any() or twin.in_columns()) and not c[names.DOUBT]:
            winner = twin.place(x)
        winners.append(winner)
        c[0] = t + 1
        if (t + 1) % batch == 0:
            rows = X[t + 1 - batch : t + 1].astype(float)
            twin.close(rows, X[max(t - batch, 0)].astype(float), t)
        twin.decide()
        c = twin.state.counters
    list_members(twin.state)
    return {
        "winners": winners,
        "prototypes_": np.array([unit["M"] for unit in twin.units]),
        "learning_rates_": [unit["rate"] for unit in twin.units],
        "win_counts_": [unit["wins"] for unit in twin.units],
        "unit_blocks_": [unit["block"] for unit in twin.units],
        "n_blocks_": int(c[names.BLOCKS]),
        "task_pointer_": int(c[names.POINTER]),
        "alarm_": int(c[names.ALARM]),
        "twin": twin,
    }
