"""Every notebook runs from top to bottom, and the last values of its cells can be displayed."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib")
ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


def test_no_page_links_to_a_repository_that_is_not_configured() -> None:
    """Check links against pyproject.toml; while it names no public repository, no page may link to one."""
    home = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"].get("urls", {}).get("Repository")
    pages = [*NOTEBOOKS, *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    links = [page.name for page in pages if re.search(r"https://(?:colab|github\.com/ccmem)", page.read_text())]
    assert home or links == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs(path: Path) -> None:
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    names: dict[str, Any] = {"__name__": "__main__"}
    shown = 0
    for cell in cells:
        assert cell["outputs"] == [], "notebooks are kept without their output"
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, str(path), "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), str(path), "eval"), names)
            if (picture := getattr(value, "_repr_png_", None)) is not None:
                assert picture().startswith(b"\x89PNG")
                shown += 1
    assert shown
