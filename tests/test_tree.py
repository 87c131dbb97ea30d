"""Borders of the package: each part imports only parts listed above it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import ccmem

ORDER = (
    *("registry", "core", "kernels", "io", "base", "ncl", "models", "layers", "readout", "metrics", "plots", "fleet"),
    *("paper", "app", "river", "torch"),
)
"""Parts in the order of CONTRIBUTING.md, top to bottom. ``cli.py`` counts as part of ``app``."""

PACKAGE = Path(ccmem.__file__).parent


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """Return the parts of the package that a file imports, including imports in functions, excluding TYPE_CHECKING."""
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
            yield from ((part.replace("cli", "app"), node.lineno) for part in parts)


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py").replace("cli", "app")


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


def test_contributing_lists_this_tree():
    text = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    tree = text.partition("    src/ccmem/\n")[2].partition("    studies/")[0]
    listed = [line.split()[0].rstrip("/").removesuffix(".py") for line in tree.splitlines()]
    assert [part for part in listed if part in ORDER] == [
        part for part in ORDER if (PACKAGE / part).exists() or (PACKAGE / f"{part}.py").exists()
    ]


def test_only_the_command_line_imports_the_laboratory():
    importers = {part_of(path) for path in PACKAGE.rglob("*.py") if "paper" in dict(imports(path))}
    assert importers <= {"paper", "app"}


def test_kernels_do_not_need_scikit_learn():
    for path in (PACKAGE / "kernels").glob("*.py"):
        assert "sklearn" not in path.read_text(encoding="utf-8"), path.name


def test_no_file_is_too_long_to_read():
    long = {path.name: n for path in PACKAGE.rglob("*.py") if (n := path.read_text("utf-8").count("\n")) > 400}
    assert not long, long
