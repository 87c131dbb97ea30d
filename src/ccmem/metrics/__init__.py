"""Pure functions of a task matrix R, of labels, or of events."""

from ccmem.metrics.conformity import conformity
from ccmem.metrics.events import EventScore, score_events
from ccmem.metrics.maps import quantisation_error, topographic_error
from ccmem.metrics.retention import (
    average_accuracy,
    backward_transfer,
    backward_transfer_triangle,
    forgetting_best_to_last,
    forgetting_first_to_last,
)
from ccmem.metrics.segments import RecordingScore, covering, regimes, score_recording

__all__ = [
    "EventScore",
    "RecordingScore",
    "average_accuracy",
    "backward_transfer",
    "backward_transfer_triangle",
    "conformity",
    "covering",
    "forgetting_best_to_last",
    "forgetting_first_to_last",
    "quantisation_error",
    "regimes",
    "score_events",
    "score_recording",
    "topographic_error",
]
