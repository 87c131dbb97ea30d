"""Mnemonics: iCaRL whose exemplars are not chosen but learned, by a gradient through training on them.

After "Mnemonics training: multi-class incremental learning without forgetting" (Liu, Su, Liu, Schiele and Sun, 2020),
on top of iCaRL as one of its variants is. With theta the network after a task, E the exemplars, D rows to do well on:

    inner:   theta' = theta;  some steps of  theta' <- theta' - a grad L(theta'; part of E)
    outer:   E <- E - b grad_E L(theta'; part of D)              (Adam's step, pixels kept within the range of the data)

Exemplars of new classes begin as herded rows, with D the task; then those of old classes are split in two halves, each
learned with the other as D, for there is no other data of theirs any more.

Departures: L is the sigmoid cross-entropy that the network was trained with; a part of E and of D stands for all of it
in every step; old exemplars are learned in as many steps as new ones.

Needs the extra: ``pip install "ccmem[torch]"``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ccmem._typing import FloatArray, IntArray
from ccmem.parameters import Rule, integer, number
from ccmem.predictors.network import unpack
from ccmem.rivals._network import PAPER_SIZES, Network
from ccmem.rivals.icarl import ICaRL

EXEMPLARS_A_STEP = 8
"""Many small steps are near to training one sample at a time; few large ones teach exemplars that only serve those."""
ROWS_A_STEP = 128


def _torch() -> Any:
    try:
        import torch
    except ImportError as problem:
        raise ImportError('Mnemonics needs PyTorch, which is not installed: pip install "ccmem[torch]"') from problem
    return torch


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
    """Exemplars moved so that a network trained on them does well on ``X``; ``network`` itself stays as it is."""
    torch = _torch()
    layers = [torch.tensor(np.ascontiguousarray(layer)) for layer in unpack(network.state)]
    layers[-1] = layers[-1][torch.as_tensor(classes)]
    E = torch.tensor(exemplars, requires_grad=True)
    one_hot = torch.eye(len(classes), dtype=E.dtype)
    wanted, targets = one_hot[np.searchsorted(classes, labels)], one_hot[np.searchsorted(classes, codes)]
    rows = torch.as_tensor(X)
    adam = torch.optim.Adam([E], lr=outer_rate)

    def loss(weights: list[Any], inputs: Any, target: Any) -> Any:
        for layer in weights[:-1]:
            inputs = torch.relu(inputs @ layer[:, :-1].T + layer[:, -1])
        scores = inputs @ weights[-1][:, :-1].T + weights[-1][:, -1]
        return torch.nn.functional.binary_cross_entropy_with_logits(scores, target, reduction="sum")

    for _ in range(n_outer):
        weights = [layer.clone().requires_grad_() for layer in layers]
        for _ in range(n_inner):
            part = rng.permutation(len(E))[:EXEMPLARS_A_STEP]
            slopes = torch.autograd.grad(loss(weights, E[part], wanted[part]), weights, create_graph=True)
            weights = [layer - inner_rate * slope for layer, slope in zip(weights, slopes, strict=True)]
        part = rng.permutation(len(rows))[:ROWS_A_STEP]
        (E.grad,) = torch.autograd.grad(loss(weights, rows[part], targets[part]), E)
        adam.step()
        with torch.no_grad():
            E.clamp_(*bounds)
    found: FloatArray = E.detach().numpy()
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
