"""Picture of a checkpoint: the block in use over time, and the content of each block."""

from __future__ import annotations

from typing import Any

from ccmem import plots
from ccmem.app.learner import Learner
from ccmem.plots._figure import new_figure


def draw(checkpoint: str, path: str) -> None:
    """Draw the memory in a checkpoint to ``path``."""
    if not path.lower().endswith((".png", ".svg", ".pdf")):
        raise ValueError(f"--plot {path}: the name must end in .png, .svg or .pdf")
    memory: Any = Learner.load(checkpoint).memory
    if memory is None:
        raise ValueError(f"{checkpoint} holds no memory that has learned; there is nothing to draw")
    if not hasattr(memory, "unit_blocks_"):
        plots.memory_grid(memory).figure.savefig(path, dpi=120)
        return
    figure = new_figure(11, 7.5)
    above, below = figure.subfigures(2, 1, height_ratios=[1.1, 1])
    plots.timeline(memory, figure=above)
    plots.blocks(memory, figure=below)
    counts = f"{memory.n_samples_seen_:,} samples, {memory.n_blocks_} blocks, {memory.n_units_} units"
    figure.suptitle(f"{type(memory).__name__}: {counts}")
    figure.savefig(path, dpi=120)
