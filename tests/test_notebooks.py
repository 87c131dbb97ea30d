"""Every notebook runs from top to bottom, and what its cells end in can be shown."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib")
NOTEBOOKS = sorted((Path(__file__).parents[1] / "examples" / "notebooks").glob("*.ipynb"))


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
