"""Every example of the gallery runs without a warning and draws something."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

matplotlib = pytest.importorskip("matplotlib")
EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("plot_*.py"))


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_example(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matplotlib.use("Agg")
    plt = pytest.importorskip("matplotlib.pyplot")
    shown: list[int] = []
    monkeypatch.setattr(plt, "show", lambda: shown.extend(plt.get_fignums()))
    try:
        runpy.run_path(str(script), run_name="__main__")
        assert shown
        assert all(plt.figure(number).axes for number in shown)
        for number in shown:
            plt.figure(number).canvas.draw()
    finally:
        plt.close("all")


def test_there_are_enough() -> None:
    assert len(EXAMPLES) >= 8
