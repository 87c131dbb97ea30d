"""Location of the caches for compiled kernels and downloaded data."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_folder(what: str) -> Path:
    """Return ``$CCMEM_<WHAT>_CACHE`` if set, otherwise ``ccmem/<what>`` in the user's cache folder."""
    chosen = os.environ.get(f"CCMEM_{what.upper()}_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or (os.environ.get("LOCALAPPDATA") if sys.platform == "win32" else None)
    return (Path(base) if base else Path.home() / ".cache") / "ccmem" / what
