"""Pure functions of a task matrix R, of labels, or of events."""

from ccmem.metrics.events import EventScore, score_events

__all__ = ["EventScore", "score_events"]
