"""Format and encoding of a file, recognised by its first bytes."""

from __future__ import annotations

import codecs
import zipfile
from collections.abc import Callable

from ccmem.io.streams.tables import SourceError

HEAD = 4096
"""Number of leading bytes from which the format of a file is recognised."""
_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\xff\xff\xff\xff": "arrow", b"\x93NUMPY": "npy"}
_FOREIGN = {
    b"\xd0\xcf\x11\xe0": ("an old Excel workbook", "save the sheet as CSV"),
    b"SQLite format 3": ("an SQLite database", "export the table as CSV"),
    b"%PDF": ("a PDF document", "export the data as CSV"),
    b"\x89HDF": ("an HDF5 file", "write the table as Parquet or CSV"),
    b"BZh": ("compressed with bzip2", "unpack it, or use gzip"),
    b"\xfd7zXZ": ("compressed with xz", "unpack it, or use gzip"),
    b"\x28\xb5\x2f\xfd": ("compressed with zstd", "unpack it, or use gzip"),
    b"MATLAB": ("a MATLAB file", "write the table as CSV"),
}
_UTF16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


def is_gzip(head: bytes) -> bool:
    """True if ``head`` is the beginning of a gzip file."""
    return head.startswith(b"\x1f\x8b")


def recognise(file: str, head: bytes, by_name: str | None) -> str:
    """Return the format of a file from its first bytes, or ``by_name`` if the bytes are inconclusive.

    >>> recognise("a.txt", b'{"a": 1}', None), recognise("a.dat", b"1 2 3", None)
    ('ndjson', 'csv')
    """
    for magic, kind in _MAGIC.items():
        if head.startswith(magic):
            return kind
    if head.startswith(b"PK\x03\x04"):
        return _archive(file, by_name)
    if by_name in ("parquet", "arrow", "npy", "npz"):
        return by_name  # the reader of that format reports the fault
    for magic, (what, remedy) in _FOREIGN.items():
        if head.startswith(magic):
            raise SourceError(f"{file} is {what}; {remedy}")
    text = head.removeprefix(codecs.BOM_UTF8).lstrip()
    if text.lower().startswith((b"<!doctype", b"<html", b"<?xml")):
        raise SourceError(f"{file} is a web page or XML, not a table; export the data as CSV")
    if text.startswith(b"["):
        raise SourceError(f"{file} is a JSON array; write one object a line (jq -c '.[]' {file} > rows.ndjson)")
    if text.startswith(b"{"):
        return "ndjson"
    if b"\0" in head and encoding_of(head) is None:
        raise SourceError(f"{file} is a binary file of unknown format; known are csv, ndjson, parquet, arrow, npy, npz")
    return by_name or "csv"


def _archive(file: str, by_name: str | None) -> str:
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return by_name or "npz"
    if "[Content_Types].xml" in names:
        raise SourceError(f"{file} is an Excel workbook; save the sheet as CSV")
    if not any(name.endswith(".npy") for name in names):
        raise SourceError(f"{file} is a zip archive; unpack it first")
    return "npz"


def encoding_of(head: bytes) -> str | None:
    """Return the encoding of UTF-16 text, with or without a byte order mark; None for other text."""
    if (known := _UTF16.get(head[:2])) is not None:
        return known
    pairs = head[: len(head) // 2 * 2]
    if len(pairs) >= 8:
        for name, high, low in (("utf-16-le", pairs[1::2], pairs[::2]), ("utf-16-be", pairs[::2], pairs[1::2])):
            if high.count(0) > 0.9 * len(high) and low.count(0) == 0:
                return name
    return None


def as_utf8(read: Callable[[int], bytes], encoding: str) -> Callable[[int], bytes]:
    """Return a function that reads like ``read``, but converts ``encoding`` to UTF-8."""
    decoder = codecs.getincrementaldecoder(encoding)("replace")

    def read_text(most: int) -> bytes:
        while data := read(most):
            if text := decoder.decode(data):
                return text.encode()
        return decoder.decode(b"", final=True).encode()

    return read_text
