"""Sphinx-gallery scraper for figures of ccmem.plots that are the last value of a block of an example."""

from __future__ import annotations

from typing import Any

_drawn: list[Any] = []


def shown_figures(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the figure, as a notebook would show it; the thumbnail of an example is made of its first."""
    from sphinx_gallery.scrapers import figure_rst

    value = block_vars["example_globals"].get("___")  # what the latest expression at the end of a block came to
    figure = getattr(value, "figure", None) or value
    if not hasattr(figure, "savefig") or any(figure is one for one in _drawn):
        return ""
    _drawn[:] = [figure]
    path = next(block_vars["image_path_iterator"])
    figure.savefig(path, dpi=110)
    return figure_rst([path], gallery_conf["src_dir"])
