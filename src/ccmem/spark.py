"""Live fleets on Spark Structured Streaming; see :mod:`ccmem.fleet.spark`. Needs ``pip install "ccmem[spark]"``."""

from ccmem.fleet.spark import configure, learn, rows_of_messages, states, write_events
from ccmem.fleet.step import Recipe

__all__ = ["Recipe", "configure", "learn", "rows_of_messages", "states", "write_events"]
