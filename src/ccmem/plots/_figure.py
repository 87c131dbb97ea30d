"""Figures that work without pyplot and display in notebooks."""

from __future__ import annotations

import base64
import io
from functools import lru_cache
from typing import Any

BLUE, ORANGE, GREEN, GREY, RED = "#2b6cb0", "#dd6b20", "#2f855a", "#a0aec0", "#c53030"


@lru_cache(maxsize=1)
def _kinds() -> tuple[Any, Any]:
    try:
        from matplotlib.axes import Axes
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as problem:
        raise ImportError("figures need matplotlib: pip install matplotlib") from problem

    def png(figure: Any) -> bytes:
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=110, metadata={"Software": None})
        return buffer.getvalue()

    class ShownFigure(Figure):
        """A figure that displays in a notebook."""

        def __init__(self, *arguments: Any, **more: Any) -> None:
            super().__init__(*arguments, **more)
            FigureCanvasAgg(self)

        def _repr_png_(self) -> bytes:
            return png(self)

        def _repr_html_(self) -> str:  # used by the gallery of the docs
            return f'<img src="data:image/png;base64,{base64.b64encode(png(self)).decode()}"/>'

    class ShownAxes(Axes):
        """Axes that display in a notebook with their figure."""

        def _repr_png_(self) -> bytes:
            return png(self.figure)

    return ShownFigure, ShownAxes


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure of this size in inches."""
    return _kinds()[0](figsize=(width, height), layout="constrained")


def new_axes(ax: Any, width: float, height: float) -> Any:
    """Return ``ax``, or the axes of a new figure."""
    return new_figure(width, height).add_subplot(axes_class=_kinds()[1]) if ax is None else ax


def without_frame(ax: Any, title: str | None = None, **style: Any) -> Any:
    """Remove ticks and frame of ``ax``, set the title if there is one, and return ``ax``."""
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    if title is not None:
        ax.set_title(title, **style)
    return ax


def note(ax: Any, text: str, place: tuple[float, float], offset: tuple[float, float], **style: Any) -> None:
    """Write ``text`` at an offset, in points, from ``place``."""
    ax.annotate(text, place, offset, textcoords="offset points", **style)


def column_names(memory: Any) -> list[str]:
    """Return the names of the columns, by default "column 0", "column 1", ..."""
    names = getattr(memory, "feature_names_in_", None)
    return [f"column {i}" for i in range(memory.n_features_in_)] if names is None else [str(name) for name in names]


def memory_of(model: Any) -> Any:
    """Return the memory inside a classifier or gated network, or the memory itself."""
    return getattr(model, "memory_", model)
