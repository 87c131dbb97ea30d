"""Files that are complete or not there: written aside, moved into place."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any


def write_atomically(path: Path, write: Callable[[IO[bytes]], Any]) -> None:
    """Let ``write`` fill a new file, then put it in the place of ``path``; on any failure nothing is left behind."""
    aside = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        Path(aside).chmod(0o644)
        Path(aside).replace(path)
        aside = None
    except OSError as problem:
        raise OSError(
            problem.errno, f"cannot write {path} ({problem.strerror or problem}); make room or choose another folder"
        ) from problem
    finally:
        if aside is not None:
            with contextlib.suppress(OSError):
                Path(aside).unlink()
