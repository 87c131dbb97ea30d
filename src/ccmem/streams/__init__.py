"""Where samples come from, in what order, with which labels: iterables of chunks, in constant memory."""

from ccmem.streams.files import FileStream, as_chunks, read_files
from ccmem.streams.splits import Steps, TaskStream, class_tasks, recurring_tasks, shuffled, split_by_class
from ccmem.streams.tables import BadRowError, SourceError

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
