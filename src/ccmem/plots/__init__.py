"""Pictures of what a memory holds and of what happened on a stream, by matplotlib (``pip install "ccmem[plot]"``).

Every function takes a fitted model (or a result) and returns the matplotlib Axes or Figure it drew, for the caller to
save, show or change; a notebook shows them by itself. Nothing here touches pyplot's global state, so it works in
servers, threads and notebooks alike. A block has the same colour, and a new block and a recall the same sign, in every
picture (:mod:`ccmem.colours`).
"""

from ccmem.plots.blocks import blocks
from ccmem.plots.curves import curves
from ccmem.plots.grids import memories, memory_grid
from ccmem.plots.regions import regions
from ccmem.plots.results import accuracy_chart, task_matrices, task_matrix
from ccmem.plots.timelines import timeline

__all__ = [
    "accuracy_chart",
    "blocks",
    "curves",
    "memories",
    "memory_grid",
    "regions",
    "task_matrices",
    "task_matrix",
    "timeline",
]
