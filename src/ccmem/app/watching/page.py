"""HTML page: one response with inline style and scripts, and a policy that blocks requests to other hosts."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from importlib.resources import files

_SCRIPTS = ("look", "words", "view", "signals", "timeline", "cards", "why", "export", "main")


@lru_cache(maxsize=1)
def _parts() -> tuple[str, str, str]:
    folder = files("ccmem.app.watching") / "page"
    page, style = ((folder / name).read_text("utf-8") for name in ("page.html", "style.css"))
    script = "\n".join((folder / f"{name}.js").read_text("utf-8") for name in _SCRIPTS)
    return page, style, f'"use strict";\n(() => {{\n{script}\n}})();\n'


def page(token: str) -> bytes:
    """Return the page; ``token`` authorises the page to name blocks."""
    html, style, script = _parts()
    html = html.replace("{{style}}", style).replace("{{script}}", script)
    return html.replace("{{token}}", token).encode()


def policy() -> str:
    """Return the content security policy: only the page's style and script, only requests to this server."""
    _, style, script = _parts()
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src blob: data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
