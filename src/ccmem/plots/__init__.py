"""Pictures of memories and streams, drawn with matplotlib (``pip install matplotlib``).

Every function takes a fitted model (or a result) and returns the matplotlib Axes or Figure; notebooks display it. No
function touches pyplot's global state, so plots work in servers and threads. Blocks keep their colour and events their
marker in every picture (:mod:`ccmem.core.colours`).
"""

from ccmem.plots.blocks import blocks
from ccmem.plots.curves import curves
from ccmem.plots.graphs import graph
from ccmem.plots.grids import memories, memory_grid
from ccmem.plots.maps import component_planes, map
from ccmem.plots.regions import regions
from ccmem.plots.results import accuracy_chart, task_matrices, task_matrix
from ccmem.plots.timelines import timeline

__all__ = [
    "accuracy_chart",
    "blocks",
    "component_planes",
    "curves",
    "graph",
    "map",
    "memories",
    "memory_grid",
    "regions",
    "task_matrices",
    "task_matrix",
    "timeline",
]
