"""Mnemonics: iCaRL with exemplars optimised by a gradient through training on them.

After "Mnemonics training: multi-class incremental learning without forgetting" (Liu, Su, Liu, Schiele and Sun, 2020),
on top of iCaRL as one of its variants is. With theta the network after a task, E the exemplars, D rows to do well on:

    inner:   theta' = theta;  some steps of  theta' <- theta' - a grad L(theta'; part of E)
    outer:   E <- E - b grad_E L(theta'; part of D)              (Adam's step, pixels kept within the range of the data)

Exemplars of new classes begin as herded rows, with D the task; then those of old classes are split in two halves, each
learned with the other as D, for there is no other data of theirs any more.

Departures: L is the sigmoid cross-entropy that the network was trained with; a part of E and of D stands for all of it
in every step; old exemplars are learned in as many steps as new ones.

Needs the extra: ``pip install torch``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ccmem.core.parameters import Rule, integer, number
from ccmem.core.typing import FloatArray, IntArray
from ccmem.kernels.jit import kernel
from ccmem.paper.rivals._network import PAPER_SIZES, Network
from ccmem.paper.rivals.icarl import ICaRL
from ccmem.readout.network import unpack

EXEMPLARS_A_STEP = 8
"""Exemplars per inner step: small steps resemble training one sample at a time."""
ROWS_A_STEP = 128


def _torch() -> Any:
    try:
        import torch
    except ImportError as problem:
        raise ImportError("Mnemonics needs PyTorch, which is not installed: pip install torch") from problem
    return torch


@kernel
def move(
    E: FloatArray,
    slopes: FloatArray,
    first: FloatArray,
    second: FloatArray,
    step: int,
    rate: float,
    low: float,
    high: float,
) -> None:
    """Take an Adam step in place, within bounds; moments are in double precision to keep small squares."""
    scale, root = rate / (1.0 - 0.9**step), math.sqrt(1.0 - 0.999**step)
    for r in range(E.shape[0]):
        for i in range(E.shape[1]):
            slope = np.float64(slopes[r, i])
            first[r, i] = 0.9 * first[r, i] + 0.1 * slope
            second[r, i] = 0.999 * second[r, i] + 0.001 * slope * slope
            moved = E[r, i] - scale * first[r, i] / (math.sqrt(second[r, i]) / root + 1e-8)
            E[r, i] = min(max(moved, low), high)


def learned_exemplars(
    network: Network,
    classes: IntArray,
    exemplars: FloatArray,
    labels: IntArray,
    X: FloatArray,
    codes: IntArray,
    *,
    n_outer: int,
    n_inner: int,
    inner_rate: float,
    outer_rate: float,
    bounds: tuple[float, float],
    rng: np.random.Generator,
) -> FloatArray:
    """Optimise exemplars so that a network trained on them does well on ``X``; ``network`` itself is unchanged."""
    torch = _torch()
    layers = [torch.tensor(np.ascontiguousarray(layer)) for layer in unpack(network.state)]
    layers[-1] = layers[-1][torch.as_tensor(classes)]
    found = exemplars.copy()
    E = torch.from_numpy(found)
    one_hot = torch.eye(len(classes), dtype=E.dtype)
    wanted, targets = one_hot[np.searchsorted(classes, labels)], one_hot[np.searchsorted(classes, codes)]
    rows = torch.as_tensor(X)
    slopes_of_all, first, second = np.zeros_like(found), np.zeros(found.shape), np.zeros(found.shape)

    def loss(weights: list[Any], inputs: Any, target: Any) -> Any:
        n_layers = len(weights) // 2
        for k in range(n_layers):
            inputs = torch.addmm(weights[n_layers + k], inputs, weights[k].T)
            if k < n_layers - 1:
                inputs = torch.relu(inputs)
        return torch.nn.functional.binary_cross_entropy_with_logits(inputs, target, reduction="sum")

    for step in range(1, n_outer + 1):
        weights = [layer[:, :-1].clone() for layer in layers] + [layer[:, -1].clone() for layer in layers]
        for layer in weights:
            layer.requires_grad_()
        parts = np.array([rng.permutation(len(E))[:EXEMPLARS_A_STEP] for _ in range(n_inner)])
        seen = E[
            parts
        ].requires_grad_()  # only these need gradients; differentiating through all exemplars dominates the cost
        for k, part in enumerate(parts):
            slopes = torch.autograd.grad(loss(weights, seen[k], wanted[part]), weights, create_graph=True)
            weights = [layer - inner_rate * slope for layer, slope in zip(weights, slopes, strict=True)]
        part = rng.permutation(len(rows))[:ROWS_A_STEP]
        (slope,) = torch.autograd.grad(loss(weights, rows[part], targets[part]), seen)
        np.add.at(slopes_of_all, parts, slope.numpy())
        move(found, slopes_of_all, first, second, step, outer_rate, *bounds)
        slopes_of_all[parts] = 0.0
    return found


class Mnemonics(ICaRL):
    """iCaRL with learned exemplars.

    Parameters
    ----------
    hidden_sizes, task_ends, n_epochs, learning_rate, max_floats, random_state
        As for :class:`ICaRL`.
    n_outer : int, default=40
        How often exemplars move at the end of a task.
    n_inner : int, default=8
        Steps of the network that each of these moves looks through, at ``learning_rate``.
    outer_rate : float, default=0.01
        How far a pixel may move at a time.
    """

    _rules: ClassVar[dict[str, Rule]] = {
        **ICaRL._rules,
        "n_outer": integer(0),
        "n_inner": integer(1),
        "outer_rate": number(0.0, open_below=True),
    }

    def __init__(
        self,
        hidden_sizes: Sequence[int] = PAPER_SIZES,
        *,
        task_ends: Sequence[int] | None = None,
        n_epochs: int = 4,
        learning_rate: float = 0.02,
        n_outer: int = 40,
        n_inner: int = 8,
        outer_rate: float = 0.01,
        max_floats: int = 400_000,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            hidden_sizes,
            task_ends=task_ends,
            n_epochs=n_epochs,
            learning_rate=learning_rate,
            max_floats=max_floats,
            random_state=random_state,
        )
        self.n_outer = n_outer
        self.n_inner = n_inner
        self.outer_rate = outer_rate

    def _prepare(self, n_features: int, dtype: Any) -> None:
        _torch()
        super()._prepare(n_features, dtype)
        self._bounds = (np.inf, -np.inf)

    def _held(self) -> dict[str, int]:
        return {**super()._held(), "range of the data": 2}

    def _need(self, n_features: int, n_classes: int) -> dict[str, int]:
        return {**super()._need(n_features, n_classes), "range of the data": 2}

    def _per_class(self, n_classes: int) -> int:
        n_features = int(self._network.state.sizes[0])
        return (self.max_floats - self._network.n_floats - 2) // (n_features + 1) // n_classes

    def _renew(self, X: FloatArray, codes: IntArray, old: IntArray) -> None:
        super()._renew(X, codes, old)
        self._bounds = (min(self._bounds[0], float(X.min())), max(self._bounds[1], float(X.max())))
        new = np.unique(codes)
        self._put(new, self._learned(*self._of(new), X, codes))
        rows, labels = self._of(np.setdiff1d(old, new))
        halves = np.arange(len(rows)) % 2 == 0
        if halves.any() and not halves.all():
            rows[halves] = self._learned(rows[halves], labels[halves], rows[~halves], labels[~halves])
            rows[~halves] = self._learned(rows[~halves], labels[~halves], rows[halves], labels[halves])
            self._put(np.setdiff1d(old, new), rows)

    def _of(self, classes: IntArray) -> tuple[FloatArray, IntArray]:
        rows, labels = self._all_exemplars()
        mine = np.isin(labels, classes)
        return rows[mine], labels[mine]

    def _put(self, classes: IntArray, rows: FloatArray) -> None:
        edges = np.cumsum([len(self._exemplars[code]) for code in classes])[:-1]
        for code, part in zip(classes.tolist(), np.split(rows, edges), strict=True):
            self._exemplars[code] = part.copy()

    def _learned(self, exemplars: FloatArray, labels: IntArray, X: FloatArray, codes: IntArray) -> FloatArray:
        return learned_exemplars(
            self._network,
            self._came(),
            exemplars,
            labels,
            X,
            codes,
            n_outer=self.n_outer,
            n_inner=self.n_inner,
            inner_rate=self.learning_rate,
            outer_rate=self.outer_rate,
            bounds=self._bounds,
            rng=self._rng,
        )
