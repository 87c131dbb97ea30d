"""Write docs/api.rst: the template with the public classes of each package where it names the package in braces.

python docs/make_api.py
"""

from __future__ import annotations

import re
from pathlib import Path

from ccmem import registry

HERE = Path(__file__).parent


def page() -> str:
    """The reference, every public class in it."""
    template = (HERE / "_templates" / "api.rst").read_text()

    def listed(found: re.Match[str]) -> str:
        return "\n".join(found[1] + name for name in registry.names(found[2]))

    return re.sub(r"( +)\{([\w.]+)\}", listed, template)


def write() -> None:
    """Write it where Sphinx looks for it, unless it is there already."""
    place = HERE / "api.rst"
    if not place.exists() or place.read_text() != page():
        place.write_text(page())


if __name__ == "__main__":
    write()
