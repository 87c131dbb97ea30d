"""Pictures of memories and streams, drawn with matplotlib (``pip install matplotlib``).

Every function takes a fitted model (or a result) and returns the matplotlib Axes or Figure; notebooks display it. No
function touches pyplot's global state, so plots work in servers and threads. Blocks keep their colour and events their
marker in every picture (:mod:`ccmem.core.colours`).
"""

from ccmem.plots.maps import component_planes, graph, map
from ccmem.plots.regions import regions
from ccmem.plots.results import accuracy_chart, curves, task_matrices, task_matrix
from ccmem.plots.timelines import timeline
from ccmem.plots.units import blocks, memories, memory_grid

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
