"""Errors of sources, which name the fault, its place and a remedy."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

NOT_UTF8 = "is not UTF-8 text; save the file as UTF-8"
Faults = dict[int, tuple[str | None, str]]
"""Row of a batch -> column (None: the whole row) and description of a fault that NaN alone does not express."""
_OF_READERS = (
    *(ValueError, TypeError, LookupError, ArithmeticError, EOFError, RuntimeError, MemoryError),
    *(zipfile.BadZipFile, zlib.error),
)
"""Exceptions that readers raise for damaged data, those of pyarrow apart."""


class SourceError(ValueError):
    """A source that cannot be read, or lacks the requested data."""


class BadRowError(SourceError):
    """A row that cannot be learned from; ``file``, ``row`` (from 1) and ``column`` locate it."""

    def __init__(self, file: str, row: int, column: str | None, what: str, in_place: bool = True) -> None:
        self.file, self.row, self.column = file, row, column
        place = f"{file}, row {row}" + (f", column {column!r}" if column is not None else "")
        remedy = "fix it" if in_place else "write the file again without it under another name"
        super().__init__(f"{place}: {what}; {remedy}, or skip and count such rows (--on-bad-row skip)")


class NothingToLearnError(SourceError):
    """A source with too few numeric columns; the command ends with exit code 2."""

    exit_code = 2


@contextmanager
def named(file: str, what: str = "is damaged or not what its name says") -> Iterator[None]:
    """Convert any exception that a reader raises for damaged data into a SourceError that names the file."""
    try:
        yield
    except SourceError:
        raise
    except OSError as problem:
        if problem.errno is not None:  # from the operating system: no such file, no permission, disk failure
            raise
        raise SourceError(f"{file} is damaged: {str(problem)[:300]}") from problem
    except Exception as problem:
        if not (isinstance(problem, _OF_READERS) or type(problem).__module__.startswith("pyarrow")):
            raise
        raise SourceError(f"{file} {what}: {str(problem)[:300] or type(problem).__name__}") from problem


def shown(text: str) -> str:
    """Return a value shortened and quoted for a message, with the replacement character for bytes that are not text."""
    return repr("".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text[:60]))
