"""Where samples come from, in what order, with which labels: iterables of chunks, in constant memory."""

from ccmem.streams.files import FileStream, as_chunks, read_files
from ccmem.streams.tables import BadRowError, SourceError

__all__ = ["BadRowError", "FileStream", "SourceError", "as_chunks", "read_files"]
