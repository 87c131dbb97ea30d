"""iCaRL: exemplars chosen by herding, distillation of old outputs, nearest mean of exemplars.

After Rebuffi, Kolesnikov, Sperl and Lampert (2017), with the paper's network instead of a ResNet. At the end of a task
with new classes, where phi is the last hidden layer divided by its length and g_c the sigmoid of class c:

1. targets for every row of the task and every exemplar: the label for new classes, the *old* g_c(x) for old ones;
2. ``n_epochs`` epochs of sigmoid and cross-entropy over rows and exemplars together, shuffled;
3. with K exemplars in all and t classes seen, every class keeps its first K / t;
4. herding for new classes: the k-th exemplar is the row that brings the mean of phi over the first k exemplars nearest
   to the mean of phi over the class.

Answer: the class whose exemplars' mean phi, divided by its length, is nearest to phi(x).

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> X, y = rng.normal(size=(600, 2)), np.arange(600) // 200
>>> X += np.array([[0, 0], [6, 0], [0, 6]])[y]
>>> model = ICaRL((8,), task_ends=(400, 600), n_epochs=5, max_floats=120, random_state=0).partial_fit(X, y)
>>> float(model.score(X, y)) > 0.9, [len(rows) for rows in model.exemplars_], model.n_floats_ <= 120
(True, [7, 7, 7], True)
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from ccmem.core.parameters import Rule, integer
from ccmem.core.typing import FloatArray, IntArray
from ccmem.paper.rivals._network import TaskRival
from ccmem.paper.rivals.classical import unit_length
from ccmem.readout._estimator import sizes_of_layers


def herd(features: FloatArray, count: int) -> IntArray:
    """Return rows whose running mean follows the overall mean, best first, without repetition; ties go to the first."""
    features = np.asarray(features, np.float64)
    mean, squares = features.mean(axis=0), np.einsum("ij,ij->i", features, features)
    total, chosen = np.zeros_like(mean), np.zeros(min(count, len(features)), np.int64)
    free = np.ones(len(features), np.bool_)
    for k in range(1, len(chosen) + 1):  # ||mean - (total + f) / k||^2 without terms common to all rows
        gaps = squares - 2 * (features @ (k * mean - total))
        chosen[k - 1] = np.flatnonzero(free)[gaps[free].argmin()]
        free[chosen[k - 1]] = False
        total += features[chosen[k - 1]]
    return chosen


@dataclass(eq=False, repr=False)
class ICaRL(TaskRival):
    """Incremental classifier and representation learning; ``exemplars_`` are in the order of ``classes_``, best first.

    The budget excludes the rows of the current task and the old network's outputs for them.
    """

    _: KW_ONLY
    max_floats: int = 400_000

    _rules: ClassVar[dict[str, Rule]] = {"hidden_sizes": sizes_of_layers(1), "max_floats": integer(1)}
    _n_reserved: ClassVar[int] = 0
    """Floats of the budget that are neither weights nor exemplars."""

    @property
    def exemplars_(self) -> list[FloatArray]:
        self._require_start()
        return [self._kept[self._kept_codes == code] for code in self._by_class()]

    def _need(self, n_classes: int) -> dict[str, int]:
        return {**super()._need(n_classes), "one exemplar of every class": n_classes * (self.n_features_in_ + 1)}

    def _held(self) -> int:
        return self._network.n_floats + self._kept.size + len(self._kept) + self._n_reserved

    def _prepare(self) -> None:
        super()._prepare()
        self._kept = np.zeros((0, self.n_features_in_), self._learn_type)  # exemplars by class, best first
        self._kept_codes = np.zeros(0, np.int64)

    def _grow(self, n_classes: int) -> None:
        super()._grow(n_classes)
        self._cut(max(1, len(np.unique(self._kept_codes))))

    def _cut(self, n_classes: int) -> int:
        """Keep the first exemplars of every class, as many as fit with ``n_classes`` classes; return their number."""
        count = self._room(self._network.n_classes, self._n_reserved) // n_classes
        rank = np.arange(len(self._kept)) - np.searchsorted(self._kept_codes, self._kept_codes)
        self._kept, self._kept_codes = self._kept[rank < count], self._kept_codes[rank < count]
        return count

    def _learn_task(self, X: FloatArray, codes: IntArray) -> None:
        old = np.unique(self._kept_codes)
        now = np.union1d(old, codes)
        rows, labels = np.concatenate([X, self._kept]), np.concatenate([codes, self._kept_codes])
        targets = np.eye(self._network.n_classes, dtype=X.dtype)[labels]
        if len(old):
            targets[:, old] = 1 / (1 + np.exp(-self._network.scores(rows)[:, old]))
            again = np.isin(codes, old)  # the target of a returning class is its label
            targets[np.flatnonzero(again), codes[again]] = 1
        self._network.state.membership[:] = False
        self._network.state.membership[:, now] = True
        for _ in range(self.n_epochs):
            self._network.learn_targets(rows, targets, self._rng.permutation(len(rows)), self.learning_rate)
        self._renew(X, codes, self._cut(len(now)))

    def _renew(self, X: FloatArray, codes: IntArray, count: int) -> None:
        """Choose ``count`` exemplars for each class of the completed task."""
        others = ~np.isin(self._kept_codes, codes)
        rows, labels = [self._kept[others]], [self._kept_codes[others]]
        for code in np.unique(codes):
            mine = np.concatenate([X[codes == code], self._kept[self._kept_codes == code]])
            rows.append(mine[herd(self._features(mine), count)])
            labels.append(np.full(len(rows[-1]), code))
        kept_codes = np.concatenate(labels)
        order = np.argsort(kept_codes, kind="stable")
        self._kept, self._kept_codes = np.concatenate(rows)[order], kept_codes[order]

    def _features(self, X: FloatArray) -> FloatArray:
        return unit_length(self._network.features(X).astype(np.float64))

    def _answer(self, X: FloatArray) -> IntArray:
        came = np.unique(self._kept_codes)
        means = [self._features(self._kept[self._kept_codes == code]).mean(axis=0) for code in came]
        return came[(self._features(X) @ unit_length(np.array(means)).T).argmax(axis=1)]
