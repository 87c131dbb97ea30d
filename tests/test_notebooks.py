"""Every notebook runs from top to bottom, and what its cells end in can be shown."""

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


def test_links_open_notebooks_that_are_there() -> None:
    """Colab opens what lies in the repository that pyproject.toml names."""
    home = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Repository"]
    place = home.replace("https://github.com/", "https://colab.research.google.com/github/") + "/blob/main/"
    pages = [*NOTEBOOKS, ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    found = [link for page in pages for link in re.findall(r"https://colab[^)\s\"]+ipynb", page.read_text())]
    assert {ROOT / link.removeprefix(place) for link in found} == set(NOTEBOOKS)
    for notebook in NOTEBOOKS:
        assert f"{place}examples/notebooks/{notebook.name}" in notebook.read_text()


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
