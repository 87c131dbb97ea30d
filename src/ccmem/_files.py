"""Results as files that are complete or not there."""

from __future__ import annotations

from pathlib import Path

from ccmem.persistence.atomic import atomic_write


def write_whole(path: Path, content: bytes) -> None:
    """Put ``content`` in the place of ``path``, making its folder if need be; on failure nothing is left behind."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, [content])
    except OSError as problem:
        raise OSError(
            f"cannot write {path} ({problem.strerror or problem}); make room or choose another folder"
        ) from problem
