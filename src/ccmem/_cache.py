"""Where ccmem keeps what it can make or fetch again: one rule for every cache."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_folder(what: str) -> Path:
    """``CCMEM_<WHAT>_CACHE`` if that is set, otherwise ``ccmem/<what>`` in the user's cache folder."""
    chosen = os.environ.get(f"CCMEM_{what.upper()}_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or (os.environ.get("LOCALAPPDATA") if sys.platform == "win32" else None)
    return (Path(base) if base else Path.home() / ".cache") / "ccmem" / what
