"""Gate the layers of your own PyTorch network by a memory's task pointer.

A :class:`TaskGate` follows a hidden layer and multiplies its output by a row of zeros and ones: 1 for the units (or
channels) of the block that a sample is routed to. One gate after every hidden layer of a perceptron gives the CCM-MLP
of :class:`ccmem.GatedMLP`; a gate after a convolution selects channels of a CNN in the same way.

    memory = AdaptiveCCM()
    gates = TaskGate(memory, 110), TaskGate(memory, 104, layer=1)          # gates may share a memory

    blocks = gates[0].learn(x)                       # the memory sees the batch; -1 where it rejected a row
    accepted = blocks >= 0
    loss = cross_entropy(net(x[accepted], blocks[accepted]), y[accepted])  # net calls gate(z, blocks=blocks)

    blocks = gates[0].route(x)                       # later: each row by itself, or route(x, pool=True)

Needs the extra: ``pip install torch``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem.base.memory import REJECTED
from ccmem.core.locking import guard_of
from ccmem.core.typing import IntArray
from ccmem.io.persistence import from_bytes, to_bytes
from ccmem.models._blocks import EVENT_HISTORY, BlockMemory
from ccmem.readout.gated import draw_gate, stream_pointers
from ccmem.readout.network import new_seed

try:
    import torch
except ImportError as problem:
    raise ImportError("ccmem.torch needs PyTorch, which is not installed: pip install torch") from problem


class TaskGate(torch.nn.Module):
    """Pass only the units of a layer that belong to a block of the memory.

    A new block gets its units when it first appears: a disjoint set while enough units are left, then a random set that
    no other block has. Gates with the same ``random_state`` and ``layer`` draw the same sets, including those of
    :class:`ccmem.GatedMLP` (see :meth:`take_gates`).

    Parameters
    ----------
    memory : BlockMemory
        Memory that routes the samples. It is shared, not copied: :meth:`learn` affects every gate on the memory.
    n_units : int
        Number of units (channels) of the layer.
    gated_units : int, default=15
        Number of units that a block owns.
    dim : int, default=1
        Dimension of the layer's output that holds the units; the rows of the batch are dimension 0.
    layer : int, default=0
        Index that makes gates with the same ``random_state`` draw different sets.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the sets.

    Notes
    -----
    The gates are the buffer ``gates`` (blocks, units), which moves with ``to()`` and is part of ``state_dict()``. The
    memory is also in ``state_dict()``, as the bytes of a checkpoint in a tensor, which
    ``torch.load(..., weights_only=True)`` reads. Loading changes the memory in place. Weights of a closed unit get a
    gradient of exactly zero, so plain SGD does not move them; an optimizer with momentum or weight decay does.
    """

    gates: torch.Tensor

    def __init__(
        self,
        memory: BlockMemory,
        n_units: int,
        gated_units: int = 15,
        *,
        dim: int = 1,
        layer: int = 0,
        random_state: Any = None,
    ) -> None:
        super().__init__()
        if not isinstance(memory, BlockMemory):
            raise TypeError(
                f"TaskGate: memory={memory!r} has no task pointer to open gates with; "
                "pass a memory with blocks, such as AdaptiveCCM()"
            )
        if not 1 <= gated_units <= n_units:
            raise ValueError(f"TaskGate: gated_units={gated_units!r} must lie between 1 and n_units={n_units!r}")
        self.memory = memory
        self.n_units, self.gated_units, self.dim, self.layer = n_units, gated_units, dim, layer
        self.register_buffer("gates", torch.zeros((0, n_units), dtype=torch.bool))
        self.register_buffer("seed", torch.from_numpy(new_seed(random_state)))

    def learn(self, x: torch.Tensor) -> torch.Tensor:
        """Teach the memory a batch; return the block that learned each row, or -1 if the row was rejected."""
        return self.memory._while_learning(self._learn, x)

    def _learn(self, x: torch.Tensor) -> torch.Tensor:
        rows = self.memory._check_chunk(_as_rows(x), missing=False)
        blocks = []
        for part in np.split(rows, range(EVENT_HISTORY, len(rows), EVENT_HISTORY)):
            step, pointer = self.memory.n_samples_seen_, self.memory.task_pointer_
            rejected = self.memory._learn(part).winners == REJECTED
            blocks.append(np.where(rejected, REJECTED, stream_pointers(self.memory, step, pointer, len(part))))
        self._make_gates()
        self.memory._notify()
        return self._as_tensor(np.concatenate(blocks))

    def route(self, x: torch.Tensor, pool: bool = False) -> torch.Tensor:
        """Return the block of every row's best matching slot or, with ``pool``, the most frequent one for all rows."""
        pointers = self.memory.task_pointers(_as_rows(x))
        if pool:
            pointers = np.full_like(pointers, np.bincount(pointers).argmax())
        return self._as_tensor(pointers)

    def forward(
        self, z: torch.Tensor, x: torch.Tensor | None = None, *, blocks: torch.Tensor | None = None, pool: bool = False
    ) -> torch.Tensor:
        """Return ``z`` with all units closed that do not belong to the blocks of its rows.

        Rows belong to ``blocks`` if given. Otherwise, in evaluation mode, ``x`` (the rows in the form that the memory
        learns) is routed, each row separately or all as a ``pool``. In training mode, or without ``x``, all rows belong
        to the current block.
        """
        self._make_gates()
        if z.shape[self.dim] != self.n_units:
            raise ValueError(
                f"TaskGate: dimension {self.dim} of an output of shape {tuple(z.shape)} is not the {self.n_units} "
                "units it was made for"
            )
        if blocks is None:
            if x is not None and not self.training:
                blocks = self.route(x, pool)
            else:
                blocks = torch.full((len(z),), self.memory.task_pointer_, device=self.gates.device)
        if len(blocks) != len(z) or bool((blocks < 0).any()):
            raise ValueError(
                f"TaskGate: {len(blocks)} blocks for {len(z)} rows; give one per row, leaving out rejected rows"
            )
        shape = [1] * z.ndim
        shape[0], shape[self.dim] = len(z), self.n_units
        return z * self.gates[blocks.to(self.gates.device)].reshape(shape)

    def take_gates(self, gates: Any) -> None:
        """Use the gates of another model, such as an entry of ``GatedMLP.gates_``, for the blocks they cover."""
        given = torch.as_tensor(np.asarray(gates, np.bool_), device=self.gates.device)
        if given.ndim != 2 or given.shape[1] != self.n_units or bool((given.sum(dim=1) != self.gated_units).any()):
            raise ValueError(
                f"TaskGate: gates of shape {tuple(given.shape)} are not rows of {self.n_units} units with "
                f"{self.gated_units} ones"
            )
        self.gates = given.clone()

    def extra_repr(self) -> str:
        return (
            f"n_units={self.n_units}, gated_units={self.gated_units}, blocks={len(self.gates)}, memory={self.memory!r}"
        )

    # ---------------------------------------------------------------------------------------------------------------

    def _make_gates(self) -> None:
        """Create gates for all blocks of the memory."""
        known, n_blocks = len(self.gates), self.memory.n_blocks_
        if n_blocks <= known:
            return
        taken = self.gates.cpu().numpy()
        sets = [np.flatnonzero(row) for row in taken]
        seed = self.seed.cpu().numpy()  # type: ignore[operator]
        for block in range(known, n_blocks):
            others = np.array(sets, np.int64).reshape(len(sets), self.gated_units)
            sets.append(draw_gate(seed, self.layer, block, self.n_units, self.gated_units, others))
        gates = np.zeros((n_blocks, self.n_units), np.bool_)
        np.put_along_axis(gates, np.array(sets), True, axis=1)
        self.gates = torch.from_numpy(gates).to(self.gates.device)

    def _as_tensor(self, blocks: IntArray) -> torch.Tensor:
        return torch.from_numpy(blocks).to(self.gates.device)

    def get_extra_state(self) -> dict[str, Any]:
        return {"memory": torch.frombuffer(bytearray(to_bytes(self.memory)), dtype=torch.uint8)}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        memory = from_bytes(state["memory"].cpu().numpy().tobytes(), [type(self.memory)])
        if type(memory) is not type(self.memory):
            raise ValueError(
                f"TaskGate: the saved memory is a {type(memory).__name__}, not a {type(self.memory).__name__}"
            )
        guard = guard_of(self.memory)

        def replace() -> None:
            self.memory.__dict__.clear()
            self.memory.__dict__.update(memory.__dict__, _guard=guard)

        self.memory._while_learning(replace)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
        saved = state_dict.get(prefix + "gates")
        if saved is not None and saved.ndim == 2 and saved.shape[1] == self.n_units:
            self.gates = torch.zeros(
                saved.shape, dtype=torch.bool, device=self.gates.device
            )  # resize to the number of saved blocks
        super()._load_from_state_dict(state_dict, prefix, *others)


def _as_rows(x: torch.Tensor) -> Any:
    """Reshape a batch to one row per sample, as the memory expects."""
    return x.detach().cpu().flatten(1).numpy()
