"""Names in "Paper to code" lead to the code itself: pages of the source, made for the modules that it names.

A part of Sphinx's build (conf.py lists it as an extension). The pages are in the site, so that nothing is fetched.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

PAGES = ("paper_to_code",)
NAME = re.compile(r"ccmem(\.\w+)+")
_MODULES = "code_pages_modules"


def place_of(name: str) -> tuple[str, int] | None:
    """Module and line of a dotted name; None if it has no lines of its own.

    >>> place_of("ccmem.kernels.competition.find_bmu")[0]
    'ccmem.kernels.competition'
    """
    module, *rest = name.split(".")
    thing: Any = importlib.import_module(module)
    for part in rest:
        try:
            thing = getattr(thing, part)
        except AttributeError:
            thing = importlib.import_module(f"{thing.__name__}.{part}")
    if inspect.ismodule(thing):
        return thing.__name__, 1
    thing = inspect.unwrap(getattr(thing, "py_func", getattr(thing, "fget", thing)))
    try:
        return thing.__module__, inspect.getsourcelines(thing)[1]
    except (TypeError, OSError, AttributeError):
        return None


def link_names(app: Any, doctree: Any, docname: str) -> None:
    """Make a link of every name of the package."""
    from docutils import nodes

    if docname not in PAGES or app.builder.format != "html":
        return
    modules = app.env.__dict__.setdefault(_MODULES, set())
    for literal in list(doctree.findall(nodes.literal)):
        if NAME.fullmatch(literal.astext()) and (place := place_of(literal.astext())) is not None:
            module, line = place
            modules.add(module)
            target = app.builder.get_relative_uri(docname, f"code/{module}")
            link = nodes.reference("", "", internal=True, refuri=f"{target}#line-{line}")
            literal.replace_self(link)
            link += literal


def code_pages(app: Any) -> Iterator[tuple[str, dict[str, Any], str]]:
    """A page of source for every module that was named."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    look = HtmlFormatter(lineanchors="line", anchorlinenos=True, linenos="inline", cssclass="highlight")
    for module in sorted(app.env.__dict__.get(_MODULES, ())):
        source = inspect.getsource(importlib.import_module(module))
        body = f"<h1>{module}</h1>{highlight(source, PythonLexer(), look)}"
        yield f"code/{module}", {"title": module, "body": body}, "page.html"


def setup(app: Any) -> dict[str, bool]:
    """Take part in a build."""
    app.connect("doctree-resolved", link_names)
    app.connect("html-collect-pages", code_pages)
    return {"parallel_read_safe": True}
