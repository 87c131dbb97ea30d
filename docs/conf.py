"""Sphinx settings. ``make docs`` builds with warnings as errors."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import tomllib
from pathlib import Path

import ccmem

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))
import make_api  # noqa: E402

make_api.write()
os.environ.setdefault("MPLBACKEND", "Agg")

project = "ccmem"
author = "The ccmem developers"
copyright = "The ccmem developers"
version = release = ccmem.__version__

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx_gallery.gen_gallery"]
extensions += ["code_pages"]
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
suppress_warnings = ["config.cache"]  # the settings of sphinx-gallery cannot be pickled; that costs a rebuild only

autosummary_generate = True
if importlib.util.find_spec("torch") is None:  # a large thing to install for one page
    autodoc_mock_imports = ["torch"]
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
    "image_scrapers": ("matplotlib", "gallery.shown_figures"),
    "ignore_repr_types": r"Figure|Axes|function",
}

html_theme = "pydata_sphinx_theme"
html_title = "ccmem"
html_static_path = ["_static", "_css"]
html_css_files = ["site.css"]
html_theme_options = {
    "show_nav_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 4,  # one line, with the search field beside them
    "secondary_sidebar_items": ["page-toc"],
}
REPOSITORY = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"].get("urls", {}).get("Repository")
if REPOSITORY:
    html_theme_options["github_url"] = REPOSITORY
html_sidebars = {"**": ["globaltoc.html"]}
html_show_sourcelink = False


def _without_empty_heads(app, doctree):
    """Markdown has no tables without a head: those that say nothing are left out."""
    from docutils import nodes

    for head in list(doctree.findall(nodes.thead)):
        if not head.astext().strip():
            head.parent.remove(head)


def _only_ours(app, what, name, obj, skip, options):
    """Leave out what is inherited from other libraries: it is documented there."""
    home = getattr(getattr(obj, "fget", None) or obj, "__module__", None)
    return True if isinstance(home, str) and not home.startswith("ccmem") else None


def _attributes_are_code(app, what, name, obj, options, lines):
    """Words such as n_units_ are attributes, not the links that reStructuredText takes them for."""
    for i, line in enumerate(lines):
        if ">>>" not in line:
            lines[i] = re.sub(r"(?<![\w`*\\.])([A-Za-z]\w*_)(?=[\s,.;:)]|$)", r"``\1``", line)


def _include(app, docname, source):
    """Put a file of the repository in the place of ``<!-- include: NAME -->``, without its title.

    Its pictures are found where they lie; its other links, which lead out of the site, become plain text.
    """

    def content(found):
        file = ROOT / found[1]
        app.env.note_dependency(str(file), docname=docname)
        if not file.exists():
            return f"*{found[1]} has not been written yet.*"
        text = re.sub(r"\A# .*\n", "", file.read_text())
        up = "../" * (docname.count("/") + 1)
        folder = file.parent.relative_to(ROOT).as_posix()
        text = re.sub(r"!\[([^]]*)\]\((?!https?:)([^)]+)\)", rf"![\1]({up}{folder}/\2)", text)
        return re.sub(r"(?<!!)\[([^]]+)\]\((?!https?:|#)[^)]+\)", r"\1", text)

    source[0] = re.sub(r"<!-- include: (\S+) -->", content, source[0])


def _formula(writer, node):
    """A formula as MathML, which browsers draw by themselves: nothing is fetched."""
    from docutils import nodes
    from docutils.utils.math.latex2mathml import tex2mathml

    block = node.tagname == "math_block"
    formula = tex2mathml(node.astext(), as_block=block)
    writer.body.append(f'<div class="math">{formula}</div>' if block else formula)
    raise nodes.SkipNode


html_math_renderer = "mathml"


def setup(app):
    app.add_html_math_renderer("mathml", (_formula, None), (_formula, None))
    app.connect("source-read", _include)
    app.connect("doctree-read", _without_empty_heads)
    app.connect("autodoc-skip-member", _only_ours)
    app.connect("autodoc-process-docstring", _attributes_are_code, priority=900)  # after numpydoc
