"""Sphinx settings. ``make docs`` builds with warnings as errors."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import ccmem

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
os.environ.setdefault("MPLBACKEND", "Agg")

project = "ccmem"
author = "The ccmem developers"
copyright = "The ccmem developers"
version = release = ccmem.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
# pages that include a file of the repository show its links as text where they point outside the site
suppress_warnings = ["config.cache", "myst.xref_missing"]

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"/harnesses/",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 5,
    "copyfile_regex": r".*\.rst",
}

html_theme = "pydata_sphinx_theme"
html_title = "ccmem"
html_static_path = ["_static"]
html_theme_options = {
    "show_nav_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {"index": []}
html_show_sourcelink = False


def _only_ours(app, what, name, obj, skip, options):
    """Leave out what is inherited from other libraries: it is documented there."""
    home = getattr(getattr(obj, "fget", None) or obj, "__module__", None)
    return True if isinstance(home, str) and not home.startswith("ccmem") else None


def _attributes_are_code(app, what, name, obj, options, lines):
    """Words such as n_units_ are attributes, not the links that reStructuredText takes them for."""
    for i, line in enumerate(lines):
        if ">>>" not in line:
            lines[i] = re.sub(r"(?<![\w`*\\.])([A-Za-z]\w*_)(?=[\s,.;:)]|$)", r"``\1``", line)


def setup(app):
    app.connect("autodoc-skip-member", _only_ours)
    app.connect("autodoc-process-docstring", _attributes_are_code, priority=900)  # after numpydoc
