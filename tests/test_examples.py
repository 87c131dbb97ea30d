"""Every example of the gallery runs without a warning and draws something."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

matplotlib = pytest.importorskip("matplotlib")
from ccmem.plots import _figure, results, timelines, units  # noqa: E402

new_figure = _figure.new_figure

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("plot_*.py"))


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_example(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matplotlib.use("Agg")
    plt = pytest.importorskip("matplotlib.pyplot")
    shown: list[int] = []
    monkeypatch.setattr(plt, "show", lambda: shown.extend(plt.get_fignums()))
    try:
        made: list[object] = []
        for module in (_figure, results, timelines, units):  # figures of ccmem.plots show themselves, without pyplot
            monkeypatch.setattr(module, "new_figure", lambda *size: made.append(new_figure(*size)) or made[-1])
        runpy.run_path(str(script), run_name="__main__")
        assert shown or made
        assert all(figure._repr_html_().startswith("<img") for figure in made)  # type: ignore[attr-defined]
        assert all(plt.figure(number).axes for number in shown)
        for number in shown:
            plt.figure(number).canvas.draw()
    finally:
        plt.close("all")


def test_there_are_enough() -> None:
    assert len(EXAMPLES) >= 8
