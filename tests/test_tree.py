"""The tree tells where a sample goes: each part of the package imports only parts that stand above it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import ccmem

ORDER = (
    *("_typing", "_codes", "_sklearn", "_cache", "_terminal", "registry", "guard", "colours", "summary", "kernels"),
    *("parameters", "labels", "memory", "persistence", "estimator", "streams", "base", "models", "deviations"),
    *("layers", "readout", "predictors", "metrics", "living", "fleet", "spark", "watching", "datasets", "rivals"),
    *("experiments", "plots", "report", "river", "torch", "commands"),
)
"""As in CONTRIBUTING.md, top to bottom; ``cli`` is one with its commands."""

PACKAGE = Path(ccmem.__file__).parent


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """Parts of the package that a file imports, also inside functions, but for type checkers alone."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for inner in ast.walk(node):
                inner.skipped = True  # type: ignore[attr-defined]
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        if not hasattr(node, "skipped"):
            parts = [name.split(".")[1] for name in names if name.startswith("ccmem.")]
            yield from ((part.replace("cli", "commands"), node.lineno) for part in parts)


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py").replace("cli", "commands")


def test_no_part_imports_one_below_it():
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        part = part_of(path)
        if part != "__init__":
            for other, line in imports(path):
                if other in ORDER and ORDER.index(other) > ORDER.index(part):
                    wrong.append(f"{path.relative_to(PACKAGE)}:{line} imports {other}")
    assert not wrong


def test_every_part_has_its_place():
    parts = {part_of(path) for path in PACKAGE.rglob("*.py")} - {"__init__"}
    assert parts <= set(ORDER)


def test_the_tree_that_contributors_read_is_this_one():
    text = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    tree = text.partition("    src/ccmem/\n")[2].partition("    studies/")[0]
    told = [word.rstrip("/").removesuffix(".py") for word in tree.split() if word.endswith(("/", ".py"))]
    order = [part for part in ORDER if not part.startswith("_")]
    assert [part for part in told if part in order] == order
