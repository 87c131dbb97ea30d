"""Mnemonics: iCaRL with exemplars optimised by a gradient through training on them.

After "Mnemonics training: multi-class incremental learning without forgetting" (Liu, Su, Liu, Schiele and Sun, 2020),
in the variant on top of iCaRL. With theta the network after a task, E the exemplars and D the rows to do well on:

    inner:   theta' = theta;  some steps of  theta' <- theta' - a grad L(theta'; part of E)
    outer:   E <- E - b grad_E L(theta'; part of D)              (Adam's step, pixels kept within the range of the data)

Exemplars of new classes start as herded rows, with D the task. Then the exemplars of old classes are split into two
halves, each optimised with the other as D, because no other data of old classes is left.

Departures: L is the sigmoid cross-entropy that the network was trained with; every step uses a random part of E and D;
old exemplars are optimised in as many steps as new ones.

Needs the extra: ``pip install torch``.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from ccmem.core.parameters import Rule, integer, number
from ccmem.core.typing import FloatArray, IntArray
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


class Adam:
    """Adam's steps in place, within bounds; moments are in double precision to keep small squares."""

    def __init__(self, shape: tuple[int, ...], rate: float, bounds: tuple[float, float]) -> None:
        self._first, self._second = np.zeros(shape), np.zeros(shape)
        self._rate, self._bounds, self._step = rate, bounds, 0

    def move(self, E: FloatArray, slopes: FloatArray) -> None:
        """Take a step."""
        slopes = slopes.astype(np.float64)
        self._step += 1
        self._first[:] = 0.9 * self._first + 0.1 * slopes
        self._second[:] = 0.999 * self._second + 0.001 * slopes * slopes
        scale, root = self._rate / (1.0 - 0.9**self._step), math.sqrt(1.0 - 0.999**self._step)
        E[:] = np.clip(E - scale * self._first / (np.sqrt(self._second) / root + 1e-8), *self._bounds)


@dataclass(eq=False, repr=False)
class Mnemonics(ICaRL):
    """iCaRL with learned exemplars."""

    _: KW_ONLY
    n_outer: int = 40
    """Updates of the exemplars at the end of a task."""
    n_inner: int = 8
    """Training steps of the network, at ``learning_rate``, that each update differentiates through."""
    outer_rate: float = 0.01
    """Step size of an update, per pixel."""

    _rules: ClassVar[dict[str, Rule]] = {
        "n_outer": integer(0),
        "n_inner": integer(1),
        "outer_rate": number(0.0, open_below=True),
    }
    _n_reserved: ClassVar[int] = 2  # range of the data

    def _prepare(self) -> None:
        _torch()
        super()._prepare()
        self._bounds = (np.inf, -np.inf)

    def _need(self, n_classes: int) -> dict[str, int]:
        return {**super()._need(n_classes), "range of the data": self._n_reserved}

    def _renew(self, X: FloatArray, codes: IntArray, count: int) -> None:
        super()._renew(X, codes, count)
        self._bounds = (min(self._bounds[0], float(X.min())), max(self._bounds[1], float(X.max())))
        new = np.isin(self._kept_codes, codes)
        self._learn_exemplars(new, X, codes)
        old = np.flatnonzero(~new)
        for half, other in ((old[::2], old[1::2]), (old[1::2], old[::2])) if len(old) > 1 else ():
            self._learn_exemplars(half, self._kept[other], self._kept_codes[other])

    def _learn_exemplars(self, which: Any, X: FloatArray, codes: IntArray) -> None:
        """Optimise some exemplars so that a network trained on them does well on ``X``; the network is unchanged."""
        torch, classes = _torch(), np.unique(self._kept_codes)
        layers = [torch.tensor(np.ascontiguousarray(layer)) for layer in unpack(self._network.state)]
        layers[-1] = layers[-1][torch.as_tensor(classes)]
        found = self._kept[which]
        E = torch.from_numpy(found)
        one_hot = torch.eye(len(classes), dtype=E.dtype)
        wanted, targets = (one_hot[np.searchsorted(classes, of)] for of in (self._kept_codes[which], codes))
        rows = torch.as_tensor(X)
        adam = Adam(found.shape, self.outer_rate, self._bounds)

        def loss(weights: list[Any], inputs: Any, target: Any) -> Any:
            n_layers = len(weights) // 2
            for k in range(n_layers):
                inputs = torch.addmm(weights[n_layers + k], inputs, weights[k].T)
                if k < n_layers - 1:
                    inputs = torch.relu(inputs)
            return torch.nn.functional.binary_cross_entropy_with_logits(inputs, target, reduction="sum")

        for _ in range(self.n_outer):
            weights = [layer[:, :-1].clone() for layer in layers] + [layer[:, -1].clone() for layer in layers]
            for layer in weights:
                layer.requires_grad_()
            parts = np.array([self._rng.permutation(len(E))[:EXEMPLARS_A_STEP] for _ in range(self.n_inner)])
            # only these need gradients; differentiating through all exemplars would dominate the cost
            seen = E[parts].requires_grad_()
            for k, part in enumerate(parts):
                slopes = torch.autograd.grad(loss(weights, seen[k], wanted[part]), weights, create_graph=True)
                weights = [layer - self.learning_rate * slope for layer, slope in zip(weights, slopes, strict=True)]
            part = self._rng.permutation(len(rows))[:ROWS_A_STEP]
            (slope,) = torch.autograd.grad(loss(weights, rows[part], targets[part]), seen)
            slopes_of_all = np.zeros_like(found)
            np.add.at(slopes_of_all, parts, slope.numpy())
            adam.move(found, slopes_of_all)
        self._kept[which] = found
