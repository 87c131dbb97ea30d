"""CCM-MLP: a perceptron whose hidden units are gated by the task pointer of a continual competitive memory.

The memory's task pointer t selects a row of a binary matrix Q per hidden layer (paper, section 3.2):

    g_l = Q_l[t],   z_l = g_l * phi(W_l z_(l-1) + b_l)

Every row of Q has the same number of ones, and no two rows are equal. Blocks have disjoint units while enough units are
left; after that each new block gets a random set that no other block has (a set is reused only if none is left). The
equations are those of :mod:`ccmem.readout.mlp`: only open units are computed, and only weights with both ends open
move.

A block predicts the classes it has learned, and those announced for all blocks (``classes`` of ``partial_fit``). The
output units of later classes were never trained together with the units of the block, so their scores would be random.

During learning, t is the pointer after the memory has seen the sample. ``learn="accepted"`` skips samples that the
memory rejected (no slot learned them), so that the first samples of a new task do not change the units of the old task;
the paper does not mention this, but its table cannot be approached otherwise. ``learn="all"`` learns them too.

A memory detects a change only after some samples, and those it accepts until then are learned by the wrong units. With
``undo``, the weights are saved periodically, and the older copy is restored when the memory switches to another block.

During prediction, t is the block of each row's best matching slot or, for a pool of rows from one task, the most
frequent of these blocks (t_M).

>>> import numpy as np
>>> from ccmem import CCM
>>> X = np.array([[4, 0, 0, 0], [4, 2, 0, 0], [0, 0, 4, 0], [0, 0, 4, 2]] * 50, float)       # parity of two pairs
>>> y, task = np.array(["even", "odd"] * 100), np.arange(200) % 4 // 2
>>> memory = CCM(n_slots=1, alarm_limit=2, commit_limit=2)
>>> net = GatedMLP(memory, hidden_sizes=(8,), gated_units=4, learning_rate=0.1, random_state=0)
>>> for t in 0, 1:                                                                       # one task after the other
...     net = net.partial_fit(X[task == t], y[task == t])
>>> net.memory_.task_pointers(X[:4]), net.gates_[0].sum(axis=1), net.predict(X[:4])
(array([0, 0, 1, 1]), array([4, 4]), array(['even', 'odd', 'even', 'odd'], dtype=object))
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ccmem.base.classifier import OnMemory
from ccmem.base.memory import REJECTED, seeded_clone
from ccmem.base.storage import check_names
from ccmem.core.allocation import grown
from ccmem.core.labels import UNLABELED
from ccmem.core.locking import learning, reading, share_guard
from ccmem.core.parameters import Rule, choice, either, integer
from ccmem.core.sklearn import MetaEstimatorMixin
from ccmem.core.typing import BoolArray, FloatArray, IntArray
from ccmem.models._blocks import EVENT_HISTORY, BlockMemory
from ccmem.models.adaptive import AdaptiveCCM
from ccmem.readout._estimator import OnlineNetwork, sizes_of_layers
from ccmem.readout._saved import export_network, import_network
from ccmem.readout.network import GATE_DRAW, GATE_ORDER, draw, new_seed

_TRIES = 1000
"""Largest number of random sets to draw in search of one that no block has."""


def draw_gate(seed: IntArray, layer: int, block: int, size: int, n_open: int, taken: IntArray) -> IntArray:
    """Return the units of a hidden layer that ``block`` owns, ascending; ``taken`` holds the sets of earlier blocks."""
    if (block + 1) * n_open <= size:
        order = draw(seed, GATE_ORDER, layer).permutation(size)
        return np.sort(order[block * n_open : (block + 1) * n_open])
    rng = draw(seed, GATE_DRAW, layer, block)
    for _ in range(_TRIES):
        units = np.sort(rng.choice(size, n_open, replace=False))
        if not (taken == units).all(axis=1).any():
            break
    return units


def stream_pointers(memory: BlockMemory, first_step: int, before: int, n_rows: int) -> IntArray:
    """Return the memory's task pointer after each of the latest rows, the first of which has step ``first_step``."""
    pointers = np.full(n_rows, before, np.int64)
    end = n_rows
    for event in reversed(memory._history):
        if event.step < first_step:
            break
        begin = event.step - first_step
        pointers[begin:end] = event.to_block
        end = begin
    return pointers


def one_or_one_per_layer() -> Rule:
    test, _ = sizes_of_layers(1)
    return either(integer(1), (test, "one such number per hidden layer"))


class GatedMLP(MetaEstimatorMixin, OnMemory, OnlineNetwork):  # type: ignore[misc]
    """CCM-MLP: a perceptron with a separate sub-network for every block of a memory.

    Parameters
    ----------
    memory : memory with blocks or None, default=None
        Memory whose task pointer opens the gates; None means ``AdaptiveCCM()``, the paper's network uses ``CCM()``. The
        memory is cloned, and the clone ``memory_`` learns. If a memory with random numbers has no ``random_state``, a
        seed is drawn from the ``random_state`` of the network.
    hidden_sizes : sequence of int, default=(110, 104)
        Number of units of every hidden layer; the default is the paper's.
    gated_units : int or sequence of int, default=15
        Number of units of a hidden layer that a block owns; one number, or one per layer.
    learn : "accepted" or "all", default="accepted"
        Samples that the network learns: those that the memory learned, or all.
    undo : int, default=100
        Number of latest updates that are undone when the memory leaves a block, because their samples arrived between
        the change and its detection: at least this many and at most twice as many; of a short stay, half to three
        quarters of the updates. Weights and classes are restored, the running means of an optimizer are not. 0 disables
        undoing, as in the paper.
    activation : "relu", "tanh" or "sigmoid", default="relu"
        Activation of the hidden layers; the output is a softmax trained by cross-entropy.
    optimizer : "sgd" or "adam", default="sgd"
        Optimizer; both move only the weights between open units.
    learning_rate : float, default=0.01
        Learning rate; the default reproduces the paper's table.
    momentum : float, default=0.0
        For "sgd" only: fraction of the previous step that is added to the next.
    unlabeled : label or None, default=None
        A value of ``y`` that also means "no label", besides None and NaN. The memory learns samples without a label.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the initial weights and the gates.

    Attributes
    ----------
    memory_ : the fitted memory.
    classes_ : array of the labels seen so far, sorted.
    gates_ : list with a boolean matrix (blocks, units) for every hidden layer: the Q of the paper.
    coefs_, intercepts_ : weights and biases of every layer, as in scikit-learn's MLPClassifier; copies.
    n_samples_seen_, n_samples_taught_ : number of samples seen, and of samples that changed the weights.
    """

    _rules: ClassVar[dict[str, Rule]] = {
        **OnlineNetwork._rules,
        "hidden_sizes": sizes_of_layers(1),
        "gated_units": one_or_one_per_layer(),
        "learn": choice("accepted", "all"),
        "undo": integer(0),
    }
    _shape_parameters = (*OnlineNetwork._shape_parameters, "gated_units", "undo")
    memory_: BlockMemory

    def __init__(
        self,
        memory: BlockMemory | None = None,
        *,
        hidden_sizes: Sequence[int] = (110, 104),
        gated_units: int | Sequence[int] = 15,
        learn: str = "accepted",
        undo: int = 100,
        activation: str = "relu",
        optimizer: str = "sgd",
        learning_rate: float = 0.01,
        momentum: float = 0.0,
        unlabeled: Any = None,
        random_state: Any = None,
    ) -> None:
        self._assign(locals())

    @learning
    def learn_one(self, x: Any, y: Any = None) -> int:
        """Learn one sample, with or without a label; return the block that learned it, or -1 if none did."""
        return int(self._learn_one(x, y))

    def _learn_row(self, row: FloatArray, code: int) -> int:
        self._check_unchanged()
        self.memory_._check_unchanged()
        return int(self._learn_rows(row, self._output_unit(code))[0])

    @reading
    def predict_pool(self, X: Any) -> Any:
        """Return the most probable label of every row of a pool that belongs to one task, as in the paper's tests."""
        return self._best(self.predict_proba_pool(X))

    @reading
    def predict_proba_pool(self, X: Any) -> FloatArray:
        """Return the class probabilities of every row, all rows routed to their most frequent block (t_M)."""
        rows = self._check(X)
        modal = np.bincount(self._route(rows)).argmax()
        return self._probabilities(rows, np.full(len(rows), modal, np.int64))

    @property
    @reading
    def gates_(self) -> list[BoolArray]:
        """Units that each block owns: a boolean matrix (blocks, units) for every hidden layer."""
        self._require_start()
        matrices = []
        for layer, size in enumerate(self.hidden_sizes):
            units = self._state.gates[: self.memory_.n_blocks_, layer]
            matrix = np.zeros((len(units), size + 1), np.bool_)  # the last column receives the padding
            np.put_along_axis(matrix, units, True, axis=1)
            matrices.append(matrix[:, :size])
        return matrices

    # ---------------------------------------------------------------------------------------------------------------

    def _teach(self, X: Any, y: Any, classes: Any) -> IntArray:
        self._check_settings()
        first = not self.__sklearn_is_fitted__()
        memory = self._new_memory() if first else self.memory_
        rows = memory._check_chunk(X, missing=False)  # the network accepts no missing values
        codes, all_classes, class_rows, announced = self._encode(y, len(rows), classes)
        state = self._new_network(rows.shape[1], rows.dtype, gated=True) if first else self._state
        if first:
            state = state._replace(gates=np.empty((0, len(self.hidden_sizes), max(self._open_units())), np.int64))
        self._state = self._grow(state, class_rows, announced)
        self.memory_, self.classes_, self._began_with = memory, all_classes, self._shape()
        if first:
            share_guard(self, memory)
        return self._learn_rows(rows, codes)

    def _learn_rows(self, rows: FloatArray, codes: IntArray) -> IntArray:
        """Pass the rows to the memory, then to the network; return the block that learned each row, or -1."""
        memory = self.memory_
        taught = []
        for start in range(0, len(rows), EVENT_HISTORY):  # keeps every event in the history
            part = rows[start : start + EVENT_HISTORY]
            step, pointer = memory.n_samples_seen_, memory.task_pointer_
            rejected = memory._learn(part).winners == REJECTED
            blocks = stream_pointers(memory, step, pointer, len(part))
            self._make_gates(memory.n_blocks_)
            own = codes[start : start + EVENT_HISTORY]
            self._run(part, own if self.learn == "all" else np.where(rejected, UNLABELED, own), blocks, start)
            taught.append(np.where(rejected, REJECTED, blocks))
        return np.concatenate(taught)

    @learning
    def _widen(self, n_features: int) -> None:
        super()._widen(n_features)
        self.memory_._widen(n_features)

    def _make_gates(self, n_blocks: int) -> None:
        known = len(self._state.gates)
        if n_blocks <= known:
            return
        capacity = max(n_blocks, 2 * known)
        gates = grown(self._state.gates, capacity, -1)
        for block in range(known, capacity):
            for layer, (size, n_open) in enumerate(zip(self.hidden_sizes, self._open_units(), strict=True)):
                taken = gates[:block, layer, :n_open]
                gates[block, layer, :n_open] = draw_gate(self._state.seed, layer, block, size, n_open, taken)
        membership = np.vstack(
            [self._state.membership, np.repeat(self._state.membership[:1], capacity - known, axis=0)]
        )
        self._state = self._state._replace(gates=gates, steps=grown(self._state.steps, capacity), membership=membership)

    def _open_units(self) -> list[int]:
        """Return the number of units per block of every hidden layer."""
        if isinstance(self.gated_units, numbers.Integral):
            return [int(self.gated_units)] * len(self.hidden_sizes)
        return list(self.gated_units)

    def _fan_ins(self, n_features: int) -> list[int]:
        return [n_features, *self._open_units()]

    def _undo(self) -> int:
        return int(self.undo)

    def _check_settings(self) -> None:
        super()._check_settings()
        n_open = self._open_units()
        if len(n_open) != len(self.hidden_sizes) or any(n > h for n, h in zip(n_open, self.hidden_sizes, strict=True)):
            raise ValueError(
                f"GatedMLP: gated_units={self.gated_units!r} does not fit hidden_sizes={self.hidden_sizes!r}; give one "
                "number, or one per hidden layer, not larger than the layer"
            )

    def _new_memory(self) -> BlockMemory:
        memory = AdaptiveCCM() if self.memory is None else self.memory
        if not isinstance(memory, BlockMemory):
            raise TypeError(
                f"GatedMLP: memory={memory!r} has no task pointer to open gates with; "
                "pass a memory with blocks, such as AdaptiveCCM()"
            )
        seed = self.random_state
        if seed is not None:
            seed = int(np.random.default_rng(new_seed(seed)).integers(2**31))
        return seeded_clone(memory, seed)

    def _route(self, rows: FloatArray) -> IntArray:
        return self.memory_.unit_blocks_[self.memory_._winners(rows)]

    def _check(self, X: Any) -> FloatArray:
        self._require_labels()
        self.memory_._require_units()
        return self.memory_._check(X, reset=False, missing=False)

    @reading
    def _export(self) -> dict[str, Any]:
        return {**export_network(self), "memory_": self.memory_}

    def _import(self, fields: dict[str, Any]) -> None:
        check_names("GatedMLP", fields, ("state", "counters", "classes_", "memory_"))
        self._check_settings()
        memory = fields["memory_"]
        if not isinstance(memory, BlockMemory) or not hasattr(memory, "_state"):
            raise ValueError("GatedMLP: its memory is not one with blocks that has learned")
        if not (self.memory is None or isinstance(self.memory, BlockMemory)):
            raise ValueError("GatedMLP: memory is not one with blocks")
        import_network(self, fields, int(memory.n_features_in_), memory.n_blocks_, self._open_units())
        if self._state.parameters.dtype != memory._state.prototypes.dtype:
            raise ValueError("GatedMLP: its memory and its network are not of one type")
        self.memory_ = memory
