"""Sources of samples as iterables of chunks, in a defined order, with or without labels, in constant memory."""

from ccmem.io.streams.errors import BadRowError, SourceError
from ccmem.io.streams.files import FileStream, as_chunks, read_files
from ccmem.io.streams.splits import Steps, TaskStream, class_tasks, recurring_tasks, shuffled, split_by_class

__all__ = [
    "BadRowError",
    "FileStream",
    "SourceError",
    "Steps",
    "TaskStream",
    "as_chunks",
    "class_tasks",
    "read_files",
    "recurring_tasks",
    "shuffled",
    "split_by_class",
]
