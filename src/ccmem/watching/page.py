"""The page: one answer with its style and scripts inside, and a policy that lets it fetch from nowhere else."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from importlib.resources import files

_SCRIPTS = ("look.js", "timeline.js", "cards.js", "why.js", "export.js", "main.js")


@lru_cache(maxsize=1)
def _parts() -> tuple[str, str, str]:
    folder = files("ccmem.watching") / "page"
    page, style = ((folder / name).read_text("utf-8") for name in ("page.html", "style.css"))
    script = "\n".join((folder / name).read_text("utf-8") for name in _SCRIPTS)
    return page, style, f'"use strict";\n(() => {{\n{script}\n}})();\n'


def page(token: str) -> bytes:
    """The page as it is sent; ``token`` lets it name blocks."""
    html, style, script = _parts()
    html = html.replace("{{style}}", style).replace("{{script}}", script)
    return html.replace("{{token}}", token).encode()


def policy() -> str:
    """The content security policy of the page: only the style and script inside it, only answers of this server."""
    _, style, script = _parts()
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src blob: data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
