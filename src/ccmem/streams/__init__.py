"""Where samples come from, in what order, with which labels: iterables of chunks, in constant memory."""

from ccmem.streams.splits import Chunk, TaskStream, class_tasks, recurring_tasks, shuffled, split_by_class

__all__ = ["Chunk", "TaskStream", "class_tasks", "recurring_tasks", "shuffled", "split_by_class"]
