"""``ccmem compare``: list the blocks that two checkpoints share and the blocks that only one of them has."""

from __future__ import annotations

import argparse
import json
from typing import Any, NamedTuple

import numpy as np

from ccmem.app.learner import Learner
from ccmem.core.terminal import printable
from ccmem.core.typing import FloatArray
from ccmem.models._blocks import BlockMemory

SPREADS = 3.0
"""Standard deviations by which at least one column differs between two distinct blocks (3, as in control charts)."""
_FLOOR = 1e-3
"""Floor on a column's standard deviation, relative to the range of its levels; constant columns have deviation 0."""


class Blocks(NamedTuple):
    """Blocks of a checkpoint, described column by column."""

    names: list[str]
    samples: list[int]
    level: FloatArray
    spread: FloatArray
    columns: list[str]


def run(args: argparse.Namespace) -> int:
    """Print shared, new and missing blocks."""
    a, b = blocks_of(args.a), blocks_of(args.b)
    if a.columns != b.columns:
        raise ValueError(
            f"{args.a} has the columns {', '.join(a.columns[:8])}, {args.b} has {', '.join(b.columns[:8])}; "
            "only checkpoints of the same columns can be compared"
        )
    facts = compare(a, b, args.spreads)
    print(json.dumps(facts) if args.json else printable(_text(facts, args)))
    return 10 if args.exit_code and facts["new"] else 0


def blocks_of(file: str) -> Blocks:
    """Return the blocks of a checkpoint."""
    memory = Learner.load(file).memory
    if memory is None:
        raise ValueError(f"{file} has learned nothing yet")
    if not isinstance(memory, BlockMemory):
        raise ValueError(f"{file} holds {type(memory).__name__}, which has no blocks to compare")
    names, members, wins = memory.block_names_, memory.unit_blocks_, memory.win_counts_
    numbers = range(memory.n_blocks_)
    profiles = [memory._profile(block) for block in numbers]
    known = getattr(memory, "feature_names_in_", None)
    columns = [f"column {i}" for i in range(memory.n_features_in_)] if known is None else [str(name) for name in known]
    return Blocks(
        [names.get(block, f"block {block}") for block in numbers],
        [int(wins[members == block].sum()) for block in numbers],
        np.array([profile.level for profile in profiles], np.float64),
        np.array([profile.spread for profile in profiles], np.float64),
        columns,
    )


def compare(a: Blocks, b: Blocks, spreads: float = SPREADS) -> dict[str, Any]:
    """Return pairs of equal blocks, closest first, and the blocks that only one side has."""
    levels = np.concatenate([a.level, b.level])
    floor = np.maximum(_FLOOR * np.ptp(levels, axis=0), 1e-12 * np.abs(levels).max(axis=0, initial=1e-300))
    scale = np.sqrt((a.spread[:, None] ** 2 + b.spread[None] ** 2) / 2) + floor
    apart = np.abs(a.level[:, None] - b.level[None]) / scale
    distance = apart.max(axis=2)
    common, left_a, left_b = [], set(range(len(a.names))), set(range(len(b.names)))
    for place in np.argsort(distance, axis=None, kind="stable").tolist():
        i, j = divmod(place, len(b.names))
        if i in left_a and j in left_b and distance[i, j] <= spreads:
            column = int(apart[i, j].argmax())
            most = {"column": a.columns[column], "spreads": round(float(distance[i, j]), 3)}
            common.append({"a": _block(a, i), "b": _block(b, j), "most": most})
            left_a.remove(i)
            left_b.remove(j)
    missing, new = [_block(a, i) for i in sorted(left_a)], [_block(b, j) for j in sorted(left_b)]
    return {"common": common, "new": new, "missing": missing}


def _block(blocks: Blocks, number: int) -> dict[str, Any]:
    return {"block": number, "name": blocks.names[number], "samples": blocks.samples[number]}


def _text(facts: dict[str, Any], args: argparse.Namespace) -> str:
    counts = ", ".join(f"{len(facts[what])} {what}" for what in ("common", "new", "missing"))
    lines = [f"{counts} (blocks of {args.b} seen from {args.a})"]
    for pair in facts["common"]:
        a, b, most = pair["a"], pair["b"], pair["most"]
        names = a["name"] if a["name"] == b["name"] else f"{a['name']} = {b['name']}"
        samples = f"{a['samples']:,} and {b['samples']:,} samples"
        lines.append(
            f"  common   {names:<28} {samples:<32} differs most in {most['column']}: {most['spreads']:.1f} spreads"
        )
    lines += [f"  new      {block['name']:<28} {block['samples']:,} samples" for block in facts["new"]]
    lines += [f"  missing  {block['name']:<28} {block['samples']:,} samples" for block in facts["missing"]]
    return "\n".join(lines)
