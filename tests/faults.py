"""A shim that fails the n-th step of writing: opening, writing, syncing, renaming or changing the mode of a file."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ERRORS = (OSError(errno.ENOSPC, "No space left on device"), OSError(errno.EIO, "I/O error"), MemoryError())


class Steps:
    """Counts steps; the one with number ``failing`` raises ``error`` instead."""

    def __init__(self, failing: int, error: BaseException) -> None:
        self.done, self.failing, self.error = 0, failing, error

    def __call__(self) -> None:
        self.done += 1
        if self.done - 1 == self.failing:
            raise self.error

    @property
    def failed(self) -> bool:
        """True if a step was failed."""
        return self.done > self.failing


class _File:
    """An open file, each write to which is a step."""

    def __init__(self, file: Any, step: Steps) -> None:
        self._file, self._step = file, step

    def write(self, data: Any) -> Any:
        self._step()
        return self._file.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *_: Any) -> None:
        self._file.close()


def _stepping(function: Any, step: Steps) -> Any:
    def stepping(*args: Any, **kwargs: Any) -> Any:
        step()
        return function(*args, **kwargs)

    return stepping


@contextmanager
def failing(number: int, error: BaseException) -> Iterator[Steps]:
    """Fail the step with this number, counted from 0."""
    step = Steps(number, error)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("open", "fsync", "replace", "chmod"):
            patch.setattr(os, name, _stepping(getattr(os, name), step))
        real = Path.open

        def opened(path: Path, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            file = real(path, mode, *args, **kwargs)
            return _File(file, step) if "w" in mode else file

        patch.setattr(Path, "open", opened)
        yield step
