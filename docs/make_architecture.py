"""Draw the packages of ccmem and their imports, read from the source: ``python docs/make_architecture.py``.

Writes ``docs/_static/architecture.svg``. Boxes stand in the order of ``tests/test_tree.py``; a line from one box to
another means that the lower package imports the upper one, and its width grows with the number of imports.
"""

from __future__ import annotations

import ast
import math
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "ccmem"
PARTS = {
    "core": "parameters, labels, events, state, locking",
    "kernels": "compiled arithmetic: who wins, how winners move",
    "io": "streams: files, tables, pipes · persistence: checkpoints",
    "base": "validation, chunks, growth, prediction, saving",
    "ncl": "framework: activation, competition, update, growth",
    "models": "one published model per file",
    "layers": "patches, windows, shapes, stacks",
    "readout": "unit to label: votes, discriminant, networks",
    "metrics": "retention, events, segments",
    "plots": "pictures of memories and streams",
    "fleet": "one memory per key: files, Dask, Spark",
    "paper": "data sets, other methods, experiments, report",
    "app": "command line, learner, live page",
}
PATH = ("io", "app", "base", "models", "kernels", "models", "io")
"""Stations of a sample that `ccmem learn` reads: file, learner, validation, model, kernel, events, checkpoint."""
ROW, WIDTH, LEFT, TOP = 46, 430, 20, 54
INK, GREY, BLUE, PALE = "#22272e", "#8b949e", "#0072B2", "#eaf3fa"


def part_of(path: Path) -> str:
    """Return the package of a file; the command line belongs to ``app``."""
    part = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return "app" if part == "cli" else part


def imports() -> Counter[tuple[str, str]]:
    """Count the imports between packages as (importer, imported)."""
    found: Counter[tuple[str, str]] = Counter()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ccmem."):
                pair = part_of(path), node.module.split(".")[1]
                if pair[0] != pair[1] and set(pair) <= set(PARTS):
                    found[pair] += 1
    return found


def draw() -> str:
    """Return the diagram as SVG text."""
    parts = [part for part in PARTS if (PACKAGE / part).is_dir()]
    lines = {part: sum(p.read_text("utf-8").count("\n") for p in (PACKAGE / part).rglob("*.py")) for part in parts}
    middle = {part: TOP + ROW * i + 17 for i, part in enumerate(parts)}
    height = TOP + ROW * len(parts) + 10
    right = LEFT + WIDTH
    svg = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {height}" font-family="Helvetica, sans-serif">',
        f'<rect width="760" height="{height}" fill="white"/>',
        f'<text x="{LEFT}" y="24" font-size="16" font-weight="bold" fill="{INK}">Packages of ccmem</text>',
        f'<text x="{LEFT}" y="42" font-size="12" fill="{GREY}">A package imports only packages above it; '
        "blue: visited by every sample.</text>",
    ]
    for (importer, imported), count in sorted(imports().items(), key=lambda item: item[1]):
        low, high = middle[importer], middle[imported]
        bend = right + 24 + 0.42 * abs(low - high)
        on_path = importer in PATH and imported in PATH
        svg.append(
            f'<path d="M{right},{low} C{bend},{low} {bend},{high} {right},{high}" fill="none" '
            f'stroke="{BLUE if on_path else GREY}" stroke-opacity="{0.75 if on_path else 0.35}" '
            f'stroke-width="{0.6 + 0.7 * math.log2(1 + count):.1f}"/>'
        )
    for part in parts:
        on_path, y = part in PATH, middle[part] - 17
        svg.append(
            f'<rect x="{LEFT}" y="{y}" width="{WIDTH}" height="34" rx="6" fill="{PALE if on_path else "#f6f8fa"}" '
            f'stroke="{BLUE if on_path else "#d0d7de"}"/>'
            f'<text x="{LEFT + 12}" y="{y + 22}" font-size="14" font-weight="bold" fill="{INK}">{part}</text>'
            f'<text x="{LEFT + 86}" y="{y + 22}" font-size="12" fill="{INK}">{PARTS[part]}</text>'
            f'<text x="{right - 10}" y="{y + 22}" font-size="11" fill="{GREY}" text-anchor="end">{lines[part]:,}</text>'
        )
    return "\n".join([*svg, "</svg>", ""])


if __name__ == "__main__":
    (ROOT / "docs" / "_static" / "architecture.svg").write_text(draw(), encoding="utf-8")
