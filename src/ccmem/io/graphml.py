"""GraphML export of units and their edges, for networkx, Gephi, igraph and yEd."""

from __future__ import annotations

import os
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from ccmem.io.persistence.atomic import atomic_write


def write_graphml(model: Any, path: str | os.PathLike[str]) -> None:
    """Write the units of ``model`` and their edges to a GraphML file.

    A node has the win count of its unit and, up to 64 columns, its prototype. Edges are those of a graph (``edges_``)
    or, on a map, between direct neighbours; other memories have no edges.
    """
    memory = getattr(model, "memory_", model)
    prototypes, wins = memory.prototypes_, memory.win_counts_
    names = [str(name) for name in getattr(memory, "feature_names_in_", range(prototypes.shape[1]))][:64]
    keys = ['<key id="wins" for="node" attr.name="wins" attr.type="long"/>']
    keys += [
        f'<key id="c{i}" for="node" attr.name={quoteattr(name)} attr.type="double"/>' for i, name in enumerate(names)
    ]
    nodes = []
    for unit, prototype in enumerate(prototypes):
        cells = "".join(f'<data key="c{i}">{float(prototype[i])!r}</data>' for i in range(len(names)))
        nodes.append(f'<node id="u{unit}"><data key="wins">{int(wins[unit])}</data>{cells}</node>')
    edges = [f'<edge source="u{a}" target="u{b}"/>' for a, b in _edges(memory)]
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">', *keys]
    lines.append(f'<graph id="{escape(type(memory).__name__)}" edgedefault="undirected">')
    text = "\n".join([*lines, *nodes, *edges, "</graph>", "</graphml>", ""])
    atomic_write(path, [text.encode()])


def _edges(memory: Any) -> Any:
    if hasattr(memory, "edges_"):
        return np.asarray(memory.edges_, np.int64).reshape(-1, 2)
    if hasattr(memory, "positions_"):
        places = np.asarray(memory.positions_)[: len(memory.prototypes_)]
        apart = np.linalg.norm(places[:, None] - places[None], axis=-1)
        return np.argwhere(np.triu((apart > 0) & (apart <= 1.01)))
    return []
